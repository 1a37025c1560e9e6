// tests/check/fused.test.cpp - fused programs are checked as the operators they are made of; damaged ones are found
#include <tensorpar/check/fused.hpp>

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <tensorpar/check/check.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/program/fuse_tasks.hpp>
#include <tensorpar/program/passes/memory_pass.hpp>
#include <tensorpar/program/unroll.hpp>

#include "support/effort.hpp"
#include "support/random_network.hpp"
#include "support/random_pipeline.hpp"

using namespace tests;
using detail::check::is_fused;

namespace {

bool everything(tensorpar::op::any_op const&, bool) { return true; }

/// Attention of three tensors and of one, and the two norms, with everything around them that is fused.
computation_graph attending(bool packed) {
  computation_graph g;
  int const x = g.add_input("x", {4, 6, 24}), y = g.add_input("y", {4, 6, 24});
  auto const made = [&](tensorpar::op::any_op const& o, std::vector<value_id> in,
                        char const* name) { return out(g, g.add_with_weights(o, std::move(in), name)); };
  int h = packed ? made(layernorm{}, {x}, "norm") : made(rmsnorm{}, {x}, "norm");
  if (packed) h = made(packed_attention{.heads = 4, .causal = true}, {made(linear{72}, {h}, "qkv")}, "attention");
  else h = made(attention{.heads = 4}, {made(linear{24}, {h}, "q"), made(linear{24}, {h}, "k"), made(linear{24}, {h}, "v")}, "attention");
  h = made(add{}, {x, made(linear{24}, {h}, "o")}, "sum");
  h = made(linear{24}, {made(gelu{}, {made(linear{48}, {made(layernorm{}, {h}, "norm2")}, "up")}, "gelu")}, "down");
  g.add_output("loss", made(mean_squared_error{}, {h, y}, "loss"));
  return g;
}

std::string task_text(program const& q, std::size_t i) {
  task const& t = q.tasks[i];
  std::string r = tensorpar::op::spell(t.op) + " " + std::to_string(t.micro_batch);
  for (auto const* side : {&t.in, &t.out}) for (int b : *side) r += (side == &t.in ? " " : " >") + std::to_string(b);
  return r;
}
struct subject {
  training_graph graph;
  plan of;
  program fused;
};
subject random_subject(computation_graph const& g, int trial, std::mt19937& draw) {
  training_options o;
  o.optimizer.kind = static_cast<optimizer_kind>(trial % 3);
  o.micro_batches = 1 + trial % 3;
  plan p = random_plan(g, 1 + trial % 4, draw);
  p.optimizer = o.optimizer;
  p.micro_batches = o.micro_batches;
  if (trial % 2) p.node_order = tests::random_order(g, draw);
  for (op_strategy& n : p.nodes) n = {n.sharding, static_cast<tensorpar::ir::zero_stage>(draw() % 4), draw() % 3 == 0};
  planned_step s = tensorpar::passes::memory_pass(differentiate(g, o), p);
  program q = tensorpar::passes::fuse_tasks(unroll(s.graph, s.plan), p.cluster, &everything, &no_workspace);
  return {std::move(s.graph), std::move(s.plan), std::move(q)};
}
std::vector<computation_graph> graphs(std::mt19937& draw) {
  return {residual_mlp(), small_transformer(), attending(false), attending(true), random_network({.operators = 6}, draw)};
}

}  // namespace

TEST_CASE("fused programs of any shardings, savings, orders and micro-batches are accepted") {
  std::set<std::string> kinds;
  int fused = 0;
  for (int trial = 0; trial < test_effort::cases(12); ++trial) {
    std::mt19937 draw(static_cast<unsigned>(trial));
    for (computation_graph const& g : graphs(draw)) {
      subject const s = random_subject(g, trial, draw);
      CAPTURE(trial);
      for (finding const& f : check(s.graph, s.of, s.fused)) FAIL_CHECK(f.text);
      for (task const& t : s.fused.tasks)
        if (t.kind == task_kind::compute && is_fused(t.op)) {
          ++fused;
          kinds.insert(tensorpar::op::spell(t.op));
        }
    }
  }
  CHECK(fused > test_effort::cases(12) * 40);
  for (char const* name : {"linear_with", "contraction_with", "norm_grads", "attention_with_lse", "attention_grad_from_lse",
                           "packed_attention_with_lse", "packed_attention_grad_from_lse"}) {
    CAPTURE(name);
    CHECK(std::any_of(kinds.begin(), kinds.end(), [&](std::string const& k) { return k.starts_with(name); }));
  }
}

