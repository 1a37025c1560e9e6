// tensorpar/program/schedule.hpp - the stages of a pipeline as a graph
#pragma once
#include <algorithm>
#include <string>
#include <tensorpar/core/error.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/graph/concepts.hpp>
#include <tensorpar/plan/pipeline.hpp>
#include <vector>

namespace tensorpar::passes {

/// By stage, the stages that feed it, ascending: a `topology` whose nodes are the stages.
/// `edges_between_stages` derives it from a pipeline and its graph; a planner that wants more order (a chain
/// instead of branches) may add edges.
using stage_edges = std::vector<std::vector<int>>;

/// Stages in a chain: each feeds the next.
inline stage_edges chain_of_stages(int stages) {
  stage_edges e(idx(stages < 0 ? 0 : stages));
  for (std::size_t s = 1; s < e.size(); ++s) e[s].push_back(static_cast<int>(s) - 1);
  return e;
}

/// The stage of each operator, -1 where none has it. O(operators). Throws `error` if a stage names an
/// operator that does not exist.
inline std::vector<int> stages_by_operator(pipeline const& p, int operators) {
  std::vector<int> r(idx(operators), -1);
  for (std::size_t s = 0; s < p.stages.size(); ++s)
    for (int v : p.stages[s].nodes) {
      if (v < 0 || v >= operators)
        throw error("operator " + std::to_string(v), "stage " + std::to_string(s),
                    "0 to " + std::to_string(operators - 1));
      r[idx(v)] = static_cast<int>(s);
    }
  return r;
}

/// The edges that follow from the operators' (thesis, section 3.3, C2). O(V + E + edges log edges). Throws
/// `error` if a stage names an operator that does not exist.
template <graph::topology G> stage_edges edges_between_stages(G const& operators, pipeline const& p) {
  std::vector<int> const of = stages_by_operator(p, graph::node_count(operators));
  stage_edges e(p.stages.size());
  for (std::size_t v = 0; v < of.size(); ++v)
    for (int u : graph::predecessors(operators, static_cast<int>(v))) {
      int const from = of[idx(u)], to = of[v];
      if (from >= 0 && to >= 0 && from != to) e[idx(to)].push_back(from);
    }
  for (auto& list : e) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return e;
}

/// By stage, the stages that it feeds, ascending. O(stages + edges).
inline stage_edges reversed_edges(stage_edges const& e) {
  stage_edges r(e.size());
  for (std::size_t s = 0; s < e.size(); ++s)
    for (int u : e[s]) r[idx(u)].push_back(static_cast<int>(s));
  return r;
}

/// What generators and simulator need before they look at an order: every stage's micro-batch size divides
/// the mini-batch, along an edge one size divides the other, edges lead from earlier stages to later ones,
/// groups exist. O(stages + edges). Throws `error` otherwise.
inline void require_schedulable(pipeline const& p, stage_edges const& e) {
  auto const at = [](std::size_t s) { return "stage " + std::to_string(s); };
  if (e.size() != p.stages.size())
    throw error("edges of " + std::to_string(e.size()) + " stages", "pipeline",
                std::to_string(p.stages.size()) + " lists, one for each");
  if (p.mini_batch < 1 || p.mini_batch > i64{1} << 40)
    throw error("a mini-batch of " + std::to_string(p.mini_batch) + " samples", "pipeline", "from 1 to 2^40");
  for (std::size_t s = 0; s < e.size(); ++s) {
    pipeline_stage const& x = p.stages[s];
    if (x.micro_batch < 1 || p.mini_batch % x.micro_batch != 0 ||
        p.mini_batch / x.micro_batch > max_micro_batches)
      throw error("a micro-batch of " + std::to_string(x.micro_batch) + " samples", at(s),
                  "a divisor of the mini-batch of " + std::to_string(p.mini_batch) + ", at most " +
                      std::to_string(max_micro_batches) + " micro-batches");
    if (x.group < 0 || idx(x.group) >= p.groups.size())
      throw error("group " + std::to_string(x.group), at(s),
                  "0 to " + std::to_string(static_cast<i64>(p.groups.size()) - 1));
    if (x.k < 1 || x.k > 1 << 20) throw error("k of " + std::to_string(x.k), at(s), "from 1 to 2^20");
    for (int u : e[s]) {
      if (u < 0 || idx(u) >= s)
        throw error("an edge from stage " + std::to_string(u), at(s), "an earlier stage");
      i64 const other = p.stages[idx(u)].micro_batch;
      if (x.micro_batch % other != 0 && other % x.micro_batch != 0)
        throw error("micro-batches of " + std::to_string(x.micro_batch) + " after " + std::to_string(other) +
                        " samples",
                    at(s), "sizes of which one divides the other");
    }
  }
}

/// Stages in the order of `p.stages`, each on a group of its own.
inline bool one_stage_per_group(pipeline const& p) {
  std::vector<int> n(p.groups.size(), 0);
  for (pipeline_stage const& s : p.stages)
    if (s.group < 0 || idx(s.group) >= n.size() ||
        ++n[idx(s.group)] > 1)
      return false;
  return true;
}

}  // namespace tensorpar::passes
