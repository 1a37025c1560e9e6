// tests/search/degrees/ranking.test.cpp - the fastest degrees are those of a search through all, and estimates leave none of them out
#include <tensorpar/search/degrees/ranking.hpp>

#include <doctest/doctest.h>
#include <random>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/search/overlapped.hpp>
#include <tensorpar/zoo/registry.hpp>

#include "support/effort.hpp"

using namespace tensorpar;
using namespace tensorpar::search;

namespace {

training_problem gpt(int layers, i64 samples) {
  return {.graph = zoo::make("gpt3_1b3:layers=" + std::to_string(layers) + ",hidden=64,heads=4,wide=128,seq=32,vocab=256", 1),
          .samples = samples,
          .optimizer = {.kind = optimizer_kind::adamw}};
}
machine nodes(int n, int per, double outer, i64 memory) {
  device_kind k{"device", 1e12, 1e11, memory, 1e-6};
  return make_cluster("nodes", k, n * per, per, {"inner", per, 1e-6, 4e9}, n > 1 ? link_level{"outer", n * per, 5e-6, outer} : link_level{});
}
/// By all degrees that divide, one after another and in full.
template <class F> void each_configuration(int devices, i64 samples, int layers, int tensor, F const& f) {
  for (int t = 1; t <= tensor; ++t)
    for (int p = 1; p <= layers; ++p)
      for (i64 m : {1, 2, 3, 4, 6, 8, 12, 16})
        for (int v = 1; v <= 8; ++v)
          for (int r = 0; r < 3; ++r)
            for (int z = 0; z < 3; ++z) {
              if (devices % (t * p)) continue;
              parallel_config const c{.data = devices / t / p, .tensor = t, .pipeline = p, .virtual_stages = v, .micro_batch = m,
                                      .sharding = static_cast<ir::zero_stage>(z), .recompute = static_cast<recomputation>(r)};
              if (samples % (m * c.data) || (z && c.data == 1) || (z == 2 && p > 1)) continue;
              if (p * v > layers || (p == 1 && v > 1)) continue;
              if (p > 1 && layers % (p * v) && (layers + 2) % (p * v)) continue;
              if (v > 1 && samples / c.data / m % p) continue;
              f(c);
            }
}

}  // namespace

