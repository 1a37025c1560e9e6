// tests/rewrite/match_rule.test.cpp - matches, against trying every way to place a rule's source
#include <tensorpar/rewrite/match_rule.hpp>
#include <tensorpar/core/index.hpp>
#include <doctest/doctest.h>

#include <random>
#include <set>
#include <support/effort.hpp>
#include <tensorpar/rewrite/rule_parser.hpp>

using namespace tensorpar;

namespace {
/// A graph of functions, sums, products, splits and copies over a few inputs of one shape.
/// (Shardings are no matter of matching: here nothing says where values lie.)
rewrite::sharding_graph random_graph(std::mt19937& draw, int nodes) {
  computation_graph c;
  std::vector<value_id> values;
  for (int i = 0; i < 2; ++i) values.push_back(c.add_input("x" + std::to_string(i), {12, 12}));
  for (int i = 0; i < nodes; ++i) {
    value_id const a = values[draw() % values.size()], b = values[draw() % values.size()];
    op::any_op const ops[] = {relu{}, tanh_{}, scale{2}, parallel::replicate{2}, parallel::replicate{6}, tensorpar::add{}, mul{},
                          tensorpar::add{}};
    op::any_op const& o = ops[draw() % 8];
    values.push_back(c.node(c.add(o, o.op->arity == 2 ? std::vector{a, b} : std::vector{a})).out[0]);
  }
  for (std::size_t x = values.size() - 2; x < values.size(); ++x) c.add_output("y" + std::to_string(x), values[x]);
  rewrite::sharding_graph s{c, {}};
  for (graph_value const& v : c.values) s.shapes.emplace_back(v.type);
  return s;
}
/// Where each node of the source and each tensor may stand: every injective placement, every order of operands.
std::set<std::vector<int>> by_force(rewrite::rule const& r, rewrite::open_graph const& g) {
  std::set<std::vector<int>> all;
  std::size_t const n = r.source.nodes.size();
  std::vector<int> at(n, -1);
  auto check = [&] {
    for (unsigned turns = 0; turns < 1u << n; ++turns) {
      std::vector<int> tensor(r.tensors.size(), -1);
      std::vector<op::op_info const*> function(r.parameters.size(), nullptr);
      std::vector<i64> degree(r.parameters.size(), 0);
      bool good = true;
      for (std::size_t p = 0; p < n && good; ++p) {
        rewrite::pattern_node const& s = r.source.nodes[p];
        auto const& v = g.node(at[p]);
        bool const turned = turns >> p & 1;
        bool const commutes = s.op && (s.op->name == "add" || s.op->name == "mul") && v.in.size() == 2 && v.in[0] != v.in[1];
        if (turned && !commutes) good = false;
        if (!s.op) {
          good = good && rewrite::is_function(*v.op.op) && (!function[idx(s.function)] || function[idx(s.function)]->id == v.op.op->id);
          function[idx(s.function)] = v.op.op;
        } else {
          good = good && s.op->id == v.op.op->id;
        }
        if (!good || s.in.size() != v.in.size()) { good = false; break; }
        for (std::size_t i = 0; i < s.attr.size(); ++i) {
          rewrite::rule_term const& t = s.attr[i];
          if (t.factors.empty()) { good = good && t.number == v.op.attr[i]; continue; }
          i64& k = degree[idx(t.factors[0].index)];
          good = good && (k == 0 || k == v.op.attr[i]);
          k = v.op.attr[i];
        }
        for (std::size_t k = 0; k < s.in.size(); ++k) {
          int const x = v.in[turned ? 1 - k : k];
          rewrite::pattern_value const w = s.in[k];
          if (w.node >= 0) good = good && g.value(x).producer == at[idx(w.node)];
          else { int& t = tensor[idx(w.slot)]; good = good && (t < 0 || t == x); t = x; }
        }
      }
      for (std::size_t p = 0; p < n && good; ++p) {
        bool output = false;
        for (rewrite::pattern_value w : r.source.outputs) output = output || w.node == static_cast<int>(p);
        auto const& x = g.value(g.node(at[p]).out[0]);
        if (output) continue;
        good = x.outputs == 0;
        for (int u : x.users) good = good && std::find(at.begin(), at.end(), u) != at.end();
      }
      if (!good) continue;
      std::vector<int> m = at;
      m.insert(m.end(), tensor.begin(), tensor.end());
      all.insert(m);
    }
  };
  auto place = [&](auto& self, std::size_t p) -> void {
    if (p == n) return check();
    for (int v = 0; v < g.node_count(); ++v) {
      if (std::find(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(p), v) != at.begin() + static_cast<std::ptrdiff_t>(p)) continue;
      at[p] = v;
      self(self, p + 1);
    }
    at[p] = -1;
  };
  place(place, 0);
  return all;
}
}  // namespace

