// tensorpar/simulate/throughput.hpp - what a step amounts to in a second: samples, tokens, share of the
// devices' FLOP/s
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/plan/plan.hpp>
#include <tensorpar/plan/step_fit.hpp>

namespace tensorpar::simulation {

struct throughput {
  double samples = 0, tokens = 0;        // per second, of all devices; tokens: 0 where no input has any
  // of one step: matrix products and attention of a forward and a backward pass, each once. What is
  // recomputed counts nothing, causal attention half of its square
  double model_flops = 0;
  // model FLOPs utilisation: `model_flops` over what the devices' FLOP/s would do meanwhile (Chowdhery et al.
  // 2022, appendix B)
  double mfu = 0;
};

/// FLOPs of a step as `throughput` counts them. O(nodes).
inline double model_flops(training_graph const& t, int micro_batches) {
  double sum = 0;
  std::vector<shape> in, out;
  for (graph_node const& n : t.graph.nodes) {
    if (n.op.op->work == op::work_kind::other || n.in.size() < 2 || n.recomputed) continue;
    if (n.phase != step_phase::forward && n.phase != step_phase::backward) continue;
    in.clear();
    out.clear();
    for (value_id x : n.in) in.push_back(t.graph.type(x));
    for (value_id y : n.out) out.push_back(t.graph.type(y));
    sum += n.op.op->flops(n.op.attr, {in.data(), static_cast<int>(in.size())},
                          {out.data(), static_cast<int>(out.size())});
  }
  return sum * micro_batches;
}

/// Tokens of a sample: the second axis of the first input of integers that has two; 0 without one. O(values).
inline i64 tokens_of(computation_graph const& g) {
  for (graph_value const& v : g.values)
    if (v.role == value_role::input && v.type.rank == 2 && is_integer(v.type.type)) return v.type.d[1].n;
  return 0;
}

/// Of a step that takes so many seconds. `t`: the graph of the step, with a pipeline or without; `p`: its
/// plan. Precondition: seconds > 0. O(nodes + devices).
inline throughput throughput_of(training_graph const& t, plan const& p, double seconds) {
  throughput r;
  i64 const samples = p.batch > 0 ? p.batch : samples_of(t.graph) * p.micro_batches;
  r.samples = static_cast<double>(samples) / seconds;
  r.tokens = r.samples * static_cast<double>(tokens_of(t.graph));
  r.model_flops = model_flops(t, p.micro_batches);
  double rate = 0;
  for (int d = 0; d < p.cluster.size(); ++d) rate += p.cluster.kind_of(d).flops;
  r.mfu = r.model_flops / (seconds * rate);
  return r;
}

}  // namespace tensorpar::simulation
