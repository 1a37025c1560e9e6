// tests/program/keep_lse.test.cpp - which gradients of attention start from what was left, and which do not; tests/exec/step/fuse.test.cpp
// runs them
#include <tensorpar/program/fuse_tasks.hpp>
#include <tensorpar/program/keep_lse.hpp>

#include <doctest/doctest.h>

#include "support/small_graphs.hpp"
#include "support/small_program.hpp"
#include <tensorpar/program/program_hash.hpp>

using namespace tests;

namespace {

bool everything(tensorpar::op::any_op const&, bool) { return true; }
/// Scratch of attention that has to be computed again.
i64 for_scores(tensorpar::op::any_op const& o, shapes, shapes) {
  return is_attention(o) || o.is<attention_grad>() || o.is<packed_attention_grad>() ? 640 : 0;
}

/// y = attention(q, k, v); something; dq, dk, dv from dy. Parts of batch 4, 6 queries, 5 keys, 2 heads of width 4.
struct three_tasks : small_program {
  enum : int { q, k, v, y, dy, dq, dk, dv, u, w, scratch, scratch_back };      // u, w: of the task between
  three_tasks() {
    shape const queries{4, 6, 8}, keys{4, 5, 8};
    for (shape const& s : {queries, keys, keys, queries, queries, queries, keys, keys, queries, queries}) add_buffer(s);
    add_buffer({640}, false);
    add_buffer({640}, false);
    add_task(attention{2, true}, {q, k, v}, {y});
    add_task(relu{}, {u}, {w});
    add_task(attention_grad{2, true}, {dy, q, k, v}, {dq, dk, dv});
    first().workspace = scratch;
    last().workspace = scratch_back;
  }
  task& last() { return p.tasks.back(); }
};
template <class Spoil> program kept(Spoil const& spoil, tensorpar::passes::kernel_rule can = everything) {
  three_tasks t;
  spoil(t);
  return tensorpar::passes::keep_lse(t.p, can, for_scores);
}
/// Is the gradient what it was, and the pass before it?
template <class Spoil> bool apart(Spoil const& spoil, tensorpar::passes::kernel_rule can = everything) {
  program const p = kept(spoil, can);
  bool const back = p.tasks.back().op.is<attention_grad>(), forward = p.tasks.front().op.is<attention>();
  CHECK(back == forward);
  CHECK((back ? p.buffers.size() == three_tasks{}.p.buffers.size() : p.buffers.size() == three_tasks{}.p.buffers.size() + 1));
  return back;
}

}  // namespace

TEST_CASE("a gradient of attention starts from y and the log-sum-exps of its forward pass, without the scratch of its own") {
  using three = three_tasks;
  program const p = kept([](three&) {});
  int const lse = three::scratch_back + 1;
  CHECK(tensorpar::op::any_op(tensorpar::op::attention_with_lse{2, true}) == p.tasks.front().op);
  CHECK(tensorpar::op::any_op(tensorpar::op::attention_grad_from_lse{2, true}) == p.tasks.back().op);
  CHECK(p.tasks.front().out == std::vector<int>{three::y, lse});
  CHECK(p.tasks.back().in == std::vector<int>{three::dy, three::q, three::k, three::v, three::y, lse});
  CHECK(p.tasks.front().workspace == -1);
  CHECK(p.tasks.back().workspace == -1);
  buffer const& b = p.buffers.back();
  CHECK(tensorpar::op::spell(b.type) == tensorpar::op::spell(shape{4, 2, 6}));
  CHECK(b.bytes == 4 * 2 * 6 * 4);
  CHECK(b.value == -1);
  // the pass that ran last, of two
  program const again = kept([](three& t) {
    t.between().op = attention{2, true};
    t.between().in = t.first().in;
    t.p.tasks.insert(t.p.tasks.begin(), t.first());
    t.p.tasks[1] = t.between();
    t.p.tasks[2] = t.last();
    t.p.tasks.pop_back();
    t.p.tasks[0].out = {three::u};
    t.p.tasks[1].out = {three::y};
  });
  REQUIRE(again.tasks.size() == 3);
  CHECK(again.tasks[0].op.is<attention>());
  CHECK(again.tasks[1].op.is<tensorpar::op::attention_with_lse>());
  CHECK(again.tasks[2].op.is<tensorpar::op::attention_grad_from_lse>());
}

