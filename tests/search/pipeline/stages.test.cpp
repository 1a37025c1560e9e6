// tests/search/pipeline/stages.test.cpp - the stage partitioner against every partition of small graphs
#include "stage_oracle.hpp"
#include "support/effort.hpp"
#include <bit>
#include <doctest/doctest.h>
#include <tensorpar/graph/convexity.hpp>
#include <tensorpar/peers/optima/lines.hpp>
#include <tensorpar/search/pipeline/stage_options.hpp>
#include <tensorpar/search/pipeline/stages.hpp>
#include <tensorpar/search/pipeline/stages/decision_state.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tensorpar::peers;
using namespace tests;

namespace {

double bottleneck(stage_result const& r) { return r.feasible() ? r.cost.bottleneck : no_pipeline; }

/// Everything that a result promises about itself; returns what is wrong.
std::string wrong(lists const& g, additive_stages const& m, stage_result const& r) {
  if (!r.feasible()) return r.infeasible->lacks > 0 ? "" : "infeasible, but nothing is lacking";
  std::vector<int> seen(g.size(), 0), used(static_cast<std::size_t>(m.devices()), 0);
  std::vector<unsigned> bits;
  if (r.pipeline.stages.size() != r.choices.size()) return "choices are not those of the stages";
  for (std::size_t s = 0; s < r.choices.size(); ++s) {
    pipeline_stage const& x = r.pipeline.stages[s];
    if (!graph::is_convex(g, x.nodes)) return "a stage is not convex";
    for (int v : x.nodes) ++seen[static_cast<std::size_t>(v)];
    device_range const& d = r.pipeline.groups[static_cast<std::size_t>(x.group)];
    if (d.count != r.choices[s].devices() || d.first < 0 || d.first + d.count > m.devices()) return "a group is not what its stage chose";
    for (int i = d.first; i < d.first + d.count; ++i) ++used[static_cast<std::size_t>(i)];
    if (m.uniform() && d.first % d.count) return "a group of equal devices is not aligned";
    if (x.micro_batch != r.choices[s].micro_batch || x.k != r.choices[s].k) return "batching differs";
    if (g.size() < 32) {
      bits.push_back(0);
      for (int v : x.nodes) bits.back() |= 1u << v;
      double const time = oracle_work(m, {bits.back(), r.choices[s], d.first}).per_sample(x.micro_batch, m.mini_batch());
      if (time > r.cost.bottleneck * (1 + 1e-9)) return "a stage is slower than the bottleneck";
    }
    if (r.cost.bytes[s] > m.capacity(d.first, d.count)) return "a stage does not fit";
  }
  for (int n : seen)
    if (n != 1) return "an operator is not in exactly one stage";
  for (int n : used)
    if (n > 1) return "a device has two stages";
  if (r.bound > r.cost.bottleneck * (1 + 1e-9) || r.family_bound > r.cost.bottleneck * (1 + 1e-9)) return "a bound above the answer";
  if (r.cost.iteration < r.cost.bottleneck * static_cast<double>(m.mini_batch()) * (1 - 1e-9))
    return "an iteration faster than its bottleneck";
  return "";
}

stage_options exact() {
  stage_options o;
  o.objective = stage_objective::bottleneck;
  o.tolerance = 0;
  return o;
}

}  // namespace

TEST_CASE("stages: equals the least over all convex partitions, device counts and micro-batch sizes on small graphs") {
  random_source r{1};
  int feasible = 0, tight = 0;
  for (int round = 0; round < test_effort::cases(600); ++round) {
    stage_problem_options q;
    q.devices = 1 + r.below(4);
    q.tight = round % 2 == 1;
    q.mini_batch = 4;
    q.recompute = round % 7 == 0;
    q.shard_optimizer = round % 5 == 0;
    stage_problem const p = random_stage_problem(r, random_dag(r, 1 + r.below(5), 20 + r.below(60)), q);
    stage_options o = exact();
    o.micro_batches = {1 << (round % 2), 4};
    double const least = oracle_least(p, set_partitions(static_cast<int>(p.graph.size())), o.micro_batches);
    stage_result const found = find_stages(p.graph, p.model, o);
    INFO(round, ": ", p.text);
    REQUIRE(wrong(p.graph, p.model, found) == "");
    REQUIRE(found.every_partition);
    REQUIRE(bottleneck(found) == doctest::Approx(least).epsilon(1e-9));
    if (found.feasible()) CHECK(found.family_bound == doctest::Approx(least).epsilon(1e-8));
    feasible += found.feasible();
    tight += !found.feasible();
  }
  CHECK(feasible > test_effort::cases(600) / 2);
  CHECK((test_effort::slow || tight > 0));
}

