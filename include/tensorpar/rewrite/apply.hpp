// tensorpar/rewrite/apply.hpp - puts a rule's target where its source was found
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/rewrite/match_rule.hpp>

namespace tensorpar::rewrite {

/// What became of applying a rule. `refused`: why nothing was changed; empty: it was applied.
struct rewriting {
  std::string refused;
  std::vector<int> added, removed;       // nodes
  bool done() const { return refused.empty(); }
};

/// May a rule leave something in the graph that nothing uses? Who trains may not want that.
enum class left_overs : int { refused, kept };

namespace detail {

inline std::string broken_condition(rule const& r, rule_match const& m, open_graph const& g) {
  for (rule_condition const& c : r.conditions) {
    auto const a = value_in(c.a, false, m, g);
    if (!a) return "a condition is about an axis that is not there";
    if (c.kind == condition_kind::inner) {
      int const rank = g.value(m.tensor[idx(c.tensor)]).where.type.rank;
      if ((*a < 0 ? *a + rank : *a) >= rank - c.b.number)
        return "axis " + std::to_string(*a) + " is one of the last of " + r.tensors[idx(c.tensor)];
      continue;
    }
    auto const b = value_in(c.b, false, m, g);
    if (!b) return "a condition is about an axis that is not there";
    std::string const two = std::to_string(*a) + " and " + std::to_string(*b);
    if (c.kind == condition_kind::divides && (*a < 1 || *b % *a))
      return two + ": the first does not divide the second";
    if (c.kind == condition_kind::equal && *a != *b) return two + " are not equal";
    if (c.kind == condition_kind::different && *a == *b) return two + " are not different";
  }
  return {};
}
/// Does a value come from any of these nodes? Walks up, once over each node. O(nodes above).
inline bool comes_from(open_graph const& g, int value, std::vector<int> const& nodes,
                       std::vector<char>& seen) {
  std::vector<int> open{value};
  while (!open.empty()) {
    int const v = g.value(open.back()).producer;
    open.pop_back();
    if (v < 0 || seen[idx(v)]) continue;
    if (std::find(nodes.begin(), nodes.end(), v) != nodes.end()) return true;
    seen[idx(v)] = 1;
    for (int x : g.node(v).in) open.push_back(x);
  }
  return false;
}

/// What the target does without and nothing else uses either: a parameter would not be trained any more, a
/// result would be computed in vain.
inline std::string left_over(rule const& r, rule_match const& m, open_graph const& g) {
  std::vector<bool> const kept = mentioned(r, r.target).tensors;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    open_graph::value_info const& x = g.value(m.tensor[i]);
    bool used = kept[i] || x.outputs || x.origin.role == value_role::input;
    for (int v : x.users) used = used || std::find(m.node.begin(), m.node.end(), v) == m.node.end();
    if (!used) return r.tensors[i] + " would be used no more";
  }
  return {};
}

}  // namespace detail

namespace detail {

/// What a rule's target is made of at a match, or why it cannot be.
struct rule_target {
  std::vector<op::any_op> ops;
  std::vector<std::vector<ir::parallel_shape>> made;         // by operator: its results
  std::string refused;
};
/// The target's operators and shardings, before anything is touched.
inline rule_target target_of(rule const& r, rule_match const& m, open_graph const& g) {
  rule_target result;
  auto shape_of = [&](pattern_value v) -> ir::parallel_shape const& {
    return v.node < 0 ? g.value(m.tensor[idx(v.slot)]).where : result.made[idx(v.node)][idx(v.slot)];
  };
  auto lacks = [&](pattern_value v) {   // a result that the node before does not have
    if (v.node < 0 || v.slot < static_cast<int>(result.made[idx(v.node)].size())) return false;
    result.refused = op::spell(result.ops[idx(v.node)]) + " has no result " + std::to_string(v.slot);
    return true;
  };
  for (pattern_node const& n : r.target.nodes) {
    for (pattern_value v : n.in) if (lacks(v)) return result;
    std::vector<ir::parallel_shape> in;
    std::vector<shape> types;
    for (pattern_value v : n.in) {
      in.push_back(shape_of(v));
      types.push_back(in.back().type);
    }
    op::op_info const& o = n.op ? *n.op : *m.function[idx(n.function)];
    i64 attr[op::max_attrs] = {};
    for (std::size_t i = 0; i < n.attr.size(); ++i) {
      if (n.attr[i].open) continue;
      auto const x = value_in(n.attr[i], o.attr_kind(static_cast<int>(i)) == 'f', m, g);
      if (!x) { result.refused = "an attribute is about an axis that is not there"; return result; }
      attr[i] = *x;
      if (role_of(o, static_cast<int>(i)) != attr_role::axis) continue;
      if (attr[i] < 0) attr[i] += types[0].rank;
      if (attr[i] < 0 || attr[i] >= types[0].rank) {
        result.refused = std::string(o.name) + ": no such axis";
        return result;
      }
    }
    result.ops.push_back(with_followers(o, attr, {types.data(), static_cast<int>(types.size())}));
    ir::parallel_result y = ir::infer_parallel_shapes(result.ops.back(), in);
    if (!y.ok()) { result.refused = std::move(y.problem); return result; }
    result.made.push_back(std::move(y.out));
  }
  for (pattern_value v : r.target.outputs) if (lacks(v)) return result;
  return result;
}

}  // namespace detail

