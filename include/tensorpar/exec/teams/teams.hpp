// tensorpar/exec/teams/teams.hpp - the compute policy that runs every operator by teams of lanes, on whatever
// device has them
#pragma once
#include <tensorpar/exec/cpu/common/kernel_table.hpp>
#include <tensorpar/exec/teams/kernels/attention.hpp>
#include <tensorpar/exec/teams/kernels/attention_parts.hpp>
#include <tensorpar/exec/teams/kernels/batch_norm.hpp>
#include <tensorpar/exec/teams/kernels/contraction.hpp>
#include <tensorpar/exec/teams/kernels/convolution.hpp>
#include <tensorpar/exec/teams/kernels/embedding.hpp>
#include <tensorpar/exec/teams/kernels/fused.hpp>
#include <tensorpar/exec/teams/kernels/host.hpp>
#include <tensorpar/exec/teams/kernels/loss.hpp>
#include <tensorpar/exec/teams/kernels/norms.hpp>
#include <tensorpar/exec/teams/kernels/pointwise.hpp>
#include <tensorpar/exec/teams/kernels/pooling.hpp>
#include <tensorpar/exec/teams/kernels/rows.hpp>
#include <tensorpar/exec/teams/kernels/softmax_states.hpp>
#include <tensorpar/exec/teams/kernels/structural.hpp>
#include <tensorpar/exec/teams/kernels/update.hpp>

