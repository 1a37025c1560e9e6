// tensorpar/exec/attention_heads.hpp - how the heads of a block of attention lie in memory
#pragma once
#include <cmath>
#include <tensorpar/exec/scalar.hpp>
#include <tensorpar/op/block.hpp>

namespace tensorpar::detail {

/// One head of one batch element at a time; the block may hold some heads and some queries.
template <class Scalar> struct attention_heads {
  i64 batches, queries, keys, width, head, first_query;
  Scalar factor;                                               // 1 / sqrt(head width)
  bool causal;
  attention_heads(tensor_block const& q, tensor_block const& k, i64 heads, bool masked)
      : batches(q.local[0]), queries(q.local[1]), keys(k.local[1]), width(q.local[2]), head(q.global[2] / heads), first_query(q.offset[1]),
        factor(scalar_traits<Scalar>::from_double(1 / std::sqrt(static_cast<double>(head)))), causal(masked) {}
  /// Keys that query i sees.
  constexpr i64 seen(i64 i) const { return causal && first_query + i + 1 < keys ? first_query + i + 1 : keys; }
  /// Calls visit(where its queries begin, where its keys begin) for every head of every batch element.
  template <class Visit> void each_head(Visit&& visit) const {
    for (i64 b = 0; b < batches; ++b)
      for (i64 h = 0; h * head < width; ++h) visit(b * queries * width + h * head, b * keys * width + h * head);
  }
};

}  // namespace tensorpar::detail