/// Replaces a match of the rule's source by its target. Precondition: the match was found in this graph and
/// its nodes are still there; `m.parameter` holds values for all parameters, those that are not bound
/// included.
/// Nothing is changed, and the reason is given, where
///  - a condition does not hold, or the target is not valid on the shardings that are there;
///  - an output would lie otherwise, or something would be used no more;
///  - a cycle would close.
/// O(target), plus what lies above for rules of several outputs.
template <class = void>
rewriting apply_rule(rule const& r, rule_match const& m, open_graph& g,
                            left_overs rest = left_overs::refused) {
  rewriting result;
  if (result.refused = detail::broken_condition(r, m, g); !result.refused.empty()) return result;
  if (rest == left_overs::refused)
    if (result.refused = detail::left_over(r, m, g); !result.refused.empty()) return result;
  detail::rule_target target = detail::target_of(r, m, g);
  if (result.refused = std::move(target.refused); !result.refused.empty()) return result;
  std::vector<op::any_op> const& ops = target.ops;
  std::vector<std::vector<ir::parallel_shape>> const& made = target.made;
  auto shape_of = [&](pattern_value v) -> ir::parallel_shape const& {
    return v.node < 0 ? g.value(m.tensor[idx(v.slot)]).where : made[idx(v.node)][idx(v.slot)];
  };
  auto source_value = [&](pattern_value v) { return g.node(m.node[idx(v.node)]).out[idx(v.slot)]; };
  for (std::size_t k = 0; k < r.source.outputs.size(); ++k) {
    ir::parallel_shape const &old = g.value(source_value(r.source.outputs[k])).where,
                         &now = shape_of(r.target.outputs[k]);
    ir::parallel_shape renamed = now;
    renamed.type = old.type;              // names of axes are labels
    if (!same_extents(old.type, now.type) || old.type.type != now.type.type || !(renamed == old)) {
      result.refused =
          "output " + std::to_string(k) + " would lie as " + ir::spell(now) + " instead of " + ir::spell(old);
      return result;
    }
  }
  if (r.source.outputs.size() > 1) {
    std::vector<char> seen(idx(g.node_count()), 0);
    for (int x : m.tensor)
      if (x >= 0 && detail::comes_from(g, x, m.node, seen)) {
        result.refused = "an operand of the match depends on one of its results";
        return result;
      }
  }
  std::vector<int> outputs;
  for (pattern_value v : r.source.outputs) outputs.push_back(source_value(v));
  // one operator comes where the first of the source's was: what follows from the order stays
  int place = -1;
  if (r.target.nodes.size() == 1)
    for (int v : m.node) if (place < 0 || g.node(v).place < place) place = g.node(v).place;
  for (std::size_t i = 0; i < r.target.nodes.size(); ++i) {
    std::vector<value_id> in;
    for (pattern_value v : r.target.nodes[i].in)
      in.push_back(v.node < 0 ? value_id(m.tensor[idx(v.slot)])
                              : g.node(result.added[idx(v.node)]).out[idx(v.slot)]);
    result.added.push_back(g.add(ops[i], std::move(in), made[i], {}, place));
  }
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    pattern_value const v = r.target.outputs[k];
    g.redirect(outputs[k],
               v.node < 0 ? value_id(m.tensor[idx(v.slot)])
                          : g.node(result.added[idx(v.node)]).out[idx(v.slot)]);
  }
  for (std::size_t i = r.source.nodes.size(); i-- > 0;)   // readers before what they read
    if (int const v = m.node[i]; g.node(v).alive && g.unused(v)) {
      g.remove(v);
      result.removed.push_back(v);
    }
  return result;
}

#ifdef TENSORPAR_COMPILED
extern template rewriting apply_rule<>(rule const& r, rule_match const& m, open_graph& g, left_overs rest);
#endif

}  // namespace tensorpar::rewrite
