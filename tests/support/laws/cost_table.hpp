// tests/support/laws/cost_table.hpp - a cost model by decree: whole seconds from a stable hash, so that sums are exact
#pragma once
#include <tensorpar/cost/concepts.hpp>

namespace laws {

/// Whole seconds from 0 to 15 that depend on everything that is asked. Not monotone; made for tests of what uses costs.
struct decreed {
  tensorpar::u64 seed = 1;
  double seconds(tensorpar::cost::compute_query const& q) const {
    tensorpar::core::hasher h;
    h.add(seed).add(q.op.hash()).add(q.device.flops);
    for (tensorpar::shape const& s : q.out) h.add(s.elements());
    return static_cast<double>(h.value() % 16);
  }
  double seconds(tensorpar::cost::reshard_query const& q) const {
    tensorpar::core::hasher h;
    h.add(seed).add(q.step.kind).add(q.step.group_size()).add(q.logical.elements());
    return static_cast<double>(h.value() % 16);
  }
};
static_assert(tensorpar::cost::cost_model<decreed>);

}  // namespace laws
