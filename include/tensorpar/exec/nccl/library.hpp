// tensorpar/exec/nccl/library.hpp - what comm::nccl asks of NCCL, as a concept: a test may stand in for it
// without a GPU
#pragma once
#include <concepts>
#include <optional>
#include <string>
#include <tensorpar/core/config.hpp>
#include <type_traits>

namespace tensorpar::exec {

/// The calls of NCCL that are used, all static, by a queue of memory Q (exec/device/memory.hpp). They return
/// a status at once; the work is done in the queue's order.
///
/// Valid expressions (c, child communicators; id an L::id; s an L::status; t an L::element; q a queue; p, o
/// addresses; n elements):
///  - `L::comm`, `L::id`, `L::status`, `L::element`  a handle, L::comm{} at first; bytes that name a world;
///    what calls say; a type's code
///  - `L::ok`, `L::in_progress`, `L::words(s)`       of status; a std::string
///  - `L::bytes`, `L::code_of<E>()`                  the code of bytes; that of E, if sums of E are known, or
///    nothing
///  - `L::make_id(id)`                               an id for a new world, in one process
///  - `L::make_id_at(id, address, port)`             the same id in every process; rank 0 will listen there
///  - `L::init(c, ranks, id, rank)`                  begins to join; all ranks must
///  - `L::split(c, color, key, message, child)`      begins to make communicators of equal colours, none for
///                                                   -1; all of c must; `message`: two ranks, for sends from
///                                                   key 0 to key 1 alone; child is there when c is ready
///                                                   again
///  - `L::state(c, s)`                               s = in_progress, ok or how c has failed
///  - `L::finalize(c)`, `L::destroy(c)`, `L::abort(c)`  begins to end (all ranks must); ends what is final;
///    ends at once, with operations
///  - `L::all_reduce(p, o, n, t, c, q)`, `L::reduce_scatter(...)`, `L::all_gather(...)`, `L::broadcast(p, o,
///    n, t, root, c, q)`
///  - `L::send(p, n, t, peer, c, q)`, `L::receive(o, n, t, peer, c, q)`: may wait for each other; between
///    `L::group_start()` and `L::group_end()` they are one operation
/// Minimal definition: all. Optional: shrinking_library. Models: nccl_library (exec/nccl/nccl.cuh).
template <class L, class Q>
concept collective_library = std::is_trivially_copyable_v<typename L::id> &&
    std::equality_comparable<typename L::comm> &&
    requires(typename L::comm& c, typename L::id& id, typename L::status& s, typename L::element t,
             Q const& q, void const* p, void* o, std::size_t n, std::string const& address) {
  { L::ok } -> std::convertible_to<typename L::status>;
  { L::in_progress } -> std::convertible_to<typename L::status>;
  { L::words(s) } -> std::convertible_to<std::string>;
  { L::bytes } -> std::convertible_to<typename L::element>;
  { L::template code_of<float>() } -> std::same_as<std::optional<typename L::element>>;
  { L::make_id(id) } -> std::same_as<typename L::status>;
  { L::make_id_at(id, address, 1) } -> std::same_as<typename L::status>;
  { L::init(c, 1, id, 0) } -> std::same_as<typename L::status>;
  { L::split(c, 0, 0, false, c) } -> std::same_as<typename L::status>;
  { L::state(c, s) } -> std::same_as<typename L::status>;
  { L::finalize(c) } -> std::same_as<typename L::status>;
  { L::destroy(c) } -> std::same_as<typename L::status>;
  { L::abort(c) } -> std::same_as<typename L::status>;
  { L::all_reduce(p, o, n, t, c, q) } -> std::same_as<typename L::status>;
  { L::reduce_scatter(p, o, n, t, c, q) } -> std::same_as<typename L::status>;
  { L::all_gather(p, o, n, t, c, q) } -> std::same_as<typename L::status>;
  { L::broadcast(p, o, n, t, 0, c, q) } -> std::same_as<typename L::status>;
  { L::send(p, n, t, 0, c, q) } -> std::same_as<typename L::status>;
  { L::receive(o, n, t, 0, c, q) } -> std::same_as<typename L::status>;
  { L::group_start() } -> std::same_as<typename L::status>;
  { L::group_end() } -> std::same_as<typename L::status>;
};

/// A library whose worlds outlive the loss of a rank.
///
/// Valid expressions (c, child communicators; lost: n ranks of c, ascending):
///  - `L::revoke(c)`                  begins to stop this rank's operations of c, for good and without
///                                    waiting for anybody; when c is ready it may be split, shrunk and
///                                    destroyed, never finalized; it may be aborted at any time
///  - `L::shrink(c, lost, n, child)`  begins to make a communicator of all other ranks, in their order; they
///                                    all must, and say the same; child is there when c is ready again
/// Minimal definition: both; where one is missing, a failure aborts the world.
template <class L>
concept shrinking_library = requires(typename L::comm& c, int const* lost) {
  { L::revoke(c) } -> std::same_as<typename L::status>;
  { L::shrink(c, lost, 1, c) } -> std::same_as<typename L::status>;
};

}  // namespace tensorpar::exec
