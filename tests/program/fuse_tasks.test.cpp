// tests/program/fuse_tasks.test.cpp - which tasks of a program become one, and what is left as it is (tests/exec/step/fuse.test.cpp runs
// them)
#include <tensorpar/program/fuse_tasks.hpp>

#include <doctest/doctest.h>
#include <map>

#include "support/small_graphs.hpp"
#include "support/small_program.hpp"
#include <tensorpar/ir/mixed_precision.hpp>
#include <tensorpar/program/program_hash.hpp>
#include <tensorpar/zoo/gpt.hpp>

using namespace tests;

namespace {

/// Kernels for everything; scratch for sums of columns, as a backend might have it.
bool everything(tensorpar::op::any_op const&, bool) { return true; }
i64 for_sums(tensorpar::op::any_op const& o, shapes in, shapes) {
  bool const sums = (o.is<contraction>() && in.n == 1) ||
      (o.is<tensorpar::op::contraction_with>() && o.as<tensorpar::op::contraction_with>().sums);
  return sums ? 2 * in[0].elements() : 0;
}
program fused(program const& p, machine const& cluster) { return tensorpar::passes::fuse_tasks(p, cluster, everything, for_sums); }

training_options options(int micro_batches) {
  training_options o;
  o.micro_batches = micro_batches;
  return o;
}
plan with(plan p, training_options const& o) {
  p.optimizer = o.optimizer;
  p.micro_batches = o.micro_batches;
  return p;
}
std::map<std::string, int> operators_of(program const& q) {
  std::map<std::string, int> n;
  for (task const& t : q.tasks) if (t.kind == task_kind::compute) ++n[std::string(t.op.op->name)];
  return n;
}
int count(program const& q, auto const& which) {
  int n = 0;
  for (task const& t : q.tasks) n += t.kind == task_kind::compute && which(t);
  return n;
}
computation_graph small_gpt() {
  model_builder g;
  zoo::gpt<>::define(g, zoo::gpt_reduced);
  return lower(g, {zoo::batch = 4});
}

}  // namespace

TEST_CASE("nothing is fused that would outgrow a device which it filled before, nor what has no kernel") {
  computation_graph const g = residual_mlp();
  training_options const o = options(1);
  plan const p = with(serial_plan(g), o);
  workspace_rule const for_two = [](tensorpar::op::any_op const& op, shapes,
                                    shapes) { return op.is<tensorpar::op::contraction_with>() ? i64{16384} : 0; };
  program const plain = unroll(differentiate(g, o), p, {for_two});
  auto const in_memory = [&](i64 bytes) {
    machine m = p.cluster;
    m.kinds[0].memory = bytes;
    return tensorpar::passes::fuse_tasks(plain, m, everything, for_two);
  };
  program const q = in_memory(i64{1} << 30);
  REQUIRE(q.tasks.size() < plain.tasks.size());
  REQUIRE(q.arena[0] > plain.arena[0]);                      // for scratch that single operators do not take
  CHECK(tensorpar::passes::task_hash(in_memory(q.arena[0] - 1)) == tensorpar::passes::task_hash(plain));
  CHECK(tensorpar::passes::task_hash(in_memory(q.arena[0])) == tensorpar::passes::task_hash(q));
  tensorpar::passes::kernel_rule const none = [](tensorpar::op::any_op const&, bool) { return false; };
  CHECK(tensorpar::passes::task_hash(tensorpar::passes::fuse_tasks(plain, devices(1), none, for_two))
        == tensorpar::passes::task_hash(plain));
  tensorpar::passes::kernel_rule const wide_only = [](tensorpar::op::any_op const&, bool narrow) { return !narrow; };
  CHECK(tensorpar::passes::task_hash(tensorpar::passes::fuse_tasks(plain, devices(1), wide_only, for_two))
        == tensorpar::passes::task_hash(q));
  computation_graph const h = mixed_precision(g);
  program const of_bf16 = unroll(differentiate(h, o), with(serial_plan(h), o), {for_sums});
  CHECK(fused(of_bf16, devices(1)).tasks.size() < of_bf16.tasks.size());
  CHECK(tensorpar::passes::task_hash(tensorpar::passes::fuse_tasks(of_bf16, devices(1), wide_only, for_sums))
        == tensorpar::passes::task_hash(of_bf16));
}

