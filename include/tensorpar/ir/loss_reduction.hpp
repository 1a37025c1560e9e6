// tensorpar/ir/loss_reduction.hpp - is a loss the mean of its samples' terms, or their sum?
#pragma once
#include <algorithm>
#include <cmath>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/sample_runs.hpp>
#include <tensorpar/op/kinds/axis_sum.hpp>
#include <tensorpar/op/kinds/contraction.hpp>
#include <tensorpar/op/kinds/head_repeat.hpp>
#include <tensorpar/op/kinds/loss.hpp>
#include <tensorpar/op/kinds/parallel.hpp>

namespace tensorpar::ir {

/// What a graph says of a value that has no samples of its own.
enum class reduced_samples : int {
  none,       // it is the same for all samples: parameters, and what is made of them
  mean,       // a mean over samples, or such a mean plus what is the same for all
  sum,        // a sum over samples
  scaled,     // a sum over samples times a number that may be one over how many there are
  mixed,      // a sum over samples, plus a mean or what is the same for all
  other       // no linear function of any of these: of a micro-batch as it is
};

namespace detail {

struct reduced_value {
  bool samples = false;                // it has some of its own
  reduced_samples kind = reduced_samples::none;
  double factor = 1;                   // of a sum, or of the samples that it will be of
  bool scaled = false;
  friend bool operator==(reduced_value const&, reduced_value const&) = default;
};

/// Linear functions of one operand, of each element or of all.
inline bool is_linear(op::any_op const& o) {
  return o.is<scale>() || o.is<reshape>() || o.is<flatten>() || o.is<merge_axes>() || o.is<split_axis>() ||
         o.is<tensorpar::transpose>() || o.is<slice_axis>() || o.is<split_axes>() || o.is<op::sum_axis>() ||
         o.is<op::repeat_axis>() || o.is<op::sum_heads>() || o.is<op::repeat_heads>() || is_parallel(*o.op);
}
/// Linear functions of each of two operands.
inline bool is_bilinear(op::any_op const& o) { return o.is<mul>() || o.is<contraction>() || o.is<matmul>(); }

inline reduced_value added(reduced_value const& a, reduced_value const& b) {
  using enum reduced_samples;
  if (a.kind == other || b.kind == other) return {false, other};
  if (a.kind == b.kind)
    return a.kind != sum || a == b ? a : reduced_value{false, sum, a.factor, a.scaled || b.scaled};
  bool const summed = a.kind == sum || b.kind == sum || a.kind == mixed || b.kind == mixed;
  return {false, summed ? mixed : mean};
}

/// Of a value that has no samples, made by node v of such values.
inline reduced_value combined(computation_graph const& g, graph_node const& n,
                              std::vector<reduced_value> const& of) {
  using enum reduced_samples;
  auto const at = [&](std::size_t k) -> reduced_value const& {
    return of[idx(n.in[k])];
  };
  auto const times = [](reduced_value r, double factor) {
    if (r.kind == sum) r.factor *= factor, r.scaled = true;
    return r;
  };
  bool any = false;
  for (std::size_t k = 0; k < n.in.size(); ++k) any = any || at(k).kind != none;
  if (!any) return {};
  if (n.op.is<scale>()) return times(at(0), n.op.as<scale>().factor);
  if (is_linear(n.op)) return at(0);
  if (n.op.is<add>() || n.op.is<concat>()) {
    reduced_value r = at(0);
    for (std::size_t k = 1; k < n.in.size(); ++k) r = added(r, at(k));
    return r;
  }
  if (!is_bilinear(n.op) || n.in.size() != 2 || (at(0).kind != none && at(1).kind != none))
    return {false, other};
  std::size_t const k = at(0).kind != none ? 0 : 1;
  node_id const by = g.value(n.in[1 - k]).producer;
  return by >= 0 && g.node(by).op.is<constant>() ? times(at(k), g.node(by).op.as<constant>().value) : at(k);
}

/// What linear operators did to the samples that node v reads: a factor of one summand counts.
inline reduced_value factor_so_far(computation_graph const& g, graph_node const& n,
                                   std::vector<reduced_value> const& of) {
  reduced_value r;
  std::size_t with = 0, at = 0;
  for (std::size_t k = 0; k < n.in.size(); ++k)
    if (reduced_value const& x = of[idx(n.in[k])];
        x.samples && (++with == 1 || x.scaled))
      r = x, at = k;
  auto const times = [&](double factor) { r.factor *= factor, r.scaled = true; };
  if (n.op.is<scale>()) {
    times(n.op.as<scale>().factor);
  } else if (is_bilinear(n.op) && n.in.size() == 2 && with == 1) {
    node_id const by = g.value(n.in[1 - at]).producer;
    if (by >= 0 && g.node(by).op.is<constant>()) times(g.node(by).op.as<constant>().value);
  } else if (is_bilinear(n.op) && with == 2) {
    reduced_value const &a = of[idx(n.in[0])],
                        &b = of[idx(n.in[1])];
    r.factor = a.factor * b.factor, r.scaled = a.scaled || b.scaled;
  } else if (!is_bilinear(n.op) && !is_linear(n.op) && !n.op.is<add>() && !n.op.is<concat>()) {
    return {};
  }
  return {false, reduced_samples::none, r.factor, r.scaled};
}

}  // namespace detail

/// How the scalar `loss` of a forward graph depends on its samples, as far as operators tell: losses of the
/// library are means, sums and contractions over the axis of samples are sums. `runs`: sample_runs(g).
/// O(nodes).
inline reduced_samples reduction_in(computation_graph const& g, value_id loss,
                                    std::vector<sample_run> const& runs) {
  using namespace detail;
  using enum reduced_samples;
  std::vector<detail::reduced_value> of(g.values.size());
  i64 samples = 0;                                               // a multiple of those of a micro-batch
  for (std::size_t x = 0; x < g.values.size(); ++x)
    if (graph_value const& v = g.values[x]; v.role == value_role::input && v.type.rank > 0) {
      of[x].samples = true;
      samples = detail::gcd(samples, v.type.d[0].n);
    }
  for (graph_node const& n : g.nodes) {
    bool from_samples = false, from_reduced = false;
    for (value_id x : n.in) {
      from_samples = from_samples || of[idx(x)].samples;
      from_reduced = from_reduced || of[idx(x)].kind != none;
    }
    for (value_id y : n.out) {
      detail::reduced_value& r = of[idx(y)];
      bool const mean_of = n.op.is<cross_entropy>() || n.op.is<mean_squared_error>();
      if (!from_samples)
        r = mean_of && from_reduced ? detail::reduced_value{false, other} : detail::combined(g, n, of);
      else if (runs[idx(y)].run != sample_run::none)
        r = detail::factor_so_far(g, n, of), r.samples = true;
      else if (from_reduced) r.kind = other;
      else if (n.op.is<op::sum_axis>() || detail::is_bilinear(n.op)) r = detail::factor_so_far(g, n, of),
          r.kind = sum;
      else r.kind = mean_of ? mean : other;
    }
  }
  detail::reduced_value const& r = of[idx(loss)];
  if (r.samples) return other;
  if (r.kind != sum || !r.scaled) return r.kind;
  // a whole number of samples, or of elements of them
  double const count = std::round(1 / r.factor);
  bool const one_over = std::abs(1 / r.factor - count) < 1e-6 * std::abs(count) && std::abs(count) < 0x1p53;
  return one_over && static_cast<i64>(count) % std::max<i64>(1, samples) == 0 ? scaled : sum;
}

/// What the loss of a step in so many micro-batches is of theirs: `mean` or `sum`, never `as_graph`. Equal
/// for every number of them, where samples do not meet within an operator (batch normalisation) and the graph
/// or the caller says which. A loss that is neither (a root of a mean) is taken for a mean, of its
/// micro-batches. `same_graph`: graphs of other micro-batches have the same attributes (`rebatch`), so that a
/// factor is no count of samples. Throws `error` for several micro-batches where no answer makes the step
/// that of one: a sum plus a mean; an answer that the graph contradicts; a factor that may be one over the
/// samples, where nobody says which.
/// O(nodes * loops).
inline loss_reduction reduction_of(computation_graph const& g, value_id loss, loss_reduction asked,
                                   bool several, bool same_graph, std::vector<sample_run> const& runs) {
  using enum reduced_samples;
  if (!several && asked != loss_reduction::as_graph) return asked;
  reduced_samples kind = reduction_in(g, loss, runs);
  if (kind == scaled && same_graph) kind = sum;
  auto const refuse = [&](char const* what, char const* valid) {
    std::string name;
    for (graph_port const& o : g.outputs) if (o.value == loss) name = "'" + o.name + "' ";
    throw error("the loss " + name + what, "several micro-batches", valid);
  };
  if (several) {
    if (kind == mixed)
      refuse("adds a sum over samples to what is no such sum",
             "a mean or a sum over samples, or one micro-batch");
    if (kind == mean && asked == loss_reduction::sum)
      refuse("is a mean over samples, not a sum", "reduction = mean, or as_graph");
    if (kind == sum && asked == loss_reduction::mean)
      refuse("is a sum over samples, not a mean", "reduction = sum, or as_graph");
    if (kind == scaled && asked == loss_reduction::as_graph)
      refuse("is a sum over samples times what may be one over their number",
             "reduction = mean or sum in the options");
  }
  if (asked != loss_reduction::as_graph) return asked;
  return kind == sum ? loss_reduction::sum : loss_reduction::mean;
}
inline loss_reduction reduction_of(computation_graph const& g, value_id loss, loss_reduction asked,
                                   bool several, bool same_graph = false) {
  return reduction_of(g, loss, asked, several, same_graph, sample_runs(g));
}

}  // namespace tensorpar::ir
