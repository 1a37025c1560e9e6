// tensorpar/ir/running_statistics.hpp - batch norm's statistics as outputs, to be gathered, and as
// parameters, for
// evaluation
#pragma once
#include <algorithm>
#include <set>
#include <string>
#include <tensorpar/ir/computation_graph.hpp>
#include <tensorpar/op/kinds/batch_norm.hpp>
#include <vector>

namespace tensorpar::ir {

namespace detail {

/// Statistics that a batch norm takes: their value, which a `channel_moments` makes, and "<normalize's
/// name>.moments".
struct taken_moments {
  value_id value;
  std::string name;
};
/// All of the forward pass; where several operators take the same ones, by the name of the first.
inline std::vector<taken_moments> moments_taken(computation_graph const& g) {
  std::vector<taken_moments> r;
  std::set<value_id> seen;
  for (graph_node const& n : g.nodes) {
    if (!n.op.is<op::normalize>() || n.phase != step_phase::forward || n.recomputed) continue;
    node_id const p = g.value(n.in[1]).producer;
    if (p >= 0 && g.node(p).op.is<op::channel_moments>() && seen.insert(n.in[1]).second)
      r.push_back({n.in[1], n.name.empty() ? n.name : n.name + ".moments"});
  }
  return r;
}
/// Throws `error` for a name that is empty, or taken: by another of them, or by `others`.
inline void require_own_names(std::vector<taken_moments> const& all, std::set<std::string> others,
                              char const* where) {
  for (taken_moments const& m : all) {
    if (m.name.empty())
      throw error("a normalize without a name", where, "a name for every batch norm's normalize");
    if (!others.insert(m.name).second)
      throw error("the name '" + m.name + "' is taken", where,
                  "other names for normalize operators, or for what is called so");
  }
}
/// How many elements the sums of such a value run over: those of a channel.
inline i64 summed_elements(computation_graph const& g, value_id moments) {
  shape const& x = g.type(g.node(g.value(moments).producer).in[0]);
  return x.elements() / x.d[1].n;
}
/// The parameter that a normalize takes its statistics from, as `with_running_statistics` makes it, or -1.
inline value_id running_statistics_of(computation_graph const& g, graph_node const& n) {
  if (!n.op.is<op::normalize>()) return -1;
  node_id const p = g.value(n.in[1]).producer;
  if (p < 0 || !g.node(p).op.is<scale>()) return -1;
  value_id const x = g.node(p).in[0];
  return g.value(x).role == value_role::parameter ? x : value_id();
}

}  // namespace detail

/// The same graph, of which statistics are outputs too: [2, c], sums of x and of x * x over the batch, under
/// the name of the operator that takes them, "<normalize's name>.moments". Weights, nodes and values keep
/// their numbers, so a plan of the one is a plan of the other. Throws `error` for a normalize without a name,
/// and for a name that an output has. Precondition: a forward graph. O(nodes * log).
inline computation_graph with_moments_as_outputs(computation_graph g) {
  std::vector<detail::taken_moments> const all = detail::moments_taken(g);
  std::set<std::string> outputs;
  for (graph_port const& o : g.outputs) outputs.insert(o.name);
  detail::require_own_names(all, std::move(outputs), "with_moments_as_outputs");
  for (detail::taken_moments const& m : all) g.add_output(m.name, m.value);
  return g;
}

/// The same graph with statistics that are kept: parameters "<normalize's name>.moments", [2, c], means of x
/// and of x * x, in place of what `channel_moments` makes of the batch. They are of any batch, and multiplied
/// by what this one's channels count, so that `normalize` finds sums. So a sample's result depends on no
/// other sample (exec/cpu/common/batch_moments.hpp gathers the means). Nodes and values keep their numbers.
/// For evaluation: a training step would take the statistics for weights. A graph that is to run in bf16 goes
/// through `mixed_precision` first, for statistics stay in f32; one of another batch through `rebatch` first,
/// which refuses the result.
/// Throws `error` for a normalize without a name, and for a name that an input, a parameter or a state has.
/// Precondition: a forward graph, its symbols bound. O(nodes * log). Law: with the means of one batch, it
/// computes of that batch what g does, exactly over exact scalars.
inline computation_graph with_running_statistics(computation_graph g) {
  std::vector<detail::taken_moments> const all = detail::moments_taken(g);
  std::set<std::string> values;
  for (graph_value const& v : g.values) if (v.producer < 0) values.insert(v.name);
  detail::require_own_names(all, std::move(values), "with_running_statistics");
  for (detail::taken_moments const& m : all) {
    op::any_op times(scale{static_cast<double>(detail::summed_elements(g, m.value))});
    value_id const kept = g.add_parameter(m.name, g.type(m.value), op::init::zeros);
    graph_node& n = g.node(g.value(m.value).producer);
    times.at = n.op.at;
    n.op = times;
    n.in = {kept};
  }
  return g;
}

/// The names of outputs that are a batch's statistics, taken by a batch norm, as `with_moments_as_outputs`
/// made them; also in a step that was made of its graph, which may have several values of a name, one for
/// each micro-batch.
inline std::vector<std::string> moments_in(computation_graph const& g) {
  std::vector<std::string> r;
  std::set<value_id> taken;
  for (graph_node const& n : g.nodes) if (n.op.is<op::normalize>()) taken.insert(n.in[1]);
  for (graph_port const& o : g.outputs) {
    node_id const p = g.value(o.value).producer;
    bool const own = p >= 0 && g.node(p).op.is<op::channel_moments>() && taken.contains(o.value) &&
                     o.name.ends_with(".moments");
    if (own && std::find(r.begin(), r.end(), o.name) == r.end()) r.push_back(o.name);
  }
  return r;
}

}  // namespace tensorpar::ir
