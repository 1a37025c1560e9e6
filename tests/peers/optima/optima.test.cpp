#include <doctest/doctest.h>

#include <tensorpar/peers/optima/alpa.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/peers/optima/max_load.hpp>
#include <tensorpar/peers/optima/pipedream.hpp>
#include <tensorpar/peers/optima/piper.hpp>

#include "profile_data.hpp"
#include "support/effort.hpp"
#include "support/random_graph.hpp"

using namespace tensorpar;
using namespace tensorpar::peers;
using namespace profile_data;

namespace {

bool same(double a, double b, double relative) { return a == b || std::abs(a - b) <= relative * std::max(std::abs(a), std::abs(b)); }

pipedream_profile random_layers(tests::random_source& r, int n) {
  pipedream_profile g;
  g.inputs = tests::random_dag(r, n, 50, false);
  for (int v = 0; v < n; ++v) {
    g.id.push_back("n" + std::to_string(v));
    g.description.push_back("layer");
    g.forward.push_back(0.001 * r.below(10));
    g.backward.push_back(0.001 * r.below(20));
    g.activation.push_back(1e6 * r.below(10));
    g.parameter.push_back(1e6 * r.below(10));
    g.stage.push_back(-1);
  }
  return g;
}

/// Every chain of states, every distribution of machines, at every level, priced by the formula.
struct pipedream_walk {
  pipedream_profile const& g;
  pipedream_setup const& setup;
  std::vector<pipedream_state> states;
  std::vector<int> layers(int from, int to) const {
    auto const has = [](std::vector<u64> const& s, int v) { return peers::detail::pipedream_layers::has(s, v); };
    std::vector<int> r;
    for (int v = 0; v < g.node_count(); ++v)
      if (has(states[idx(to)].layers, v) && (from < 0 || !has(states[idx(from)].layers, v))) r.push_back(v);
    return r;
  }
  /// All pipelines of a level behind state `from`, up to state `to`, on m machines.
  std::vector<std::vector<pipedream_stage>> all(std::size_t level, int from, int to, int m) const {
    std::vector<std::vector<pipedream_stage>> r;
    if (from == to) return m == 0 ? std::vector<std::vector<pipedream_stage>>{{}} : r;
    for (int next = 0; next < static_cast<int>(states.size()); ++next) {
      auto const in = [&](int a, int b) { return peers::detail::pipedream_layers::within(states[idx(a)].layers, states[idx(b)].layers); };
      if (!in(next, to) || (from >= 0 && (next == from || !in(from, next)))) continue;
      for (int here = 1; here <= (setup.straight ? 1 : m); ++here)
        for (auto const& rest : all(level, next, to, m - here))
          for (auto const& inner : level ? all(level - 1, from, next, setup.levels[level - 1].machines)
                                         : std::vector<std::vector<pipedream_stage>>{{}}) {
            std::vector<pipedream_stage> one{{layers(from, next), here, inner}};
            one.insert(one.end(), rest.begin(), rest.end());
            r.push_back(std::move(one));
          }
    }
    return r;
  }
  double best() const {
    double r = infinity;
    for (auto const& p : all(setup.levels.size() - 1, -1, static_cast<int>(states.size()) - 1, setup.levels.back().machines)) {
      pipedream_price const price = price_pipedream(g, p, setup);
      if (price.fits) r = std::min(r, price.seconds);
    }
    return r;
  }
};

}  // namespace

TEST_CASE("min_pipedream equals the best of all chains of states, in one level and in two") {
  int feasible = 0;
  for (u64 seed = 0; seed < static_cast<u64>(test_effort::cases(1500)); ++seed) {
    tests::random_source r{seed};
    pipedream_profile const g = random_layers(r, 1 + r.below(seed % 5 ? 6 : 4));
    pipedream_setup setup;
    setup.levels.push_back({1 + r.below(4), 1e9 * (1 + r.below(5))});
    if (seed % 5 == 0) setup.levels.push_back({1 + r.below(2), 1e8 * (1 + r.below(5))});
    setup.compression = r.chance(50) ? 1 : 0;
    setup.memory = r.chance(30) ? 1e6 * (5 + r.below(60)) : 0;
    setup.straight = r.chance(20);
    double const want = pipedream_walk{g, setup, pipedream_states(g)}.best();
    pipedream_optimum const got = min_pipedream(g, setup);
    CAPTURE(seed);
    REQUIRE(got.feasible == (want < infinity));
    if (!got.feasible) continue;
    ++feasible;
    REQUIRE(same(got.seconds, want, 1e-9));
    pipedream_price const p = price_pipedream(g, got.stages, setup);
    CHECK(p.fits);
    CHECK(same(p.seconds, got.seconds, 1e-9));
  }
  CHECK(feasible > test_effort::cases(100));
}

