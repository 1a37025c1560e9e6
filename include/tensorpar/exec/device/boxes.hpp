// tensorpar/exec/device/boxes.hpp - copying boxes between dense row-major blocks
#pragma once
#include <tensorpar/op/core/block.hpp>

namespace tensorpar::exec {

namespace detail {
/// Visits the contiguous rows of `box` in blocks a and b: f(offset in a, offset in b, length).
template <class F>
void rows_of(op::tensor_block const& box, op::tensor_block const& a, op::tensor_block const& b, F&& f) {
  int const r = box.rank;
  if (r == 0) { f(i64{0}, i64{0}, i64{1}); return; }
  i64 at[shape::max_rank]{}, sa[shape::max_rank], sb[shape::max_rank];
  i64 ta = 1, tb = 1;
  for (int d = r - 1; d >= 0; --d) { sa[d] = ta; sb[d] = tb; ta *= a.local[d]; tb *= b.local[d]; }
  // inner axes that the box spans whole in both blocks make one row
  int inner = r - 1;
  i64 run = box.local[inner];
  while (inner > 0 && box.local[inner] == a.local[inner] && box.local[inner] == b.local[inner]) {
    --inner;
    run *= box.local[inner];
  }
  i64 pa = 0, pb = 0;
  for (int d = 0; d < r; ++d) {
    pa += (box.offset[d] - a.offset[d]) * sa[d];
    pb += (box.offset[d] - b.offset[d]) * sb[d];
  }
  for (;;) {
    f(pa, pb, run);
    int d = inner - 1;
    for (; d >= 0; --d) {
      pa += sa[d];
      pb += sb[d];
      if (++at[d] < box.local[d]) break;
      pa -= sa[d] * box.local[d];
      pb -= sb[d] * box.local[d];
      at[d] = 0;
    }
    if (d < 0) return;
  }
}
}  // namespace detail

/// n numbers side by side.
inline op::tensor_block line_block(i64 n) {
  op::tensor_block b;
  b.rank = 1;
  b.local[0] = b.global[0] = n;
  return b;
}
/// Copies `box` (in logical coordinates, inside both blocks) from one block to another.
template <class S>
void copy_box(op::tensor_block const& box, op::tensor_block const& from, S const* src,
              op::tensor_block const& to, S* dst) {
  detail::rows_of(box, from, to, [&](i64 a, i64 b, i64 n) {
    for (i64 i = 0; i < n; ++i) dst[b + i] = src[a + i];
  });
}
/// Adds instead.
template <class S>
void add_box(op::tensor_block const& box, op::tensor_block const& from, S const* src,
             op::tensor_block const& to, S* dst) {
  detail::rows_of(box, from, to, [&](i64 a, i64 b, i64 n) {
    for (i64 i = 0; i < n; ++i) dst[b + i] = dst[b + i] + src[a + i];
  });
}

}  // namespace tensorpar::exec
