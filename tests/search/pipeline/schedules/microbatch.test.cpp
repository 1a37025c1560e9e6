// tests/search/pipeline/schedules/microbatch.test.cpp - every schedule by name is valid wherever it applies
#include <tensorpar/search/pipeline/schedules/microbatch.hpp>
#include <doctest/doctest.h>

#include <tensorpar/check/schedule_check.hpp>
#include "support/effort.hpp"
#include "support/pipelines.hpp"
#include "support/shrink.hpp"

using namespace tensorpar;
using namespace tensorpar::search;
using tests::at;

TEST_CASE("names and kinds") {
  for (std::size_t i = 0; i < schedule_names.size(); ++i) CHECK(name_of(schedule_named(schedule_names[i])) == schedule_names[i]);
  CHECK(schedule_named("1f1b") == schedule_kind::one_f_one_b);
  CHECK(schedule_named("zb-v") == schedule_kind::zb_v);
  CHECK_THROWS_WITH_AS(schedule_named("2f2b"),
                       "schedule \"2f2b\" (at schedule); valid: gpipe, 1f1b, kfkb, greedy, interleaved-1f1b, zb-h1, zb-h2, zb-auto, zb-v, "
                       "v-half, v-min", error);
}

TEST_CASE("random stages of random sizes, costs and k: orders satisfy C1 to C5 and none waits for ever") {
  constexpr schedule_kind kinds[] = {schedule_kind::gpipe, schedule_kind::one_f_one_b, schedule_kind::k_f_k_b, schedule_kind::greedy,
                                     schedule_kind::zb_h1, schedule_kind::zb_h2,       schedule_kind::zb_auto};
  std::string why;
  auto const holds = [&](tests::lists const& e, u64 seed) {
    tests::random_source r{seed};
    pipeline p = tests::mixed_pipeline(e, r);
    auto const c = tests::mixed_costs(p, r, e);
    for (auto& s : p.stages) s.k = 1 + r.below(4);
    for (schedule_kind kind : kinds) {
      auto const q = make_schedule(kind, p, e, c);
      if (!q) {
        why = std::string(name_of(kind)) + " gives nothing";
        return false;
      }
      auto const f = check_pipeline(e, e, *q, static_cast<int>(e.size()));
      if (f.empty()) continue;
      why = std::string(name_of(kind)) + ": " + f[0].text + "\n" + tests::text(*q);
      return false;
    }
    for (auto rule : {in_flight_table, in_flight, in_flight_grouped})
      if (auto const f = check_orders(k_f_k_b(p, e, in_flight_samples(p, e, rule)), e); !f.empty()) {
        why = "kFkB by rule: " + f[0].text;
        return false;
      }
    return true;
  };
  for (u64 seed = 0; seed < static_cast<u64>(test_effort::cases(400)); ++seed) {
    tests::random_source r{seed * 65537};
    auto const g = tests::random_dag(r, 1 + r.below(6), 40, false);
    if (holds(g, seed)) continue;
    auto const small = tests::shrink(g, [&](tests::lists const& h) { return !holds(h, seed); });
    holds(small, seed);
    FAIL("seed ", seed, ": ", tests::text(small), ": ", why);
  }
}

TEST_CASE("several stages on a group: the schedules that take them") {
  for (int p : {1, 2, 3, 4})
    for (int m : {2 * p, 3 * p}) {
      for (int v : {1, 2, 3}) {
        auto const e = passes::chain_of_stages(p * v);
        auto const c = tests::even_costs(at(p * v), 1, 2, 0);
        for (schedule_kind kind : {schedule_kind::gpipe, schedule_kind::interleaved})
          CHECK(check_pipeline(e, e, *make_schedule(kind, tests::chain_pipeline(p * v, p, m), e, c), p).empty());
      }
      auto const e = passes::chain_of_stages(2 * p);
      auto const c = tests::even_costs(at(2 * p), 3, 4, 2);
      for (schedule_kind kind : {schedule_kind::gpipe, schedule_kind::zb_v, schedule_kind::v_half, schedule_kind::v_min})
        CHECK(check_pipeline(e, e, *make_schedule(kind, tests::v_pipeline(p, m), e, c), p).empty());
    }
}

TEST_CASE("the same pipeline twice, the same order twice; the limit reaches the automatic schedule") {
  auto const e = tests::lists{{}, {0}, {0}, {1, 2}};
  tests::random_source r{5};
  pipeline p = tests::mixed_pipeline(e, r, 24);
  auto const c = tests::mixed_costs(p, r, e);
  for (std::size_t i = 0; i < schedule_names.size(); ++i) {
    auto const kind = static_cast<schedule_kind>(i);
    if (kind == schedule_kind::interleaved || kind >= schedule_kind::zb_v) continue;   // these want chains
    CHECK(make_schedule(kind, p, e, c) == make_schedule(kind, p, e, c));
  }
  CHECK_FALSE(make_schedule(schedule_kind::zb_auto, p, e, c, 0.5));
}

TEST_CASE("even chains of mixed micro-batch sizes: 1F1B and kFkB are as fast as the refined greedy schedule") {
  for (u64 seed = 0; seed < static_cast<u64>(test_effort::cases(200)); ++seed) {
    tests::random_source r{seed * 49979687};
    int const n = 2 + r.below(5);
    auto const e = passes::chain_of_stages(n);
    pipeline p = tests::chain_pipeline(n, n, 32);
    double const f = 1 + r.below(3), b = 1 + r.below(3);
    simulation::pipeline_costs c;
    for (auto& s : p.stages) {
      s.micro_batch = 1 << r.below(3);
      s.k = 1 << r.below(3);
      c.stages.push_back({f * static_cast<double>(s.micro_batch), b * static_cast<double>(s.micro_batch), 0, 0, 1});
    }
    double const best = simulate_pipeline(refined_greedy(p, e, c), e, c).makespan;
    for (auto kind : {schedule_kind::one_f_one_b, schedule_kind::k_f_k_b})
      if (double const s = simulate_pipeline(*make_schedule(kind, p, e, c), e, c).makespan; s != best)
        FAIL("seed ", seed, ": ", name_of(kind), " ", s, " instead of ", best, "; ", tests::text(p));
  }
}

TEST_CASE("kFkB by name is time-optimal where stages are even, at any ratio") {
  for (double b : {1.0, 2.0, 3.0}) {
    auto p = tests::chain_pipeline(4, 4, 16);
    for (auto& s : p.stages) s.k = 4;
    auto const e = passes::chain_of_stages(4);
    auto const c = tests::even_costs(4, 1, b, 0);
    CHECK(simulate_pipeline(*make_schedule(schedule_kind::k_f_k_b, p, e, c), e, c).makespan == 19 * (1 + b));
  }
}