TEST_CASE("halves of exchanges stay each other's when programs are fused") {
  std::mt19937 draw(9);
  computation_graph const g = small_transformer();
  training_options const o = options(1);
  int halves = 0;
  for (int trial = 0; trial < 6; ++trial) {
    plan const p = with(random_plan(g, 2 + trial % 3, draw), o);
    program q = unroll(differentiate(g, o), p, {for_sums});
    tensorpar::passes::send_early(q);
    for (buffer& b : q.buffers) if (b.persistent) { b.first = 0; b.last = static_cast<int>(q.tasks.size()) - 1; }
    tensorpar::passes::assign_offsets(q, p.cluster.size());
    program const r = fused(q, p.cluster);
    CHECK(r.tasks.size() < q.tasks.size());
    for (std::size_t t = 0; t < r.tasks.size(); ++t)
      if (int const other = r.tasks[t].other_half; other >= 0) {
        CHECK(r.tasks[static_cast<std::size_t>(other)].other_half == static_cast<int>(t));
        CHECK(r.tasks[t].kind != r.tasks[static_cast<std::size_t>(other)].kind);
        ++halves;
      }
  }
  CHECK(halves > 0);
}

TEST_CASE("of a GPT's layers nothing is left that can be fused") {
  computation_graph const g = small_gpt();                   // 2 layers
  for (int micro : {1, 2, 3}) {
    training_options const o = options(micro);
    plan const p = with(serial_plan(g), o);
    program const plain = unroll(differentiate(g, o), p, {for_sums}), q = fused(plain, p.cluster);
    auto before = operators_of(plain), after = operators_of(q);
    int const layers = 2 * micro;
    auto const linears = [&](auto const& which) {
      return count(q, [&](task const& t) { return t.op.is<tensorpar::op::linear_with>() && which(t.op.as<tensorpar::op::linear_with>()); });
    };
    auto const products = [&](bool slope, bool plus, bool sums) {
      return count(q, [&](task const& t) {
        if (!t.op.is<tensorpar::op::contraction_with>()) return false;
        auto const c = t.op.as<tensorpar::op::contraction_with>();
        return c.slope == slope && c.plus == plus && c.sums == sums;
      });
    };
    CHECK(after["gelu"] == 0);
    CHECK(after["gelu_grad"] == 0);
    CHECK(linears([](tensorpar::op::linear_with const& l) { return l.then_gelu; }) == layers);
    CHECK(linears([](tensorpar::op::linear_with const& l) { return l.plus; }) == 2
          * layers);       // after attention, and after the two linears
    CHECK(products(true, false, false) == layers);
    CHECK(products(false, true, false) == 2 * layers);                               // what k and v leave for x is added to what q does
    CHECK(products(false, false, true) + products(false, true, true) == 6 * layers); // every linear with a bias
    CHECK(products(false, true, true) == 6 * 2 * (micro - 1));                       // later micro-batches add to the first
    CHECK(count(q, [](task const& t) { return t.op.is<tensorpar::op::norm_grads>() && t.op.as<tensorpar::op::norm_grads>().plus; }) == 2
          * layers);
    CHECK(count(q, [](task const& t) {
            return t.op.is<tensorpar::op::norm_grads>() && t.op.as<tensorpar::op::norm_grads>().gamma &&
                t.op.as<tensorpar::op::norm_grads>().beta;
          }) == before["layernorm_grad_x"]);
    for (char const* name : {"layernorm_grad_x", "layernorm_grad_gamma"}) CHECK(after[name] == 0);
    // in memory no more: what was read once, right after
    CHECK(q.buffers.size() < plain.buffers.size());
    CHECK(q.arena[0] < plain.arena[0]);
  }
}

