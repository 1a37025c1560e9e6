// tensorpar/op/kinds/parallel.hpp - the six operators that shard a tensor and compute nothing (Unity,
// OSDI'22, section 3)
#pragma once
#include <tensorpar/op/core/any_op.hpp>

/// In their own namespace: a user's model has an axis called batch, and <algorithm> a partition.
namespace tensorpar::parallel {

/// All six are the identity on the logical tensor; what they change is its sharding (ir/parallel_graph.hpp).
/// Derivatives: partition <-> combine, replicate <-> reduce, pipeline <-> batch.
#define TENSORPAR_PARALLEL_COMMON(SPELLED)                         \
  static constexpr auto name = SPELLED;                            \
  static constexpr auto notation = "... -> ...";                   \
  constexpr op::inference infer(shapes in) const { return in[0]; } \
  constexpr double flops(shapes, shapes) const { return 0; }       \
  [[gnu::cold]] void derive(auto& g) const;

struct partition {   ///< axis `dim_no` in `degree` equal parts, one per device
  i64 dim_no = 0, degree = 1;
  static constexpr void describe(auto& s, auto&& visit) { visit("dim", s.dim_no); visit("degree", s.degree); }
  TENSORPAR_PARALLEL_COMMON("partition")
};
struct combine {     ///< undoes partition: `degree` parts of axis `dim_no` become one
  i64 dim_no = 0, degree = 1;
  static constexpr void describe(auto& s, auto&& visit) { visit("dim", s.dim_no); visit("degree", s.degree); }
  TENSORPAR_PARALLEL_COMMON("combine")
};
struct replicate {   ///< `degree` identical copies
  i64 degree = 1;
  static constexpr void describe(auto& s, auto&& visit) { visit("degree", s.degree); }
  TENSORPAR_PARALLEL_COMMON("replicate")
};
struct reduce {      ///< adds `degree` partial sums into one tensor
  i64 degree = 1;
  static constexpr void describe(auto& s, auto&& visit) { visit("degree", s.degree); }
  TENSORPAR_PARALLEL_COMMON("reduce")
};
struct pipeline {    ///< the batch axis in `degree` micro-batches, one after the other in time
  i64 dim_no = 0, degree = 1;
  static constexpr void describe(auto& s, auto&& visit) { visit("dim", s.dim_no); visit("degree", s.degree); }
  TENSORPAR_PARALLEL_COMMON("pipeline")
};
struct batch {       ///< undoes pipeline
  i64 dim_no = 0, degree = 1;
  static constexpr void describe(auto& s, auto&& visit) { visit("dim", s.dim_no); visit("degree", s.degree); }
  TENSORPAR_PARALLEL_COMMON("batch")
};
#undef TENSORPAR_PARALLEL_COMMON

void partition::derive(auto& g) const {
  if (g.wanted(0)) g.give(0, g.emit(combine{dim_no, degree}, {g.gradient(0)}));
}
void combine::derive(auto& g) const {
  if (g.wanted(0)) g.give(0, g.emit(partition{dim_no, degree}, {g.gradient(0)}));
}
void replicate::derive(auto& g) const { if (g.wanted(0)) g.give(0, g.emit(reduce{degree}, {g.gradient(0)})); }
void reduce::derive(auto& g) const { if (g.wanted(0)) g.give(0, g.emit(replicate{degree}, {g.gradient(0)})); }
void pipeline::derive(auto& g) const {
  if (g.wanted(0)) g.give(0, g.emit(batch{dim_no, degree}, {g.gradient(0)}));
}
void batch::derive(auto& g) const {
  if (g.wanted(0)) g.give(0, g.emit(pipeline{dim_no, degree}, {g.gradient(0)}));
}

}  // namespace tensorpar::parallel

namespace tensorpar {

constexpr bool is_parallel(op::op_info const& o) {
  return o.id == core::name_hash(parallel::partition::name) ||
      o.id == core::name_hash(parallel::combine::name) ||
         o.id == core::name_hash(parallel::replicate::name) ||
             o.id == core::name_hash(parallel::reduce::name) ||
         o.id == core::name_hash(parallel::pipeline::name) || o.id == core::name_hash(parallel::batch::name);
}
constexpr bool is_parallel(op::any_op const& o) { return o.op && is_parallel(*o.op); }

}  // namespace tensorpar
