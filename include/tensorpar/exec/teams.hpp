// tensorpar/exec/teams.hpp - the compute policy that runs every operator by teams of lanes, on whatever device has them
#pragma once
#include <tensorpar/exec/kernel_table.hpp>
#include <tensorpar/exec/teams/attention.hpp>
#include <tensorpar/exec/teams/attention_parts.hpp>
#include <tensorpar/exec/teams/batch_norm.hpp>
#include <tensorpar/exec/teams/contraction.hpp>
#include <tensorpar/exec/teams/convolution.hpp>
#include <tensorpar/exec/teams/embedding.hpp>
#include <tensorpar/exec/teams/host.hpp>
#include <tensorpar/exec/teams/loss.hpp>
#include <tensorpar/exec/teams/pointwise.hpp>
#include <tensorpar/exec/teams/pooling.hpp>
#include <tensorpar/exec/teams/rows.hpp>
#include <tensorpar/exec/teams/softmax_states.hpp>
#include <tensorpar/exec/teams/structural.hpp>
#include <tensorpar/exec/teams/update.hpp>

namespace tensorpar {

namespace detail {
template <class Scalar, class Device, class Op> void run_on_teams(Device const& d, kernel_call const& c) {
  team_kernel<Scalar, Op>::run(d, c, load<Op>(c.op->attr));
}
template <class Scalar, class Op> i64 team_workspace(any_op const& o, shapes in, shapes out) {
  if constexpr (requires(Op const& op) { team_kernel<Scalar, Op>::workspace(op, in, out); })
    return team_kernel<Scalar, Op>::workspace(load<Op>(o.attr), in, out);
  else return 0;
}
template <class Scalar, class Device> struct team_entry {
  u64 id = 0;
  void (*run)(Device const&, kernel_call const&) = nullptr;
  i64 (*workspace)(any_op const&, shapes, shapes) = nullptr;
  template <class Op> static constexpr team_entry make() {
    return {name_hash(Op::name), &run_on_teams<Scalar, Device, Op>, &team_workspace<Scalar, Op>};
  }
};
}  // namespace detail

namespace compute {

/// Models `compute_policy` (exec/concepts.hpp) on any `team_device` (exec/teams/device.hpp): every operator's kernel is written once, as
/// functors over indices, and runs on an accelerator as it runs here. Scalar: float, double, prime_field, or a type with scalar_traits.
/// Own: your operators, each with a `compute_teams`, see exec/teams/kernel.hpp.
/// Results depend on the call and the device's lanes alone: sums have a fixed order. Scratch: as compute::eigen for products and
/// convolutions; besides, losses take a scalar per row, and gradients of norms two.
template <class Scalar, class Device = host_teams<>, class Own = op_set<>>
  requires team_device<Device, Scalar>
class teams {
  Device device_;
  static detail::team_entry<Scalar, Device> const* find(u64 id) {
    static constexpr auto table = detail::table_of_all<detail::team_entry<Scalar, Device>, Own>();
    return table.find(id);
  }

 public:
  using scalar_type = Scalar;
  using memory = typename Device::memory;
  teams() = default;
  explicit teams(Device d) : device_(std::move(d)) {}
  explicit teams(device_place at) requires std::constructible_from<Device, device_place> : device_(at) {}

  memory device_memory() const { return device_.device_memory(); }
  Device const& device() const { return device_; }
  static bool supports(any_op const& o) { return o.op && find(o.op->id); }
  /// Scratch scalars for these local shapes. Precondition: supports(o).
  static i64 workspace(any_op const& o, shapes in, shapes out) { return find(o.op->id)->workspace(o, in, out); }
  /// Throws `error` for operators without a kernel, and for indices in the data that are out of range, of this or of an earlier call.
  void run(kernel_call const& c) const {
    auto const* e = find(c.op->op->id);
    if (!e) throw error("no kernel for operator " + std::string(c.op->op->name), "compute::teams", "add it to the policy's op_set");
    e->run(device_, c);
    device_.settle();
  }
};

}  // namespace compute

}  // namespace tensorpar
