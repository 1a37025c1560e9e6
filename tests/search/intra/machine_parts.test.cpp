// tests/search/intra/machine_parts.test.cpp - parts of machines, and plans for fewer devices than there are where these are faster
#include <tensorpar/search/intra/machine_parts.hpp>

#include <doctest/doctest.h>
#include <random>
#include <tensorpar/check/check.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/ir/rebatch.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/program/step_of.hpp>
#include <tensorpar/search/joint/joint.hpp>
#include <tensorpar/simulate/engine.hpp>
#include <tensorpar/zoo/registry.hpp>

#include "support/effort.hpp"
#include "support/search_once.hpp"
#include "support/small_graphs.hpp"

using namespace tensorpar;
using namespace tensorpar::search;

namespace {
int apply(computation_graph& g, op::any_op const& o, std::vector<value_id> in) {
  return g.node(g.add_with_weights(o, std::move(in), {})).out[0];
}
computation_graph layers(i64 batch, i64 width, int n) {
  computation_graph g;
  int x = g.add_input("x", shape{dim(batch), dim(width)});
  for (int k = 0; k < n; ++k) x = apply(g, linear{width}, {apply(g, relu{}, {apply(g, linear{width}, {x})})});
  int const label = g.add_input("label", shape({dim(batch)}, dtype::i32));
  g.add_output("loss", apply(g, cross_entropy{}, {apply(g, linear{16}, {x}), label}));
  return g;
}
device_kind v100() { return {"v100", 15.7e12, 900e9, i64{16} << 30, 6e-6}; }
machine nodes(int n, int per, double between = 1.25e9) {
  return make_cluster("nodes", v100(), n, per, {"in", per, 3e-6, 50e9}, {"out", n, 2e-5, between});
}
/// Some devices are so many times slower.
machine mixed(int n, std::vector<int> const& slow, double by) {
  machine m = nodes(n, n);
  m.kinds.push_back(m.kinds[0]);
  m.kinds[1].flops /= by;
  m.kinds[1].memory_bandwidth /= by;
  for (int d : slow) m.device[static_cast<std::size_t>(d)] = 1;
  return m;
}
double simulated(computation_graph const& g, search_options const& o, plan const& p) {
  training_graph const t = differentiate(g, {o.loss, o.optimizer, o.micro_batches});
  planned_step const step = passes::memory_pass(t, p);
  program const q = unroll(step.graph, step.plan);
  CHECK(check(step.graph, step.plan, q).empty());
  return simulate(q, p.cluster, cost::analytical{}, {.overlap = false}).seconds;
}
}  // namespace

TEST_CASE("a part of a machine keeps the levels that its devices respect") {
  machine const on = make_cluster("small", {"device", 1e9, 1e10, i64{1} << 30, 0}, 8, 4, {"near", 4, 1e-7, 1e10}, {"far", 8, 1e-6, 1e9});
  machine const node = search::detail::part_of(on, {4, 4}), pair = search::detail::part_of(on, {2, 2}),
      all = search::detail::part_of(on, {0, 8}), across = search::detail::part_of(on, {2, 4});
  CHECK(node.size() == 4);
  CHECK(node.links.size() == 1);
  CHECK(node.links.front().name == "near");
  CHECK(pair.links.front().group == 2);
  CHECK(all.links.size() == 2);
  CHECK(all.between(0, 3).name == "near");
  CHECK(all.between(3, 4).name == "far");
  CHECK(across.links.size() == 1);
  CHECK(across.links.front().name == "far");
}

TEST_CASE("no step is below all that the whole batch computes, shared evenly: any shardings, micro-batches, kinds of devices") {
  std::mt19937 draw(7);
  int near = 0;
  for (int turn = 0; turn < test_effort::cases(400); ++turn) {
    CAPTURE(turn);
    computation_graph const g = turn % 2 ? tests::residual_mlp() : tests::small_transformer();
    plan p = tests::random_plan(g, 1 + static_cast<int>(draw() % 4), draw);
    device_kind slow = v100(), fast = v100();
    slow.flops = fast.flops = 1e9;                             // where computing counts
    slow.memory_bandwidth = fast.memory_bandwidth = 1e8;
    slow.launch = fast.launch = draw() % 2 ? 1e-7 : 0;
    slow.flops /= static_cast<double>(1 + draw() % 3);
    p.cluster.kinds = {fast, slow};
    for (int& k : p.cluster.device) k = static_cast<int>(draw() % 2);
    p.micro_batches = 1 + static_cast<int>(draw() % 3);
    p.prefetch = static_cast<int>(draw() % 3);
    planned_step const s = step_of(g, p);
    double const bound = search::detail::work_bound(differentiate(ir::rebatch(g, p.micro_batches)), p.cluster, cost::analytical{}, p.scalar_bytes);
    double const seconds = simulate(s.program, p.cluster, cost::analytical{}, {true, false}).seconds;
    CHECK(bound > 0);
    CHECK(bound <= seconds);
    near += bound > 0.8 * seconds;
  }
  CHECK(near > 0);
}