namespace tensorpar {

namespace detail {
/// Bytes that this device's products take of an operator's scratch: the first ones.
template <class Device, class Scalar, class Op>
inline constexpr i64 product_scratch = [] {
  if constexpr (requires { Device::product_scratch; } && exec::detail::multiplies<Scalar, Op>)
    return i64{Device::product_scratch};
  else return i64{0};
}();
template <class Scalar, class Device, class Op>
void run_on_teams(Device const& d, exec::kernel_call const& c) {
  if constexpr (product_scratch<Device, Scalar, Op> > 0) {
    exec::kernel_call rest = c;
    rest.workspace = static_cast<std::byte*>(c.workspace) + product_scratch<Device, Scalar, Op>;
    exec::detail::run_operator<Scalar>(d.with_scratch(c.workspace), rest, op::load<Op>(c.op->attr));
  } else {
    exec::detail::run_operator<Scalar>(d, c, op::load<Op>(c.op->attr));
  }
}
/// Bytes that the device's library may ask for, to do the operator or what it is a function of.
template <class Device, class Scalar, class Op> i64 whole_scratch(Op const& op, shapes in, shapes out) {
  if constexpr (exec::detail::does_whole<Device, Scalar, Op>)
    return Device::template whole_scratch<Scalar>(op, in, out);
  else return 0;
}
template <class Device, class Scalar, class Op, class F>
i64 whole_scratch(op::activated<Op, F> const& op, shapes in, shapes out) {
  return whole_scratch<Device, Scalar>(static_cast<Op const&>(op), in, out);
}
template <class Scalar, class Device, class Op>
i64 team_workspace(op::any_op const& o, shapes in, shapes out) {
  i64 own = 0;
  if constexpr (requires(Op const& op) { exec::team_kernel<Scalar, Op>::workspace(op, in, out); })
    own = exec::team_kernel<Scalar, Op>::workspace(op::load<Op>(o.attr), in, out);
  constexpr auto each = static_cast<i64>(sizeof(computed<Scalar>));
  i64 const library = (whole_scratch<Device, Scalar>(op::load<Op>(o.attr), in, out) + each - 1) / each;
  return (library > own ? library : own) + product_scratch<Device, Scalar, Op> / each;
}
/// What changes from step to step, where something does.
template <class Scalar, class Op>
exec::step_arguments team_arguments(op::any_op const& o, exec::step_state const& s) {
  if constexpr (requires(Op const& op) { exec::team_kernel<Scalar, Op>::arguments(op, s); })
    return exec::team_kernel<Scalar, Op>::arguments(op::load<Op>(o.attr), s);
  else return {};
}
template <class Scalar, class Op>
inline constexpr bool has_arguments = requires(Op const& op, exec::step_state const& s) {
  exec::team_kernel<Scalar, Op>::arguments(op, s);
};
template <class Scalar, class Device> struct team_entry {
  u64 id = 0;
  void (*run)(Device const&, exec::kernel_call const&) = nullptr;
  i64 (*workspace)(op::any_op const&, shapes, shapes) = nullptr;
  exec::step_arguments (*arguments)(op::any_op const&, exec::step_state const&) = nullptr;
  bool has_arguments = false;
  template <class Op> static constexpr team_entry make() {
    return {core::name_hash(Op::name), &run_on_teams<Scalar, Device, Op>, &team_workspace<Scalar, Device, Op>,
            &team_arguments<Scalar, Op>, detail::has_arguments<Scalar, Op>};
  }
};
/// States of attention in parts hold largest scores and sums beside values: no kernel keeps those in full.
template <class Op>
inline constexpr bool keeps_states = exec::detail::one_of<Op, op::attention_parts, op::attention_parts_grad,
                                                          op::softmax_merge,
                                            op::softmax_merge_grad, op::attention_finish,
                                                op::attention_finish_grad>;
template <class Narrow, class Device> struct narrow_entry : team_entry<computed<Narrow>, Device> {
  template <class Op> static constexpr narrow_entry make() {
    if constexpr (keeps_states<Op>) return {{core::name_hash(Op::name), nullptr, nullptr}};
    else
      return {{core::name_hash(Op::name), &run_on_teams<Narrow, Device, Op>,
               &team_workspace<Narrow, Device, Op>}};
  }
};
}  // namespace detail

namespace compute {

/// Models `compute_policy` (exec/device/concepts.hpp) on any `team_device` (exec/teams/kernels/device.hpp),
/// also for operators of programs whose tasks are fused (op/kinds/fused.hpp): every operator's kernel is
/// written once, as functors over indices, and runs on an accelerator as it runs here. Scalar: float, double,
/// prime_field, or a type with scalar_traits.
/// Own: your operators, each with a `compute_teams`, see exec/teams/kernels/kernel.hpp.
/// Narrow: bfloat16 where Scalar is float and graphs may hold bf16 (ir/mixed_precision.hpp): stored as such,
/// computed with and summed up in float. Not for operators of yours nor for attention in parts.
/// Results depend on the call and the device's lanes alone: sums have a fixed order. Scratch: as
/// compute::eigen for products and convolutions; besides, losses take a scalar per row, gradients of gamma
/// two, sums of columns and norms' gradients in one pass some hundred rows of partial sums.
template <class Scalar, class Device = exec::host_teams<>, class Own = op::op_set<>, class Narrow = Scalar>
  requires(exec::team_device<Device, Scalar> &&
           (std::same_as<Narrow, Scalar> || (std::same_as<Scalar, float> && std::same_as<Narrow, bfloat16>)))
class teams {
  Device device_;
  using entry = detail::team_entry<Scalar, Device>;
  static entry const* find(u64 id);
  static entry const* find_narrow(u64 id);
  /// The kernel for these operands: bf16 among them asks for the narrow one.
  template <class Types> static entry const* find(u64 id, Types const* x, int n, Types const* y, int m) {
    if constexpr (!std::same_as<Narrow, Scalar>) {
      bool narrow = false;
      for (int k = 0; k < n; ++k) narrow = narrow || is_narrow(x[k].type);
      for (int k = 0; k < m; ++k) narrow = narrow || is_narrow(y[k].type);
      if (narrow) return find_narrow(id);
    }
    return find(id);
  }

