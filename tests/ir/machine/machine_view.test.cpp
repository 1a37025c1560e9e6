// tests/ir/machine/machine_view.test.cpp - machine mappings: arithmetic, allowed views, splits, shardings
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/ir/machine/machine_view.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace tensorpar;

namespace {
constexpr projection inter = projection::inter, intra = projection::intra;
/// Node and device in the node.
std::pair<int, int> where(machine_view const& v, std::vector<i64> const& degrees, std::vector<i64> const& task, node_mesh const& on) {
  int const d = device_of(v, degrees, task, on);
  return {d / on.per_node, d % on.per_node};
}
using at = std::pair<int, int>;
}  // namespace

TEST_CASE("one axis inside a node, stride 2, from (0,1): devices 1, 3, 5; a fourth task does not exist") {
  machine_view const v{0, 1, {{2, intra}}};
  node_mesh const on{1, 6};
  CHECK(device_of(v, {3}, {0}, on) == 1);
  CHECK(device_of(v, {3}, {1}, on) == 3);
  CHECK(device_of(v, {3}, {2}, on) == 5);
  CHECK_THROWS_WITH(device_of(v, {3}, {4}, on), "no task has the coordinates (4) (at machine view); valid: coordinates below (3)");
  CHECK_THROWS_AS(device_of(v, {3}, {-1}, on), error);
  CHECK_THROWS_AS(device_of(v, {3}, {0, 0}, on), error);
  CHECK_THROWS_WITH(device_of(v, {3}, {0}, {1, 5}), "the view leaves the machine (at machine view); valid: 1 nodes of 5 devices");
}

TEST_CASE("one axis between nodes, one inside") {
  machine_view const v{1, 2, {{1, inter}, {2, intra}}};
  node_mesh const on{3, 5};
  std::vector<i64> const degrees{2, 2};
  CHECK(where(v, degrees, {0, 0}, on) == at{1, 2});
  CHECK(where(v, degrees, {0, 1}, on) == at{1, 4});
  CHECK(where(v, degrees, {1, 0}, on) == at{2, 2});
  CHECK(where(v, degrees, {1, 1}, on) == at{2, 4});
  std::set<int> ids;
  for (i64 a : {0, 1}) for (i64 b : {0, 1}) ids.insert(device_of(v, degrees, {a, b}, on));
  CHECK(ids == std::set<int>{7, 9, 12, 14});
}

TEST_CASE("two axes of one projection nest: the second steps over all of the first") {
  machine_view const v{1, 0, {{1, intra}, {2, intra}}};
  node_mesh const on{2, 6};
  std::vector<i64> const degrees{2, 2};
  CHECK(where(v, degrees, {0, 0}, on) == at{1, 0});
  CHECK(where(v, degrees, {0, 1}, on) == at{1, 4});
  CHECK(where(v, degrees, {1, 0}, on) == at{1, 1});
  CHECK(where(v, degrees, {1, 1}, on) == at{1, 5});
}

TEST_CASE("three axes: between nodes, inside with stride 2, inside") {
  machine_view const v{0, 1, {{1, inter}, {2, intra}, {1, intra}}};
  node_mesh const on{2, 8};
  std::vector<i64> const degrees{2, 2, 2};
  CHECK(where(v, degrees, {0, 1, 0}, on) == at{0, 3});
  CHECK(where(v, degrees, {1, 0, 1}, on) == at{1, 5});
  CHECK(where(v, degrees, {1, 1, 1}, on) == at{1, 7});
}

TEST_CASE("allowed views of a node of five, degree 3") {
  auto const r = allowed_views({1, 5}, {3});
  std::vector<machine_view> const want{{0, 0, {{1, intra}}}, {0, 1, {{1, intra}}}, {0, 2, {{1, intra}}}, {0, 0, {{2, intra}}}};
  CHECK(r == want);
}

TEST_CASE("allowed views of three nodes of three, degrees 2 and 3") {
  auto const r = allowed_views({3, 3}, {2, 3});
  std::vector<machine_view> const want{{0, 0, {{1, inter}, {1, intra}}}, {1, 0, {{1, inter}, {1, intra}}},
                                       {0, 0, {{2, inter}, {1, intra}}}, {0, 0, {{1, intra}, {1, inter}}},
                                       {0, 1, {{1, intra}, {1, inter}}}, {0, 0, {{2, intra}, {1, inter}}}};
  CHECK(r.size() == 6);
  for (machine_view const& v : want) CHECK(std::count(r.begin(), r.end(), v) == 1);
}

TEST_CASE("allowed views without an axis are the devices; with degree 2 on two nodes of two there are four") {
  CHECK(allowed_views({2, 1}, {}).size() == 2);
  auto const r = allowed_views({2, 2}, {2});
  std::vector<machine_view> const want{{0, 0, {{1, inter}}}, {0, 1, {{1, inter}}}, {0, 0, {{1, intra}}}, {1, 0, {{1, intra}}}};
  CHECK(r == want);
}

