// tests/exec/step/program_check.test.cpp - programs that were unrolled for something else are refused before memory is taken for them
#include <tensorpar/exec/step/program_check.hpp>

#include <doctest/doctest.h>

#include "support/random_pipeline.hpp"
#include "support/spine.hpp"

using namespace tests;

namespace {
using compute_t = compute::eigen<float>;
std::string refusal(training_graph const& t, plan const& p, program const& q) {
  try {
    tensorpar::exec::require_program<compute_t>(t, p, q);
  } catch (error const& e) { return e.what(); }
  return {};
}
bool has(std::string const& text, char const* part) { return text.find(part) != std::string::npos; }
}  // namespace

TEST_CASE("what unroll makes for a policy is a program for it, under any plan") {
  std::mt19937 draw(2);
  for (computation_graph const& g : {residual_mlp(), small_cnn(), small_transformer()})
    for (int n = 1; n < 7; ++n) {
      training_graph const t = differentiate(g);
      plan p = random_plan(g, n, draw);
      CHECK(refusal(t, p, unroll(t, p, {&compute_t::workspace})) == "");
      for (op_strategy& c : p.nodes) c = {c.sharding, static_cast<tensorpar::ir::zero_stage>(draw() % 4), draw() % 2 == 0};
      planned_step const s = tensorpar::passes::memory_pass(t, p);
      CHECK(refusal(s.graph, s.plan, unroll(s.graph, s.plan, {&compute_t::workspace})) == "");
    }
}

TEST_CASE("a program for other scalars, kernels, devices, micro-batches or another graph is refused") {
  computation_graph const g = small_cnn();
  training_graph const t = differentiate(g);
  std::mt19937 draw(3);
  plan const p = random_plan(g, 3, draw);
  program const good = unroll(t, p, {&compute_t::workspace});
  plan other = p;
  other.scalar_bytes = 8;
  CHECK(has(refusal(t, p, unroll(t, other, {&compute_t::workspace})), "is for scalars of 8 bytes (at executor); valid: what unroll"));
  CHECK(has(refusal(t, p, unroll(t, p)), "0 bytes of scratch for task"));
  CHECK(has(refusal(t, p, unroll(t, random_plan(g, 4, draw), {&compute_t::workspace})), "is for 4 devices, the plan for 3"));
  other = p;
  other.micro_batches = 2;
  training_options twice;
  twice.micro_batches = 2;
  CHECK(has(refusal(t, p, unroll(differentiate(g, twice), other, {&compute_t::workspace})), "is for 2 micro-batches"));
  computation_graph const h = residual_mlp();
  CHECK(has(refusal(t, p, unroll(differentiate(h), random_plan(h, 3, draw), {&compute_t::workspace})), "is of another graph"));
  CHECK_THROWS_WITH_AS(executor_of<float>(planned_step{t, p, unroll(t, p)}), doctest::Contains("bytes of scratch"), error);
  CHECK_NOTHROW(executor_of<float>(planned_step{t, p, good}));
}

TEST_CASE("a program that was damaged is refused") {
  computation_graph const g = residual_mlp();
  training_graph const t = differentiate(g);
  std::mt19937 draw(4);
  plan const p = random_plan(g, 2, draw);
  program const good = unroll(t, p, {&compute_t::workspace});
  auto const with = [&](auto const& change) {
    program q = good;
    change(q);
    return refusal(t, p, q);
  };
  CHECK(has(with([](program& q) { q.arena[0] = 64; }), "outside of the arena of device 0"));
  CHECK(has(with([](program& q) { q.buffers[0].offset[0] = -64; }), "outside of the arena"));
  CHECK(has(with([](program& q) { q.buffers[0].bytes /= 2; }), "which takes"));
  CHECK(has(with([](program& q) { q.buffers[0].offset.clear(); }), "has no place for buffer 0"));
  CHECK(has(with([](program& q) { q.tasks[0].in.push_back(1 << 20); }), "is of another graph: task 0"));
  CHECK(has(with([](program& q) { q.tasks[0].devices.back() = 2; }), "is of another graph: task 0"));
}
