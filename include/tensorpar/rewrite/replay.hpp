// tensorpar/rewrite/replay.hpp - applies recorded rules again, and looks at every step with its own eyes
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/rewrite/apply.hpp>
#include <tensorpar/rewrite/record.hpp>

namespace tensorpar::rewrite {

/// What is wrong with a match that somebody claims: an operator, an attribute, a wire or a use that is not as
/// the rule's source says. Empty: nothing, the rule's source stands there. Any numbers may be claimed.
/// Searches nothing: O(source * operands + uses).
inline std::string match_fault(rule const& r, rule_match const& m, open_graph const& g) {
  std::size_t const nodes = r.source.nodes.size();
  if (m.node.size() != nodes || m.tensor.size() != r.tensors.size())
    return "another number of nodes or tensors than the rule has";
  if (m.parameter.size() != r.parameters.size() || m.function.size() != r.parameters.size() ||
      m.bound.size() != r.parameters.size())
    return "another number of parameters than the rule has";
  for (std::size_t p = 0; p < nodes; ++p) {
    int const v = m.node[p];
    if (v < 0 || v >= g.node_count() || !g.node(v).alive)
      return "node " + std::to_string(v) + " is not there";
    for (std::size_t q = 0; q < p; ++q)
      if (m.node[q] == v) return "node " + std::to_string(v) + " stands for two";
  }
  std::vector<bool> const read = detail::mentioned(r, r.source).tensors;
  for (std::size_t i = 0; i < m.tensor.size(); ++i) {
    int const x = m.tensor[i];
    if (read[i] ? x < 0 || x >= g.value_count() || !g.value(x).alive : x != -1)
      return "tensor " + r.tensors[i] + " is not there";
  }
  for (std::size_t p = 0; p < r.parameters.size(); ++p) {
    bool const function = r.parameters[p].kind == parameter_kind::function;
    if (!m.bound[p] || function != (m.function[p] != nullptr))
      return "parameter " + r.parameters[p].name + " has no value";
    // -1 and the last axis are one axis, but not for a condition that asks whether two axes differ
    if (r.parameters[p].kind == parameter_kind::axis && m.parameter[p] < 0)
      return "axis " + r.parameters[p].name + " counts from the left";
    if (function && m.parameter[p] != 1)
      return "parameter " + r.parameters[p].name + " is a function and has a number";
  }
  for (std::size_t p = 0; p < nodes; ++p) {
    pattern_node const& n = r.source.nodes[p];
    open_graph::node_info const& v = g.node(m.node[p]);
    std::string const where = "node " + std::to_string(m.node[p]) + " (" + op::spell(v.op) + "): ";
    if (n.op ? n.op->id != v.op.op->id
             : m.function[idx(n.function)]->id != v.op.op->id || !is_function(*v.op.op))
      return where + "another operator than the rule's";
    int const rank = v.in.empty() ? 0 : g.value(v.in[0]).where.type.rank;
    for (std::size_t i = 0; i < n.attr.size(); ++i) {
      if (n.attr[i].open) continue;
      auto want = detail::value_in(n.attr[i], v.op.op->attr_kind(static_cast<int>(i)) == 'f', m, g);
      if (want && role_of(*v.op.op, static_cast<int>(i)) == attr_role::axis && *want < 0) *want += rank;
      if (!want || *want != detail::plain_attribute(v.op, static_cast<int>(i), rank))
        return where + "attribute " + std::string(v.op.op->attr_name(static_cast<int>(i))) +
               " is not the rule's";
    }
    auto wired = [&](bool turned) {
      if (n.in.size() != v.in.size()) return false;
      for (std::size_t k = 0; k < n.in.size(); ++k) {
        int const x = v.in[turned ? 1 - k : k];
        pattern_value const w = n.in[k];
        if (w.node < 0 ? m.tensor[idx(w.slot)] != x
                       : g.value(x).producer != m.node[idx(w.node)] || g.value(x).slot != w.slot)
          return false;
      }
      return true;
    };
    if (!wired(false) && !(n.op && is_commutative(*n.op) && wired(true)))
      return where + "its operands are not the rule's";
    for (std::size_t slot = 0; slot < v.out.size(); ++slot) {
      pattern_value const self{static_cast<int>(p), static_cast<int>(slot)};
      if (std::find(r.source.outputs.begin(), r.source.outputs.end(), self) != r.source.outputs.end())
        continue;
      open_graph::value_info const& x = g.value(v.out[slot]);
      bool outside = x.outputs > 0;
      for (int u : x.users) outside = outside || std::find(m.node.begin(), m.node.end(), u) == m.node.end();
      if (outside) return where + "a result that the rule does away with is used elsewhere";
    }
  }
  for (pattern_value w : r.source.outputs)
    if (w.node < 0 || w.slot >= static_cast<int>(g.node(m.node[idx(w.node)]).out.size()))
      return "an output that is not there";
  return {};
}

/// A match as it is written down. `r` is the rule that was matched.
inline rewrite_record record_of(rule const& r, rule_match const& m) {
  rewrite_record s{r.name, m.node, m.tensor, m.parameter, {}};
  for (op::op_info const* f : m.function) s.functions.push_back(f ? std::string(f->name) : std::string());
  return s;
}
/// The match that a record claims. Functions are found by name among the words of the vocabulary; unknown
/// ones have no value.
inline rule_match match_of(rule const& r, rewrite_record const& s,
                           vocabulary const& words = standard_vocabulary()) {
  rule_match m{s.nodes, s.tensors, s.parameters, {}, {}};
  for (std::size_t p = 0; p < s.functions.size(); ++p) {
    m.function.push_back(s.functions[p].empty() ? nullptr : words.find(s.functions[p]));
    m.bound.push_back(p < r.parameters.size() &&
                      (r.parameters[p].kind != parameter_kind::function || m.function.back()));
  }
  return m;
}

/// A graph after recorded rules, or which record cannot be.
struct replayed {
  computation_graph graph;
  std::string fault;                   // empty: all were applied
  int step = -1;                       // the record at fault
  bool done() const { return fault.empty(); }
};

/// Applies records one by one to a graph in which nothing is sharded. `find(name)` gives a rule or nullptr. A
/// record is believed in nothing: its match is looked at, and so are conditions, shapes and uses
/// (apply_rule). O(records * (source + target)), plus the graph.
template <class Find>
replayed replay(computation_graph const& g, std::vector<rewrite_record> const& records, Find const& find) {
  replayed r;
  open_graph open(unsharded(g));
  for (std::size_t k = 0; k < records.size(); ++k) {
    r.step = static_cast<int>(k);
    rule const* const what = find(records[k].rule);
    if (!what) { r.fault = "there is no rule \"" + records[k].rule + "\""; return r; }
    rule_match const m = match_of(*what, records[k]);
    if (r.fault = match_fault(*what, m, open); !r.fault.empty()) return r;
    rewriting const w = apply_rule(*what, m, open);
    if (r.fault = w.refused; !w.done()) return r;
  }
  r.step = -1;
  r.graph = open.close().graph;
  return r;
}

}  // namespace tensorpar::rewrite
