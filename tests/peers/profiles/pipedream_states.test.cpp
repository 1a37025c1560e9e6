// tests/peers/profiles/pipedream_states.test.cpp - the prefixes that PipeDream may cut at, against all sets of layers closed under predecessors
#include <tensorpar/peers/profiles/pipedream_states.hpp>
#include <tensorpar/core/index.hpp>
#include <doctest/doctest.h>

#include <bit>
#include <set>
#include <support/random_graph.hpp>

using namespace tensorpar;
using namespace tensorpar::peers;

namespace {
pipedream_profile profile_of(tests::lists const& inputs) {
  pipedream_profile g;
  g.inputs = inputs;
  for (std::size_t v = 0; v < inputs.size(); ++v) {
    g.id.push_back("node" + std::to_string(v));
    g.description.push_back("Linear");
    g.forward.push_back(1.0 + static_cast<double>(v));
    g.backward.push_back(2.0);
    g.activation.push_back(static_cast<double>(u64{1} << v));
    g.parameter.push_back(10.0);
    g.stage.push_back(-1);
  }
  return g;
}
}  // namespace

TEST_CASE("with one source the states are all closed sets that hold it, smaller ones first, with their sums") {
  tests::random_source r{3};
  for (int turn = 0; turn < 60; ++turn) {
    int const n = 2 + r.below(6);
    tests::lists dag(idx(n));
    for (int v = 1; v < n; ++v) {
      for (int u = 0; u < v; ++u) if (r.chance(40)) dag[idx(v)].push_back(u);
      if (dag[idx(v)].empty()) dag[idx(v)].push_back(0);
    }
    pipedream_profile const g = profile_of(dag);
    std::set<u64> want, got;
    for (u64 s = 1; s < u64{1} << n; s += 2) {
      bool closed = true;
      for (int v = 0; v < n; ++v)
        if (s >> v & 1) for (int u : dag[idx(v)]) closed = closed && (s >> u & 1);
      if (closed) want.insert(s);
    }
    int before = 0;
    for (pipedream_state const& s : pipedream_states(g)) {
      REQUIRE(s.layers.size() == 1);
      CHECK(got.insert(s.layers[0]).second);
      CHECK(std::popcount(s.layers[0]) >= before);
      before = std::popcount(s.layers[0]);
      double seconds = 0;
      for (int v = 0; v < n; ++v) if (s.layers[0] >> v & 1) seconds += g.forward[idx(v)] + g.backward[idx(v)];
      CHECK(s.seconds == seconds);
      CHECK(s.parameters == 10.0 * before);
    }
    CHECK(got == want);
  }
}

TEST_CASE("of a chain the last layer's result leaves; inputs are dropped; too many states and none are errors") {
  pipedream_profile g = profile_of({{}, {0}, {1}});
  auto const all = pipedream_states(g);
  REQUIRE(all.size() == 3);
  CHECK(all[0].output == 1);
  CHECK(all[1].output == 2);
  CHECK(all[2].output == 4);
  CHECK(pipedream_prefix(peers::detail::pipedream_layers(g), {0, 1}).output == 2);
  CHECK_THROWS_WITH(pipedream_prefix(peers::detail::pipedream_layers(g), {1}), doctest::Contains("node1"));
  CHECK_THROWS_WITH(pipedream_states(g, 2), doctest::Contains("more than 2 states"));
  g.description[0] = "Input0";
  CHECK(pipedream_states(g).size() == 2);
  for (auto& d : g.description) d = "Input";
  pipedream_profile lone = profile_of({{}});
  lone.description[0] = "Input0";
  CHECK_THROWS_WITH(pipedream_states(lone), doctest::Contains("no layer is left"));
}
