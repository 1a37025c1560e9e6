// tests/peers/optima/max_load_space.test.cpp - which nodes of a dnn-partitioning profile stay together
#include <tensorpar/peers/optima/max_load_space.hpp>
#include <doctest/doctest.h>

#include <support/random_graph.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/graph/reachability.hpp>

using namespace tensorpar;
using namespace tensorpar::peers;

namespace {
dnn_partitioning_profile profile_of(tests::lists const& inputs, std::vector<int> const& colour, double seconds) {
  dnn_partitioning_profile g;
  g.inputs = inputs;
  std::size_t const n = inputs.size();
  for (std::size_t v = 0; v < n; ++v) g.id.push_back(static_cast<i64>(v));
  g.name.assign(n, "");
  g.accelerator.assign(n, seconds);
  g.cpu.assign(n, seconds);
  g.size.assign(n, 1);
  g.send.assign(n, 1);
  g.colour = colour;
  g.backward.assign(n, 0);
  g.on_accelerator.assign(n, 1);
  for (int c : colour) g.colours = std::max(g.colours, c + 1);
  return g;
}
}  // namespace

TEST_CASE("strong components: two nodes are together if and only if each reaches the other") {
  tests::random_source r{5};
  for (int turn = 0; turn < 200; ++turn) {
    int const n = 1 + r.below(8);
    std::vector<std::vector<int>> next(idx(n));
    for (int v = 0; v < n; ++v) for (int w = 0; w < n; ++w) if (v != w && r.chance(25)) next[idx(v)].push_back(w);
    std::vector<std::vector<char>> reach(idx(n), std::vector<char>(idx(n), 0));
    for (int v = 0; v < n; ++v) { reach[idx(v)][idx(v)] = 1; for (int w : next[idx(v)]) reach[idx(v)][idx(w)] = 1; }
    for (int k = 0; k < n; ++k)
      for (int v = 0; v < n; ++v)
        for (int w = 0; w < n; ++w) if (reach[idx(v)][idx(k)] && reach[idx(k)][idx(w)]) reach[idx(v)][idx(w)] = 1;
    auto const part = peers::detail::strong_components(next);
    for (int v = 0; v < n; ++v)
      for (int w = 0; w < n; ++w) CHECK((part[idx(v)] == part[idx(w)]) == (reach[idx(v)][idx(w)] && reach[idx(w)][idx(v)]));
  }
}

TEST_CASE("sets are named by their smallest member") {
  peers::detail::merged_sets s(5);
  s.join(3, 4);
  s.join(4, 1);
  CHECK(s.find(3) == 1);
  CHECK(s.find(4) == 1);
  CHECK(s.find(2) == 2);
}

TEST_CASE("a colour is a group; colours that wait for each other are one; what takes no time joins its only neighbour") {
  max_load_space const alone = space_of(profile_of({{}, {0}, {1}}, {0, 1, 2}, 1));
  CHECK(alone.group == std::vector<int>{0, 1, 2});
  CHECK(alone.inputs == std::vector<std::vector<int>>{{}, {0}, {1}});
  max_load_space const coloured = space_of(profile_of({{}, {0}, {1}, {2}}, {0, 1, 1, 2}, 1));
  CHECK(coloured.nodes == std::vector<std::vector<int>>{{0}, {1, 2}, {3}});
  max_load_space const cycle = space_of(profile_of({{}, {0}, {1}, {2}}, {0, 1, 0, 2}, 1));
  CHECK(cycle.nodes == std::vector<std::vector<int>>{{0, 1, 2}, {3}});
  dnn_partitioning_profile idle = profile_of({{}, {0}, {1}}, {0, 1, 2}, 1);
  idle.accelerator[0] = idle.cpu[0] = 0;
  CHECK(space_of(idle).nodes == std::vector<std::vector<int>>{{0, 1}, {2}});
}
