// tests/rewrite/apply.test.cpp - every shipped rule is found, applied, and computes and learns the same; what must not be is refused
#include <tensorpar/rewrite/apply.hpp>
#include <doctest/doctest.h>

#include <support/effort.hpp>
#include <support/spine.hpp>
#include <tensorpar/rewrite/rule_parser.hpp>
#include <tensorpar/rewrite/rules/standard_rules.hpp>

#include "rule_graphs.hpp"

using namespace tests;

namespace {
/// Chooses what the source leaves open as the instance has it.
void choose(tensorpar::rewrite::rule const& r, tensorpar::rewrite::rule_match& m, rule_instance const& g) {
  for (std::size_t p = 0; p < r.parameters.size(); ++p)
    if (!m.bound[p]) m.parameter[p] = g.at.parameter[p];
}
bool learns_the_same(computation_graph const& a, computation_graph const& b, bool exactly) {
  computation_graph const x = with_loss(a), y = with_loss(b);
  if (exactly) {
    executor_of<prime_field> e(differentiate(x), serial_plan(x)), f(differentiate(y), serial_plan(y));
    return train(e, 2) == train(f, 2);
  }
  executor_of<double> e(differentiate(x), serial_plan(x)), f(differentiate(y), serial_plan(y));
  return distance(train(e, 2), train(f, 2)) < 1e-9;
}
}  // namespace

TEST_CASE("every shipped rule: found in a graph, applied, valid, and equal in the field and in double, forward and through differentiate") {
  std::mt19937 draw(1);
  int applied = 0, sharding = 0, without = 0;
  for (rewrite::rule const& r : rewrite::standard_rules()) {
    CAPTURE(spell(r));
    auto const cases = cases_of(r);
    for (int turn = 0; turn < test_effort::cases(2); ++turn) {
      auto const s = graph_of_source(r, cases, draw);
      if (!s) {                           // an instance whose degrees are all above one has some above six
        ++without;
        break;
      }
      rewrite::open_graph g(s->graph);
      std::vector<int> identity;
      for (int i = 0; i < static_cast<int>(r.source.nodes.size()); ++i) identity.push_back(i);
      rewrite::rule_match found;
      for (rewrite::rule_match& m : find_matches(r, g))
        if (m.node == identity) {
          choose(r, m, s->instance);
          bool same = true;               // a degree that is a product can be written in several ways
          for (std::size_t p = 0; p < r.parameters.size(); ++p)
            same = same && (r.parameters[p].kind == rewrite::parameter_kind::function || m.parameter[p] == s->instance.at.parameter[p]);
          if (same && found.node.empty()) found = m;
        }
      REQUIRE(!found.node.empty());
      rewrite::rewriting const w = apply_rule(r, found, g);
      CAPTURE(w.refused);
      REQUIRE(w.done());
      CHECK(w.added.size() == r.target.nodes.size());
      CHECK(w.removed.size() == r.source.nodes.size());
      rewrite::sharding_graph const t = g.close();
      CHECK(problems(t).empty());
      CHECK(t.graph.node_count() == static_cast<int>(r.target.nodes.size()));
      CHECK(learns_the_same(s->graph.graph, t.graph, true));
      CHECK(learns_the_same(s->graph.graph, t.graph, false));
      ++applied;
      for (ir::parallel_shape const& x : t.shapes) if (x.parts() > 1) { ++sharding; break; }
    }
  }
  CHECK(sharding > applied * 2 / 3);
  CHECK(without < 10);
  MESSAGE(applied << " times applied, " << without << " rules without a small instance");
}