TEST_CASE("so does that of attention whose queries, keys and values are one tensor") {
  auto const pack = [](three_tasks& t) {
    using three = three_tasks;
    t.at(three::q).type = shape{4, 6, 24};
    t.at(three::dq).type = shape{4, 6, 24};
    t.first().op = packed_attention{2, true};
    t.first().in = {three::q};
    t.last().op = packed_attention_grad{2, true};
    t.last().in = {three::dy, three::q};
    t.last().out = {three::dq};
  };
  using three = three_tasks;
  program const p = kept(pack);
  int const lse = three::scratch_back + 1;
  CHECK(tensorpar::op::any_op(packed_attention_with_lse{2, true}) == p.tasks.front().op);
  CHECK(tensorpar::op::any_op(packed_attention_grad_from_lse{2, true}) == p.tasks.back().op);
  CHECK(p.tasks.front().out == std::vector<int>{three::y, lse});
  CHECK(p.tasks.back().in == std::vector<int>{three::dy, three::q, three::y, lse});
  CHECK(p.tasks.back().workspace == -1);
  CHECK(tensorpar::op::spell(p.buffers.back().type) == tensorpar::op::spell(shape{4, 2, 6}));
  auto const left_alone = [&](auto const& spoil) {
    program const q = kept([&](three& t) { pack(t); spoil(t); });
    return q.tasks.front().op.is<packed_attention>() && q.tasks.back().op.is<packed_attention_grad>();
  };
  CHECK(!left_alone([](three&) {}));
  CHECK(left_alone([](three& t) { t.between().out = {three::q}; }));
  CHECK(left_alone([](three& t) { t.last().op = packed_attention_grad{2, false}; }));
  // the gradient of the other kind
  program const q = kept([&](three& t) { pack(t); t.last().op = attention_grad{2, true}; });
  CHECK(q.tasks.back().op.is<attention_grad>());
}

TEST_CASE("of two gradients of one attention the first has what it left") {
  program const p = kept([](three_tasks& t) {
    task again = t.last();
    again.out = {three_tasks::u, three_tasks::w, three_tasks::dv};
    t.p.tasks.push_back(again);
  });
  CHECK(p.tasks[2].op.is<tensorpar::op::attention_grad_from_lse>());
  CHECK(p.tasks[3].op.is<attention_grad>());
  CHECK(p.tasks[0].out[1] == p.tasks[2].in[5]);
}

TEST_CASE("programs whose gradients start from one another's log-sum-exps are other programs") {
  program p = kept([](three_tasks&) {});
  int const other = static_cast<int>(p.buffers.size());
  p.buffers.push_back(p.buffers.back());
  task again = p.tasks[0];
  again.out[1] = other;
  p.tasks.insert(p.tasks.begin() + 1, again);
  program q = p;
  q.tasks.back().in[5] = other;
  CHECK(tensorpar::passes::task_hash(p) != tensorpar::passes::task_hash(q));
}

