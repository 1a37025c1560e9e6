// tests/report/page/graph_layout.test.cpp - boxes never overlap, edges point down, chains are straight
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <tensorpar/report/page/graph_layout.hpp>

using namespace tensorpar;

namespace {

void check_drawing(report::drawing const& d, std::vector<std::pair<int, int>> const& edges) {
  REQUIRE(d.edges.size() == edges.size());
  for (std::size_t i = 0; i < d.nodes.size(); ++i) {
    report::drawn_node const& a = d.nodes[i];
    REQUIRE(std::isfinite(a.x + a.y));
    REQUIRE(a.x - a.width / 2 >= -1e-6);
    REQUIRE(a.x + a.width / 2 <= d.width + 1e-6);
    REQUIRE(a.y >= -1e-6);
    REQUIRE(a.y + a.height <= d.height + 1e-6);
    for (std::size_t j = 0; j < i; ++j) {
      report::drawn_node const& b = d.nodes[j];
      bool const beside = std::abs(a.x - b.x) >= (a.width + b.width) / 2 - 1e-6;
      bool const above = a.y + a.height <= b.y + 1e-6 || b.y + b.height <= a.y + 1e-6;
      REQUIRE((beside || above));
    }
  }
  for (report::drawn_edge const& e : d.edges) {
    report::drawn_node const &a = d.nodes[static_cast<std::size_t>(e.from)], &b = d.nodes[static_cast<std::size_t>(e.to)];
    REQUIRE(e.points.size() >= 2);
    REQUIRE(e.points.front() == std::pair(a.x, a.y + a.height));
    REQUIRE(e.points.back() == std::pair(b.x, b.y));
    for (std::size_t i = 1; i < e.points.size(); ++i) REQUIRE(e.points[i].second >= e.points[i - 1].second - 1e-6);
  }
}

}  // namespace

TEST_CASE("random graphs") {
  std::mt19937 r(1);
  for (int turn = 0; turn < 120; ++turn) {
    int const n = 1 + static_cast<int>(r() % 40);
    std::vector<std::pair<double, double>> sizes;
    for (int i = 0; i < n; ++i) sizes.push_back({40 + static_cast<double>(r() % 200), 20 + static_cast<double>(r() % 40)});
    std::vector<std::pair<int, int>> edges;
    for (int b = 1; b < n; ++b)
      for (int k = static_cast<int>(r() % 4); k > 0; --k) {
        std::pair<int, int> const e{static_cast<int>(r() % static_cast<unsigned>(b)), b};
        if (std::find(edges.begin(), edges.end(), e) == edges.end()) edges.push_back(e);
      }
    check_drawing(report::draw_layered(sizes, edges), edges);
  }
}

TEST_CASE("a chain with skip connections is a straight line") {
  std::vector<std::pair<double, double>> const sizes(60, {100, 30});
  std::vector<std::pair<int, int>> edges;
  for (int i = 1; i < 60; ++i) edges.push_back({i - 1, i});
  for (int i = 0; i + 4 < 60; i += 4) edges.push_back({i, i + 4});
  report::drawing const d = report::draw_layered(sizes, edges);
  check_drawing(d, edges);
  for (report::drawn_node const& a : d.nodes) CHECK(a.x == doctest::Approx(d.nodes[0].x).epsilon(0.02));
  CHECK(d.width < 250);
}

TEST_CASE("branches that need not cross do not") {
  // 0 -> 1,2,3 -> 4 and the edges given in an order that crosses
  std::vector<std::pair<int, int>> const edges{{0, 3}, {0, 1}, {0, 2}, {1, 6}, {2, 5}, {3, 4}, {4, 7}, {5, 7}, {6, 7}};
  report::drawing const d = report::draw_layered(std::vector<std::pair<double, double>>(8, {50, 20}), edges);
  check_drawing(d, edges);
  auto x = [&](int v) { return d.nodes[static_cast<std::size_t>(v)].x; };
  CHECK(((x(1) < x(2)) == (x(6) < x(5))));
  CHECK(((x(2) < x(3)) == (x(5) < x(4))));
}

TEST_CASE("a fan-out into a chain has few bends: short edges bend, long ones are straight, and the drawing stays in proportion") {
  std::size_t points[2];
  for (int k : {0, 1}) {
    int const n = 1000 << k;                                       // 0 -> 1 ... n -> chain n + 1 ... 2 n
    std::vector<std::pair<int, int>> edges;
    for (int i = 1; i <= n; ++i) {
      edges.push_back({0, i});
      edges.push_back({i, n + i});
      if (i > 1) edges.push_back({n + i - 1, n + i});
    }
    report::drawing const d = report::draw_layered(std::vector<std::pair<double, double>>(static_cast<std::size_t>(2 * n + 1), {100, 30}),
                                                   edges);
    if (k == 0) check_drawing(d, edges);
    points[k] = 0;
    for (report::drawn_edge const& e : d.edges) points[k] += e.points.size();
    CHECK(d.edges[1].points.size() == 2);
    CHECK(d.edges[3 * 50].points.size() == 2 + 2 * 50);            // passes 50 layers by bends
    CHECK(d.edges.back().points.size() == 2);
  }
  CHECK(points[1] < 2 * points[0] + 50'000);                       // bends were 500,000 and 2,000,000
}

TEST_CASE("nothing and one box") {
  CHECK(report::draw_layered({}, {}).nodes.empty());
  report::drawing const d = report::draw_layered({{30, 10}}, {});
  CHECK(d.width == 30);
  CHECK(d.height == 10);
}

TEST_CASE("what alone follows an input stands beside its user, not in the first row") {
  // a chain 0-1-2-3-4; input 5, then 6, which 4 reads; input 7 has two users
  std::vector<std::pair<double, double>> const sizes(8, {60, 20});
  report::drawing const d = report::draw_layered(sizes, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {5, 6}, {6, 4}, {7, 2}, {7, 4}});
  auto const y = [&](int v) { return d.nodes[static_cast<std::size_t>(v)].y; };
  CHECK(y(6) == y(3));
  CHECK(y(5) == y(2));
  CHECK(y(7) == y(1));
  for (int v = 0; v < 4; ++v) CHECK(y(v) < y(v + 1));
}
