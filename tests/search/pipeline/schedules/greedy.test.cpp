// tests/search/pipeline/schedules/greedy.test.cpp - Theorem 3.1 against exhaustive search: where it holds, and two cases where it does not
#include <tensorpar/search/pipeline/schedules/greedy.hpp>
#include <doctest/doctest.h>

#include <tensorpar/check/schedule_check.hpp>
#include "support/effort.hpp"
#include "support/pipelines.hpp"

using namespace tensorpar;
using namespace tensorpar::search;
using tests::at;

namespace {

/// Every order of a stage's passes that ascends with forward before backward: Catalan(m) of them.
std::vector<std::vector<pass_entry>> all_orders(int stage, int m) {
  std::vector<std::vector<pass_entry>> r;
  std::vector<pass_entry> o;
  auto const extend = [&](auto&& self, int f, int b) -> void {
    if (b == m) {
      r.push_back(o);
      return;
    }
    if (f < m) {
      o.push_back({stage, pass::forward, f});
      self(self, f + 1, b);
      o.pop_back();
    }
    if (b < f) {
      o.push_back({stage, pass::backward, b});
      self(self, f, b + 1);
      o.pop_back();
    }
  };
  extend(extend, 0, 0);
  return r;
}

/// Stage s and what depends on it, s first, with the orders that these have.
struct below {
  pipeline p;
  passes::stage_edges e;
  simulation::pipeline_costs c;
  below(pipeline const& all, passes::stage_edges const& edges, simulation::pipeline_costs const& costs, int s) {
    p.mini_batch = all.mini_batch;
    std::vector<int> number(all.stages.size(), -1);
    for (int t = s; t < static_cast<int>(all.stages.size()); ++t) {
      std::vector<int> from;
      for (int u : edges[at(t)])
        if (number[at(u)] >= 0) from.push_back(number[at(u)]);
      if (t != s && from.empty()) continue;
      int const i = number[at(t)] = static_cast<int>(p.stages.size());
      p.stages.push_back(all.stages[at(t)]);
      p.stages.back().group = i;
      p.groups.push_back({i, 1});
      e.push_back(from);
      c.stages.push_back(costs.stages[at(t)]);
      p.schedule.push_back(all.schedule[at(all.stages[at(t)].group)]);
      for (auto& x : p.schedule.back()) x.stage = i;
    }
  }
};

struct instance {
  passes::stage_edges e;
  pipeline p;
  simulation::pipeline_costs c;
  std::string text() const {
    std::string s = tests::text(e) + "; " + tests::text(p);
    for (auto const& x : c.stages) s += " (" + std::to_string(x.forward) + ", " + std::to_string(x.backward) + ")";
    return s;
  }
};
/// Up to `most` stages over four samples. `even`: a sample takes as long in every stage.
instance random_instance(u64 seed, int most, bool even) {
  tests::random_source r{seed};
  instance x;
  x.e = tests::random_dag(r, 1 + r.below(most), 60, false);
  x.p = tests::chain_pipeline(static_cast<int>(x.e.size()), static_cast<int>(x.e.size()), 4);
  bool const one_size = r.chance(30);
  i64 const sizes[] = {1, 2, 4}, common = sizes[r.below(3)];
  double const forward = 1 + r.below(4), backward = 1 + r.below(4);
  for (auto& s : x.p.stages) {
    s.micro_batch = one_size ? common : sizes[r.below(3)];
    double const b = static_cast<double>(s.micro_batch);
    x.c.stages.push_back({b * (even ? forward : 1 + r.below(4)), b * (even ? backward : 1 + r.below(4)), 0, 0, b});
  }
  return x;
}
/// The least makespan of all combinations of orders. `beaten`: some combination takes no longer than `than`, and keeps no more samples in
/// flight in any stage and fewer in one.
double exhaustive(instance const& x, simulation::pipeline_run const* than = nullptr, bool* beaten = nullptr) {
  std::size_t const n = x.p.stages.size();
  std::vector<std::vector<std::vector<pass_entry>>> all;
  for (std::size_t s = 0; s < n; ++s) all.push_back(all_orders(static_cast<int>(s), x.p.micro_batches(static_cast<int>(s))));
  simulation::pipeline_simulator run(x.p, x.e, x.c);
  std::vector<std::size_t> pick(n, 0);
  std::vector<std::vector<pass_entry>> o(n);
  double least = 1e300;
  for (;;) {
    for (std::size_t s = 0; s < n; ++s) o[s] = all[s][pick[s]];
    if (auto const* r = run.attempt(o)) {
      least = std::min(least, r->makespan);
      if (than && r->makespan <= than->makespan && r->in_flight != than->in_flight) {
        bool fewer = true;
        for (std::size_t s = 0; s < n; ++s) fewer = fewer && r->in_flight[s] <= than->in_flight[s];
        *beaten = *beaten || fewer;
      }
    }
    std::size_t s = 0;
    while (s < n && ++pick[s] == all[s].size()) pick[s++] = 0;
    if (s == n) return least;
  }
}

}  // namespace

