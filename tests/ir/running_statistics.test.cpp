// tests/ir/running_statistics.test.cpp - batch norm's statistics as outputs and as parameters: what is changed, and what is not
#include <tensorpar/ir/running_statistics.hpp>

#include <doctest/doctest.h>

#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/ir/mixed_precision.hpp>
#include <tensorpar/ir/rebatch.hpp>
#include <tensorpar/typed/lower.hpp>

#include "support/normalised.hpp"
#include "support/small_graphs.hpp"
#include "support/typed_models.hpp"

using namespace tests;

namespace {

int count(computation_graph const& g, bool (*of)(tensorpar::op::any_op const&)) {
  int n = 0;
  for (graph_node const& v : g.nodes) n += of(v.op);
  return n;
}
bool takes_moments(tensorpar::op::any_op const& o) { return o.is<tensorpar::op::channel_moments>(); }
bool normalises(tensorpar::op::any_op const& o) { return o.is<tensorpar::op::normalize>(); }
int parameter(computation_graph const& g, std::string const& name) {
  for (std::size_t x = 0; x < g.values.size(); ++x)
    if (g.values[x].role == value_role::parameter && g.values[x].name == name) return static_cast<int>(x);
  return -1;
}
std::vector<std::string> outputs_of(computation_graph const& g) {
  std::vector<std::string> r;
  for (graph_port const& o : g.outputs) r.push_back(o.name);
  return r;
}

}  // namespace

TEST_CASE("statistics are outputs under the name of the operator that takes them, and all else is the graph") {
  computation_graph const g = small_cnn(), h = tensorpar::ir::with_moments_as_outputs(g);
  CHECK(h.hash() == g.hash());
  CHECK(outputs_of(h) == std::vector<std::string>{"loss", "norm.moments"});
  CHECK(tensorpar::ir::moments_in(h) == std::vector<std::string>{"norm.moments"});
  CHECK(tensorpar::ir::moments_in(g).empty());
  CHECK(h.type(h.output("norm.moments")) == shape{2, 8});
  CHECK(tensorpar::ir::moments_in(differentiate(h).graph) == tensorpar::ir::moments_in(h));
  CHECK_THROWS_WITH_AS(tensorpar::ir::with_moments_as_outputs(h),
                       "the name 'norm.moments' is taken (at with_moments_as_outputs); valid: other names for normalize operators, or for "
                       "what is called so", error);
}

TEST_CASE("an output of one's own is no batch norm's, whatever it is called") {
  computation_graph g = small_cnn();
  int const x = g.node(0).in[0];
  g.add_output("mine.moments", g.node(g.add(tensorpar::op::channel_moments{}, {x}, "mine")).out[0]);
  CHECK(tensorpar::ir::moments_in(g).empty());
  CHECK(tensorpar::ir::moments_in(tensorpar::ir::with_moments_as_outputs(g)) == std::vector<std::string>{"norm.moments"});
}

TEST_CASE("kept statistics are parameters, times what a channel counts; nodes and values keep their numbers") {
  computation_graph const g = small_cnn(), h = tensorpar::ir::with_running_statistics(g);
  CHECK(count(h, takes_moments) == 0);
  REQUIRE(h.node_count() == g.node_count());
  REQUIRE(h.values.size() == g.values.size() + 1);
  int const kept = parameter(h, "norm.moments");
  REQUIRE(kept == static_cast<int>(g.values.size()));
  CHECK(h.type(kept) == shape{2, 8});
  for (int v = 0; v < g.node_count(); ++v) {
    CHECK(h.node(v).out == g.node(v).out);
    CHECK(h.node(v).name == g.node(v).name);
    if (!g.node(v).op.is<tensorpar::op::channel_moments>()) {
      CHECK(h.node(v).op == g.node(v).op);
      CHECK(h.node(v).in == g.node(v).in);
      continue;
    }
    CHECK(h.node(v).op == tensorpar::op::any_op(scale{12 * 8 * 8}));
    CHECK(h.node(v).in == std::vector<value_id>{kept});
  }
  for (std::size_t x = 0; x < g.values.size(); ++x) CHECK(h.values[x].type == g.values[x].type);
  CHECK(tensorpar::ir::with_running_statistics(h).hash() == h.hash());
  CHECK(outputs_of(tensorpar::ir::with_running_statistics(tensorpar::ir::with_moments_as_outputs(g)))
        == std::vector<std::string>{"loss", "norm.moments"});
}

