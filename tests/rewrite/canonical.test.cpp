// tests/rewrite/canonical.test.cpp - graphs have one form if and only if they differ in the order of their nodes alone
#include <tensorpar/rewrite/canonical.hpp>
#include <doctest/doctest.h>

#include <random>
#include <tensorpar/op/operators.hpp>

using namespace tensorpar;

namespace {

/// A random graph as lists, so that it can be built in any order that has operands first.
struct plain_node { int kind; std::vector<int> from; };       // operands: leaf -1, -2; or a node
std::vector<plain_node> drawn(std::mt19937& draw) {
  std::vector<plain_node> r;
  int const n = 2 + static_cast<int>(draw() % 5);
  for (int v = 0; v < n; ++v) {
    plain_node x{static_cast<int>(draw() % 4), {}};
    for (int k = 0; k < (x.kind < 2 ? 2 : 1); ++k) x.from.push_back(static_cast<int>(draw() % static_cast<unsigned>(v + 2)) - 2);
    r.push_back(x);
  }
  return r;
}
computation_graph built(std::vector<plain_node> const& g, std::vector<int> const& order, bool turned) {
  computation_graph r;
  int const a = r.add_input("a", {4, 4}), b = r.add_parameter("b", {4, 4}, op::init::ones);
  std::vector<int> value(g.size(), -1);
  for (int v : order) {
    plain_node const& n = g[static_cast<std::size_t>(v)];
    std::vector<value_id> in;
    for (int u : n.from) in.push_back(u == -1 ? a : u == -2 ? b : value[static_cast<std::size_t>(u)]);
    if (turned && n.kind == 0) std::swap(in[0], in[1]);
    op::any_op const o = n.kind == 0 ? op::any_op(add{}) : n.kind == 1 ? op::any_op(matmul{}) : n.kind == 2 ? op::any_op(relu{})
        : op::any_op(transpose{0, 1});
    value[static_cast<std::size_t>(v)] = r.node(r.add(o, in)).out[0];
  }
  r.add_output("y", value.back());
  return r;
}
std::vector<int> any_order(std::vector<plain_node> const& g, std::mt19937& draw) {
  std::vector<int> order;
  std::vector<char> done(g.size(), 0);
  while (order.size() < g.size()) {
    int const v = static_cast<int>(draw() % g.size());
    bool ready = !done[static_cast<std::size_t>(v)];
    for (int u : g[static_cast<std::size_t>(v)].from) ready = ready && (u < 0 || done[static_cast<std::size_t>(u)]);
    if (!ready) continue;
    done[static_cast<std::size_t>(v)] = 1;
    order.push_back(v);
  }
  return order;
}
/// Written out as a tree, operands of sums in one order: what the form of its last node stands for.
std::string tree(std::vector<plain_node> const& g, int v) {
  if (v < 0) return v == -1 ? "a" : "b";
  plain_node const& n = g[static_cast<std::size_t>(v)];
  std::vector<std::string> in;
  for (int u : n.from) in.push_back(tree(g, u));
  if (n.kind == 0) std::sort(in.begin(), in.end());
  std::string s = std::to_string(n.kind) + "(";
  for (auto const& x : in) s += x + ",";
  return s + ")";
}
std::vector<std::string> trees(std::vector<plain_node> const& g) {
  std::vector<std::string> r;
  for (std::size_t v = 0; v < g.size(); ++v) r.push_back(tree(g, static_cast<int>(v)));
  std::sort(r.begin(), r.end());
  r.push_back(tree(g, static_cast<int>(g.size()) - 1));
  return r;
}

}  // namespace

TEST_CASE("the order of nodes and of a sum's operands does not matter") {
  std::mt19937 draw(1);
  rewrite::canonical_forms form;
  for (int turn = 0; turn < 300; ++turn) {
    auto const g = drawn(draw);
    std::vector<int> straight;
    for (std::size_t v = 0; v < g.size(); ++v) straight.push_back(static_cast<int>(v));
    CHECK(form(built(g, straight, false)) == form(built(g, any_order(g, draw), turn % 2)));
  }
}

TEST_CASE("forms are equal where the operators are, written out, and nowhere else") {
  std::mt19937 draw(2);
  rewrite::canonical_forms form;
  std::map<std::vector<i64>, std::vector<std::string>> known;
  std::map<std::vector<std::string>, std::vector<i64>> back;
  int again = 0;
  for (int turn = 0; turn < 3000; ++turn) {
    auto const g = drawn(draw);
    std::vector<int> straight;
    for (std::size_t v = 0; v < g.size(); ++v) straight.push_back(static_cast<int>(v));
    auto const f = form(built(g, straight, false));
    auto const t = trees(g);
    again += static_cast<int>(known.count(f));
    CHECK(known.try_emplace(f, t).first->second == t);
    CHECK(back.try_emplace(t, f).first->second == f);
  }
  CHECK(again > 100);
}

TEST_CASE("attributes count, axes from either end are the same axis") {
  rewrite::canonical_forms form;
  auto const one = [](op::any_op const& o) {
    computation_graph g;
    g.add_output("y", g.node(g.add(o, {g.add_input("a", {4, 4}), g.add_input("b", {4, 4})})).out[0]);
    return g;
  };
  CHECK(form(one(concat{1})) == form(one(concat{-1})));
  CHECK(form(one(concat{0})) != form(one(concat{1})));
  CHECK(form(one(matmul{false, true})) != form(one(matmul{false, false})));
}
