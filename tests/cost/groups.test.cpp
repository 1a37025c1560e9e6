// tests/cost/groups.test.cpp - how groups lie over link levels: digits against looking at every device
#include <tensorpar/cost/groups.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>

#include <algorithm>
#include <random>

#include "support/laws/cost_model.hpp"

using namespace tensorpar;

namespace {

machine levels(std::vector<i64> const& groups) {
  machine m{"levels", {kinds::logical()}, std::vector<int>(static_cast<std::size_t>(groups.back()), 0), {}};
  for (i64 g : groups) m.links.push_back({"level", g, 1e-6, 1e9});
  return m;
}
ir::reshard_step reduce_over(ir::layout const& l, std::vector<ir::group_axis> g) {
  return {ir::reshard_kind::all_reduce, -1, -1, std::move(g), l, l};
}
cost::group_levels only(ir::reshard_step const& s, machine const& m) {
  cost::group_levels r;
  int seen = 0;
  cost::worst_group(s, m, [&](cost::group_levels const& g) { r = g; ++seen; return 1.0; });
  CHECK(seen == 1);
  return r;
}

/// The distinct ways in which the groups lie, by looking at every device. O(devices * levels).
std::vector<cost::group_levels> levels_by_enumeration(ir::reshard_step const& m, machine const& on) {
  auto const groups = cost::detail::groups_of(m);
  int const levels =
      static_cast<int>(on.links.size()) < cost::group_levels::max_levels ? static_cast<int>(on.links.size())
          : cost::group_levels::max_levels;
  auto block_at = [&](int l, int dev) { return l + 1 == levels ? 0 : dev / on.links[static_cast<std::size_t>(l)].group; };
  std::array<i64, cost::group_levels::max_levels> crowd{};
  for (int l = 0; l < levels; ++l) {
    if (l == 0) { crowd[0] = 1; continue; }
    std::vector<i64> in(static_cast<std::size_t>(on.size()), 0);
    for (auto const& g : groups)
      for (int d : g) {
        i64& n = in[static_cast<std::size_t>(block_at(l - 1, d))];
        crowd[static_cast<std::size_t>(l)] = ++n > crowd[static_cast<std::size_t>(l)] ? n : crowd[static_cast<std::size_t>(l)];
      }
  }
  std::vector<cost::group_levels> r;
  for (auto const& g : groups) {
    cost::group_levels x;
    x.levels = levels;
    x.abreast = crowd;
    i64 below = 1;
    int top = 0;
    for (int l = 0; l < levels; ++l) {
      i64 least = static_cast<i64>(g.size()), most = 0;
      for (int d : g) {
        i64 n = 0;
        for (int e : g) n += block_at(l, e) == block_at(l, d);
        least = n < least ? n : least;
        most = n > most ? n : most;
      }
      if (least != most || most % below) x.even = false;
      x.fan[static_cast<std::size_t>(l)] = most / below;
      if (most > below) top = l;
      below = most;
    }
    if (!x.even) {
      for (int l = 0; l < levels; ++l) x.fan[static_cast<std::size_t>(l)] = l == top ? static_cast<i64>(g.size()) : 1;
    }
    bool known = false;
    for (cost::group_levels const& y : r) known = known || y == x;
    if (!known) r.push_back(x);
  }
  return r;
}

}  // namespace

TEST_CASE("a group inside nodes, across nodes, and over both") {
  machine const m = levels({4, 16});
  ir::layout const mesh{0, {{ir::part_kind::replicate, -1, 4, 4}, {ir::part_kind::replicate, -1, 4, 1}}};
  cost::group_levels const inner = only(reduce_over(mesh, {{4, 1}}), m), outer = only(reduce_over(mesh, {{4, 4}}), m),
                     all = only(reduce_over(mesh, {{4, 4}, {4, 1}}), m);
  CHECK(inner.fan[0] == 4);
  CHECK(inner.fan[1] == 1);
  CHECK(outer.fan[0] == 1);
  CHECK(outer.fan[1] == 4);
  CHECK(outer.abreast[1] == 4);        // four groups leave each node
  CHECK(all.fan[0] == 4);
  CHECK(all.fan[1] == 4);
  CHECK(all.even);
}

TEST_CASE("groups of six over nodes of three: sizes that are no powers of two") {
  machine const m = levels({3, 6, 12});
  ir::layout const mesh{6, {{ir::part_kind::partial, -1, 6, 1}}};
  cost::group_levels const g = only(reduce_over(mesh, {{6, 1}}), m);
  CHECK(g.fan[0] == 3);
  CHECK(g.fan[1] == 2);
  CHECK(g.fan[2] == 1);
}

