// tensorpar/op/core/block.hpp - a device's part of a tensor
#pragma once
#include <tensorpar/op/core/shape.hpp>

namespace tensorpar::op {

/// A device's part of a tensor: a box of the logical tensor, stored row-major and dense. Rank 0: one element.
struct tensor_block {
  int rank = 0;
  dtype type = dtype::f32;
  i64 local[shape::max_rank]{};      // extents of the box
  i64 offset[shape::max_rank]{};     // where it starts in the logical tensor
  i64 global[shape::max_rank]{};     // extents of the logical tensor
  constexpr i64 elements() const { i64 e = 1; for (int i = 0; i < rank; ++i) e *= local[i]; return e; }
  constexpr i64 logical_elements() const {
    i64 e = 1;
    for (int i = 0; i < rank; ++i) e *= global[i];
    return e;
  }
  constexpr shape local_shape() const {
    shape s{};
    s.rank = rank;
    s.type = type;
    for (int i = 0; i < rank; ++i) s.d[i] = dim(local[i]);
    return s;
  }
};

}  // namespace tensorpar::op
