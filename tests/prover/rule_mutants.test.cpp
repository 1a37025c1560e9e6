// tests/prover/rule_mutants.test.cpp - shipped rules with one thing changed: trial and prover never contradict each other
// TENSORPAR_TEST_EFFORT=20 tries some 2,400 of them.
#include <doctest/doctest.h>

#include <support/effort.hpp>
#include <tensorpar/prover/try_rule.hpp>
#include <tensorpar/prover/z3.hpp>
#include <tensorpar/rewrite/rule_parser.hpp>
#include <tensorpar/rewrite/rules/standard_rules.hpp>

#include "rule_mutants.hpp"

using namespace tensorpar;
using namespace tensorpar::prover;

namespace {
struct verdicts {
  proof proved;
  trial tried;
};
/// Proves and tries a rule, and what both say cannot be true at once.
verdicts judge_both(z3_prover& p, rewrite::rule const& r, int instances) {
  verdicts v{p.prove(r), try_rule(r, instances, core::name_hash(rewrite::spell(r)), rewrite::standard_vocabulary(), {}, 20 * instances)};
  if (v.proved.status == proof_status::proved) {
    CHECK_MESSAGE(v.tried.counterexample == "", "a false rule is proved: " << rewrite::spell(r));
    CHECK_MESSAGE(v.tried.open == "", "what is proved holds for functions that are random: " << rewrite::spell(r));
  }
  if (v.proved.status == proof_status::impossible)
    CHECK_MESSAGE(v.tried.instances + v.tried.undecided == 0, "an instance of a rule that has none: " << rewrite::spell(r));
  return v;
}
}  // namespace

TEST_CASE("shipped rules with one thing changed are not proved and refuted at once") {
  z3_prover p;
  std::mt19937 draw(6);
  tests::rule_mutator mutate(draw);
  auto const& rules = rewrite::standard_rules();
  int count = 0, proved = 0, refuted = 0, undecided = 0, impossible = 0, neither = 0;
  int kinds[std::size(tests::mutation_names)] = {};
  int const wanted = test_effort::cases(120);
  for (int turn = 0; turn < 100 * wanted && count < wanted; ++turn) {
    auto const m = static_cast<tests::mutation>(draw() % std::size(tests::mutation_names));
    auto const r = mutate.one(rules[draw() % rules.size()], m);
    if (!r) continue;
    ++count;
    ++kinds[static_cast<int>(m)];
    verdicts const v = judge_both(p, *r, 15);
    bool const is = v.proved.status == proof_status::proved, none = v.proved.status == proof_status::impossible;
    bool const wrong = !none && !v.tried.counterexample.empty(), open = v.tried.counterexample.empty() && v.tried.undecided > 0;
    proved += is;
    impossible += none;
    refuted += wrong;
    undecided += open;
    neither += !is && !none && !wrong && !open;
  }
  MESSAGE(count << " mutants: " << proved << " proved, " << refuted << " refuted, " << undecided << " not decided, " << impossible
                << " that fit nothing, " << neither << " neither proved nor refuted");
  CHECK(count == wanted);
  for (int n : kinds) CHECK(n > 0);
  CHECK(proved > count / 50);
  CHECK(refuted > count / 4);
}

