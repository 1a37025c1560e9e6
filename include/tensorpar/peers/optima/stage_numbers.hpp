// tensorpar/peers/optima/stage_numbers.hpp - a profile's numbers as a stage model's: what `additive_stages`
// takes
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/peers/optima/max_load_space.hpp>
#include <tensorpar/peers/profiles/pipedream.hpp>
#include <tensorpar/peers/profiles/piper.hpp>
#include <tensorpar/search/pipeline/stages/additive.hpp>

namespace tensorpar::peers {

/// Operators, the tensors between them, and their graph. "Sample": what was profiled, a micro-batch or a
/// mini-batch.
struct profiled_stages {
  std::vector<std::vector<int>> graph;          // predecessor lists
  std::vector<search::operator_numbers> operators;
  std::vector<search::stage_tensor> tensors;
};

/// Layers with forward and backward times; a layer's activations are what it sends and what it keeps. O(V +
/// E).
inline profiled_stages stages_of(pipedream_profile const& p) {
  profiled_stages r{p.inputs, {}, {}};
  for (std::size_t v = 0; v < p.inputs.size(); ++v) {
    search::operator_numbers x;
    x.forward = p.forward[v];
    x.backward = p.backward[v];
    x.parameters = p.parameter[v];
    x.kept = p.activation[v];
    r.operators.push_back(x);
  }
  r.tensors = search::tensors_of(r.graph, p.activation);
  return r;
}

/// The configurations "vanilla" on one device (the first one there). The file has one time for both passes: a
/// third of it counts as forward. Edges with equal bytes out of one node are one tensor. Throws `error` where
/// a node has none for one device. O(V + E).
inline profiled_stages stages_of(piper_profile const& p) {
  profiled_stages r{p.inputs, {}, {}};
  for (std::size_t v = 0; v < p.inputs.size(); ++v) {
    if (p.degrees[v].empty() || p.degrees[v].front().degree != 1 || p.degrees[v].front().ways.empty())
      throw error("a node without a configuration for one device", "node " + std::to_string(p.id[v]),
                  "\"TMPCs\" with \"1\"");
    piper_configuration const& c = p.degrees[v].front().ways.front();
    search::operator_numbers x;
    x.forward = c.seconds / 3;
    x.backward = c.seconds - x.forward;
    x.parameters = c.parameters;
    x.kept = c.per_sample;
    r.operators.push_back(x);
    std::size_t const own = r.tensors.size();            // this node's tensors stand from here
    for (int e : p.out[v]) {
      piper_edge const& edge = p.edges[idx(e)];
      search::stage_tensor* same = nullptr;
      for (std::size_t t = own; t < r.tensors.size(); ++t)
        if (r.tensors[t].bytes == edge.bytes) same = &r.tensors[t];
      if (!same) same = &r.tensors.emplace_back(search::stage_tensor{static_cast<int>(v), edge.bytes, {}});
      same->consumers.push_back(edge.to);
    }
  }
  for (search::stage_tensor& t : r.tensors) std::sort(t.consumers.begin(), t.consumers.end());
  return r;
}

namespace detail {

/// The operators of stages: every forward node, and one for all backward nodes of a colour without a forward
/// one (a loss that the file counts to the backward pass, sums of gradients). What such a colour comes before
/// in the backward pass it comes after in the forward pass; what is on a cycle of that order is one operator.
struct partitioning_operators {
  std::vector<int> of;                          // by node: its operator
  std::vector<char> apart;                      // by node: is its colour without a forward node?
  std::vector<std::pair<int, int>> order;       // of operators
  int count = 0;
};
inline partitioning_operators merged_operators(dnn_partitioning_profile const& p) {
  int const n = p.node_count();
  // mate: what a colour's backward nodes belong to
  std::vector<int> mate(idx(p.colours), -1), entry(idx(n), -1);
  std::vector<char> alone(idx(p.colours), 0);                         // has it no forward node?
  int entries = 0;
  for (int v = 0; v < n; ++v) {
    if (p.backward[idx(v)]) continue;
    entry[idx(v)] = entries++;
    if (int& c = mate[idx(p.colour[idx(v)])]; c < 0) c = entry[idx(v)];
  }
  for (int v = 0; v < n; ++v) {
    if (!p.backward[idx(v)]) continue;
    int& c = mate[idx(p.colour[idx(v)])];
    if (c < 0) {
      alone[idx(p.colour[idx(v)])] = 1;
      c = entries++;
    }
    entry[idx(v)] = c;
  }
  std::vector<std::pair<int, int>> order;
  for (int v = 0; v < n; ++v)
    for (int u : p.inputs[idx(v)]) {
      bool const apart = alone[idx(p.colour[idx(u)])] || alone[idx(p.colour[idx(v)])];
      if (!p.backward[idx(u)] && (!p.backward[idx(v)] || apart))
        order.push_back({entry[idx(u)], entry[idx(v)]});
      if (p.backward[idx(u)] && apart) order.push_back({entry[idx(v)], entry[idx(u)]});
    }
  std::vector<std::vector<int>> next(idx(entries));
  for (auto const& [u, v] : order) next[idx(u)].push_back(v);
  std::vector<int> const part = strong_components(next);
  std::vector<int> number(idx(entries), -1);                          // of components, by their first entry
  std::vector<int> of_entry;
  partitioning_operators r;
  for (int k = 0; k < entries; ++k) {
    int& i = number[idx(part[idx(k)])];
    if (i < 0) i = r.count++;
    of_entry.push_back(i);
  }
  for (int v = 0; v < n; ++v) {
    r.of.push_back(of_entry[idx(entry[idx(v)])]);
    r.apart.push_back(alone[idx(p.colour[idx(v)])]);
  }
  for (auto const& [u, v] : order)
    if (of_entry[idx(u)] != of_entry[idx(v)]) r.order.push_back({of_entry[idx(u)], of_entry[idx(v)]});
  return r;
}

}  // namespace detail

/// The forward operators with the times of the backward operators of their colour; backward operators of a
/// colour without a forward one are operators of their own, in the order's mirror image. Sizes of forward
/// nodes count as parameters. Tensors are measured in the file's unit of time, so the stage model's bandwidth
/// is 1: forward results with their readers, whose gradients are as large; what backward operators exchange
/// besides is not counted. O((V + E) log E).
inline profiled_stages stages_of(dnn_partitioning_profile const& p) {
  detail::partitioning_operators const all = detail::merged_operators(p);
  profiled_stages r;
  r.operators.resize(idx(all.count));
  r.graph.resize(idx(all.count));
  std::vector<std::vector<int>> readers(p.inputs.size());
  for (int v = 0; v < p.node_count(); ++v) {
    search::operator_numbers& x = r.operators[idx(all.of[idx(v)])];
    (p.backward[idx(v)] ? x.backward : x.forward) += p.accelerator[idx(v)];
    if (!p.backward[idx(v)]) x.parameters += p.size[idx(v)];
    for (int u : p.inputs[idx(v)]) readers[idx(u)].push_back(v);
  }
  for (auto const& [u, v] : all.order) r.graph[idx(v)].push_back(u);
  for (auto& list : r.graph) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  for (int v = 0; v < p.node_count(); ++v) {
    int const own = all.of[idx(v)];
    std::vector<int> to;
    for (int u : readers[idx(v)])
      if (int const k = all.of[idx(u)];
          k != own && (!p.backward[idx(u)] || all.apart[idx(u)]))
        to.push_back(k);
    if (p.backward[idx(v)] || to.empty()) continue;
    std::sort(to.begin(), to.end());
    to.erase(std::unique(to.begin(), to.end()), to.end());
    r.tensors.push_back({own, p.send[idx(v)], std::move(to)});
  }
  return r;
}

}  // namespace tensorpar::peers
