// tensorpar/ir/sample_runs.hpp - where the samples of a micro-batch stand in every value of a forward graph
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/iteration_space.hpp>
#include <tensorpar/op/kinds/structural.hpp>

namespace tensorpar::ir {

/// The elements of a value, row by row, are runs of `run` elements, each with all samples of the micro-batch:
/// those of several micro-batches stand side by side, run by run. Element i of micro-batch j of m is number
/// (i / run * m + j) * run + i % run of the batch. run = elements: samples come first. run = 0: a value
/// without samples, the same in every micro-batch. run = -1: it cannot be told.
struct sample_run {
  static constexpr i64 none = 0, unknown = -1;
  i64 run = none;
  friend bool operator==(sample_run const&, sample_run const&) = default;
};

namespace detail {

/// Along which axis of a value samples lie: `together` neighbours of that axis are of one run.
struct sample_axis {
  sample_run where;
  int axis = -1;                       // -1: one of several, which no axis tells apart; the run is the same
  i64 together = 0;
  friend bool operator==(sample_axis const&, sample_axis const&) = default;
};

inline i64 elements_behind(shape const& s, int axis) {
  i64 n = 1;
  for (int d = axis + 1; d < s.rank; ++d) n *= s.d[d].n;
  return n;
}
inline sample_axis samples_along(shape const& s, int axis, i64 together) {
  return {{together * elements_behind(s, axis)}, axis, together};
}
inline constexpr sample_axis no_telling{{sample_run::unknown}, -1, 0};

/// Of an operator that keeps the row-major order of elements and all axes but those between the first `ahead`
/// and the last `behind`. `one`: a micro-batch is one sample, so that an axis around it may be what grows
/// with a batch.
inline sample_axis samples_in_order(sample_axis const& from, shape const& s, shape const& to, int ahead,
                                    int behind, bool one) {
  if (from.axis < ahead) return from;
  if (s.rank - from.axis <= behind) return samples_along(to, to.rank - (s.rank - from.axis), from.together);
  sample_axis found{from.where, -1, 0};
  // axes with several neighbours in a run, and with one
  int several = 0, added = 0, outside = 0;
  for (int d = ahead; d < to.rank - behind; ++d) {
    i64 const each = elements_behind(to, d), together = from.where.run / each;
    if (from.where.run % each != 0 || together < 1 || to.d[d].n % together != 0) continue;
    if (together > 1) ++several;
    else if (to.d[d].n == 1) ++added;
    else ++outside;
    if (together > 1 || several == 0) found.axis = d, found.together = together;
  }
  if (several + added + (several > 0 && !one && from.together > 1 ? 0 : outside) != 1)
    found.axis = -1, found.together = 0;
  return found;
}

/// Loops take the samples of operand k along, each to at most one axis of the result.
inline sample_axis samples_by_loops(computation_graph const& g, node_id v, iteration_space const& space,
                                    std::size_t k, std::size_t p, sample_axis const& from) {
  graph_node const& n = g.node(v);
  shape const &s = g.type(n.in[k]), &to = g.type(n.out[p]);
  bool same = same_extents(s, to);                             // every element stays where it is
  for (node_loop const& l : space.loops) same = same && (l.in[k] < 0 || l.in[k] == l.out[p]);
  if (same) return from;
  if (from.axis < 0) return no_telling;
  sample_axis r{};
  bool found = false;
  for (node_loop const& l : space.loops) {
    if (l.in[k] != from.axis) continue;
    // no part of it alone: what becomes of its elements it does not say
    bool const whole = l.letter >= 'A' && l.letter <= 'Z';
    if (found || (l.out[p] < 0 && whole) || (l.out[p] >= 0 && to.d[l.out[p]].n != s.d[from.axis].n))
      return no_telling;
    found = true;
    if (l.out[p] >= 0) r = samples_along(to, l.out[p], from.together);
  }
  return found ? r : no_telling;
}

inline sample_axis samples_of_result(computation_graph const& g, node_id v, iteration_space const& space,
                                     std::size_t k, std::size_t p, sample_axis const& from, bool one) {
  graph_node const& n = g.node(v);
  shape const &s = g.type(n.in[k]), &to = g.type(n.out[p]);
  auto const at = [&](i64 axis) { return tensorpar::detail::axis_number(axis, s.rank); };
  if (n.op.is<reshape>())
    return samples_in_order(from, s, to, static_cast<int>(n.op.as<reshape>().keep), 0, one);
  if (n.op.is<flatten>())
    return samples_in_order(from, s, to, static_cast<int>(n.op.as<flatten>().keep), 0, one);
  if (n.op.is<merge_axes>()) {
    int const first = at(n.op.as<merge_axes>().first);
    return samples_in_order(from, s, to, first, s.rank - first - 2, one);
  }
  if (n.op.is<split_axis>()) {
    int const which = at(n.op.as<split_axis>().which);
    return samples_in_order(from, s, to, which, s.rank - which - 1, one);
  }
  return samples_by_loops(g, v, space, k, p, from);
}

}  // namespace detail

/// By value of a forward graph, whose inputs have samples along axis 0 (scalars have none). Followed through
/// loops, and through operators that cut, join or reorder axes; unknown where two axes of a value have
/// samples, or an operator does not say. O(nodes * loops).
inline std::vector<sample_run> sample_runs(computation_graph const& g) {
  using namespace detail;
  std::vector<detail::sample_axis> at(g.values.size());
  i64 samples = 0;                                               // a multiple of them
  for (std::size_t x = 0; x < g.values.size(); ++x)
    if (graph_value const& v = g.values[x]; v.role == value_role::input && v.type.rank > 0) {
      at[x] = detail::samples_along(v.type, 0, v.type.d[0].n);
      samples = detail::gcd(samples, v.type.d[0].n);
    }
  for (node_id v = 0; v < g.node_count(); ++v) {
    graph_node const& n = g.node(v);
    bool any = false;
    for (value_id x : n.in) any = any || at[idx(x)].where.run != sample_run::none;
    if (!any) continue;
    iteration_space const space = space_of(g, v);
    for (std::size_t p = 0; p < n.out.size(); ++p) {
      detail::sample_axis& to = at[idx(n.out[p])];
      for (std::size_t k = 0; k < n.in.size(); ++k) {
        detail::sample_axis const from = at[idx(n.in[k])];
        if (from.where.run == sample_run::none || to == detail::no_telling) continue;
        detail::sample_axis const here =
            from == detail::no_telling ? detail::no_telling
                : detail::samples_of_result(g, v, space, k, p, from, samples == 1);
        if (here.where.run == sample_run::none) continue;
        bool const open = to.axis < 0 || here.axis < 0 || to.axis == here.axis;
        if (to.where.run == sample_run::none || (to.where == here.where && open && to.axis < 0)) to = here;
        else if (to.where != here.where || !open) to = detail::no_telling;
      }
    }
  }
  std::vector<sample_run> r;
  for (detail::sample_axis const& a : at) r.push_back(a.where);
  return r;
}

}  // namespace tensorpar::ir
