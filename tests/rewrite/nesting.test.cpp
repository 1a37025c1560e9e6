// tests/rewrite/nesting.test.cpp - concatenations of many are concatenations of two, on every device's blocks
#include <tensorpar/rewrite/nesting.hpp>
#include <doctest/doctest.h>

#include <set>
#include <support/effort.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/prover/try_rule.hpp>
#include <tensorpar/rewrite/replay.hpp>

using namespace tensorpar;
using namespace tensorpar::prover;

TEST_CASE("every one of them holds on random instances; with two operands in each other's place none does") {
  for (int n = 3; n <= (test_effort::slow ? 4 : 6); ++n) {
    CAPTURE(n);
    rewrite::rule const& r = rewrite::nesting_rule(n);
    CHECK(rewrite::problems(r).empty());
    case_limits few;
    few.most = 3;
    trial const t = try_rule(r, 12, static_cast<u64>(n), rewrite::standard_vocabulary(), few);
    CHECK(t.unknown.empty());
    CHECK(t.counterexample.empty());
    CHECK(t.instances == 12);
    CHECK(t.refused == 0);
    rewrite::rule wrong = r;
    rewrite::pattern_node& first = wrong.target.nodes[0];
    std::swap(first.in[0], first.in[1]);
    CHECK(!try_rule(wrong, 12, static_cast<u64>(n), rewrite::standard_vocabulary(), few).counterexample.empty());
  }
}

TEST_CASE("all of them keep the order of the operands, each once, and split it in two halves") {
  for (rewrite::rule const& r : rewrite::nesting_rules()) {
    std::vector<int> const in_order = [&] {
      std::vector<int> leaves;
      auto walk = [&](auto& self, rewrite::pattern_value v) -> void {
        if (v.node < 0) { leaves.push_back(v.slot); return; }
        for (rewrite::pattern_value w : r.target.nodes[static_cast<std::size_t>(v.node)].in) self(self, w);
      };
      walk(walk, r.target.outputs[0]);
      return leaves;
    }();
    std::vector<int> given;
    for (rewrite::pattern_value v : r.source.nodes[0].in) given.push_back(v.slot);
    CHECK(in_order == given);
    CHECK(std::set<int>(given.begin(), given.end()).size() == given.size());
    rewrite::pattern_node const& outer = r.target.nodes[static_cast<std::size_t>(r.target.outputs[0].node)];
    REQUIRE(outer.in.size() == 2);
    CHECK(r.target.nodes[static_cast<std::size_t>(outer.in[0].node)].in.size() == (given.size() + 1) / 2);
  }
}

TEST_CASE("there is one for every number of operands up to the most, known by its name") {
  CHECK(static_cast<int>(rewrite::nesting_rules().size()) == rewrite::max_nested - 2);
  for (rewrite::rule const& r : rewrite::nesting_rules()) CHECK(rewrite::find_nesting_rule(r.name) == &r);
  CHECK(rewrite::find_nesting_rule("concat of 2, nested") == nullptr);
  CHECK(rewrite::find_nesting_rule("") == nullptr);
  for (int n : {3, 4, 7, rewrite::max_nested}) {
    computation_graph g;
    std::vector<value_id> x;
    for (int i = 0; i < n; ++i) x.push_back(g.add_input("x" + std::to_string(i), {2, i + 1}));
    g.add_output("y", g.node(g.add(concat{-1}, x)).out[0]);
    rewrite::open_graph open(rewrite::unsharded(g));
    auto const found = rewrite::find_matches(rewrite::nesting_rule(n), open);
    REQUIRE(found.size() == 1);
    CHECK(rewrite::match_fault(rewrite::nesting_rule(n), found[0], open).empty());
    rewrite::rewriting const w = rewrite::apply_rule(rewrite::nesting_rule(n), found[0], open);
    REQUIRE(w.done());
    CHECK(open.node(w.added.back()).in.size() == 2);
    CHECK(open.alive() == (n == 3 ? 2 : 3));
  }
}
