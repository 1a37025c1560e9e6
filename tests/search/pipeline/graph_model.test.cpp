// tests/search/pipeline/graph_model.test.cpp - stages of computation graphs: what the model charges, by hand and by a cost model that only
// counts
#include <doctest/doctest.h>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/ir/mixed_precision.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/search/pipeline/graph_model.hpp>
#include <tensorpar/search/pipeline/split_loops.hpp>
#include <tensorpar/search/pipeline/stages.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

namespace {

/// FLOPs are seconds, and so are bytes moved: everything can be counted by hand.
struct counting {
  double seconds(cost::compute_query const& q) const { return q.op.op->flops(q.op.attr, q.in, q.out); }
  double seconds(cost::reshard_query const& q) const {
    return static_cast<double>(q.step.group_size()) * cost::part_bytes(q.step.before, q.logical, q.scalar_bytes);
  }
};
static_assert(cost::cost_model<counting>);

/// input [2, 6] -> linear 10 -> relu -> linear 1 -> distance to a target.
computation_graph two_layers(i64 batch = 2) {
  computation_graph g;
  int const x = g.add_input("x", shape({batch, 6})), y = g.add_input("y", shape({batch, 1}));
  int const a = g.node(g.add_with_weights(linear{10}, {x}, "first")).out[0];
  int const b = g.node(g.add(relu{}, {a}, "relu")).out[0];
  int const c = g.node(g.add_with_weights(linear{1}, {b}, "second")).out[0];
  g.add_output("loss", g.node(g.add(mean_squared_error{}, {c, y}, "loss")).out[0]);
  return g;
}
machine devices(int n, int per_node = 0) {
  return make_cluster("test", {"d", 1, 1, i64{1} << 20, 0}, n, per_node ? per_node : n, {"in", n, 0, 1}, {"out", n, 0, 1});
}
graph_stage_options options(i64 mini_batch) {
  graph_stage_options o;
  o.mini_batch = mini_batch;
  return o;
}
}  // namespace

TEST_CASE("graph_stages: a linear layer forward, backward, weights; samples scale them") {
  graph_stages<counting> const m(two_layers(), devices(4), counting{}, options(8));
  CHECK(m.operators() == 4);
  CHECK(m.own_batch() == 2);
  stage_choice const one{2, 1, 1, 1, false, false}, twice{4, 1, 1, 1, false, false}, shared{4, 1, 2, 1, false, false};
  stage_work const first = m.work(0, one, 0), second = m.work(2, one, 0);
  CHECK(first.forward == 2 * 2 * 6 * 10);
  CHECK(first.backward == 0);                           // nobody wants the gradient of an input
  // of the matrix, and of the bias; three of four micro-batches add theirs to what is there
  CHECK(first.weights == 2 * 2 * 6 * 10 + 2 * 2 * 10 + 0.75 * (60 + 10));
  CHECK(second.forward == 2 * 2 * 10);
  CHECK(second.backward == 2 * 2 * 10);
  CHECK(m.work(0, twice, 0).forward == 2 * first.forward);
  CHECK(m.work(0, twice, 0).weights == 2 * (first.weights - 0.75 * 70) + 0.5 * 70);
  CHECK(m.work(0, {8, 1, 1, 1, false, false}, 0).weights == 4 * (first.weights - 0.75 * 70));  // one micro-batch adds nothing up
  CHECK(m.work(0, shared, 0).forward == first.forward);
  // one copy synchronises nothing; two copies all-reduce the matrix and the bias
  CHECK(m.work(0, shared, 0).once - m.work(0, one, 0).once == 2 * 4 * (60 + 10));
}

TEST_CASE("graph_stages: gradients that stay in f32 are added up and sent so; those of what the loss does not reach are not") {
  stage_choice const one{2, 1, 1, 1, false, false}, shared{4, 1, 2, 1, false, false};
  graph_stages<counting> const narrow(mixed_precision(two_layers()), devices(4), counting{}, options(8));
  REQUIRE(narrow.training().graph.type(narrow.training().graph.node(0).in[1]).type == dtype::bf16);
  CHECK(narrow.work(0, shared, 0).once - narrow.work(0, one, 0).once == 2 * 4 * (60 + 10));
  computation_graph g = two_layers();
  int const aside = g.add_with_weights(linear{3}, {g.node(0).in[0]}, "aside");
  g.add_output("aside", g.node(aside).out[0]);
  graph_stages<counting> const m(g, devices(4), counting{}, options(8));
  CHECK(m.work(aside, one, 0).forward == 2 * 2 * 6 * 3);
  CHECK(m.work(aside, one, 0).weights == 0);
  CHECK(m.work(aside, shared, 0).once == m.work(aside, one, 0).once);
}

TEST_CASE("graph_stages: what a step takes at least leaves out additions, which others may do") {
  graph_stages<counting> const m(two_layers(), devices(4), counting{}, options(8));
  stage_choice const one{2, 1, 1, 1, false, false};
  auto const [forward, whole] = m.min_seconds(0, one, 0);
  CHECK(forward == m.work(0, one, 0).forward);
  CHECK(whole == m.work(0, one, 0).forward + m.work(0, one, 0).weights - 0.75 * 70);
}