TEST_CASE("Theorem 3.1 for one stage: least running time, and least in flight for it, of all orders, given those below") {
  for (u64 seed = 0; seed < static_cast<u64>(test_effort::cases(3000)); ++seed) {
    instance x = random_instance(seed * 1000003, 4, false);
    x.p = greedy_schedule(x.p, x.e, x.c);
    for (int s = 0; s < static_cast<int>(x.e.size()); ++s) {
      below const b(x.p, x.e, x.c, s);
      simulation::pipeline_simulator run(b.p, b.e, b.c);
      simulation::pipeline_run const got = run.run(b.p.schedule);
      double least = 1e300;
      i64 in_flight = 0;
      auto order = b.p.schedule;
      for (auto const& o : all_orders(0, b.p.micro_batches(0))) {
        order[0] = o;
        auto const* r = run.attempt(order);
        if (!r || r->last[0] > least) continue;
        in_flight = r->last[0] < least ? r->in_flight[0] : std::min(in_flight, r->in_flight[0]);
        least = r->last[0];
      }
      if (got.last[0] != least || got.in_flight[0] != in_flight)
        FAIL("seed ", seed, " stage ", s, ": ", got.last[0], " with ", got.in_flight[0], ", possible ", least, " with ", in_flight, "; ",
             x.text());
    }
  }
}

TEST_CASE("up to three stages in which a sample takes equally long: greedy is as fast as any, and none so fast keeps fewer in flight") {
  for (u64 seed = 0; seed < static_cast<u64>(test_effort::cases(4000)); ++seed) {
    instance x = random_instance(seed * 7368787 + 5, 3, true);
    simulation::pipeline_run const got = simulate_pipeline(greedy_schedule(x.p, x.e, x.c), x.e, x.c);
    bool beaten = false;
    double const least = exhaustive(x, &got, &beaten);
    if (got.makespan != least || beaten) FAIL("seed ", seed, ": ", got.makespan, ", possible ", least, ", beaten ", beaten, "; ", x.text());
  }
}

TEST_CASE("Theorem 3.1 does not hold for whole pipelines of uneven stages: a chain, and a skip connection where 1F1B is faster") {
  instance chain{passes::chain_of_stages(3), tests::chain_pipeline(3, 3, 4), {{{4, 4}, {2, 4}, {2, 3}}, {}, 0}};
  CHECK(simulate_pipeline(greedy_schedule(chain.p, chain.e, chain.c), chain.e, chain.c).makespan == 36);
  CHECK(exhaustive(chain) == 35);
  instance skip{{{}, {0}, {0, 1}}, tests::chain_pipeline(3, 3, 4), {{{3, 2}, {4, 1}, {1, 2}}, {}, 0}};
  CHECK(simulate_pipeline(greedy_schedule(skip.p, skip.e, skip.c), skip.e, skip.c).makespan == 28);
  CHECK(simulate_pipeline(one_f_one_b(skip.p, skip.e), skip.e, skip.c).makespan == 27);
  CHECK(exhaustive(skip) == 27);
  CHECK(simulate_pipeline(refined_greedy(skip.p, skip.e, skip.c), skip.e, skip.c).makespan == 27);
}

