// tensorpar/exec/cpu/kernels/contraction.hpp - kernels that sum over an index: every contraction is cut into
// matrix products without copies
#pragma once
#include <tensorpar/exec/cpu/common/contraction_loops.hpp>
#include <tensorpar/exec/cpu/common/eigen_gemm.hpp>

namespace tensorpar::exec {

namespace detail {
/// One operand: sums over what the result lacks. Four or more operands never occur in derivatives, but are
/// right: plain loops.
template <class Scalar> void contract_plainly(kernel_call const& c, contraction_loops const& all) {
  Scalar* y = result<Scalar>(c);
  // the innermost loop: the one that walks the first operand (and the result) in steps of one
  int inner = -1;
  for (int i = 0; i < all.n; ++i)
    if (all.l[i].in[0] == 1 && (!all.l[i].kept || all.l[i].out == 1)) inner = i;
  if (all.operands != 1 || inner < 0) {
    turn_outer(all, 0, [&](i64 out, i64 const* in, bool first) {
      Scalar s(1);
      for (int k = 0; k < all.operands; ++k) s = s * operand<Scalar>(c, k)[in[k]];
      y[out] = first ? s : y[out] + s;
    });
    return;
  }
  Scalar const* x = operand<Scalar>(c, 0);
  i64 const n = all.l[inner].extent;
  turn_outer(all, 1u << inner, [&](i64 out, i64 const* in, bool first) {
    Scalar const* __restrict p = x + in[0];
    Scalar* __restrict q = y + out;
    if (!all.l[inner].kept) {
      Scalar const s = sum_of<Scalar>(n, [p](i64 i) { return p[i]; });
      *q = first ? s : *q + s;
    } else if (first) {
      for (i64 i = 0; i < n; ++i) q[i] = p[i];
    } else {
      for (i64 i = 0; i < n; ++i) q[i] += p[i];
    }
  });
}

template <class Scalar> void contract(kernel_call const& c, op::loops const& notation) {
  contraction_loops const all(c, notation);
  if (c.inputs != 2) return contract_plainly<Scalar>(c, all);
  product_choice const p = choose_product(all);
  if (p.work <= 1) return contract_plainly<Scalar>(c, all);
  contraction_loop const none{1, 0, {}, false, {}};
  contraction_loop const &m = p.m < 0 ? none : all.l[p.m], &n = p.n < 0 ? none : all.l[p.n],
                         &k = p.k < 0 ? none : all.l[p.k];
  unsigned const taken = (p.m < 0 ? 0u : 1u << p.m) | (p.n < 0 ? 0u : 1u << p.n) | (p.k < 0 ? 0u : 1u << p.k);
  auto step = [](i64 s) { return s ? s : 1; };
  turn_outer(all, taken, [&](i64 out, i64 const* in, bool first) {
    multiply<Scalar>(m.extent, n.extent, k.extent,
                     {operand<Scalar>(c, 0) + in[0], step(m.in[0]), step(k.in[0])},
                     {operand<Scalar>(c, 1) + in[1], step(k.in[1]), step(n.in[1])},
                     {result<Scalar>(c) + out, step(m.out), step(n.out)}, !first);
  });
}
}  // namespace detail

template <class Scalar> struct kernel<Scalar, contraction> {
  static void run(kernel_call const& c, contraction const& op) {
    detail::contract<Scalar>(c, op::parse_notation(op.spelled().view()));
  }
};

template <class Scalar> struct kernel<Scalar, linear> {
  static void run(kernel_call const& c, linear const& op) {
    i64 const rows = detail::row_count(c.in_block[0]), in = detail::last_extent(c.in_block[0]),
              out = detail::last_extent(c.out_block[0]);
    Scalar* y = detail::result<Scalar>(c);
    multiply<Scalar>(rows, out, in, {detail::operand<Scalar>(c, 0), in, 1},
                     {detail::operand<Scalar>(c, 1), 1, in}, {y, out, 1});
    if (!op.bias || !c.first_share) return;
    Scalar const* bias = detail::operand<Scalar>(c, 2);
    for (i64 r = 0; r < rows; ++r)
      for (i64 i = 0; i < out; ++i) y[r * out + i] += bias[i];
  }
};

template <class Scalar> struct kernel<Scalar, matmul> {
  static void run(kernel_call const& c, matmul const& op) {
    op::tensor_block const &a = c.in_block[0], &y = c.out_block[0];
    i64 const m = y.local[y.rank - 2], n = y.local[y.rank - 1],
              k = a.local[a.rank - (op.transpose_a ? 2 : 1)];
    i64 batches = 1;
    for (int i = 0; i + 2 < y.rank; ++i) batches *= y.local[i];
    Scalar const *p = detail::operand<Scalar>(c, 0), *q = detail::operand<Scalar>(c, 1);
    Scalar* to = detail::result<Scalar>(c);
    for (i64 b = 0; b < batches; ++b)
      multiply<Scalar>(m, n, k, {p + b * m * k, op.transpose_a ? 1 : k, op.transpose_a ? m : 1},
                       {q + b * k * n, op.transpose_b ? 1 : n, op.transpose_b ? k : 1},
                       {to + b * m * n, n, 1});
  }
};

}  // namespace tensorpar::exec
