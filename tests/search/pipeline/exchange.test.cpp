// tests/search/pipeline/exchange.test.cpp - annealing over nested downsets against all of them; the shortlist is settled by simulation
#include "stage_oracle.hpp"
#include "support/effort.hpp"
#include <doctest/doctest.h>
#include <tensorpar/peers/optima/lines.hpp>
#include <tensorpar/search/pipeline/exchange.hpp>
#include <tensorpar/search/pipeline/step_times.hpp>

using namespace tests;
using namespace tensorpar::search;
using namespace tensorpar;
using search::detail::found_stage;

namespace {

std::vector<found_stage> cut_line(lists const& g, int stages, i64 micro_batch) {
  std::vector<int> const line = graph::topological_order(g);
  std::vector<found_stage> r;
  int const n = static_cast<int>(line.size());
  for (int s = 0; s < stages; ++s) {
    found_stage f;
    f.choice.micro_batch = micro_batch;
    f.first = s;
    f.nodes.assign(line.begin() + s * n / stages, line.begin() + (s + 1) * n / stages);
    std::sort(f.nodes.begin(), f.nodes.end());
    r.push_back(std::move(f));
  }
  return r;
}

/// The least bottleneck of all ways to give operators to a sequence of stages that no edge runs against.
double min_of_all(lists const& g, additive_stages const& m, std::vector<found_stage> stages) {
  std::vector<int> const line = graph::topological_order(g);
  std::vector<int> at(g.size(), 0);
  double best = 1e300;
  std::function<void(std::size_t)> go = [&](std::size_t i) {
    if (i == line.size()) {
      for (found_stage& s : stages) s.nodes.clear();
      for (std::size_t v = 0; v < g.size(); ++v) stages[static_cast<std::size_t>(at[v])].nodes.push_back(static_cast<int>(v));
      std::vector<found_stage> some = stages;
      std::erase_if(some, [](found_stage const& s) { return s.nodes.empty(); });
      best = std::min(best, cost_of(m, some).bottleneck);
      return;
    }
    std::size_t const v = static_cast<std::size_t>(line[i]);
    int low = 0;
    for (int u : g[v]) low = std::max(low, at[static_cast<std::size_t>(u)]);
    for (at[v] = low; at[v] < static_cast<int>(stages.size()); ++at[v]) go(i + 1);
  };
  go(0);
  return best;
}

}  // namespace

TEST_CASE("exchange: partitions stay partitions, get no slower, and are the least there is on nearly all small graphs") {
  random_source r{11};
  int least = 0, rounds = test_effort::cases(200);
  for (int round = 0; round < rounds; ++round) {
    stage_problem_options o;
    o.devices = 2 + r.below(2);
    o.unequal = r.chance(30);
    stage_problem const p = random_stage_problem(r, random_dag(r, o.devices + r.below(5), 40), o);
    CAPTURE(p.text);
    graph::adjacency const a(p.graph);
    auto const from = cut_line(p.graph, o.devices, 2);
    double const before = cost_of(p.model, from).bottleneck, best = min_of_all(p.graph, p.model, from);
    auto const once = search::detail::stage_exchange<additive_stages>(a, p.model, from).run(4000, 1),
               again = search::detail::stage_exchange<additive_stages>(a, p.model, from).run(4000, 1);
    double const after = cost_of(p.model, once).bottleneck;  // throws unless every operator is in one stage and stages are in order
    CHECK(after <= before * (1 + 1e-9));
    CHECK(after >= best * (1 - 1e-9));
    REQUIRE(once.size() == again.size());
    for (std::size_t s = 0; s < once.size(); ++s) {
      CHECK(once[s].nodes == again[s].nodes);
      CHECK(!once[s].nodes.empty());
      CHECK(once[s].first == again[s].first);
    }
    least += after <= best * (1 + 1e-9);
  }
  CHECK(least >= rounds * 9 / 10);
}

TEST_CASE("exchange: one stage and no steps change nothing") {
  lists const g{{}, {0}, {1}};
  additive_stages const m(std::vector<operator_numbers>(3, {1, 1, 0, 0, 0, 0, 1, 0}), tensors_of(g, {1, 1, 1}), stage_devices::equal(3),
                          {4, 2, 1, 1, false, false});
  graph::adjacency const a(g);
  CHECK(search::detail::stage_exchange<additive_stages>(a, m, cut_line(g, 1, 1)).run(100, 1).front().nodes == std::vector<int>{0, 1, 2});
  CHECK(search::detail::stage_exchange<additive_stages>(a, m, cut_line(g, 3, 1)).run(0, 1)[1].nodes == std::vector<int>{1});
  CHECK(search::detail::one_device_each(m, {0, 1, 2}, {}).size() == 3);
}

TEST_CASE("of the shortlist the pipeline with the least simulated step is taken") {
  random_source r{12};
  int other = 0;
  for (int round = 0; round < test_effort::cases(60); ++round) {
    stage_problem_options q;
    q.devices = 4;
    q.mini_batch = 16;
    stage_problem const p = random_stage_problem(r, random_dag(r, 8 + r.below(6), 25), q);
    CAPTURE(p.text);
    search::detail::best_stages best(stage_objective::iteration, 16);
    double least = 1e300, first = 0;
    for (int stages : {4, 3, 2, 1})
      for (i64 b : {1, 2, 4}) {
        search::detail::priced_stages x{cut_line(p.graph, stages, b), {}};
        x.cost = cost_of(p.model, x.stages);
        best.offer(x, stage_source::line, 0);
      }
    REQUIRE(best.shortlist.size() == 8);
    for (std::size_t i = 0; i < best.shortlist.size(); ++i) {
      if (i > 0) CHECK(best.shortlist[i].pipeline.cost.iteration >= best.shortlist[i - 1].pipeline.cost.iteration);
      stage_result s;
      search::detail::write_pipeline(p.model, best.shortlist[i].pipeline, false, s);
      double const t = simulated_step(s);
      if (i == 0) first = t;
      least = std::min(least, t);
    }
    search::detail::settle(p.model, best, false);
    stage_result s;
    search::detail::write_pipeline(p.model, *best.best, false, s);
    CHECK(simulated_step(s) == doctest::Approx(least).epsilon(1e-9));
    other += least < first * (1 - 1e-9);
  }
  CHECK((test_effort::slow || other > 0));
}