TEST_CASE("stages: with kFkB the least over batchings too") {
  random_source r{2};
  for (int round = 0; round < test_effort::cases(60); ++round) {
    stage_problem_options q;
    q.devices = 3;
    q.tight = true;
    stage_problem const p = random_stage_problem(r, random_dag(r, 2 + r.below(3), 50), q);
    stage_options o = exact();
    o.micro_batches = {1, 2};
    o.ks = {1, 2};
    double const least = oracle_least(p, set_partitions(static_cast<int>(p.graph.size())), o.micro_batches, o.ks);
    stage_result const found = find_stages(p.graph, p.model, o);
    INFO(round, ": ", p.text);
    REQUIRE(wrong(p.graph, p.model, found) == "");
    REQUIRE(bottleneck(found) == doctest::Approx(least).epsilon(1e-9));
  }
}

TEST_CASE("stages: on devices of several kinds, stages take neighbouring devices in a topological order") {
  random_source r{3};
  for (int round = 0; round < test_effort::cases(150); ++round) {
    stage_problem_options q;
    q.devices = 2 + r.below(3);
    q.tight = round % 2 == 1;
    q.unequal = true;
    stage_problem const p = random_stage_problem(r, random_dag(r, 1 + r.below(4), 50), q);
    stage_options o = exact();
    o.micro_batches = {2, 4};
    double const least = oracle_least(p, set_partitions(static_cast<int>(p.graph.size())), o.micro_batches);
    stage_result const found = find_stages(p.graph, p.model, o);
    INFO(round, ": ", p.text);
    REQUIRE(wrong(p.graph, p.model, found) == "");
    REQUIRE(bottleneck(found) == doctest::Approx(least).epsilon(1e-9));
  }
}

TEST_CASE("stages: the tree's family is searched exactly: joins with ends of branches, groups of branches, recursion") {
  random_source r{4};
  int joined = 0, differs = 0;
  for (int round = 0; round < test_effort::cases(400); ++round) {
    int const n = 2 + r.below(5);
    graph::sp_tree const t = random_sp_tree(r, n);
    stage_problem_options q;
    q.devices = 1 + r.below(4);
    q.tight = round % 2 == 1;
    q.alike = round % 3 == 0 ? 30 : 100;  // equal branches are solved once
    q.max_tensor = round % 4 == 0 ? 2 : 1;
    stage_problem const p = random_stage_problem(r, graph_of(t, n, &r, 30), q);
    stage_options o = exact();
    o.line = false;
    o.max_up_sets = 0;
    o.mixed = false;
    o.exchanges = o.max_downsets = 0;
    o.micro_batches = {2};
    double const most = oracle_least(p, tree_partitions(t).all(), o.micro_batches),
                 least = oracle_least(p, tree_partitions(t, true).all(), o.micro_batches);
    stage_result const found = find_stages(p.graph, p.model, o);
    INFO(round, ": ", p.text, " tree ", graph::to_string(t));
    REQUIRE(found.added == 0);
    REQUIRE(wrong(p.graph, p.model, found) == "");
    REQUIRE(bottleneck(found) <= most * (1 + 1e-9));
    REQUIRE(bottleneck(found) >= least * (1 - 1e-9));
    differs += least < most * (1 - 1e-9);
    if (found.feasible()) REQUIRE(found.family_bound == doctest::Approx(found.cost.bottleneck).epsilon(1e-8));
    for (pipeline_stage const& s : found.pipeline.stages) {
      unsigned bits = 0;
      for (int v : s.nodes) bits |= 1u << v;
      joined += std::popcount(bits) > 1 && found.pipeline.stages.size() > 1;
    }
  }
  CHECK((test_effort::slow || joined > 0));
  CHECK(differs < test_effort::cases(400) / 10);  // nearly always both are one number, and the search's
}

