// tensorpar/search/problem/substitution_rules.hpp - the shipped rules that a search of graphs may try
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/rewrite/rules/standard_rules.hpp>

namespace tensorpar::search {

namespace detail {
/// Does the target compute all that the source does, and then something that comes to nothing? (f(x) =>
/// split(merge(f(x))))
inline bool repeats_source(rewrite::rule const& r) {
  std::vector<int> same;
  for (rewrite::pattern_node const& n : r.source.nodes) {
    int found = -1;
    for (std::size_t k = 0; k < r.target.nodes.size() && found < 0; ++k) {
      rewrite::pattern_node const& m = r.target.nodes[k];
      bool equal =
          (n.op ? n.op->id : 0) == (m.op ? m.op->id : 0) && n.function == m.function && n.attr == m.attr;
      equal = equal && n.in.size() == m.in.size();
      for (std::size_t i = 0; i < n.in.size() && equal; ++i) {
        rewrite::pattern_value const want =
            n.in[i].node < 0 ? n.in[i] : rewrite::pattern_value{same[idx(n.in[i].node)], n.in[i].slot};
        equal = m.in[i] == want;
      }
      if (equal) found = static_cast<int>(k);
    }
    if (found < 0) return false;
    same.push_back(found);
  }
  return true;
}
}  // namespace detail

/// The shipped rules, either way round, that change operators and name no sharding: what shardings there are
/// is the mapping's choice. Without those that leave their source as it is and add what comes to nothing.
/// Those that activate (search/problem/activation_sites.hpp) are among them.
template <class = void>
std::vector<rewrite::rule> const& substitution_rules() {
  static std::vector<rewrite::rule> const all = [] {
    std::vector<rewrite::rule> r;
    for (rewrite::rule const& x : rewrite::rules_both_ways()) {
      bool shardings = x.source.nodes.empty();
      for (rewrite::pattern_graph const* g : {&x.source, &x.target})
        for (rewrite::pattern_node const& n : g->nodes) shardings = shardings || (n.op && is_parallel(*n.op));
      if (!shardings && !detail::repeats_source(x)) r.push_back(x);
    }
    return r;
  }();
  return all;
}

#ifdef TENSORPAR_COMPILED
extern template std::vector<rewrite::rule> const& substitution_rules<>();
#endif

}  // namespace tensorpar::search
