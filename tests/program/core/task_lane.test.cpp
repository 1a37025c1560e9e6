// tests/program/core/task_lane.test.cpp - which lane a task runs in: by the links that its members meet over
#include <doctest/doctest.h>
#include <tensorpar/ir/reshard.hpp>
#include <tensorpar/program/core/task_lane.hpp>

#include <map>
#include <random>

#include "support/link_levels.hpp"

using namespace tensorpar;

namespace {

machine of(int devices) {
  machine m{"m", {{"device", 1e9, 1e9, 1 << 20, 0}}, std::vector<int>(static_cast<std::size_t>(devices), 0), {}};
  return tests::on_link_levels(m);
}
/// Devices first ... in any digits, each of a kind.
ir::layout drawn(int devices, std::mt19937& draw) {
  ir::layout l{0, {}};
  i64 stride = 1;
  for (i64 left = devices; left > 1;) {
    i64 degree = left;
    for (i64 f = 2; f < left; ++f) if (left % f == 0 && draw() % 2) { degree = f; break; }
    int const kind = static_cast<int>(draw() % 3);
    l.axes.push_back({static_cast<ir::part_kind>(kind), kind == 0 ? static_cast<int>(draw() % 2) : -1, degree, stride});
    stride *= degree;
    left /= degree;
  }
  return ir::canonical(l);
}

}  // namespace

TEST_CASE("a group's lane is that of the outermost link between two of its members, and equal groups have one lane") {
  std::mt19937 draw(3);
  int groups = 0, exchanges = 0, uneven = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    int const n = std::array{2, 4, 6, 8, 12}[draw() % 5];
    machine const m = of(n);
    std::map<std::vector<int>, int> lanes;
    shape const s{dim(48), dim(48)};
    ir::layout const from = drawn(n, draw);
    ir::layout to = drawn(n, draw);
    for (ir::layout_axis& a : to.axes) if (a.kind == ir::part_kind::partial) a = {ir::part_kind::replicate, -1, a.degree, a.stride};
    for (ir::reshard_step const& step : ir::reshard(from, ir::canonical(to), s)) {
      task t;
      t.kind = task_kind::reshard;
      t.step = step;
      std::vector<int> seen;
      for (int d = 0; d < n; ++d) {
        int const lane = passes::lane_of(t, d, m);
        if (step.kind == ir::reshard_kind::slice) { CHECK(lane == 0); continue; }
        std::vector<int> members = step.kind == ir::reshard_kind::exchange ? from.devices() : step.members(d);
        std::sort(members.begin(), members.end());
        int level = 0;
        for (int a : members)
          for (int b : members) if (a != b) level = std::max(level, static_cast<int>(&m.between(a, b) - m.links.data()));
        CHECK(lane == 1 + level);
        CHECK(lanes.insert({members, lane}).first->second == lane);
        seen.push_back(lane);
        (step.kind == ir::reshard_kind::exchange ? exchanges : groups) += 1;
      }
      for (int lane : seen) uneven += lane != seen.front();
    }
  }
  CHECK(groups > 1000);
  CHECK(exchanges > 10);
  CHECK(uneven > 10);
}

TEST_CASE("one lane of communication where links have none of their own, and none for what computes or cuts") {
  machine m = of(8);
  m.lane_per_link = false;
  ir::layout const parts{0, {{ir::part_kind::shard, 0, 8, 1}}}, whole{0, {{ir::part_kind::replicate, -1, 8, 1}}};
  task t;
  CHECK(passes::lane_of(t, 0, m) == 0);
  t.kind = task_kind::reshard;
  t.step = ir::reshard(parts, whole, shape{dim(8)})[0];
  CHECK(passes::lane_of(t, 5, m) == 1);
  m.lane_per_link = true;
  CHECK(m.communication_lanes() == 3);
  CHECK(passes::lane_of(t, 5, m) == 3);
  t.step = ir::reshard(whole, parts, shape{dim(8)})[0];
  CHECK(passes::lane_of(t, 5, m) == 0);
  m.links.resize(1);
  CHECK(m.communication_lanes() == 1);
}