TEST_CASE("stages: the line is PipeDream's space") {
  random_source r{5};
  for (int round = 0; round < test_effort::cases(200); ++round) {
    int const n = 2 + r.below(5);
    stage_problem_options q;
    q.devices = 1 + r.below(4);
    q.tight = round % 2 == 1;
    lists chain(at(n));
    for (int v = 1; v < n; ++v) chain[at(v)].push_back(v - 1);
    stage_problem const p = random_stage_problem(r, chain, q);
    std::vector<std::vector<unsigned>> cuts;
    for (unsigned c = 0; c < 1u << (n - 1); ++c) {
      cuts.push_back({1});
      for (int v = 1; v < n; ++v) {
        if (c >> (v - 1) & 1) cuts.back().push_back(0);
        cuts.back().back() |= 1u << v;
      }
    }
    double least = no_pipeline;
    for (i64 b : {1, 2, 4}) least = std::min(least, oracle_least(p, cuts, {b}));
    stage_result const found = pipedream_stages(p.graph, p.model, exact());
    INFO(round, ": ", p.text);
    REQUIRE(wrong(p.graph, p.model, found) == "");
    REQUIRE(bottleneck(found) == doctest::Approx(least).epsilon(1e-9));
  }
}

TEST_CASE("stages: never worse than the sequential pipelines, above the bound, the same twice, any graph") {
  random_source r{6};
  int better = 0, relaxed = 0;
  for (int round = 0; round < test_effort::cases(60); ++round) {
    int const n = 8 + r.below(20);
    stage_problem_options q;
    q.devices = 2 + r.below(7);
    q.mini_batch = 16;
    q.tight = round % 4 == 3;
    q.unequal = round % 5 == 4 && n < 14;
    q.alike = 40;
    lists g = round % 2 ? random_dag(r, n, 15) : graph_of(random_sp_tree(r, n), n);
    stage_problem const p = random_stage_problem(r, g, q);
    stage_options o;
    o.objective = stage_objective::bottleneck;
    o.max_downsets = 4096;  // tests/peers/optima/piper_stages has that family
    stage_result const found = find_stages(p.graph, p.model, o), again = find_stages(p.graph, p.model, o);
    INFO(round, ": ", p.text);
    REQUIRE(wrong(p.graph, p.model, found) == "");
    CHECK(found.pipeline == again.pipeline);
    CHECK(found.cost.bottleneck == again.cost.bottleneck);
    stage_result const line = pipedream_stages(p.graph, p.model, o), equal = uniform_stages(p.graph, p.model, o);
    REQUIRE(wrong(p.graph, p.model, line) == "");
    REQUIRE(wrong(p.graph, p.model, equal) == "");
    if (line.feasible()) {
      REQUIRE(found.feasible());
      CHECK(found.cost.bottleneck <= line.cost.bottleneck * (1 + 2 * o.tolerance));
      better += found.cost.bottleneck < line.cost.bottleneck * 0.999;
    }
    relaxed += found.added > 0;
    o.objective = stage_objective::iteration;
    stage_result const fast = find_stages(p.graph, p.model, o);
    REQUIRE(wrong(p.graph, p.model, fast) == "");
    if (fast.feasible() && found.feasible()) CHECK(fast.cost.bottleneck >= found.cost.bottleneck * (1 - 2e-4));
    stage_result const walked = pipedream_stages(p.graph, p.model, o);
    if (walked.feasible()) {
      REQUIRE(fast.feasible());
      CHECK(simulated_step(fast) <= simulated_step(walked) * (1 + 1e-9));
    }
    o.objective = stage_objective::thesis;
    REQUIRE(wrong(p.graph, p.model, find_stages(p.graph, p.model, o)) == "");
    REQUIRE(wrong(p.graph, p.model, pipedream_stages(p.graph, p.model, o)) == "");
  }
  CHECK((test_effort::slow || better > 0));
  CHECK((test_effort::slow || relaxed > 0));
}

TEST_CASE("stages: what cannot fit says which device lacks how much") {
  // one operator with more parameters than a device has memory: 2 parameters' bytes with gradients, 2 of state, and what a sample keeps
  additive_stages const m({{1, 1, 0, 0, 0, 100, 8, 0}}, {}, stage_devices::equal(2, 300), {4, 2, 1 << 20, 1, false, false});
  stage_result const r = find_stages(lists{{}}, m);
  REQUIRE(!r.feasible());
  CHECK(r.pipeline.empty());
  CHECK(r.infeasible->lacks == doctest::Approx(400 + 8 - 300));
  // two of them on two devices fit if memory suffices for one each
  additive_stages const two({{1, 1, 0, 0, 0, 100, 8, 0}, {1, 1, 0, 0, 0, 100, 8, 0}}, tensors_of(lists{{}, {0}}, {1, 1}),
                            stage_devices::equal(2, 420), {4, 2, 1 << 20, 1, false, false});
  stage_result const fits = find_stages(lists{{}, {0}}, two);
  REQUIRE(fits.feasible());
  CHECK(fits.pipeline.stages.size() == 2);
  CHECK(fits.cost.in_flight == std::vector<i64>{2, 1});
}

