// tests/graph/downsets/buckets.test.cpp - supersets within bounds, found by words and blocks, are those that a plain walk finds
#include <tensorpar/graph/downsets/buckets.hpp>
#include <tensorpar/core/index.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "support/effort.hpp"
#include "support/random_graph.hpp"

using namespace tensorpar;
using namespace tensorpar::detail;
using tests::random_source;

namespace {

/// The downsets of a random graph in the order that buckets want: work falls, supersets before subsets.
struct ranked {
  graph::downset_lattice lattice;
  std::vector<int> id;
  std::vector<i64> units;
  graph::detail::downset_keys keys;
  ranked(tests::lists const& g) : lattice(g, 1 << 16), id(order(lattice)), units(work(lattice, id)), keys(lattice, id) {}
  static i64 nodes(graph::downset_lattice const& l, int d) {
    i64 n = 0;
    for (int c = 0; c < l.chains(); ++c) n += l.heights(d)[c];
    return n;
  }
  static std::vector<int> order(graph::downset_lattice const& l) {
    std::vector<int> r(idx(l.count()));
    std::iota(r.begin(), r.end(), 0);
    std::stable_sort(r.begin(), r.end(), [&](int a, int b) { return nodes(l, a) > nodes(l, b); });
    return r;
  }
  static std::vector<i64> work(graph::downset_lattice const& l, std::vector<int> const& id) {
    std::vector<i64> r;
    for (int d : id) r.push_back(10 * nodes(l, d));
    return r;
  }
};

}  // namespace

TEST_CASE("a key keeps all guards exactly where one downset is a part of the other") {
  random_source r{11};
  auto const agrees = [](ranked const& x, int a, int b) {
    bool inside = true;
    for (int w = 0; w < x.keys.words; ++w) {
      u64 const g = x.keys.guard[idx(w)];
      inside = inside && (((x.keys.row(b)[w] | g) - x.keys.row(a)[w]) & g) == g;
    }
    return inside == x.lattice.within(x.id[idx(a)], x.id[idx(b)]);
  };
  for (int i = 0; i < test_effort::cases(30); ++i) {
    ranked const x(tests::random_dag(r, 2 + r.below(9), 10 + r.below(60)));
    CHECK(x.keys.words == 1);
    for (int a = 0; a < x.lattice.count(); ++a)
      for (int b = 0; b < x.lattice.count(); ++b) REQUIRE(agrees(x, a, b));
  }
  // 40 layers of 10, each behind all of the last: ten chains of 40 nodes, 7 bits each
  tests::lists layers(400);
  for (int v = 10; v < 400; ++v)
    for (int u = v / 10 * 10 - 10; u < v / 10 * 10; ++u) layers[idx(v)].push_back(u);
  ranked const deep(layers);
  CHECK(deep.keys.words == 2);
  int nested = 0;
  for (int i = 0; i < 20'000; ++i) {
    int const a = r.below(deep.lattice.count()), b = r.below(deep.lattice.count());
    nested += deep.lattice.within(deep.id[idx(a)], deep.id[idx(b)]);
    REQUIRE(agrees(deep, a, b));
    REQUIRE(agrees(deep, std::max(a, b), std::max(a, b) - std::min({a, b, 900})));
  }
  CHECK(nested > 1000);
}

TEST_CASE("a bucket finds what a walk over all of its members finds") {
  random_source r{5};
  int found = 0, missed = 0, limited = 0;
  for (int i = 0; i < test_effort::cases(200); ++i) {
    ranked const x(tests::random_dag(r, 6 + r.below(4), 10 + r.below(40)));
    int const count = x.lattice.count(), measures = 3;
    std::vector<double> sums, high, low;
    for (int k = 0; k < measures * count; ++k) sums.push_back(r.below(50));
    for (int k = 0; k < 2 * count; ++k) {
      high.push_back(r.below(100));
      low.push_back(r.below(100));
    }
    graph::detail::downset_bucket b;
    std::vector<graph::measure_limit> limits{{0, 1, 1, 0.5, 10.0 + r.below(30)}, {}, {2, 2, 1, 0, 5.0 + r.below(30)}, {}};
    b.limit_by(limits);
    std::vector<int> members;
    for (int k = 0; k < count; ++k) {
      if (r.chance(30)) continue;
      b.add(k, 1000 + k, x.units[idx(k)], x.keys, sums.data() + measures * k);
      for (std::size_t t = 0; t < 2; ++t) b.bound(t, high[2 * idx(k) + t], low[2 * idx(k) + t]);
      members.push_back(k);
    }
    if (members.empty()) continue;
    for (int tries = 0; tries < 40; ++tries) {
      int const a = r.below(count), table = r.below(2), way = r.below(2);
      graph::detail::downset_probe p{x.units[idx(a)] + 10 * r.below(5), x.units[idx(a)] + 10 * r.below(5), 40.0 + r.below(60),
                                     40.0 + r.below(60), 0,
                      x.keys.row(a), x.keys.words, sums.data() + measures * a, 2 * way, 2 * way + 2};
      p.max_clear = p.max_out - r.below(20);
      int const odd = r.below(2);
      auto const good = [&](int k) { return k % 2 == odd; };
      int want = -1;
      for (int k : members) {
        if (x.units[idx(k)] > p.max_units || !x.lattice.within(x.id[idx(a)], x.id[idx(k)]) || !good(k)) continue;
        bool fits = true;
        for (int m = p.first_limit; m < p.end_limit; ++m)
          fits = fits && limits[idx(m)].of(sums.data() + measures * k) - limits[idx(m)].of(p.sums) <= limits[idx(m)].most;
        // bounds and limits pass over blocks: members that break them may be found, so `good` must say no to them
        double const most = x.units[idx(k)] > p.clear_units ? p.max_clear : p.max_out;
        if (high[2 * idx(k) + idx(table)] > most || low[2 * idx(k) + idx(table)] > p.max_in || !fits) {
          limited += !fits;
          continue;
        }
        want = 1000 + k;
      }
      i64 pairs = 0;
      int const got = b.scan(p, table, x.keys, pairs, [&](int k) {
        bool fits = good(k);
        for (int m = p.first_limit; m < p.end_limit; ++m)
          fits = fits && limits[idx(m)].of(sums.data() + measures * k) - limits[idx(m)].of(p.sums) <= limits[idx(m)].most;
        double const most = x.units[idx(k)] > p.clear_units ? p.max_clear : p.max_out;
        return fits && high[2 * idx(k) + idx(table)] <= most && low[2 * idx(k) + idx(table)] <= p.max_in;
      });
      REQUIRE(got == want);
      REQUIRE(pairs <= static_cast<i64>(members.size()));
      (got < 0 ? missed : found) += 1;
    }
  }
  CHECK(found > 500);
  CHECK(missed > 500);
  CHECK(limited > 100);
}
