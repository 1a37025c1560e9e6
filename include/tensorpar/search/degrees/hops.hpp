// tensorpar/search/degrees/hops.hpp - how long micro-batches are on their way between a pipeline's groups
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/cost/ask.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/plan/plan.hpp>
#include <tensorpar/search/degrees/configured.hpp>
#include <vector>

namespace tensorpar::search {

namespace detail {

/// A value that goes from a repeated layer to the next, as one replica's devices have it and want it.
struct crossing {
  ir::layout from, to;
  shape logical;
};

/// What the first repeated layer hands to the second. Empty without layers.
inline std::vector<crossing> crossings_of(training_graph const& t, std::vector<op_strategy> const& nodes) {
  std::vector<crossing> r;
  std::vector<value_id> seen;
  computation_graph const& g = t.graph;
  int const block = layers_of(g).first;
  for (int v = 0; block >= 0 && v < t.forward_nodes; ++v) {
    graph_node const& n = g.node(v);
    if (n.block != block || n.repetition != 1) continue;
    for (std::size_t k = 0; k < n.in.size(); ++k) {
      graph_value const& x = g.value(n.in[k]);
      if (x.producer < 0 || std::find(seen.begin(), seen.end(), n.in[k]) != seen.end()) continue;
      graph_node const& made = g.node(x.producer);
      if (made.block != block || made.repetition != 0) continue;
      seen.push_back(n.in[k]);
      auto const sharding = [&](node_id u) -> ir::sharding const& { return nodes[idx(u)].sharding; };
      r.push_back({ir::result_layout(ir::space_of(g, x.producer), made.letters, sharding(x.producer), x.slot),
                   ir::operand_layout(ir::space_of(g, v), n.letters, sharding(v), static_cast<int>(k)),
                   x.type});
    }
  }
  return r;
}

/// Seconds of a micro-batch between the groups of a pipeline: of the lane that transfers use longest, and on
/// the way through all chunks and back.
struct hop_seconds {
  double busy = 0, way = 0;
};

/// Gradients go back as values come. Each group hands on once a chunk, the last one to the first again but
/// for the last chunk. Both ends of a transfer are busy. O(groups * crossings) questions.
template <cost::cost_model M>
hop_seconds hops_of(std::vector<crossing> const& crossings, parallel_config const& c, machine const& on,
                    M const& model, i64 scalar_bytes) {
  hop_seconds r;
  if (c.pipeline == 1) return r;
  int const each = c.data * c.tensor;
  std::vector<double> seconds;                                 // from each group to the next, of all chunks
  std::vector<int> link;
  for (int g = 0; g < c.pipeline; ++g) {
    bool const last = g + 1 == c.pipeline;
    int const from = g * each, to = last ? 0 : from + each;
    double one = 0;
    for (crossing x : crossings) {
      x.from.start = from;
      x.to.start = to;
      for (ir::reshard_step const& s : ir::reshard(x.from, x.to, x.logical))
        one += cost::detail::ask(model, cost::reshard_query{s, x.logical, scalar_bytes, on});
    }
    seconds.push_back(2 * one * (c.virtual_stages - last));
    link.push_back(on.level_joining(std::min(from, to), std::max(from, to) + each - 1));
    r.way += seconds.back();
  }
  for (std::size_t g = 0; g < seconds.size(); ++g) {
    std::size_t const before = (g + seconds.size() - 1) % seconds.size();
    bool const together = on.communication_lanes() == 1 || link[g] == link[before];
    double const in = seconds[before], out = seconds[g];
    r.busy = std::max(r.busy, together ? in + out : std::max(in, out));
  }
  return r;
}

}  // namespace detail

}  // namespace tensorpar::search
