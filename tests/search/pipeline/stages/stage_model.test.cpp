// tests/search/pipeline/stages/stage_model.test.cpp - the concept: an archetype with what is required and no more, lacks, and the laws for
// every model
#include <cmath>
#include <doctest/doctest.h>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/search/pipeline/graph_model.hpp>
#include <tensorpar/search/pipeline/grouped.hpp>
#include <tensorpar/search/pipeline/stage_tensors.hpp>
#include <tensorpar/search/pipeline/stages/additive.hpp>
#include <tensorpar/search/pipeline/stages/device_places.hpp>
#include <tensorpar/search/pipeline/stages/graph_stage_options.hpp>
#include <tensorpar/search/pipeline/stages/stage_model.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

namespace {

/// Two operators in a row, every one a second per sample.
struct archetype {
  std::vector<stage_tensor> between{{0, 1, {1}}};
  int operators() const { return 2; }
  int devices() const { return 2; }
  std::vector<stage_tensor> const& tensors() const { return between; }
  std::vector<stage_choice> degrees() const { return {stage_choice{}}; }
  bool admits(stage_choice const&) const { return true; }
  int kind(int) const { return 0; }
  stage_work work(int, stage_choice const& c, int) const { return {static_cast<double>(c.micro_batch), 0, 0, 0, 1, 1}; }
  stage_work transfer(stage_border const& b, stage_choice const&, int) const { return {b.in + b.out, 0, 0, 0, 0, b.in}; }
  bool uniform() const { return true; }
  double capacity(int, int) const { return 100; }
  i64 mini_batch() const { return 8; }
  i64 own_batch() const { return 1; }
};
static_assert(stage_model<archetype>);
struct no_transfer : archetype {
  void transfer(stage_border const&, stage_choice const&, int) const = delete;
};
struct no_kind : archetype {
  void kind(int) const {}
};
struct no_tensors : archetype {
  void tensors() const {}
};
static_assert(!stage_model<no_transfer> && !stage_model<no_kind> && !stage_model<no_tensors> && !stage_model<int>);

bool sane(stage_work const& w) {
  for (double x : {w.forward, w.backward, w.weights, w.once, w.fixed, w.kept})
    if (!(x >= 0) || !std::isfinite(x)) return false;
  return true;
}
bool close(stage_work const& a, stage_work const& b) {
  auto same = [](double x, double y) { return std::abs(x - y) <= 1e-9 * (std::abs(x) + std::abs(y)); };
  return same(a.forward, b.forward) && same(a.backward, b.backward) && same(a.weights, b.weights) && same(a.once, b.once) &&
         same(a.fixed, b.fixed) && same(a.kept, b.kept);
}

template <stage_model M> void laws(M const& m) {
  for (stage_choice c : m.degrees())
    for (i64 b = m.own_batch(); b <= m.mini_batch(); b *= 2) {
      c.micro_batch = b;
      if (c.devices() > m.devices() || !m.admits(c)) continue;
      for (int first = 0; first + c.devices() <= m.devices(); first += c.devices()) {
        CHECK(m.capacity(first, c.devices()) >= 0);
        for (int v = 0; v < m.operators(); ++v) {
          stage_work const w = m.work(v, c, first);
          CHECK(sane(w));
          CHECK(w == m.work(v, c, first));          // deterministic
          CHECK(w == m.work(m.kind(v), c, first));  // a kind is its first operator, and equals it
          if (m.uniform()) CHECK(w == m.work(v, c, 0));
        }
        stage_work sum = m.transfer({3, 0, 0, 0}, c, first);  // linear
        sum += m.transfer({0, 5, 0, 0}, c, first);
        sum += m.transfer({0, 0, 2, 0}, c, first);
        sum += m.transfer({0, 0, 0, 4}, c, first);
        CHECK(sane(sum));
        CHECK(close(sum, m.transfer({3, 5, 2, 4}, c, first)));
        CHECK(m.transfer({}, c, first) == stage_work{});
      }
    }
  for (stage_tensor const& t : m.tensors()) {
    CHECK((t.producer >= 0 && t.producer < m.operators()));
    CHECK(std::is_sorted(t.consumers.begin(), t.consumers.end()));
  }
}

}  // namespace

TEST_CASE("stage_model: the laws, for every model") {
  laws(archetype{});
  std::vector<std::vector<int>> const chain{{}, {0}, {1}};
  std::vector<operator_numbers> const ops{{1, 2, 3, 0.5, 1, 8, 2, 4}, {1, 2, 3, 0.5, 1, 8, 2, 4}, {2, 1, 0, 0.5, 1, 0, 2, 4}};
  stage_devices d = stage_devices::equal(4, 1000);
  d.per_node = 2;
  d.inner_bandwidth = 10;
  d.outer_bandwidth = 1;
  d.outer_latency = 0.1;
  additive_stages const equal(ops, tensors_of(chain, {1, 2, 3}), d, {16, 2, 4, 2, true, true});
  laws(equal);
  d.list[3].speed = 2;
  laws(additive_stages(ops, tensors_of(chain, {1, 2, 3}), d, {16, 2, 4, 2, true, true}));
  laws(grouped_stages<additive_stages>(chain, equal, {0, 0, 1}));

  computation_graph g;
  int x = g.add_input("x", shape({2, 16}));
  int const t = g.add_input("t", shape({2, 16}));
  for (int l = 0; l < 3; ++l)
    x = g.node(g.add(relu{}, {g.node(g.add_with_weights(linear{16}, {x}, "l" + std::to_string(l))).out[0]})).out[0];
  g.add_output("loss", g.node(g.add(mean_squared_error{}, {x, t})).out[0]);
  graph_stage_options o;
  o.mini_batch = 16;
  o.max_tensor = 2;
  o.recompute = o.shard_optimizer = true;
  o.optimizer.kind = optimizer_kind::adamw;
  laws(graph_stages<cost::analytical>(g, logical_nodes(2, 2), cost::analytical{}, o));
  machine mixed = logical_nodes(2, 2);
  mixed.kinds.push_back(mixed.kinds[0]);
  mixed.kinds[1].flops *= 2;
  mixed.device = {0, 1, 1, 0};
  laws(graph_stages<cost::analytical>(g, mixed, cost::analytical{}, o));
}

TEST_CASE("stage_model: a model of one's own is enough to plan") {
  stage_result const r = find_stages(std::vector<std::vector<int>>{{}, {0}}, archetype{});
  REQUIRE(r.feasible());
  CHECK(r.cost.bottleneck <= 2);
}