TEST_CASE("every scratch buffer is a task's, and what only the second of two tasks read is gone") {
  std::mt19937 draw(4);
  workspace_rule const for_all = [](tensorpar::op::any_op const&, shapes, shapes) { return i64{64}; };
  for (computation_graph const& g : {residual_mlp(), small_transformer(), small_gpt()})
    for (int n : {1, 2, 4}) {
      training_options const o = options(2);
      plan const p = with(n == 1 ? serial_plan(g) : random_plan(g, n, draw), o);
      workspace_rule const rule = n == 2 ? for_sums : for_all;
      program const q = tensorpar::passes::fuse_tasks(unroll(differentiate(g, o), p, {rule}), p.cluster, everything, rule);
      std::vector<int> used(q.buffers.size(), 0);
      for (task const& t : q.tasks) {
        for (auto const* side : {&t.in, &t.out}) for (int b : *side) ++used[static_cast<std::size_t>(b)];
        if (t.workspace >= 0) ++used[static_cast<std::size_t>(t.workspace)];
      }
      for (std::size_t b = 0; b < used.size(); ++b) CHECK((used[b] > 0 || q.buffers[b].persistent));
    }
}

namespace {

/// y = linear(x, w, b); something; z = r + y. On one device.
struct three_tasks : small_program {
  enum : int { x, w, b, y, r, z, u, v };                       // u, v: of the task between
  three_tasks() {
    for (shape const& s : {shape{4, 8}, shape{8, 8}, shape{8}, shape{4, 8}, shape{4, 8}, shape{4, 8}, shape{4, 8}, shape{4, 8}})
      add_buffer(s);
    add_task(linear{8}, {x, w, b}, {y});
    add_task(relu{}, {u}, {v});
    add_task(add{}, {r, y}, {z});
    add_task(relu{}, {z}, {u});
  }
  task& second() { return p.tasks[2]; }
  /// After lives are set as unroll does.
  program fuse() {
    for (std::size_t t = 0; t < p.tasks.size(); ++t)
      for (auto const* side : {&p.tasks[t].in, &p.tasks[t].out}) for (int i : *side) at(i).last = static_cast<int>(t);
    return fused(p, devices(1));
  }
};
/// Is the second of the two tasks still there, spoilt so?
template <class Spoil> bool apart(Spoil const& spoil) {
  three_tasks t;
  spoil(t);
  return t.fuse().tasks.size() == t.p.tasks.size();
}

}  // namespace

TEST_CASE("two tasks stay two where one would compute, read or leave something else") {
  using three = three_tasks;
  CHECK(!apart([](three&) {}));
  CHECK(apart([](three& t) { t.second().devices = {}; }));
  CHECK(apart([](three& t) { t.second().micro_batch = 1; }));
  // the sum's other operand, its result, and whose place that takes, between the two
  CHECK(apart([](three& t) { t.between().out = {three::r}; }));
  CHECK(apart([](three& t) { t.between().out = {three::z}; }));
  CHECK(apart([](three& t) { t.between().in = {three::z}; }));
  CHECK(!apart([](three& t) { t.at(three::z).in_place_of = three::r; }));
  CHECK(apart([](three& t) {
    t.at(three::z).in_place_of = three::r;
    t.between().in = {three::r};
  }));
  CHECK(apart([](three& t) { t.at(three::z).in_place_of = three::b; }));
  // accumulation
  CHECK(!apart([](three& t) { t.second().out = {three::r}; }));
  CHECK(apart([](three& t) {
    t.second().out = {three::r};
    t.between().in = {three::r};
  }));
  // what the first makes
  CHECK(apart([](three& t) { t.between().in = {three::y}; }));
  CHECK(apart([](three& t) { t.between().out = {three::y}; }));
  CHECK(apart([](three& t) { t.at(three::y).persistent = true; }));
  CHECK(apart([](three& t) { t.second().in = {three::y, three::y}; }));
  CHECK(!apart([](three& t) { t.second().in = {three::y, three::r}; }));
  CHECK(apart([](three& t) { t.at(three::v).in_place_of = three::y; }));
  // parts of other shapes, places and types
  for (int i : {three::r, three::z}) {
    CHECK(apart([i](three& t) { t.at(i).where.axes.push_back({tensorpar::ir::part_kind::replicate, -1, 2, 1}); }));
    CHECK(apart([i](three& t) { t.at(i).type.type = dtype::bf16; }));
  }
  // what is in place of the first's result has a place of its own
  three t;
  t.at(three::z).in_place_of = three::y;
  program const q = t.fuse();
  REQUIRE(q.tasks.size() == 3);
  REQUIRE(q.buffers.size() == 7);
  CHECK(q.buffers[3].value == three::r);
  CHECK(q.buffers[4].value == three::z);
  CHECK(q.buffers[4].in_place_of == -1);
}

