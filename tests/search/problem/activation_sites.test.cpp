// tests/search/problem/activation_sites.test.cpp - where a function may be computed with the operator before it
#include <tensorpar/search/problem/activation_sites.hpp>
#include <doctest/doctest.h>

#include <tensorpar/op/operators.hpp>
#include <tensorpar/rewrite/match_rule.hpp>
#include <tensorpar/rewrite/rules/standard_rules.hpp>
#include <tensorpar/zoo/registry.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

namespace {
std::vector<rewrite::rule const*> const& shipped() {
  static std::vector<rewrite::rule const*> const r = activating(rewrite::standard_rules());
  return r;
}
rewrite::rule read(char const* text) { return parse_rule(text, rewrite::standard_vocabulary(), "test"); }
struct built {
  computation_graph g;
  int put(op::any_op const& o, std::vector<value_id> in) { return g.node(g.add(o, std::move(in))).out[0]; }
};
}  // namespace

TEST_CASE("rules that make one operator of two are told by what they say, not by their names") {
  CHECK(activates(read("relu(linear(x, w)) => linear_relu(x, w)")));
  CHECK(activates(read("relu(conv2d{stride,pad,1,pad_w}(x, w, b)) => conv2d_relu{stride,pad,1,pad_w}(x, w, b)")));
  CHECK(!activates(read("linear_relu(x, w) => relu(linear(x, w))")));
  CHECK(!activates(read("relu(conv2d{1,pad,1,pad_w}(x, w)) => conv2d_relu{2,pad,1,pad_w}(x, w)")));   // another stride
  CHECK(!activates(read("tanh(linear(x, w)) => linear_relu(x, w)")));
  CHECK(!activates(read("relu(linear(x, w)) => linear_relu(w, x)")));
  CHECK(!activates(read("scale{s}(scale{t}(x)) => scale{s*t}(x)")));
  int shipped = 0;
  for (rewrite::rule const& r : rewrite::standard_rules()) shipped += activates(r);
  CHECK(shipped == 8);
}

TEST_CASE("a function is joined to the operator whose result it alone reads, with or without a bias") {
  built b;
  int const x = b.g.add_input("x", {4, 8}), w = b.g.add_parameter("w", {8, 8}, op::init::fan_in),
      v = b.g.add_parameter("b", {8}, op::init::zeros);
  int const one = b.put(linear{8, false}, {x, w}), two = b.put(relu{}, {one});
  int const three = b.put(linear{8}, {two, w, v}), four = b.put(tanh_{}, {three});
  int const five = b.put(gelu{}, {b.put(linear{8, false}, {four, w})});        // its derivative reads the operand
  int const six = b.put(linear{8, false}, {five, w}), seven = b.put(relu{}, {six});
  b.g.add_output("y", b.put(add{}, {six, seven}));                             // another reader
  int const eight = b.put(linear{8, false}, {x, w});
  b.g.add_output("seen", eight);
  b.g.add_output("z", b.put(sigmoid{}, {eight}));
  auto const found = activation_sites(b.g, b.g.node_count(), shipped());
  REQUIRE(found.size() == 2);
  CHECK(found[0].op == 0);
  CHECK(found[0].function == 1);
  CHECK(found[0].both == op::any_op(op::linear_relu{{8, false}}));
  CHECK(found[0].by->target.nodes[0].op->name == "linear_relu");
  CHECK(found[1].both == op::any_op(op::linear_tanh{{8, true}}));
  // an output that stands for a reader elsewhere, of which the caller knows that there is none
  auto const more = activation_sites(b.g, b.g.node_count(), shipped(), [](std::string const& name) { return name == "seen"; });
  CHECK(more.size() == 3);
  CHECK(activation_sites(b.g, 2, shipped()).size() == 1);                        // the first operators alone
  CHECK(activation_sites(b.g, b.g.node_count(), {}).empty());
}

TEST_CASE("attributes that the rule fixes must be these") {
  built b;
  int const x = b.g.add_input("x", {2, 4, 6, 6});
  for (i64 groups : {1, 2}) {
    int const w = b.g.add_parameter("w" + std::to_string(groups), {4, 4 / groups, 3, 3}, op::init::fan_in);
    b.g.add_output("y" + std::to_string(groups), b.put(relu{}, {b.put(conv2d{.out = 4, .groups = groups}, {x, w})}));
  }
  auto const found = activation_sites(b.g, b.g.node_count(), shipped());
  REQUIRE(found.size() == 1);                                                  // rules are proved of ungrouped convolutions
  CHECK(found[0].op == 0);
}

TEST_CASE("sites are the matches of the rules, in models") {
  int sites = 0;
  for (zoo::entry const& e : zoo::entries()) {
    CAPTURE(e.name);
    computation_graph const g = zoo::make_reduced(e.name, 24);
    rewrite::open_graph const open(rewrite::unsharded(g));
    std::vector<std::pair<int, int>> a, b;
    for (rewrite::rule const* r : shipped())
      for (rewrite::rule_match const& m : find_matches(*r, open)) a.push_back({m.node[0], m.node[1]});
    for (activation_site const& s : activation_sites(g, g.node_count(), shipped())) b.push_back({s.op, s.function});
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    CHECK(a == b);
    sites += static_cast<int>(b.size());
  }
  CHECK(sites > 50);
}
