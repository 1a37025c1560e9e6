// tests/search/problem/activate.test.cpp - operators and functions made one in a graph and its plan, in place
#include <tensorpar/search/problem/activate.hpp>
#include <doctest/doctest.h>

#include <numeric>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/rewrite/rules/standard_rules.hpp>
#include <tensorpar/zoo/registry.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

namespace {
/// Every site of a model, its operators' choices marked by where they start.
activated_graph all_of(computation_graph const& g) {
  std::vector<int> same(static_cast<std::size_t>(g.node_count()));
  std::iota(same.begin(), same.end(), 0);
  std::vector<op_strategy> nodes(same.size());
  for (std::size_t v = 0; v < nodes.size(); ++v) nodes[v].sharding.start = static_cast<int>(v);
  return activate(tensorpar::rewrite::open_graph(rewrite::unsharded(g)), same,
                  activation_sites(g, g.node_count(), activating(rewrite::standard_rules())), nodes);
}
}  // namespace

TEST_CASE("everything that may be one is, in chains too; order and choices stay, and the records lead to the same graph") {
  for (char const* name : {"mlp_unify", "candle_uno", "dlrm", "inception_v3_artifact", "vgg19"}) {
    CAPTURE(name);
    computation_graph const g = zoo::make_reduced(name, 24);
    auto const sites = activation_sites(g, g.node_count(), activating(rewrite::standard_rules()));
    REQUIRE(sites.size() > 2);
    activated_graph const a = all_of(g);
    CHECK(a.graph.node_count() == g.node_count() - static_cast<int>(sites.size()));
    CHECK(a.records.size() == sites.size());
    CHECK(activation_sites(a.graph, a.graph.node_count(), activating(rewrite::standard_rules())).empty());
    REQUIRE(a.nodes.size() == static_cast<std::size_t>(a.graph.node_count()));
    int before = -1;
    for (int v = 0; v < a.graph.node_count(); ++v) {
      int const was = a.nodes[static_cast<std::size_t>(v)].sharding.start;
      CHECK(was > before);                               // in the order of the operators that they come from
      before = was;
      op::any_op const &now = a.graph.node(v).op, &old = g.node(was).op;
      CHECK((now.op->first ? now.op->first->id : now.op->id) == old.op->id);
    }
    rewrite::replayed const r = replay(g, a.records, [](std::string_view rule_name) -> rewrite::rule const* {
      for (rewrite::rule const& x : rewrite::standard_rules()) if (x.name == rule_name) return &x;
      return nullptr;
    });
    REQUIRE(r.done());
    CHECK(r.graph.hash() == a.graph.hash());
  }
}

TEST_CASE("sites of another graph are refused") {
  computation_graph const g = zoo::make_reduced("mlp_unify", 24);
  std::vector<int> same(static_cast<std::size_t>(g.node_count()));
  std::iota(same.begin(), same.end(), 0);
  auto sites = activation_sites(g, g.node_count(), activating(rewrite::standard_rules()));
  std::swap(sites[0].op, sites[1].op);
  CHECK_THROWS_AS(activate(tensorpar::rewrite::open_graph(rewrite::unsharded(g)), same, sites, std::vector<op_strategy>(same.size())),
                  error);
}
