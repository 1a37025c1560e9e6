// tests/search/problem/layout_prices.test.cpp - numbers for keys, tables of them, and prices that are asked once
#include <tensorpar/search/problem/layout_prices.hpp>
#include <doctest/doctest.h>

#include <array>
#include <map>
#include <random>
#include <tensorpar/ir/machine/machine_presets.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

namespace {
struct counting {
  int* asked;
  double seconds(cost::compute_query const&) const { return 1; }
  double seconds(cost::reshard_query const& q) const { ++*asked; return static_cast<double>(q.logical.elements()); }
};
}  // namespace

TEST_CASE("equal keys have one number, counted up in order of first sight") {
  interner number;
  CHECK(number({1, 2}) == 0);
  CHECK(number({2, 1}) == 1);
  CHECK(number({1, 2}) == 0);
  CHECK(number({}) == 2);
  CHECK(number({1, 2, 0}) == 3);
  CHECK(number.size() == 4);
}

TEST_CASE("a table of triples against a map, through many growths") {
  triple_table t;
  std::map<std::array<int, 3>, double> want;
  std::mt19937 draw(1);
  int made = 0;
  for (int k = 0; k < 20000; ++k) {
    std::array<int, 3> const key{static_cast<int>(draw() % 7), static_cast<int>(draw() % 60), static_cast<int>(draw() % 60)};
    double const v = static_cast<double>(draw());
    double const got = t.at(key[0], key[1], key[2], [&] { ++made; return v; });
    CHECK(got == want.try_emplace(key, v).first->second);
  }
  CHECK(t.size() == want.size());
  CHECK(made == static_cast<int>(want.size()));
  // rows at once, from columns that stay where they are while others come
  for (int round = 0; round < 200; ++round) {
    int const a = static_cast<int>(draw() % 7);
    std::vector<int> b(1 + draw() % 70);
    for (int& x : b) x = static_cast<int>(draw() % 90);
    std::vector<std::size_t> const columns = t.columns(a, b);
    t.at(a, 90 + round, 1, [] { return 1.0; });
    for (int c = 0; c < 3; ++c) {
      std::vector<double> sum(b.size(), 0.5), expected(b.size(), 0.5);
      double const fresh = static_cast<double>(draw());
      for (std::size_t i = 0; i < b.size(); ++i)
        if (b[i] % 5) expected[i] += want.try_emplace({a, b[i], c}, fresh + b[i]).first->second;
      t.add(a, columns, c, sum, [&](std::size_t i) { return fresh + b[i]; }, [&](std::size_t i) { return b[i] % 5 == 0; });
      CHECK(sum == expected);
    }
  }
}

TEST_CASE("the model is asked once per step of a reshard of a shape, and not at all where nothing moves") {
  int asked = 0;
  counting const model{&asked};
  machine const on = preset("logical:4");
  layout_prices<counting> p(model, on, 4);
  int const whole = p.id(ir::canonical(ir::layout{0, {{ir::part_kind::replicate, -1, 4, 1}}})),
      rows = p.id(ir::canonical(ir::layout{0, {{ir::part_kind::shard, 0, 4, 1}}}));
  int const s = p.id(shape{8, 4}), t = p.id(shape{16, 4});
  CHECK(p.seconds(s, rows, rows) == 0);
  CHECK(asked == 0);
  double const first = p.seconds(s, rows, whole);
  int const steps = asked;
  CHECK(first > 0);
  CHECK(p.seconds(s, rows, whole) == first);
  CHECK(asked == steps);
  CHECK(p.seconds(t, rows, whole) == 2 * first);
  CHECK(p.asked() == 2);
  CHECK(p.id(shape{8, 4}) == s);
  CHECK(p.bytes(rows, shape{8, 4}) == 8 * 4 * 4 / 4);
  CHECK(p.bytes(whole, shape{8, 4}.of(dtype::i32)) == 8 * 4 * bytes_of(dtype::i32));
}