TEST_CASE("values that no task uses, such as an optimizer's state in a forward pass, keep their places") {
  computation_graph const g = small_transformer();
  plan const p = serial_plan(g);
  training_options o = options(1);
  o.optimizer.kind = optimizer_kind::adamw;
  program const plain = unroll(differentiate(g, o), with(p, o), {.workspace = for_sums, .forward_only = true}), q = fused(plain, p.cluster);
  REQUIRE(q.tasks.size() < plain.tasks.size());
  auto const persistent = [](program const& r) {
    return std::count_if(r.buffers.begin(), r.buffers.end(), [](buffer const& b) { return b.persistent; });
  };
  CHECK(persistent(q) == persistent(plain));
}

TEST_CASE("outputs are kept to the end, also those that the last task reads or makes") {
  for (int more : {0, 2}) {
    computation_graph g;
    int const x = g.add_input("x", {4, 8}), r = g.add_input("r", {4, 8});
    int const y = out(g, g.add_with_weights(linear{8}, {x}, "l"));
    int h = x;
    for (int k = 0; k < more; ++k) h = out(g, g.add(relu{}, {h}));
    g.add_output("loss", out(g, g.add(mean_squared_error{}, {h, r})));
    int const z = out(g, g.add(add{}, {r, y}));              // last
    g.add_output("z", z);
    if (!more) g.add_output("y", y);
    plan const p = serial_plan(g);
    program const plain = unroll(differentiate(g), p, {.workspace = for_sums, .forward_only = true}), q = fused(plain, p.cluster);
    for (int wanted : {z, more ? z : y}) {
      bool there = false;
      for (buffer const& b : q.buffers) there = there || (b.value == wanted && b.last + 1 == static_cast<int>(q.tasks.size()));
      CHECK(there);
    }
  }
}

TEST_CASE("gelu's slope is taken at what is not the gradient; sums go with a product that keeps that axis of its first operand alone") {
  using three = three_tasks;
  contraction const to_x("0o,oi->0i");
  auto const backward = [&](three& t) {
    t.first().op = to_x;
    t.first().in = {three::x, three::w};
    t.second().op = gelu_grad{};
    t.second().in = {three::y, three::r};
  };
  CHECK(!apart(backward));
  CHECK(apart([&](three& t) {
    backward(t);
    t.second().in = {three::r, three::y};
  }));
  auto const sums = [](char const* product, char const* sum, dtype of_sum) {
    return apart([=](three& t) {
      t.first().op = contraction(product);
      t.first().in = {three::x, three::r};
      t.at(three::y).type = {8, 8};
      t.second().op = contraction(sum);
      t.second().in = {three::x};
      t.second().out = {three::b};
      t.at(three::b).type.type = of_sum;
      t.p.tasks.pop_back();
    });
  };
  CHECK(!sums("0o,0i->oi", "0o->o", dtype::f32));
  CHECK(!sums("01o,01i->oi", "01o->o", dtype::f32));
  CHECK(sums("0o,0i->oi", "0o->o", dtype::bf16));
  CHECK(sums("0o,oi->0i", "0o->o", dtype::f32));               // sums over o
  CHECK(sums("01o,01i->0oi", "01o->o", dtype::f32));           // keeps 0 as well
  CHECK(sums("0o,0i->oi", "0o->0", dtype::f32));
}

