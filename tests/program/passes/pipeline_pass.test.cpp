// tests/program/passes/pipeline_pass.test.cpp - a pipeline's graph: what it holds, in which order, and what it refuses (its numbers:
// tests/exec/pipeline)
#include <tensorpar/op/operators.hpp>
#include <tensorpar/program/passes/pipeline_pass.hpp>

#include <doctest/doctest.h>
#include <set>

#include <functional>
#include <tensorpar/check/check.hpp>
#include <tensorpar/program/passes/stage_steps.hpp>
#include <tensorpar/program/passes/step_parts.hpp>
#include <tensorpar/program/unroll.hpp>

#include "support/random_pipeline.hpp"

using namespace tests;

namespace {

/// Two stages of the residual MLP, 1F1B by hand over two micro-batches.
plan two_stages(int cut = 3) {
  computation_graph const g = residual_mlp();
  plan p;
  p.graph = g.hash();
  p.cluster = devices(2);
  p.nodes.resize(g.nodes.size());
  pipeline& q = p.pipeline;
  q.mini_batch = 2;
  q.groups = {{0, 1}, {1, 1}};
  q.stages.resize(2);
  for (int v = 0; v < g.node_count(); ++v) {
    q.stages[v < cut ? 0 : 1].nodes.push_back(v);
    p.nodes[static_cast<std::size_t>(v)].sharding.start = v < cut ? 0 : 1;
  }
  q.stages[1].group = 1;
  auto const F = pass::forward, B = pass::backward;
  q.schedule = {{{0, F, 0}, {0, F, 1}, {0, B, 0}, {0, B, 1}}, {{1, F, 0}, {1, B, 0}, {1, F, 1}, {1, B, 1}}};
  return p;
}

}  // namespace

TEST_CASE("every operator runs once per micro-batch, parameters exist once, gradients are added in place") {
  computation_graph const g = residual_mlp();
  plan p = two_stages();
  planned_step const s = tensorpar::passes::pipeline_pass(g, p);
  training_graph const t = differentiate(g);
  CHECK(s.graph.forward_nodes == 2 * g.node_count());
  CHECK(s.graph.losses.size() == 2);
  CHECK(s.order.size() == s.graph.graph.nodes.size());
  int parameters = 0, sums = 0, updates = 0, weights = 0;
  for (graph_value const& v : s.graph.graph.values) parameters += v.role == value_role::parameter;
  for (graph_value const& v : g.values) weights += v.role == value_role::parameter;
  for (graph_node const& n : s.graph.graph.nodes) { sums += n.in_place; updates += n.phase == step_phase::update; }
  CHECK(parameters == weights);
  CHECK(sums == weights);
  CHECK(updates == weights);
  std::vector<bool> made(s.graph.graph.nodes.size(), false);
  for (int v : s.order) {
    for (int x : s.graph.graph.node(v).in)
      if (int const u = s.graph.graph.value(x).producer; u >= 0) CHECK(made[static_cast<std::size_t>(u)]);
    made[static_cast<std::size_t>(v)] = true;
  }
  // a stage of another size reads joined and cut values; one that recomputes has its forward operators once more
  p.pipeline.stages[0].micro_batch = 2;
  p.pipeline.schedule = {{{0, pass::forward, 0}, {0, pass::backward, 0}},
                      {{1, pass::forward, 0}, {1, pass::forward, 1}, {1, pass::backward, 0}, {1, pass::backward, 1}}};
  int cuts = 0, joins = 0;
  planned_step const cut = tensorpar::passes::pipeline_pass(g, p);
  for (graph_node const& n : cut.graph.graph.nodes) { cuts += n.op.is<slice_axis>(); joins += n.op.is<concat>(); }
  CHECK(cuts == 4);         // act's and fc2's results, each for two micro-batches
  CHECK(joins == 1);        // and the one gradient that an addition gives to both of its operands, the other way
  p = two_stages();
  p.pipeline.stages[0].recompute = true;
  int again = 0;
  planned_step const twice = tensorpar::passes::pipeline_pass(g, p);
  for (graph_node const& n : twice.graph.graph.nodes) again += n.phase == step_phase::backward && n.op.is<linear>();
  CHECK(again == 2);        // fc1 feeds relu's derivative; fc2's result is read by nobody in this stage
}

