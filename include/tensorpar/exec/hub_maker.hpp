// tensorpar/exec/hub_maker.hpp - what makes the hub of an executor: its communicator's own way, or the caller's
#pragma once
#include <concepts>
#include <tensorpar/core/error.hpp>
#include <tensorpar/plan/plan.hpp>
#include <tensorpar/plan/program_hash.hpp>

namespace tensorpar {

/// A callable that makes the hub of an executor's ranks: `make(ranks)` is a `typename Comm::hub`, returned by value, for hubs are neither
/// copied nor moved. It is called once.
template <class Make, class Comm>
concept hub_maker = requires(Make const& make, int ranks) {
  { make(ranks) } -> std::same_as<typename Comm::hub>;
};

namespace detail {

/// As the communicator does it by itself.
template <class Comm> struct own_hub {
  typename Comm::hub operator()(int ranks) const { return typename Comm::hub(ranks); }
};
/// The program, if it is the one that the plan was sealed with (or it was not).
inline program as_sealed(program q, plan const& p) {
  if (p.tasks && task_hash(q) != p.tasks)
    throw error("the plan's program has other tasks than those it was sealed with", "executor",
                "the plan and the graph as they were sealed");
  return q;
}

}  // namespace detail
}  // namespace tensorpar
