// tensorpar/search/joint/cut_network.hpp - a network in parts that rules develop one by one, and which of
// them are alike
#pragma once
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/rewrite/canonical.hpp>
#include <tensorpar/rewrite/match_rule.hpp>
#include <tensorpar/search/intra/optimize.hpp>
#include <tensorpar/search/joint/rewriting_knobs.hpp>
#include <tensorpar/search/problem/split.hpp>
#include <tensorpar/search/problem/substitution_rules.hpp>

namespace tensorpar::search {

struct joint_options : rewriting_knobs {
  search_options search;
};

namespace detail {

inline std::vector<rewrite::rule> const& rules_of(joint_options const& o) {
  return o.rules ? *o.rules : substitution_rules();
}
inline training_options training_of(joint_options const& o) {
  return {o.search.loss, o.search.optimizer, o.search.micro_batches, o.search.reduction};
}

/// All that the variants of a part depend on.
inline std::vector<i64> piece_key(graph_piece const& p, rewrite::canonical_forms& form) {
  std::vector<i64> key = form(p.graph);
  key.insert(key.end(), {p.ends.anchor, p.ends.anchor_readers, p.ends.last, p.ends.readers,
                         static_cast<i64>(p.graph.nodes.size())});
  // in this order too: ends and steps name nodes by number
  for (graph_node const& n : p.graph.nodes) {
    key.push_back(static_cast<i64>(n.op.op->id));
    key.insert(key.end(), n.op.attr, n.op.attr + n.op.op->attrs);
    for (int x : n.in) key.push_back(x);
  }
  for (graph_value const& v : p.graph.values) {
    key.push_back(v.producer >= 0 ? -1 : static_cast<i64>(v.role));
    key.push_back(static_cast<i64>(v.type.type) * 8 + v.type.rank);
    for (int d = 0; d < v.type.rank; ++d) key.push_back(v.type.d[d].n);
  }
  return key;
}

/// A network's parts in order. It is the same for every machine.
struct cut_network {
  std::vector<int> cuts;
  std::vector<graph_piece> parts;
  std::vector<int> kind;                 // by part; equal where all that rules make of them is equal
  std::vector<int> first;                // part of each kind
  /// How many parts are of each kind.
  std::vector<int> counts() const {
    std::vector<int> r(first.size(), 0);
    for (int k : kind) ++r[idx(k)];
    return r;
  }
};

/// Cuts where few matches of rules are cut through. With `remember` off every part is a kind of its own.
inline cut_network cut(computation_graph const& declared, joint_options const& o) {
  if (!o.search.order.empty())
    throw error("an order of operators", "joint search", "none: rules make other operators");
  cut_network r;
  if (o.split) {
    rewrite::open_graph const whole(rewrite::unsharded(declared));
    std::vector<std::vector<int>> groups;
    for (rewrite::rule const& what : rules_of(o))
      if (!activates(what))
        for (rewrite::rule_match const& m : rewrite::find_matches(what, whole)) groups.push_back(m.node);
    r.cuts = choose_cuts(declared, differentiate(declared, training_of(o)), groups, o.min_part);
  }
  r.parts = pieces(declared, r.cuts);
  rewrite::canonical_forms form;
  std::map<std::vector<i64>, int> known;
  for (std::size_t k = 0; k < r.parts.size(); ++k) {
    int const next = static_cast<int>(r.first.size());
    auto const [at, fresh] = known.try_emplace(piece_key(r.parts[k], form), next);
    bool const apart = fresh || !o.remember;
    r.kind.push_back(apart ? next : at->second);
    if (apart) r.first.push_back(static_cast<int>(k));
  }
  return r;
}

}  // namespace detail

}  // namespace tensorpar::search
