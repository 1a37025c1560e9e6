// tests/search/all_graphs.hpp - every graph that rules make of one: what a search over graphs is compared with
#pragma once
#include <algorithm>
#include <map>
#include <tensorpar/rewrite/apply.hpp>
#include <tensorpar/rewrite/canonical.hpp>
#include <tensorpar/rewrite/match_rule.hpp>
#include <tensorpar/rewrite/rule.hpp>

namespace tensorpar::search_test {

/// Operators whose results nothing needs, left out.
inline computation_graph needed(computation_graph const& g) {
  rewrite::open_graph o(rewrite::unsharded(g));
  for (bool changed = true; changed;) {
    changed = false;
    for (int v = o.node_count(); v-- > 0;)
      if (o.node(v).alive && o.unused(v)) { o.remove(v); changed = true; }
  }
  return o.close().graph;
}

/// g and all that the rules lead to, with at most `growth` operators more, each once; g first.
inline std::vector<computation_graph> all_graphs(computation_graph const& g, std::vector<rewrite::rule> const& rules, int growth) {
  rewrite::canonical_forms form;
  std::map<std::vector<i64>, int> seen{{form(g), 0}};
  std::vector<rewrite::open_graph> open{rewrite::open_graph(rewrite::unsharded(g))};
  std::vector<computation_graph> all{g};
  for (std::size_t i = 0; i < open.size(); ++i)
    for (rewrite::rule const& r : rules) {
      rewrite::open_graph const here = open[i];
      for (rewrite::rule_match const& m : find_matches(r, here)) {
        if (std::find(m.bound.begin(), m.bound.end(), false) != m.bound.end()) continue;
        rewrite::open_graph next = here;
        if (!apply_rule(r, m, next).done() || next.alive() > g.node_count() + growth) continue;
        computation_graph c = next.close().graph;
        if (!seen.try_emplace(form(c), 0).second) continue;
        open.push_back(std::move(next));
        all.push_back(std::move(c));
      }
    }
  return all;
}

}  // namespace tensorpar::search_test