TEST_CASE("min_pipedream: the search over downsets equals the table of states") {
  int feasible = 0;
  for (u64 seed = 0; seed < static_cast<u64>(test_effort::cases(1000)); ++seed) {
    tests::random_source r{seed + 9000};
    pipedream_profile g = random_layers(r, 2 + r.below(9));
    for (int v = 1; v < g.node_count(); ++v)
      if (g.inputs[idx(v)].empty()) g.inputs[idx(v)] = {0};  // one source
    pipedream_setup const setup{{{1 + r.below(6), 1e9 * (1 + r.below(5))}}, r.chance(50) ? 1.0 : 0.0,
                                r.chance(50) ? 1e6 * (5 + r.below(60)) : 0, r.chance(20)};
    pipedream_optimum const table = min_pipedream(g, setup), wide = min_pipedream(g, setup, 5000, 0);
    CAPTURE(seed);
    CHECK(wide.states == table.states);
    REQUIRE(wide.feasible == table.feasible);
    if (!table.feasible) continue;
    ++feasible;
    REQUIRE(same(wide.seconds, table.seconds, 1e-9));
    pipedream_price const p = price_pipedream(g, wide.stages, setup);
    CHECK(p.fits);
    CHECK(same(p.seconds, table.seconds, 1e-9));
  }
  CHECK(feasible > test_effort::cases(300));
}

TEST_CASE("min_alpa equals the best of all runs of layers, submeshes and candidates") {
  int feasible = 0, tight = 0;
  for (u64 seed = 0; seed < static_cast<u64>(test_effort::cases(1500)); ++seed) {
    tests::random_source r{seed};
    alpa_table t;
    t.layers = 1 + r.below(5);
    t.submeshes = {1, 2};
    t.candidates.resize(idx(t.layers * t.layers * 2));
    for (int i = 0; i < t.layers; ++i)
      for (int j = i; j < t.layers; ++j)
        for (int m = 0; m < 2; ++m)
          for (int c = r.below(3); c > 0; --c)
            t.candidates[(idx(i) * idx(t.layers) + idx(j)) * 2 + idx(m)].push_back({0.01 * (1 + r.below(30)) * (j - i + 1), r.below(4)});
    int const devices = 1 + r.below(5);
    i64 const batches = 1 + r.below(30);
    double want = infinity, free = infinity;
    std::vector<alpa_stage> chain;
    auto const walk = [&](auto const& self, int first, int left) -> void {
      if (first == t.layers) {
        if (left) return;
        alpa_price const p = price_alpa(t, chain, devices, batches);
        free = std::min(free, p.seconds);
        if (p.fits) want = std::min(want, p.seconds);
        return;
      }
      for (int last = first; last < t.layers; ++last)
        for (int m = 0; m < 2; ++m)
          for (int c = 0; c < static_cast<int>(t.at(first, last, m).size()) && t.submeshes[idx(m)] <= left; ++c) {
            chain.push_back({first, last, m, c});
            self(self, last + 1, left - t.submeshes[idx(m)]);
            chain.pop_back();
          }
    };
    walk(walk, 0, devices);
    alpa_optimum const got = min_alpa(t, devices, batches);
    CAPTURE(seed);
    REQUIRE(got.feasible == (want < infinity));
    if (!got.feasible) continue;
    ++feasible;
    tight += want > free;
    REQUIRE(same(got.seconds, want, 1e-12));
    CHECK(price_alpa(t, got.stages, devices, batches).fits);
  }
  CHECK(feasible > test_effort::cases(100));
  CHECK(tight > test_effort::cases(20));
}

TEST_CASE("dnn-partitioning: our optimum equals every recorded one; infeasible where the peer fails") {
  if (!here()) return;
  int compared = 0, infeasible = 0;
  for (core::json const& x : recorded()["dnn_partitioning"]) {
    std::string const path = dnn_file(x["input"].get<std::string>());
    if (path.empty() || x["mode"] != "dp") continue;
    auto const g = read_dnn_partitioning(path, core::profile_units::as_published);
    max_load_limits const limits{x["accelerators"].get<int>(), x["cpus"].get<int>(), x["mem_bytes"].get<double>()};
    max_load_optimum const got = min_max_load(g, limits);
    CAPTURE(path);
    CAPTURE(limits.accelerators);
    CHECK(got.pipeline.downsets == x["downsets"].get<int>());
    CHECK(got.feasible == x["max_load"].is_number());
    if (got.feasible) {
      CHECK(same(got.seconds, x["max_load"].get<double>(), 1e-6));
      CHECK(same(got.seconds, got.pipeline.seconds, 1e-9));
      CHECK(price_max_load(g, got.split, limits.memory).fits);
      ++compared;
    } else {
      ++infeasible;
    }
  }
  CHECK(compared == 29);
  CHECK(infeasible == 1);
  compared = 0;
  for (core::json const& x : recorded()["corrected_units"]) {
    std::string const path = dnn_file(x["input"].get<std::string>());
    if (x["peer"] != "dnn-partitioning dp" || path.empty()) continue;
    auto const g = read_dnn_partitioning(path, core::profile_units::compute_in_milliseconds);
    CHECK(same(1000 * min_max_load(g, {g.accelerators, g.cpus, g.memory}).seconds, x["max_load_ms"].get<double>(), 1e-6));
    ++compared;
  }
  CHECK(compared == 4);
}