namespace {

/// dx = gradient of a norm by x, from dy, x, gamma; something; then dgamma from dy and x, dbeta from dy, and dx + r. On one device.
struct norm_tasks : three_tasks {
  enum : int { dy, in, gamma, dx, term, sum, other, dgamma, dbeta, spare };
  norm_tasks() {
    p.tasks.clear();
    p.buffers.resize(spare + 1, at(0));
    for (int i = 0; i <= spare; ++i) {
      at(i).value = i;
      at(i).type = i == gamma || i == dgamma || i == dbeta ? shape{8} : shape{4, 8};
    }
    add_task(layernorm_grad_x{}, {dy, in, gamma}, {dx});
    add_task(relu{}, {other}, {other});
    add_task(layernorm_grad_gamma{}, {dy, in}, {dgamma});
    add_task(contraction("0e->e"), {dy}, {dbeta});
    add_task(add{}, {dx, term}, {sum});
    add_task(relu{}, {sum}, {other});
  }
  task& of(int t) { return p.tasks[static_cast<std::size_t>(t)]; }
};
/// The norm's gradients as one task, spoilt so; which of the other three tasks are left.
template <class Spoil> std::pair<tensorpar::op::any_op, std::vector<std::string>> norm_fused(Spoil const& spoil) {
  norm_tasks t;
  spoil(t);
  program const q = t.fuse();
  std::vector<std::string> left;
  for (std::size_t k = 1; k < q.tasks.size(); ++k)
    if (!q.tasks[k].op.is<relu>()) left.push_back(std::string(q.tasks[k].op.op->name));
  return {q.tasks[0].op, left};
}

}  // namespace

TEST_CASE("a norm's gradients by x, gamma and beta become one, with the sum that follows, and those of another norm do not") {
  using names = std::vector<std::string>;
  auto const all = norm_fused([](norm_tasks&) {});
  CHECK(all.first == tensorpar::op::any_op(tensorpar::op::norm_grads{1e-5, true, true, true, true}));
  CHECK(all.second == names{});
  for (bool beta_first : {false, true}) {
    norm_tasks t;
    if (beta_first) std::swap(t.of(2), t.of(3));
    program const q = t.fuse();
    CHECK(q.tasks[0].in == std::vector<int>{0, 1, 2, 3});            // dy, x, gamma, and the term: dx is in memory no more
    std::vector<int> made;
    for (int b : q.tasks[0].out) made.push_back(q.buffers[static_cast<std::size_t>(b)].value);
    CHECK(made == std::vector<int>{norm_tasks::sum, norm_tasks::dgamma, norm_tasks::dbeta});
  }
  // once each
  CHECK(norm_fused([](norm_tasks& t) {
          t.p.tasks.back() = t.of(4);
          t.p.tasks.back().in = {norm_tasks::sum, norm_tasks::term};
          t.p.tasks.back().out = {norm_tasks::spare};
          t.add_task(relu{}, {norm_tasks::spare}, {norm_tasks::other});
        }).second == names{"add"});
  for (int twice : {2, 3}) {
    auto const f = norm_fused([&](norm_tasks& t) {
      task again = t.of(twice);
      t.at(norm_tasks::spare).type = shape{8};
      again.out = {norm_tasks::spare};
      t.p.tasks.insert(t.p.tasks.begin() + 4, again);
    });
    CHECK(f.second.size() == 1);
  }
  auto const without_gamma = [&](auto const& spoil) {
    auto const f = norm_fused(spoil);
    CHECK(f.first == tensorpar::op::any_op(tensorpar::op::norm_grads{1e-5, true, true, false, true}));
    CHECK(f.second == names{"layernorm_grad_gamma"});
  };
  without_gamma([](norm_tasks& t) { t.of(2).op = layernorm_grad_gamma{1e-3}; });
  without_gamma([](norm_tasks& t) { t.of(2).in = {norm_tasks::dy, norm_tasks::term}; });
  without_gamma([](norm_tasks& t) { t.at(norm_tasks::dgamma).in_place_of = norm_tasks::gamma; });
  CHECK(norm_fused([](norm_tasks& t) { t.of(2).op = rmsnorm_grad_gamma{}; }).second == names{"rmsnorm_grad_gamma"});
  auto const without_beta = [&](auto const& spoil) {
    auto const f = norm_fused(spoil);
    CHECK(f.first == tensorpar::op::any_op(tensorpar::op::norm_grads{1e-5, true, true, true, false}));
    CHECK(f.second == names{"contraction"});
  };
  without_beta([](norm_tasks& t) { t.of(3).op = contraction("0e->0"); });
  without_beta([](norm_tasks& t) { t.of(3).in = {norm_tasks::term}; });
  without_beta([](norm_tasks& t) { t.at(norm_tasks::dbeta).type.type = dtype::bf16; });
  // of rmsnorm there is no beta
  auto const rms = norm_fused([](norm_tasks& t) {
    t.of(0).op = rmsnorm_grad_x{};
    t.of(2).op = rmsnorm_grad_gamma{};
  });
  CHECK(rms.first == tensorpar::op::any_op(tensorpar::op::norm_grads{1e-5, false, true, true}));
  CHECK(rms.second == names{"contraction"});
  CHECK(norm_fused([](norm_tasks& t) { t.of(0).op = rmsnorm_grad_x{}; }).second == names{"layernorm_grad_gamma", "contraction"});
}

