// tests/program/rewritten_plan.hpp - a graph in which many rules apply, and plans with some of them applied
#pragma once
#include <doctest/doctest.h>

#include <random>
#include <support/small_graphs.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/program/rewritten.hpp>

namespace tests {

inline computation_graph declared() {
  computation_graph g;
  auto put = [&](tensorpar::op::any_op const& o, std::vector<value_id> in) { return g.node(g.add(o, std::move(in))).out[0]; };
  auto weight = [&](shape const& s) { return g.add_parameter("w" + std::to_string(g.values.size()), s, tensorpar::op::init::fan_in); };
  int x = g.add_input("x", {4, 8});
  for (int k = 0; k < 3; ++k) {
    int const a = put(linear{8, false}, {x, weight({8, 8})}), b = put(linear{8, false}, {x, weight({8, 8})});
    x = put(linear{8, false}, {put(relu{}, {put(concat{-1}, {a, b})}), weight({8, 16})});
    x = put(linear{8, false}, {x, weight({8, 8})});
  }
  g.add_output("loss", put(mean_squared_error{}, {x, g.add_input("y", {4, 8})}));
  return g;
}
/// A serial plan with some rules applied wherever they match.
inline plan planned(computation_graph const& g, std::mt19937& draw) {
  tensorpar::rewrite::open_graph open(tensorpar::rewrite::unsharded(g));
  plan p;
  auto const& rules = tensorpar::rewrite::rules_both_ways();
  for (int tries = 0; p.rewrites.size() < 5 && tries < 5000; ++tries) {
    tensorpar::rewrite::rule const& r = rules[draw() % rules.size()];
    auto const found = tensorpar::rewrite::find_matches(r, open);
    if (found.empty()) continue;
    tensorpar::rewrite::rule_match const& m = found[draw() % found.size()];
    if (std::find(m.bound.begin(), m.bound.end(), false) != m.bound.end()) continue;
    tensorpar::rewrite::rewrite_record s = tensorpar::rewrite::record_of(r, m);
    if (tensorpar::rewrite::apply_rule(r, m, open).done()) p.rewrites.push_back(std::move(s));
  }
  REQUIRE(p.rewrites.size() == 5);
  plan const serial = serial_plan(open.close().graph);
  std::vector<tensorpar::rewrite::rewrite_record> records = std::move(p.rewrites);
  p = serial;
  p.rewrites = std::move(records);
  p.serial = g.hash();
  p.graph = open.close().graph.hash();
  return p;
}
}  // namespace tests
