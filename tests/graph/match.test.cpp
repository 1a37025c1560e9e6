// tests/graph/match.test.cpp
#include <doctest/doctest.h>
#include "support/random_graph.hpp"
#include <algorithm>
#include <set>
#include <tensorpar/graph/digraph.hpp>
#include <tensorpar/graph/match.hpp>

using namespace tensorpar;
using tests::lists;

namespace {

using images = std::vector<std::vector<int>>;

template <class P, class G, class F>
images all_matches(P const& p, G const& g, F const& ok, graph::match_kind kind = graph::match_kind::subgraph) {
  images r;
  graph::for_each_match(p, g, ok, [&](core::slice<int> image) {
    r.emplace_back(image.begin(), image.end());
    return true;
  }, kind);
  return r;
}

/// Every injective map, tried.
template <class F> images try_all(lists const& p, lists const& g, F const& ok, graph::match_kind kind) {
  images r;
  std::vector<int> image(p.size(), -1);
  auto const has = [](lists const& x, int u, int v) {
    auto const& before = x[tests::at(v)];
    return std::find(before.begin(), before.end(), u) != before.end();
  };
  auto const go = [&](auto const& self, std::size_t v) -> void {
    if (v == p.size()) {
      for (int a = 0; a < static_cast<int>(p.size()); ++a)
        for (int b = 0; b < static_cast<int>(p.size()); ++b) {
          bool const in_p = has(p, a, b), in_g = has(g, image[tests::at(a)], image[tests::at(b)]);
          if ((in_p && !in_g) || (kind == graph::match_kind::induced && in_g && !in_p)) return;
        }
      r.push_back(image);
      return;
    }
    for (int x = 0; x < static_cast<int>(g.size()); ++x) {
      auto const used = image.begin() + static_cast<std::ptrdiff_t>(v);
      if (std::find(image.begin(), used, x) != used) continue;
      if (!ok(static_cast<int>(v), x)) continue;
      image[v] = x;
      self(self, v + 1);
    }
  };
  go(go, 0);
  return r;
}

}  // namespace

TEST_CASE("a pattern of operators is found where it stands") {
  // 0 input, 1 matmul, 2 relu, 3 matmul, 4 relu, 5 add of 2 and 4
  graph::digraph const g(6, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {2, 5}, {4, 5}});
  std::string const op[] = {"input", "matmul", "relu", "matmul", "relu", "add"};
  graph::digraph const pattern(2, {{0, 1}});
  std::string const want[] = {"matmul", "relu"};
  auto const same = [&](int p, int x) { return want[p] == op[x]; };
  CHECK(all_matches(pattern, g, same) == images{{1, 2}, {3, 4}});
  CHECK(graph::find_match(pattern, g, same) == std::vector<int>{1, 2});
  CHECK(graph::find_match(graph::digraph(2, {{1, 0}}), g, same) == std::vector<int>{3, 2});
}

TEST_CASE("induced matches admit no further edge") {
  graph::digraph const triangle(3, {{0, 1}, {1, 2}, {0, 2}}), path(3, {{0, 1}, {1, 2}});
  auto const any = [](int, int) { return true; };
  CHECK(all_matches(path, triangle, any) == images{{0, 1, 2}});
  CHECK(all_matches(path, triangle, any, graph::match_kind::induced).empty());
  CHECK(all_matches(triangle, path, any).empty());
}

TEST_CASE("the empty pattern matches once; a search can be stopped") {
  auto const any = [](int, int) { return true; };
  CHECK(all_matches(graph::digraph(), graph::digraph(3), any).size() == 1);
  CHECK(all_matches(graph::digraph(2), graph::digraph(1), any).empty());
  int seen = 0;
  CHECK_FALSE(graph::for_each_match(graph::digraph(1), graph::digraph(5), any, [&](core::slice<int>) { return ++seen < 3; }));
  CHECK(seen == 3);
}

TEST_CASE("all matches, each once, in the same order, as by trying all maps") {
  tests::random_source r{41};
  std::size_t found = 0;
  for (int i = 0; i < 250; ++i) {
    lists const p = tests::random_dag(r, 1 + r.below(4), 50), g = tests::random_dag(r, 1 + r.below(8), 40);
    std::vector<int> colour_p, colour_g;
    for (std::size_t v = 0; v < p.size(); ++v) colour_p.push_back(r.below(3));
    for (std::size_t v = 0; v < g.size(); ++v) colour_g.push_back(r.below(3));
    auto const ok = [&](int a, int b) { return colour_p[tests::at(a)] == 0 || colour_p[tests::at(a)] == colour_g[tests::at(b)]; };
    for (graph::match_kind kind : {graph::match_kind::subgraph, graph::match_kind::induced}) {
      images const fast = all_matches(p, g, ok, kind), again = all_matches(graph::adjacency(p), graph::adjacency(g), ok, kind);
      images slow = try_all(p, g, ok, kind);
      CHECK(fast == again);
      CHECK(std::set<std::vector<int>>(fast.begin(), fast.end()).size() == fast.size());
      images in_order = fast;
      std::sort(in_order.begin(), in_order.end());
      CHECK(in_order == slow);
      found += fast.size();
    }
  }
  CHECK(found > 500);
}

TEST_CASE("a pattern of twenty nodes in a graph of thousands is found at once") {
  lists chain(5000), pattern(20);
  for (std::size_t v = 1; v < chain.size(); ++v) chain[v] = {static_cast<int>(v) - 1};
  for (std::size_t v = 1; v < pattern.size(); ++v) pattern[v] = {static_cast<int>(v) - 1};
  CHECK(all_matches(pattern, chain, [](int, int) { return true; }).size() == 4981);
}
