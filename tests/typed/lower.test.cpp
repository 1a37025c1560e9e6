// tests/typed/lower.test.cpp - models become computation graphs: names, repetitions, shared weights, bound symbols; compile time and run
// time
// agree
#include <doctest/doctest.h>

#include <set>
#include <support/typed_models.hpp>
#include <tensorpar/typed/lower.hpp>
#include <tensorpar/typed/freeze.hpp>
#include <tensorpar/typed/lowered.hpp>

using namespace tensorpar;

namespace {

/// The same define, run by the compiler and by the program, gives the same graph, names included.
template <class M> void check_same_at_run_time(std::initializer_list<binding> bound) {
  model_builder g;
  M::define(g);
  REQUIRE(g.ok());
  computation_graph const a = lower(typed<M>, bound), b = lower(g, bound);
  CHECK(a.hash() == b.hash());
  REQUIRE(a.node_count() == b.node_count());
  for (int v = 0; v < a.node_count(); ++v) CHECK(a.node(v).name == b.node(v).name);
  for (std::size_t x = 0; x < a.values.size(); ++x) CHECK(a.values[x].name == b.values[x].name);
  CHECK(parameters(a) == parameters(typed<M>));
  // every name is there once; every operator's results are of the types its rule gives
  std::set<std::string> nodes, values;
  for (graph_node const& n : a.nodes) CHECK(nodes.insert(n.name).second);
  for (graph_value const& v : a.values) if (v.role != value_role::activation) CHECK(values.insert(v.name).second);
  for (graph_value const& v : a.values) CHECK(v.type.is_static());
}

/// A random model that the compiler can draw as well: operators on what is open, repeated blocks among them; the rest becomes outputs.
template <unsigned Seed> struct random_model {
  static constexpr void define(auto& g) {
    unsigned state = Seed * 2654435761u + 12345u;
    auto below = [&](unsigned n) { state = state * 1664525u + 1013904223u; return static_cast<int>((state >> 16) % n); };
    bundle open{};
    open.push(g.input("x", {models::batch, models::features(8)}));
    for (int k = 0; k < 4 + static_cast<int>(Seed); ++k) {
      int const i = below(static_cast<unsigned>(open.n));
      ref const x = open.r[i];
      bool const keep = open.n < 20 && below(3) == 0;
      ref y{};
      switch (below(8)) {
        case 0: y = x | linear{8}; break;
        case 1: y = x | relu{}; break;
        case 2: y = x | layernorm{}; break;
        case 3: y = x + open.r[below(static_cast<unsigned>(open.n))]; break;
        case 4: { auto const [a, b] = x | split<2>(); y = all(b, a) | concat{}; break; }
        case 5: y = x | repeat(i64{below(4)}, residual(linear{8} | relu{})); break;
        case 6: y = x | repeat(2, linear{8} | repeat(3, seq(layernorm{}))); break;
        default: y = x * x;
      }
      if (keep) open.push(y); else open.r[i] = y;
    }
    for (int i = 0; i < open.n; ++i) g.output({"y", i}, open.r[i]);
  }
};
template <unsigned... Seed> void check_random_models(std::integer_sequence<unsigned, Seed...>) {
  (check_same_at_run_time<random_model<Seed>>({models::batch = 4}), ...);
}

/// More blocks than a draft has room for: its tables are written by a second run of define (see typed/freeze.hpp).
struct beyond_a_draft {
  static constexpr int blocks = 260;
  static_assert(blocks > detail::draft_sizes.blocks);
  static constexpr void define(auto& g) {
    ref x = g.input("x", {models::batch, models::features(8)});
    for (int i = 0; i < blocks; ++i) x = x | repeat<2>(relu{});
    g.output("y", x);
  }
};
static_assert(!detail::draft_of<beyond_a_draft>.fits && detail::draft_of<models::mlp>.fits);

std::string message(auto&& f) {
  try {
    f();
  } catch (error const& e) {
    return e.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("one definition, two times") {
  check_same_at_run_time<models::mlp>({models::batch = 32});
  check_same_at_run_time<models::gpt<12, 12, 768>>({models::batch = 4});
  check_same_at_run_time<models::nasnet<4>>({models::batch = 2});
  check_same_at_run_time<models::nasnet<4, true>>({models::batch = 2});
  check_same_at_run_time<models::spelled_attention>({models::batch = 2});
  check_same_at_run_time<models::dlrm<26, 1000, 64>>({models::batch = 8});
  check_same_at_run_time<models::language>({models::batch = 8});
  check_same_at_run_time<models::two_encoders>({models::batch = 8});
  check_same_at_run_time<beyond_a_draft>({models::batch = 8});
}

TEST_CASE("random models: what the compiler froze is what the program writes") {
  check_random_models(std::make_integer_sequence<unsigned, 24>{});
}

TEST_CASE("work and structure are those of the model") {
  auto const net = lower(typed<models::gpt<12, 12, 768>>, {models::batch = 4});
  CHECK(flops(net) == flops(typed<models::gpt<12, 12, 768>>, models::batch = 4));
  CHECK(net.node_count() == 1 + 12 * 11 + 2 + 1);
  CHECK(graph::is_series_parallel(net));
  auto const cells = lower(typed<models::nasnet<4>>, {models::batch = 2});
  CHECK(!graph::is_series_parallel(cells));
  // without repetition nodes keep their numbers and their predecessors
  constexpr auto typed_cells = typed<models::nasnet<4>>;
  REQUIRE(cells.node_count() == typed_cells.size());
  for (int v = 0; v < cells.node_count(); ++v) {
    std::set<int> a, b;
    for (int u : typed_cells.predecessors(v)) a.insert(u);
    for (int u : cells.predecessors(v)) b.insert(u);
    CHECK(a == b);
  }
}

TEST_CASE("a repeated block that carries two tensors is the plain loop") {
  auto const loop = lower(typed<models::nasnet<5>>, {models::batch = 2}),
             block = lower(typed<models::nasnet<5, true>>, {models::batch = 2});
  CHECK(loop.hash() == block.hash());
  int turns = 0;
  for (graph_node const& n : block.nodes) turns = n.block >= 0 && n.repetition >= turns ? n.repetition + 1 : turns;
  CHECK(turns == 5);
}

TEST_CASE("a part is the same as its content written out") {
  CHECK(lower(typed<models::two_encoders>, {models::batch = 8}).hash() ==
        lower(typed<models::two_encoders_inline>, {models::batch = 8}).hash());
}

TEST_CASE("names, regions, turns, starts") {
  auto const g = lower(typed<models::language>, {models::batch = 8});
  CHECK(g.node_count() == 2 + 4 * 5 + 2);
  CHECK(g.node(0).name == "embedding0");
  CHECK(g.node(0).block == -1);
  CHECK(g.node(3).name == "up@0");
  CHECK(g.node(8).name == "up@1");
  CHECK(g.node(8).block == 0);
  CHECK(g.node(8).repetition == 1);
  CHECK(g.node(8).origin == 8);
  auto const& up = g.value(g.node(8).in[1]);
  CHECK(up.name == "up@1.0");
  CHECK(up.role == value_role::parameter);
  CHECK(up.start == op::init::fan_in);
  CHECK(g.value(g.node(8).in[2]).start == op::init::zeros);
  // the table is one parameter with two uses, started as its first user wants
  auto const& table = g.value(g.node(0).in[1]);
  CHECK(table.name == "table");
  CHECK(table.start == op::init::normal_02);
  CHECK(g.node(g.node_count() - 1).in[1] == g.node(0).in[1]);
  CHECK(g.output("right") == g.output("left") + 1);
  CHECK(g.output("none") == -1);
  CHECK(g.value(g.output("left")).producer == g.value(g.output("right")).producer);
  auto const d = lower(typed<models::dlrm<3, 1000, 64>>, {models::batch = 8});
  std::set<std::string> inputs;
  for (graph_value const& v : d.values) if (v.role == value_role::input) inputs.insert(v.name);
  CHECK(inputs == std::set<std::string>{"dense", "sparse.0", "sparse.1", "sparse.2"});
}

TEST_CASE("depth at run time; no turn at all; blocks in blocks") {
  for (i64 depth : {0, 1, 7}) {
    model_builder g;
    models::language::define(g, depth);
    auto const net = lower(g, {models::batch = 8});
    CHECK(net.node_count() == 2 + 5 * depth + 2);
    CHECK(parameters(net) == 1000 * 64 + depth * (2 * 64 + 64 * 256 + 256 + 256 * 64 + 64));
    CHECK(parameters(net) == parameters(g.view()));
    CHECK(flops(net) == flops(g.view(), models::batch = 8));
  }
  model_builder g;
  auto x = g.input("x", {models::batch, 8});
  int outer_runs = 0;
  auto inner = repeat(3, [](ref y) { return y | named("in", linear{8}); });
  auto outer = repeat(2, [&](ref y) { ++outer_runs; return y | inner | repeat(0, inner) | named("out", linear{8}); });
  g.output("y", x | outer | inner.body);
  CHECK(outer_runs == 1);   // the block is written once
  auto const net = lower(g.view(), {models::batch = 2});
  CHECK(net.node_count() == 2 * (3 + 1) + 1);
  CHECK(net.node(4).repetition == 3);          // second repetition of the outer block, first of the inner: 1 * 3 + 0
  CHECK(net.node(4).name == "in@3");
  CHECK(net.node(7).name == "out@1");
  CHECK(net.node(7).repetition == 1);
  CHECK(parameters(net) == 9 * 72);
  CHECK(parameters(g.view()) == 9 * 72);
  CHECK(graph::longest_path(net).length == 9);
}

TEST_CASE("a block sees what is outside, in every turn") {
  model_builder g;
  auto x = g.input("x", {models::batch, 8});
  auto table = g.weight({8, 8});
  // x0 is what enters the block and is also captured: only the first of the two goes from repetition to repetition
  auto y = x | repeat(3, [=](ref h) { return (all(h, table) | linear{.out = 8, .bias = false}) + x; });
  g.output("y", y);
  auto const net = lower(g, {models::batch = 2});
  CHECK(net.node_count() == 6);
  CHECK(parameters(net) == 64);
  int const input = net.node(0).in[0];
  for (int t = 0; t < 3; ++t) {
    CHECK(net.node(2 * t + 1).in[1] == input);
    CHECK((net.node(2 * t).in[0] == input) == (t == 0));
    CHECK(net.node(2 * t).in[1] == net.node(0).in[1]);
  }
}

TEST_CASE("a weight made inside of a block is new in every turn") {
  model_builder g;
  auto x = g.input("x", {models::batch, 8});
  auto y = x | repeat(3, [](ref h) {
    auto w = h.g->weight("tied", {8, 8});
    auto once = all(h, w) | linear{.out = 8, .bias = false};
    return all(once, w) | linear{.out = 8, .bias = false};
  });
  g.output("y", y);
  auto const net = lower(g, {models::batch = 2});
  CHECK(parameters(net) == 3 * 64);
  CHECK(parameters(g.view()) == 3 * 64);
  CHECK(net.node(0).in[1] == net.node(1).in[1]);
  CHECK(net.node(2).in[1] == net.node(3).in[1]);
  CHECK(net.node(0).in[1] != net.node(2).in[1]);
  CHECK(net.value(net.node(2).in[1]).name == "tied@1");
}

TEST_CASE("names given by the user win over made ones") {
  model_builder g;
  auto x = g.input("x", {models::batch, 8});
  g.output("y", x | named("linear1", linear{8}) | linear{8});
  auto const net = lower(g, {models::batch = 2});
  CHECK(net.node(0).name == "linear1");
  CHECK(net.node(1).name == "linear1_");
}

TEST_CASE("sizes are asked for, and must be sizes") {
  CHECK(message([] { lower(typed<models::mlp>); }) == "axis 'batch' has no size (at image); valid: lower(model, {batch = n})");
  CHECK(message([] { lower(typed<models::mlp>, {models::batch = 64, models::batch = 32}); }) ==
        "two sizes for axis 'batch' (at lower); valid: one size for each of batch");
  CHECK(message([] { lower(typed<models::mlp>, {models::batch = 64, axis("feat") = 32}); }) ==
        "a size for axis 'feat', which the model has not or has fixed (at lower); valid: one size for each of batch");
  CHECK(message([] {
          model_builder g;
          g.output("y", g.input("x", {2, 3}) | relu{});
          lower(g, {models::batch = 2});
        }) == "a size for axis 'batch', which the model has not or has fixed (at lower); valid: no sizes: the model has them all");
  CHECK(message([] { lower(typed<models::mlp>, {models::batch = 0}); }) == "an axis has size 0 (at image); valid: a size of at least 1");
  model_builder g;
  auto x = g.input("x", {models::batch, 8});
  g.output("y", x | split_axis{.which = 0, .inner = 1} | merge_axes{.first = 0});
  CHECK(lower(g, {models::batch = 3}).node_count() == 2);
  model_builder h;
  auto t = h.input("x", {dim(axis{}, 2, models::batch), 8});
  h.output("y", t | split_axis{.which = 0, .inner = 2});
  CHECK(lower(h, {models::batch = 3}).type(1).d[0].n == 3);
}
