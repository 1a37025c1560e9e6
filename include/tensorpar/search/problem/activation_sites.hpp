// tensorpar/search/problem/activation_sites.hpp - operators that a function of their result may be computed
// with
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/computation_graph.hpp>
#include <tensorpar/rewrite/rule.hpp>

namespace tensorpar::search {

/// Does this rule make one operator of an operator and the function of its result (op/kinds/activated.hpp),
/// attributes as they are? Where that is allowed and worth it follows from the shardings of the two, so the
/// search decides it with these and not graph by graph. O(1).
inline bool activates(rewrite::rule const& r) {
  if (r.source.nodes.size() != 2 || r.target.nodes.size() != 1 || r.source.outputs.size() != 1 ||
      !r.conditions.empty())
    return false;
  rewrite::pattern_node const &op = r.source.nodes[0], &f = r.source.nodes[1], &both = r.target.nodes[0];
  if (!op.op || !f.op || !both.op || !both.op->first) return false;
  return both.op->first->id == op.op->id && both.op->then->id == f.op->id &&
         f.in == std::vector<rewrite::pattern_value>{{0, 0}} && both.in == op.in && both.attr == op.attr &&
         r.source.outputs[0] == rewrite::pattern_value{1, 0} &&
             r.target.outputs[0] == rewrite::pattern_value{0, 0};
}

/// An operator, the function that alone reads its result, and the rule that makes one of them.
struct activation_site {
  int op, function;
  op::any_op both;
  rewrite::rule const* by;
};

namespace detail {
/// May the rule's operator be this one? Its attributes are numbers, or parameters that stand for any.
inline bool fits_attributes(rewrite::pattern_node const& n, op::any_op const& o) {
  for (std::size_t i = 0; i < n.attr.size(); ++i) {
    rewrite::rule_term const& t = n.attr[i];
    if (!t.open && t.factors.empty() && t.number != o.attr[i]) return false;
    if (t.factors.size() > 1 || (!t.factors.empty() && t.number != 1)) return false;
  }
  return true;
}
}  // namespace detail

/// The sites among the first `nodes` operators, ascending; each operator and each function is in one at most.
/// Precondition: `rules` activate. `beyond`: outputs that stand for readers elsewhere are not counted where
/// this says so, by name.
/// O(nodes * operands + functions * rules).
template <class Beyond>
std::vector<activation_site> activation_sites(computation_graph const& g, int nodes,
                                              std::vector<rewrite::rule const*> const& rules,
                                                  Beyond const& beyond) {
  std::vector<activation_site> r;
  if (rules.empty()) return r;
  std::vector<int> readers(g.values.size(), 0);
  for (int v = 0; v < nodes; ++v) for (int x : g.node(v).in) ++readers[idx(x)];
  for (graph_port const& o : g.outputs) if (!beyond(o.name)) ++readers[idx(o.value)];
  for (int u = 0; u < nodes; ++u) {
    graph_node const& f = g.node(u);
    if (f.in.size() != 1) continue;
    int const x = f.in[0], v = g.value(x).producer;
    if (v < 0 || readers[idx(x)] != 1 || g.node(v).out.size() != 1) continue;
    for (rewrite::rule const* one : rules) {
      rewrite::pattern_node const &op = one->source.nodes[0], &then = one->source.nodes[1],
                         &both = one->target.nodes[0];
      graph_node const& n = g.node(v);
      if (then.op->id != f.op.op->id || op.op->id != n.op.op->id || op.in.size() != n.in.size()) continue;
      if (!detail::fits_attributes(op, n.op)) continue;
      activation_site s{v, u, n.op, one};
      s.both.op = both.op;
      r.push_back(s);
      break;
    }
  }
  return r;
}
inline std::vector<activation_site> activation_sites(computation_graph const& g, int nodes,
                                                     std::vector<rewrite::rule const*> const& rules) {
  return activation_sites(g, nodes, rules, [](std::string const&) { return false; });
}

/// Those of the rules that activate.
inline std::vector<rewrite::rule const*> activating(std::vector<rewrite::rule> const& rules) {
  std::vector<rewrite::rule const*> r;
  for (rewrite::rule const& x : rules) if (activates(x)) r.push_back(&x);
  return r;
}

}  // namespace tensorpar::search
