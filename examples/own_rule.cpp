// examples/own_rule.cpp - a rewrite rule of your own: written, tried, found in a graph and applied
#include "standard_output.hpp"
#include <cstdio>
#include <tensorpar/prover/try_rule.hpp>
#include <tensorpar/rewrite/apply.hpp>
#include <tensorpar/rewrite/pattern.hpp>
#include <tensorpar/rewrite/rule_parser.hpp>

// [quoted: rule]
using namespace tensorpar;

/// As text: a matrix product whose rows are split over k devices. Any d and k will do, as long as the graph stays valid.
rewrite::rule data_parallel() {
  return rewrite::parse_rule("rows: linear(x, w) => combine{d,k}(linear(partition{d,k}(x), replicate{k}(w)))");
}

/// The same kind of thing in C++, where an attribute that its operator does not have would not compile: scaling moves to the weight.
rewrite::rule scale_weight() {
  rewrite::rule_writer g("scale the weight");
  auto const x = g.tensor("x"), w = g.tensor("w");
  auto const s = g.number("s");
  g.becomes({g.apply<scale>({g.apply<linear>({x, w})}, rewrite::set<&scale::factor>(s))});
  g.with_outputs({g.apply<linear>({x, g.apply<scale>({w}, rewrite::set<&scale::factor>(s))})});
  return std::move(g).done();
}

/// Random instances, every device computing its own blocks in a prime field. A wrong rule is refuted. What needs a property of a function,
/// as relu(relu(x)) => relu(x) does, is not decided: functions are random ones there.
bool holds(rewrite::rule const& r) {
  prover::trial const t = prover::try_rule(r, 200, 1);
  std::printf("%s\n  %d instances", rewrite::spell(r).c_str(), t.instances);
  if (!t.counterexample.empty()) std::printf(", refuted: %s", t.counterexample.c_str());
  else if (t.undecided > 0) std::printf(", not decided: %s", t.open.c_str());
  std::printf("\n");
  return t.counterexample.empty() && t.undecided == 0;
}

/// Applies the rule wherever it stands; says why where it may not.
int apply_everywhere(rewrite::rule const& r, rewrite::open_graph& g, i64 axis, i64 degree) {
  int applied = 0;
  for (rewrite::rule_match& m : rewrite::find_matches(r, g)) {
    for (std::size_t p = 0; p < m.bound.size(); ++p)   // what the source leaves open
      if (!m.bound[p]) m.parameter[p] = r.parameters[p].kind == rewrite::parameter_kind::axis ? axis : degree;
    rewrite::rewriting const w = rewrite::apply_rule(r, m, g);
    if (w.done()) ++applied;
    else std::printf("  refused: %s\n", w.refused.c_str());
  }
  return applied;
}
// [end]

int main() {
  rewrite::rule const wrong = rewrite::parse_rule("wrong: scale{s}(mul(x, y)) => mul(scale{s}(x), scale{s}(y))"),
      open = rewrite::parse_rule("open: relu(relu(x)) => relu(x)");
  if (!holds(data_parallel()) || !holds(scale_weight()) || holds(wrong) || holds(open)) return 1;

  computation_graph c;
  int const x = c.add_input("x", {12, 8}), w = c.add_parameter("w", {6, 8}, op::init::fan_in);
  c.add_output("y", c.node(c.add(scale{0.5}, {c.node(c.add(linear{6, false}, {x, w})).out[0]})).out[0]);
  rewrite::open_graph g(rewrite::unsharded(c));
  int const refused = apply_everywhere(data_parallel(), g, 0, 5), moved = apply_everywhere(scale_weight(), g, 0, 1),
            split = apply_everywhere(data_parallel(), g, 0, 4);
  rewrite::sharding_graph const s = g.close();
  for (graph_node const& n : s.graph.nodes)
    std::printf("  %s -> %s\n", op::spell(n.op).c_str(), ir::spell(s.shapes[static_cast<std::size_t>(n.out[0])]).c_str());
  return refused == 0 && moved == 1 && split == 1 && rewrite::problems(s).empty() ? 0 : 1;
}
