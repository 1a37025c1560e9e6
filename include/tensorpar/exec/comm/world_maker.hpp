// tensorpar/exec/comm/world_maker.hpp - what makes the world of an executor, and maybe its policies: their
// own ways, or the caller's
#pragma once
#include <concepts>

namespace tensorpar::exec {

/// A callable that makes the world of an executor's ranks: `make(ranks)` is a `typename Comm::world`,
/// returned by value, for worlds are neither copied nor moved. It is called once.
/// Optional: `make.policy(place)`, the compute policy of one device of this process (a device_place,
/// exec/device/memory.hpp), called once for each: for policies that are handed streams, buffers or libraries
/// of the caller's.
template <class Make, class Comm>
concept world_maker = requires(Make const& make, int ranks) {
  { make(ranks) } -> std::same_as<typename Comm::world>;
};

namespace detail {

/// As the communicator does it by itself.
template <class Comm> struct own_world {
  typename Comm::world operator()(int ranks) const { return typename Comm::world(ranks); }
};

}  // namespace detail
}  // namespace tensorpar::exec