TEST_CASE("random networks: one output and one parameter for each batch norm, of any batch the same") {
  int norms = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    computation_graph const g = normalised_net(3, seed), kept = tensorpar::ir::with_running_statistics(g),
        other = tensorpar::ir::with_running_statistics(normalised_net(7, seed));
    int const n = count(g, takes_moments);
    norms += n;
    CHECK(tensorpar::ir::moments_in(tensorpar::ir::with_moments_as_outputs(g)).size() == static_cast<std::size_t>(n));
    CHECK(count(kept, takes_moments) == 0);
    CHECK(count(kept, normalises) == n);
    for (int k = 0; k < n; ++k) {
      int const x = parameter(kept, "norm" + std::to_string(k) + ".moments");
      REQUIRE(x >= 0);
      CHECK(other.type(x) == kept.type(x));
      CHECK(other.value(x).name == kept.value(x).name);
    }
    for (int v = 0; v < kept.node_count(); ++v) {
      bool const takes = g.node(v).op.is<tensorpar::op::normalize>();
      CHECK((tensorpar::ir::detail::running_statistics_of(kept, kept.node(v)) >= 0) == takes);
      CHECK(tensorpar::ir::detail::running_statistics_of(g, g.node(v)) < 0);
    }
  }
  CHECK(norms > 80);
}

TEST_CASE("a typed model's batch norms have names of their own") {
  computation_graph const g = lower(typed<models::nasnet<2, true>>, {models::batch = 4});
  CHECK(tensorpar::ir::moments_in(tensorpar::ir::with_moments_as_outputs(g)).size() == static_cast<std::size_t>(count(g, takes_moments)));
  CHECK(count(tensorpar::ir::with_running_statistics(g), takes_moments) == 0);
}

TEST_CASE("without batch norm nothing changes; nor do statistics that no batch norm takes, or that it is handed") {
  for (computation_graph const& g : {residual_mlp(), small_transformer()}) {
    CHECK(tensorpar::ir::with_running_statistics(g).hash() == g.hash());
    CHECK(tensorpar::ir::with_running_statistics(g).values.size() == g.values.size());
    CHECK(outputs_of(tensorpar::ir::with_moments_as_outputs(g)) == outputs_of(g));
  }
  computation_graph g;
  int const x = g.add_input("x", {4, 3, 2, 2}), given = g.add_input("given", {2, 3});
  g.add_output("statistics", out(g, g.add(tensorpar::op::channel_moments{}, {x}, "alone")));
  g.add_output("y", out(g, g.add_with_weights(tensorpar::op::normalize{}, {x, given}, "norm")));
  CHECK(tensorpar::ir::with_running_statistics(g).hash() == g.hash());
  CHECK(outputs_of(tensorpar::ir::with_moments_as_outputs(g)) == outputs_of(g));
  CHECK(tensorpar::ir::moments_in(g).empty());
}

TEST_CASE("statistics that several operators take are one output and one parameter, by the name of the first") {
  computation_graph g;
  int const x = g.add_input("x", {4, 3, 2, 2}), m = out(g, g.add(tensorpar::op::channel_moments{}, {x}));
  int const a = out(g, g.add_with_weights(tensorpar::op::normalize{}, {x, m}, "a")),
      b = out(g, g.add_with_weights(tensorpar::op::normalize{}, {x, m}, "b"));
  g.add_output("y", out(g, g.add(add{}, {a, b}, "sum")));
  CHECK(tensorpar::ir::moments_in(tensorpar::ir::with_moments_as_outputs(g)) == std::vector<std::string>{"a.moments"});
  computation_graph const h = tensorpar::ir::with_running_statistics(g);
  CHECK(h.values.size() == g.values.size() + 1);
  CHECK(parameter(h, "a.moments") >= 0);
  for (graph_node const& n : h.nodes)
    if (n.op.is<tensorpar::op::normalize>()) CHECK(tensorpar::ir::detail::running_statistics_of(h, n) == parameter(h, "a.moments"));
}

