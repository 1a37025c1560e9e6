// tensorpar/exec/comm/paced.hpp - a compute policy that takes as long as a model says: to compare schedules
// on any machine
#pragma once
#include <chrono>
#include <string>
#include <tensorpar/exec/device/concepts.hpp>
#include <thread>
#include <vector>

namespace tensorpar::compute {

/// `Policy`, but every operator takes at least `Seconds(op, in, out)` (shapes of this device's parts): after
/// the work is done the device sleeps. So many devices on few cores behave like devices of their own, and a
/// measured step can be compared with a simulated one whose cost model says the same. Precondition of a fair
/// comparison: the work itself takes less than its price on the cores at hand.
template <exec::compute_policy Policy, double (*Seconds)(op::any_op const&, shapes, shapes)> struct paced {
  using scalar_type = typename Policy::scalar_type;
  Policy policy;

  static std::string name() requires requires { std::string(Policy::name()); } { return Policy::name(); }
  static bool supports(op::any_op const& o) { return Policy::supports(o); }
  static i64 workspace(op::any_op const& o, shapes in, shapes out) { return Policy::workspace(o, in, out); }
  void run(exec::kernel_call const& c) const {
    auto const start = std::chrono::steady_clock::now();
    policy.run(c);
    std::vector<shape> in, out;
    for (int k = 0; k < c.inputs; ++k) in.push_back(c.in_block[k].local_shape());
    for (int k = 0; k < c.outputs; ++k) out.push_back(c.out_block[k].local_shape());
    double const s = Seconds(*c.op, {in.data(), c.inputs}, {out.data(), c.outputs});
    std::this_thread::sleep_until(start + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                              std::chrono::duration<double>(s)));
  }
};

}  // namespace tensorpar::compute
