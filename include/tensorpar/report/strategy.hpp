// tensorpar/report/strategy.hpp - a plan in a sentence, as people who train say it
#pragma once
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/op/core/spelling.hpp>
#include <tensorpar/plan/plan.hpp>
#include <tensorpar/search/solve/baselines.hpp>
#include <utility>
#include <vector>

namespace tensorpar::report {

namespace detail {

/// How an operator's devices share its work.
struct split_degrees {
  i64 data = 1, tensor = 1, copies = 1;  // along samples, along anything else, and doing the same
  i64 devices() const { return data * tensor * copies; }
  friend bool operator==(split_degrees const&, split_degrees const&) = default;
  friend auto operator<=>(split_degrees const&, split_degrees const&) = default;
};
inline split_degrees degrees_of(ir::sharding const& s, char samples) {
  split_degrees r;
  for (ir::mesh_axis const& a : s.axes)
    (a.letter == '\0' ? r.copies : a.letter == samples ? r.data : r.tensor) *= a.degree;
  return r;
}
inline std::string counted(std::size_t n, std::string const& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}
/// "64-way data parallel", "8 x 4 data and tensor parallel", "4 devices do the same".
inline std::string degrees_text(split_degrees const& d) {
  if (d.devices() == 1) return "one device";
  std::string r;
  if (d.data > 1 && d.tensor > 1)
    r = std::to_string(d.data) + " x " + std::to_string(d.tensor) + " data and tensor parallel";
  else if (d.data > 1) r = std::to_string(d.data) + "-way data parallel";
  else if (d.tensor > 1) r = std::to_string(d.tensor) + "-way tensor parallel";
  if (d.copies == 1) return r;
  std::string const copies = std::to_string(d.copies);
  return r.empty() ? copies + " devices do the same" : r + " in " + copies + " copies";
}
inline bool weighs(computation_graph const& g, graph_node const& n) {
  for (value_id x : n.in) if (g.value(x).role == value_role::parameter) return true;
  return false;
}
inline std::string kind_of(graph_node const& n) {
  return n.op.op ? std::string(n.op.op->name) : std::string("operator");
}

/// How most operators with weights share their work (of others, where none has any), and which do otherwise.
inline std::vector<std::string> degree_words(computation_graph const& g, plan const& p,
                                             std::vector<char> const& counts) {
  std::string const samples = search::batch_loops(g, static_cast<int>(p.nodes.size()));
  std::map<split_degrees, int> times;
  for (std::size_t v = 0; v < p.nodes.size(); ++v)
    if (counts[v]) ++times[degrees_of(p.nodes[v].sharding, samples[v])];
  if (times.empty()) return {};
  auto const more = [](auto const& a, auto const& b) { return a.second < b.second; };
  split_degrees const usual = std::max_element(times.begin(), times.end(), more)->first;
  std::vector<std::string> r{degrees_text(usual)};
  std::vector<std::pair<std::string, int>> others;             // in order of their first operator
  for (std::size_t v = 0; v < p.nodes.size(); ++v) {
    split_degrees const d = degrees_of(p.nodes[v].sharding, samples[v]);
    if (!counts[v] || d == usual) continue;
    graph_node const& n = g.nodes[v];
    std::string how = std::to_string(d.data) + " x " + std::to_string(d.tensor);
    if (d.copies > 1) how += " in " + std::to_string(d.copies) + " copies";
    if (d.devices() == 1) how = "on one device";
    std::string const key = (n.block < 0 && !n.name.empty() ? n.name : kind_of(n)) + " " + how;
    auto const at = std::find_if(others.begin(), others.end(), [&](auto const& o) { return o.first == key; });
    if (at == others.end()) others.push_back({key, 1});
    else ++at->second;
  }
  constexpr std::size_t most = 3;
  for (std::size_t k = 0; k < std::min(most, others.size()); ++k)
    r.push_back((others[k].second > 1 ? std::to_string(others[k].second) + " " : "") + others[k].first);
  if (others.size() > most) r.push_back(counted(others.size() - most, "other kind") + " otherwise");
  return r;
}

inline std::string pipeline_words(pipeline const& l) {
  std::string r = counted(l.stages.size(), "stage") + " of a pipeline on " +
                  counted(l.groups.size(), "group") + " of ";
  std::set<int> sizes;
  bool split = false;
  for (device_range const& g : l.groups) sizes.insert(g.count);
  for (pipeline_stage const& s : l.stages) split = split || s.split_backward;
  r += std::to_string(*sizes.begin()) + (sizes.size() > 1 ? " to " + std::to_string(*sizes.rbegin()) : "") +
       (sizes == std::set{1} ? " device" : " devices");
  if (l.stages.size() > l.groups.size()) r += ", interleaved";
  return split ? r + ", with weights' gradients apart" : r;
}

/// "weights gathered where they are used (ZeRO-3)", "updates shared (ZeRO-1) for 3 of 12 weights' operators".
inline std::vector<std::string> zero_words(computation_graph const& g, plan const& p) {
  std::size_t all = 0, weights = 0, updates = 0, gradients = 0;
  for (std::size_t v = 0; v < p.nodes.size(); ++v) {
    if (!weighs(g, g.nodes[v])) continue;
    ++all;
    weights += p.nodes[v].zero == ir::zero_stage::weights;
    updates += p.nodes[v].zero == ir::zero_stage::updates;
    gradients += p.nodes[v].zero == ir::zero_stage::gradients;
  }
  for (pipeline_stage const& s : p.pipeline.stages)
    for (int v : s.nodes) updates += s.shard_optimizer && weighs(g, g.nodes[idx(v)]);
  std::vector<std::string> r;
  auto const part = [&](std::size_t n) {
    return n == all ? "" : " for " + std::to_string(n) + " of " + counted(all, "operator") + " with weights";
  };
  if (weights) r.push_back("weights gathered where they are used (ZeRO-3)" + part(weights));
  if (gradients) r.push_back("gradients and updates shared (ZeRO-2)" + part(gradients));
  bool const at_once = p.pipeline.empty() && p.micro_batches == 1;     // gradients go as they come
  if (updates) r.push_back(std::string("updates shared (ZeRO-") + (at_once ? "2)" : "1)") + part(updates));
  return r;
}

/// "18 of 32 layers recompute attention and linear", "3 operators recompute".
inline std::vector<std::string> recompute_words(computation_graph const& g, plan const& p) {
  std::vector<char> again(p.nodes.size(), 0);
  for (std::size_t v = 0; v < again.size(); ++v) again[v] = p.nodes[v].recompute;
  for (pipeline_stage const& s : p.pipeline.stages)
    for (int v : s.nodes) again[idx(v)] = again[idx(v)] || s.recompute;
  struct block { std::set<int> all, some; std::map<std::string, int> kinds; int operators = 0, kept = 0; };
  std::map<int, block> blocks;
  std::size_t apart = 0;
  for (std::size_t v = 0; v < again.size(); ++v) {
    graph_node const& n = g.nodes[v];
    if (n.block < 0) {
      apart += again[v] != 0;
      continue;
    }
    block& b = blocks[n.block];
    b.all.insert(n.repetition);
    if (!again[v]) continue;
    b.some.insert(n.repetition);
    ++b.kinds[kind_of(n)];
  }
  std::vector<std::string> r;
  for (auto& [id, b] : blocks) {
    if (b.some.empty()) continue;
    for (std::size_t v = 0; v < again.size(); ++v)
      if (g.nodes[v].block == id && b.some.count(g.nodes[v].repetition)) ++b.operators, b.kept += !again[v];
    std::string text =
        std::to_string(b.some.size()) + " of " + std::to_string(b.all.size()) + " layers recompute ";
    // a layer's result is kept anyway
    if (b.kept <= static_cast<int>(b.some.size())) text += "everything";
    else {
      std::vector<std::pair<std::string, int>> kinds(b.kinds.begin(), b.kinds.end());
      std::stable_sort(kinds.begin(), kinds.end(),
                       [](auto const& x, auto const& y) { return x.second > y.second; });
      for (std::size_t k = 0; k < std::min<std::size_t>(kinds.size(), 3); ++k)
        text += (k ? ", " : "") + kinds[k].first;
      if (b.kinds.size() > 3) text += " and " + std::to_string(b.kinds.size() - 3) + " more kinds";
    }
    r.push_back(std::move(text));
  }
  if (apart)
    r.push_back(counted(apart, "operator") + (blocks.empty() ? "" : " outside of layers") +
                (apart == 1 ? " recomputes" : " recompute"));
  return r;
}

}  // namespace detail

/// "64-way data parallel, weights gathered where they are used (ZeRO-3), collectives 2 operators ahead,
/// embedding 4 x 16 (data x tensor), 18 of 32 layers recompute attention". `g`: the graph that the plan runs
/// (`planned::graph`). Operators with weights stand for all, where there are any. O(nodes * log).
inline std::string strategy_text(computation_graph const& g, plan const& p) {
  if (p.infeasible || p.nodes.empty()) return "no plan";
  std::vector<char> counts(p.nodes.size(), 0);
  for (std::size_t v = 0; v < counts.size(); ++v) counts[v] = detail::weighs(g, g.nodes[v]);
  if (std::count(counts.begin(), counts.end(), 1) == 0) counts.assign(counts.size(), 1);
  std::vector<std::string> words;
  auto const add = [&](std::vector<std::string> const& more) {
    words.insert(words.end(), more.begin(), more.end());
  };
  if (!p.pipeline.empty()) words.push_back(detail::pipeline_words(p.pipeline));
  std::vector<std::string> const degrees = detail::degree_words(g, p, counts);
  if (!degrees.empty()) words.push_back(degrees[0]);
  add(detail::zero_words(g, p));
  if (p.prefetch) words.push_back("collectives " + detail::counted(idx(p.prefetch), "operator") + " ahead");
  for (std::size_t k = 1; k < degrees.size(); ++k)
    words.push_back(degrees[k] + (k == 1 ? " (data x tensor)" : ""));
  add(detail::recompute_words(g, p));
  int micro_batches = p.micro_batches;
  for (std::size_t s = 0; s < p.pipeline.stages.size(); ++s)
    micro_batches = std::max(micro_batches, p.pipeline.micro_batches(static_cast<int>(s)));
  if (micro_batches > 1) words.push_back(std::to_string(micro_batches) + " micro-batches");
  std::string r;
  for (std::string const& w : words) r += (r.empty() ? "" : ", ") + w;
  return r;
}

}  // namespace tensorpar::report
