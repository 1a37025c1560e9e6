// tensorpar/search/pipeline/stage_tensors.hpp - what operators of a training step pass on, what they keep,
// and which serve weights alone
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/cost/concepts.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>
#include <tensorpar/search/pipeline/batch_axes.hpp>
#include <tensorpar/search/pipeline/stages/stage_model.hpp>
#include <utility>
#include <vector>

namespace tensorpar::search::detail {

/// By node: a backward node serves weights unless another operator's backward nodes read what it makes, or a
/// node of its own that serves others. O(operands).
inline std::vector<char> serving_weights(training_graph const& t) {
  std::vector<std::vector<int>> readers(t.graph.values.size());
  for (int u = 0; u < t.graph.node_count(); ++u)
    for (int x : t.graph.node(u).in) readers[idx(x)].push_back(u);
  std::vector<char> serves(t.graph.nodes.size(), 1);
  for (int u = t.graph.node_count() - 1; u >= t.forward_nodes; --u)
    for (int x : t.graph.node(u).out)
      for (int r : readers[idx(x)]) {
        graph_node const& reader = t.graph.node(r);
        bool const another = reader.origin != t.graph.node(u).origin || !serves[idx(r)];
        if (reader.phase == step_phase::backward && another) serves[idx(u)] = 0;
      }
  return serves;
}

/// Does a backward node leave its result in an operand's place: a sum, or one that overwrites an operand that
/// no later node reads? O(operands) where it may.
inline bool takes_place(training_graph const& t, int u) {
  graph_node const& n = t.graph.node(u);
  int const k = n.op.op->overwrites;
  if (k < 0 || idx(k) >= n.in.size()) return n.op.is<add>();
  value_id const x = n.in[idx(k)];
  bool read = t.graph.value(x).producer < 0;
  for (int w = u + 1; w < t.graph.node_count() && !read; ++w) {
    auto const& in = t.graph.node(w).in;
    read = std::find(in.begin(), in.end(), x) != in.end();
  }
  return !read;
}

/// Tensors that forward operators read of one another, and by operator the bytes per sample that the backward
/// pass reads of its results. O(operands).
inline std::pair<std::vector<stage_tensor>, std::vector<double>> stage_tensors_of(training_graph const& t,
                                                                                  batch_axes const& batch,
                                                                                  i64 scalar_bytes) {
  std::vector<stage_tensor> tensors;
  std::vector<double> kept(idx(t.forward_nodes), 0);
  std::vector<std::vector<int>> consumers(t.graph.values.size());
  std::vector<char> saved(t.graph.values.size(), 0);
  for (int u = 0; u < t.graph.node_count(); ++u)
    for (int x : t.graph.node(u).in) {
      if (u >= t.forward_nodes) saved[idx(x)] = 1;
      else if (auto& c = consumers[idx(x)]; c.empty() || c.back() != u) c.push_back(u);
    }
  for (int v = 0; v < t.forward_nodes; ++v)
    for (int x : t.graph.node(v).out) {
      double const each = cost::bytes_of(t.graph.type(x), scalar_bytes) / static_cast<double>(batch.own());
      if (saved[idx(x)] && batch.has_batch(x)) kept[idx(v)] += each;
      if (!consumers[idx(x)].empty())
        tensors.push_back({v, each, consumers[idx(x)]});
    }
  return {std::move(tensors), std::move(kept)};
}

}  // namespace tensorpar::search::detail
