// tensorpar/exec/device/concepts.hpp - what an executor is built from: something that computes and something
// that communicates
#pragma once
#include <concepts>
#include <tensorpar/exec/device/kernel.hpp>
#include <tensorpar/exec/device/scalar.hpp>

namespace tensorpar::exec {

/// Runs one operator on one device's blocks.
///
/// Valid expressions (Policy is the type, p a constant value, o an any_op, in/out the local shapes, c a
/// kernel_call):
///  - `Policy::scalar_type`             what real tensors are made of
///  - `Policy::supports(o)`             bool: is there a kernel?
///  - `Policy::workspace(o, in, out)`   i64: scratch scalars that a call with these local shapes needs
///  - `p.run(c)`                        computes the results' blocks; may throw `error`
/// Laws (tests/support/laws/compute.hpp): equal calls give equal bits. Let a loop of the operator's iteration
/// space be split into parts. If the result has the loop, the parts' results side by side are the whole's; if
/// not, their sum is. This holds exactly over an exact scalar, up to rounding otherwise.
/// `run` may be called from several threads at once. Complexity: run O(the operator's work), supports O(1).
/// Optional:
///  - `Policy::memory`, a `memory_policy`, and `p.device_memory()` of it: where the policy computes, if not
///    in the host's memory. `run` may then return before its work is done, as long as later calls for this
///    device find it done.
///  - A constructor that takes a `device_place`: a policy is made for every device; without it, by default.
///  - `Policy::keeps_lse(op, narrow)`: do fused programs have this operator? It is an attention that leaves
///    log-sum-exps, or a gradient that starts from them (op/attention/lse.hpp).
///  - `Policy::name()`: the name under which plans count its scratch (exec/device/scratch_of.hpp). Equal
///    names, equal scratch.
/// Minimal definition: all four. Models: compute::eigen.
template <class Policy>
concept compute_policy = requires(Policy const& p, op::any_op const& o, shapes s, kernel_call const& c) {
  typename Policy::scalar_type;
  { Policy::supports(o) } -> std::same_as<bool>;
  { Policy::workspace(o, s, s) } -> std::same_as<i64>;
  { p.run(c) } -> std::same_as<void>;
};

/// One device's end of a network: knows who it is, and forms groups.
///
/// Valid expressions (c is an endpoint; members a sorted list of distinct ranks that contains c's own):
///  - `c.rank()`, `c.size()`       ints, 0 <= rank < size
///  - `c.make_group(members)`      `Comm::group`: a handle that may be kept and used for any number of
///    operations
///  - `g.size()`, `g.index()`      members of the group, and this one's place among them
/// Semantics of all operations: they block. Every member of a group calls the same operations on it in the
/// same order. An operation that some member never joins, or joins with other arguments, ends in an exception
/// on every member. Buffers must outlive the operation on *every* member.
/// Optional: `static constexpr bool overlaps = true`. Operations may then run on another thread than the
/// device's computing, which goes on meanwhile. One thread of a rank communicates; the world's `fail` may be
/// called from the other.
/// Or `static constexpr bool queued = true`. Operations are then work in a queue of the device, `c.queue()`,
/// a `queued_memory` (exec/device/memory.hpp), and calls return at once:
///  - `c.prepare(traffic)` says who will talk to whom (exec/comm/traffic.hpp). All ranks call it before
///    anything else.
///  - `c.drain()` waits for all operations and throws the failure of one. `c.wait_for(q)` does so for the
///    work that another queue of the device has been given so far.
///  - `c.at_task(i)` names the task whose operations follow; `c.stuck_at()` the one that took too long.
///  - `c.abandon()` ends the work that is under way.
///  - `c.messages(traffic)`, of a communicator that keeps to the order of messages of `prepare`: between
///    steps, which messages come from now on, when only some tasks are run.
/// Beside either of them: `static constexpr bool lanes = true`. A rank's operations of different lanes may go
/// on at the same time; a group, and both sides of a message, are always in the same lane:
///  - beside `overlaps`: `world.open_lanes(n)` before there are endpoints, one for each lane of a rank,
///    `Comm(world, rank, lane)`, by a thread of its own.
///  - beside `queued`: `c.open_lanes(n)` before `prepare`; then `c.queue(lane)`, and `c.in_lane(lane)` says
///    where the operations that follow belong.
/// Minimal definition: this and the collectives a plan needs. Models: comm::threads, comm::mpi,
/// comm::virtual_ranks, comm::nccl.
template <class Comm>
concept communicator = requires(Comm& c, Comm const& cc, typename Comm::group const& g,
                                core::slice<int> members) {
  { cc.rank() } -> std::same_as<int>;
  { cc.size() } -> std::same_as<int>;
  { c.make_group(members) } -> std::same_as<typename Comm::group>;
  { g.size() } -> std::same_as<int>;
  { g.index() } -> std::same_as<int>;
};

/// `c.all_reduce(g, in, out, n)`: out[i] on every member = sum over members j, in group order, of in_j[i],
/// for 0 <= i < n; the same bits on all. in == out is allowed.
template <class Comm, class Element>
concept has_all_reduce = communicator<Comm> &&
    requires(Comm& c, typename Comm::group const& g, Element const* in, Element* out, i64 n) {
  c.all_reduce(g, in, out, n);
};

/// `c.reduce_scatter(g, in, out, n)`: in holds g.size() chunks of n; out[i] on member m = sum over members j,
/// in group order, of chunk m of in_j. Law: all_reduce == all_gather after reduce_scatter. out may be chunk m
/// of in.
template <class Comm, class Element>
concept has_reduce_scatter = communicator<Comm> &&
    requires(Comm& c, typename Comm::group const& g, Element const* in, Element* out, i64 n) {
  c.reduce_scatter(g, in, out, n);
};

/// `c.all_gather(g, in, out, n)`: chunk j of out on every member = the n elements of in_j. in may be chunk m
/// of out.
template <class Comm, class Element>
concept has_all_gather = communicator<Comm> &&
    requires(Comm& c, typename Comm::group const& g, Element const* in, Element* out, i64 n) {
  c.all_gather(g, in, out, n);
};

/// `c.all_to_all(g, in, out, n)`: chunk j of out on member m = chunk m of in_j; chunks of n. Law: twice is
/// the identity. in and out do not overlap.
template <class Comm, class Element>
concept has_all_to_all = communicator<Comm> &&
    requires(Comm& c, typename Comm::group const& g, Element const* in, Element* out, i64 n) {
  c.all_to_all(g, in, out, n);
};

/// `c.broadcast(g, root, data, n)`: data on every member = data on member number `root` of the group.
template <class Comm, class Element>
concept has_broadcast = communicator<Comm> &&
    requires(Comm& c, typename Comm::group const& g, Element* data, i64 n) {
  c.broadcast(g, 0, data, n);
};

/// `c.barrier(g)`: returns once every member has called it.
template <class Comm>
concept has_barrier = communicator<Comm> && requires(Comm& c, typename Comm::group const& g) {
  c.barrier(g);
};

/// `c.send(to, tag, data, n)` and `c.receive(from, tag, data, n)`: ranks, not group indices. Messages of one
/// sender, receiver and tag arrive in order. A send does not wait for its receive, so any order of sends
/// before receives is safe.
template <class Comm, class Element>
concept has_send_receive = communicator<Comm> && requires(Comm& c, Element const* from, Element* to, i64 n) {
  c.send(0, 0, from, n);
  c.receive(0, 0, to, n);
};

/// Everything that a plan may ask for.
template <class Comm, class Element>
concept full_communicator = has_all_reduce<Comm, Element> && has_reduce_scatter<Comm, Element> &&
    has_all_gather<Comm, Element> && has_all_to_all<Comm, Element> && has_broadcast<Comm, Element> &&
    has_barrier<Comm> && has_send_receive<Comm, Element>;

/// Words for the errors below.
namespace missing {
struct scalar_type;
struct supports;
struct workspace;
struct run;
struct rank_size_or_groups;
struct all_reduce;
struct reduce_scatter;
struct all_gather;
struct all_to_all;
struct broadcast;
struct barrier;
struct send_or_receive;
}  // namespace missing
/// Never defined: its name is the message. `Policy` has not the member of this page that `Missing` names.
template <class Missing, class Policy> struct COMPUTE_POLICY_LACKS;

/// What takes a compute policy asks this first: what is missing is then the first thing that a compiler says.
template <class Policy> constexpr bool require_compute_policy() {
  if constexpr (!requires { typename Policy::scalar_type; })
    return sizeof(COMPUTE_POLICY_LACKS<missing::scalar_type, Policy>) > 0;
  else if constexpr (!has_scalar_traits<typename Policy::scalar_type>)
    return sizeof(NOT_A_SCALAR<typename Policy::scalar_type>) > 0;
  else if constexpr (!requires(op::any_op const& o) { { Policy::supports(o) } -> std::same_as<bool>; })
    return sizeof(COMPUTE_POLICY_LACKS<missing::supports, Policy>) > 0;
  else if constexpr (!requires(op::any_op const& o, shapes s) {
                       { Policy::workspace(o, s, s) } -> std::same_as<i64>;
                     })
    return sizeof(COMPUTE_POLICY_LACKS<missing::workspace, Policy>) > 0;
  else if constexpr (!compute_policy<Policy>) return sizeof(COMPUTE_POLICY_LACKS<missing::run, Policy>) > 0;
  else return true;
}

/// Never defined: its name is the message. `Comm` has not the member of this page that `Missing` names.
template <class Missing, class Comm> struct COMMUNICATOR_LACKS;

/// What takes a communicator asks this first: what is missing is then the first thing that a compiler says.
template <class Comm, class Element> constexpr bool require_communicator() {
  if constexpr (!communicator<Comm>)
    return sizeof(COMMUNICATOR_LACKS<missing::rank_size_or_groups, Comm>) > 0;
  else if constexpr (!has_all_reduce<Comm, Element>)
    return sizeof(COMMUNICATOR_LACKS<missing::all_reduce, Comm>) > 0;
  else if constexpr (!has_reduce_scatter<Comm, Element>)
    return sizeof(COMMUNICATOR_LACKS<missing::reduce_scatter, Comm>) > 0;
  else if constexpr (!has_all_gather<Comm, Element>)
    return sizeof(COMMUNICATOR_LACKS<missing::all_gather, Comm>) > 0;
  else if constexpr (!has_all_to_all<Comm, Element>)
    return sizeof(COMMUNICATOR_LACKS<missing::all_to_all, Comm>) > 0;
  else if constexpr (!has_broadcast<Comm, Element>)
    return sizeof(COMMUNICATOR_LACKS<missing::broadcast, Comm>) > 0;
  else if constexpr (!has_barrier<Comm>) return sizeof(COMMUNICATOR_LACKS<missing::barrier, Comm>) > 0;
  else if constexpr (!has_send_receive<Comm, Element>)
    return sizeof(COMMUNICATOR_LACKS<missing::send_or_receive, Comm>) > 0;
  else return full_communicator<Comm, Element>;
}

}  // namespace tensorpar::exec
