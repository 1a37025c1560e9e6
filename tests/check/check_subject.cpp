#include "check_subject.hpp"

#include <tensorpar/op/kinds/contraction.hpp>
#include <tensorpar/program/unroll.hpp>

namespace tests {

i64 some_workspace(tensorpar::op::any_op const& o, shapes in, shapes) { return o.is<contraction>() && in.n > 1 ? in[0].elements() : 0; }

subject checked_step(int turn, std::mt19937& draw) {
  computation_graph const g = turn % 3 == 0 ? residual_mlp() : turn % 3 == 1 ? small_cnn() : small_transformer();
  training_options o;
  o.micro_batches = 1 + turn % 4 / 2;
  o.optimizer.kind = static_cast<optimizer_kind>(turn / 3 % 3);
  o.optimizer.clip_norm = turn % 5 == 0 ? 1 : 0;
  static constexpr int devices[] = {1, 2, 3, 4, 6, 8};
  subject s{differentiate(g, o), random_plan(g, devices[turn % 6], draw), {}};
  s.p.micro_batches = o.micro_batches;
  s.p.optimizer = o.optimizer;
  s.q = unroll(s.t, s.p, {some_workspace});
  s.p.peak_bytes = s.q.arena;
  return s;
}

}  // namespace tests
