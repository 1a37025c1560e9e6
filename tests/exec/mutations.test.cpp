// tests/exec/mutations.test.cpp - faults that a parallel trainer could have are seen by both checks
#include <tensorpar/exec/comm/move.hpp>

#include <doctest/doctest.h>

#include <atomic>

#include "support/spine.hpp"

using namespace tests;

namespace {

/// comm::threads whose first all-reduce hands one byte changed to rank 1.
class one_wrong_byte : public comm::threads {
 public:
  using comm::threads::threads;
  template <class Element> void all_reduce(group const& g, Element const* in, Element* out, i64 n) {
    comm::threads::all_reduce(g, in, out, n);
    if (rank() != 1 || done_) return;
    done_ = true;
    unsigned char byte;
    std::memcpy(&byte, reinterpret_cast<unsigned char*>(out) + 5, 1);
    byte = static_cast<unsigned char>(byte ^ 4);
    std::memcpy(reinterpret_cast<unsigned char*>(out) + 5, &byte, 1);
  }

 private:
  bool done_ = false;
};

plan data_parallel(computation_graph const& g, int n) {
  plan p = serial_plan(g);
  p.cluster = devices(n);
  for (op_strategy& c : p.nodes) c.sharding = {0, {{'0', n, 1}}};
  return p;
}

struct verdict {
  bool exact;         // the prime field's
  double relative;    // double's
};
/// Trains the same model serially and with a mutated parallel program.
template <class Comm = comm::threads> verdict compare(void (*mutate)(training_graph&, program&)) {
  computation_graph const g = residual_mlp();
  plan const p = data_parallel(g, 4), s = serial_plan(g);
  auto parallel = [&]<class S>(S) {
    training_graph t = differentiate(g);
    plan sized = p;
    sized.scalar_bytes = sizeof(S);
    program q = unroll(t, sized, {&compute::eigen<S>::workspace});
    if (mutate) mutate(t, q);
    executor<compute::eigen<S>, Comm> e(tensorpar::exec::already_checked{planned_step{t, p, q}});
    return train(e, 2);
  };
  executor_of<prime_field> a(differentiate(g), s);
  executor_of<double> b(differentiate(g), s);
  return {parallel(prime_field()) == train(a, 2), distance(parallel(0.0), train(b, 2))};
}

}  // namespace

TEST_CASE("without a fault both checks pass") {
  verdict const v = compare<>(nullptr);
  CHECK(v.exact);
  CHECK(v.relative < 1e-12);
}
TEST_CASE("a wrong byte in one collective is caught") {
  verdict const v = compare<one_wrong_byte>(nullptr);
  CHECK_FALSE(v.exact);
  CHECK(v.relative > 1e-12);
}
TEST_CASE("a missing gradient reduction is caught") {
  verdict const v = compare<>([](training_graph&, program& q) {
    for (task& t : q.tasks)
      if (t.kind == task_kind::reshard && t.step.kind == tensorpar::ir::reshard_kind::all_reduce) {
        t.step.kind = tensorpar::ir::reshard_kind::slice; return;
      }
    FAIL("the program has no all-reduce to remove");
  });
  CHECK_FALSE(v.exact);
  CHECK(v.relative > 1e-12);
}
TEST_CASE("a wrong 1/n scale is caught") {
  verdict const v = compare<>([](training_graph&, program& q) {
    for (task& t : q.tasks)
      if (t.op.is<constant>()) { t.op = constant{0.25, 0, {}}; return; }      // as if a mean over 4 devices were taken twice
    FAIL("the program has no loss gradient to scale");
  });
  CHECK_FALSE(v.exact);
  CHECK(v.relative > 1e-12);
}
