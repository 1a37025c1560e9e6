// tests/exec/step/fuse.test.cpp - fused operators and programs: they compute what the plain ones do, in less memory and fewer tasks
#include <tensorpar/exec/step/fuse.hpp>
#include <tensorpar/exec/teams/kernels/fused.hpp>
#include <tensorpar/op/kinds/fused.hpp>
#include <tensorpar/program/fuse_tasks.hpp>

#include <atomic>
#include <support/peaks.hpp>
#include <doctest/doctest.h>

#include "support/effort.hpp"
#include "support/laws/fused.hpp"
#include "support/laws/operator.hpp"
#include "support/random_pipeline.hpp"
#include "support/threaded_teams.hpp"
#include "support/training.hpp"
#include "support/teams_once.hpp"
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/teams/teams.hpp>
#include <tensorpar/ir/mixed_precision.hpp>
#include <tensorpar/program/passes/memory_pass.hpp>
#include <tensorpar/program/passes/pipeline_pass.hpp>
#include <tensorpar/program/program_hash.hpp>
#include <tensorpar/zoo/gpt.hpp>

using namespace tests;

namespace {

using exact = compute::teams<prime_field>;
using narrow = compute::teams<float, tensorpar::exec::host_teams<>, tensorpar::op::op_set<>, bfloat16>;

training_options options(int trial, int micro_batches) {
  training_options o;
  o.optimizer.kind = static_cast<optimizer_kind>(trial % 3);
  o.optimizer.clip_norm = trial % 2 ? 0.5 : 0;
  o.micro_batches = micro_batches;
  return o;
}
plan with(plan p, training_options const& o) {
  p.optimizer = o.optimizer;
  p.micro_batches = o.micro_batches;
  p.scalar_bytes = sizeof(prime_field);
  return p;
}
computation_graph small_gpt() {
  model_builder g;
  zoo::gpt_sizes s = zoo::gpt_reduced;
  s.packed = true;
  zoo::gpt<>::define(g, s);
  return lower(g, {zoo::batch = 4});
}

}  // namespace

TEST_CASE("fused kernels are their two parts: exactly in the prime field, up to rounding else, with any number of lanes") {
  check_fused<prime_field, prime_field>(exact{}, exact{}, 0);
  check_fused<prime_field, prime_field>(compute::teams<prime_field, tensorpar::exec::host_teams<4>>{}, exact{}, 0);
  check_fused<prime_field, prime_field>(compute::teams<prime_field, threaded_teams<3>>{}, exact{}, 0);
  check_fused<double, double>(compute::teams<double>{}, compute::teams<double>{}, 1e-12);
  check_fused<float, float>(compute::teams<float>{}, compute::teams<float>{}, 1e-5);
  check_fused<bfloat16, float>(narrow{}, narrow{}, 0.02);
  check_fused<bfloat16, bfloat16>(narrow{}, narrow{}, 0.02);
}

TEST_CASE("fused kernels have NaN and infinity where their two parts have them") {
  std::vector<std::pair<i64, i64>> const norms{{7, 3}, {16, 40}};
  check_fused<double, double>(compute::teams<double>{}, compute::teams<double>{}, 1e-12, norms, true);
  check_fused<float, float>(compute::teams<float>{}, compute::teams<float>{}, 1e-5, norms, true);
  check_fused<bfloat16, float>(narrow{}, narrow{}, 0.02, norms, true);
}

TEST_CASE("attention leaves its log-sum-exps behind, and its gradient from them is the gradient") {
  check_attention_lse<prime_field>(exact{}, exact{}, 0);
  check_attention_lse<prime_field>(compute::teams<prime_field, tensorpar::exec::host_teams<4>>{}, exact{}, 0);
  check_attention_lse<double>(compute::teams<double>{}, compute::teams<double>{}, 1e-12);
  check_attention_lse<float>(compute::teams<float>{}, compute::teams<float>{}, 1e-5);
  check_attention_lse<bfloat16>(narrow{}, narrow{}, 0.02);
}