TEST_CASE("what others read, keep, or change in between is not fused") {
  // y = x W^T is an output, so the sum is made of it and not with it
  for (bool kept : {false, true}) {
    computation_graph g;
    int const x = g.add_input("x", {4, 8}), r = g.add_input("r", {4, 8});
    int const y = out(g, g.add_with_weights(linear{8}, {x}, "l"));
    int const z = out(g, g.add(add{}, {r, y}));
    g.add_output("loss", out(g, g.add(mean_squared_error{}, {z, r})));
    if (kept) g.add_output("y", y);
    training_graph const t = differentiate(g);
    plan const p = serial_plan(g);
    program const q = fused(unroll(t, p, {.workspace = for_sums, .forward_only = true}), p.cluster);
    CHECK(count(q, [](task const& u) { return u.op.is<tensorpar::op::linear_with>(); }) == !kept);
  }
  // the sum's other operand comes later than the product
  computation_graph g;
  int const x = g.add_input("x", {4, 8});
  int const y = out(g, g.add_with_weights(linear{8}, {x}, "l"));
  int const late = out(g, g.add(relu{}, {x}));
  int const twice = out(g, g.add(add{}, {y, y}));
  int const sum = out(g, g.add(add{}, {twice, late}));
  g.add_output("loss", out(g, g.add(mean_squared_error{}, {sum, x})));
  plan const p = serial_plan(g);
  CHECK(count(fused(unroll(differentiate(g), p, {.workspace = for_sums, .forward_only = true}), p.cluster),
              [](task const& u) { return u.op.is<tensorpar::op::linear_with>(); }) == 0);
  computation_graph h;
  int const u = h.add_input("x", {4, 8});
  int const v = out(h, h.add_with_weights(linear{8}, {u}, "l"));
  int const after = out(h, h.add(relu{}, {u}));
  h.add_output("loss", out(h, h.add(mean_squared_error{}, {out(h, h.add(add{}, {v, after})), u})));
  plan const second = serial_plan(h);
  CHECK(count(fused(unroll(differentiate(h), second, {.workspace = for_sums, .forward_only = true}), second.cluster),
              [](task const& w) { return w.op.is<tensorpar::op::linear_with>(); }) == 0);
}