 public:
  using scalar_type = Scalar;
  using narrow_type = Narrow;
  static std::string name() {
    std::string r = "teams<" + std::string(exec::scalar_traits<Scalar>::name);
    if constexpr (!std::same_as<Narrow, Scalar>) r += std::string(", ") + exec::scalar_traits<Narrow>::name;
    if constexpr (requires { std::string(Device::name()); }) r += ", " + std::string(Device::name());
    return r + ">";
  }
  using memory = typename Device::memory;
  teams() = default;
  explicit teams(Device d) : device_(std::move(d)) {}
  explicit teams(exec::device_place at) requires std::constructible_from<Device, exec::device_place>
      : device_(at) {}

  memory device_memory() const { return device_.device_memory(); }
  Device const& device() const { return device_; }
  static bool supports(op::any_op const& o) { return o.op && find(o.op->id); }
  /// On bf16 operands or results.
  static bool supports_narrow(op::any_op const& o) requires(!std::same_as<Narrow, Scalar>) {
    return o.op && find_narrow(o.op->id);
  }
  /// Is a forward pass of attention to leave its log-sum-exps for the gradient? Where the device's library
  /// begins with them.
  /// o: the one or the other, with log-sum-exps.
  static bool keeps_lse(op::any_op const& o, bool narrow) {
    using exec::detail::does_whole;
    using packed = packed_attention_grad_from_lse;
    if (o.is<packed_attention_with_lse>() || o.is<packed>())
      return narrow ? exec::detail::does_whole<Device, Narrow, packed>
          : exec::detail::does_whole<Device, Scalar, packed>;
    return narrow ? exec::detail::does_whole<Device, Narrow, op::attention_grad_from_lse>
                  : exec::detail::does_whole<Device, Scalar, op::attention_grad_from_lse>;
  }
  /// Does the kernel take something that changes from step to step? Then what it is for a step, see
  /// kernel_call::arguments. Precondition: supports(o).
  static bool changes_by_step(op::any_op const& o) { return find(o.op->id)->has_arguments; }
  static exec::step_arguments arguments_of(op::any_op const& o, exec::step_state const& s) {
    return find(o.op->id)->arguments(o, s);
  }
  /// Scratch scalars for these local shapes; 0 without a kernel for them.
  static i64 workspace(op::any_op const& o, shapes in, shapes out) {
    auto const* e = find(o.op->id, in.begin(), in.n, out.begin(), out.n);
    return e ? e->workspace(o, in, out) : 0;
  }
  /// Throws `error` for operators without a kernel, and for indices in the data that are out of range, of
  /// this or of an earlier call.
  void run(exec::kernel_call const& c) const {
    auto const* e = find(c.op->op->id, c.in_block, c.inputs, c.out_block, c.outputs);
    if (!e)
      throw error("no kernel for operator " + std::string(c.op->op->name), "compute::teams",
                  "add it to the policy's op_set");
    e->run(device_, c);
    device_.settle();
  }
};

// Not inline, as those of compute::eigen: so `extern template class tensorpar::compute::teams<float>;`
// compiles all kernels once.
template <class Scalar, class Device, class Own, class Narrow>
  requires(exec::team_device<Device, Scalar> &&
           (std::same_as<Narrow, Scalar> || (std::same_as<Scalar, float> && std::same_as<Narrow, bfloat16>)))
auto teams<Scalar, Device, Own, Narrow>::find(u64 id) -> entry const* {
  static constexpr auto table = exec::detail::table_of_all<entry, Own, op::task_operators>();
  return table.find(id);
}
template <class Scalar, class Device, class Own, class Narrow>
  requires(exec::team_device<Device, Scalar> &&
           (std::same_as<Narrow, Scalar> || (std::same_as<Scalar, float> && std::same_as<Narrow, bfloat16>)))
auto teams<Scalar, Device, Own, Narrow>::find_narrow(u64 id) -> entry const* {
  static constexpr auto table =
      exec::detail::table_of_all<detail::narrow_entry<Narrow, Device>, op::op_set<>, op::task_operators>();
  auto const* e = table.find(id);
  return e && e->run ? e : nullptr;
}

}  // namespace compute

}  // namespace tensorpar