TEST_CASE("fused pipelines are accepted, and products that are added where the sum lies") {
  int in_place = 0;
  for (int trial = 0; trial < test_effort::cases(24); ++trial) {
    CAPTURE(trial);
    std::mt19937 draw(static_cast<unsigned>(trial));
    computation_graph const g = trial % 3 == 0   ? small_transformer()
                                : trial % 3 == 1 ? residual_mlp()
                                                 : random_network({.samples = 1, .operators = 5}, draw);
    plan const p = random_pipeline(g, {.devices = 1 + trial % 4, .sizes = false, .shared_groups = trial % 2 == 1}, 1, 1 + trial % 4, draw);
    planned_step const s = tensorpar::passes::pipeline_pass(g, p);
    program q = tensorpar::passes::fuse_tasks(unroll(s), s.plan.cluster, &everything, &no_workspace);
    for (finding const& f : check(s.graph, s.plan, q)) FAIL_CHECK(f.text);
    for (task& t : q.tasks) {
      if (t.kind != task_kind::compute || !is_fused(t.op) || q.buffers[static_cast<std::size_t>(t.out[0])].in_place_of < 0) continue;
      ++in_place;
      task const good = t;
      std::swap(t.in[0], t.in.back());                       // the product reads what it writes
      CHECK_FALSE(check(s.graph, s.plan, q).empty());
      t = good;
    }
  }
  CHECK(in_place > test_effort::cases(24));
}

TEST_CASE("a fused task with other operands, results or attributes is found, and nothing crashes") {
  int tried = 0;
  std::mt19937 draw(5);
  for (int trial = 0; trial < test_effort::cases(4); ++trial)
    for (computation_graph const& g : graphs(draw)) {
      subject const s = random_subject(g, trial, draw);
      auto const found = [&](program const& q, std::size_t at, char const* how) {
        if (task_text(q, at) == task_text(s.fused, at)) return;
        CAPTURE(how);
        std::string const text = task_text(s.fused, at);
        CAPTURE(text);
        ++tried;
        CHECK_FALSE(check(s.graph, s.of, q).empty());
      };
      for (std::size_t i = 0; i < s.fused.tasks.size(); ++i) {
        task const& t = s.fused.tasks[i];
        if (t.kind != task_kind::compute || !is_fused(t.op)) continue;
        auto const with = [&](char const* how, auto const& change) {
          program q = s.fused;
          change(q.tasks[i]);
          found(q, i, how);
        };
        if (t.in.size() > 1) with("two operands in each other's place", [&](task& x) { std::swap(x.in[0], x.in[1]); });
        with("one operand less", [](task& x) { x.in.pop_back(); });
        with("no operands", [](task& x) { x.in.clear(); });
        with("no results", [](task& x) { x.out.clear(); });
        with("one result less", [](task& x) { x.out.pop_back(); });
        task const& next = s.fused.tasks[(i + 1) % s.fused.tasks.size()];
        if (!next.in.empty()) with("a result of another task", [&](task& x) { x.out[0] = next.in.front(); });
        with("other operators", [](task& x) {
          if (x.op.is<tensorpar::op::linear_with>()) { auto f = x.op.as<tensorpar::op::linear_with>(); f.bias = !f.bias; x.op = f; }
          else if (x.op.is<tensorpar::op::contraction_with>()) {
            auto f = x.op.as<tensorpar::op::contraction_with>(); f.sums = !f.sums; x.op = f;
          }
          else if (x.op.is<tensorpar::op::norm_grads>()) { auto f = x.op.as<tensorpar::op::norm_grads>(); f.eps *= 2; x.op = f; }
          else if (x.op.is<tensorpar::op::attention_with_lse>()) {
            auto f = x.op.as<tensorpar::op::attention_with_lse>(); f.causal = !f.causal; x.op = f;
          }
          else if (x.op.is<packed_attention_with_lse>()) { auto f = x.op.as<packed_attention_with_lse>(); f.heads = 2; x.op = f; }
          else x.op = add{};
        });
        if (s.of.micro_batches > 1) with("another micro-batch", [&](task& x) { x.micro_batch = (x.micro_batch + 1) % s.of.micro_batches; });
        program q = s.fused;
        q.tasks.erase(q.tasks.begin() + static_cast<std::ptrdiff_t>(i));
        ++tried;
        CHECK_FALSE(check(s.graph, s.of, q).empty());
      }
    }
  CHECK(tried > test_effort::cases(4) * 100);
}