TEST_CASE("fused operators keep the laws of operators") {
  shape const x{4, 6, 8}, y{4, 6, 12}, w{12, 8};
  int splits = 0;
  for (tensorpar::op::any_op const& o : std::vector<tensorpar::op::any_op>{tensorpar::op::linear_with{true, true, false},
                                                                           tensorpar::op::linear_with{true, false, true},
                                             tensorpar::op::linear_with{false, false, false}}) {
    std::vector<shape> in{x, w};
    if (o.as<tensorpar::op::linear_with>().bias) in.push_back({12});
    if (o.as<tensorpar::op::linear_with>().plus) in.push_back(y);
    splits += tests::check_operator_laws(o, in);
  }
  for (bool sums : {false, true})
    for (bool plus : {false, true}) {
      std::vector<shape> in{y, x};
      if (plus) in.push_back(w);
      splits += tests::check_operator_laws(tensorpar::op::contraction_with{contraction("01o,01i->oi"), false, plus, sums}, in);
    }
  splits += tests::check_operator_laws(tensorpar::op::contraction_with{contraction("01o,oi->01i"), true, false, false}, {y, w, x});
  for (bool plus : {false, true}) {
    std::vector<shape> in{x, x, {8}};
    if (plus) in.push_back(x);
    for (bool gamma : {false, true}) {
      for (bool beta : {false, true}) splits += tests::check_operator_laws(tensorpar::op::norm_grads{1e-5, true, plus, gamma, beta}, in);
      splits += tests::check_operator_laws(tensorpar::op::norm_grads{1e-5, false, plus, gamma}, in);
    }
  }
  for (bool causal : {false, true}) {
    shape const q{4, 6, 8}, k{4, 4, 8}, lse{4, 2, 6};
    splits += tests::check_operator_laws(tensorpar::op::attention_with_lse{2, causal}, {q, k, k});
    splits += tests::check_operator_laws(tensorpar::op::attention_grad_from_lse{2, causal}, {q, q, k, k, q, lse});
    splits += tests::check_operator_laws(packed_attention_with_lse{2, causal}, {{4, 6, 24}});
    splits += tests::check_operator_laws(packed_attention_grad_from_lse{2, causal}, {q, {4, 6, 24}, q, lse});
  }
  CHECK(splits > 40);
  tests::check_attribute_laws(tensorpar::op::linear_with{});
  tests::check_attribute_laws(tensorpar::op::contraction_with{});
  tests::check_attribute_laws(tensorpar::op::norm_grads{1e-3, true, true, false, true});
  tests::check_attribute_laws(tensorpar::op::norm_grads{1e-3, false, false, true});
  tests::check_attribute_laws(tensorpar::op::attention_with_lse{2, true});
  tests::check_attribute_laws(packed_attention_with_lse{2, true});
}

TEST_CASE("a fused step is the step, exactly, under random plans, micro-batches and savings") {
  std::mt19937 draw(3);
  int fewer = 0, smaller = 0, larger = 0;
  for (computation_graph const& g : {residual_mlp(), small_cnn(), small_transformer(), small_gpt()})
    for (int trial = 0; trial < test_effort::cases(12); ++trial) {
      CAPTURE(trial);
      training_options const o = options(trial, 1 + trial % 3);
      plan p = with(random_plan(g, 1 + trial % 4 * 2, draw), o);
      for (op_strategy& c : p.nodes) {
        c.zero = static_cast<tensorpar::ir::zero_stage>(draw() % 4);
        c.recompute = draw() % 2;
      }
      if (trial % 2) p.node_order = random_order(g, draw);
      planned_step const step = tensorpar::passes::memory_pass(differentiate(g, o), p);
      program const plain = unroll(step.graph, step.plan, {&exact::workspace}), q = tensorpar::exec::fused<exact>(plain, p.cluster);
      for (std::size_t d = 0; d < plain.arena.size(); ++d) {
        CHECK(q.arena[d] >= arena_bound(q, static_cast<int>(d)));
        smaller += q.arena[d] < plain.arena[d];
        larger += q.arena[d] > plain.arena[d];
      }
      fewer += static_cast<int>(plain.tasks.size() - q.tasks.size());
      CHECK(tensorpar::passes::task_hash(tensorpar::exec::fused<exact>(q, p.cluster)) == tensorpar::passes::task_hash(q));
      executor<exact, comm::threads> a(planned_step{step.graph, step.plan, plain}), b(planned_step{step.graph, step.plan, q});
      bool const equal = train(a, 2) == train(b, 2);
      CHECK(equal);
      CHECK(b.copies_agree());
    }
  CHECK(fewer > test_effort::cases(12) * 40);
  CHECK(smaller > larger);
}

