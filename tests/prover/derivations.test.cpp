// tests/prover/derivations.test.cpp - parallelisations that Unity shows, as chains of shipped rules (OSDI'22, figures 2, 10, 11 and 16)
#include <doctest/doctest.h>

#include <map>
#include <support/spine.hpp>
#include <tensorpar/prover/derive.hpp>
#include <tensorpar/rewrite/rules/standard_rules.hpp>

#include "rule_graphs.hpp"

using namespace tests;
using namespace tensorpar::prover;

namespace {
/// The shipped rule, in this direction, that reads so.
rewrite::rule shipped(std::string_view text) {
  auto reads = [&](tensorpar::rewrite::rule r) { r.name.clear(); return tensorpar::rewrite::spell(r) == text; };
  for (tensorpar::rewrite::rule const& r : tensorpar::rewrite::standard_rules()) {
    if (reads(r)) return r;
    if (auto back = tensorpar::rewrite::reversed(r); back && reads(*back)) return *back;
  }
  FAIL("no shipped rule reads " << text);
  return {};
}
/// Applies it where it is first found and valid.
/// `about`: where one of its tensors is called so, or is made by an operator that is.
void step(tensorpar::rewrite::open_graph& g, std::string_view text, std::map<std::string, i64> const& chosen = {},
          std::string_view about = {}) {
  tensorpar::rewrite::rule const r = shipped(text);
  std::string why = "not found";
  for (tensorpar::rewrite::rule_match& m : tensorpar::rewrite::find_matches(r, g)) {
    bool meant = about.empty();
    for (int x : m.tensor) {
      int const v = g.value(x).producer;
      meant = meant || (v < 0 ? g.value(x).origin.name == about : g.node(v).op.op->name == about);
    }
    if (!meant) continue;
    for (std::size_t p = 0; p < m.bound.size(); ++p)
      if (!m.bound[p]) m.parameter[p] = chosen.at(r.parameters[p].name);
    tensorpar::rewrite::rewriting const w = tensorpar::rewrite::apply_rule(r, m, g);
    if (w.done()) return;
    why = w.refused;
  }
  FAIL(text << ": " << why);
}
/// Applies a rule that shards an operator wherever that operator is not sharded yet.
void sharding_all(tensorpar::rewrite::open_graph& g, std::string_view text, std::map<std::string, i64> const& chosen) {
  tensorpar::rewrite::rule const r = shipped(text);
  auto one = [&] {
    for (tensorpar::rewrite::rule_match& m : tensorpar::rewrite::find_matches(r, g)) {
      bool sharding = false;
      for (int x : m.tensor)
        for (int d = 0; d < g.value(x).where.type.rank; ++d) sharding = sharding || g.value(x).where.degree[d] > 1;
      if (sharding) continue;
      for (std::size_t p = 0; p < m.bound.size(); ++p)
        if (!m.bound[p]) m.parameter[p] = chosen.at(r.parameters[p].name);
      if (tensorpar::rewrite::apply_rule(r, m, g).done()) return true;
    }
    return false;
  };
  int n = 0;
  while (one()) REQUIRE(++n < 20);
  if (n == 0) FAIL(text << ": not found");
}
/// Applies a rule until it is found no more.
void everywhere(tensorpar::rewrite::open_graph& g, std::string_view text) {
  tensorpar::rewrite::rule const r = shipped(text);
  for (bool changed = true; changed;) {
    changed = false;
    for (tensorpar::rewrite::rule_match const& m : tensorpar::rewrite::find_matches(r, g))
      if ((changed = tensorpar::rewrite::apply_rule(r, m, g).done())) break;
  }
}
/// The graph's operators in order, with their operands.
std::string picture(tensorpar::rewrite::sharding_graph const& s) {
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
  int const x = c.add_parameter("x", {dim(batch), dim(in)}, tensorpar::op::init::normal_02);
  int const v = c.add_parameter("v", {dim(hidden), dim(in)}, tensorpar::op::init::fan_in),
      w = c.add_parameter("w", {dim(out), dim(hidden)}, tensorpar::op::init::fan_in);
  int const h = c.node(c.add(relu{}, {c.node(c.add(linear{hidden, false}, {x, v})).out[0]})).out[0];
  c.add_output("y", c.node(c.add(linear{out, false}, {h, w})).out[0]);
  return c;
}
/// Does a search find a chain, knowing nothing of ours?
bool found(computation_graph const& c, tensorpar::rewrite::sharding_graph const& s) {
  derivation_limits limits;
  limits.states = 20000;
  derivation const d = derive(tensorpar::rewrite::unsharded(c), s, tensorpar::rewrite::rules_both_ways(), limits);
  MESSAGE(d.steps.size() << " steps, " << d.states << " graphs");
  return d.found;
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
                     *head_by_columns =
                         "attention(x, y, z) => combine{dim=-1,degree=k}(attention(partition{dim=-1,degree=k}(x), "
                         "partition{dim=-1,degree=k}(y), partition{dim=-1,degree=k}(z)))",
                     *rows_of_table =
                         "embedding(x, y) => combine{dim=-2,degree=k}(embedding(partition{dim=-1,degree=k}(x), replicate{degree=k}(y)))",
                     *columns_of_table =
                         "embedding(x, y) => combine{dim=-1,degree=k}(embedding(replicate{degree=k}(x), partition{dim=-1,degree=k}(y)))",
                     *sum_by_parts = "sum{axis=-2}(x) => reduce{degree=k}(sum{axis=-2}(partition{dim=-2,degree=k}(x)))",
                     // the axis that is split comes to the front, or goes back
                     *to_front = "transpose{a=d,b=e}(x) => combine{dim=d,degree=k}(transpose{a=d,b=e}(partition{dim=e,degree=k}(x)))",
                     *to_back = "transpose{a=e,b=d}(x) => combine{dim=d,degree=k}(transpose{a=e,b=d}(partition{dim=e,degree=k}(x)))",
                     *into_heads =
                         "split_axis{which=-1}(x) => combine{dim=-2,degree=k}(split_axis{which=-1}(partition{dim=-1,degree=k}(x)))",
                     *from_heads =
                         "merge_axes{first=-2}(x) => combine{dim=-1,degree=k}(merge_axes{first=-2}(partition{dim=-2,degree=k}(x)))",
                     *undo = "partition{dim=d,degree=k}(combine{dim=d,degree=k}(x)) => x";
}  // namespace

TEST_CASE("figure 10: Megatron's feed-forward net") {
  computation_graph const c = mlp(8, 12, 16, 4);
  for (i64 k : {2, 4}) {
    tensorpar::rewrite::open_graph g(tensorpar::rewrite::unsharded(c));
    step(g, by_columns, {{"k", k}});
    step(g, function_of_combine);
    step(g, by_sums, {{"k", k}});
    step(g, undo);
    tensorpar::rewrite::sharding_graph const s = g.close();
    CHECK(tensorpar::rewrite::problems(s).empty());
    CHECK(picture(s) == "reduce(linear(relu(linear(replicate(x), partition0(v))), partition1(w)))");
    CHECK(learns_as(c, s.graph));
    CHECK(found(c, s));
  }
}

TEST_CASE("figure 10: Megatron's attention") {
  computation_graph c;
  int const x = c.add_parameter("x", {2, 4, 16}, tensorpar::op::init::normal_02);
  std::vector<value_id> heads;
  for (char const* w : {"q", "k", "v"})
    heads.push_back(c.node(c.add(linear{16, false}, {x, c.add_parameter(w, {16, 16}, tensorpar::op::init::fan_in)})).out[0]);
  int const y = c.node(c.add(attention{4}, heads)).out[0];
  c.add_output("y", c.node(c.add(linear{16, false}, {y, c.add_parameter("o", {16, 16}, tensorpar::op::init::fan_in)})).out[0]);
  for (i64 k : {2, 4}) {
    tensorpar::rewrite::open_graph g(tensorpar::rewrite::unsharded(c));
    sharding_all(g, head_by_columns, {{"k", k}});
    for (char const* w : {"q", "k", "v"}) step(g, by_columns, {{"k", k}}, w);
    step(g, by_sums, {{"k", k}}, "o");
    everywhere(g, undo);
    tensorpar::rewrite::sharding_graph const s = g.close();
    CHECK(tensorpar::rewrite::problems(s).empty());
    CHECK(picture(s) == "reduce(linear(attention(linear(replicate(x), partition0(q)), linear(replicate(x), partition0(k)), "
                        "linear(replicate(x), partition0(v))), partition1(o)))");
    CHECK(learns_as(c, s.graph));
    CHECK(found(c, s));
  }
}

TEST_CASE("figure 10: the same where attention is batched products") {
  computation_graph c;
  int const x = c.add_parameter("x", {2, 4, 16}, tensorpar::op::init::normal_02);
  auto apply = [&](auto const& o, std::vector<value_id> const& in) { return c.node(c.add(o, in)).out[0]; };
  std::vector<int> heads;
  for (char const* w : {"q", "k", "v"}) {
    int const y = apply(linear{16, false}, {x, c.add_parameter(w, {16, 16}, tensorpar::op::init::fan_in)});
    heads.push_back(apply(transpose{1, 2}, {apply(split_axis{2, 4}, {y})}));
  }
  int const p = apply(softmax{}, {apply(matmul{false, true}, {heads[0], heads[1]})});
  int const y = apply(merge_axes{2}, {apply(transpose{1, 2}, {apply(matmul{}, {p, heads[2]})})});
  c.add_output("y", apply(linear{16, false}, {y, c.add_parameter("o", {16, 16}, tensorpar::op::init::fan_in)}));
  i64 const k = 2;
  tensorpar::rewrite::open_graph g(tensorpar::rewrite::unsharded(c));
  for (char const* w : {"q", "k", "v"}) step(g, by_columns, {{"k", k}}, w);
  step(g, by_sums, {{"k", k}}, "o");
  for (int i = 0; i < 3; ++i) step(g, to_front, {{"k", k}}, "split_axis");
  step(g, to_back, {{"k", k}}, "matmul");
  sharding_all(g, into_heads, {{"k", k}});
  sharding_all(g,
             "matmul{transpose_a=0,transpose_b=1}(x, y) => combine{dim=d,degree=k}(matmul{transpose_a=0,transpose_b=1}"
             "(partition{dim=d,degree=k}(x), partition{dim=d,degree=k}(y))) where d inside x by 2",
             {{"d", 1}, {"k", k}});
  sharding_all(g,
             "matmul{transpose_a=0,transpose_b=0}(x, y) => combine{dim=d,degree=k}(matmul{transpose_a=0,transpose_b=0}"
             "(partition{dim=d,degree=k}(x), partition{dim=d,degree=k}(y)))",
             {{"d", 1}, {"k", k}});
  sharding_all(g, "softmax(x) => combine{dim=d,degree=k}(softmax(partition{dim=d,degree=k}(x)))", {{"d", 1}, {"k", k}});
  sharding_all(g, from_heads, {{"k", k}});
  everywhere(g, undo);
  tensorpar::rewrite::sharding_graph const s = g.close();
  CHECK(tensorpar::rewrite::problems(s).empty());
  std::string const head = "transpose(split_axis(linear(replicate(x), partition0(";
  CHECK(picture(s) == "reduce(linear(merge_axes(transpose(matmul(softmax(matmul(" + head + "q)))), " + head + "k)))))), " + head +
                          "v))))))), partition1(o)))");
  CHECK(learns_as(c, s.graph));
  CHECK(found(c, s));
}

TEST_CASE("figure 11a: a function may be split along any axis") {
  computation_graph c;
  int const x = c.add_parameter("x", {4, 6, 8}, tensorpar::op::init::normal_02);
  c.add_output("y", c.node(c.add(relu{}, {x})).out[0]);
  for (i64 d : {0, 1, 2}) {
    tensorpar::rewrite::open_graph g(tensorpar::rewrite::unsharded(c));
    step(g, "?f(x) => combine{dim=d,degree=k}(?f(partition{dim=d,degree=k}(x)))", {{"d", d}, {"k", 2}});
    std::string const axis = std::to_string(d);
    CHECK(picture(g.close()) == "combine" + axis + "(relu(partition" + axis + "(x)))");
    CHECK(learns_as(c, g.close().graph));
    CHECK(found(c, g.close()));
  }
}

TEST_CASE("figure 11b: an addition whose result every device wants becomes one all-reduce") {
  computation_graph c;
  int const x = c.add_parameter("x", {4, 6}, tensorpar::op::init::normal_02),
      y = c.add_parameter("y", {4, 6}, tensorpar::op::init::normal_02);
  c.add_output("y", c.node(c.add(add{}, {x, y})).out[0]);
  tensorpar::rewrite::open_graph g(tensorpar::rewrite::unsharded(c));
  step(g,
       "add(x, y) => sum{axis=-2}(concat{axis=-2}(split_axis{which=-1,inner=extent(x,-1)}(x), "
       "split_axis{which=-1,inner=extent(x,-1)}(y)))");
  step(g, sum_by_parts, {{"k", 2}});
  tensorpar::rewrite::sharding_graph const s = g.close();
  CHECK(tensorpar::rewrite::problems(s).empty());
  // "concat" of the operands in two parts is where they lie; what is left to do is to add two partial sums
  CHECK(picture(s) == "reduce(sum(partition1(concat(split_axis(x), split_axis(y)))))");
  CHECK(learns_as(c, s.graph));
  CHECK(found(c, s));
}

TEST_CASE("figure 16a: products and their function, joined by one all-reduce") {
  computation_graph const c = mlp(8, 12, 16, 4);
  tensorpar::rewrite::open_graph g(tensorpar::rewrite::unsharded(c));
  step(g, by_sums, {{"k", 2}}, "v");
  step(g, by_columns, {{"k", 2}}, "w");
  step(g, "replicate{degree=k}(?f(x)) => ?f(replicate{degree=k}(x))");
  tensorpar::rewrite::sharding_graph const s = g.close();
  CHECK(tensorpar::rewrite::problems(s).empty());
  CHECK(picture(s) == "combine1(linear(relu(replicate(reduce(linear(partition1(x), partition1(v))))), partition0(w)))");
  CHECK(learns_as(c, s.graph));
  CHECK(found(c, s));
}

TEST_CASE("figure 16b: no concatenation between embeddings and the product after them") {
  computation_graph c;
  std::vector<value_id> e;
  for (char const* n : {"1", "2"}) {
    int const i = c.add_input("i" + std::string(n), shape{4, 3}.of(dtype::i32)),
              v = c.add_parameter("v" + std::string(n), {12, 8}, tensorpar::op::init::normal_02);
    e.push_back(c.node(c.add(embedding{12, 8}, {i, v})).out[0]);
  }
  int const x = c.node(c.add(concat{-1}, e)).out[0];
  c.add_output("y", c.node(c.add(linear{6, false}, {x, c.add_parameter("w", {6, 16}, tensorpar::op::init::fan_in)})).out[0]);
  tensorpar::rewrite::open_graph g(tensorpar::rewrite::unsharded(c));
  step(g,
       "linear(concat{axis=-1}(x, z), y) => add(linear(x, slice{axis=-1,begin=0,length=extent(x,-1)}(y)), "
       "linear(z, slice{axis=-1,begin=extent(x,-1),length=extent(z,-1)}(y)))");
  sharding_all(g, columns_of_table, {{"k", 2}});
  for (int i = 0; i < 2; ++i) step(g, by_sums, {{"k", 2}}, "slice");
  everywhere(g, undo);
  step(g, "add(reduce{degree=k}(x), reduce{degree=k}(y)) => reduce{degree=k}(add(x, y))");
  tensorpar::rewrite::sharding_graph const s = g.close();
  CHECK(tensorpar::rewrite::problems(s).empty());
  CHECK(picture(s) == "reduce(add(linear(embedding(replicate(i2), partition1(v2)), partition1(slice(w))), "
                      "linear(embedding(replicate(i1), partition1(v1)), partition1(slice(w)))))");
  CHECK(learns_as(c, s.graph));
  CHECK(found(c, s));
}

TEST_CASE("figure 16c: a bag of embeddings is their sum, which may be split along the bag") {
  computation_graph c;
  int const i = c.add_input("i", shape{4, 6}.of(dtype::i32)), w = c.add_parameter("w", {12, 8}, tensorpar::op::init::normal_02);
  c.add_output("y", c.node(c.add(embedding_bag{12, 8}, {i, w})).out[0]);
  tensorpar::rewrite::open_graph g(tensorpar::rewrite::unsharded(c));
  step(g, "embedding_bag(x, y) => sum{axis=-2}(embedding(x, y))");
  step(g, rows_of_table, {{"k", 2}});
  step(g, sum_by_parts, {{"k", 2}});
  everywhere(g, undo);
  tensorpar::rewrite::sharding_graph const s = g.close();
  CHECK(tensorpar::rewrite::problems(s).empty());
  CHECK(picture(s) == "reduce(sum(embedding(partition1(i), replicate(w))))");
  CHECK(learns_as(c, s.graph));
  CHECK(found(c, s));
}

TEST_CASE("layer norm in parts of the sequence, between products in partial sums (Korthikanti et al. 2022)") {
  computation_graph c;
  auto apply = [&](auto const& o, std::vector<value_id> const& in) { return c.node(c.add(o, in)).out[0]; };
  int const x = c.add_parameter("x", {2, 4, 8}, tensorpar::op::init::normal_02);
  int const y = apply(linear{6, false}, {x, c.add_parameter("v", {6, 8}, tensorpar::op::init::fan_in)});
  int const n = apply(layernorm{}, {y, c.add_parameter("a", {6}, tensorpar::op::init::ones),
                                    c.add_parameter("b", {6}, tensorpar::op::init::zeros)});
  c.add_output("y", apply(linear{8, false}, {n, c.add_parameter("w", {8, 6}, tensorpar::op::init::fan_in)}));
  tensorpar::rewrite::open_graph g(tensorpar::rewrite::unsharded(c));
  step(g, by_sums, {{"k", 2}}, "v");
  step(g, by_columns, {{"k", 2}}, "w");
  sharding_all(g,
             "layernorm(x, y, z) => combine{dim=d,degree=k}(layernorm(partition{dim=d,degree=k}(x), replicate{degree=k}(y), "
             "replicate{degree=k}(z)))",
             {{"d", 1}, {"k", 2}});
  tensorpar::rewrite::sharding_graph const s = g.close();
  CHECK(tensorpar::rewrite::problems(s).empty());
  // reduce and partition: a reduce-scatter; combine and replicate: an all-gather
  CHECK(picture(s) == "combine2(linear(replicate(combine1(layernorm(partition1(reduce(linear(partition2(x), partition1(v)))), "
                      "replicate(a), replicate(b)))), partition0(w)))");
  CHECK(learns_as(c, s.graph));
  CHECK(found(c, s));
}

TEST_CASE("attention to a sequence of keys and values that lies in parts: every device has a state of its own") {
  computation_graph c;
  std::vector<value_id> in;
  in.push_back(c.add_parameter("q", {2, 3, 8}, tensorpar::op::init::normal_02));
  for (char const* n : {"k", "v"}) in.push_back(c.add_parameter(n, {2, 12, 8}, tensorpar::op::init::normal_02));
  c.add_output("y", c.node(c.add(attention{2}, in)).out[0]);
  i64 const devices = 2, parts = 4;          // two parts for each
  tensorpar::rewrite::open_graph g(tensorpar::rewrite::unsharded(c));
  step(g,
       "attention{causal=0}(x, y, z) => attention_finish(attention_parts(x, split_axis{which=-2}(y), split_axis{which=-2}(z)))",
       {{"inner", 12 / parts}});
  step(g,
       "attention_parts(x, y, z) => combine{dim=-3,degree=k}(attention_parts(replicate{degree=k}(x), partition{dim=-3,degree=k}(y), "
       "partition{dim=-3,degree=k}(z)))",
       {{"k", devices}});
  sharding_all(g, "split_axis{which=-2}(x) => combine{dim=-3,degree=k}(split_axis{which=-2}(partition{dim=-2,degree=k}(x)))",
             {{"k", devices}});
  everywhere(g, undo);
  step(g, "attention_finish(x) => attention_finish(softmax_merge(x))", {{"parts", devices}});
  step(g, "softmax_merge(combine{dim=-3,degree=k}(x)) => combine{dim=-3,degree=k}(softmax_merge(x))");
  tensorpar::rewrite::sharding_graph const s = g.close();
  CHECK(tensorpar::rewrite::problems(s).empty());
  // what is sent is one state per device, not keys and values
  CHECK(picture(s) == "attention_finish(combine1(softmax_merge(attention_parts(replicate(q), split_axis(partition1(k)), "
                      "split_axis(partition1(v))))))");
  CHECK(learns_as(c, s.graph));
  CHECK(found(c, s));
}

TEST_CASE("experts in parallel: dispatch and combine by products with masks (GShard, section 3.2)") {
  i64 const tokens = 6, width = 8, experts = 4, places = 3, k = 2;
  computation_graph c;
  auto apply = [&](auto const& o, std::vector<value_id> const& in) { return c.node(c.add(o, in)).out[0]; };
  int const x = c.add_parameter("x", {tokens, width}, tensorpar::op::init::normal_02),
            to = c.add_parameter("to", {tokens, experts * places}, tensorpar::op::init::normal_02),
                // which token goes to which place
            from = c.add_parameter("from", {tokens, experts * places}, tensorpar::op::init::normal_02),
                // with which weights it comes back
            w = c.add_parameter("w", {experts, width, width}, tensorpar::op::init::fan_in);
  int const sent = apply(transpose{0, 1}, {apply(split_axis{1, places}, {apply(matmul{true, false}, {x, to})})});
  int const done = apply(merge_axes{1}, {apply(transpose{0, 1}, {apply(matmul{true, false}, {w, sent})})});
  c.add_output("y", apply(matmul{false, true}, {from, done}));
  tensorpar::rewrite::open_graph g(tensorpar::rewrite::unsharded(c));
  step(g,
       "matmul{transpose_a=1,transpose_b=0}(x, y) => combine{dim=d,degree=k}(matmul{transpose_a=1,transpose_b=0}"
       "(partition{dim=d,degree=k}(x), partition{dim=d,degree=k}(y))) where d inside x by 2",
       {{"d", 0}, {"k", k}}, "w");
  step(g,
       "matmul{transpose_a=1,transpose_b=0}(x, y) => combine{dim=-1,degree=k}(matmul{transpose_a=1,transpose_b=0}"
       "(replicate{degree=k}(x), partition{dim=-1,degree=k}(y)))",
       {{"k", k}}, "to");
  step(g,
       "matmul{transpose_a=0,transpose_b=1}(x, y) => reduce{degree=k}(matmul{transpose_a=0,transpose_b=1}"
       "(partition{dim=-1,degree=k}(x), partition{dim=-1,degree=k}(y)))",
       {{"k", k}}, "from");
  step(g, to_front, {{"k", k}}, "split_axis");
  step(g, to_back, {{"k", k}}, "combine");
  sharding_all(g, into_heads, {{"k", k}});
  sharding_all(g, from_heads, {{"k", k}});
  everywhere(g, undo);
  tensorpar::rewrite::sharding_graph const s = g.close();
  CHECK(tensorpar::rewrite::problems(s).empty());
  // every device has its experts; what remains is one addition
  CHECK(picture(s) == "reduce(matmul(partition1(from), merge_axes(transpose(matmul(partition0(w), "
                      "transpose(split_axis(matmul(replicate(x), partition1(to)))))))))");
  CHECK(learns_as(c, s.graph));
  CHECK(found(c, s));
}

TEST_CASE("figure 2: 131,072 elements between two devices instead of 813,056") {
  i64 const b = 64, h = 512, co = 10, ci = 784;
  computation_graph const c = mlp(b, ci, h, co);
  // What is sent when two devices add partial sums or copy a result: one part each time, forward; the same for the other way round backward
  // (the derivative of reduce is replicate). A copied weight's gradients are added and the weight copied again. Cutting what a device has,
  // and weights and inputs that lie where they are used, cost nothing.
  auto sent = [](tensorpar::rewrite::sharding_graph const& s) {
    i64 n = 0;
    for (graph_node const& v : s.graph.nodes) {
      if (!v.op.is<parallel::reduce>() && !v.op.is<parallel::replicate>()) continue;
      graph_value const& x = s.graph.value(v.in[0]);
      bool const input = x.producer < 0 && x.name == "x";
      if (!input) n += 2 * x.type.elements();
    }
    return n;
  };
  tensorpar::rewrite::open_graph data(tensorpar::rewrite::unsharded(c));
  step(data, by_rows, {{"d", 0}, {"k", 2}});
  step(data, by_rows, {{"d", 0}, {"k", 2}});
  step(data, function_of_combine);
  step(data, undo);
  tensorpar::rewrite::sharding_graph const a = data.close();
  CHECK(picture(a) == "combine0(linear(relu(linear(partition0(x), replicate(v))), replicate(w)))");
  CHECK(sent(a) == 2 * (ci * h + h * co));
  CHECK(sent(a) == 813056);

  tensorpar::rewrite::open_graph joint(tensorpar::rewrite::unsharded(c));
  tensorpar::rewrite::rule const sums = shipped(by_sums), columns = shipped(by_columns);
  auto at = [&](tensorpar::rewrite::rule const& r, int node) {
    for (tensorpar::rewrite::rule_match& m : tensorpar::rewrite::find_matches(r, joint))
      if (m.node[0] == node) {
        m.parameter.assign(m.parameter.size(), 2);
        return tensorpar::rewrite::apply_rule(r, m, joint).refused;
      }
    return std::string("not found");
  };
  CHECK(at(sums, 0).empty());            // the first product over its sums, since it is not fused with its function
  CHECK(at(columns, 2).empty());         // the second over its columns
  tensorpar::rewrite::sharding_graph const t = joint.close();
  CHECK(picture(t) == "combine1(linear(replicate(relu(reduce(linear(partition1(x), partition1(v))))), partition0(w)))");
  CHECK(sent(t) == 4 * b * h);
  CHECK(sent(t) == 131072);
  CHECK(found(c, a));
  CHECK(found(c, t));
  CHECK(tensorpar::rewrite::problems(t).empty());
}