TEST_CASE("allowed views are exactly the views that fit, by trying all strides and starts") {
  for (node_mesh const on : {node_mesh{1, 3}, {2, 3}, {3, 2}, {1, 6}, {5, 1}, {4, 4}})
    for (std::vector<i64> const& degrees : std::vector<std::vector<i64>>{{1}, {2}, {3}, {2, 2}, {3, 2}, {1, 3}, {2, 2, 2}}) {
      auto const r = allowed_views(on, degrees);
      std::size_t n = 0;
      int const most = on.size() + 1;
      std::size_t const k = degrees.size();
      std::vector<int> digit(2 * k + 2, 0);                        // projection and stride - 1 of each axis, node, device
      auto limit = [&](std::size_t i) { return i < 2 * k ? (i % 2 ? most : 2) : i == 2 * k ? on.nodes : on.per_node; };
      for (;;) {
        machine_view v{digit[2 * k], digit[2 * k + 1], {}};
        bool plain = true;                                         // axes of degree 1 count once
        for (std::size_t i = 0; i < k; ++i) {
          v.axes.push_back({digit[2 * i + 1] + 1, digit[2 * i] ? inter : intra});
          if (degrees[i] == 1) plain = plain && !digit[2 * i] && !digit[2 * i + 1];
        }
        if (plain && fits(v, degrees, on)) { ++n; CHECK(std::count(r.begin(), r.end(), v) == 1); }
        std::size_t i = 0;
        while (i < digit.size() && ++digit[i] == limit(i)) digit[i++] = 0;
        if (i == digit.size()) break;
      }
      CHECK(r.size() == n);
      for (machine_view const& v : r) {                            // no two tasks meet on a device
        std::set<int> seen;
        std::vector<i64> task(k, 0);
        i64 tasks = 1;
        for (i64 d : degrees) tasks *= d;
        for (i64 t = 0; t < tasks; ++t) {
          i64 rest = t;
          for (std::size_t i = k; i-- > 0;) { task[i] = rest % degrees[i]; rest /= degrees[i]; }
          seen.insert(device_of(v, degrees, task, on));
        }
        CHECK(static_cast<i64>(seen.size()) == tasks);
      }
    }
}

TEST_CASE("splits at powers of two from either end") {
  auto offsets = [](node_mesh const& on) {
    std::vector<std::pair<int, int>> r;
    for (resource_split const& s : power_splits(on)) r.push_back({s.nodes, s.devices});
    return r;
  };
  using list = std::vector<std::pair<int, int>>;
  CHECK(offsets({1, 1}).empty());
  CHECK(offsets({2, 2}) == list{{1, 0}, {0, 1}});
  CHECK(offsets({8, 1}) == list{{1, 0}, {2, 0}, {4, 0}, {6, 0}, {7, 0}});
  CHECK(offsets({1, 8}) == list{{0, 1}, {0, 2}, {0, 4}, {0, 6}, {0, 7}});
  CHECK(all_splits({3, 2}) == std::vector<resource_split>{{1, 0}, {2, 0}, {0, 1}});
}

TEST_CASE("a view in the right part of a split moves by the split's offset") {
  machine_view const v{0, 1, {{2, intra}}};
  machine_view const w = shifted(v, 3, 0);
  CHECK(w.node == 3);
  CHECK(device_of(w, {2}, {1}, {5, 4}) == device_of(v, {2}, {1}, {5, 4}) + 12);
}

TEST_CASE("a sharding puts every part where the view does") {
  for (node_mesh const on : {node_mesh{2, 3}, {1, 5}, {1, 6}, {3, 3}, {4, 2}})
    for (std::vector<i64> const& degrees : std::vector<std::vector<i64>>{{3}, {2}, {2, 3}, {3, 2}, {2, 2}})
      for (machine_view const& v : allowed_views(on, degrees)) {
        std::string const letters = std::string("mk").substr(0, degrees.size());
        sharding const s = to_sharding(v, degrees, letters, on);
        REQUIRE(s.axes.size() == degrees.size());
        i64 n = 1;
        for (i64 d : degrees) n *= d;
        CHECK(s.size() == n);
        for (i64 t = 0; t < n; ++t) {
          std::vector<i64> task(degrees.size());
          i64 rest = t, device = s.start;
          for (std::size_t i = degrees.size(); i-- > 0;) {
            task[i] = rest % degrees[i];
            rest /= degrees[i];
            device += task[i] * s.axes[i].stride;
            CHECK(s.axes[i].letter == letters[i]);
          }
          CHECK(device == device_of(v, degrees, task, on));
        }
      }
  CHECK_THROWS_AS(to_sharding({0, 0, {{1, intra}}}, {2}, "mk", {1, 2}), error);
}

TEST_CASE("the rectangle that a machine is") {
  CHECK(mesh_of(preset("dgx-h100:3")) == node_mesh{3, 8});
  CHECK(mesh_of(preset("summit:2")) == node_mesh{4, 3});           // by its innermost links
  CHECK(mesh_of(preset("logical:5")) == node_mesh{1, 5});
  CHECK_THROWS_WITH(mesh_of(preset("autodist-b9")), "nodes of unequal size (at machine autodist-b9); valid: a multiple of 4 devices");
}
