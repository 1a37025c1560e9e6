// tensorpar/exec/device/memory.hpp - where a device's numbers lie: all that the host does with memory that it
// may not be able to read
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/device/boxes.hpp>
#include <vector>

namespace tensorpar::exec {

/// One device's memory; a handle that may be copied.
///
/// Valid expressions. m is a constant value, n a number of bytes. p is an address in its memory, h one of the
/// host. box, from and to are blocks. src and dst are addresses in its memory, of float, std::int32_t or the
/// policy's scalar.
///  - `m.allocate(n)`                            std::byte*: n > 0 zero bytes, aligned to 64; throws `error`
///    where there is no such room
///  - `m.release(p, n)`                          gives back what `allocate(n)` gave
///  - `m.write(p, h, n)`                         the host's bytes go there, and h may change at once; n may
///    be 0, p and h null
///  - `m.read(h, p, n)`                          and come back, and are at h when the call returns; n may be
///    0 here too
///  - `m.move_box(box, from, src, to, dst, adds)`  as `copy_box`, or where `adds` as `add_box`, inside the
///    memory (exec/device/boxes.hpp)
///  - `m.wait()`                                 returns once everything asked for on this device is done
/// Laws (tests/support/laws/memory.hpp): bytes that were written are read again, at any offset. `move_box` of
/// host_memory's scalars gives the bits that host_memory gives. Calls take effect in their order, also among
/// the kernels of the compute policy that uses the memory.
/// Optional: `m.range(name)`, an object that lives while a task of that name is asked for, for profilers.
/// Outside of these calls, of kernels and of communicators of the same memory, only offsets are added to an
/// address. Minimal definition: all six. Models: host_memory.
template <class M>
concept memory_policy = std::copyable<M> &&
    requires(M const& m, std::byte* p, void* h, void const* from_host, i64 n, op::tensor_block const& box,
             float const* src, float* dst, std::int32_t const* isrc, std::int32_t* idst) {
  { m.allocate(n) } -> std::same_as<std::byte*>;
  m.release(p, n);
  m.write(p, from_host, n);
  m.read(h, p, n);
  m.move_box(box, box, src, box, dst, true);
  m.move_box(box, box, isrc, box, idst, false);
  m.wait();
};

/// A memory whose device works by itself, through queues. The work of one queue is done in its order, perhaps
/// after the call has returned. Queues wait for each other only where marks tell them to. A `memory_policy`
/// value is one queue.
///
/// Valid expressions (m is a constant value; k a mark, which may be moved):
///  - `m.beside()`        the same memory by a new queue; it ends with the last copy of what this returns,
///    when it is done
///  - `m.make_mark()`     `M::mark`, which is reached
///  - `m.set(k)`          from now on k is reached once everything asked for in this queue so far is done
///  - `m.follow(k)`       what is asked for in this queue from now on waits until k is reached, as k is set
///    now
///  - `m.reached(k)`      bool, at once
///  - `m.make_timed_mark()`  a mark that knows when it was reached
///  - `m.seconds(j, k)`   from when j was reached until k was: timed marks, in whatever queues of the device
///
/// `m.write` waits for no earlier work of the queue, which may be stuck.
/// Law (tests/support/laws/queues.hpp): what was asked for before a `set` is seen by all that follows the
/// mark, in whatever queue. Minimal definition: all seven. Models: cuda_memory.
template <class M>
concept queued_memory = memory_policy<M> && requires(M const& m, typename M::mark& k) {
  { m.beside() } -> std::same_as<M>;
  { m.make_mark() } -> std::same_as<typename M::mark>;
  m.set(k);
  m.follow(k);
  { m.reached(k) } -> std::same_as<bool>;
  { m.make_timed_mark() } -> std::same_as<typename M::mark>;
  { m.seconds(k, k) } -> std::same_as<double>;
};

/// The memory of this process.
struct host_memory {
  std::byte* allocate(i64 n) const {
    auto* p = static_cast<std::byte*>(::operator new(idx(n), std::align_val_t{64}));
    std::memset(p, 0, idx(n));
    return p;
  }
  void release(std::byte* p, i64) const { ::operator delete(p, std::align_val_t{64}); }
  void write(void* p, void const* h, i64 n) const {
    std::copy_n(static_cast<std::byte const*>(h), n, static_cast<std::byte*>(p));
  }
  void read(void* h, void const* p, i64 n) const { write(h, p, n); }
  template <class S>
  void move_box(op::tensor_block const& box, op::tensor_block const& from, S const* src,
                op::tensor_block const& to, S* dst, bool adds) const {
    if (adds) add_box(box, from, src, to, dst);
    else copy_box(box, from, src, to, dst);
  }
  void wait() const {}
};

/// Which device a compute policy is to run: its number in the plan, and its place among the devices of this
/// process.
struct device_place {
  int device = 0, nth = 0;
};

namespace detail {
template <class Policy> struct memory_named { using type = host_memory; };
template <class Policy>
  requires requires { typename Policy::memory; }
struct memory_named<Policy> { using type = typename Policy::memory; };
template <class Policy> using memory_of = typename memory_named<Policy>::type;

/// What lives while a task is asked for, if the memory wants that.
template <class Memory> auto range_in(Memory const& m, char const* name) {
  if constexpr (requires { m.range(name); }) return m.range(name);
  else return 0;
}
/// A policy for one device.
template <class Policy> Policy made_for(device_place at) {
  if constexpr (std::constructible_from<Policy, device_place>) return Policy(at);
  else return Policy{};
}
/// By device; those of other processes have none. `seats`: parallel to `local`. By make.policy(place) where
/// that is.
template <class Policy, class Make>
std::vector<std::optional<Policy>> policies_for(std::vector<int> const& local, std::vector<int> const& seats,
                                                int devices, Make const& make) {
  std::vector<std::optional<Policy>> r(idx(devices));
  for (std::size_t k = 0; k < local.size(); ++k) {
    auto& policy = r[idx(local[k])];
    device_place const at{local[k], seats[k]};
    if constexpr (requires { { make.policy(at) } -> std::same_as<Policy>; }) policy.emplace(make.policy(at));
    else policy.emplace(made_for<Policy>(at));
  }
  return r;
}
/// The memory of a policy.
template <class Policy> memory_of<Policy> memory_in(Policy const& p) {
  if constexpr (requires { typename Policy::memory; }) return p.device_memory();
  else return {};
}
/// One for each local device, in their order.
template <class Policy>
std::vector<memory_of<Policy>> memories_of(std::vector<std::optional<Policy>> const& all,
                                           std::vector<int> const& local) {
  std::vector<memory_of<Policy>> r;
  for (int d : local) r.push_back(memory_in(*all[idx(d)]));
  return r;
}
/// An endpoint for one lane of a device, which is handed the device's memory if it takes it.
template <class Comm, class World, class Memory>
void join(std::optional<Comm>& end, World& world, int device, int lane, Memory const& memory) {
  if constexpr (std::constructible_from<Comm, World&, int, Memory const&>) end.emplace(world, device, memory);
  else if constexpr (std::constructible_from<Comm, World&, int, int>) end.emplace(world, device, lane);
  else end.emplace(world, device);
}
}  // namespace detail

/// Never defined: its name is the message. The communicator cannot read the memory that the compute policy
/// computes in.
template <class Comm, class Memory> struct COMMUNICATOR_OF_ANOTHER_MEMORY;

/// Both say the same `memory`, which is host_memory where one says nothing.
template <class Compute, class Comm> constexpr bool require_same_memory() {
  using memory = detail::memory_of<Compute>;
  if constexpr (!std::same_as<memory, detail::memory_of<Comm>>)
    return sizeof(COMMUNICATOR_OF_ANOTHER_MEMORY<Comm, memory>) > 0;
  else return true;
}

}  // namespace tensorpar::exec
