// tests/search/pipeline/shared_stages.test.cpp - weights that stages share: what they cost, by hand and beside the simulated program
#include <tensorpar/search/pipeline/grouped.hpp>
#include <tensorpar/search/pipeline/shared_weights.hpp>
#include <tensorpar/search/pipeline/stages/any_model.hpp>
#include <tensorpar/search/pipeline/to_plan.hpp>

#include <doctest/doctest.h>

#include <tensorpar/check/check.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/program/unroll.hpp>
#include <tensorpar/search/pipeline/schedules/microbatch.hpp>
#include <tensorpar/simulate/engine.hpp>
#include <tensorpar/zoo/registry.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

namespace {

/// Moved bytes of the whole tensor are seconds, times devices that receive.
struct counting {
  double seconds(cost::compute_query const& q) const { return q.op.op->flops(q.op.attr, q.in, q.out); }
  double seconds(cost::reshard_query const& q) const {
    return static_cast<double>(cost::bytes_of(q.logical, q.scalar_bytes)) * static_cast<double>(q.step.after.size());
  }
};

/// [2, 6] -> linear with w -> relu -> linear with w again -> distance to a target; w is [6, 6].
computation_graph tied() {
  computation_graph g;
  int const x = g.add_input("x", shape({2, 6})), y = g.add_input("y", shape({2, 6})), w = g.add_parameter("w", shape({6, 6}), {});
  int const a = g.node(g.add(linear{6, false}, {x, w}, "first")).out[0];
  int const b = g.node(g.add(relu{}, {a}, "relu")).out[0];
  int const c = g.node(g.add(linear{6, false}, {b, w}, "second")).out[0];
  g.add_output("loss", g.node(g.add(mean_squared_error{}, {c, y}, "loss")).out[0]);
  return g;
}
machine devices(int nodes, int per_node, double bandwidth, device_kind k = {"d", 1e12, 1e11, i64{16} << 30, 1e-6}) {
  return make_cluster("test", k, nodes * per_node, per_node, {"in", per_node, 3e-6, 50e9},
                      {"out", nodes * per_node, 6e-6, bandwidth});
}
std::vector<std::vector<int>> edges_in(computation_graph const& g) {
  std::vector<std::vector<int>> r;
  for (int v = 0; v < g.node_count(); ++v) r.push_back(g.predecessors(v));
  return r;
}

/// Stages of equal choices that begin at these operators, one after another.
stage_result in_line(stage_model auto const& m, std::vector<int> cuts, stage_choice c) {
  std::vector<search::detail::found_stage> stages;
  cuts.push_back(m.operators());
  for (int v = 0; int const end : cuts) {
    stages.push_back({{}, c, static_cast<int>(stages.size()) * c.devices()});
    for (; v < end; ++v) stages.back().nodes.push_back(v);
  }
  stage_result r;
  search::detail::write_pipeline(m, {stages, cost_of(m, stages)}, false, r);
  return r;
}
/// Seconds of a step of the program, whose arenas are those of the estimate: a little less is how buffers lie beside each other, and more
/// is what is not there at the same time.
double simulated(computation_graph const& g, machine const& on, graph_stages<cost::analytical> const& m, stage_result const& r) {
  auto const p = make_schedule(schedule_kind::one_f_one_b, r.pipeline, edges_of(r), costs_of(r));
  REQUIRE(p);
  planned_step const step = passes::pipeline_pass(g, plan_of(g, on, m, *p, r.choices));
  program const q = unroll(step);
  require_accepted(check(step.graph, step.plan, q), "plan");
  for (std::size_t s = 0; s < r.choices.size(); ++s) {
    double const arena = static_cast<double>(q.arena[static_cast<std::size_t>(r.pipeline.groups[s].first)]);
    CAPTURE(s);
    CAPTURE(arena);
    CAPTURE(r.cost.bytes[s]);
    CHECK(r.cost.bytes[s] > 0.85 * arena);
    CHECK(r.cost.bytes[s] < 1.3 * arena);
  }
  return simulate(q, on, cost::analytical{}).seconds;
}

}  // namespace

TEST_CASE("a weight that two stages read goes to the second one, and its gradient comes back, once a step") {
  graph_stage_options o;
  o.mini_batch = 8;
  computation_graph const g = tied();
  graph_stages<counting> const m(g, devices(1, 4, 1), counting{}, o);
  REQUIRE(m.sharers() == std::vector<std::vector<int>>{{0, 2}});
  double const w = 36 * 4;
  for (int copies : {1, 2}) {
    stage_choice const c{2, 1, copies, 1, false, false};
    stage_sharing const s = m.sharing({0, 0, 1, 1}, {{c, 0}, {c, copies}});
    CHECK(s.from == std::vector<int>{-1, 0});
    CHECK(s.wait == std::vector<double>{0, copies * w});
    CHECK(s.join == std::vector<double>{copies * w * copies, 0});     // two copies reduce their sums before they send them
    CHECK(s.bytes == std::vector<double>{0, 2 * w});  // the copy, and the sum over micro-batches
    CHECK(s.after == std::vector<double>{w, 0});      // what comes back
    stage_sharing const one = m.sharing({0, 0, 0, 0}, {{c, 0}});
    CHECK(one.wait == std::vector<double>{0});
    CHECK(one.join == std::vector<double>{0});
    CHECK(one.bytes == std::vector<double>{0});
    CHECK(one.after == std::vector<double>{3 * w});  // both operators' share and what they come to, beside the sum over micro-batches
  }
  // the estimate has both, the bottleneck neither
  stage_choice const c{2, 1, 1, 1, false, false};
  stage_result const r = in_line(m, {2}, c);
  stage_work const &first = r.cost.work[0], &second = r.cost.work[1];
  CHECK(r.cost.bottleneck == std::max(first.per_sample(2, 8), second.per_sample(2, 8)));
  CHECK(r.cost.iteration == doctest::Approx(2 * first.forward + w + 4 * second.micro_batch_seconds() + first.backward + first.weights +
                                            std::max(0.0, second.once)).epsilon(0.2));
  CHECK(costs_of(r).stages[0].update == first.once + w);
  CHECK(costs_of(r).stages[1].wait == w);
}

