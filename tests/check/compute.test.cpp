// tests/check/compute.test.cpp - an operator's task that reads, computes or lies otherwise than graph and plan say is found
#include <tensorpar/check/compute.hpp>
#include <doctest/doctest.h>

#include <functional>
#include <check/check_subject.hpp>
#include <tensorpar/check/moves.hpp>
#include <tensorpar/op/operators.hpp>
#include <vector>

using namespace tensorpar;
using tests::subject;

namespace {
std::vector<finding> replayed(subject const& s) {
  findings out(1000);
  detail::check::facts known(s.p.cluster.size());
  detail::check::replay(s.t, s.p, s.q, known, out).run(true);
  return out.take();
}
/// Spoils every task that fits, one at a time, and counts how many of them are answered by this fault at this task first.
struct outcome { int tried = 0, found = 0; };
outcome spoil_each(int turns, fault code, std::function<bool(subject&, task&)> const& spoil) {
  std::mt19937 draw(5);
  outcome r;
  for (int turn = 0; turn < turns; ++turn) {
    subject const good = tests::checked_step(turn, draw);
    for (std::size_t i = 0; i < good.q.tasks.size(); ++i) {
      if (good.q.tasks[i].kind != task_kind::compute) continue;
      subject s = good;
      if (!spoil(s, s.q.tasks[i])) continue;
      ++r.tried;
      auto const all = replayed(s);
      r.found += !all.empty() && all[0].code == code && all[0].task == static_cast<int>(i);
    }
  }
  return r;
}
/// Partial sums of two micro-batches or readers that are added where they lie: a task of its own kind, whose mesh is its buffers'.
bool adds(task const& t) { return t.op.is<add>(); }
}  // namespace

TEST_CASE("what the unrolling makes is replayed without a finding") {
  std::mt19937 draw(1);
  for (int turn = 0; turn < 30; ++turn) CHECK(replayed(tests::checked_step(turn, draw)).empty());
}

TEST_CASE("another operator, attribute or operand than the graph's") {
  outcome const op = spoil_each(6, fault::wrong_operand, [](subject&, task& t) {
    if (adds(t)) return false;
    t.op = relu{}.name == t.op.op->name ? op::any_op(sigmoid{}) : op::any_op(relu{});
    return true;
  });
  CHECK(op.tried > 50);
  CHECK(op.found == op.tried);
  outcome const attribute = spoil_each(6, fault::wrong_operand, [](subject&, task& t) {
    if (adds(t) || t.op.op->attrs == 0) return false;
    ++t.op.attr[0];
    return true;
  });
  CHECK(attribute.tried > 20);
  CHECK(attribute.found == attribute.tried);
  outcome const operand = spoil_each(6, fault::wrong_operand, [](subject& s, task& t) {
    for (std::size_t b = 0; b < s.q.buffers.size(); ++b)
      if (!adds(t) && !t.in.empty() && s.q.buffers[b].value >= 0 && s.q.buffers[b].value != s.q.buffers[idx(t.in[0])].value) {
        t.in[0] = static_cast<int>(b);
        return true;
      }
    return false;
  });
  CHECK(operand.tried > 50);
  CHECK(operand.found == operand.tried);
}

TEST_CASE("another sharding than the plan's, or other devices than the sharding's") {
  outcome const mesh = spoil_each(6, fault::mesh, [](subject& s, task& t) {
    if (adds(t) || s.p.cluster.size() < 2) return false;
    ++t.mesh.start;
    return true;
  });
  CHECK(mesh.tried > 30);
  CHECK(mesh.found == mesh.tried);
  outcome const devices = spoil_each(6, fault::devices, [](subject&, task& t) {
    if (adds(t) || t.devices.size() < 2) return false;
    t.devices.pop_back();
    return true;
  });
  CHECK(devices.tried > 10);
  CHECK(devices.found == devices.tried);
}

TEST_CASE("an operator that runs before its operand is there reads what is not written") {
  std::mt19937 draw(6);
  int tried = 0;
  for (int turn = 0; turn < 6; ++turn) {
    subject const good = tests::checked_step(turn, draw);
    for (std::size_t i = 0; i + 1 < good.q.tasks.size(); ++i) {
      task const &a = good.q.tasks[i], &b = good.q.tasks[i + 1];
      bool reads = false;
      for (int x : b.in) {
        buffer const& made = good.q.buffers[idx(x)];  // by one task: not summed up where it lies, nor there before the step
        reads = reads || (a.out == std::vector<int>{x} && made.first == static_cast<int>(i) && !made.persistent);
      }
      if (a.kind != task_kind::compute || b.kind != task_kind::compute || !reads || adds(b)) continue;
      subject s = good;
      std::swap(s.q.tasks[i], s.q.tasks[i + 1]);
      auto const all = replayed(s);
      REQUIRE(!all.empty());
      CHECK(all[0].code == fault::not_written);
      CHECK(all[0].task == static_cast<int>(i));
      ++tried;
    }
  }
  CHECK(tried > 5);
}