TEST_CASE("names that are missing or taken are one error") {
  auto const net = [](std::string const& first, std::string const& second, std::string const& more) {
    computation_graph g;
    int y = g.add_input("x", {4, 3, 2, 2});
    for (std::string const& name : {first, second}) {
      int const m = out(g, g.add(tensorpar::op::channel_moments{}, {y}));
      std::string const own = "weights of " + std::to_string(m);
      y = out(g, g.add(tensorpar::op::normalize{},
                       {y, m, g.add_parameter(own + "!0", {3}, tensorpar::op::init::ones),
                        g.add_parameter(own + "!1", {3}, tensorpar::op::init::zeros)}, name));
    }
    g.add_output(more, y);
    g.add_parameter(more, {3}, tensorpar::op::init::zeros);
    return g;
  };
  CHECK(tensorpar::ir::moments_in(tensorpar::ir::with_moments_as_outputs(net("a", "b", "c"))).size() == 2);
  for (auto pass : {tensorpar::ir::with_moments_as_outputs, tensorpar::ir::with_running_statistics}) {
    CHECK_THROWS_WITH_AS(pass(net("a", "", "c")), doctest::Contains("a normalize without a name (at with_"), error);
    CHECK_THROWS_WITH_AS(pass(net("a", "a", "c")), doctest::Contains("the name 'a.moments' is taken (at with_"), error);
    CHECK_THROWS_WITH_AS(pass(net("a", "b", "b.moments")), doctest::Contains("the name 'b.moments' is taken (at with_"), error);
  }
  computation_graph input = small_cnn();
  input.add_input("norm.moments", {2});
  CHECK_THROWS_WITH_AS(tensorpar::ir::with_running_statistics(input), doctest::Contains("the name 'norm.moments' is taken"), error);
  CHECK(tensorpar::ir::moments_in(tensorpar::ir::with_moments_as_outputs(input)).size() == 1);
}

TEST_CASE("in bf16 statistics stay in f32, as normalize takes them; a graph whose statistics are kept is too late for mixed_precision and rebatch") {
  computation_graph const g = small_cnn(), h = tensorpar::ir::with_running_statistics(mixed_precision(g));
  CHECK(h.type(parameter(h, "norm.moments")).type == dtype::f32);
  CHECK(h.type(parameter(h, "norm.0")).type == dtype::bf16);
  require_one_type(h, "test");
  CHECK(tensorpar::ir::with_moments_as_outputs(mixed_precision(g)).type(tensorpar::ir::with_moments_as_outputs(g).output("norm.moments")).type == dtype::f32);
  CHECK_THROWS_WITH_AS(mixed_precision(tensorpar::ir::with_running_statistics(g)), doctest::Contains("operator normalize"), error);
  CHECK_THROWS_WITH_AS(tensorpar::ir::rebatch(tensorpar::ir::with_running_statistics(g), 2),
                       doctest::Contains("'norm' cannot run on 2 times its batch: statistics are kept"), error);
  CHECK(tensorpar::ir::rebatch(tensorpar::ir::with_running_statistics(g), 1).hash() == tensorpar::ir::with_running_statistics(g).hash());
  computation_graph const twice = tensorpar::ir::with_running_statistics(tensorpar::ir::rebatch(g, 2));
  for (graph_node const& n : twice.nodes) if (n.op.is<scale>()) CHECK(n.op == tensorpar::op::any_op(scale{2 * 12 * 8 * 8}));
}
