// tests/peers/profiles/stages.test.cpp - profiles as stage models: sums survive, and the partitioner runs on them
#include <tensorpar/peers/optima/stage_numbers.hpp>

#include <doctest/doctest.h>

#include <numeric>
#include <string>

#include "profile_data.hpp"
#include <tensorpar/search/pipeline/stages.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tensorpar::peers;

namespace {
stage_result planned(profiled_stages const& p, int devices, double bandwidth) {
  stage_devices d = stage_devices::equal(devices, 1e300);
  d.inner_bandwidth = d.outer_bandwidth = bandwidth;
  additive_stages::options o;
  o.mini_batch = 32;
  stage_options s;
  s.objective = stage_objective::bottleneck;
  return find_stages(p.graph, additive_stages(p.operators, p.tensors, d, o), s);
}
double seconds_in(profiled_stages const& p) {
  double t = 0;
  for (operator_numbers const& x : p.operators) t += x.forward + x.backward + x.weights;
  return t;
}
}  // namespace

TEST_CASE("a PipeDream profile by hand") {
  pipedream_profile const p = parse_pipedream(
      "a -- first -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=10.0, parameter_size=4.0\n"
      "b -- second -- forward_compute_time=3.0, backward_compute_time=4.0, activation_size=20.0, parameter_size=0.0\n"
      "\ta -- b\n", "by hand");
  profiled_stages const s = tensorpar::peers::stages_of(p);
  CHECK(seconds_in(s) == doctest::Approx(0.010));
  CHECK(s.operators[0].parameters == 4);
  REQUIRE(s.tensors.size() == 1);
  CHECK(s.tensors[0].bytes == 10);
  CHECK(s.tensors[0].consumers == std::vector<int>{1});
  CHECK(planned(s, 2, 1e12).cost.bottleneck == doctest::Approx(0.005).epsilon(1e-3));      // two copies; one layer each would take 7 ms
}

namespace {
/// Forward a -> b, backward b' -> a' of their colours; and backward nodes without a forward one: a loss that b feeds and that feeds b', a
/// sum of two gradients between b' and a'.
core::json with_loss() {
  return core::json::parse(R"({"maxSizePerFPGA": 1, "maxFPGAs": 1, "maxCPUs": 0, "nodes": [
    {"id": 1, "supportedOnFpga": 1, "cpuLatency": 2, "fpgaLatency": 1, "isBackwardNode": 0, "colorClass": 1, "size": 5},
    {"id": 2, "supportedOnFpga": 1, "cpuLatency": 2, "fpgaLatency": 2, "isBackwardNode": 0, "colorClass": 2, "size": 6},
    {"id": 7, "supportedOnFpga": 1, "cpuLatency": 2, "fpgaLatency": 3, "isBackwardNode": 1, "colorClass": 3, "size": 7},
    {"id": 8, "supportedOnFpga": 1, "cpuLatency": 2, "fpgaLatency": 4, "isBackwardNode": 1, "colorClass": 2, "size": 0},
    {"id": 9, "supportedOnFpga": 1, "cpuLatency": 2, "fpgaLatency": 6, "isBackwardNode": 1, "size": 0},
    {"id": 10, "supportedOnFpga": 1, "cpuLatency": 2, "fpgaLatency": 8, "isBackwardNode": 1, "colorClass": 1, "size": 0}],
    "edges": [{"sourceId": 1, "destId": 2, "cost": 10}, {"sourceId": 2, "destId": 7, "cost": 20}, {"sourceId": 7, "destId": 8, "cost": 30},
              {"sourceId": 8, "destId": 9, "cost": 40}, {"sourceId": 9, "destId": 10, "cost": 50}]})");
}
profiled_stages stages_of(core::json const& j) {
  return tensorpar::peers::stages_of(decode_dnn_partitioning(j, "x", core::profile_units::as_published));
}
}  // namespace

