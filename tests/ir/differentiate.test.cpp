// tests/ir/differentiate.test.cpp - gradients agree with finite differences; the training graph keeps the forward graph in front
#include <tensorpar/ir/differentiate.hpp>

#include <doctest/doctest.h>
#include <tensorpar/program/unroll.hpp>

#include "support/spine.hpp"

using namespace tests;

namespace {

/// Its second result lacks the leading axes of the first; the loss need not read it, but the gradient does.
struct with_a_row {
  static constexpr auto name = "with_a_row";
  static constexpr auto notation = "...i -> ...i, i";
  static constexpr int arity = 1;
  static constexpr void describe(auto&, auto&&) {}
  constexpr tensorpar::op::inference infer(shapes in) const {
    tensorpar::op::inference r(2, in[0]);
    r.out[1] = shape{in[0].last()};
    return r;
  }
  constexpr double flops(shapes, shapes) const { return 0; }
  void derive(auto& g) const {
    if (!g.wanted(0)) return;
    g.gradient(1);
    g.give(0, g.gradient(0));
  }
};

double loss_of(executor_of<double>& e, host_batch const& b) { return e.step(b, 0).loss; }      // a rate of 0 moves nothing

void agrees_with_differences(computation_graph const& g, int probes) {
  executor_of<double> e(differentiate(g), serial_plan(g));
  e.initialise(3);
  host_batch const b = random_batch(g, 1, 8);
  std::mt19937 draw(4);
  std::vector<std::vector<double>> before = parameters_of(e);
  e.step(b, 1.0);                                                                              // w -= gradient
  std::vector<std::vector<double>> gradient = parameters_of(e);
  std::vector<int> ids;
  for (std::size_t x = 0; x < g.values.size(); ++x) if (g.values[x].role == value_role::parameter) ids.push_back(static_cast<int>(x));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    for (std::size_t j = 0; j < before[i].size(); ++j) gradient[i][j] = before[i][j] - gradient[i][j];
    e.store(ids[i], before[i]);
  }
  for (std::size_t i = 0; i < ids.size(); ++i)
    for (int k = 0; k < probes; ++k) {
      std::size_t const j = draw() % before[i].size();
      auto at = [&](double h) {
        std::vector<double> moved = before[i];
        moved[j] += h;
        e.store(ids[i], moved);
        e.set_steps(0);
        double const l = loss_of(e, b);
        e.store(ids[i], before[i]);
        return l;
      };
      double const h = 1e-5, measured = (at(h) - at(-h)) / (2 * h);
      CAPTURE(g.value(ids[i]).name);
      CAPTURE(j);
      CHECK(gradient[i][j] == doctest::Approx(measured).epsilon(2e-4).scale(0.05));
    }
}

}  // namespace

TEST_CASE("gradients of whole networks agree with finite differences") {
  agrees_with_differences(residual_mlp(), 6);
  agrees_with_differences(small_transformer(), 6);
}
TEST_CASE("gradients through convolution, batch norm and pooling agree with finite differences") {
  agrees_with_differences(small_cnn(), 4);
}

TEST_CASE("the forward graph stands in front, unchanged") {
  for (computation_graph const& g : {residual_mlp(), small_cnn(), small_transformer()})
    for (optimizer_kind k : {optimizer_kind::sgd, optimizer_kind::momentum, optimizer_kind::adamw}) {
      training_options o;
      o.optimizer.kind = k;
      o.optimizer.clip_norm = k == optimizer_kind::adamw ? 1 : 0;
      training_graph t = differentiate(g, o);
      CHECK(t.forward_nodes == g.node_count());
      computation_graph front = t.graph;
      front.nodes.resize(g.nodes.size());
      front.values.resize(g.values.size());
      CHECK(front.hash() == g.hash());
      int updates = 0, parameters = 0;
      for (int v = 0; v < t.graph.node_count(); ++v) {
        graph_node const& n = t.graph.node(v);
        CHECK((n.phase == step_phase::forward) == (v < t.forward_nodes));
        if (v >= t.forward_nodes && n.origin >= 0) CHECK(n.letters.size() == tensorpar::ir::space_of(t.graph, v).loops.size());
        updates += is_update(n.op);
        for (int x : n.in) CHECK(t.graph.value(x).producer < v);                               // topological order
      }
      for (graph_value const& v : g.values) parameters += v.role == value_role::parameter;
      CHECK(updates == parameters);
    }
}

TEST_CASE("a loss that is missing or no scalar gets one clear error") {
  computation_graph g = residual_mlp();
  training_options o;
  o.loss = "cost";
  CHECK_THROWS_WITH_AS(differentiate(g, o), doctest::Contains("no output named 'cost'"), error);
  g.add_output("cost", g.node(0).out[0]);
  CHECK_THROWS_WITH_AS(differentiate(g, o), doctest::Contains("a scalar loss"), error);
  o.loss = "loss";
  o.micro_batches = 0;
  CHECK_THROWS_AS(differentiate(g, o), error);
}

TEST_CASE("zeros for a result that the loss does not read follow that result's axes") {
  computation_graph g;
  int const w = g.add_parameter("w", {8, 6}, tensorpar::op::init::fan_in), y = g.add_input("y", {8, 6});
  int const v = g.add(with_a_row{}, {w}, "rows");
  g.add_output("loss", g.node(g.add(mean_squared_error{}, {g.node(v).out[0], y}, "loss")).out[0]);
  training_graph const t = differentiate(g, {});
  int zeros = 0;
  for (graph_node const& n : t.graph.nodes) {
    if (n.origin != v || n.op.op->name != std::string_view("constant")) continue;
    ++zeros;
    CHECK(std::string(n.letters.begin(), n.letters.end()) == "i");
  }
  CHECK(zeros == 1);
}
