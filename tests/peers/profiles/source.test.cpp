// tests/peers/profiles/source.test.cpp - JSON profiles complain with the way to what is wrong; ids need be neither dense nor ordered
#include <tensorpar/peers/profiles/source.hpp>
#include <tensorpar/core/index.hpp>
#include <doctest/doctest.h>

#include "refusal.hpp"
#include <functional>
#include <set>
#include <support/random_graph.hpp>

using namespace tensorpar;
using namespace tensorpar::peers;
using tests::refusal;

TEST_CASE("a fault is named by file, way and what is valid") {
  std::string const file = "p.json";
  core::json const j = core::json::parse(R"({"nodes": [{"id": 3, "t": 2.0, "on": 1}, {"id": 1.5, "t": -1, "on": 2}], "name": 7})");
  peers::detail::profile_value const root{&j, &file};
  peers::detail::profile_value const nodes = root["nodes"], first = nodes[0], second = nodes[1];
  CHECK(nodes.array(1, 5) == 2);
  CHECK(first["t"].integer(0, 9) == 2);  // 2.0 is whole
  CHECK(first["t"].number() == 2);
  CHECK(first["on"].flag());
  CHECK(first.has("id"));
  CHECK_FALSE(first.has("x"));
  struct example {
    std::function<void()> f;
    char const *where, *problem, *valid;
  };
  std::vector<example> const all{
      {[&] { second["id"].integer(0, 9); }, "p.json: nodes[1].id", "1.5 is no such number", "from 0 to 9"},
      {[&] { second["t"].number(); }, "p.json: nodes[1].t", "out of range", "a number from 0"},
      {[&] { second["on"].flag(); }, "p.json: nodes[1].on", "2 is no such number", "from 0 to 1"},
      {[&] { first["x"].number(); }, "p.json: nodes[0]", "\"x\" is missing", "has it"},
      {[&] { nodes.array(3, 4); }, "p.json: nodes", "a list of 2", "from 3 to 4"},
      {[&] { root["name"].text(); }, "p.json: name", "not a text", "a text"},
      {[&] { root["name"].object(); }, "p.json: name", "not an object", "an object"},
      {[&] { root["name"].array(0, 1); }, "p.json: name", "not a list", "a list"},
      {[&] { nodes.number(); }, "p.json: nodes", "not a number", "a number"},
      {[&] { root.array(0, 1); }, "p.json", "not a list", "a list"},
  };
  for (example const& e : all) {
    error const got = refusal(e.f);
    CHECK(got.where() == e.where);
    CHECK_MESSAGE(got.problem().find(e.problem) != std::string::npos, got.what());
    CHECK_MESSAGE(got.valid().find(e.valid) != std::string::npos, got.what());
  }
}

TEST_CASE("every id leads to its node and no other number leads anywhere; an id that stands twice is refused") {
  tests::random_source r{2};
  std::string const file = "ids";
  for (int turn = 0; turn < 100; ++turn) {
    core::json nodes = core::json::array();
    std::vector<i64> id;
    for (int v = 0, n = 1 + r.below(12); v < n; ++v) {
      id.push_back(r.below(40));
      nodes.push_back(core::json{{"id", id.back()}});
    }
    peers::detail::profile_value const all{&nodes, &file};
    int const n = static_cast<int>(id.size());
    if (std::set<i64>(id.begin(), id.end()).size() < id.size()) {
      CHECK(refusal([&] { peers::detail::profile_node_ids(all, n); }).problem().find("stands twice") != std::string::npos);
      continue;
    }
    peers::detail::profile_ids const known = peers::detail::profile_node_ids(all, n);
    for (i64 x = 0; x < 40; ++x) {
      auto const at = std::find(id.begin(), id.end(), x);
      CHECK(known.find(x) == (at == id.end() ? -1 : static_cast<int>(at - id.begin())));
      core::json const edge{{"from", x}};
      peers::detail::profile_value const e{&edge, &file};
      if (at != id.end())
        CHECK(peers::detail::profile_edge_end(e, "from", known) == static_cast<int>(at - id.begin()));
      else
        CHECK(refusal([&] { peers::detail::profile_edge_end(e, "from", known); }).problem() == "no node has the id " + std::to_string(x));
    }
  }
}

TEST_CASE("predecessors are sorted; a graph that is not acyclic is refused with a cycle of its edges") {
  tests::random_source r{3};
  int cyclic = 0;
  for (int turn = 0; turn < 200; ++turn) {
    int const n = 1 + r.below(6);
    profile_graph g;
    g.inputs.resize(idx(n));
    for (int v = 0; v < n; ++v)
      for (int u : r.permutation(n))
        if (r.chance(20)) g.inputs[idx(v)].push_back(u);
    profile_graph const before = g;
    error const got = refusal([&] { peers::detail::finish_profile_graph(g, "file", [](int v) { return std::to_string(v); }); });
    for (int v = 0; v < n; ++v) {
      auto const &was = before.inputs[idx(v)], &is = g.inputs[idx(v)];
      CHECK(std::is_sorted(is.begin(), is.end()));
      CHECK(std::is_permutation(is.begin(), is.end(), was.begin(), was.end()));
    }
    // reachability by squaring: is any node before itself?
    std::vector<std::vector<char>> reach(idx(n), std::vector<char>(idx(n), 0));
    for (int v = 0; v < n; ++v)
      for (int u : before.inputs[idx(v)]) reach[idx(u)][idx(v)] = 1;
    for (int k = 0; k < n; ++k)
      for (int a = 0; a < n; ++a)
        for (int b = 0; b < n; ++b)
          if (reach[idx(a)][idx(k)] && reach[idx(k)][idx(b)]) reach[idx(a)][idx(b)] = 1;
    bool any = false;
    for (int v = 0; v < n; ++v) any = any || reach[idx(v)][idx(v)];
    CHECK((got.problem() != "accepted") == any);
    if (!any) continue;
    ++cyclic;
    std::string const head = "the graph has a cycle: ";
    REQUIRE(got.problem().starts_with(head));
    std::string const way = got.problem().substr(head.size());
    CHECK(way.front() == way.back());  // nodes have one digit
    for (std::size_t i = 0; i + 5 < way.size(); i += 5) {
      auto const& list = g.inputs[idx(way[i + 5] - '0')];
      CHECK(std::find(list.begin(), list.end(), way[i] - '0') != list.end());
      CHECK(way.substr(i + 1, 4) == " -> ");
    }
  }
  CHECK(cyclic > 30);
}
