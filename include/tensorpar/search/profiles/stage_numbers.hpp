// tensorpar/search/profiles/stage_numbers.hpp - a profile's numbers as a stage model's: what `additive_stages` takes
#pragma once
#include <tensorpar/search/profiles/dnn_partitioning.hpp>
#include <tensorpar/search/profiles/pipedream.hpp>
#include <tensorpar/search/profiles/piper.hpp>
#include <tensorpar/search/stages/additive.hpp>

namespace tensorpar {

/// Operators, the tensors between them, and their graph. "Sample": what was profiled, a micro-batch or a mini-batch.
struct profiled_stages {
  std::vector<std::vector<int>> graph;          // predecessor lists
  std::vector<operator_numbers> operators;
  std::vector<stage_tensor> tensors;
};

/// Layers with forward and backward times; a layer's activations are what it sends and what it keeps. O(V + E).
inline profiled_stages stages_of(pipedream_profile const& p) {
  profiled_stages r{p.inputs, {}, {}};
  for (std::size_t v = 0; v < p.inputs.size(); ++v) {
    operator_numbers x;
    x.forward = p.forward[v];
    x.backward = p.backward[v];
    x.parameters = p.parameter[v];
    x.kept = p.activation[v];
    r.operators.push_back(x);
  }
  r.tensors = tensors_of(r.graph, p.activation);
  return r;
}

/// The configurations "vanilla" on one device (the first one there). The file has one time for both passes: a third of it counts as
/// forward. Edges with equal bytes out of one node are one tensor. Throws `error` where a node has none for one device. O(V + E).
inline profiled_stages stages_of(piper_profile const& p) {
  profiled_stages r{p.inputs, {}, {}};
  for (std::size_t v = 0; v < p.inputs.size(); ++v) {
    if (p.degrees[v].empty() || p.degrees[v].front().degree != 1 || p.degrees[v].front().ways.empty())
      throw error("a node without a configuration for one device", "node " + std::to_string(p.id[v]), "\"TMPCs\" with \"1\"");
    piper_configuration const& c = p.degrees[v].front().ways.front();
    operator_numbers x;
    x.forward = c.seconds / 3;
    x.backward = c.seconds - x.forward;
    x.parameters = c.parameters;
    x.kept = c.per_sample;
    r.operators.push_back(x);
    std::size_t const own = r.tensors.size();            // this node's tensors stand from here
    for (int e : p.out[v]) {
      piper_edge const& edge = p.edges[static_cast<std::size_t>(e)];
      stage_tensor* same = nullptr;
      for (std::size_t t = own; t < r.tensors.size(); ++t) if (r.tensors[t].bytes == edge.bytes) same = &r.tensors[t];
      if (!same) same = &r.tensors.emplace_back(stage_tensor{static_cast<int>(v), edge.bytes, {}});
      same->consumers.push_back(edge.to);
    }
  }
  for (stage_tensor& t : r.tensors) std::sort(t.consumers.begin(), t.consumers.end());
  return r;
}

/// The forward operators with the times of the backward operators of their colour. Sizes count as parameters; tensors are measured in the
/// file's unit of time, so the stage model's bandwidth is 1. Throws `error` where a backward operator's colour has no forward operator:
/// such graphs can be priced by `price_max_load` only. O(V + E).
inline profiled_stages stages_of(dnn_partitioning_profile const& p) {
  std::size_t const n = p.inputs.size();
  std::vector<int> number(n, -1), of_colour(static_cast<std::size_t>(p.colours), -1);
  profiled_stages r;
  std::vector<double> send;
  for (std::size_t v = 0; v < n; ++v) {
    if (p.backward[v]) continue;
    number[v] = static_cast<int>(r.operators.size());
    if (int& c = of_colour[static_cast<std::size_t>(p.colour[v])]; c < 0) c = number[v];
    operator_numbers x;
    x.forward = p.accelerator[v];
    x.parameters = p.size[v];
    r.operators.push_back(x);
    send.push_back(p.send[v]);
  }
  r.graph.resize(r.operators.size());
  for (std::size_t v = 0; v < n; ++v) {
    if (number[v] < 0) {
      int const mate = of_colour[static_cast<std::size_t>(p.colour[v])];
      if (mate < 0)
        throw error("a backward operator whose colour has no forward operator", "node " + std::to_string(p.id[v]),
                    "a colourClass that it shares with a forward operator");
      r.operators[static_cast<std::size_t>(mate)].backward += p.accelerator[v];
      continue;
    }
    for (int u : p.inputs[v]) r.graph[static_cast<std::size_t>(number[v])].push_back(number[static_cast<std::size_t>(u)]);
  }
  r.tensors = tensors_of(r.graph, send);
  return r;
}

}  // namespace tensorpar