TEST_CASE("where no weight is shared nothing is added, and models that know nothing of sharing are asked nothing") {
  computation_graph const g = zoo::make("candle_uno", 4);
  graph_stage_options o;
  o.mini_batch = 16;
  graph_stages<cost::analytical> const m(g, devices(1, 4, 1e9), cost::analytical{}, o);
  CHECK(m.sharers().empty());
  stage_result const r = find_stages(edges_in(g), m);
  REQUIRE(r.feasible());
  CHECK(r.cost.shared.empty());
  for (simulation::stage_seconds const& s : costs_of(r).stages) CHECK(s.wait == 0);
}

TEST_CASE("estimates of pipelines with tied embeddings are those of their programs, within 15 %") {
  struct pipeline_case {
    char const* model;
    double bandwidth;
    stage_choice c;
    std::vector<int> cuts;
  };
  std::string const bert = "bert_large:layers=2,hidden=256,wide=1024,seq=128,heads=8,vocab=16384";
  std::string const gpt = "gpt3_1b3:layers=4,hidden=192,heads=6,wide=768,seq=256,vocab=16384";
  for (pipeline_case const& x : std::vector<pipeline_case>{{bert.c_str(), 1e9, {4, 1, 4, 1, false, false}, {24}},
                                                           {bert.c_str(), 12.5e9, {4, 1, 4, 1, false, false}, {24}},
                                                           {bert.c_str(), 1e9, {4, 1, 2, 2, false, false}, {24}},
                                                           {gpt.c_str(), 1e9, {4, 1, 4, 1, false, false}, {27}},
                                                           {gpt.c_str(), 12.5e9, {2, 1, 2, 1, false, false}, {14, 26, 38}},
                                                           {gpt.c_str(), 1e9, {4, 1, 2, 2, false, false}, {27}}}) {
    CAPTURE(x.model);
    CAPTURE(x.cuts.size());
    computation_graph const g = zoo::make(x.model, 1);
    machine const on = devices(2, 4, x.bandwidth);
    graph_stage_options o;
    o.mini_batch = 32;
    o.max_tensor = 2;
    graph_stages<cost::analytical> const m(g, on, cost::analytical{}, o);
    REQUIRE(m.sharers().size() == 1);
    stage_result const r = in_line(m, x.cuts, x.c);
    double const real = simulated(g, on, m, r);
    CAPTURE(real);
    CAPTURE(r.cost.iteration);
    CHECK(r.cost.iteration < 1.15 * real);
    CHECK(r.cost.iteration > real / 1.15);
    CHECK(simulated_step(r) < 1.15 * real);
    CHECK(simulated_step(r) > real / 1.15);
  }
}

TEST_CASE("readers of a dear weight stand together, and what is found is as fast as it says") {
  computation_graph const g = zoo::make("bert_large:layers=2,hidden=256,wide=1024,seq=128,heads=8,vocab=16384", 1);
  machine const on = devices(2, 4, 1e9);
  for (int data : {1, 8}) {
    graph_stage_options o;
    o.mini_batch = 32;
    o.max_data = data;
    graph_stages<cost::analytical> const m(g, on, cost::analytical{}, o);
    stage_result const r = find_stages(edges_in(g), m), behind = find_stages(edges_in(g), any_stages(m));
    REQUIRE(r.feasible());
    CHECK(r.pipeline == behind.pipeline);
    CHECK(r.cost.iteration == behind.cost.iteration);
    double const real = simulated(g, on, m, r);
    CHECK(r.cost.iteration > real / 1.15);
    for (auto const& [cuts, c] : {std::pair<std::vector<int>, stage_choice>{{24}, {4, 1, data > 1 ? 4 : 1, 1, false, false}},
                                  {{12, 24, 30}, {4, 1, data > 1 ? 2 : 1, 1, false, false}}})
      CHECK(real < 1.1 * simulated(g, on, m, in_line(m, cuts, c)));  // transfers may be hidden, which no estimate knows
  }
  // four stages, two of them on the first node: the two that share change places with others rather than send over the network
  graph_stage_options o;
  o.mini_batch = 32;
  graph_stages<cost::analytical> const m(g, on, cost::analytical{}, o);
  stage_result const r = in_line(m, {12, 24, 30}, {4, 1, 2, 1, false, false});
  int const first = r.pipeline.groups.front().first, last = r.pipeline.groups.back().first;
  CHECK(first / 4 == last / 4);
}

TEST_CASE("groups of operators share what their operators do") {
  computation_graph const g = tied();
  graph_stage_options o;
  o.mini_batch = 8;
  graph_stages<counting> const m(g, devices(1, 4, 1), counting{}, o);
  grouped_stages<graph_stages<counting>> const pairs(edges_in(g), m, {0, 0, 1, 1}), all(edges_in(g), m, {0, 0, 0, 0});
  CHECK(pairs.sharers() == std::vector<std::vector<int>>{{0, 1}});
  CHECK(all.sharers().empty());
  stage_choice const c{2, 1, 1, 1, false, false};
  CHECK(pairs.sharing({0, 1}, {{c, 0}, {c, 1}}).wait == m.sharing({0, 0, 1, 1}, {{c, 0}, {c, 1}}).wait);
}