TEST_CASE("Piper: our optimum is never above a recorded one, and feasible exactly where the peer is") {
  if (!here()) return;
  int compared = 0, better = 0;
  for (core::json const& x : recorded()["piper"]) {
    std::string const file = "piper/" + x["input"].get<std::string>();
    if (!has(file)) continue;
    auto g = read_piper(folder() + file, core::profile_units::as_published);
    if (x["bert_layers"].is_number()) g = longer_bert(std::move(g), x["bert_layers"].get<int>() - 32);
    piper_setup const setup{x["mem_bytes"].get<double>(), x["bandwidth"].get<double>(), x["devices"].get<int>(),
                            x["microbatches"].get<i64>()};
    piper_optimum const got = min_piper(g, setup);
    CAPTURE(file);
    CAPTURE(setup.devices);
    CAPTURE(setup.memory);
    CHECK(got.pipeline.downsets == x["downsets"].get<int>());
    CHECK(got.exact);
    if (x["feasible"].get<bool>()) {
      REQUIRE(got.feasible);
      CHECK(got.seconds <= x["tps"].get<double>() * (1 + 1e-9));
      CHECK(price_piper(g, got.stages, setup).fits);
      better += got.seconds < x["tps"].get<double>() * (1 - 1e-9);
    }
    ++compared;
  }
  CHECK(compared == 56);
  MESSAGE("Piper: below the recorded optimum in " << better << " of " << compared);
}

TEST_CASE("PipeDream: our optimum equals every recorded one, flat and in two levels") {
  if (!here()) return;
  int compared = 0;
  for (core::json const& x : recorded()["pipedream"]) {
    std::string const file = "pipedream/" + x["model"].get<std::string>() + "/graph.txt";
    if (!has(file) || x["compressed_branches"].get<bool>()) continue;
    auto const g = read_pipedream(folder() + file);
    pipedream_setup setup;
    for (std::size_t i = 0; i < x["machines"].size(); ++i)
      setup.levels.push_back({x["machines"][i].get<int>(), x["bandwidth_Bps"][i].get<double>()});
    setup.compression = x["activation_compression_ratio"].is_number() ? x["activation_compression_ratio"].get<double>() : 0.0;
    setup.memory = x["memory_constraint"].is_number() ? x["memory_constraint"].get<double>() : 0.0;
    setup.straight = x["straight_pipeline"].get<bool>();
    pipedream_optimum const got = min_pipedream(g, setup);
    CAPTURE(file);
    CAPTURE(x["machines"].dump());
    CHECK(got.states == x["states"].get<int>());
    CHECK(same(price_pipedream(g, got.stages, setup).seconds, got.seconds, 1e-9));
    CHECK(same(got.seconds, x["objective_s"].get<double>(), 1e-6));
    ++compared;
  }
  CHECK(compared == 43);
}

TEST_CASE("Alpa: our optimum equals every recorded one, within the peer's rounding of limits and tables") {
  if (!here() || !has("piper/bert32a100.json")) return;
  auto const g = read_piper(folder() + "piper/bert32a100.json", core::profile_units::as_published);
  int compared = 0;
  for (core::json const& x : recorded()["alpa_inter_op_dp"]["results"]) {
    alpa_table const t = alpa_table_of(g, x["mem_gib"].get<double>() * 1073741824);
    i64 const batches = x["microbatches"].get<i64>();
    alpa_optimum const got = min_alpa(t, x["devices"].get<int>(), batches);
    double const want = x["objective_s"].get<double>();
    CHECK(price_alpa(t, got.stages, x["devices"].get<int>(), batches).fits);
    CHECK(got.seconds <= want * (1 + 2e-5));
    CHECK(got.seconds >= want * (1 - 2e-5) - 1e-6 * static_cast<double>(batches));  // limits closer than 1e-6 s are one to the peer
    ++compared;
  }
  CHECK(compared == 24);
}
