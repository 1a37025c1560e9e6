// tests/search/pipeline/schedules/in_flight.test.cpp - Table 3.2 row by row, and where two stages tried with every warm-up agree with it
#include <tensorpar/search/pipeline/schedules/in_flight.hpp>
#include <tensorpar/search/pipeline/schedules/in_flight_ratio.hpp>
#include <doctest/doctest.h>
#include <fstream>

#include <tensorpar/core/json.hpp>
#include "support/effort.hpp"
#include "support/pipelines.hpp"

using namespace tensorpar;
using namespace tensorpar::search;

namespace {

/// The thesis' table as printed; 0 where no row applies.
i64 printed_table(i64 kx, i64 bx, i64 ky, i64 by, i64 iy, int* row = nullptr) {
  i64 const x = kx * bx, y = ky * by, b = std::max(bx, by);
  int r = 0;
  if (!row) row = &r;
  if (b < x && x < y) return *row = 1, iy + 2 * b;
  if (b == x && x < y) return *row = 2, iy + b;
  if (bx <= by && by < y && y < x) return *row = 3, iy + x - y + 2 * by;
  if (bx <= by && by == y && y < x) return *row = 4, iy + x;
  if (by <= bx && bx < y && y < x) return *row = 5, iy + x - y + 2 * bx;
  if (by <= bx && bx == y && y < x) return *row = 6, iy + x;
  if (b == y && y == x) return *row = 7, iy + y;
  if (b < y && y == x) return *row = 8, iy + 2 * b;
  if (bx <= x && x < by && by <= y) return *row = 9, iy + by;
  if (by <= y && y < bx && bx <= x) return *row = 10, iy + x - y + bx;
  return 0;
}

// Two stages in plain loops, sharing nothing with the library: x feeds y; y waits for nobody else.
std::vector<char> k_f_k_b(i64 m, i64 warm_up, i64 k) {
  std::vector<char> o;
  i64 f = std::min(m, warm_up), b = 0;
  o.assign(static_cast<std::size_t>(f), 'F');
  while (b < m) {
    for (i64 i = 0; i < k && b < f; ++i, ++b) o.push_back('B');
    for (i64 i = 0; i < k && f < m; ++i, ++f) o.push_back('F');
  }
  return o;
}
/// When x is done; -1 if the two wait for each other for ever.
i64 finish(std::vector<char> const& ox, i64 bx, std::vector<char> const& oy, i64 by, i64 forward, i64 backward) {
  std::vector<i64> sent, returned;   // by micro-batch of x, of y
  i64 tx = 0, ty = 0, nbx = 0, nfy = 0, nby = 0;
  std::size_t i = 0, j = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (; i < ox.size(); ++i, moved = true) {
      if (ox[i] == 'F') {
        sent.push_back(tx += forward * bx);
        continue;
      }
      i64 const need = ((nbx + 1) * bx + by - 1) / by;
      if (static_cast<i64>(returned.size()) < need) break;
      tx = std::max(tx, returned[static_cast<std::size_t>(need - 1)]) + backward * bx;
      ++nbx;
    }
    for (; j < oy.size(); ++j, moved = true) {
      if (oy[j] == 'F') {
        i64 const need = ((nfy + 1) * by + bx - 1) / bx;
        if (static_cast<i64>(sent.size()) < need) break;
        ty = std::max(ty, sent[static_cast<std::size_t>(need - 1)]) + forward * by;
        ++nfy;
      } else {
        if (nby >= nfy) return -1;
        returned.push_back(ty += backward * by);
        ++nby;
      }
    }
  }
  return i == ox.size() && j == oy.size() ? tx : -1;
}
struct trial {
  i64 least, time, ideal_time;
  double slowdown() const { return static_cast<double>(time - ideal_time) / static_cast<double>(ideal_time); }
};
/// The fewest samples in flight with which x is done as early as with any number, and the time with `tried` samples.
trial try_all(i64 samples, i64 kx, i64 bx, i64 ky, i64 by, i64 iy, i64 f, i64 b, i64 tried) {
  auto const oy = k_f_k_b(samples / by, iy / by, ky);
  auto const time = [&](i64 i) { return finish(k_f_k_b(samples / bx, i / bx, kx), bx, oy, by, f, b); };
  trial t{-1, time(tried), time(samples)};
  for (i64 i = kx * bx; i <= samples; i += bx) {
    i64 const s = time(i);
    if (s >= 0 && s < t.ideal_time) return {-2, 0, 0};   // all forward passes first is as fast as any
    if (t.least < 0 && s == t.ideal_time) t.least = i;
    if (t.least > 0 && i > t.least + 2 * std::max(kx * bx, ky * by)) break;
  }
  return t;
}

