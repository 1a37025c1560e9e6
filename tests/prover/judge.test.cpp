// tests/prover/judge.test.cpp - the published collections, rule by rule (where the folder with them is there)
#include <tensorpar/prover/judge.hpp>
#include <doctest/doctest.h>

#include <filesystem>
#include <set>
#include <support/effort.hpp>
#include <tensorpar/prover/derive.hpp>
#include <tensorpar/rewrite/rule_parser.hpp>
#include <tensorpar/rewrite/rules/standard_rules.hpp>

using namespace tensorpar;
using namespace tensorpar::prover;

namespace {
struct summary {
  int rules = 0, accepted = 0, proved = 0, implied = 0;
  std::map<std::string, int> reasons;
  std::set<int> refuted;
};
/// Of every rule, under a sanitizer of every fourth; nullopt, with a line that says so, where there is no such file.
std::optional<summary> judged(std::string const& name) {
  std::string const path = TENSORPAR_SOURCE "/../shared/data/" + name;
  if (!std::filesystem::exists(path)) {
    MESSAGE("skipped: there is no shared/data/" << name);
    return std::nullopt;
  }
  auto const all = read_foreign_rules(path);
  bool const replicas = counts_replicas(all);
  z3_prover p;
  summary s;
  for (std::size_t i = 0; i < all.size(); i += test_effort::slow ? 4 : 1) {
    import_verdict const v = judge(all[i], replicas, std::to_string(i), p, 30);
    ++s.rules;
    s.accepted += v.accepted;
    s.proved += v.proved;
    if (v.accepted) {
      derivation const d = derive(*v.what, rewrite::rules_both_ways());
      s.implied += d.found && d.untried == 0;
    }
    CHECK(v.accepted == v.reason.empty());
    if (!v.accepted) ++s.reasons[v.reason.substr(0, v.reason.find(':'))];
    if (!v.counterexample.empty()) s.refuted.insert(static_cast<int>(i));
  }
  return s;
}
}  // namespace

TEST_CASE("FlexFlow's 640 rules") {
  auto const s = judged("graph_subst_3_v2.json");
  if (!s) return;
  CHECK(s->rules == (test_effort::slow ? 160 : 640));
  CHECK(s->proved == s->accepted);
  CHECK(s->implied == s->accepted);  // by the shipped rules
  CHECK(s->accepted > 0);
  if (test_effort::slow) return;
  CHECK(s->accepted == 135);
  CHECK(s->reasons == std::map<std::string, int>{{"replica semantics", 393}, {"unbound variable", 112}});
}

TEST_CASE("TASO's 133 rules: the four that its own verifier cannot prove are refuted") {
  auto const s = judged("taso_graph_subst.pb");
  if (!s) return;
  CHECK(s->rules == (test_effort::slow ? 34 : 133));
  CHECK(s->implied == s->accepted);
  CHECK(s->refuted == (test_effort::slow ? std::set<int>{100} : std::set<int>{99, 100, 130, 131}));
  if (test_effort::slow) return;
  CHECK(s->accepted == 129);
  CHECK(s->proved >= 117);
}

TEST_CASE("a rule of one's own: accepted, with a condition, or refuted") {
  z3_prover p;
  foreign_rule f;
  f.source = {{"OP_EW_ADD", {{-1, 0}, {-2, 0}}, {}}};
  f.target = {{"OP_EW_ADD", {{-2, 0}, {-1, 0}}, {}}};
  f.outputs = {{{0, 0}, {0, 0}}};
  import_verdict v = judge(f, false, "0", p);
  CHECK(v.accepted);
  CHECK(v.proved);
  f.target = {{"OP_EW_MUL", {{-2, 0}, {-1, 0}}, {}}};
  v = judge(f, false, "0", p);
  CHECK(!v.accepted);
  CHECK(v.reason == "other values: it holds on nothing that was tried");
  CHECK(!v.counterexample.empty());
  CHECK(!v.undecided);
}

TEST_CASE("a rejected rule is called a coincidence of shapes only where other extents alone make it false") {
  rewrite::rule const products = rewrite::parse_rule("matmul{0,0}(x, y) => matmul{0,0}(y, x)");   // true of one element
  CHECK(prover::detail::how_false(products, 60, 1, rewrite::standard_vocabulary()) == "shape coincidence: it holds for some extents only");
  // what a number or a function makes false is none
  rewrite::rule const numbers = rewrite::parse_rule("scale{s}(x) => scale{s*s}(x)"),
      functions = rewrite::parse_rule("?f(relu(x)) => relu(x)");
  CHECK(prover::detail::how_false(numbers, 60, 1, rewrite::standard_vocabulary())
        == "other values: it holds for some axes, numbers or functions only");
  CHECK(prover::detail::how_false(functions, 60, 1, rewrite::standard_vocabulary()) == "other values: it holds on nothing that was tried");
  CHECK(prover::detail::how_false(rewrite::parse_rule("concat{d}(x, y) => concat{d}(y, x)"), 60, 1, rewrite::standard_vocabulary()) ==
        "other values: it holds on nothing that was tried");
}

TEST_CASE("what is true of a function that rules know nothing of is neither accepted nor refuted") {
  z3_prover p;
  foreign_rule f;
  f.source = {{"OP_RELU", {{-1, 0}}, {}}, {"OP_RELU", {{0, 0}}, {}}};
  f.target = {{"OP_RELU", {{-1, 0}}, {}}};
  f.outputs = {{{1, 0}, {0, 0}}};
  import_verdict v = judge(f, false, "0", p);
  CHECK(!v.accepted);
  CHECK(!v.proved);
  CHECK(v.undecided);
  CHECK(v.reason.starts_with("not decided: the sides differ where functions are random ones, on 100 instances; in real numbers they are "
                             "equal on all of them; "));
  CHECK(v.counterexample.empty());
  f.target = {{"OP_TANH", {{-1, 0}}, {}}};
  v = judge(f, false, "0", p);
  CHECK(!v.undecided);
  CHECK(v.reason.starts_with("other values"));
  CHECK(!v.counterexample.empty());
}
