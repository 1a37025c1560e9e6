// tensorpar/ir/rebatch.hpp - the same graph on a larger batch: types inferred anew, ids and weights unchanged
#pragma once
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/iteration_space.hpp>
#include <tensorpar/ir/running_statistics.hpp>
#include <vector>

namespace tensorpar::ir {

namespace detail {

/// Follows the samples of a grown graph: `axis[x]` is the axis of value x along which they lie, -1: none.
/// Node v reads samples one after the other if a loop that may be split runs over the axis, or a result keeps
/// the operand's shape (batch normalisation). Returns why not, or nothing.
inline std::string follow_samples(computation_graph const& g, node_id v, i64 factor, std::vector<int>& axis) {
  graph_node const& n = g.node(v);
  iteration_space const space = space_of(g, v);
  auto put = [&](value_id x, int d) {
    int& at = axis[idx(x)];
    bool const fits = at < 0 || at == d;
    at = d;
    return fits;
  };
  for (int k = 0; k < n.activations; ++k) {
    value_id const x = n.in[idx(k)];
    int const d = axis[idx(x)];
    if (d < 0) continue;
    bool looped = false;
    for (node_loop const& l : space.loops) {
      if (l.in[idx(k)] != d || l.units % factor != 0) continue;
      looped = true;
      for (std::size_t p = 0; p < n.out.size(); ++p)
        if (l.out[p] >= 0 && !put(n.out[p], l.out[p])) return "its result has samples along two axes";
    }
    bool kept = false;
    for (value_id y : n.out)
      if (!looped && g.type(y) == g.type(x)) kept = put(y, d) || kept;
    if (!looped && !kept)
      return "it does not take samples one after the other along axis " + std::to_string(d) + " of operand " +
             std::to_string(k);
  }
  return "";
}

}  // namespace detail

/// A forward graph whose inputs have `factor` times as many entries along axis 0, their samples. Values and
/// nodes keep their ids; parameters keep their shapes. Throws `error` where an operator's attributes fix the
/// batch. That is so if its shape rule refuses, its weights would change, or it cuts, joins or merges samples
/// as no loop does. It is so, too, if its statistics are kept for this batch (ir/running_statistics.hpp).
/// Also throws where a value would have more than 2^48 elements.
/// Precondition: g is a forward graph. O(nodes). Law: rebatch(g, 1) == g; rebatch(rebatch(g, a), b) ==
/// rebatch(g, a * b).
inline computation_graph rebatch(computation_graph g, i64 factor) {
  if (factor < 1)
    throw error("a batch " + std::to_string(factor) + " times as large", "rebatch", "a factor of 1 or more");
  if (factor == 1) return g;
  auto too_large = [](shape const& s) {
    double n = 1;
    for (int d = 0; d < s.rank; ++d) n *= static_cast<double>(s.d[d].n);
    return n > 0x1p48;
  };
  std::vector<int> axis(g.values.size(), -1);
  for (std::size_t x = 0; x < g.values.size(); ++x) {
    graph_value& v = g.values[x];
    if (v.role != value_role::input || v.type.rank == 0) continue;
    axis[x] = 0;
    if (static_cast<double>(v.type.d[0].n) * static_cast<double>(factor) <= 0x1p48) v.type.d[0].n *= factor;
    else
      throw error("a batch " + std::to_string(factor) + " times as large", "rebatch: input '" + v.name + "'",
                  "at most 2^48 elements");
    if (too_large(v.type))
      throw error("input '" + v.name + "' of shape " + op::spell(v.type), "rebatch", "at most 2^48 elements");
  }
  for (node_id v = 0; v < g.node_count(); ++v) {
    graph_node const& n = g.node(v);
    auto refuse = [&](std::string const& why) {
      throw error("operator " + op::spell(n.op) + (n.name.empty() ? "" : " '" + n.name + "'") +
                      " cannot run on " + std::to_string(factor) + " times its batch: " + why,
                  "rebatch", "operators whose attributes leave the batch open");
    };
    if (detail::running_statistics_of(g, n) >= 0)
      refuse("statistics are kept for this batch; rebatch comes before with_running_statistics");
    core::pool<shape> in;
    for (value_id x : n.in) in.push(g.type(x));
    op::inference const r = op::infer_results(n.op, in.view(), n.activations);
    if (!r.ok()) refuse(std::string(r.rule) + ": " + op::spell(r.out[0]) + ", " + op::spell(r.out[1]));
    op::weight_list const w = n.op.op->weights(n.op.attr, {in.begin(), n.activations});
    for (int k = 0; k < w.n && n.activations + k < static_cast<int>(n.in.size()); ++k) {
      shape const &now = w.w[k].type, &had = g.type(n.in[idx(n.activations + k)]);
      bool same = now.rank == had.rank;
      for (int d = 0; same && d < now.rank; ++d) same = now.d[d].n == had.d[d].n;
      if (!same) refuse("its weights depend on the batch");
    }
    for (int k = 0; k < r.n; ++k) {
      if (too_large(r.out[k]))
        refuse("a result of shape " + op::spell(r.out[k]) + " has more than 2^48 elements");
      g.value(n.out[idx(k)]).type = r.out[k];
    }
    if (std::string const why = detail::follow_samples(g, v, factor, axis); !why.empty()) refuse(why);
  }
  return g;
}

}  // namespace tensorpar::ir
