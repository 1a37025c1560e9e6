// tests/simulate/pipeline.test.cpp - pipelines timed by hand, and random ones against longest paths
#include <tensorpar/simulate/pipeline.hpp>
#include <doctest/doctest.h>

#include <cmath>
#include <tensorpar/search/pipeline/schedules/zero_bubble.hpp>
#include "support/effort.hpp"
#include "support/pipelines.hpp"
#include "support/shrink.hpp"

using namespace tensorpar;
using namespace tensorpar::search;
using tests::at;

namespace {

constexpr pass F = pass::forward, B = pass::backward, W = pass::weights;

/// Longest paths by relaxation until nothing changes: end of every pass, by group and place in its order.
std::vector<std::vector<double>> relaxed(pipeline const& p, passes::stage_edges const& e, simulation::pipeline_costs const& c) {
  std::vector<std::vector<double>> end(p.schedule.size());
  for (std::size_t g = 0; g < p.schedule.size(); ++g) end[g].assign(p.schedule[g].size(), 0);
  auto const seconds = [&](pass_entry const& x) {
    simulation::stage_seconds const& s = c.stages[at(x.stage)];
    bool const split = p.stages[at(x.stage)].split_backward;
    return x.what == F ? s.forward : x.what == W ? s.weights : s.backward + (split ? 0 : s.weights);
  };
  auto const delay = [&](int from, int to, pass w) {
    for (auto const& t : c.transfers)
      if (t.from == from && t.to == to) return w == F ? t.forward : t.backward;
    return 0.0;
  };
  auto const meet = [&](pass_entry const& a, pass_entry const& b) {   // do two micro-batches share a sample?
    i64 const x = p.stages[at(a.stage)].micro_batch, y = p.stages[at(b.stage)].micro_batch;
    return a.micro_batch * x < (b.micro_batch + 1) * y && b.micro_batch * y < (a.micro_batch + 1) * x;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t g = 0; g < p.schedule.size(); ++g)
      for (std::size_t i = 0; i < p.schedule[g].size(); ++i) {
        pass_entry const& x = p.schedule[g][i];
        double start = i == 0 ? 0 : end[g][i - 1];
        for (std::size_t h = 0; h < p.schedule.size(); ++h)
          for (std::size_t j = 0; j < p.schedule[h].size(); ++j) {
            pass_entry const& y = p.schedule[h][j];
            if (y.what != x.what || x.what == W || !meet(x, y)) continue;
            for (int u : e[at(x.what == F ? x.stage : y.stage)])
              if (u == (x.what == F ? y.stage : x.stage))
                start = std::max(start, end[h][j] + (x.what == F ? delay(y.stage, x.stage, F) : delay(x.stage, y.stage, B)));
          }
        double const t = start + seconds(x);
        if (t > end[g][i]) {
          end[g][i] = t;
          changed = true;
        }
      }
  }
  return end;
}

std::string complaint(pipeline const& p, passes::stage_edges const& e, simulation::pipeline_costs const& c) {
  try {
    simulation::simulate_pipeline(p, e, c);
  } catch (error const& x) {
    return x.what();
  }
  return "";
}

}  // namespace

TEST_CASE("two stages, two micro-batches, by hand") {
  // group 0:  F0 0-2  F1 2-4         B0 8-12  B1 14-18
  // group 1:          F0 2-4  B0 4-8  F1 8-10  B1 10-14
  auto const e = passes::chain_of_stages(2);
  auto p = one_f_one_b(tests::chain_pipeline(2, 2, 2), e);
  auto const c = tests::even_costs(2, 2, 3, 1);
  auto const r = simulation::simulate_pipeline(p, e, c, true);
  CHECK(r.makespan == 18);
  REQUIRE(r.passes[0].size() == 4);
  auto const ends = [&](int g) {
    std::vector<double> t;
    for (auto const& x : r.passes[at(g)]) { t.push_back(x.start); t.push_back(x.end); }
    return t;
  };
  CHECK(ends(0) == std::vector<double>{0, 2, 2, 4, 8, 12, 14, 18});
  CHECK(ends(1) == std::vector<double>{2, 4, 4, 8, 8, 10, 10, 14});
  CHECK(r.busy == std::vector<double>{12, 12});
  CHECK(r.idle(0) == 6);
  CHECK(r.bubble() == 6);
  CHECK(r.span() == 18);
  CHECK(r.span_bubble() == 6);
  CHECK(r.first == std::vector<double>{0, 2});
  CHECK(r.last == std::vector<double>{18, 14});
  CHECK(r.in_flight == std::vector<i64>{2, 1});
  CHECK(r.activations == std::vector<double>{2, 1});
}

