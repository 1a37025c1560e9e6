// tests/rewrite/derivations.test.cpp - parallelisations that Unity shows, as chains of shipped rules (OSDI'22, figures 2, 10 and 11)
#include <doctest/doctest.h>

#include <map>
#include <support/spine.hpp>
#include <tensorpar/rewrite/apply.hpp>
#include <tensorpar/rewrite/standard_rules.hpp>

#include "rule_graphs.hpp"

using namespace tests;

namespace {
/// The shipped rule, in this direction, that reads so.
rule shipped(std::string_view text) {
  auto reads = [&](rule r) { r.name.clear(); return spell(r) == text; };
  for (rule const& r : standard_rules()) {
    if (reads(r)) return r;
    if (auto back = reversed(r); back && reads(*back)) return *back;
  }
  FAIL("no shipped rule reads " << text);
  return {};
}
/// Applies it where it is first found and valid.
void step(open_graph& g, std::string_view text, std::map<std::string, i64> const& chosen = {}) {
  rule const r = shipped(text);
  std::string why = "not found";
  for (rule_match& m : find_matches(r, g)) {
    for (std::size_t p = 0; p < m.bound.size(); ++p)
      if (!m.bound[p]) m.parameter[p] = chosen.at(r.parameters[p].name);
    rewriting const w = apply_rule(r, m, g);
    if (w.done()) return;
    why = w.refused;
  }
  FAIL(text << ": " << why);
}
/// The graph's operators in order, with their operands.
std::string picture(spread_graph const& s) {
  std::vector<std::string> text(s.graph.values.size());
  for (std::size_t x = 0; x < s.graph.values.size(); ++x) text[x] = s.graph.values[x].name;
  for (graph_node const& n : s.graph.nodes) {
    std::string t(n.op.op->name);
    if (n.op.op->attrs == 2 && is_parallel(n.op)) t += std::to_string(n.op.attr[0]);
    t += "(";
    for (std::size_t k = 0; k < n.in.size(); ++k) t += (k ? ", " : "") + text[static_cast<std::size_t>(n.in[k])];
    text[static_cast<std::size_t>(n.out[0])] = t + ")";
  }
  return text[static_cast<std::size_t>(s.graph.outputs[0].value)];
}
computation_graph mlp(i64 batch, i64 in, i64 hidden, i64 out) {
  computation_graph c;
  int const x = c.add_parameter("x", {dim(batch), dim(in)}, init::normal_02);
  int const v = c.add_parameter("v", {dim(hidden), dim(in)}, init::fan_in), w = c.add_parameter("w", {dim(out), dim(hidden)}, init::fan_in);
  int const h = c.node(c.add(relu{}, {c.node(c.add(linear{hidden, false}, {x, v})).out[0]})).out[0];
  c.add_output("y", c.node(c.add(linear{out, false}, {h, w})).out[0]);
  return c;
}
bool learns_as(computation_graph const& a, computation_graph const& b) {
  computation_graph const x = with_loss(a), y = with_loss(b);
  executor_of<prime_field> e(differentiate(x), serial_plan(x)), f(differentiate(y), serial_plan(y));
  return train(e, 2) == train(f, 2);
}

constexpr char const *by_rows = "linear(x, y) => combine{dim=d,degree=k}(linear(partition{dim=d,degree=k}(x), replicate{degree=k}(y)))",
                     *by_columns =
                         "linear(x, y) => combine{dim=-1,degree=k}(linear(replicate{degree=k}(x), partition{dim=-2,degree=k}(y)))",
                     *by_sums = "linear(x, y) => reduce{degree=k}(linear(partition{dim=-1,degree=k}(x), partition{dim=-1,degree=k}(y)))",
                     *function_of_combine = "?f(combine{dim=d,degree=k}(x)) => combine{dim=d,degree=k}(?f(x))",
                     *undo = "partition{dim=d,degree=k}(combine{dim=d,degree=k}(x)) => x";
}  // namespace

TEST_CASE("figure 10: Megatron's feed-forward net") {
  computation_graph const c = mlp(8, 12, 16, 4);
  for (i64 k : {2, 4}) {
    open_graph g(unspread(c));
    step(g, by_columns, {{"k", k}});
    step(g, function_of_combine);
    step(g, by_sums, {{"k", k}});
    step(g, undo);
    spread_graph const s = g.close();
    CHECK(problems(s).empty());
    CHECK(picture(s) == "reduce(linear(relu(linear(replicate(x), partition0(v))), partition1(w)))");
    CHECK(learns_as(c, s.graph));
  }
}

TEST_CASE("figure 11a: a function may be split along any axis") {
  computation_graph c;
  int const x = c.add_parameter("x", {4, 6, 8}, init::normal_02);
  c.add_output("y", c.node(c.add(relu{}, {x})).out[0]);
  for (i64 d : {0, 1, 2}) {
    open_graph g(unspread(c));
    step(g, "?f(x) => combine{dim=d,degree=k}(?f(partition{dim=d,degree=k}(x)))", {{"d", d}, {"k", 2}});
    std::string const axis = std::to_string(d);
    CHECK(picture(g.close()) == "combine" + axis + "(relu(partition" + axis + "(x)))");
    CHECK(learns_as(c, g.close().graph));
  }
}

TEST_CASE("figure 2: 131,072 elements between two devices instead of 813,056") {
  i64 const b = 64, h = 512, co = 10, ci = 784;
  computation_graph const c = mlp(b, ci, h, co);
  // What is sent when two devices add partial sums or copy a result: one part each time, forward; the same for the other way round backward
  // (the derivative of reduce is replicate). A copied weight's gradients are added and the weight copied again. Cutting what a device has,
  // and weights and inputs that lie where they are used, cost nothing.
  auto sent = [](spread_graph const& s) {
    i64 n = 0;
    for (graph_node const& v : s.graph.nodes) {
      if (!v.op.is<parallel::reduce>() && !v.op.is<parallel::replicate>()) continue;
      graph_value const& x = s.graph.value(v.in[0]);
      bool const input = x.producer < 0 && x.name == "x";
      if (!input) n += 2 * x.type.elements();
    }
    return n;
  };
  open_graph data(unspread(c));
  step(data, by_rows, {{"d", 0}, {"k", 2}});
  step(data, by_rows, {{"d", 0}, {"k", 2}});
  step(data, function_of_combine);
  step(data, undo);
  spread_graph const a = data.close();
  CHECK(picture(a) == "combine0(linear(relu(linear(partition0(x), replicate(v))), replicate(w)))");
  CHECK(sent(a) == 2 * (ci * h + h * co));
  CHECK(sent(a) == 813056);

  open_graph joint(unspread(c));
  rule const sums = shipped(by_sums), columns = shipped(by_columns);
  auto at = [&](rule const& r, int node) {
    for (rule_match& m : find_matches(r, joint))
      if (m.node[0] == node) {
        m.parameter.assign(m.parameter.size(), 2);
        return apply_rule(r, m, joint).refused;
      }
    return std::string("not found");
  };
  CHECK(at(sums, 0).empty());            // the first product over its sums, since it is not fused with its function
  CHECK(at(columns, 2).empty());         // the second over its columns
  spread_graph const t = joint.close();
  CHECK(picture(t) == "combine1(linear(replicate(relu(reduce(linear(partition1(x), partition1(v))))), partition0(w)))");
  CHECK(sent(t) == 4 * b * h);
  CHECK(sent(t) == 131072);
  CHECK(problems(t).empty());
}
