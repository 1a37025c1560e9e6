// tests/ir/mixed_precision.test.cpp - which values of a training step take two bytes, and which four
#include <tensorpar/ir/mixed_precision.hpp>

#include <doctest/doctest.h>

#include <tensorpar/check/check.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/program/unroll.hpp>

#include "support/small_graphs.hpp"

using namespace tests;

namespace {
training_graph step_of(computation_graph const& g, optimizer_kind kind = optimizer_kind::adamw, double clip = 0) {
  training_options o;
  o.optimizer.kind = kind;
  o.optimizer.clip_norm = clip;
  return differentiate(g, o);
}
}  // namespace

TEST_CASE("weights and activations are bf16; losses, statistics, parameters' gradients and optimizer states are not") {
  for (computation_graph const& g : {residual_mlp(), small_cnn(), small_transformer()}) {
    training_graph const t = step_of(mixed_precision(g));
    for (std::size_t x = 0; x < t.graph.values.size(); ++x) {
      graph_value const& v = t.graph.values[x];
      CAPTURE(x);
      if (is_integer(v.type.type)) continue;
      if (v.role == value_role::parameter || v.role == value_role::input) CHECK(v.type.type == dtype::bf16);
      if (v.role == value_role::state || v.type.rank == 0) CHECK(v.type.type == dtype::f32);
      if (v.producer >= 0 && t.graph.node(v.producer).op.is<tensorpar::op::channel_moments>()) CHECK(v.type.type == dtype::f32);
      if (v.producer >= 0 && t.graph.node(v.producer).op.is<linear>()) CHECK(v.type.type == dtype::bf16);
    }
    for (std::size_t x = 0; x < t.gradient.size(); ++x) {
      if (t.gradient[x] < 0) continue;
      graph_value const& v = t.graph.values[x];
      dtype const own = t.graph.type(t.gradient[x]).type;
      CHECK(own == (v.role == value_role::parameter ? dtype::f32 : v.type.type));
    }
  }
}

TEST_CASE("every bf16 parameter has a master that is updated with it; a graph in f32 has none") {
  for (auto kind : {optimizer_kind::sgd, optimizer_kind::momentum, optimizer_kind::adamw}) {
    auto const updates = [&](training_graph const& t) {
      int all = 0, with = 0;
      for (graph_node const& n : t.graph.nodes) {
        if (n.phase != step_phase::update || !is_update(n.op)) continue;
        ++all;
        if (!has_master(n.op)) continue;
        ++with;
        graph_value const& master = t.graph.value(n.in[n.out.size()]);
        CHECK(master.name == t.graph.value(n.in[0]).name + ".master");
        CHECK(t.graph.value(n.out.back()).stored_in == n.in[n.out.size()]);
        CHECK(t.graph.type(n.out[0]).type == dtype::bf16);
        CHECK(t.graph.type(n.out.back()).type == dtype::f32);
      }
      CHECK(all > 0);
      return std::pair(all, with);
    };
    auto const [all, with] = updates(step_of(mixed_precision(residual_mlp()), kind, 1));
    CHECK(all == with);
    CHECK(updates(step_of(residual_mlp(), kind, 1)).second == 0);
  }
}

TEST_CASE("the same nodes and values, and twice is once") {
  computation_graph const g = small_transformer(), h = mixed_precision(g);
  CHECK(h.nodes.size() == g.nodes.size());
  CHECK(h.values.size() == g.values.size());
  CHECK(h.hash() != g.hash());
  CHECK(mixed_precision(h).hash() == h.hash());
}

TEST_CASE("programs are accepted by the checker, and activations and what is sent take half the bytes") {
  std::mt19937 draw(3);
  for (computation_graph const& g : {residual_mlp(), small_cnn(), small_transformer()})
    for (int trial = 0; trial < 10; ++trial) {
      plan p = random_plan(mixed_precision(g), 1 + trial % 8, draw);
      training_graph const plain = differentiate(g, {}), narrow = differentiate(mixed_precision(g), {});
      program const a = unroll(plain, p), b = unroll(narrow, p);
      auto const found = check(narrow, p, b);
      CHECK_MESSAGE(found.empty(), (found.empty() ? "" : found.front().text));
      REQUIRE(a.tasks.size() == b.tasks.size());
      for (std::size_t k = 0; k < a.tasks.size(); ++k)
        for (std::size_t i = 0; i < a.tasks[k].out.size(); ++i) {
          buffer const& x = a.buffers[static_cast<std::size_t>(a.tasks[k].out[i])];
          buffer const& y = b.buffers[static_cast<std::size_t>(b.tasks[k].out[i])];
          CHECK(y.bytes * (y.type.type == dtype::bf16 ? 2 : 1) == x.bytes);
        }
      p.scalar_bytes = 8;                                  // a scalar that stands for every real number
      CHECK(check(narrow, p, unroll(narrow, p)).empty());
    }
}
