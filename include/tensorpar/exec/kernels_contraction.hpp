// tensorpar/exec/kernels_contraction.hpp - kernels that sum over an index: every contraction is cut into matrix products without copies
#pragma once
#include <tensorpar/exec/eigen_gemm.hpp>
#include <tensorpar/exec/kernels.hpp>
#include <tensorpar/op/contraction.hpp>

namespace tensorpar {

namespace detail {
/// A loop of a contraction: its extent, and how far one turn moves in the result and in each operand (0 where it is absent).
struct contraction_loop {
  i64 extent, out;
  i64 in[loop::max_in];
  bool kept;                                                   // in the result
  bool reads[loop::max_in];
};

/// The loops of a contraction over local blocks; neighbours that every tensor walks through without a gap are joined.
struct contraction_loops {
  static constexpr int max = loops::max_loops;
  int n = 0, operands = 0;
  contraction_loop l[max];

  explicit contraction_loops(kernel_call const& c, loops const& p) : operands(c.inputs) {
    for (int i = 0; i < p.n; ++i) {
      contraction_loop x{1, 0, {}, !p.l[i].reduced, {}};
      for (int k = 0; k < operands; ++k) {
        if (p.l[i].in[k] < 0) continue;
        x.extent = c.in_block[k].local[p.l[i].in[k]];
        x.in[k] = stride_of(c.in_block[k], p.l[i].in[k]);
        x.reads[k] = true;
      }
      if (x.kept) x.out = stride_of(c.out_block[0], p.l[i].out[0]);
      if (x.extent != 1) l[n++] = x;
    }
    for (bool joined = true; joined;) {
      joined = false;
      for (int i = 0; i < n && !joined; ++i)
        for (int j = 0; j < n && !joined; ++j)
          if (i != j && nests(l[i], l[j])) {
            l[j].extent *= l[i].extent;
            for (int k = i; k + 1 < n; ++k) l[k] = l[k + 1];
            --n;
            joined = true;
          }
    }
  }
  /// Is one turn of x exactly all turns of y, in every tensor?
  bool nests(contraction_loop const& x, contraction_loop const& y) const {
    if (x.kept != y.kept || x.out != y.out * y.extent) return false;
    for (int k = 0; k < operands; ++k) if (x.reads[k] != y.reads[k] || x.in[k] != y.in[k] * y.extent) return false;
    return true;
  }
};

/// Turns all loops but those in `skip` (a bit mask) and calls visit(out offset, in offsets, first): first says whether no skipped-over
/// reduction has turned yet, so the result is to be overwritten. Loops of the result turn slowest, so each piece of it is finished before
/// the next.
template <class Visit> void turn_outer(contraction_loops const& c, unsigned skip, Visit&& visit) {
  int order[contraction_loops::max], n = 0;
  for (int pass = 0; pass < 2; ++pass)
    for (int i = 0; i < c.n; ++i) if (!(skip >> i & 1) && c.l[i].kept == (pass == 0)) order[n++] = i;
  i64 at[contraction_loops::max]{}, out = 0, in[loop::max_in]{};
  for (;;) {
    bool first = true;
    for (int i = 0; i < n; ++i) first = first && (c.l[order[i]].kept || at[i] == 0);
    visit(out, in, first);
    int i = n - 1;
    for (; i >= 0; --i) {
      contraction_loop const& x = c.l[order[i]];
      i64 const step = ++at[i] < x.extent ? 1 : 1 - x.extent;
      out += step * x.out;
      for (int k = 0; k < c.operands; ++k) in[k] += step * x.in[k];
      if (step == 1) break;
      at[i] = 0;
    }
    if (i < 0) return;
  }
}

/// One operand: sums over what the result lacks. Four or more operands never occur in derivatives, but are right: plain loops.
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

/// Which loops one matrix product takes: rows of the first operand, columns of the second, and the summed one; -1: none.
struct product_choice {
  int m = -1, n = -1, k = -1;
  i64 work = 0;
};
inline product_choice choose_product(contraction_loops const& c) {
  product_choice best;
  auto unit = [](i64 s) { return s == 0 || s == 1; };
  for (int m = -1; m < c.n; ++m) {
    if (m >= 0 && !(c.l[m].kept && c.l[m].reads[0] && !c.l[m].reads[1])) continue;
    for (int n = -1; n < c.n; ++n) {
      if (n >= 0 && !(c.l[n].kept && !c.l[n].reads[0] && c.l[n].reads[1])) continue;
      for (int k = -1; k < c.n; ++k) {
        if (k >= 0 && !(!c.l[k].kept && c.l[k].reads[0] && c.l[k].reads[1])) continue;
        i64 const am = m < 0 ? 0 : c.l[m].in[0], ak = k < 0 ? 0 : c.l[k].in[0], bk = k < 0 ? 0 : c.l[k].in[1],
                  bn = n < 0 ? 0 : c.l[n].in[1];
        i64 const cm = m < 0 ? 0 : c.l[m].out, cn = n < 0 ? 0 : c.l[n].out;
        if (!(unit(am) || unit(ak)) || !(unit(bk) || unit(bn)) || !(unit(cm) || unit(cn))) continue;
        i64 const work = (m < 0 ? 1 : c.l[m].extent) * (n < 0 ? 1 : c.l[n].extent) * (k < 0 ? 1 : c.l[k].extent);
        if (work > best.work) best = {m, n, k, work};
      }
    }
  }
  return best;
}

template <class Scalar> void contract(kernel_call const& c, loops const& notation) {
  contraction_loops const all(c, notation);
  if (c.inputs != 2) return contract_plainly<Scalar>(c, all);
  product_choice const p = choose_product(all);
  if (p.work <= 1) return contract_plainly<Scalar>(c, all);
  contraction_loop const none{1, 0, {}, false, {}};
  contraction_loop const &m = p.m < 0 ? none : all.l[p.m], &n = p.n < 0 ? none : all.l[p.n], &k = p.k < 0 ? none : all.l[p.k];
  unsigned const taken = (p.m < 0 ? 0u : 1u << p.m) | (p.n < 0 ? 0u : 1u << p.n) | (p.k < 0 ? 0u : 1u << p.k);
  auto step = [](i64 s) { return s ? s : 1; };
  turn_outer(all, taken, [&](i64 out, i64 const* in, bool first) {
    multiply<Scalar>(m.extent, n.extent, k.extent, {operand<Scalar>(c, 0) + in[0], step(m.in[0]), step(k.in[0])},
                     {operand<Scalar>(c, 1) + in[1], step(k.in[1]), step(n.in[1])}, {result<Scalar>(c) + out, step(m.out), step(n.out)},
                     !first);
  });
}
}  // namespace detail

template <class Scalar> struct kernel<Scalar, contraction> {
  static void run(kernel_call const& c, contraction const& op) { detail::contract<Scalar>(c, parse_notation(op.spelled().view())); }
};

template <class Scalar> struct kernel<Scalar, linear> {
  static void run(kernel_call const& c, linear const& op) {
    i64 const rows = detail::row_count(c.in_block[0]), in = detail::last_extent(c.in_block[0]), out = detail::last_extent(c.out_block[0]);
    Scalar* y = detail::result<Scalar>(c);
    multiply<Scalar>(rows, out, in, {detail::operand<Scalar>(c, 0), in, 1}, {detail::operand<Scalar>(c, 1), 1, in}, {y, out, 1});
    if (!op.bias || !c.first_share) return;
    Scalar const* bias = detail::operand<Scalar>(c, 2);
    for (i64 r = 0; r < rows; ++r)
      for (i64 i = 0; i < out; ++i) y[r * out + i] += bias[i];
  }
};

template <class Scalar> struct kernel<Scalar, matmul> {
  static void run(kernel_call const& c, matmul const& op) {
    tensor_block const &a = c.in_block[0], &y = c.out_block[0];
    i64 const m = y.local[y.rank - 2], n = y.local[y.rank - 1], k = a.local[a.rank - (op.transpose_a ? 2 : 1)];
    i64 batches = 1;
    for (int i = 0; i + 2 < y.rank; ++i) batches *= y.local[i];
    Scalar const *p = detail::operand<Scalar>(c, 0), *q = detail::operand<Scalar>(c, 1);
    Scalar* to = detail::result<Scalar>(c);
    for (i64 b = 0; b < batches; ++b)
      multiply<Scalar>(m, n, k, {p + b * m * k, op.transpose_a ? 1 : k, op.transpose_a ? m : 1},
                       {q + b * k * n, op.transpose_b ? 1 : n, op.transpose_b ? k : 1}, {to + b * m * n, n, 1});
  }
};

}  // namespace tensorpar
