// tensorpar/program/overwritten.hpp - results that take the bytes of an operand
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/computation_graph.hpp>
#include <tensorpar/program/core/program.hpp>

namespace tensorpar::passes {

/// The buffer whose bytes a task's first result may take once nothing else reads it, by the node's `in_place`
/// or the operator's `overwrites` (op/core/concepts.hpp); -1: there is none. So the gradient of logits, often
/// a step's largest values, lies where they lay. What the host or another step left is never written.
inline int overwritten(computation_graph const& g, program const& p, task const& t) {
  int const k = g.node(t.node).in_place ? 0 : t.op.op->overwrites;
  if (k < 0 || idx(k) >= t.in.size() || t.out.empty()) return -1;
  int const from = t.in[idx(k)];
  buffer const &x = p.buffers[idx(from)], &y = p.buffers[idx(t.out[0])];
  bool const made = x.value >= 0 && g.value(x.value).producer >= 0 && !x.persistent && !y.persistent;
  bool const alike = x.type == y.type && x.where == y.where && x.devices == y.devices;
  return made && alike && std::count(t.in.begin(), t.in.end(), from) == 1 ? from : -1;
}

}  // namespace tensorpar::passes