TEST_CASE("backward operators of their own colour are operators, in the mirror image of the backward pass") {
  profiled_stages const s = stages_of(with_loss());
  REQUIRE(s.operators.size() == 4);                      // a, b, the loss, the sum
  CHECK(seconds_in(s) == doctest::Approx(24));
  CHECK(s.operators[2].forward == 0);
  CHECK(s.operators[2].backward == 3);
  CHECK(s.operators[3].backward == 6);
  CHECK(s.operators[1].parameters == 6);
  CHECK(s.graph == std::vector<std::vector<int>>{{}, {0, 3}, {1}, {0}});
  REQUIRE(s.tensors.size() == 2);                        // what a and b make; gradients are as large
  CHECK(s.tensors[0].bytes == 10);
  CHECK(s.tensors[0].consumers == std::vector<int>{1});
  CHECK(s.tensors[1].bytes == 20);
  CHECK(s.tensors[1].consumers == std::vector<int>{2});
  CHECK(planned(s, 2, 1e12).feasible());
}

TEST_CASE("what comes before and after the same is one operator") {
  core::json j =
      with_loss();                                  // a second loss that reads the first one and that the first one's gradient reads
  j["nodes"].push_back({{"id", 11}, {"supportedOnFpga", 1}, {"cpuLatency", 1}, {"fpgaLatency", 1}, {"isBackwardNode", 1},
                        {"colorClass", 4}});
  j["nodes"].push_back({{"id", 12}, {"supportedOnFpga", 1}, {"cpuLatency", 1}, {"fpgaLatency", 1}, {"isBackwardNode", 1},
                        {"colorClass", 3}});
  j["edges"].push_back({{"sourceId", 7}, {"destId", 11}, {"cost", 30}});
  j["edges"].push_back({{"sourceId", 11}, {"destId", 12}, {"cost", 1}});
  j["edges"].push_back({{"sourceId", 12}, {"destId", 8}, {"cost", 1}});
  profiled_stages const s = stages_of(j);
  REQUIRE(s.operators.size() == 4);
  CHECK(s.operators[2].backward == 5);
  CHECK(s.graph == std::vector<std::vector<int>>{{}, {0, 3}, {1}, {0}});
}

TEST_CASE("published profiles: no time is lost, and four devices are never slower than one") {
  if (!profile_data::here()) return;
  auto fine = [](std::string const& name, profiled_stages const& s, double total, double bandwidth) {
    CAPTURE(name);
    CHECK(seconds_in(s) == doctest::Approx(total));
    stage_result const one = planned(s, 1, bandwidth), four = planned(s, 4, bandwidth);
    REQUIRE(one.feasible());
    REQUIRE(four.feasible());
    CHECK(one.cost.bottleneck == doctest::Approx(total));
    CHECK(four.cost.bottleneck <= one.cost.bottleneck * (1 + 1e-9));
    CHECK(four.cost.bottleneck >= total / 4 * (1 - 1e-9));
    CHECK(four.bound <= four.cost.bottleneck * (1 + 1e-9));
  };
  std::string const at = profile_data::folder();
  for (char const* file : {"pipedream/vgg16/graph.txt", "pipedream/resnet50/graph.txt", "pipedream/gnmt/graph.txt"}) {
    pipedream_profile const p = read_pipedream(at + file);
    double total = 0;
    for (std::size_t v = 0; v < p.forward.size(); ++v) total += p.forward[v] + p.backward[v];
    fine(file, tensorpar::peers::stages_of(p), total, 1.25e9);
  }
  piper_profile const b = read_piper(at + "piper/bert32a100.json", core::profile_units::as_published);
  double total = 0;
  for (auto const& d : b.degrees) total += d.front().ways.front().seconds;
  fine("bert32", tensorpar::peers::stages_of(b), total, b.bandwidth);
  for (char const* file : {"bert24_inference", "bert24_training", "resnet50_training"}) {
    auto const p = read_dnn_partitioning(at + "dnn-partitioning/LayerGraphs/" + file + ".json",
                                         core::profile_units::compute_in_milliseconds);
    fine(file, tensorpar::peers::stages_of(p), std::accumulate(p.accelerator.begin(), p.accelerator.end(), 0.0), 1);
  }
  for (char const* file : {"bert_l-3_training", "resnet50_training"}) {                      // backward colours of their own
    auto const p = read_dnn_partitioning(at + "dnn-partitioning/OperatorGraphs/" + file + ".json",
                                         core::profile_units::compute_in_milliseconds);
    profiled_stages const s = tensorpar::peers::stages_of(p);
    CHECK(seconds_in(s) == doctest::Approx(std::accumulate(p.accelerator.begin(), p.accelerator.end(), 0.0)));
    CHECK_NOTHROW(graph::topological_order(s.graph));
    CHECK(planned(s, 4, 1).feasible());
  }
}