TEST_CASE("parts of a machine: neighbours of a kind, and fewer of them") {
  using groups = std::vector<device_range>;
  CHECK(search::detail::ranges_by_kind(nodes(6, 3)) == groups{{0, 6}});
  CHECK(search::detail::ranges_by_kind(mixed(4, {0}, 2)) == groups{{0, 4}, {0, 1}, {1, 3}});
  CHECK(search::detail::ranges_by_kind(mixed(4, {1}, 2)) == groups{{0, 4}, {0, 2}, {1, 3}, {0, 1}, {1, 1}, {2, 2}});
  CHECK(search::detail::ranges_by_kind(mixed(10, {1, 3, 5, 7, 9}, 2)) == groups{{0, 10}, {0, 1}, {1, 1}});
  CHECK(search::detail::fewer_than(nodes(1, 1), {0, 1}).empty());
  CHECK(search::detail::fewer_than(nodes(4, 4), {0, 4}) == std::vector<int>{3, 2});
  CHECK(search::detail::fewer_than(nodes(12, 6), {0, 12}) == std::vector<int>{8, 6, 4, 3, 2});
  CHECK(search::detail::fewer_than(nodes(12, 6), {3, 9}) == std::vector<int>{8, 4, 3, 2});            // 3 to 8 are no node
  machine const m = mixed(4, {0}, 3);
  CHECK(search::detail::shared_evenly({6, 18}, m, {0, 2}) == doctest::Approx(4.5));
  training_graph const t = differentiate(layers(8, 64, 1));
  auto const alone = search::detail::seconds_alone(t, m, cost::analytical{}, 1, 4);
  REQUIRE(alone.size() == 2);
  CHECK(alone[0] == doctest::Approx(optimize(layers(8, 64, 1), nodes(1, 1), cost::analytical{}).cost.seconds));
  CHECK(alone[1] > alone[0]);
}

TEST_CASE("search: slow devices are left out, wherever they stand") {
  computation_graph const g = layers(64, 1024, 4);
  for (auto const& [clipped, skips] : std::vector<std::pair<bool, bool>>{{false, false}, {true, false}, {false, true}}) {
    search_options o;
    bool const clip = clipped || skips;                                   // either takes the norm
    if (clipped) o.optimizer.clip_norm = 1;
    if (skips) o.optimizer.on_non_finite = non_finite::skip;
    double const three = optimize(g, nodes(3, 3), cost::analytical{}, o).cost.seconds;
    for (int slow : {0, 3}) {
      search_result const r = optimize(g, mixed(4, {slow}, 8), cost::analytical{}, o);
      REQUIRE(r.feasible());
      CHECK(r.cost.seconds <= three * (clip ? 1.2 : 1 + 1e-9));           // a slow device reads the norm too
      CHECK(r.bound <= r.cost.seconds);
      CHECK(r.plan.cost == r.cost.seconds);
      for (op_strategy const& n : r.plan.nodes) {
        CHECK((slow > 0 || n.sharding.start > 0));
        CHECK((slow == 0 || n.sharding.start + n.sharding.size() <= 3));
      }
      CHECK(simulated(g, o, r.plan) == doctest::Approx(r.cost.seconds).epsilon(0.02));
      for (baseline const& b : r.baselines) CHECK(b.cost.seconds >= r.cost.seconds);
    }
    joint_options j;
    j.search = o;
    CHECK(optimize_jointly(g, mixed(4, {0}, 8), cost::analytical{}, j).cost.seconds <= three * (clip ? 1.2 : 1 + 1e-9));
  }
}

TEST_CASE("search: a device without memory for the model is left out") {
  computation_graph const g = layers(64, 512, 4);
  machine on = mixed(4, {0}, 1);
  on.kinds[1].memory = 1 << 16;
  search_result const r = optimize(g, on, cost::analytical{});
  REQUIRE(r.feasible());
  CHECK_FALSE(r.infeasible);
  for (op_strategy const& n : r.plan.nodes) CHECK(n.sharding.start > 0);
  CHECK(r.cost.bytes[0] <= on.kinds[1].memory);
  CHECK(r.plan.cluster == on);
  for (device_kind& k : on.kinds) k.memory = 1 << 16;
  search_result const none = optimize(g, on, cost::analytical{});
  REQUIRE_FALSE(none.feasible());
  CHECK(none.plan.nodes.empty());
}

TEST_CASE("search: more devices are never slower than some of them") {
  struct { computation_graph g; int some; machine on; } const all[] = {
      {layers(4096, 256, 4), 2, nodes(6, 3, 1e9)},                             // two devices of a node, which no mesh of six is
      {zoo::make_reduced("inception_v3", 24), 4, nodes(8, 8)},                 // more places for branches than can be tried
      {zoo::make_reduced("dlrm", 61), 4, nodes(16, 4)},                        // a prime number of samples
  };
  for (auto const& [g, some, on] : all) {
    CAPTURE(on.size());
    search_result const r = optimize(g, on, cost::analytical{}),
        part = optimize(g, search::detail::part_of(on, {0, some}), cost::analytical{});
    CHECK(r.cost.seconds <= part.cost.seconds * (1 + 1e-9));
    search_options whole;
    whole.fewer_devices = false;
    CHECK(optimize(g, on, cost::analytical{}, whole).cost.seconds > r.cost.seconds * 1.1);
    CHECK(simulated(g, {}, r.plan) <= r.cost.seconds * 1.1);
    CHECK(optimize(g, on, cost::analytical{}).plan == r.plan);
  }
}
