// tensorpar/exec/hub_maker.hpp - what makes the hub of an executor, and maybe its policies: their own ways, or the caller's
#pragma once
#include <concepts>

namespace tensorpar {

/// A callable that makes the hub of an executor's ranks: `make(ranks)` is a `typename Comm::hub`, returned by value, for hubs are neither
/// copied nor moved. It is called once.
/// Optional: `make.policy(place)`, the compute policy of one device of this process (a device_place, exec/memory.hpp), called once for
/// each: for policies that are handed streams, buffers or libraries of the caller's.
template <class Make, class Comm>
concept hub_maker = requires(Make const& make, int ranks) {
  { make(ranks) } -> std::same_as<typename Comm::hub>;
};

namespace detail {

/// As the communicator does it by itself.
template <class Comm> struct own_hub {
  typename Comm::hub operator()(int ranks) const { return typename Comm::hub(ranks); }
};

}  // namespace detail
}  // namespace tensorpar