TEST_CASE("numbers before a degree count, for every prime") {
  struct { char const* text; proof_status status; } const rules[] = {
      {"replicate{2*k}(x) => replicate{k}(x)", proof_status::unproved},
      {"linear(x, w) => reduce{2*k}(linear(partition{-1,k}(x), partition{1,k}(w)))", proof_status::unproved},
      {"linear(x, w) => reduce{2*k}(linear(partition{-1,2*k}(x), partition{1,2*k}(w)))", proof_status::proved},
      {"linear(x, w) => reduce{3}(linear(partition{-1,3}(x), partition{1,3}(w)))", proof_status::proved},
      {"linear(x, w) => reduce{3}(linear(partition{-1,3}(x), partition{1,5}(w)))", proof_status::impossible},   // 3 parts are not 5
      {"replicate{2*k}(replicate{15}(x)) => replicate{6*k}(replicate{5}(x))", proof_status::proved},
      {"replicate{4}(x) => replicate{2}(x)", proof_status::unproved},
      {"replicate{7}(x) => replicate{11}(x)", proof_status::unproved},
      {"combine{0,6}(x) => combine{0,2}(combine{0,3}(x))", proof_status::proved},
      {"combine{0,6}(x) => combine{0,2}(x)", proof_status::unproved},
      {"partition{d,9}(combine{d,3}(x)) => partition{d,3}(x)", proof_status::proved},
      {"partition{d,3}(combine{d,9}(x)) => partition{d,3}(x)", proof_status::unproved},
      {"reduce{2}(reduce{k}(x)) => reduce{2*k}(x)", proof_status::proved},
      {"replicate{k}(x) => replicate{k}(x)", proof_status::proved},
      {"replicate{1}(x) => x", proof_status::proved},
      {"partition{d,2}(x) => partition{d,2}(x)", proof_status::proved},
      {"attention_parts{heads=2}(combine{dim=-1,degree=k}(x), combine{dim=-1,degree=k}(y), combine{dim=-1,degree=k}(z)) => "
       "combine{dim=-1,degree=k}(attention_parts(x, y, z))", proof_status::unproved},           // 2 was the only number of heads tried
      {"softmax_merge{heads=2}(x) => combine{dim=-1,degree=k}(softmax_merge(partition{dim=-1,degree=k}(x)))", proof_status::unproved},
      {"attention{heads=2*h,causal=0}(q, k, v) => combine{2,n}(attention{heads=2*h,causal=0}(partition{2,n}(q), partition{2,n}(k), "
       "partition{2,n}(v)))", proof_status::proved},
  };
  z3_prover p;
  for (auto const& [text, status] : rules) {
    CAPTURE(std::string(text));
    verdicts const v = judge_both(p, rewrite::parse_rule(text), 30);
    CHECK(v.proved.status == status);
    CHECK(v.tried.counterexample.empty() == (status == proof_status::proved));
    if (status == proof_status::proved) CHECK(v.tried.instances == 30);
  }
  for (char const* text : {"replicate{0}(x) => x", "replicate{-2*k}(x) => replicate{k}(x)",
                           "partition{0,extent(x,0)}(x) => partition{0,4}(x)"}) {
    CAPTURE(std::string(text));
    CHECK_THROWS_AS(rewrite::parse_rule(text), error);
  }
}

TEST_CASE("every shipped rule with a number before one of its degrees, and before all of them") {
  z3_prover p;
  int one = 0, all = 0, proved = 0, refuted = 0;
  std::size_t const step = 1 + rewrite::standard_rules().size() / static_cast<std::size_t>(test_effort::cases(12));
  for (std::size_t n = 0; n < rewrite::standard_rules().size(); n += step) {
    rewrite::rule const& r = rewrite::standard_rules()[n];
    i64 const number = 2 + static_cast<i64>(n) % 5;
    rewrite::rule every = r;
    int degrees = 0;
    for (rewrite::pattern_graph* g : {&every.source, &every.target})
      for (rewrite::pattern_node& v : g->nodes)
        for (std::size_t i = 0; i < v.attr.size(); ++i)
          if (v.op && rewrite::role_of(*v.op, static_cast<int>(i)) == rewrite::attr_role::degree && !v.attr[i].factors.empty()) {
            for (std::size_t k = 0; k < v.attr[i].factors.size(); ++k) v.attr[i].number *= number;
            ++degrees;
          }
    if (degrees == 0) continue;
    // a rule for all degrees is one for all that are multiples of a number
    verdicts const same = judge_both(p, every, 10);
    CHECK_MESSAGE(same.proved.status == proof_status::proved, rewrite::spell(every));
    ++all;
    for (bool target : {false, true})
      for (rewrite::pattern_node const& v : (target ? r.target : r.source).nodes)
        for (std::size_t i = 0; i < v.attr.size(); ++i) {
          if (!v.op || rewrite::role_of(*v.op, static_cast<int>(i)) != rewrite::attr_role::degree) continue;
          rewrite::rule m = r;
          rewrite::pattern_graph& g = target ? m.target : m.source;
          g.nodes[static_cast<std::size_t>(&v - (target ? r.target : r.source).nodes.data())].attr[i].number *= number;
          verdicts const w = judge_both(p, m, 10);
          ++one;
          proved += w.proved.status == proof_status::proved;
          refuted += !w.tried.counterexample.empty();
        }
  }
  MESSAGE(all << " rules with a number before all degrees, " << one << " with one before one of them: " << proved << " proved, " << refuted
              << " refuted");
  CHECK(all > test_effort::cases(5));
  CHECK(refuted > one / 2);
}
