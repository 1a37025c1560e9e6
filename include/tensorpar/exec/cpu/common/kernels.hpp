// tensorpar/exec/cpu/common/kernels.hpp - how an operator gets its kernel, and the few helpers that all
// kernels share
#pragma once
#include <cassert>
#include <cstdint>
#include <string>
#include <tensorpar/core/error.hpp>
#include <tensorpar/exec/cpu/common/kernels_gemm.hpp>
#include <tensorpar/exec/device/kernel.hpp>
#include <tensorpar/exec/device/scalar.hpp>

namespace tensorpar::exec {

/// The kernel of one operator over one scalar: `run(call, op)`, and where scratch memory is needed
/// `workspace(op, in, out)` in scalars, from local shapes. The operators of op/ have specialisations in
/// kernels_*.hpp. Your own operator brings its kernel along as a static member template `template <class
/// Scalar> static void compute(kernel_call const&, Op const&)`, and maybe a member
/// `i64 workspace(shapes in, shapes out) const`.
template <class Scalar, class Op> struct kernel {
  static constexpr bool given = requires(kernel_call const& c, Op const& op) {
    Op::template compute<Scalar>(c, op);
  };
  static_assert(
      given,
      "tensorpar: this operator has no kernel: give it `template <class Scalar> static void "
      "compute(kernel_call const&, Op const&)`");
  static void run(kernel_call const& c, Op const& op) {
    if constexpr (given) Op::template compute<Scalar>(c, op);
  }
  static i64 workspace(Op const& op, shapes in, shapes out) {
    if constexpr (requires { op.workspace(in, out); }) return op.workspace(in, out);
    else return 0;
  }
};

namespace detail {
template <class Element> Element const* operand(kernel_call const& c, int k) {
  return static_cast<Element const*>(c.in[k]);
}
template <class Element> Element* result(kernel_call const& c, int k = 0) {
  return static_cast<Element*>(c.out[k]);
}

inline i64 last_extent(op::tensor_block const& b) { return b.rank ? b.local[b.rank - 1] : 1; }
inline i64 row_count(op::tensor_block const& b) {
  i64 e = 1;
  for (int i = 0; i + 1 < b.rank; ++i) e *= b.local[i];
  return e;
}
/// Distance of neighbours along an axis, in elements.
inline i64 stride_of(op::tensor_block const& b, int axis_no) {
  i64 e = 1;
  for (int i = axis_no + 1; i < b.rank; ++i) e *= b.local[i];
  return e;
}

/// An index that a user's data must keep within [0, end).
inline i64 checked_index(std::int32_t i, i64 end, char const* what, kernel_call const& c) {
  if (i < 0 || i >= end)
    throw error(std::string(what) + " " + std::to_string(i) + " is out of range", std::string(c.op->op->name),
                "0 to " + std::to_string(end - 1));
  return i;
}

/// Calls visit(local offset, logical offset, length) for every contiguous last-axis run of a block, in
/// row-major order.
template <class Visit> void each_run(op::tensor_block const& b, Visit&& visit) {
  i64 const length = last_extent(b), rows = row_count(b);
  if (length == 0) return;
  i64 at[shape::max_rank]{};
  for (i64 r = 0; r < rows; ++r) {
    i64 logical = 0;
    for (int i = 0; i + 1 < b.rank; ++i) logical = (logical + b.offset[i] + at[i]) * b.global[i + 1];
    if (b.rank) logical += b.offset[b.rank - 1];
    visit(r * length, logical, length);
    for (int i = b.rank - 2; i >= 0 && ++at[i] == b.local[i]; --i) at[i] = 0;
  }
}
}  // namespace detail

}  // namespace tensorpar::exec
