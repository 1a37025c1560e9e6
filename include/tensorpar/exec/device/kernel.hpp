// tensorpar/exec/device/kernel.hpp - what a compute policy is handed for one operator on one device
#pragma once
#include <tensorpar/op/core/any_op.hpp>
#include <tensorpar/op/core/block.hpp>
#include <type_traits>

namespace tensorpar::exec {

namespace detail {
template <class Op, class... Listed> inline constexpr bool one_of = (std::is_same_v<Op, Listed> || ...);
}  // namespace detail

/// What changes from step to step and is the same on every device.
struct step_state {
  u64 step = 0;                      // training steps done so far
  // of the run: dropout draws follow from (seed, operator's seed, step, logical index in the whole batch)
  u64 seed = 0;
  u64 micro_batch = 0, micro_batches = 1;   // which one, of how many
  double learning_rate = 0;
};

/// What an operator's kernel takes of the above: numbers in the kernel's own form.
struct step_arguments {
  u64 w[4]{};
};

/// One operator on one device. Real tensors point to the policy's scalar, integer tensors to std::int32_t.
/// Buffers do not overlap, except that an update's results are its operands (in place), `add` may write its
/// first operand, a fused operator with a sum the operand that it adds (op/kinds/fused.hpp), and one with
/// `overwrites` that operand (op/core/concepts.hpp).
struct kernel_call {
  op::any_op const* op = nullptr;
  int inputs = 0, outputs = 0;
  void const* const* in = nullptr;
  op::tensor_block const* in_block = nullptr;
  void* const* out = nullptr;
  op::tensor_block const* out_block = nullptr;
  void* workspace = nullptr;         // as many scalars as the policy's workspace rule asked for
  /// Several devices may hold partial sums of one result. What must be added once (a bias) is added where
  /// this is true.
  bool first_share = true;
  step_state state;
  // of the first result: where samples stand (ir/sample_runs.hpp); -1: first
  i64 sample_run = -1;
  // in the device's memory: those of this operator for the step, null: they follow from `state`
  step_arguments const* arguments = nullptr;
};

/// The numbers, in the whole batch, of the elements that a micro-batch has of the first result.
struct batch_numbers {
  u64 before = 0, skip = 0, run = 1;
  constexpr u64 of(i64 logical) const {
    u64 const i = static_cast<u64>(logical);
    return before + i + (skip ? i / run * skip : 0);
  }
};
namespace detail {
constexpr batch_numbers numbers_in_batch(kernel_call const& c) {
  if (c.sample_run == 0) return {};                        // the same in every micro-batch
  u64 const all = static_cast<u64>(c.out_block[0].logical_elements()),
            run = c.sample_run < 0 ? all : static_cast<u64>(c.sample_run);
  return {c.state.micro_batch * run, run < all ? (c.state.micro_batches - 1) * run : 0, run};
}
}  // namespace detail

}  // namespace tensorpar::exec