TEST_CASE("what is no pipeline of this graph is refused by name") {
  computation_graph const g = residual_mlp();
  auto refuses = [&](std::function<void(plan&)> const& change, char const* text) {
    plan p = two_stages();
    change(p);
    CHECK_THROWS_WITH_AS(tensorpar::passes::pipeline_pass(g, p), doctest::Contains(text), error);
  };
  auto const F = pass::forward, B = pass::backward;
  refuses([](plan& p) { p.pipeline.stages[0].nodes.push_back(5); p.nodes[5].sharding.start = 0; }, "operator 5 is in two stages");
  refuses([](plan& p) { p.pipeline.stages[0].nodes.pop_back(); }, "operator 2 is in no stage");
  refuses([](plan& p) { p.pipeline.stages[0].nodes.push_back(99); }, "operator 99");
  refuses([](plan& p) { p.pipeline.groups[1] = {0, 2}; }, "device 0 is in two groups");
  refuses([](plan& p) { p.pipeline.groups[1] = {1, 2}; }, "devices 0 to 1");
  refuses([](plan& p) { p.pipeline.stages[1].group = 7; }, "group 7");
  refuses([](plan& p) { p.nodes[4].sharding.start = 0; }, "operator 4 is sharded over devices 0 to 0");
  refuses([](plan& p) { p.nodes.pop_back(); }, "a plan made for this graph");
  refuses([](plan& p) { p.micro_batches = 2; }, "2 micro-batches beside a pipeline");
  refuses([](plan& p) { p.pipeline.mini_batch = 3; p.pipeline.stages[0].micro_batch = 2; }, "divides the mini-batch of 3");
  refuses([](plan& p) { p.pipeline.schedule.pop_back(); }, "one per group");
  refuses([](plan& p) { p.pipeline.schedule[1].pop_back(); }, "stage 1's backward pass 1");
  refuses([](plan& p) { p.pipeline.schedule[0].pop_back(); }, "stage 0's backward pass 1 is missing");
  refuses([=](plan& p) { p.pipeline.schedule[0].push_back({0, F, 0}); }, "stage 0's forward pass 0 comes twice");
  refuses([=](plan& p) { p.pipeline.schedule[0].push_back({1, F, 0}); }, "a stage of this group");
  refuses([=](plan& p) { p.pipeline.schedule[0].push_back({0, F, 2}); }, "a pass of this stage");
  refuses([=](plan& p) { p.pipeline.schedule[0].push_back({0, pass::weights, 0}); }, "a pass of this stage");
  refuses([=](plan& p) { p.pipeline.schedule[0] = {{0, B, 0}, {0, F, 0}, {0, F, 1}, {0, B, 1}}; }, "which can never come before it");
  // a stage around another one is not convex: each waits for the other
  refuses([](plan& p) {
    p.pipeline.stages[0].nodes = {0, 1, 2, 6};
    p.pipeline.stages[1].nodes = {3, 4, 5};
    p.nodes[6].sharding.start = 0;
  }, "which can never come before it");
  plan none = two_stages();
  none.pipeline = {};
  CHECK_THROWS_WITH_AS(tensorpar::passes::pipeline_pass(g, none), doctest::Contains("no pipeline"), error);
}