TEST_CASE("a gradient of attention stays what it was where it would start from something else") {
  using three = three_tasks;
  CHECK(!apart([](three&) {}));
  CHECK(apart([](three& t) { t.last().devices = {}; }));
  CHECK(apart([](three& t) { t.last().micro_batch = 1; }));
  CHECK(apart([](three& t) { t.last().op = attention_grad{2, false}; }));
  CHECK(apart([](three& t) { t.last().op = attention_grad{1, true}; }));
  CHECK(apart([](three& t) { t.last().in = {three::dy, three::u, three::k, three::v}; }));
  CHECK(apart([](three& t) { t.at(three::dy).where.axes.push_back({tensorpar::ir::part_kind::replicate, -1, 2, 1}); }));
  // operands and y, between the two
  for (int b : {three::q, three::k, three::v, three::y}) {
    CHECK(apart([b](three& t) { t.between().out = {b}; }));
    CHECK(apart([b](three& t) { t.at(three::w).in_place_of = b; }));
    CHECK(!apart([b](three& t) { t.between().in = {b}; }));
  }
  CHECK(!apart([](three& t) { t.between().out = {three::dy}; }));
  CHECK(!apart([](three& t) { t.at(three::dq).in_place_of = three::q; }));
  // kernels for one of the two, or for other types
  CHECK(apart([](three&) {}, [](tensorpar::op::any_op const& o, bool) { return o.is<tensorpar::op::attention_with_lse>(); }));
  CHECK(apart([](three&) {}, [](tensorpar::op::any_op const& o, bool) { return o.is<tensorpar::op::attention_grad_from_lse>(); }));
  tensorpar::passes::kernel_rule const of_bf16 = [](tensorpar::op::any_op const&, bool narrow) { return narrow; };
  CHECK(apart([](three&) {}, of_bf16));
  CHECK(!apart([](three& t) { for (buffer& b : t.p.buffers) b.type.type = dtype::bf16; }, of_bf16));
}

TEST_CASE("log-sum-exps are split as y is: by samples, by heads, by queries") {
  struct {
    int axis;
    shape part;
  } const all[] = {{0, {2, 2, 6}}, {1, {4, 2, 3}}, {2, {4, 1, 6}}};
  for (auto const& s : all) {
    program const p = kept([&](three_tasks& t) {
      for (buffer& b : t.p.buffers) b.devices = {0, 1};
      for (task& u : t.p.tasks) u.devices = {0, 1};
      for (int b : {three_tasks::y, three_tasks::dy}) t.at(b).where.axes.push_back({tensorpar::ir::part_kind::shard, s.axis, 2, 1});
    });
    buffer const& b = p.buffers.back();
    CHECK(b.devices == std::vector<int>{0, 1});
    CHECK(tensorpar::op::spell(tensorpar::ir::part_of(b.where, b.type)) == tensorpar::op::spell(s.part));
    CHECK(b.bytes == 4 * s.part.elements());
  }
}

TEST_CASE("where y or the sums that made it would outgrow a device, nothing is kept, and the rest is fused all the same") {
  computation_graph const g = small_transformer();
  plan const p = serial_plan(g);
  program const plain = unroll(differentiate(g), p, {for_scores});
  auto const in_memory = [&](i64 bytes) {
    machine m = p.cluster;
    m.kinds[0].memory = bytes;
    return tensorpar::passes::fuse_tasks(plain, m, everything, [](tensorpar::op::any_op const& o, shapes in, shapes out) {
      return o.is<tensorpar::op::attention_grad_from_lse>() ? i64{1} << 20 : for_scores(o, in, out);
    });
  };
  auto const count = [](program const& q, auto const& which) {
    int n = 0;
    for (task const& t : q.tasks) n += t.kind == task_kind::compute && which(t.op);
    return n;
  };
  for (bool room : {false, true}) {
    program const q = in_memory(room ? i64{1} << 30 : 1);
    CHECK((count(q, [](tensorpar::op::any_op const& o) { return o.is<tensorpar::op::attention_grad_from_lse>(); }) > 0) == room);
    CHECK((count(q, [](tensorpar::op::any_op const& o) { return o.is<attention_grad>(); }) > 0) == !room);
    CHECK(count(q, [](tensorpar::op::any_op const& o) { return o.is<tensorpar::op::linear_with>() ||
                                                       o.is<tensorpar::op::contraction_with>(); }) > 0);
    for (buffer const& b : q.buffers) CHECK(b.first <= b.last);
  }
}
