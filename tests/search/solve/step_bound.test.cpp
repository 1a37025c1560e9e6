// tests/search/solve/step_bound.test.cpp - no simulated step is below the bound, whatever overlaps
#include <doctest/doctest.h>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/ir/rebatch.hpp>
#include <tensorpar/search/solve/min_additions.hpp>
#include <tensorpar/search/solve/savings.hpp>
#include <tensorpar/search/solve/step_bound.hpp>
#include <tensorpar/simulate/engine.hpp>

#include "support/effort.hpp"
#include "support/small_gpt.hpp"
#include "task_sums.hpp"

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tensorpar::search_test;

namespace {

std::vector<char> all_but_loss(training_graph const& t) {
  std::vector<char> r(static_cast<std::size_t>(t.forward_nodes), 1);
  r.back() = 0;
  return r;
}
/// Links from slow to fast, of one level or of two with a lane each; devices that compute at full speed
/// meanwhile or not.
machine drawn(machine m, std::mt19937_64& g, bool link_lanes) {
  double const speeds[] = {1e7, 1e9, 1e10, 1e11}, shares[] = {0, 0.5, 0.8};
  double const speed = speeds[g() % 4], share = shares[g() % 3];
  for (link_level& l : m.links) { l.bandwidth = speed; l.latency = 1e-9; }
  if (link_lanes && m.size() > 2) {
    m.links = {{"near", 2, 1e-9, 3 * speed}, {"far", m.size(), 1e-9, speed}};
    m.lane_per_link = true;
  }
  for (device_kind& k : m.kinds) k.launch = 0, k.efficiency.while_communicating = share;
  return m;
}
double simulated_step(training_graph const& t, mapping_problem const& p, assignment const& a, machine const& on, int micro, int prefetch) {
  plan q;
  q.cluster = on;
  q.nodes = op_strategies(p, a);
  q.micro_batches = micro;
  q.prefetch = prefetch;
  planned_step const s = passes::memory_pass(t, q);
  return simulate(unroll(s.graph, s.plan), on, cost::analytical{}, {true, false}).seconds;
}
/// All assignments in sequence, or so many that are drawn.
template <class Visit> void each_assignment(mapping_problem const& p, double most, std::mt19937_64& g, Visit&& visit) {
  double all = 1;
  std::vector<std::vector<int>> first;
  for (int v = 0; v < p.operators(); ++v) {
    first.emplace_back();
    for (int i = 0; i < p.choices(v).count(); ++i)
      if (p.choices(v).shardings[static_cast<std::size_t>(i)].start == 0) first.back().push_back(i);
    all *= static_cast<double>(first.back().size());
  }
  if (all > most) {
    for (int k = 0; k < 60; ++k) visit(random_in_sequence(p, g), false);
    return;
  }
  std::vector<std::size_t> at(first.size(), 0);
  for (std::size_t v = 0; v < at.size();) {
    assignment a;
    for (std::size_t u = 0; u < at.size(); ++u) a.push_back(first[u][at[u]]);
    visit(a, true);
    for (v = 0; v < at.size() && ++at[v] == first[v].size(); ++v) at[v] = 0;
  }
}

}  // namespace

TEST_CASE("no step of any assignment in sequence is below the bound, and some come near it") {
  int instances = 0, exhaustive = 0, steps = 0, several = 0, lanes = 0;
  std::vector<double> gaps;
  for (u64 seed = 1; seed <= static_cast<u64>(test_effort::cases(500)); ++seed) {
    std::mt19937_64 g(seed);
    recipe r = random_recipe(seed, seed % 3 ? 3 : 6, seed % 5 ? 2 : 4);
    training_graph const t = r.build();
    machine const on = drawn(r.cluster(), g, seed % 10 == 0);
    cost::analytical const model;
    objective_options o{on.size(), 4, r.micro_batches};
    double const bound = step_bound_of(t, on, model, o, {}).seconds;
    mapping_problem const p = make_saving_problem(t, on, model, all_but_loss(t), {}, o);
    double least = infinity;
    bool whole = false;
    i64 devices = 1;
    each_assignment(p, 400, g, [&](assignment const& a, bool all) {
      whole = all;
      for (int prefetch : {0, 2}) {
        double const s = simulated_step(t, p, a, on, r.micro_batches, prefetch);
        ++steps;
        if (s >= least) continue;
        least = s;
        devices = 1;
        for (op_strategy const& n : op_strategies(p, a)) devices = std::max(devices, n.sharding.size());
      }
    });
    if (least < bound * (1 - 1e-9)) FAIL_CHECK("seed " << seed << ": a step of " << least << ", bound " << bound << ": " << r.text());
    ++instances;
    lanes += on.communication_lanes() > 1;
    exhaustive += whole;
    several += devices > 1;
    if (whole) gaps.push_back(1 - bound / least);
  }
  std::sort(gaps.begin(), gaps.end());
  MESSAGE(instances << " instances, " << exhaustive << " of them exhaustive, " << steps << " steps; the fastest is on several devices in " << several << "; gaps: median "
                    << gaps[gaps.size() / 2] << ", of three quarters below " << gaps[gaps.size() * 3 / 4]);
  CHECK(several > instances / 4);
  CHECK(lanes > instances / 30);
  CHECK(exhaustive > instances / 5);
  CHECK(gaps[gaps.size() / 2] < 0.01);
  CHECK(gaps[gaps.size() * 3 / 4] < 0.02);               // 0.06 without additions of gradients
}