TEST_CASE("a gradient that a weight and an activation share is made in the pass that hands the activation's on") {
  computation_graph g;
  int const x = g.add_input("x", {1, 4}), y = g.add_input("y", {1, 4}), p = g.add_parameter("p", {1, 4}, tensorpar::op::init::normal_02);
  int h = out(g, g.add_with_weights(linear{4}, {x}, "a"));
  h = out(g, g.add_with_weights(linear{4}, {h}, "b"));
  h = out(g, g.add(tanh_{}, {out(g, g.add(add{}, {h, p}))}));
  g.add_output("loss", out(g, g.add(mean_squared_error{}, {h, y})));
  plan q = serial_plan(g);
  q.pipeline.mini_batch = 2;
  q.pipeline.groups = {{0, 1}};
  q.pipeline.stages.resize(1);
  for (int v = 0; v < g.node_count(); ++v) q.pipeline.stages[0].nodes.push_back(v);
  q.pipeline.stages[0].split_backward = true;
  q.pipeline.schedule = {{}};
  for (int const j : {0, 1})
    for (pass const w : {pass::forward, pass::backward, pass::weights}) q.pipeline.schedule[0].push_back({0, w, j});
  planned_step const s = tensorpar::passes::pipeline_pass(g, q);
  for (finding const& f : check(s.graph, s.plan, unroll(s))) FAIL_CHECK(f.text);
  int early = 0, late = 0;                                // what makes gradients of parameters, or hands them on
  for (int v = s.graph.forward_nodes; v < s.graph.graph.node_count(); ++v) {
    graph_node const& n = s.graph.graph.node(v);
    pass_entry const& e = s.passes[static_cast<std::size_t>(v)];
    early += n.op.is<tanh__grad>() && e.what == pass::backward;
    late += n.op.is<contraction>() && e.what == pass::weights;
  }
  CHECK(early == 2);
  CHECK(late >= 4);
}

TEST_CASE("gradients that are sums over the senders are reduced where they are made, right before they are sent") {
  computation_graph const g = residual_mlp();
  int const head = 5;
  plan p = two_stages(head);
  p.cluster = devices(4);
  p.pipeline.groups = {{0, 2}, {2, 2}};
  for (int v = 0; v < g.node_count(); ++v)                // the last product by columns, all else twice
    p.nodes[static_cast<std::size_t>(v)].sharding = {v < head ? 0 : 2, {{v == head ? 'o' : '\0', 2, 1}}};
  planned_step const s = tensorpar::passes::pipeline_pass(g, p);
  program const q = unroll(s);
  for (finding const& f : check(s.graph, s.plan, q)) FAIL_CHECK(f.text);
  int reduced = 0;
  for (std::size_t t = 2; t < q.tasks.size(); ++t) {
    task const &send = q.tasks[t], &sum = q.tasks[t - 1], &made = q.tasks[t - 2];
    if (send.kind != task_kind::send || sum.kind != task_kind::reshard) continue;
    CHECK(sum.step.kind == tensorpar::ir::reshard_kind::all_reduce);
    CHECK(send.in == sum.out);
    CHECK(made.out == sum.in);
    CHECK(send.step.before.degree(tensorpar::ir::part_kind::partial) == 1);
    ++reduced;
  }
  CHECK(reduced == 2);                                    // once for each micro-batch
}