TEST_CASE("graph_stages: bytes of parameters, gradients, states, and of what a sample keeps") {
  graph_stage_options o = options(8);
  graph_stages<counting> const sgd(two_layers(), devices(4), counting{}, o);
  stage_choice one{2, 1, 1, 1, false, false};
  CHECK(sgd.work(0, one, 0).fixed == 2 * 4 * 70);
  CHECK(sgd.work(0, one, 0).kept + sgd.work(1, one, 0).kept >= 4 * 10);  // relu's operand or result, and the next layer's operand
  CHECK(sgd.work(3, one, 0).fixed == 0);
  o.optimizer.kind = optimizer_kind::adamw;
  o.shard_optimizer = o.recompute = true;
  graph_stages<counting> const adam(two_layers(), devices(4), counting{}, o);
  CHECK(adam.work(0, one, 0).fixed == 4 * 4 * 70);
  stage_choice shard{4, 1, 2, 1, false, true};
  CHECK(adam.work(0, shard, 0).fixed == 3 * 4 * 70);
  stage_choice again{4, 1, 2, 1, true, false}, plain{4, 1, 2, 1, false, false};
  CHECK(adam.work(1, again, 0).kept == 0);
  CHECK(adam.work(1, again, 0).backward == adam.work(1, plain, 0).backward + adam.work(1, plain, 0).forward);
  CHECK(adam.work(1, again, 0).fixed == 2 * adam.work(1, plain, 0).kept * 2);  // two samples at a time on each copy
}

TEST_CASE("graph_stages: tensors between operators, per sample") {
  graph_stages<counting> const m(two_layers(), devices(4), counting{}, options(8));
  REQUIRE(m.tensors().size() == 3);
  CHECK(m.tensors()[0].bytes == 40);
  CHECK(m.tensors()[0].consumers == std::vector<int>{1});
  CHECK(m.tensors()[2].bytes == 4);
  CHECK(m.tensors()[2].producer == 2);
}

TEST_CASE("graph_stages: tensor parallel splits what has parameters") {
  graph_stage_options o = options(8);
  o.max_tensor = 2;
  graph_stages<counting> const m(two_layers(), devices(4), counting{}, o);
  stage_choice const whole{2, 1, 1, 1, false, false}, half{2, 1, 1, 2, false, false};
  stage_work const a = m.work(0, whole, 0), b = m.work(0, half, 0);
  CHECK(b.weights == a.weights / 2);
  CHECK(b.fixed == a.fixed / 2);
  CHECK(b.forward == a.forward / 2 + 2 * 4 * 2 * 10 / 2);  // and gathers the result: two parts of 2 x 5 numbers
  CHECK(m.work(1, half, 0).forward == m.work(1, whole, 0).forward);
  CHECK(m.work(2, half, 0).forward == m.work(2, whole, 0).forward);  // one output cannot be split
}

TEST_CASE("graph_stages: transfers that stay within a level of links cost what these do") {
  device_kind const d{"d", 1e12, 1e12, i64{1} << 30, 0};
  stage_border const b{1e6, 5e5, 1, 1};
  stage_choice const c{2, 1, 1, 1, false, false};
  auto const seconds = [&](machine const& on) {
    return graph_stages<cost::analytical>(two_layers(), on, cost::analytical{}, options(8)).transfer(b, c, 0).forward;
  };
  machine const near = make_cluster("near", d, 4, 4, {"in", 4, 1e-6, 1e10}, {}),
                far = make_cluster("far", d, 4, 1, {}, {"out", 4, 1e-5, 1e8}),
                both = make_cluster("both", d, 8, 4, {"in", 4, 1e-6, 1e10}, {"out", 8, 1e-5, 1e8});
  graph_stages<cost::analytical> const m(two_layers(), both, cost::analytical{}, options(8));
  CHECK(m.transfer(b, c, 0).forward == doctest::Approx(seconds(far)));
  REQUIRE(m.nearer().size() == 1);
  CHECK(m.nearer()[0].transfer(b, c, 0).forward == doctest::Approx(seconds(near)));
  CHECK(m.nearer()[0].transfer(b, c, 0).kept == m.transfer(b, c, 0).kept);
  CHECK(m.nearer()[0].work(0, c, 0) == m.work(0, c, 0));
  CHECK(seconds(near) < seconds(far) / 10);
  for (machine const& on : {near, far, make_cluster("one", d, 1, 1, {}, {})})
    CHECK(graph_stages<cost::analytical>(two_layers(), on, cost::analytical{}, options(8)).nearer().empty());
}

TEST_CASE("graph_stages: equal layers are one kind; a whole search") {
  computation_graph g;
  int x = g.add_input("x", shape({1, 16})), t = g.add_input("t", shape({1, 16}));
  for (int l = 0; l < 6; ++l)
    x = g.node(g.add(relu{}, {g.node(g.add_with_weights(linear{16}, {x}, "l" + std::to_string(l))).out[0]})).out[0];
  g.add_output("loss", g.node(g.add(mean_squared_error{}, {x, t})).out[0]);
  graph_stages<cost::analytical> const m(g, make_cluster("c", {"core", 1e9, 1e9, i64{1} << 20, 1e-6}, 4, 4, {"bus", 4, 1e-6, 1e9}, {}),
                                   cost::analytical{}, options(16));
  CHECK(m.kind(2) == m.kind(4));
  CHECK(m.kind(3) == m.kind(5));
  CHECK(m.kind(0) != m.kind(2));  // its input needs no gradient
  stage_result const r = find_stages(g, m);
  REQUIRE(r.feasible());
  CHECK(r.pipeline.mini_batch == 16);
  CHECK(r.gap < 0.6);
}

TEST_CASE("graph_stages: what it cannot price is refused in words") {
  CHECK_THROWS_WITH_AS(graph_stages<counting>(two_layers(), devices(2), counting{}, options(3)), doctest::Contains("a mini-batch of 3"),
                       error);
  computation_graph g = two_layers();
  g.add_input("z", shape({5, 1}));
  CHECK_THROWS_WITH_AS(graph_stages<counting>(g, devices(2), counting{}, options(4)), doctest::Contains("input 'z' has 5 samples"), error);
}