TEST_CASE("all matches and no others, in one order") {
  std::mt19937 draw(1);
  std::vector<rewrite::rule> rules;
  for (char const* text : {"?f(x) => ?f(x)", "relu(?f(x)) => ?f(relu(x))", "add(x, mul(x, y)) => mul(x, add(x, y))",
                           "add(x, x) => scale{2}(x)",
                           "replicate{k}(?f(x)) => ?f(replicate{k}(x))", "add(replicate{k}(x), replicate{k}(y)) => replicate{k}(add(x, y))",
                           "t = ?f(x); add(t, mul(t, y)) => t = ?f(x); add(t, mul(t, y))", "?f(x), ?f(y) => ?f(x), ?f(y)",
                           "relu(x), tanh(x) => relu(x), tanh(x)", "scale{2}(add(x, y)) => add(scale{2}(x), scale{2}(y))"})
    rules.push_back(rewrite::parse_rule(text));
  int matches = 0;
  for (int turn = 0; turn < test_effort::cases(60); ++turn) {
    rewrite::open_graph const g(random_graph(draw, 7));
    for (rewrite::rule const& r : rules) {
      CAPTURE(rewrite::spell(r));
      std::set<std::vector<int>> found;
      std::vector<rewrite::rule_match> const all = rewrite::find_matches(r, g);
      for (rewrite::rule_match const& m : all) {
        std::vector<int> k = m.node;
        k.insert(k.end(), m.tensor.begin(), m.tensor.end());
        found.insert(k);
      }
      REQUIRE(found == by_force(r, g));
      CHECK(found.size() == all.size());
      CHECK(rewrite::find_matches(r, g) == all);
      if (!all.empty()) CHECK(rewrite::find_matches(r, g, 1).size() == 1);
      matches += static_cast<int>(all.size());
    }
  }
  CHECK(matches > test_effort::cases(200));
}

TEST_CASE("products are written in every way, axes are counted from the left, extents are compared") {
  computation_graph c;
  int const x = c.add_input("x", {24, 6});
  int const y = c.node(c.add(concat{-1}, {x, x})).out[0];
  int const z = c.node(c.add(slice_axis{-1, 0, 6}, {y})).out[0];
  c.add_output("p", c.node(c.add(parallel::partition{0, 12}, {z})).out[0]);
  rewrite::sharding_graph const s = [&] {
    rewrite::sharding_graph t{c, {}};
    for (graph_value const& v : c.values) t.shapes.emplace_back(v.type);
    t.shapes.back().degree[0] = 12;
    return t;
  }();
  rewrite::open_graph const g(s);
  auto parameters = [&](std::string_view text) {
    std::vector<std::vector<i64>> all;
    for (rewrite::rule_match const& m : rewrite::find_matches(rewrite::parse_rule(text), g)) all.push_back(m.parameter);
    return all;
  };
  CHECK(parameters("partition{0,k*m}(x) => partition{0,k}(partition{0,m}(x))") ==
        std::vector<std::vector<i64>>{{2, 6}, {3, 4}, {4, 3}, {6, 2}});
  CHECK(parameters("partition{0,3*k}(x) => partition{0,3*k}(x)") == std::vector<std::vector<i64>>{{4}});
  CHECK(parameters("partition{d,k}(x) => partition{d,k}(x)") == std::vector<std::vector<i64>>{{0, 12}});
  CHECK(parameters("partition{-2,k}(x) => partition{-2,k}(x)").size() == 1);
  CHECK(parameters("partition{-1,k}(x) => partition{-1,k}(x)").empty());
  CHECK(parameters("slice{d,0,extent(x,d)}(concat{d}(x, y)) => slice{d,0,extent(x,d)}(concat{d}(x, y))") ==
        std::vector<std::vector<i64>>{{1}});
  CHECK(parameters("slice{d,extent(x,d),extent(y,d)}(concat{d}(x, y)) => concat{d}(x, y)").empty());
}

TEST_CASE("results that a node does not have are not found") {
  computation_graph c;
  int const x = c.add_input("x", {12, 12});
  std::vector<value_id> const halves = c.node(c.add(split_axes{2, 0}, {x})).out;
  c.add_output("y", c.node(c.add(relu{}, {halves[0]})).out[0]);
  c.add_output("z", c.node(c.add(relu{}, {halves[1]})).out[0]);
  rewrite::open_graph const g(rewrite::unsharded(c));
  auto found = [&](std::string_view text) { return rewrite::find_matches(rewrite::parse_rule(text), g).size(); };
  CHECK(found("t = split{parts=n,axis=d}(x); relu(t), relu(t.1) => relu(x), relu(x)") == 1);
  CHECK(found("t = split{parts=n,axis=d}(x); t, relu(t.1) => x, relu(x)") == 1);
  CHECK(found("t = split{parts=n,axis=d}(x); t, relu(t.2) => x, relu(x)") == 0);
  CHECK(found("split{parts=n,axis=d}(x).2 => x") == 0);
  CHECK(found("t = split{parts=n,axis=d}(x); t.2, add(t.2, y) => x, add(x, y)") == 0);
}
