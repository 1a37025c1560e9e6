// tests/search/problem/shardings.test.cpp - the enumeration of legal shardings against one of its own kind: all axis lists, filtered
#include <doctest/doctest.h>

#include <algorithm>
#include <tensorpar/op/kinds/contraction.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>
#include <tensorpar/search/problem/shardings.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

namespace {
ir::iteration_space linear_space(i64 b, i64 in, i64 out) {
  return ir::space_of(linear{out, false}, {shape{dim(b), dim(in)}, shape{dim(out), dim(in)}}, {shape{dim(b), dim(out)}});
}

/// Lists of axes of at most three letters with any degrees, kept if legal.
std::size_t count_all(ir::iteration_space const& s, int room, int max_axes) {
  std::vector<ir::mesh_axis> one;
  for (ir::node_loop const& l : s.loops) for (i64 d = 2; d <= room; ++d) one.push_back({l.letter, d, 0});
  for (i64 d = 2; d <= room; ++d) one.push_back({'\0', d, 0});
  std::size_t n = 1;
  std::vector<std::vector<ir::mesh_axis>> level{{}};
  for (int k = 0; k < max_axes; ++k) {
    std::vector<std::vector<ir::mesh_axis>> next;
    for (auto const& some : level)
      for (ir::mesh_axis const& a : one) {
        auto x = some;
        x.push_back(a);
        ir::sharding sp{0, x};
        std::vector<char> letters;
        for (ir::mesh_axis const& y : x) letters.push_back(y.letter);
        std::sort(letters.begin(), letters.end());
        bool const twice = std::adjacent_find(letters.begin(), letters.end()) != letters.end();
        if (twice || sp.size() > room || misfit(s, sp) >= 0) continue;
        next.push_back(x);
      }
    n += next.size();
    level = next;
  }
  return n;
}
}  // namespace

TEST_CASE("search: legal_shardings has every legal list of axes once, on consecutive devices") {
  for (int room : {1, 2, 3, 4})
    for (auto const& s : {linear_space(4, 6, 2), linear_space(3, 4, 5), linear_space(1, 1, 1)})
      for (int axes : {1, 2, 3}) {
        sharding_limits l;
        l.max_axes = axes;
        auto const all = legal_shardings(s, 1, room, 4, l);
        CHECK(all.size() == count_all(s, room, axes));
        CHECK(all.front() == ir::sharding{1, {}});
        for (std::size_t i = 0; i < all.size(); ++i) {
          CHECK(misfit(s, all[i]) < 0);
          CHECK(std::find(all.begin() + static_cast<std::ptrdiff_t>(i) + 1, all.end(), all[i]) == all.end());
          std::vector<int> devices = operand_layout(s, "", all[i], 0).devices();
          ir::layout mesh{all[i].start, {}};
          for (ir::mesh_axis const& a : all[i].axes) mesh.axes.push_back({ir::part_kind::replicate, -1, a.degree, a.stride});
          devices = mesh.devices();
          for (std::size_t k = 0; k < devices.size(); ++k) CHECK(devices[k] == 1 + static_cast<int>(k));
        }
      }
}

TEST_CASE("search: limits of legal_shardings") {
  auto const s = linear_space(64, 64, 64);
  sharding_limits l;
  l.max_axes = 2;
  l.min_part = 1;
  for (ir::sharding const& x : legal_shardings(s, 0, 64, 64, l)) CHECK((x.size() == 1 || x.size() == 64));
  bool some = false;
  for (ir::sharding const& x : legal_shardings(s, 0, 6, 6, l)) {        // three does not divide 64: replicas aside, 4 is what there is
    CHECK((x.size() == 1 || x.size() == 6 || x.size() == 4));
    some = some || x.size() == 4;
  }
  CHECK(some);
  for (ir::sharding const& x : legal_shardings(linear_space(12, 64, 64), 0, 6, 6, l)) CHECK((x.size() == 1 || x.size() == 6));
  l.min_part = 2;
  bool half = false;
  for (ir::sharding const& x : legal_shardings(s, 0, 16, 16, l)) {
    CHECK((x.size() == 1 || x.size() >= 8));
    half = half || x.size() == 8;
  }
  CHECK(half);
  l.replicas = false;
  for (ir::sharding const& x : legal_shardings(s, 0, 16, 16, l)) for (ir::mesh_axis const& a : x.axes) CHECK(a.letter != '\0');
}

TEST_CASE("search: on machines of many divisors axes have few parts, or nearly all") {
  auto const s = linear_space(i64{1} << 20, 8192, 8192 * 3);
  sharding_limits l;
  l.max_axes = 2;
  l.min_part = 1;
  for (int room : {192, 4096}) {                         // 14 and 13 divisors: nothing is left out
    auto const all = legal_shardings(s, 0, room, room, l);
    sharding_limits with = l;
    with.max_divisors = 16;
    CHECK(legal_shardings(s, 0, room, room, with) == all);
  }
  auto const all = legal_shardings(s, 0, 12288, 12288, l);
  l.max_divisors = 16;
  auto const some = legal_shardings(s, 0, 12288, 12288, l);
  CHECK(some.size() < all.size());
  std::size_t allowed = 0;
  for (ir::sharding const& x : all) {
    bool fits = true;
    for (ir::mesh_axis const& a : x.axes) fits = fits && (a.degree <= 16 || a.degree >= 768);
    if (!fits) continue;
    REQUIRE(allowed < some.size());
    CHECK(some[allowed++] == x);
  }
  CHECK(allowed == some.size());
  l.max_divisors = 4;
  for (ir::sharding const& x : legal_shardings(s, 0, 12288, 12288, l))
    for (ir::mesh_axis const& a : x.axes) CHECK((a.degree <= 2 || a.degree >= 6144));
}