TEST_CASE("stages: branches that nobody orders run at once: half the depth") {
  // two branches of four operators and a small join, eight devices: the case study's shape
  lists g(9);
  std::vector<operator_numbers> ops(9, operator_numbers{1, 1, 1, 0, 0, 8, 1, 0});
  ops[8] = {0.01, 0.01, 0, 0, 0, 0, 1, 0};
  for (int b = 0; b < 2; ++b)
    for (int l = 1; l < 4; ++l) g[at(4 * b + l)].push_back(4 * b + l - 1);
  g[8] = {3, 7};
  auto const model = [&](int max_data) {
    return additive_stages(ops, tensors_of(g, std::vector<double>(9, 0)), stage_devices::equal(8), {32, 2, max_data, 1, false, false});
  };
  stage_options o;
  o.objective = stage_objective::bottleneck;
  o.micro_batches = {2};
  o.max_up_sets = 0;
  // one device to a stage: the join must wait for the branch that it does not end, so the longest path has one stage more than a branch
  stage_result const graph = find_stages(g, model(1), o), line = pipedream_stages(g, model(1), o);
  CHECK(graph.cost.bottleneck == doctest::Approx(3.02));
  CHECK(graph.cost.bottleneck == doctest::Approx(line.cost.bottleneck));
  CHECK(graph.pipeline.stages.size() == 8);
  CHECK(graph.cost.depth == 5);
  CHECK(line.cost.depth == 8);
  CHECK(graph.cost.source_in_flight == 10);
  CHECK(line.cost.source_in_flight == 16);
  CHECK(graph.cost.iteration < line.cost.iteration);
  // two devices to a stage: both ends and the join are one stage
  stage_result const pairs = find_stages(g, model(2), o), line_pairs = pipedream_stages(g, model(2), o);
  CHECK(pairs.cost.bottleneck == doctest::Approx(3.01));
  CHECK(pairs.cost.depth == 3);
  CHECK(line_pairs.cost.bottleneck == doctest::Approx(3.01));
  CHECK(line_pairs.cost.depth == 4);
}

TEST_CASE("stages: small branches share devices") {
  // seven equal branches and a join on four devices: two branches to a device, one with the join
  lists g(8);
  std::vector<operator_numbers> ops(8, operator_numbers{1, 1, 1, 0, 0, 8, 1, 0});
  ops[7] = {1, 1, 0.5, 0, 0, 0, 1, 0};
  for (int b = 0; b < 7; ++b) g[7].push_back(b);
  additive_stages const m(ops, tensors_of(g, std::vector<double>(8, 0)), stage_devices::equal(4), {32, 2, 1, 1, false, false});
  stage_options o;
  o.objective = stage_objective::bottleneck;
  o.max_up_sets = 0;
  o.micro_batches = {1};
  stage_result const r = find_stages(g, m, o);
  CHECK(r.cost.bottleneck == doctest::Approx(6));
  CHECK(r.cost.depth == 2);
}

TEST_CASE("stages: wrong arguments are refused in words") {
  additive_stages const m({{1, 1, 0, 0, 0, 0, 1, 0}}, {}, stage_devices::equal(2), {4, 2, 1 << 20, 1, false, false});
  stage_options o;
  o.micro_batches = {3};
  CHECK_THROWS_WITH_AS(find_stages(lists{{}}, m, o), doctest::Contains("micro-batches of 3 samples"), error);
  CHECK_THROWS_WITH_AS(find_stages(lists{{}, {}}, m), doctest::Contains("2 nodes"), error);
  CHECK_THROWS_WITH_AS(additive_stages({}, {}, stage_devices::equal(1), {}), doctest::Contains("no operators"), error);
  CHECK_THROWS_WITH_AS(additive_stages({{-1}}, {}, stage_devices::equal(1), {}), doctest::Contains("negative"), error);
  CHECK_THROWS_WITH_AS(additive_stages({{1}}, {{5, 1, {0}}}, stage_devices::equal(1), {}), doctest::Contains("no such operator"), error);
}
