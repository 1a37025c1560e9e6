// tensorpar/prover/find/sharding_rules.hpp - from rules that move parallel operators to rules that bring them
// in
#pragma once
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/op/kinds/parallel.hpp>
#include <tensorpar/rewrite/rule.hpp>

namespace tensorpar::prover {

namespace detail {

inline bool shardings(rewrite::pattern_graph const& g) {
  for (rewrite::pattern_node const& n : g.nodes) if (n.op && is_parallel(*n.op)) return true;
  return false;
}
/// The graph without one node, whose results are replaced by another value.
inline rewrite::pattern_graph without(rewrite::pattern_graph const& g, int gone,
                                      rewrite::pattern_value instead) {
  rewrite::pattern_graph r;
  auto moved = [&](rewrite::pattern_value v) {
    if (v.node == gone) v = instead;
    if (v.node > gone) --v.node;
    return v;
  };
  for (int i = 0; i < static_cast<int>(g.nodes.size()); ++i) {
    if (i == gone) continue;
    r.nodes.push_back(g.nodes[idx(i)]);
    for (rewrite::pattern_value& v : r.nodes.back().in) v = moved(v);
  }
  for (rewrite::pattern_value v : g.outputs) r.outputs.push_back(moved(v));
  return r;
}
inline std::optional<rewrite::rule> if_good(rewrite::rule r) {
  if (!rewrite::problems(r).empty() || shardings(r.source) || !shardings(r.target)) return std::nullopt;
  r.name += ", spread";
  return r;
}

/// S => partition(T) gives T => combine(S): a combine undoes a partition.
inline std::optional<rewrite::rule> by_undoing(rewrite::rule const& r) {
  rewrite::pattern_value const out = r.target.outputs[0];
  if (r.target.outputs.size() != 1 || out.node < 0) return std::nullopt;
  rewrite::pattern_node const root = r.target.nodes[idx(out.node)];
  if (!root.op || root.op->id != op::info<parallel::partition>.id) return std::nullopt;
  rewrite::rule s = r;
  s.source = without(r.target, out.node, root.in[0]);
  s.target = r.source;
  rewrite::pattern_node undo;
  undo.op = &op::info<parallel::combine>;
  undo.attr = root.attr;
  undo.in = {s.target.outputs[0]};
  s.target.nodes.push_back(std::move(undo));
  s.target.outputs = {{static_cast<int>(s.target.nodes.size()) - 1, 0}};
  return if_good(std::move(s));
}

/// Where the source has variables under combines only, partitions of them are put in their places:
/// S(combine(x)) => U(x) gives S(x) => U(partition(x)).
inline std::optional<rewrite::rule> by_substituting(rewrite::rule const& r) {
  rewrite::rule s = r;
  bool any = false;
  for (int x = 0; x < static_cast<int>(r.tensors.size()); ++x) {
    int under = -1;                      // the combine of x
    bool bare = false;
    for (int i = 0; i < static_cast<int>(s.source.nodes.size()); ++i)
      for (rewrite::pattern_value v : s.source.nodes[idx(i)].in)
        if (v == rewrite::pattern_value{-1, x}) {
          rewrite::pattern_node const& n = s.source.nodes[idx(i)];
          if (n.op && n.op->id == op::info<parallel::combine>.id && under < 0) under = i;
          else bare = true;
        }
    if (bare || under < 0) continue;
    any = true;
    rewrite::pattern_node part;
    part.op = &op::info<parallel::partition>;
    part.attr = s.source.nodes[idx(under)].attr;
    part.in = {{-1, x}};
    s.source = without(s.source, under, {-1, x});
    // the partition becomes the target's first node
    rewrite::pattern_graph t;
    auto moved = [&](rewrite::pattern_value v) {
      if (v == rewrite::pattern_value{-1, x}) return rewrite::pattern_value{0, 0};
      return v.node < 0 ? v : rewrite::pattern_value{v.node + 1, v.slot};
    };
    t.nodes.push_back(std::move(part));
    for (rewrite::pattern_node n : s.target.nodes) {
      for (rewrite::pattern_value& v : n.in) v = moved(v);
      t.nodes.push_back(std::move(n));
    }
    for (rewrite::pattern_value v : s.target.outputs) t.outputs.push_back(moved(v));
    s.target = std::move(t);
  }
  return any ? if_good(std::move(s)) : std::nullopt;
}

}  // namespace detail

/// The rules that bring parallel operators into a graph without any, as far as they follow from this rule and
/// "combine undoes partition". "linear(partition(x), replicate(w)) => partition(linear(x, w))" gives
/// "linear(x, w) => combine(linear(partition(x), replicate(w)))", with axis and degree for the user to
/// choose. Read from either side. A term grows, so they are implied by nothing smaller.
inline std::vector<rewrite::rule> sharding_rules_forms(rewrite::rule const& r) {
  std::vector<rewrite::rule> all;
  rewrite::rule back = r;
  std::swap(back.source, back.target);
  for (rewrite::rule const* s : {&r, static_cast<rewrite::rule const*>(&back)}) {
    if (auto a = detail::by_undoing(*s)) all.push_back(std::move(*a));
    if (auto b = detail::by_substituting(*s)) all.push_back(std::move(*b));
  }
  for (std::size_t i = 1; i < all.size(); ++i) all[i].name += " " + std::to_string(i + 1);
  return all;
}

}  // namespace tensorpar::prover