TEST_CASE("a group that does not divide evenly over nodes is uneven and spans the level that joins it") {
  machine const m = levels({4, 8});
  ir::layout const mesh{0, {{ir::part_kind::partial, -1, 5, 1}}};
  cost::group_levels const g = only(reduce_over(mesh, {{5, 1}}), m);
  CHECK_FALSE(g.even);
  CHECK(g.fan[0] == 1);
  CHECK(g.fan[1] == 5);
}

TEST_CASE("groups that lie differently are both seen") {
  machine const m = levels({3, 6});                                   // pairs {0,1} {2,3} {4,5}: the middle one crosses
  ir::layout const mesh{0, {{ir::part_kind::shard, 0, 3, 2}, {ir::part_kind::partial, -1, 2, 1}}};
  std::vector<i64> outer;
  cost::worst_group(reduce_over(mesh, {{2, 1}}), m, [&](cost::group_levels const& g) { outer.push_back(g.fan[1]); return 0.0; });
  std::sort(outer.begin(), outer.end());
  CHECK(outer == std::vector<i64>{1, 2});
}

TEST_CASE("groups_of agrees with reshard_step::members, and digits and residues with enumeration, on random reshards") {
  std::mt19937_64 random(11);
  int by_digits = 0, steps = 0;
  for (auto const& groups : std::vector<std::vector<i64>>{{4, 16}, {2, 8, 16}, {3, 6, 24}, {8}, {2, 4}, {5, 30}, {6, 12, 36}, {3, 6, 192},
                                                          {6, 96}, {5, 10, 70}}) {
    machine const m = levels(groups);
    for (ir::reshard_step const& s : laws::some_steps(m, 60, random())) {
      if (s.kind == ir::reshard_kind::exchange) continue;
      ++steps;
      auto const all = cost::detail::groups_of(s);
      std::size_t devices = 0;
      for (auto const& g : all) {
        devices += g.size();
        for (int d : g) CHECK(s.members(d) == g);
      }
      CHECK(devices == static_cast<std::size_t>(s.before.size()));
      auto const seen = levels_by_enumeration(s, m), residues = cost::detail::levels_by_residues(s, m);
      CHECK(std::is_permutation(seen.begin(), seen.end(), residues.begin(), residues.end()));
      auto const ways = cost::ways_to_lie(s, m);
      CHECK(std::is_permutation(seen.begin(), seen.end(), ways.begin(), ways.end()));
      cost::group_levels x;
      x.levels = static_cast<int>(m.links.size());
      if (!cost::detail::levels_by_digits(s, m, x)) continue;
      ++by_digits;
      REQUIRE(seen.size() == 1);
      CHECK(seen[0] == x);
    }
  }
  CHECK(by_digits > 200);
  CHECK(by_digits < steps);             // both ways were tried
}

TEST_CASE("meshes of any strides over blocks of any size: residues say what looking at every device does") {
  std::mt19937_64 draw(5);
  for (int turn = 0; turn < 2000; ++turn) {
    std::vector<std::vector<i64>> const some{{3, 6, 720}, {4, 12, 720}, {6, 720}, {5, 30, 720}, {7, 720}, {2, 9, 720}};
    machine const m = levels(some[draw() % some.size()]);
    ir::layout mesh{static_cast<int>(draw() % 8), {}};
    std::vector<ir::group_axis> group;
    i64 stride = 1 + static_cast<i64>(draw() % 3);
    for (int k = 0, axes = 1 + static_cast<int>(draw() % 3); k < axes; ++k) {
      i64 const degree = 2 + static_cast<i64>(draw() % (k + 1 == axes ? 30 : 5));
      if (mesh.start + stride * degree > 700) break;
      mesh.axes.push_back({ir::part_kind::partial, -1, degree, stride});
      if (draw() % 3) group.push_back({degree, stride});
      stride *= degree * (1 + static_cast<i64>(draw() % 2));
    }
    if (group.empty()) continue;
    ir::reshard_step const s = reduce_over(mesh, group);
    auto const seen = levels_by_enumeration(s, m), residues = cost::detail::levels_by_residues(s, m);
    CHECK(seen.size() == residues.size());
    CHECK(std::is_permutation(seen.begin(), seen.end(), residues.begin(), residues.end()));
  }
}
