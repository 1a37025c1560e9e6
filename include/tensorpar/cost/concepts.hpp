// tensorpar/cost/concepts.hpp - what a cost model is: seconds of an operator's part, seconds of a reshard's
// step
#pragma once
#include <concepts>
#include <tensorpar/cost/groups.hpp>
#include <type_traits>

namespace tensorpar::cost {

/// One operator on one device: the extents of the parts that this device reads (activations, then weights)
/// and writes.
/// Refers to its arguments: valid while they live, as an argument of a call does.
struct compute_query {
  op::any_op const& op;
  shapes in, out;
  i64 scalar_bytes;            // of a real number
  device_kind const& device;
};

/// Numbers that are read off a layout: devices, copies aside parts, partial sums, the parts of each axis, and
/// the last device.
struct layout_extents {
  i64 size = 1, parts = 1, sums = 1, last = 0, degree[shape::max_rank] = {1, 1, 1, 1, 1, 1};
  layout_extents() = default;
  explicit layout_extents(ir::layout const& l) : last(l.start) {
    for (ir::layout_axis const& x : l.axes) {
      size *= x.degree;
      last += (x.degree - 1) * x.stride;
      if (x.kind == ir::part_kind::partial) sums *= x.degree;
      if (x.kind != ir::part_kind::shard) continue;
      parts *= x.degree;
      degree[x.dim] *= x.degree;
    }
  }
};
static_assert(shape::max_rank == 6);

/// One step of a reshard on a machine, for its slowest group. `logical` is the whole tensor's shape;
/// `step.before` and `step.after` say who holds which part of it.
struct reshard_query {
  ir::reshard_step const& step;
  shape const& logical;
  i64 scalar_bytes;
  machine const& on;
  // where the asker knows it already:
  std::vector<group_levels> const* groups = nullptr;                          // `ways_to_lie(step, on)`
  // of `step.before` and `step.after`, both or neither
  layout_extents const *before = nullptr, *after = nullptr;
};

/// Bytes of a tensor's elements: integers as they are, real numbers in the size that is trained with.
constexpr double bytes_of(shape const& s, i64 scalar_bytes) {
  return static_cast<double>(s.elements()) * static_cast<double>(tensorpar::bytes_of(s.type, scalar_bytes));
}

/// Bytes of one device's part, without a copy of the shape.
inline double part_bytes(ir::layout const& l, shape const& s, i64 scalar_bytes) {
  i64 parts = 1;
  for (ir::layout_axis const& a : l.axes) if (a.kind == ir::part_kind::shard) parts *= a.degree;
  return bytes_of(s, scalar_bytes) / static_cast<double>(parts);
}

template <class M>
concept prices_compute = requires(M const& m, compute_query const& q) {
  { m.seconds(q) } -> std::same_as<double>;
};
template <class M>
concept prices_moves = requires(M const& m, reshard_query const& q) {
  { m.seconds(q) } -> std::same_as<double>;
};

/// A cost model prices what a program is made of.
///
/// Valid expressions (m a constant M):
///  - `m.seconds(compute_query const&)` -> double   time of one operator on one device, launch included
///  - `m.seconds(reshard_query const&)`    -> double   time of one step of a reshard: from the moment when
///    all members of the slowest group are there until the last one has its part
///
/// Semantics: both are estimates of the same clock, in seconds, of work that runs alone on its lane.
/// Laws (tests/support/laws/cost_model.hpp):
///  - finite and not negative (cost/ask.hpp: searches and simulations throw `error` for another answer);
///  - deterministic: equal queries, equal answers (a model may remember, but not change its mind), whether or
///    not the asker of a reshard adds what it knows of groups and layouts;
///  - a `keep` step (a local part of a copy) costs at most as much as an operator that reads and writes the
///    whole part before it;
///  - the same step on a tensor with more elements costs at least as much. A model from measurements may
///    break this one by the noise of what it measured (profiled), and a model that fits curves by their
///    error; such a model says so.
/// Complexity expected: a search asks some 1e5 times per plan, so about a microsecond. Slower models are
/// wrapped in `cached`. Minimal definition: these two functions. Thread safety: like a container, constant
/// calls on one object may run at once unless the model says otherwise. Models that remember (profiled,
/// cached) say so: one copy per thread. A search asks from the calling thread alone, however many threads it
/// has.
/// Models: `analytical`, `profiled<M>`, `cached<M>`, `scaled<M>`, `calibrated<M>`, any user type.
template <class M>
concept cost_model = prices_compute<M> && prices_moves<M>;

// Words for the error below: no such member, one that is not const, or one that returns something else than
// double.
struct seconds_of_a_compute_query;
struct const_seconds_of_a_compute_query;
struct double_seconds_of_a_compute_query;
struct seconds_of_a_move_query;
struct const_seconds_of_a_move_query;
struct double_seconds_of_a_move_query;
/// Never defined: its name is the message. `Model` has no member `double seconds(...) const` for the query
/// that `Missing` names.
template <class Missing, class Model> struct COST_MODEL_LACKS;

namespace detail {
template <class M, class Query> concept asked_const = requires(M const& m, Query const& q) { m.seconds(q); };
template <class M, class Query> concept asked = requires(M& m, Query const& q) { m.seconds(q); };
template <class M, class Query, class Absent, class NotConst, class NotDouble>
using missing_seconds = std::conditional_t<asked_const<M, Query>, NotDouble,
                                           std::conditional_t<asked<M, Query>, NotConst, Absent>>;
}  // namespace detail

/// What M lacks to be a cost model, as a type that is never defined; std::true_type if nothing. Functions
/// that take a cost model have an overload for what is none, which returns it: a call is one error, in the
/// caller's line, that says what is missing. Class templates ask `static_assert(cost_model_lack<M>::value)`
/// first.
template <class M>
using cost_model_lack = std::conditional_t<
    !prices_compute<M>,
    COST_MODEL_LACKS<
        detail::missing_seconds<M, compute_query, seconds_of_a_compute_query,
                                const_seconds_of_a_compute_query, double_seconds_of_a_compute_query>,
        M>,
    std::conditional_t<!prices_moves<M>,
                       COST_MODEL_LACKS<detail::missing_seconds<M, reshard_query, seconds_of_a_move_query,
                                                                const_seconds_of_a_move_query,
                                                                double_seconds_of_a_move_query>,
                                        M>,
                       std::true_type>>;

}  // namespace tensorpar::cost