struct stage_form { i64 k, b; };
std::vector<stage_form> const powers = [] {
  std::vector<stage_form> r;
  for (i64 k : {1, 2, 4, 8})
    for (i64 b : {1, 2, 4})
      if (k * b <= 16) r.push_back({k, b});
  return r;
}();

}  // namespace

TEST_CASE("the formula is the table: every combination up to 24 of which one size divides the other") {
  int count = 0;
  for (i64 kx = 1; kx <= 24; ++kx)
    for (i64 bx = 1; bx <= 12; ++bx)
      for (i64 ky = 1; ky <= 24; ++ky)
        for (i64 by = 1; by <= 12; ++by) {
          if (bx % by != 0 && by % bx != 0) continue;
          ++count;
          if (in_flight_table(kx, bx, ky, by, ky * by) != printed_table(kx, bx, ky, by, ky * by)) FAIL(kx, " ", bx, " ", ky, " ", by);
        }
  CHECK(count > 30000);
  static_assert(in_flight_table(1, 1, 1, 1, 3) == 4);
  static_assert(in_flight_table(2, 2, 4, 1, 4) == 8);   // row 8: Figure 3.5's kind
}

TEST_CASE("whole micro-batches: a chain of sizes 4, 1, 1 comes to 9 by the table, to 12 in fours") {
  CHECK(in_flight_table(1, 4, 1, 1, in_flight_table(1, 1, 1, 1, 1)) == 9);
  CHECK(in_flight(1, 4, 1, 1, 2) == 12);
}

TEST_CASE("two stages, every warm-up tried: the table is right at 1:1, too small 15 times at 1:2 and 1:3, too large 12 times at 2:1") {
  struct expected { i64 f, b; int small, large; double worst; };
  for (expected const& x : {expected{1, 1, 0, 0, 0}, {1, 2, 15, 0, 0.0817}, {1, 3, 15, 0, 0.123}, {2, 1, 0, 12, 0}}) {
    int small = 0, large = 0;
    double worst = 0;
    for (stage_form const& a : powers)
      for (stage_form const& c : powers) {
        i64 const table = in_flight_table(a.k, a.b, c.k, c.b, c.k * c.b);
        trial const t = try_all(256, a.k, a.b, c.k, c.b, c.k * c.b, x.f, x.b, table);
        REQUIRE(t.least > 0);
        if (table < t.least) ++small;
        if (table > t.least) ++large;
        worst = std::max(worst, t.slowdown());
        if (a.k == 1 && c.k == 1) CHECK(table == t.least);   // 1F1B knows no ratio
      }
    CHECK(small == x.small);
    CHECK(large == x.large);
    CHECK(worst == doctest::Approx(x.worst).epsilon(0.01));
  }
}

TEST_CASE("recorded violations of the table are these") {
  std::string const path = TENSORPAR_SOURCE "/../shared/data/pipeline/reference_results.json";
  if (!std::ifstream(path)) {
    MESSAGE("skipped: " << path << " is not there");
    return;
  }
  core::json const all = core::json::parse(std::ifstream(path));
  std::size_t found = 0;
  for (core::json const& v : all.at("graphpipe_table_3_2_violations")) {
    auto const n = [&](char const* key) { return v.at(key).get<i64>(); };
    i64 const y = n("ky") * n("by"), table = in_flight_table(n("kx"), n("bx"), n("ky"), n("by"), y);
    int row = 0;
    CHECK(printed_table(n("kx"), n("bx"), n("ky"), n("by"), y, &row) == n("table"));
    CHECK(row == n("row"));
    CHECK(table == n("table"));
    trial const t = try_all(256, n("kx"), n("bx"), n("ky"), n("by"), y, n("F"), n("B"), table);
    CHECK(t.least == n("brute"));
    CHECK(t.slowdown() == doctest::Approx(v.at("slowdown").get<double>()).epsilon(1e-9));
    in_flight_ratio right(static_cast<double>(n("F")), static_cast<double>(n("B")));
    CHECK(right(n("kx"), n("bx"), n("ky"), n("by"), y) == n("brute"));
    ++found;
  }
  CHECK(found == 30);
}

