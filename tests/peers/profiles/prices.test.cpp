#include <doctest/doctest.h>

#include <tensorpar/peers/profiles/alpa_price.hpp>
#include <tensorpar/peers/profiles/graphpipe_price.hpp>
#include <tensorpar/peers/profiles/max_load.hpp>
#include <tensorpar/peers/profiles/pipedream_price.hpp>
#include <tensorpar/peers/profiles/piper_price.hpp>

#include "profile_data.hpp"

using namespace tensorpar;
using namespace tensorpar::peers;
using namespace profile_data;

namespace {

device_split split_of(core::json const& result, dnn_partitioning_profile const& g) {
  device_split s;
  for (core::json const& d : result["accelerator_stages"]) s.accelerators.push_back(nodes_of(d["nodes"], g));
  for (core::json const& d : result["cpu_stages"]) s.cpus.push_back(nodes_of(d["nodes"], g));
  return s;
}
template <class T> T const& kept(std::map<std::string, T>& files, std::string const& path, auto const& read) {
  auto const it = files.find(path);
  return it != files.end() ? it->second : files.emplace(path, read(path)).first->second;
}
bool near_to(double a, double b, double relative) { return std::abs(a - b) <= relative * std::abs(b); }

}  // namespace

TEST_CASE("max-load: every recorded split of dnn-partitioning costs what the peer says, and fits") {
  if (!here()) return;
  std::map<std::string, dnn_partitioning_profile> files;
  int priced = 0;
  for (core::json const& x : recorded()["dnn_partitioning"]) {
    std::string const path = dnn_file(x["input"].get<std::string>());
    if (path.empty() || !x.contains("accelerator_stages") || !x["max_load"].is_number()) continue;
    auto const& g = kept(files, path, [](std::string const& p) { return read_dnn_partitioning(p, core::profile_units::as_published); });
    max_load_price const p = price_max_load(g, split_of(x, g), x["mem_bytes"].get<double>());
    CAPTURE(path);
    CHECK(near_to(p.seconds, x["max_load"].get<double>(), 1e-6));
    CHECK(p.fits);
    for (std::size_t i = 0; i < p.accelerators.size(); ++i)
      CHECK(std::abs(p.accelerators[i] - x["accelerator_stages"][i]["load"].get<double>()) <= 1e-6 * p.seconds);
    for (std::size_t i = 0; i < p.cpus.size(); ++i)
      CHECK(std::abs(p.cpus[i] - x["cpu_stages"][i]["load"].get<double>()) <= 1e-6 * p.seconds);
    ++priced;
  }
  CHECK(priced == 41);
}

TEST_CASE("max-load in consistent units: recorded splits, and what the published ones really cost") {
  if (!here()) return;
  int priced = 0;
  for (core::json const& x : recorded()["corrected_units"]) {
    if (x["peer"] != "dnn-partitioning dp") continue;
    std::string const path = dnn_file(x["input"].get<std::string>());
    if (path.empty()) continue;
    auto const g = read_dnn_partitioning(path, core::profile_units::compute_in_milliseconds);
    CHECK(near_to(1000 * price_max_load(g, split_of(x, g), g.memory).seconds, x["max_load_ms"].get<double>(), 1e-6));
    for (core::json const& raw : recorded()["dnn_partitioning"])
      if (raw["mode"] == "dp" && raw["accelerators"] == g.accelerators && raw["cpus"] == g.cpus && dnn_file(raw["input"]) == path)
        CHECK(near_to(1000 * price_max_load(g, split_of(raw, g), g.memory).seconds,
                      x["as_published_split_reevaluated_ms"].get<double>(), 1e-6));
    ++priced;
  }
  CHECK(priced == 4);
}

