// tests/program/overwritten.test.cpp - a result takes an operand's bytes where its operator allows it and nothing else reads them, only there
#include <doctest/doctest.h>
#include <tensorpar/check/check.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/program/step_of.hpp>

#include "support/effort.hpp"
#include "support/random_pipeline.hpp"
#include "support/small_graphs.hpp"

using namespace tests;

namespace {

/// The last task that reads buffer b; -1: none.
int last_reader(program const& p, int b) {
  int last = -1;
  for (int t = 0; t < static_cast<int>(p.tasks.size()); ++t)
    for (int x : p.tasks[idx(t)].in) if (x == b) last = t;
  return last;
}
/// Tokens through a wide product into a loss; `also`: logits are penalised, too, as PaLM's are.
computation_graph wide_logits(bool also) {
  computation_graph g;
  value_id const x = g.add_input("x", {dim(32), dim(8)}), label = g.add_input("label", shape{dim(32)}.of(dtype::i32)),
                 zero = g.add_input("zero", {dim(32), dim(512)});
  value_id const logits = g.node(g.add_with_weights(linear{512}, {x}, "head")).out[0];
  value_id loss = g.node(g.add(cross_entropy{}, {logits, label})).out[0];
  if (also) loss = g.node(g.add(add{}, {loss, g.node(g.add(mean_squared_error{}, {logits, zero})).out[0]})).out[0];
  g.add_output("loss", loss);
  return g;
}
i64 arena_of(computation_graph const& g, bool in_place) {
  planned_step s = step_of(g, serial_plan(g));
  if (!in_place) {
    for (buffer& b : s.program.buffers) b.in_place_of = -1;
    passes::assign_offsets(s.program, 1);
  }
  return s.program.arena[0];
}

}  // namespace

TEST_CASE("random plans and pipelines: gradients of losses lie over what they are of wherever that is possible, and nowhere else") {
  std::mt19937 draw(9);
  int over = 0, apart = 0;
  for (int i = 0; i < test_effort::cases(90); ++i) {
    CAPTURE(i);
    computation_graph const g = i % 3 == 1 ? small_transformer() : residual_mlp();
    plan p = i % 3 == 2 ? random_pipeline(g, {.devices = 2 + i % 4}, 1, 4, draw) : random_plan(g, 1 + i % 5, draw);
    if (p.pipeline.empty()) p.micro_batches = 1 + i % 2;
    p.prefetch = i % 4;
    planned_step const s = step_of(g, p);
    REQUIRE(check(s.graph, s.plan, s.program).empty());
    for (int t = 0; t < static_cast<int>(s.program.tasks.size()); ++t) {
      task const& x = s.program.tasks[idx(t)];
      if (x.kind != task_kind::compute || x.op.op->overwrites < 0) continue;
      int const from = x.in[idx(x.op.op->overwrites)];
      buffer const &a = s.program.buffers[idx(from)], &b = s.program.buffers[idx(x.out[0])];
      bool const possible = a.where == b.where && last_reader(s.program, from) == t;
      CHECK((b.in_place_of == from) == possible);
      if (b.in_place_of == from) CHECK(a.offset == b.offset);
      (possible ? over : apart) += 1;
    }
  }
  CHECK(over > test_effort::cases(40));
  MESSAGE(over << " over their operands, " << apart << " elsewhere");
}

TEST_CASE("wide logits are held once; where two gradients need them, the second lies over them") {
  i64 const logits = 32 * 512 * 4;
  CHECK(arena_of(wide_logits(false), true) < 2 * logits);         // these, the product's weights and the weights' gradient
  CHECK(arena_of(wide_logits(false), false) > 2 * logits);
  planned_step const s = step_of(wide_logits(true), serial_plan(wide_logits(true)));
  int first = 0, second = 0;
  for (task const& x : s.program.tasks) {
    if (x.kind != task_kind::compute || x.op.op->overwrites < 0) continue;
    int const over = s.program.buffers[idx(x.out[0])].in_place_of;
    (first ? second : first) = over < 0 ? 1 : 2;
  }
  CHECK(first == 1);
  CHECK(second == 2);
}

TEST_CASE("what the host gives, parameters and results of the graph alone are not written over") {
  computation_graph g;
  value_id const x = g.add_input("x", {dim(8), dim(4)}), label = g.add_input("label", shape{dim(8)}.of(dtype::i32)),
                 w = g.add_parameter("w", {dim(8), dim(4)}, op::init::normal_02);
  value_id const one = g.node(g.add(mean_squared_error{}, {w, x})).out[0], other = g.node(g.add(cross_entropy{}, {w, label})).out[0];
  g.add_output("loss", g.node(g.add(add{}, {one, other})).out[0]);
  planned_step const s = step_of(g, serial_plan(g));
  CHECK(check(s.graph, s.plan, s.program).empty());
  for (buffer const& b : s.program.buffers)
    if (b.in_place_of >= 0) CHECK(s.graph.graph.value(s.program.buffers[idx(b.in_place_of)].value).producer >= 0);
}

TEST_CASE("a checker refuses results over operands that are read again, or of operators that do not allow it") {
  planned_step const good = step_of(wide_logits(false), serial_plan(wide_logits(false)));
  REQUIRE(check(good.graph, good.plan, good.program).empty());
  int refused = 0;
  for (int t = 0; t < static_cast<int>(good.program.tasks.size()); ++t) {
    task const& x = good.program.tasks[idx(t)];
    for (int from : x.in) {
      buffer const &a = good.program.buffers[idx(from)], &b = good.program.buffers[idx(x.out[0])];
      if (x.kind != task_kind::compute || b.persistent || a.persistent || b.in_place_of == from || a.bytes < b.bytes || from > x.out[0]) continue;
      planned_step bad = good;
      buffer& to = bad.program.buffers[idx(x.out[0])];
      to.in_place_of = from;
      to.offset = a.offset;
      ++refused;
      CHECK(!check(bad.graph, bad.plan, bad.program).empty());
    }
  }
  CHECK(refused > 2);
}
