// tensorpar/search/joint/distribution.hpp - a rule for two joined tensors, applied to all tensors of a long
// concatenation at once
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/op/kinds/structural.hpp>
#include <tensorpar/rewrite/apply.hpp>
#include <tensorpar/rewrite/nesting.hpp>

namespace tensorpar::search {

/// One application of a rule, and where; node and value numbers are those of the `open_graph` that all steps
/// before were applied to.
struct rewrite_step {
  rewrite::rule const* rule = nullptr;
  rewrite::rule_match where;
};

namespace detail {

inline bool all_bound(rewrite::rule const& r, rewrite::rule_match const& m) {
  for (std::size_t p = 0; p < r.parameters.size(); ++p) if (!m.bound[p]) return false;
  return true;
}

/// The node of a rule's source that joins two tensors which its target does not join: products of parts
/// instead of a product of all (Unity, figure 16b), a sum over parts instead of a sum over all. -1: there is
/// none.
inline int joined_in_vain(rewrite::rule const& r) {
  for (rewrite::pattern_node const& n : r.target.nodes)
    if (n.op && n.op->id == core::name_hash(concat::name)) return -1;
  for (std::size_t p = 0; p < r.source.nodes.size(); ++p) {
    rewrite::pattern_node const& n = r.source.nodes[p];
    if (!n.op || n.op->id != core::name_hash(concat::name) || n.in.size() != 2 ||
        r.source.outputs.size() != 1)
      continue;
    if (n.in[0].node < 0 && n.in[1].node < 0 && !(n.in[0] == n.in[1])) return static_cast<int>(p);
  }
  return -1;
}

/// Does away with concatenation v by a rule whose source joins two tensors in node `joint`: v is nested, the
/// rule applied to the outermost concatenation, and so on with those within. False, and a graph of no use,
/// where the rule does not fit in all of them, or where `stays(node)`. O(operands * matching).
template <class Stays>
bool distribute(rewrite::open_graph& g, int v, rewrite::rule const& r, int joint,
                std::vector<rewrite_step>& steps, Stays const& stays) {
  std::vector<int> joined{v};
  while (!joined.empty()) {
    int outer = joined.back();
    joined.pop_back();
    int const n = static_cast<int>(g.node(outer).in.size());
    if (n > rewrite::max_nested || stays(outer)) return false;
    if (n > 2) {
      rewrite::rule const& nest = rewrite::nesting_rule(n);
      auto const found = rewrite::find_matches(nest, g);
      auto const here =
          std::find_if(found.begin(), found.end(),
                       [&](rewrite::rule_match const& m) { return m.node[0] == outer; });
      if (here == found.end()) return false;
      rewrite::rewriting const w = rewrite::apply_rule(nest, *here, g);
      if (!w.done()) return false;
      steps.push_back({&nest, *here});
      outer = w.added.back();
      joined.insert(joined.end(), w.added.begin(), w.added.end() - 1);
    }
    bool done = false;
    for (rewrite::rule_match const& m : rewrite::find_matches(r, g)) {
      if (m.node[idx(joint)] != outer || !all_bound(r, m)) continue;
      if (std::any_of(m.node.begin(), m.node.end(), stays) || !rewrite::apply_rule(r, m, g).done()) continue;
      steps.push_back({&r, m});
      done = true;
      break;
    }
    if (!done) return false;
  }
  return true;
}

}  // namespace detail

}  // namespace tensorpar::search