TEST_CASE("Piper: every recorded pipeline costs what the peer says, with the configurations that its greedy rule chooses") {
  if (!here()) return;
  std::map<std::string, piper_profile> files;
  auto const price = [&](core::json const& x, piper_profile const& g, piper_setup const& setup, double tps, double scale) {
    std::map<i64, int> node;
    for (int v = 0; v < g.node_count(); ++v) node[g.id[static_cast<std::size_t>(v)]] = v;
    std::vector<piper_stage> stages;
    int later = 0;
    for (std::size_t i = x["stages"].size(); i-- > 0;) {
      core::json const& s = x["stages"][i];
      std::vector<int> nodes;
      for (core::json const& id : s["nodes"]) nodes.push_back(node.at(id.get<i64>()));
      stages.push_back(greedy_piper_stage(g, nodes, s["d"].get<int>(), s["t"].get<int>(), setup, later));
      later += s["d"].get<int>();
    }
    std::reverse(stages.begin(), stages.end());
    piper_price const p = price_piper(g, stages, setup);
    CHECK(near_to(p.seconds * scale, tps, 1e-9));
    CHECK(p.fits);
    return p;
  };
  int priced = 0;
  for (core::json const& x : recorded()["piper"]) {
    std::string const file = "piper/" + x["input"].get<std::string>();
    if (!has(file) || !x["feasible"].get<bool>()) continue;
    piper_profile g = kept(files, folder() + file, [](std::string const& p) { return read_piper(p, core::profile_units::as_published); });
    if (x["bert_layers"].is_number()) g = longer_bert(std::move(g), x["bert_layers"].get<int>() - 32);
    piper_setup const setup{x["mem_bytes"].get<double>(), x["bandwidth"].get<double>(), x["devices"].get<int>(),
                            x["microbatches"].get<i64>()};
    piper_price const p = price(x, g, setup, x["tps"].get<double>(), 1);
    for (std::size_t i = 0; i < p.stages.size(); ++i) {
      core::json const& s = x["stages"][i];
      CHECK(near_to(p.stages[i].seconds, s["tps"].get<double>(), 1e-9));
      CHECK(near_to(p.stages[i].compute, s["compute"].get<double>(), 1e-9));
      CHECK(near_to(p.stages[i].edge_bytes, s["edge_bytes"].get<double>(), 1e-9));
      CHECK(near_to(p.stages[i].sync_bytes, s["dp_bytes"].get<double>(), 1e-9));
      CHECK(near_to(p.stages[i].memory, s["memory"].get<double>(), 1e-9));
      CHECK(p.stages[i].in_flight == s["y"].get<int>());
    }
    ++priced;
  }
  CHECK(priced == 48);
  priced = 0;
  for (core::json const& x : recorded()["corrected_units"]) {
    if (x["peer"] != "piper" || !has("piper/resnet.json")) continue;
    auto const g = read_piper(folder() + "piper/resnet.json", core::profile_units::compute_in_milliseconds);
    piper_setup const setup{x["mem_gib"].get<double>() * 1073741824, 25.0 * 1073741824, x["devices"].get<int>(), g.micro_batches};
    price(x, g, setup, x["tps_ms"].get<double>(), 1000);
    ++priced;
  }
  CHECK(priced == 6);
}

TEST_CASE("PipeDream: every recorded pipeline costs what the peer says, flat and in two levels") {
  if (!here()) return;
  std::map<std::string, pipedream_profile> files;
  int flat = 0, levels = 0;
  for (core::json const& x : recorded()["pipedream"]) {
    std::string const file = "pipedream/" + x["model"].get<std::string>() + "/graph.txt";
    if (!has(file) || !x["objective_s"].is_number() || x["compressed_branches"].get<bool>()) continue;
    auto const& g = kept(files, folder() + file, [](std::string const& p) { return read_pipedream(p); });
    std::map<std::string, int> node;
    for (int v = 0; v < g.node_count(); ++v) node[g.id[static_cast<std::size_t>(v)]] = v;
    pipedream_setup setup;
    for (std::size_t i = 0; i < x["machines"].size(); ++i)
      setup.levels.push_back({x["machines"][i].get<int>(), x["bandwidth_Bps"][i].get<double>()});
    setup.compression = x["activation_compression_ratio"].is_number() ? x["activation_compression_ratio"].get<double>() : 0.0;
    setup.memory = x["memory_constraint"].is_number() ? x["memory_constraint"].get<double>() : 0.0;
    setup.straight = x["straight_pipeline"].get<bool>();
    std::vector<pipedream_stage> inner;
    for (std::size_t i = 0; i < x["stages"].size(); ++i) {
      inner.push_back({{}, x["stages"][i]["replicas"].get<int>(), {}});
      for (core::json const& id : x["stage_nodes"][std::to_string(i)]) inner.back().nodes.push_back(node.at(id.get<std::string>()));
    }
    std::vector<pipedream_stage> stages = inner;
    if (setup.levels.size() == 2) {
      stages.clear();
      std::size_t next = 0;
      for (core::json const& o : x["outer_stages"]) {
        stages.push_back({{}, o["replicas"].get<int>(), {}});
        for (; next < inner.size() && x["stages"][next]["span"][1].get<int>() <= o["span"][1].get<int>(); ++next) {
          stages.back().nodes.insert(stages.back().nodes.end(), inner[next].nodes.begin(), inner[next].nodes.end());
          stages.back().inner.push_back(inner[next]);
        }
      }
    }
    pipedream_price const p = price_pipedream(g, stages, setup);
    CAPTURE(file);
    CAPTURE(x["objective_s"].get<double>());
    CHECK(near_to(p.seconds, x["objective_s"].get<double>(), 1e-6));
    CHECK(p.fits);
    ++(setup.levels.size() == 1 ? flat : levels);
  }
  CHECK(flat == 33);
  CHECK(levels == 10);
}