TEST_CASE("the fastest degrees that fit are those of all configurations, on random machines") {
  std::mt19937_64 draw(7);
  cost::analytical const model;
  int compared = 0, none = 0, kinds = 0;
  double by_few = 0;                                             // of seconds: eight simulated over all
  parallel_config before;
  for (int i = 0; i < test_effort::cases(8); ++i) {
    CAPTURE(i);
    int const layers = i % 2 ? 4 : 2;
    i64 const samples = i % 3 == 0 ? 16 : i % 3 == 1 ? 8 : 12;
    training_problem const asked = gpt(layers, samples);
    machine const on = nodes(1 + i % 2, 2 + 2 * (i % 3 == 1), 1e8 * static_cast<double>(1 + draw() % 40),
                             static_cast<i64>(600'000 * (1 + draw() % 12)));
    configurations<cost::analytical> all(asked, on, model);
    degree_limits limits;
    limits.simulated = 1000;
    std::vector<ranked_config> const found = rank_configurations(all, asked, model, limits);
    double least = infinity;
    each_configuration(on.size(), samples, layers, static_cast<int>(on.links.front().group), [&](parallel_config const& c) {
      configured_plan const x = all.plan_of(c);
      simulated_plan const s = simulated(x.graph, x.plan, asked, model);
      if (!s.infeasible) least = std::min(least, s.seconds);
    });
    REQUIRE(!found.empty());
    if (least == infinity) {
      ++none;
      CHECK(found[0].infeasible);
      continue;
    }
    ++compared;
    kinds += !(found[0].config == before);
    before = found[0].config;
    CHECK(!found[0].infeasible);
    CHECK(found[0].seconds <= 1.05 * least);
    if (found[0].config.recompute_layers == 0) CHECK(found[0].seconds >= 0.99 * least);      // the loops above know no part of the layers
    configured_plan const best = all.plan_of(found[0].config);
    CHECK(found[0].seconds == doctest::Approx(simulated(best.graph, best.plan, asked, model).seconds).epsilon(0.01));
    for (std::size_t k = 1; k < found.size(); ++k) CHECK((found[k].infeasible || found[k].seconds >= found[k - 1].seconds));
    limits.threads = 3;
    std::vector<ranked_config> const again = rank_configurations(all, asked, model, limits);
    REQUIRE(again.size() == found.size());
    for (std::size_t k = 0; k < found.size(); ++k) CHECK(again[k].config == found[k].config);
    limits.simulated = 8;
    std::vector<ranked_config> const few = rank_configurations(all, asked, model, limits);
    CHECK(few.size() <= 8);
    by_few += few[0].seconds / found[0].seconds;
    CHECK(rank_configurations(all, asked, model, {}, 1e-12).empty());
  }
  CHECK(compared >= test_effort::cases(5));
  CHECK((kinds >= 3 || test_effort::slow));
  CHECK(by_few <= 1.1 * compared);
  MESSAGE((by_few / compared) << " times as long by eight, " << compared << " compared, " << kinds << " changes of the fastest, " << none << " where nothing fits");
}

TEST_CASE("ranked within narrow limits and then within wide ones, no configuration is there twice, and the best is that of the wide ones") {
  std::mt19937_64 draw(3);
  cost::analytical const model;
  for (int i = 0; i < test_effort::cases(8); ++i) {
    CAPTURE(i);
    training_problem const asked = gpt(4, 16);
    machine const on = nodes(2, 2, 1e8 * static_cast<double>(1 + draw() % 40), static_cast<i64>(600'000 * (2 + draw() % 12)));
    configurations<cost::analytical> all(asked, on, model);
    degree_limits narrow{.max_tensor = 1, .max_pipeline = 1, .simulated = 1000}, wide{.simulated = 1000};
    search::detail::degree_ranking<cost::analytical> ranking(all, asked, model);
    std::vector<ranked_config> const first = ranking.run(narrow, infinity), then = ranking.run(wide, infinity);
    std::vector<ranked_config> const once = rank_configurations(all, asked, model, wide);
    for (ranked_config const& x : then) {
      CHECK((x.config.tensor > 1 || x.config.pipeline > 1 || first.empty()));
      for (ranked_config const& y : first) CHECK_FALSE(x.config == y.config);
    }
    double least = infinity;
    for (auto const* list : {&first, &then})
      for (ranked_config const& x : *list) least = std::min(least, x.seconds);
    CHECK(least <= (once.empty() ? infinity : once[0].seconds) * (1 + 1e-9));
    CHECK(ranking.run(wide, infinity).empty());                  // all were simulated
  }
}

TEST_CASE("limits are kept; where nothing fits, what lacks least is told; where nothing divides, nothing") {
  cost::analytical const model;
  training_problem const asked = gpt(4, 8);
  machine const on = nodes(2, 4, 1e9, i64{1} << 30);
  configurations<cost::analytical> all(asked, on, model);
  for (ranked_config const& x : rank_configurations(all, asked, model, {.max_tensor = 2, .max_pipeline = 2, .max_micro_batch = 1}))
    CHECK((x.config.tensor <= 2 && x.config.pipeline <= 2 && x.config.micro_batch == 1));
  machine const full = nodes(2, 4, 1e9, 10'000);
  configurations<cost::analytical> none(asked, full, model);
  std::vector<ranked_config> const lacking = rank_configurations(none, asked, model);
  REQUIRE(lacking.size() == 1);
  CHECK(lacking[0].infeasible);
  CHECK(lacking[0].infeasible->missing > 0);
  search::detail::degree_ranking<cost::analytical> twice(none, asked, model);
  degree_limits const copies{.max_tensor = 1, .max_pipeline = 1, .sharding = {ir::zero_stage::none}};
  std::vector<ranked_config> const alone = twice.run(copies, infinity), any = twice.run({}, infinity);
  REQUIRE(alone.size() == 1);
  REQUIRE(any.size() == 1);                                    // which lacks less than whole copies
  CHECK(any[0].config == lacking[0].config);
  CHECK(any[0].infeasible->missing < alone[0].infeasible->missing);
  CHECK(twice.run({}, infinity).empty());
  training_problem const odd = gpt(4, 7);
  configurations<cost::analytical> indivisible(odd, on, model);
  CHECK(rank_configurations(indivisible, odd, model, {.max_tensor = 2, .max_pipeline = 1}).empty());
}

namespace {
/// Prices as its model does, but for one question, which it does not know.
struct forgetful {
  static constexpr char const* says = "no price for this one";
  int* left;
  double seconds(auto const& q) const {
    if ((*left)-- == 0) throw error(says, "forgetful", "another question");
    return cost::analytical{}.seconds(q);
  }
};
}  // namespace

TEST_CASE("what a cost model throws reaches the caller, whichever question it is") {
  training_problem const asked = gpt(2, 8);
  machine const on = nodes(1, 2, 1e9, i64{1} << 30);
  int thrown = 0, questions = 0, last = 1 << 30;
  auto const ask = [&](int after) {
    int left = after;
    forgetful const model{&left};
    configurations<forgetful> all(asked, on, model);
    rank_configurations(all, asked, model, {.max_micro_batch = 1, .simulated = 4, .threads = 1});
    return after - left;
  };
  questions = ask(last);
  CHECK(questions > 100);
  for (int k = 0; k < questions; k += 1 + questions / 60) {
    CAPTURE(k);
    CHECK_THROWS_WITH_AS(ask(k), doctest::Contains(forgetful::says), error);
    ++thrown;
  }
  CHECK(thrown > 30);
}

TEST_CASE("pipelines of more operators times micro-batches than may be placed are not simulated") {
  training_problem const asked = gpt(4, 16);
  machine const on = nodes(2, 2, 1e8, i64{1} << 30);
  cost::analytical const model;
  configurations<cost::analytical> all(asked, on, model);
  auto const staged = [&](i64 max_placed) {
    degree_limits limits;
    limits.simulated = 1000;
    limits.max_placed = max_placed;
    int most = 1;
    for (ranked_config const& x : rank_configurations(all, asked, model, limits)) most = std::max(most, x.config.pipeline);
    return most;
  };
  i64 const n = asked.graph.node_count();
  CHECK(staged(4 * n - 1) == 1);                     // 2 stages have 4 micro-batches unrolled, where there are as many
  CHECK(staged(i64{1} << 17) == 4);
}