TEST_CASE("any ratio: the closed form is what trying gives, also when the successor keeps more in flight than a block") {
  int count = 0;
  for (auto [f, b] : {std::pair<i64, i64>{1, 1}, {1, 2}, {1, 3}, {2, 1}, {3, 1}, {3, 2}, {2, 3}, {5, 4}, {4, 5}, {1, 7}}) {
    in_flight_ratio rule(static_cast<double>(f), static_cast<double>(b));
    for (stage_form const& x : powers)
      for (stage_form const& y : powers)
        for (i64 more : {i64{0}, y.b, 3 * y.b, 8 * y.b}) {
          if ((count++ % 3 != 0 && more > 0) || (test_effort::slow && count % 5 != 0)) continue;
          i64 const iy = y.k * y.b + more, got = rule(x.k, x.b, y.k, y.b, iy);
          trial const t = try_all(256, x.k, x.b, y.k, y.b, iy, f, b, got);
          if (t.least != got)
            FAIL_CHECK(f, ":", b, " k_x ", x.k, " b_x ", x.b, " k_y ", y.k, " b_y ", y.b, " i_y ", iy, ": ", got, " not ", t.least);
          if (f == b && in_flight(x.k, x.b, y.k, y.b, iy) != got) FAIL_CHECK("the table differs at 1:1");
          if (rule.simulated(x.k, x.b, y.k, y.b, iy) != got) FAIL_CHECK("the simulation differs");
          if (in_flight_grouped(x.k, x.b, y.k, y.b, iy) < got) FAIL_CHECK("grouped is not enough");
        }
  }
}

TEST_CASE("other k: blocks shift against each other, and the rule says what trying says") {
  int other = 0;
  for (auto [f, b] : {std::pair<i64, i64>{1, 1}, {1, 2}, {2, 1}}) {
    in_flight_ratio rule(static_cast<double>(f), static_cast<double>(b));
    for (i64 kx : {1, 2, 3, 5, 6})
      for (i64 bx : {1, 2, 3, 6})
        for (i64 ky : {1, 2, 3, 4, 7})
          for (i64 by : {1, 2, 3, 6}) {
            if ((bx % by != 0 && by % bx != 0) || kx * bx > 18 || ky * by > 18) continue;
            i64 const got = rule(kx, bx, ky, by, ky * by);
            trial const t = try_all(720, kx, bx, ky, by, ky * by, f, b, got);
            if (t.least != got) FAIL_CHECK(f, ":", b, " k_x ", kx, " b_x ", bx, " k_y ", ky, " b_y ", by, ": ", got, " not ", t.least);
            other += got != rule.closed_form(kx, bx, ky, by, ky * by);
            CHECK(got >= rule.closed_form(kx, bx, ky, by, ky * by));
          }
  }
  CHECK(other > 100);   // the closed form alone would not do
}

TEST_CASE("chains: the rule's warm-up is as fast as k(p-s) at any ratio and holds less; the table's is slower") {
  for (int p : {4, 8})
    for (i64 b : {1, 2, 3}) {
      pipeline q = tests::chain_pipeline(p, p, 4 * p);
      for (auto& s : q.stages) s.k = 4;
      auto const e = passes::chain_of_stages(p);
      auto const c = tests::even_costs(q.stages.size(), 1, static_cast<double>(b), 0);
      auto const run = [&](auto&& rule) { return simulate_pipeline(search::k_f_k_b(q, e, in_flight_samples(q, e, rule)), e, c); };
      auto const table = run(in_flight_table), exact = run(in_flight_ratio(1, static_cast<double>(b))), grouped = run(in_flight_grouped);
      double const ideal = static_cast<double>((4 * p + p - 1) * (1 + b));
      CHECK(grouped.makespan == ideal);
      CHECK(exact.makespan == ideal);
      CHECK(exact.in_flight[0] == 4 + (p - 1) * std::min<i64>(1 + b, 4));
      CHECK(grouped.in_flight[0] == 4 * p);
      CHECK((table.makespan > ideal) == (b > 1));
    }
}

TEST_CASE("times that are none are refused") {
  CHECK_THROWS_AS(in_flight_ratio(0, 1), error);
  CHECK_THROWS_AS(in_flight_ratio(1, -1), error);
  CHECK_THROWS_AS(in_flight_ratio(1, std::nan("")), error);
}