TEST_CASE("nor is a step in which operators run side by side") {
  int apart = 0, lanes = 0;
  for (u64 seed = 1; seed <= static_cast<u64>(test_effort::cases(150)); ++seed) {
    std::mt19937_64 g(seed);
    recipe r = random_recipe(seed, 6, 4);
    training_graph const t = r.build();
    machine const on = drawn(r.cluster(), g, seed % 4 != 0);
    cost::analytical const model;
    objective_options o{1, 4, r.micro_batches};
    lanes += on.communication_lanes() > 1;
    double const bound = step_bound_of(t, on, model, o, {}).seconds;
    mapping_problem const p = make_problem(t, on, model, {}, o);
    for (int k = 0; k < 40; ++k) {
      assignment a;
      for (int v = 0; v < p.operators(); ++v) a.push_back(static_cast<int>(g() % static_cast<u64>(p.choices(v).count())));
      if (evaluator(p)(a).seconds == infinity) continue;                     // not of this space
      for (int v = 0; v < p.operators(); ++v) apart += p.choices(v).shardings[static_cast<std::size_t>(a[static_cast<std::size_t>(v)])].start > 0;
      double const s = simulated_step(t, p, a, on, r.micro_batches, k % 3);
      if (s < bound * (1 - 1e-9)) FAIL_CHECK("seed " << seed << ": a step of " << s << ", bound " << bound << ": " << r.text());
    }
  }
  CHECK(apart > test_effort::cases(100));
  CHECK(lanes > test_effort::cases(30));
}

TEST_CASE("seconds by lanes: computing and communicating count by their weights, cut parts compute") {
  machine const on = make_cluster("two", {"device", 1e9, 1e9, i64{1} << 30, 1e-6}, 2, 2, {"link", 2, 1e-6, 1e8}, {});
  cost::analytical const model;
  weighed_lanes<cost::analytical> const w{model, 0.5, 0.25};
  shape const s{dim(64), dim(64)};
  op::any_op const o = relu{};
  cost::compute_query const q{o, {&s, 1}, {&s, 1}, 4, on.kinds[0]};
  CHECK(w.seconds(q) == doctest::Approx(0.5 * model.seconds(q)));
  ir::layout const whole{0, {{ir::part_kind::replicate, -1, 2, 1}}}, parts{0, {{ir::part_kind::shard, 0, 2, 1}}};
  for (auto const& [from, to] : {std::pair{whole, parts}, std::pair{parts, whole}})
    for (ir::reshard_step const& m : ir::reshard(from, to, s)) {
      cost::reshard_query const x{m, s, 4, on};
      CHECK(w.seconds(x) == doctest::Approx((m.kind == ir::reshard_kind::slice ? 0.5 : 0.25) * model.seconds(x)));
    }
  CHECK(speed_while_communicating(on) == 1);
}

TEST_CASE("on one device the bound is the step: gradients of what several operators read, and of micro-batches, are added up") {
  machine on = logical(1);
  for (device_kind& k : on.kinds) k.launch = 1e-6;
  cost::analytical const model;
  training_problem const gpt = tests::small_gpt(12);
  for (int micro : {1, 3}) {
    training_graph const t = differentiate(ir::rebatch(gpt.graph, 12 / micro), {.optimizer = gpt.optimizer, .micro_batches = micro});
    objective_options const o{1, 4, micro};
    mapping_problem const p = make_problem(t, on, model, {}, o);
    double const step = simulated_step(t, p, assignment(static_cast<std::size_t>(p.operators()), 0), on, micro, 0);
    CHECK(step_bound_of(t, on, model, o, {}).seconds == doctest::Approx(step).epsilon(1e-8));
    choice_book<cost::analytical> book(on, model, o);
    book.start({});
    std::vector<int> const sets = search::detail::objective_builder<cost::analytical>(t, book).choose();
    double const additions = min_additions(t, on, model, book, training_flows(t, micro, false, true), sets, [](ir::layout const&) { return 1.0; });
    CHECK(additions > 0.01 * step);
  }
}
