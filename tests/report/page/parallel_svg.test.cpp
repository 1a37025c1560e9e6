// tests/report/page/parallel_svg.test.cpp - the parallel computation graph of a plan: Megatron's pair of products, and plans of every kind
#include <tensorpar/report/page/parallel_svg.hpp>

#include <doctest/doctest.h>
#include <report/found_in.hpp>

#include <random>
#include <tensorpar/program/step_of.hpp>
#include <tensorpar/report/page/html.hpp>
#include <tensorpar/simulate/engine.hpp>
#include <tensorpar/cost/analytical.hpp>

#include "support/random_pipeline.hpp"
#include "support/spine.hpp"

using namespace tests;

namespace {
std::string drawn(planned_step const& s, tensorpar::ir::parallel_graph const& q) {
  tensorpar::report::plan_summary const sum = tensorpar::report::summary_of("", s.graph, s.plan, s.program, {});
  return tensorpar::report::parallel_svg(q, tensorpar::report::device_groups_of(sum, s.plan.cluster.device),
                                         tensorpar::report::fold_parallel(q));
}
template <class Op> int number(tensorpar::ir::parallel_graph const& p) {
  int n = 0;
  for (graph_node const& x : p.graph.nodes) n += x.op.is<Op>();
  return n;
}
}  // namespace

TEST_CASE("columns, then rows: weights are partitioned, what is summed is reduced, and both drawings show it") {
  computation_graph g;
  int const x = g.add_input("x", {8, 16}), y = g.add_input("y", {8, 16});
  int const h = g.node(g.add_with_weights(linear{.out = 32, .bias = false}, {x}, "up")).out[0];
  int const z = g.node(g.add_with_weights(linear{.out = 16, .bias = false}, {h}, "down")).out[0];
  g.add_output("loss", g.node(g.add(mean_squared_error{}, {z, y}, "loss")).out[0]);
  plan p = one_device_plan(g);
  p.cluster = make_cluster("two", {"device", 1e9, 1e9, i64{1} << 30, 0}, 2, 2, {"link", 2, 1e-6, 1e9}, {});
  tensorpar::ir::iteration_space const up = tensorpar::ir::space_of(g, 0), down = tensorpar::ir::space_of(g, 1);
  p.nodes[0].sharding = {0, {{up.loops[1].letter, 2, 1}}};
  p.nodes[1].sharding = {0, {{down.loops.back().letter, 2, 1}}};
  planned_step const s = step_of(g, p);
  tensorpar::ir::parallel_graph const q = tensorpar::report::parallel_graph_of(s.graph, s.plan);
  CHECK(tensorpar::ir::problems(q).empty());
  CHECK(number<parallel::partition>(q) >= 2);
  CHECK(number<parallel::reduce>(q) == 1);
  std::string const svg = drawn(s, q), dot = tensorpar::report::to_dot(q);
  int const parallel_ones = q.graph.node_count() - 3;
  CHECK(count(svg, "class=\"pill\"") == static_cast<std::size_t>(parallel_ones));
  CHECK(count(svg, "class=\"card\"") == 3);
  CHECK(count(svg, "class=\"input\"") == 4);                         // x, y and the two weights
  CHECK(count(dot, "fontcolor=white") == static_cast<std::size_t>(parallel_ones));
  CHECK(svg.find("reduce{degree=2}") != svg.npos);
  CHECK(dot.find("reduce{degree=2}") != dot.npos);
  CHECK(svg.find(">reduce / 2<") != svg.npos);
  CHECK(tensorpar::report::detail::pill_text(parallel::partition{1, 4}) == "partition axis 1 / 4");
}

TEST_CASE("plans of every kind have a valid parallel graph, and their page shows it") {
  computation_graph const g = small_transformer();
  std::mt19937 draw(3);
  for (int trial = 0; trial < 12; ++trial) {
    CAPTURE(trial);
    plan p = random_plan_of_a_kind(g, trial, draw);
    p.graph = g.hash();
    planned_step const s = step_of(g, p);
    tensorpar::ir::parallel_graph const q = tensorpar::report::parallel_graph_of(s.graph, s.plan);
    CHECK(tensorpar::ir::problems(q) == std::vector<std::string>{});
    std::string const page = tensorpar::report::html_report(s.graph, s.plan, s.program,
                                                            simulate(s.program, p.cluster, tensorpar::cost::analytical{}));
    std::string const svg = drawn(s, q);
    CHECK(page.find(svg) != page.npos);
    std::vector<int> const times = tensorpar::report::fold_parallel(q).times;
    CHECK(count(svg, "class=\"card\"") + count(svg, "class=\"pill\"") ==
          times.size() - static_cast<std::size_t>(std::count(times.begin(), times.end(), 0)));
  }
}
