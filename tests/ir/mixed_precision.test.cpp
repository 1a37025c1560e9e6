// tests/ir/mixed_precision.test.cpp - which values of a training step take two bytes, and which four
#include <tensorpar/ir/mixed_precision.hpp>

#include <doctest/doctest.h>

#include <tensorpar/check/check.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/plan/step_fit.hpp>
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

TEST_CASE("moments and gradients are in bf16 where the optimizer asks for it: such programs are accepted, with fewer bytes") {
  std::mt19937 draw(4);
  int wide_sums = 0, others = 0;
  for (computation_graph const& g : {residual_mlp(), small_cnn(), small_transformer()})
    for (int trial = 0; trial < 12; ++trial) {
      training_options o;
      o.optimizer.kind = static_cast<optimizer_kind>(trial / 4);
      o.optimizer.clip_norm = trial % 3;
      o.micro_batches = 1 + trial % 2;
      plan p = random_plan(mixed_precision(g), 1 + trial % 8, draw);
      p.micro_batches = o.micro_batches;
      auto const bytes = [&](dtype moments, dtype gradients) {
        o.optimizer.moments = moments;
        o.optimizer.gradients = gradients;
        p.optimizer = o.optimizer;
        training_graph const t = differentiate(mixed_precision(g), o);
        program const q = unroll(t, p);
        auto const found = check(t, p, q);
        CHECK_MESSAGE(found.empty(), (found.empty() ? "" : found.front().text));
        for (graph_node const& n : t.graph.nodes) {
          if (!is_update(n.op)) continue;
          CHECK(t.graph.type(n.in[1]).type == (detail::may_be_narrow(t.graph, n.in[1]) ? gradients : dtype::f32));
          wide_sums += !detail::may_be_narrow(t.graph, n.in[1]);
          others += detail::may_be_narrow(t.graph, n.in[1]);
          for (std::size_t k = 2; k < n.out.size(); ++k) CHECK(t.graph.type(n.in[k]).type == moments);      // the master comes after
          for (std::size_t k = 0; k < n.out.size(); ++k)
            CHECK(t.graph.type(n.out[k]).type == t.graph.type(n.in[k ? k + 1 : 0]).type);
        }
        std::pair<i64, i64> r{0, 0};                                 // of states, and of what is moved
        for (buffer const& b : q.buffers)
          if (b.value >= 0 && t.graph.value(b.value).role == value_role::state && !t.graph.value(b.value).name.ends_with(".master"))
            r.first += b.bytes * static_cast<i64>(b.devices.size());
        for (task const& x : q.tasks)
          if (x.communicates() && !x.in.empty()) r.second += q.buffers[static_cast<std::size_t>(x.in[0])].bytes;
        return r;
      };
      auto const wide = bytes(dtype::f32, dtype::f32), narrow = bytes(dtype::bf16, dtype::bf16);
      CHECK(narrow.first * 2 == wide.first);
      CHECK(narrow.second <= wide.second);
      CHECK(bytes(dtype::bf16, dtype::f32) == std::pair(narrow.first, wide.second));
      CHECK(bytes(dtype::f32, dtype::bf16) == std::pair(wide.first, narrow.second));
    }
  CHECK(wide_sums > 0);                                       // of tables, convolutions and batch norm
  CHECK(others > 2 * wide_sums);
}

TEST_CASE("without masters an update keeps nothing beside a weight but its moments") {
  for (int kind = 0; kind < 3; ++kind) {
    training_options o;
    o.optimizer = {.kind = static_cast<optimizer_kind>(kind), .masters = dtype::bf16};
    training_graph const t = differentiate(mixed_precision(small_transformer()), o);
    int updates = 0;
    for (graph_node const& n : t.graph.nodes) {
      if (!is_update(n.op)) continue;
      ++updates;
      CHECK(!has_master(n.op));
      CHECK(static_cast<int>(n.in.size()) == 2 + kind);
      CHECK(t.graph.type(n.in[0]).type == dtype::bf16);
      CHECK(t.graph.type(n.out[0]).type == dtype::bf16);
    }
    CHECK(updates > 0);
    for (graph_value const& v : t.graph.values) CHECK(!v.name.ends_with(".master"));
    plan p = serial_plan(mixed_precision(small_transformer()));
    p.optimizer = o.optimizer;
    CHECK(check(t, p, unroll(t, p)).empty());
  }
}

TEST_CASE("moments are in bf16 beside weights in f32, too; gradients of such weights stay as they are") {
  training_options o;
  o.optimizer = {.kind = optimizer_kind::adamw, .moments = dtype::bf16, .gradients = dtype::bf16};
  training_graph const t = differentiate(residual_mlp(), o);
  int updates = 0;
  for (graph_node const& n : t.graph.nodes) {
    if (!is_update(n.op)) continue;
    ++updates;
    CHECK(t.graph.type(n.in[0]).type == dtype::f32);
    CHECK(t.graph.type(n.in[1]).type == dtype::f32);
    for (std::size_t k : {2u, 3u}) CHECK(t.graph.type(n.in[k]).type == dtype::bf16);
    for (std::size_t k : {1u, 2u}) CHECK(t.graph.type(n.out[k]).type == dtype::bf16);
  }
  CHECK(updates > 0);
}
