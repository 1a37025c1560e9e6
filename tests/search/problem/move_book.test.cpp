// tests/search/problem/move_book.test.cpp - reshards that are remembered are the reshards, for every shape, and steps are kept once
#include <tensorpar/search/problem/move_book.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <support/effort.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

namespace {
/// Some layout of a matrix on a mesh of at most 12 devices, sums only if asked for.
ir::layout draw_layout(std::mt19937& draw, bool sums) {
  ir::layout l{static_cast<int>(draw() % 2) * 6, {}};
  i64 stride = 1;
  for (int k = 0; k < 3; ++k) {
    i64 const degree = static_cast<i64>(draw() % 3) + 1;
    if (stride * degree > 6) break;
    int const kind = static_cast<int>(draw() % (sums ? 4 : 3));
    ir::part_kind const what = kind < 2 ? ir::part_kind::shard : kind == 2 ? ir::part_kind::replicate : ir::part_kind::partial;
    l.axes.insert(l.axes.begin(), ir::layout_axis{what, kind < 2 ? kind : -1, degree, stride});
    stride *= degree;
  }
  return ir::canonical(std::move(l));
}
}  // namespace

TEST_CASE("a book of reshards against reshard(), first seen under one shape and asked under others") {
  std::mt19937 draw(3);
  std::vector<shape> const shapes{{72, 144}, {144, 72}, {216, 216, 5}};
  move_book book;
  std::vector<ir::layout> all;
  for (int i = 0; i < 60; ++i)
    if (ir::layout l = draw_layout(draw, true); std::find(all.begin(), all.end(), l) == all.end()) all.push_back(std::move(l));
  std::map<int, ir::reshard_step> steps;
  int together = 0, alone = 0;
  for (int k = 0; k < test_effort::cases(20000); ++k) {
    int const a = static_cast<int>(draw() % all.size()), b = static_cast<int>(draw() % all.size());
    ir::layout const &from = all[static_cast<std::size_t>(a)], &to = all[static_cast<std::size_t>(b)];
    if (a == b || to.degree(ir::part_kind::partial) > 1) continue;
    shape const& s = shapes[draw() % shapes.size()];
    std::vector<ir::reshard_step> const want = reshard(from, to, s);
    move_book::moves const got = book.at(a, from, b, to, s);
    if (got.count == 0) {
      ++alone;
      CHECK(want == std::vector<ir::reshard_step>{{got.whole, -1, -1, {}, from, to}});
      continue;
    }
    ++together;
    REQUIRE(got.count == static_cast<int>(want.size()));
    for (int i = 0; i < got.count; ++i) {
      CHECK(book.step(got.first[i]) == want[static_cast<std::size_t>(i)]);
      CHECK(steps.try_emplace(got.first[i], want[static_cast<std::size_t>(i)]).first->second == want[static_cast<std::size_t>(i)]);
    }
  }
  CHECK(together > 100);
  CHECK(alone > 100);
  for (auto const& [i, x] : steps)
    for (auto const& [j, y] : steps) if (i < j) CHECK(!(x == y));
}
