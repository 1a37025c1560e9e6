// tests/prover/proof_store.test.cpp - a verdict's key changes with all that the verdict depends on, and with nothing else
#include <tensorpar/prover/proof_store.hpp>
#include <doctest/doctest.h>

#include <set>
#include <tensorpar/rewrite/rule_parser.hpp>

using namespace tensorpar;
using namespace tensorpar::prover;

namespace {
rewrite::rule named(std::string const& name, std::string const& text) {
  rewrite::rule r = rewrite::parse_rule(text);
  r.name = name;
  return r;
}
constexpr char const* relus = "relu(relu(x)) => relu(x)";
}  // namespace

TEST_CASE("the rule's name is not in the key: it proves nothing") {
  CHECK(proof_key(named("a", relus), {}) == proof_key(named("b", relus), {}));
}

TEST_CASE("rule, limits, cases and every axiom left out give keys of their own") {
  std::set<u64> seen;
  auto is_new = [&](rewrite::rule const& r, proof_options const& o) { CHECK(seen.insert(proof_key(r, o)).second); };
  rewrite::rule const r = named("", relus);
  is_new(r, {});
  is_new(named("", "relu(x) => relu(relu(x))"), {});
  is_new(named("", "tanh(tanh(x)) => tanh(x)"), {});
  proof_options o;
  o.values += 1;
  is_new(r, o);
  o = {};
  o.shardings += 1;
  is_new(r, o);
  o = {};
  o.cases.max_rank += 1;
  is_new(r, o);
  o = {};
  o.cases.most += 1;
  is_new(r, o);
  for (std::size_t i = 0; i < std::size(axioms); ++i) {
    proof_options without;
    without.without.assign(std::size(axioms), false);
    without.without[i] = true;
    is_new(r, without);
  }
  CHECK(seen.size() == 7 + std::size(axioms));
}

TEST_CASE("a list of axioms left out that names none is no list") {
  proof_options none;
  none.without.assign(std::size(axioms), false);
  CHECK(proof_key(named("", relus), none) == proof_key(named("", relus), {}));
}