TEST_CASE("a weight shared between stages: whatever their sizes, each sends what its gradients come to once a step") {
  computation_graph const g = small_transformer();
  std::mt19937 draw(5);
  int apart = 0, uneven = 0;
  for (int i = 0; i < 60; ++i) {
    plan const p = random_pipeline(g, {}, 1, 4, draw);
    planned_step const s = tensorpar::passes::pipeline_pass(g, p);
    for (std::size_t x = 0; x < g.values.size(); ++x) {
      if (g.values[x].role != value_role::parameter) continue;
      std::set<int> stages, sizes;
      for (int v = 0; v < g.node_count(); ++v)
        for (int k = 0; k < static_cast<int>(p.pipeline.stages.size()); ++k) {
          auto const& nodes = p.pipeline.stages[static_cast<std::size_t>(k)].nodes;
          auto const& in = g.node(v).in;
          if (!std::binary_search(nodes.begin(), nodes.end(), v) || std::find(in.begin(), in.end(), static_cast<int>(x)) == in.end())
            continue;
          stages.insert(k);
          sizes.insert(static_cast<int>(p.pipeline.stages[static_cast<std::size_t>(k)].micro_batch));
        }
      if (stages.size() < 2) continue;
      ++apart;
      uneven += sizes.size() > 1;
      int joins = 0;                                    // additions of no pass
      for (int v = 0; v < s.graph.graph.node_count(); ++v)
        joins += s.graph.graph.node(v).op.is<add>() && s.passes[static_cast<std::size_t>(v)].stage < 0;
      CHECK(joins == static_cast<int>(stages.size()) - 1);
    }
    program const q = unroll(s);
    for (finding const& f : check(s.graph, s.plan, q)) FAIL_CHECK(f.text);
    for (task const& k : q.tasks)                       // sent when made, it would hold up what its sender's last passes send
      if (s.passes[static_cast<std::size_t>(k.node)].stage < 0 && k.kind != task_kind::compute)
        CHECK((k.kind == task_kind::reshard || !s.graph.graph.node(k.node).op.is<add>()));
  }
  CHECK(apart > 20);
  CHECK(uneven > 5);
}

TEST_CASE("gradients are added up as soon as they are there: a pass keeps no second set of them") {
  std::mt19937 draw(9);
  int sums = 0;
  computation_graph const g = small_transformer();
  for (int i = 0; i < 20; ++i) {
    planned_step const s = tensorpar::passes::pipeline_pass(g, random_pipeline(g, {}, 1, 4, draw));
    computation_graph const& h = s.graph.graph;
    for (std::size_t k = 1; k < s.order.size(); ++k) {
      if (!h.node(s.order[k]).in_place) continue;
      ++sums;
      std::size_t before = k - 1;
      while (h.node(s.order[before]).in_place) --before;
      CHECK(s.order[before] == h.value(h.node(s.order[k]).in[1]).producer);
    }
  }
  CHECK(sums > 100);
}

TEST_CASE("a pass computes on its own stage's devices: no stage has to come to another one's sums") {
  std::mt19937 draw(8);
  int sums = 0;
  for (computation_graph const& g : {residual_mlp(), small_transformer()})
    for (int i = 0; i < 40; ++i) {
      plan const p = random_pipeline(g, {}, 1, 4, draw);
      planned_step const s = tensorpar::passes::pipeline_pass(g, p);
      for (task const& k : unroll(s).tasks) {
        pass_entry const& e = s.passes[static_cast<std::size_t>(k.node)];
        if (e.stage < 0 || k.kind != task_kind::compute || s.graph.graph.node(k.node).recomputed) continue;
        device_range const d = p.pipeline.groups[static_cast<std::size_t>(p.pipeline.stages[static_cast<std::size_t>(e.stage)].group)];
        sums += k.op.is<add>() && e.what == pass::backward;
        for (int x : k.devices) CHECK((x >= d.first && x < d.first + d.count));
      }
    }
  CHECK(sums > 100);
}

TEST_CASE("a plan with a pipeline is not run as one without, and promises of passes are bounded by the order") {
  computation_graph const g = residual_mlp();
  plan p = two_stages();
  training_graph const t = differentiate(g);
  CHECK_THROWS_WITH_AS(unroll(t, p), doctest::Contains("pipeline_pass(graph, plan)"), error);
  auto const found = check(t, p);
  REQUIRE(found.size() == 1);
  CHECK(found.front().text.find("the plan has a pipeline") == 0);
  p.pipeline.mini_batch = 1 << 20;
  CHECK_THROWS_WITH_AS(tensorpar::passes::pipeline_pass(g, p), doctest::Contains("4 passes (at pipeline: order of group 0)"), error);
  p.pipeline.mini_batch = i64{1} << 40;
  CHECK_THROWS_WITH_AS(tensorpar::passes::pipeline_pass(g, p), doctest::Contains("at most 1048576"), error);
}