TEST_CASE("updates come last and count as work, transfers delay and do not") {
  auto const e = passes::chain_of_stages(2);
  auto p = one_f_one_b(tests::chain_pipeline(2, 2, 1), e);
  auto c = tests::even_costs(2, 1, 1, 0);
  c.stages[1].update = 10;
  c.transfers = {{0, 1, 5, 7}};
  auto const r = simulation::simulate_pipeline(p, e, c, true);   // F 0-1, 5 on the way, F 6-7, B 7-8, update 8-18; 7 on the way, B 15-16
  CHECK(r.passes[0][1].start == 15);
  CHECK(r.last == std::vector<double>{16, 18});
  CHECK(r.makespan == 18);
  CHECK(r.busy == std::vector<double>{2, 12});
}

TEST_CASE("a stage waits once, when its first forward pass could start, and is not at work meanwhile") {
  auto const e = passes::chain_of_stages(2);
  auto const p = one_f_one_b(tests::chain_pipeline(2, 2, 2), e);
  auto c = tests::even_costs(2, 1, 1, 0);
  double const before = simulation::simulate_pipeline(p, e, c).makespan;
  c.stages[1].wait = 5;
  auto const r = simulation::simulate_pipeline(p, e, c, true);   // F 0-1 and 1-2 before; F 6-7, B 7-8
  CHECK(r.passes[1][0].start == 6);
  CHECK(r.passes[1][1].start == 7);
  CHECK(r.makespan == before + 5);
  CHECK(r.busy == std::vector<double>{4, 4});
  c.stages[1].wait = -1;
  CHECK_THROWS_WITH_AS(simulation::simulate_pipeline(p, e, c), doctest::Contains("wait of -1.0"), error);
}

TEST_CASE("what a split backward pass frees, and when") {
  auto p = tests::chain_pipeline(1, 1, 2);
  p.stages[0].split_backward = true;
  p.schedule = {{{0, F, 0}, {0, B, 0}, {0, F, 1}, {0, B, 1}, {0, W, 0}, {0, W, 1}}};
  auto const peak = [&](double freed) { return simulation::simulate_pipeline(p, {{}},
                                                                             tests::even_costs(1, 1, 1, 1, 8, freed)).activations[0]; };
  CHECK(peak(0) == 16);
  CHECK(peak(0.5) == 12);
  CHECK(peak(1) == 8);
  CHECK(simulation::simulate_pipeline(p, {{}}, tests::even_costs(1, 1, 1, 1)).in_flight[0] == 1);
}

TEST_CASE("larger micro-batches wait for all they hold, smaller ones for those that hold them") {
  auto p = tests::chain_pipeline(2, 2, 4);
  p.stages[0].micro_batch = 1;
  p.stages[1].micro_batch = 2;
  auto const e = passes::chain_of_stages(2);
  p.schedule = {{{0, F, 0}, {0, F, 1}, {0, F, 2}, {0, F, 3}, {0, B, 0}, {0, B, 1}, {0, B, 2}, {0, B, 3}},
             {{1, F, 0}, {1, B, 0}, {1, F, 1}, {1, B, 1}}};
  auto const r = simulation::simulate_pipeline(p, e, {{{1, 1, 0, 0, 1}, {2, 2, 0, 0, 2}}, {}, 0}, true);
  CHECK(r.passes[1][0].start == 2);
  CHECK(r.passes[1][2].start == 6);
  CHECK(r.passes[0][4].start == 6);
  CHECK(r.passes[0][6].start == 10);
  CHECK(r.makespan == 12);
  CHECK(r.in_flight == std::vector<i64>{4, 2});
}

