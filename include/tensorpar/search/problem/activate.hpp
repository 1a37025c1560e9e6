// tensorpar/search/problem/activate.hpp - a plan's operators and the functions of their results made one, by
// rules
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/plan/plan.hpp>
#include <tensorpar/rewrite/apply.hpp>
#include <tensorpar/rewrite/replay.hpp>
#include <tensorpar/search/problem/activation_sites.hpp>
#include <tensorpar/search/problem/problem.hpp>

namespace tensorpar::search {

/// A graph, the records of the rules that led to it, and the choices of its operators.
struct activated_graph {
  computation_graph graph;
  std::vector<rewrite::rewrite_record> records;
  std::vector<op_strategy> nodes;
};

/// Applies the rules of these sites. `number`: of every node of the open graph the one in the graph that
/// sites and choices speak of, -1 for those that are gone. What is one now has the operator's choice. O(rules
/// * matching + graph).
inline activated_graph activate(rewrite::open_graph g, std::vector<int> const& number,
                                std::vector<activation_site> const& sites,
                                std::vector<op_strategy> const& nodes) {
    activated_graph r;
  std::vector<std::pair<rewrite::rule const*, rewrite::rule_match>> where(sites.size());
  std::map<std::pair<int, int>, std::size_t> wanted;
  std::vector<rewrite::rule const*> rules;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    wanted[{sites[i].op, sites[i].function}] = i;
    if (std::find(rules.begin(), rules.end(), sites[i].by) == rules.end()) rules.push_back(sites[i].by);
  }
  for (rewrite::rule const* by : rules)
    for (rewrite::rule_match const& m : rewrite::find_matches(*by, g)) {
      auto const at = wanted.find({number[idx(m.node[0])], number[idx(m.node[1])]});
      if (at != wanted.end() && sites[at->second].by == by) where[at->second] = {by, m};
    }
  std::vector<std::pair<int, int>> made;                 // (new node, choice)
  for (auto& [by, m] : where) {
    if (!by) throw error("a function has no operator to be computed with", "search", "sites of this graph");
    // maybe what a rule before has made
    std::vector<rewrite::pattern_value> const& reads = by->source.nodes[0].in;
    for (std::size_t k = 0; k < reads.size(); ++k) m.tensor[idx(reads[k].slot)] = g.node(m.node[0]).in[k];
    r.records.push_back(rewrite::record_of(*by, m));
    rewrite::rewriting const w = rewrite::apply_rule(*by, m, g);
    if (!w.done()) throw error("rule " + by->name + ": " + w.refused, "search", "sites where rules apply");
    made.push_back({w.added.back(), number[idx(m.node[0])]});
  }
  std::vector<int> now;
  r.graph = g.close(&now).graph;
  r.nodes.resize(idx(r.graph.node_count()));
  for (std::size_t v = 0; v < number.size(); ++v)
    if (g.node(static_cast<int>(v)).alive) r.nodes[idx(now[v])] = nodes[idx(number[v])];
  for (auto const& [v, from] : made) r.nodes[idx(now[idx(v)])] = nodes[idx(from)];
  return r;
}

}  // namespace tensorpar::search
