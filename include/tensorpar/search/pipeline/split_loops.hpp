// tensorpar/search/pipeline/split_loops.hpp - the loop along which a stage's operator is tensor parallel, and
// what a transfer between stages costs
#pragma once
#include <tensorpar/cost/ask.hpp>
#include <tensorpar/cost/concepts.hpp>
#include <tensorpar/ir/iteration_space.hpp>
#include <tensorpar/search/pipeline/batch_axes.hpp>

namespace tensorpar::search::detail {

/// The first loop that operator v's parameters share with its result and that carries no samples; '\0': none.
inline char tensor_parallel_loop(computation_graph const& g, int v, batch_axes const& batch) {
  graph_node const& n = g.node(v);
  for (ir::node_loop const& l : ir::space_of(g, v).loops) {
    bool weight = false, samples = false;
    for (std::size_t k = 0; k < n.in.size(); ++k)
      if (l.in[k] >= 0) {
        weight = weight || g.value(n.in[k]).role == value_role::parameter;
        samples = samples || batch.is_batch(n.in[k], l.in[k]);
      }
    if (weight && !samples && !l.reduced && l.out.front() >= 0 && l.units > 1) return l.letter;
  }
  return '\0';
}

/// Seconds of a transfer: alpha + beta * bytes.
struct transfer_line {
  double alpha = 0, beta = 0;
};
/// As between device 0 and `other`; nothing where that is no other device.
template <class C>
transfer_line transfer_line_to(int other, C const& cost, machine const& on, i64 scalar_bytes) {
  if (other < 1) return {};
  auto const seconds = [&](i64 elements) {
    ir::reshard_step step;
    step.before = {0, {}};
    step.after = {other, {}};
    return cost::detail::ask(cost, cost::reshard_query{step, shape{dim(elements)}, scalar_bytes,
                                                                  on});
  };
  double const few = seconds(1), many = seconds(1 << 22);
  return {few, (many - few) / (static_cast<double>((1 << 22) - 1) * static_cast<double>(scalar_bytes))};
}

}  // namespace tensorpar::search::detail