TEST_CASE("random stages, sizes, costs and transfers: every pass ends where the longest path ends") {
  auto const holds = [&](tests::lists const& e, u64 seed) {
    tests::random_source r{seed};
    pipeline p = tests::mixed_pipeline(e, r);
    auto const c = tests::mixed_costs(p, r, e);
    int const kind = r.below(4);
    p = kind == 0 ? gpipe(p, e) : kind == 1 ? one_f_one_b(p, e) : kind == 2 ? zb_h1(p, e) : zb_h2(p, e);
    auto const run = simulation::simulate_pipeline(p, e, c, true);
    auto const want = relaxed(p, e, c);
    double last = 0;
    for (std::size_t g = 0; g < want.size(); ++g) {
      double busy = 0;
      for (std::size_t i = 0; i < want[g].size(); ++i) {
        if (run.passes[g][i].end != want[g][i]) return false;
        busy += run.passes[g][i].end - run.passes[g][i].start;
        last = std::max(last, want[g][i]);
      }
      if (busy != run.busy[g] || run.last[g] != want[g].back() || run.first[g] != run.passes[g][0].start) return false;
    }
    simulation::pipeline_simulator again(p, e, c);
    again.run(p.schedule);
    simulation::pipeline_run const* second = again.attempt(p.schedule);   // a simulator may be used again
    return run.makespan == last && second && second->makespan == last && second->activations == run.activations && second->passes.empty();
  };
  for (u64 seed = 0; seed < static_cast<u64>(test_effort::cases(400)); ++seed) {
    tests::random_source r{seed * 31337};
    auto const g = tests::random_dag(r, 1 + r.below(5), 45, false);
    if (!holds(g, seed)) FAIL("seed ", seed, ": ", tests::text(tests::shrink(g, [&](tests::lists const& h) { return !holds(h, seed); })));
  }
}

TEST_CASE("orders that are none are refused by name") {
  auto const e = passes::chain_of_stages(2);
  auto const good = one_f_one_b(tests::chain_pipeline(2, 2, 2), e);
  auto const c = tests::even_costs(2, 1, 1, 1);
  auto p = good;
  std::swap(p.schedule[0][0], p.schedule[0][1]);
  CHECK(complaint(p, e, c) ==
        "forward 1 of stage 0 (at order of group 0, entry 0); valid: micro-batches of each kind in ascending order, 2 of them");
  p = good;
  p.schedule[0][0].stage = 1;
  CHECK(complaint(p, e, c) == "forward 0 of stage 1 (at order of group 0, entry 0); valid: a stage of this group");
  p = good;
  p.schedule[0].push_back({0, W, 0});
  CHECK(complaint(p, e, c).find("weights 0 of stage 0 (at order of group 0, entry 4)") == 0);
  p = good;
  p.schedule[0] = {{0, B, 0}};
  CHECK(complaint(p, e, c).find("backward 0 of stage 0") == 0);
  p = good;
  p.schedule[0] = {{0, F, 0}, {0, B, 0}, {0, F, 1}, {0, B, 1}};
  p.schedule[1] = {{1, F, 0}, {1, F, 1}, {1, B, 0}, {1, B, 1}};
  CHECK(complaint(p, e, c).find("backward 0 of stage 0 waits for ever (at order of group 0, entry 1)") == 0);
  CHECK(simulation::pipeline_simulator(p, e, c).attempt(p.schedule) == nullptr);
  p.schedule.pop_back();
  CHECK(complaint(p, e, c).find("orders of 1 groups") == 0);
}

TEST_CASE("costs that are none are refused") {
  auto const e = passes::chain_of_stages(2);
  auto const p = one_f_one_b(tests::chain_pipeline(2, 2, 2), e);
  CHECK(complaint(p, e, tests::even_costs(1, 1, 1, 1)).find("costs of 1 stages") == 0);
  CHECK(complaint(p, e, tests::even_costs(2, -1, 1, 1)).find("forward of -1.0") == 0);
  CHECK(complaint(p, e, tests::even_costs(2, 1, std::nan(""), 1)).find("backward of ") == 0);
  CHECK(complaint(p, e, tests::even_costs(2, 1, 1, 1, 1, 1.5)).find("a share of 1.5") == 0);
  auto c = tests::even_costs(2, 1, 1, 1);
  c.transfers = {{0, 1, -1, 0}};
  CHECK(complaint(p, e, c).find("times of ") == 0);
  c.transfers = {{0, 1, 1, 1}, {1, 0, 1, 1}};
  CHECK(complaint(p, e, c).find("from stage 1 to stage 0 (at pipeline_costs.transfers[1])") == 0);
  CHECK(complaint({}, {}, {}) == "a mini-batch of 0 samples (at pipeline); valid: from 1 to 2^40");
}