namespace {

/// A device whose library begins gradients of attention with what their forward passes left; here it only compares that with what the
/// kernel makes of the operands, and lets the kernel do it.
struct comparing_teams : tensorpar::exec::host_teams<> {
  static inline std::atomic<int> compared = 0, different = 0;
  template <class Scalar, class Op>
    requires(std::same_as<Op, tensorpar::op::attention_grad_from_lse> || std::same_as<Op, packed_attention_grad_from_lse>)
  bool whole(Op const& op, tensorpar::exec::kernel_call const& c) const {
    constexpr bool packed = std::same_as<Op, packed_attention_grad_from_lse>;
    using with_lse = std::conditional_t<packed, packed_attention_with_lse, tensorpar::op::attention_with_lse>;
    int const before = c.inputs - 2;                               // y and log-sum-exps come last
    std::vector<Scalar> y(static_cast<std::size_t>(c.in_block[before].elements())),
        lse(static_cast<std::size_t>(c.in_block[before + 1].elements()));
    tensorpar::op::any_op const forward(with_lse{op.heads, op.causal});
    void* const out[] = {y.data(), lse.data()};
    tensorpar::exec::kernel_call again = c;
    again.op = &forward;
    again.in = c.in + 1;
    again.in_block = c.in_block + 1;
    again.inputs = before - 1;
    again.out = out;
    again.out_block = c.in_block + before;
    again.outputs = 2;
    exact{}.run(again);
    ++compared;
    different += !std::equal(y.begin(), y.end(), static_cast<Scalar const*>(c.in[before])) ||
                 !std::equal(lse.begin(), lse.end(), static_cast<Scalar const*>(c.in[before + 1]));
    return false;
  }
  template <class Scalar, class Op> static i64 whole_scratch(Op const&, shapes, shapes) { return 0; }
};
using comparing = compute::teams<prime_field, comparing_teams>;
/// Its library does the gradient of one form alone.
template <class Gradient> struct one_form_teams : tensorpar::exec::host_teams<> {
  template <class Scalar, class Op>
    requires std::same_as<Op, Gradient>
  bool whole(Op const&, tensorpar::exec::kernel_call const&) const { return false; }
  template <class Scalar, class Op> static i64 whole_scratch(Op const&, shapes, shapes) { return 0; }
};
/// Are log-sum-exps kept of attention, and of its packed form?
template <class Gradient> std::pair<bool, bool> kept_by() {
  using policy = compute::teams<prime_field, one_form_teams<Gradient>>;
  return {policy::keeps_lse(tensorpar::op::attention_with_lse{2}, false) &&
          policy::keeps_lse(tensorpar::op::attention_grad_from_lse{2}, false),
          policy::keeps_lse(packed_attention_with_lse{2}, false) && policy::keeps_lse(packed_attention_grad_from_lse{2}, false)};
}

}  // namespace

TEST_CASE("what attention left is there when its gradient begins with it, on every device, whatever is split, saved or computed again") {
  for (tensorpar::op::any_op const& o : {tensorpar::op::any_op(tensorpar::op::attention_grad_from_lse{2}),
                                         tensorpar::op::any_op(packed_attention_with_lse{2})})
    CHECK((comparing::keeps_lse(o, false) && !exact::keeps_lse(o, false) && !narrow::keeps_lse(o, true)));
  CHECK(kept_by<tensorpar::op::attention_grad_from_lse>() == std::pair(true, false));
  CHECK(kept_by<packed_attention_grad_from_lse>() == std::pair(false, true));
  plan const serial = with(serial_plan(small_transformer()), options(0, 1));
  program const whole_step = unroll(differentiate(small_transformer(), options(0, 1)), serial, {&exact::workspace});
  for (task const& t : tensorpar::exec::fused<exact>(whole_step, serial.cluster).tasks)
    CHECK(!t.op.is<tensorpar::op::attention_with_lse>());
  comparing_teams::compared = comparing_teams::different = 0;
  std::mt19937 draw(6);
  int kept = 0, left = 0, again = 0;
  auto const look = [&](program const& q) {
    for (task const& t : q.tasks) {
      kept += t.op.is<tensorpar::op::attention_grad_from_lse>() || t.op.is<packed_attention_grad_from_lse>();
      left += t.op.is<attention_grad>() || t.op.is<packed_attention_grad>();
      again += is_attention(t.op);
    }
  };
  for (computation_graph const& g : {small_transformer(), small_gpt()})
    for (int trial = 0; trial < test_effort::cases(12); ++trial) {
      CAPTURE(trial);
      training_options const o = options(trial, 1 + trial % 3);
      plan p = with(random_plan(g, 1 + trial % 5 * 2, draw), o);
      for (op_strategy& c : p.nodes) c.recompute = trial % 4 == 1 || (trial % 4 == 2 && draw() % 2);
      planned_step const step = tensorpar::passes::memory_pass(differentiate(g, o), p);
      program const plain = unroll(step.graph, step.plan, {&comparing::workspace}), q = tensorpar::exec::fused<comparing>(plain, p.cluster);
      look(q);
      // where operands alone are computed again, they lie where no forward pass has read them
      if (trial % 4 != 2) CHECK(left == 0);
      left = 0;
      CHECK(tensorpar::passes::task_hash(tensorpar::exec::fused<comparing>(q, p.cluster)) == tensorpar::passes::task_hash(q));
      executor<comparing, comm::threads> a(planned_step{step.graph, step.plan, plain}), b(planned_step{step.graph, step.plan, q});
      bool const equal = train(a, 2) == train(b, 2);
      CHECK(equal);
    }
  computation_graph const g = small_transformer();
  for (int trial = 0; trial < test_effort::cases(12); ++trial) {
    pipeline_kind kind;
    kind.sizes = kind.split = kind.recompute = false;
    kind.devices = 2 + trial % 5;
    plan p = random_pipeline(g, kind, 1, i64{1} << (trial % 4), draw);
    p.scalar_bytes = sizeof(prime_field);
    planned_step const s = tensorpar::passes::pipeline_pass(g, p);
    program const q = tensorpar::exec::fused<comparing>(unroll(s, {&comparing::workspace}), s.plan.cluster);
    look(q);
    executor<comparing, comm::threads> e(planned_step{s.graph, s.plan, q});
    e.initialise(7);
    e.step(random_batch(g, static_cast<int>(p.pipeline.mini_batch), 0), 0.125);
  }
  CHECK(comparing_teams::different == 0);
  CHECK(comparing_teams::compared >= kept);
  CHECK(left == 0);
  CHECK(kept > test_effort::cases(12) * 6);
  CHECK(again > 0);                                    // the first of two passes
}