TEST_CASE("Alpa: every recorded pipeline costs what the peer says, within the rounding of its float32 tables") {
  if (!here() || !has("piper/bert32a100.json")) return;
  auto const g = read_piper(folder() + "piper/bert32a100.json", core::profile_units::as_published);
  core::json const& all = recorded()["alpa_inter_op_dp"];
  std::vector<int> const order = graph::topological_order(g);
  for (std::size_t i = 0; i < order.size(); ++i) CHECK(order[i] == all["order"][i].get<int>());
  int priced = 0;
  for (core::json const& x : all["results"]) {
    alpa_table const t = alpa_table_of(g, x["mem_gib"].get<double>() * 1073741824);
    std::vector<alpa_stage> stages;
    for (core::json const& s : x["stages"]) {
      alpa_stage a{s["layers"][0].get<int>(), s["layers"][1].get<int>() - 1, 0, 0};
      while (t.submeshes[static_cast<std::size_t>(a.submesh)] != s["submesh"][1].get<int>()) ++a.submesh;
      auto const& list = t.at(a.first, a.last, a.submesh);
      // candidates that do not fit are not in the table: the other configuration may be the only one
      while (static_cast<std::size_t>(a.candidate) + 1 < list.size() &&
             !near_to(list[static_cast<std::size_t>(a.candidate)].seconds, s["cost"].get<double>(), 2e-5))
        ++a.candidate;
      CHECK(near_to(list[static_cast<std::size_t>(a.candidate)].seconds, s["cost"].get<double>(), 2e-5));
      CHECK(list[static_cast<std::size_t>(a.candidate)].max_later == s["max_succ"].get<int>());
      stages.push_back(a);
    }
    alpa_price const p = price_alpa(t, stages, x["devices"].get<int>(), x["microbatches"].get<i64>());
    CHECK(near_to(p.seconds, x["objective_s"].get<double>(), 2e-5));
    CHECK(p.fits);
    ++priced;
  }
  CHECK(priced == 24);
}

TEST_CASE("GraphPipe: the planner's log adds up: iteration time, memory, samples in flight") {
  if (!here()) return;
  int priced = 0;
  for (core::json const& x : recorded()["graphpipe_planner_logs"]) {
    std::string const file = "graphpipe/" + x["file"].get<std::string>();
    if (!has(file)) continue;
    graphpipe_strategy const s = read_graphpipe(folder() + file);
    REQUIRE(s.log.has_value());
    graphpipe_log const& g = *s.log;
    CHECK(g.mini_batch == x["mini_batch"].get<i64>());
    CHECK(g.bottleneck == x["tps_bottleneck"].get<double>());
    graphpipe_price const p = price_graphpipe(g, g.mini_batch);
    CHECK(std::abs(p.iteration - x["t_minibatch"].get<double>()) <= 0.08);  // the log prints six digits
    CHECK(p.slowest_stage <= g.bottleneck);
    CHECK(p.slowest_stage >= 0.999 * g.bottleneck);
    int devices = 0;
    for (std::size_t i = 0; i < g.stages.size(); ++i) {
      core::json const& y = x["log_stages"][i];
      CHECK(std::abs(p.memory[i] - g.stages[i].memory) <= 1.5);  // whole MB in the log
      CHECK(g.stages[i].memory == y["memory_mb"].get<double>());
      CHECK(p.memory[i] <= 1024 * g.memory_limit);
      CHECK(p.in_flight[i] == g.stages[i].in_flight);
      CHECK(p.in_flight[i] == y["inflight"].get<i64>());
      devices += g.stages[i].devices;
      int const stage = s.stage_of[static_cast<std::size_t>(g.stages[i].nodes.front())];  // the strategy numbers stages its own way
      for (int v : g.stages[i].nodes) CHECK(s.stage_of[static_cast<std::size_t>(v)] == stage);
      CHECK(s.stages[static_cast<std::size_t>(stage)].devices == g.stages[i].devices);
      CHECK(s.stages[static_cast<std::size_t>(stage)].in_flight == g.stages[i].in_flight);
    }
    CHECK(devices == g.devices);
    ++priced;
  }
  CHECK(priced == 1);
  graphpipe_strategy const resnet = read_graphpipe(folder() + "graphpipe/ResNet_partition.txt");
  for (std::size_t i = resnet.stages.size(); i-- > 1;)  // a chain with equal k b: row 7 again
    CHECK(resnet.stages[i - 1].in_flight == resnet.stages[i].in_flight + resnet.stages[i - 1].k * resnet.stages[i - 1].micro_batch);
}
