// tests/graph/dominators.test.cpp
#include <doctest/doctest.h>
#include "support/graph_oracles.hpp"
#include "support/shrink.hpp"
#include <algorithm>
#include <tensorpar/graph/digraph.hpp>
#include <tensorpar/graph/dominators.hpp>

using namespace tensorpar;
using tests::lists;

namespace {

// two branches from 0, the left one branching again, meeting in 7; a diamond below
graph::digraph two_levels() {
  return graph::digraph(11, {{0, 1}, {0, 6}, {1, 2}, {1, 3}, {2, 5}, {3, 4}, {3, 5}, {4, 5}, {5, 7}, {6, 7}, {7, 8}, {7, 9}, {8, 10},
                             {9, 10}});
}
std::vector<int> sorted(std::vector<int> v) {
  std::sort(v.begin(), v.end());
  return v;
}

}  // namespace

TEST_CASE("dominators") {
  graph::dominator_tree const d = graph::dominators(two_levels());
  std::vector<std::vector<int>> const all{{0},    {0, 1}, {0, 1, 2}, {0, 1, 3}, {0, 1, 3, 4}, {0, 1, 5},
                                          {0, 6}, {0, 7}, {0, 7, 8}, {0, 7, 9}, {0, 7, 10}};
  std::vector<int> const immediate{graph::dominator_tree::none, 0, 1, 1, 3, 1, 0, 0, 7, 7, 7};
  for (int v = 0; v < 11; ++v) {
    CHECK(sorted(d.all(v)) == all[tests::at(v)]);
    CHECK(d.immediate(v) == immediate[tests::at(v)]);
  }
}

TEST_CASE("post-dominators") {
  graph::dominator_tree const d = graph::post_dominators(two_levels());
  std::vector<std::vector<int>> const all{{0, 7, 10}, {1, 5, 7, 10}, {2, 5, 7, 10}, {3, 5, 7, 10}, {4, 5, 7, 10}, {5, 7, 10},
                                          {6, 7, 10}, {7, 10}, {8, 10}, {9, 10}, {10}};
  std::vector<int> const immediate{7, 5, 5, 5, 5, 7, 7, 10, 10, 10, graph::dominator_tree::none};
  for (int v = 0; v < 11; ++v) {
    CHECK(sorted(d.all(v)) == all[tests::at(v)]);
    CHECK(d.immediate(v) == immediate[tests::at(v)]);
  }
}

TEST_CASE("several sources and sinks") {
  graph::digraph const g(5, {{0, 2}, {1, 2}, {2, 3}, {2, 4}});
  graph::dominator_tree const post = graph::post_dominators(g);
  CHECK(post.immediate(0) == 2);
  CHECK(post.immediate(1) == 2);
  CHECK(post.immediate(2) == graph::dominator_tree::none);
  CHECK(post.immediate(3) == graph::dominator_tree::none);
  CHECK(post.common(graph::sources(g)) == 2);  // where everything that starts anywhere meets
  graph::dominator_tree const pre = graph::dominators(g);
  CHECK(pre.immediate(2) == graph::dominator_tree::none);
  CHECK(pre.immediate(3) == 2);
  CHECK(pre.common(graph::sinks(g)) == 2);
  CHECK(pre.common(std::vector<int>{}) == graph::dominator_tree::none);
  CHECK_THROWS_AS((void)graph::dominators(graph::digraph(2, {{0, 1}, {1, 0}})), error);
}

TEST_CASE("d dominates v exactly if v is cut off without d") {
  auto const property = [](lists const& g) {
    int const n = static_cast<int>(g.size());
    graph::dominator_tree const tree = graph::dominators(g);
    for (int d = 0; d < n; ++d) {
      lists cut = g;  // d taken out
      cut[tests::at(d)].clear();
      for (auto& p : cut) p.erase(std::remove(p.begin(), p.end(), d), p.end());
      tests::matrix const m = tests::closure(cut);
      for (int v = 0; v < n; ++v) {
        bool reached = v != d && g[tests::at(v)].empty();
        for (int s = 0; s < n && v != d; ++s) reached = reached || (s != d && g[tests::at(s)].empty() && m[tests::at(s)][tests::at(v)]);
        if (tree.dominates(d, v) != !reached) return false;
        std::vector<int> const all = tree.all(v);
        if ((std::find(all.begin(), all.end(), d) != all.end()) != !reached) return false;
      }
    }
    return true;
  };
  CHECK(tests::counterexample(9, 300, [](auto& r) { return tests::random_dag(r, r.below(10), r.below(60)); }, property) == "");
}
