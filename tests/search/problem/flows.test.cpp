// tests/search/problem/flows.test.cpp - which values travel between operators, how often, and which operators are told apart
#include <tensorpar/search/problem/flows.hpp>
#include <doctest/doctest.h>

#include <set>
#include <tensorpar/op/operators.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

namespace {
/// Three linear operators of one size in a row, the last two alike in everything; a loss.
computation_graph chain(bool shared) {
  computation_graph g;
  int x = g.add_input("x", {8, 4});
  value_id const w = g.add_parameter("w", {4, 4}, op::init::fan_in);
  for (int k = 0; k < 3; ++k)
    x = g.node(g.add(linear{4, false}, {x, k == 0 || shared ? w
                                        : g.add_parameter("w" + std::to_string(k), {4, 4}, op::init::fan_in)})).out[0];
  g.add_output("loss", g.node(g.add(mean_squared_error{}, {x, g.add_input("y", {8, 4})})).out[0]);
  return g;
}
}  // namespace

TEST_CASE("every node is in the group of the operator that it comes from, the forward one first") {
  training_graph const t = differentiate(chain(false));
  training_flows const f(t, 1);
  REQUIRE(f.groups.size() == 4);
  std::set<int> all;
  for (std::size_t v = 0; v < f.groups.size(); ++v) {
    CHECK(f.groups[v].nodes.front() == static_cast<int>(v));
    for (int n : f.groups[v].nodes) {
      CHECK(t.graph.node(n).origin == static_cast<int>(v));
      CHECK(all.insert(n).second);
    }
  }
}

TEST_CASE("a result goes forward and its gradient back, as often as there are micro-batches; inputs do not travel") {
  training_options o;
  o.micro_batches = 3;
  training_graph const t = differentiate(chain(false), o);
  training_flows const f(t, 3);
  CHECK(f.between.size() == 3);                            // only neighbours
  for (auto const& [ab, all] : f.between) {
    CHECK(ab.second == ab.first + 1);
    REQUIRE(all.size() == 2);
    CHECK(all[0].from_first != all[1].from_first);
    for (value_flow const& x : all) CHECK(x.times == 3);
  }
}

TEST_CASE("a shared parameter goes from its home to its other readers once a step, and their gradients come back") {
  training_options o;
  o.micro_batches = 3;
  training_graph const t = differentiate(chain(true), o);
  training_flows const f(t, 3);
  REQUIRE(f.between.count({0, 2}));
  int once = 0;
  for (value_flow const& x : f.between.at({0, 2}))
    once += x.from_first && x.times == 1 && t.graph.value(x.value).role == value_role::parameter;
  CHECK(once == 1);
  CHECK(training_flows(differentiate(chain(false), o), 3).between.count({0, 2}) == 0);
}

TEST_CASE("keys are equal for operators that look alike, and for no others") {
  training_graph const t = differentiate(chain(false));
  training_flows const f(t, 1);
  CHECK(f.key_of(1) == f.key_of(2));
  CHECK(f.key_of(0) != f.key_of(1));                       // its operand is an input, whose gradient nobody wants
  CHECK(f.key_of(2) != f.key_of(3));
  training_options momentum;
  momentum.optimizer.kind = optimizer_kind::momentum;
  training_graph const u = differentiate(chain(false), momentum);
  CHECK(training_flows(u, 1).key_of(1) != f.key_of(1));
}

TEST_CASE("under clipping every parameter's share of the norm goes everywhere") {
  training_options o;
  o.optimizer.clip_norm = 1;
  training_graph const t = differentiate(chain(false), o);
  training_flows const f(t, 1);
  for (int v = 0; v < 3; ++v) CHECK(f.groups[static_cast<std::size_t>(v)].everywhere.size() == 1);
  CHECK(f.groups[3].everywhere.empty());
}