TEST_CASE("what would not be valid is refused with a reason, and nothing is changed") {
  computation_graph c;
  int const x = c.add_input("x", {6, 8}), w = c.add_parameter("w", {4, 8}, tensorpar::op::init::ones);
  int const y = c.node(c.add(linear{4, false}, {x, w})).out[0];
  c.add_output("y", c.node(c.add(relu{}, {y})).out[0]);
  tensorpar::rewrite::sharding_graph const s = tensorpar::rewrite::unsharded(c);
  auto attempt = [&](std::string_view text, std::vector<i64> chosen, std::string_view why) {
    CAPTURE(std::string(text));
    tensorpar::rewrite::open_graph g(s);
    tensorpar::rewrite::rule const r = tensorpar::rewrite::parse_rule(text);
    auto all = tensorpar::rewrite::find_matches(r, g);
    REQUIRE(all.size() == 1);
    for (std::size_t p = 0; p < chosen.size(); ++p) if (!all[0].bound[p]) all[0].parameter[p] = chosen[p];
    tensorpar::rewrite::rewriting const n = tensorpar::rewrite::apply_rule(r, all[0], g);
    CAPTURE(n.refused);
    CHECK(n.refused.find(why) != std::string::npos);
    if (why.empty()) CHECK(n.done());
    else CHECK(g.close().graph.hash() == tensorpar::rewrite::open_graph(s).close().graph.hash());
  };
  std::string_view const data = "linear(x, w) => combine{d,k}(linear(partition{d,k}(x), replicate{k}(w)))";
  attempt(data, {0, 3}, "");
  attempt(data, {0, 4}, "does not divide the axis");
  attempt(data, {1, 2}, "split differently");
  attempt(data, {5, 2}, "no such axis");
  attempt("linear(x, w) => combine{d,k}(linear(partition{d,k}(x), replicate{k}(w))) where d inside x", {1, 2}, "one of the last");
  attempt("linear(x, w) => combine{d,k}(linear(partition{d,k}(x), replicate{k}(w))) where k | extent(x,d)", {0, 4},
          "does not divide the second");
  attempt("linear(x, w) => linear(partition{d,k}(x), replicate{k}(w))", {0, 2}, "would lie as");
  attempt("relu(x) => scale{2}(x)", {}, "");
  attempt("relu(x) => transpose{0,1}(x)", {}, "would lie as");
  attempt("relu(x) => reduce{k}(x)", {2}, "partial sums");
  attempt("linear(x, w) => linear(x, x)", {}, "w would be used no more");
  attempt("relu(linear(x, w)) => scale{0}(linear(x, w))", {}, "");
  attempt("relu(x) => relu(split{parts=2,axis=0}(concat{0}(x, x)).2)", {}, "result 2");
  attempt("relu(x) => split{parts=2,axis=0}(concat{0}(x, x)).2", {}, "result 2");
}

TEST_CASE("values that others use stay, cycles are not closed") {
  computation_graph c;
  int const x = c.add_input("x", {4, 4}), v = c.add_parameter("v", {4, 4}, tensorpar::op::init::ones),
      w = c.add_parameter("w", {4, 4}, tensorpar::op::init::ones);
  int const a = c.node(c.add(matmul{}, {x, v})).out[0];
  int const b = c.node(c.add(matmul{}, {a, w})).out[0];   // of the first product's result
  c.add_output("b", b);
  tensorpar::rewrite::open_graph g(tensorpar::rewrite::unsharded(c));
  tensorpar::rewrite::rule const joined = tensorpar::rewrite::parse_rule(
      "matmul{0,0}(a, b), matmul{0,0}(c, d) => t = matmul{0,0}(a, b); slice{0,0,extent(a,0)}(concat{0}(t, t)), matmul{0,0}(c, d)");
  for (rewrite::rule_match const& m : find_matches(joined, g))
    CHECK(apply_rule(joined, m, g).refused.find("depends on one of its results") != std::string::npos);
  CHECK(tensorpar::rewrite::find_matches(joined, g).size() == 2);

  computation_graph d;
  int const y = d.add_input("x", {4, 4});
  int const f = d.node(d.add(relu{}, {y})).out[0];
  d.add_output("once", d.node(d.add(relu{}, {f})).out[0]);
  tensorpar::rewrite::open_graph h(tensorpar::rewrite::unsharded(d));
  tensorpar::rewrite::rule const twice = tensorpar::rewrite::parse_rule("relu(relu(x)) => relu(x)");
  CHECK(tensorpar::rewrite::find_matches(twice, h).size() == 1);
  d.add_output("inside", f);
  CHECK(tensorpar::rewrite::find_matches(twice, tensorpar::rewrite::open_graph(tensorpar::rewrite::unsharded(d))).empty());
}