TEST_CASE("a fused pipeline is the pipeline, exactly, with sums in the place of others") {
  int in_place = 0;
  for (bool transformer : {false, true}) {
    computation_graph const g = transformer ? small_transformer() : residual_mlp();
    std::mt19937 draw(5);
    for (int trial = 0; trial < test_effort::cases(12); ++trial) {
      CAPTURE(trial);
      pipeline_kind kind;
      kind.sizes = kind.split = !transformer && trial % 3;
      kind.shared_groups = !transformer && trial % 3 == 0;
      kind.devices = 2 + trial % 5;
      plan p = random_pipeline(g, kind, 1, i64{1} << (trial % 4), draw);
      p.optimizer = options(trial, 1).optimizer;
      p.scalar_bytes = sizeof(prime_field);
      if (trial % 2)
        for (op_strategy& n : p.nodes) n = {n.sharding, static_cast<tensorpar::ir::zero_stage>(draw() % 4), draw() % 2 == 0};
      planned_step const s = tensorpar::passes::pipeline_pass(g, p);
      program const plain = unroll(s, {&exact::workspace}), q = tensorpar::exec::fused<exact>(plain, s.plan.cluster);
      for (task const& t : q.tasks)
        in_place += t.op.is<tensorpar::op::contraction_with>() && q.buffers[static_cast<std::size_t>(t.out[0])].in_place_of >= 0;
      executor<exact, comm::threads> a(planned_step{s.graph, s.plan, plain}), b(planned_step{s.graph, s.plan, q});
      auto const trained = [&](auto& e) {
        e.initialise(7);
        for (int k = 0; k < 2; ++k) e.step(random_batch(g, static_cast<int>(p.pipeline.mini_batch), static_cast<u64>(k)), 0.125);
        return parameters_of(e);
      };
      bool const equal = trained(a) == trained(b);
      CHECK(equal);
      CHECK(b.copies_agree());
    }
  }
  CHECK(in_place > 0);
}

TEST_CASE("steps in floats and in bf16 differ by rounding alone") {
  computation_graph const g = small_transformer();
  training_options const o = options(0, 2);
  auto const train_both = [&]<class Compute>(computation_graph const& f, double tolerance) {
    plan p = with(serial_plan(f), o);
    p.scalar_bytes = sizeof(float);
    training_graph const t = differentiate(f, o);
    program const plain = unroll(t, p, {&Compute::workspace}), q = tensorpar::exec::fused<Compute>(plain, p.cluster);
    CHECK(q.tasks.size() < plain.tasks.size());
    std::vector<std::vector<double>> result[2];
    for (bool fuse : {false, true}) {
      executor<Compute, comm::threads> e(planned_step{t, p, fuse ? q : plain});
      for (auto const& x : train(e, 3)) result[fuse].emplace_back(x.begin(), x.end());
    }
    CHECK(tests::distance(result[0], result[1]) < tolerance);
  };
  train_both.operator()<compute::teams<float>>(g, 1e-5);
  train_both.operator()<narrow>(mixed_precision(g), 0.01);
}
