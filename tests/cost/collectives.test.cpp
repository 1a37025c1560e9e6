// tests/cost/collectives.test.cpp - alpha-beta formulas against algorithms carried out message by message
#include <tensorpar/cost/collectives.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

using namespace tensorpar;

namespace {

constexpr cost::link_cost fast{2e-6, 10e9}, slow{20e-6, 1e9};

/// Rounds of messages (from, to, bytes) between n devices in nodes of `per`; a round lasts as long as its slowest message.
struct by_messages {
  i64 per;
  double seconds = 0;
  void round(std::vector<std::tuple<i64, i64, double>> const& all) {
    double worst = 0;
    for (auto const& [a, b, bytes] : all) {
      cost::link_cost const c = a / per == b / per ? fast : slow;
      worst = std::max(worst, c.seconds(1, bytes));
    }
    seconds += worst;
  }
};

double ring(i64 n, i64 per, double bytes, int passes) {
  by_messages m{per};
  for (i64 k = 0; k < passes * (n - 1); ++k) {
    std::vector<std::tuple<i64, i64, double>> r;
    for (i64 d = 0; d < n; ++d) r.push_back({d, (d + 1) % n, bytes / static_cast<double>(n)});
    m.round(r);
  }
  return m.seconds;
}
double doubling(i64 n, i64 per, double bytes) {
  by_messages m{per};
  for (i64 k = 1; k < n; k *= 2) {
    std::vector<std::tuple<i64, i64, double>> r;
    for (i64 d = 0; d < n; ++d) r.push_back({d, d ^ k, bytes});
    m.round(r);
  }
  return m.seconds;
}
double halving(i64 n, i64 per, double bytes) {
  by_messages m{per};
  for (i64 k = n / 2; k > 0; k /= 2) {
    bytes /= 2;
    std::vector<std::tuple<i64, i64, double>> r;
    for (i64 d = 0; d < n; ++d) r.push_back({d, d ^ k, bytes});
    m.round(r);
  }
  return m.seconds;
}

/// `nodes` groups of `per`, all of them in use.
tensorpar::cost::group_levels two_levels(i64 per, i64 nodes) {
  cost::group_levels g;
  g.levels = 2;
  g.fan[0] = per;
  g.fan[1] = nodes;
  g.abreast[0] = 1;
  g.abreast[1] = per;
  return g;
}
cost::link_cost between(int level, i64) { return level ? slow : fast; }

}  // namespace

TEST_CASE("flat algorithms on equal links cost what their messages cost") {
  for (i64 n : {2, 3, 4, 5, 6, 8, 16})
    for (double bytes : {64.0, 1e5, 1e8}) {
      CAPTURE(n);
      CHECK(cost::flat::all_reduce_ring(n, bytes, fast) == doctest::Approx(ring(n, n, bytes, 2)));
      CHECK(cost::flat::reduce_scatter_ring(n, bytes, fast) == doctest::Approx(ring(n, n, bytes, 1)));
      if ((n & (n - 1)) != 0) continue;
      CHECK(cost::flat::all_reduce_tree(n, bytes, fast) == doctest::Approx(doubling(n, n, bytes)));
      CHECK(cost::flat::reduce_scatter_tree(n, bytes, fast) == doctest::Approx(halving(n, n, bytes)));
    }
}

TEST_CASE("a ring over two levels runs at the pace of the slowest link that it crosses") {
  for (i64 per : {2, 4})
    for (i64 nodes : {2, 3, 8}) {
      cost::group_levels const g = two_levels(per, nodes);
      CHECK(cost::layered::all_reduce(g, 1e6, between, cost::collective_algorithm::ring)
            == doctest::Approx(ring(per * nodes, per, 1e6, 2)));
      CHECK(cost::layered::reduce_scatter(g, 1e6, between, cost::collective_algorithm::ring)
            == doctest::Approx(ring(per * nodes, per, 1e6, 1)));
    }
  cost::group_levels const inside = two_levels(4, 1);
  CHECK(cost::layered::all_reduce(inside, 1e6, between, cost::collective_algorithm::ring) == doctest::Approx(ring(4, 4, 1e6, 2)));
}

TEST_CASE("hierarchical: reduce-scatter inside, all-reduce of a part between nodes, all-gather inside") {
  for (i64 per : {2, 4, 8})
    for (i64 nodes : {2, 4}) {
      double const bytes = 1e7;
      double const want = halving(per, per, bytes) * 2 + std::min(ring(nodes, 1, bytes / static_cast<double>(per), 2),
                                                                  doubling(nodes, 1, bytes / static_cast<double>(per)));
      CHECK(cost::layered::all_reduce(two_levels(per, nodes), bytes, between, cost::collective_algorithm::hierarchical)
            == doctest::Approx(want));
      double const scatter = halving(per, per, bytes) + halving(nodes, 1, bytes / static_cast<double>(per));
      CHECK(cost::layered::reduce_scatter(two_levels(per, nodes), bytes, between, cost::collective_algorithm::hierarchical) ==
            doctest::Approx(scatter));
    }
}

TEST_CASE("the best is the least of all, and each algorithm is the best somewhere") {
  using enum cost::collective_algorithm;
  int won[4] = {0, 0, 0, 0};
  for (i64 per : {1, 2, 3, 4, 6, 8})
    for (i64 nodes : {1, 2, 3, 5})
      for (double bytes = 8; bytes < 1e9; bytes *= 10) {
        cost::group_levels const g = two_levels(per, nodes);
        if (per * nodes == 1) continue;
        double least = 1e300;
        cost::collective_algorithm which = best;
        for (cost::collective_algorithm a : {ring, tree, hierarchical}) {
          double const s = cost::layered::all_reduce(g, bytes, between, a);
          CHECK(s >= cost::layered::all_reduce(g, bytes, between, best));
          if (s < least) { least = s; which = a; }
        }
        ++won[static_cast<int>(which)];
        CHECK(cost::layered::all_reduce(g, bytes, between, best) == least);
        double const once = cost::layered::reduce_scatter(g, bytes, between, best);
        CHECK(once < cost::layered::all_reduce(g, bytes, between, ring));
        CHECK(cost::layered::all_to_all(g, bytes, between, best) <= cost::layered::all_to_all(g, bytes, between, ring) * (1 + 1e-12));
      }
  CHECK(won[1] > 0);
  CHECK(won[2] > 0);
  CHECK(won[3] > 0);
}

TEST_CASE("all-to-all sends to each peer over the between that joins them") {
  // 2 x 4: three peers inside, four outside, an eighth of the data to each
  double const bytes = 8e6, want = fast.seconds(3, 3e6) + slow.seconds(4, 4e6);
  CHECK(cost::layered::all_to_all(two_levels(4, 2), bytes, between, cost::collective_algorithm::hierarchical) == doctest::Approx(want));
}

TEST_CASE("a group of one costs nothing") {
  cost::group_levels const g = two_levels(1, 1);
  CHECK(cost::layered::all_reduce(g, 1e6, between, cost::collective_algorithm::best) == 0);
  CHECK(cost::layered::reduce_scatter(g, 1e6, between, cost::collective_algorithm::best) == 0);
  CHECK(cost::layered::all_to_all(g, 1e6, between, cost::collective_algorithm::best) == 0);
}