TEST_CASE("refined: as fast as any in nearly all small cases of uneven stages") {
  int cases = 0, slower = 0, greedy_slower = 0;
  for (u64 seed = 0; seed < static_cast<u64>(test_effort::cases(3000)); ++seed) {
    instance x = random_instance(seed * 15485863 + 11, 3, false);
    double const least = exhaustive(x), got = simulate_pipeline(refined_greedy(x.p, x.e, x.c), x.e, x.c).makespan;
    REQUIRE(got >= least);
    ++cases;
    slower += got > least;
    greedy_slower += simulate_pipeline(greedy_schedule(x.p, x.e, x.c), x.e, x.c).makespan > least;
  }
  MESSAGE(slower << " of " << cases << " slower than possible; Algorithm 4 alone: " << greedy_slower);
  CHECK(slower * 200 <= cases);
  CHECK(slower <= greedy_slower);
}

TEST_CASE("five even stages of mixed micro-batch sizes where kFkB is faster than Algorithm 4") {
  instance x{{{}, {}, {0, 1}, {0, 2}, {0, 1, 2, 3}}, tests::chain_pipeline(5, 5, 24), {}};
  i64 const sizes[] = {2, 1, 4, 2, 1};
  int const ks[] = {1, 3, 2, 3, 3};
  for (std::size_t s = 0; s < 5; ++s) {
    x.p.stages[s].micro_batch = sizes[s];
    x.p.stages[s].k = ks[s];
    x.c.stages.push_back({3.0 * static_cast<double>(sizes[s]), static_cast<double>(sizes[s]), 0, 0, 1});
  }
  auto const seconds = [&](pipeline const& q) { return simulate_pipeline(q, x.e, x.c).makespan; };
  CHECK(seconds(greedy_schedule(x.p, x.e, x.c)) == 140);
  CHECK(seconds(k_f_k_b(x.p, x.e, in_flight_samples(x.p, x.e, in_flight_grouped))) == 136);
  CHECK(seconds(refined_greedy(x.p, x.e, x.c)) <= 136);
}

TEST_CASE("never worse than 1F1B or kFkB: refined on any stages, Algorithm 4 on even ones of one micro-batch size") {
  for (u64 seed = 0; seed < static_cast<u64>(test_effort::cases(300)); ++seed) {
    tests::random_source r{seed * 32452843};
    auto const e = tests::random_dag(r, 1 + r.below(7), 40, false);
    pipeline p = tests::mixed_pipeline(e, r, 24);
    for (auto& s : p.stages) s.k = 1 + r.below(4);
    auto c = tests::mixed_costs(p, r, e);
    bool const even = r.chance(50);
    if (even) {
      for (auto& s : p.stages) s.micro_batch = p.stages[0].micro_batch;
      double const f = 1 + r.below(3), b = 1 + r.below(3);
      for (std::size_t s = 0; s < p.stages.size(); ++s)
        c.stages[s] = {f * static_cast<double>(p.stages[s].micro_batch), b * static_cast<double>(p.stages[s].micro_batch), 0, 0, 1};
      c.transfers.clear();
    }
    auto const seconds = [&](pipeline const& q) { return simulate_pipeline(q, e, c).makespan; };
    pipeline const refined = refined_greedy(p, e, c), plain = greedy_schedule(p, e, c);
    for (pipeline const* q : {&refined, &plain})
      for (auto const& f : check_orders(*q, e)) FAIL("seed ", seed, ": ", f.text);
    for (pipeline const& other : {one_f_one_b(p, e), k_f_k_b(p, e, in_flight_samples(p, e, in_flight)),
                                  k_f_k_b(p, e, in_flight_samples(p, e, in_flight_grouped))}) {
      double const by_other = seconds(other);
      if (seconds(refined) > by_other) FAIL("seed ", seed, ": refined ", seconds(refined), ", other ", by_other, "; ", tests::text(other));
      if (even && seconds(plain) > by_other)
        FAIL("seed ", seed, ": greedy ", seconds(plain), ", other ", by_other, "; ", tests::text(other));
    }
  }
}

TEST_CASE("a chain of even stages: 1F1B; split stages keep their weights passes") {
  auto const e = passes::chain_of_stages(4);
  auto p = tests::chain_pipeline(4, 4, 8);
  auto const c = tests::even_costs(4, 1, 2, 1);
  CHECK(greedy_schedule(p, e, c).schedule == one_f_one_b(p, e).schedule);
  p.stages[1].split_backward = true;
  CHECK(check_orders(greedy_schedule(p, e, c), e).empty());
  CHECK(check_orders(refined_greedy(p, e, c), e).empty());
  CHECK_THROWS_AS(greedy_schedule(tests::chain_pipeline(4, 2, 8), e, c), error);
}
