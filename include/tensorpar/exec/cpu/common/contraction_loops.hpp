// tensorpar/exec/cpu/common/contraction_loops.hpp - a contraction as nested loops over local blocks, and
// which of them are a matrix product
#pragma once
#include <tensorpar/exec/cpu/common/kernels.hpp>
#include <tensorpar/op/kinds/contraction.hpp>

namespace tensorpar::exec {

namespace detail {
/// A loop of a contraction: its extent, and how far one turn moves in the result and in each operand (0 where
/// it is absent).
struct contraction_loop {
  i64 extent, out;
  i64 in[op::loop::max_in];
  bool kept;                                                   // in the result
  bool reads[op::loop::max_in];
};

/// The loops of a contraction over local blocks; neighbours that every tensor walks through without a gap are
/// joined.
struct contraction_loops {
  static constexpr int max = op::loops::max_loops;
  int n = 0, operands = 0;
  contraction_loop l[max];

  explicit contraction_loops(kernel_call const& c, op::loops const& p) : operands(c.inputs) {
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
    for (int k = 0; k < operands; ++k)
      if (x.reads[k] != y.reads[k] || x.in[k] != y.in[k] * y.extent) return false;
    return true;
  }
};

/// Turns all loops but those in `skip` (a bit mask) and calls visit(out offset, in offsets, first): first
/// says whether no skipped-over reduction has turned yet, so the result is to be overwritten. Loops of the
/// result turn slowest, so each piece of it is finished before the next.
template <class Visit> void turn_outer(contraction_loops const& c, unsigned skip, Visit&& visit) {
  int order[contraction_loops::max], n = 0;
  for (int pass = 0; pass < 2; ++pass)
    for (int i = 0; i < c.n; ++i) if (!(skip >> i & 1) && c.l[i].kept == (pass == 0)) order[n++] = i;
  i64 at[contraction_loops::max]{}, out = 0, in[op::loop::max_in]{};
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

/// Which loops one matrix product takes: rows of the first operand, columns of the second, and the summed
/// one; -1: none.
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
        i64 const work =
            (m < 0 ? 1 : c.l[m].extent) * (n < 0 ? 1 : c.l[n].extent) * (k < 0 ? 1 : c.l[k].extent);
        if (work > best.work) best = {m, n, k, work};
      }
    }
  }
  return best;
}
}  // namespace detail

}  // namespace tensorpar::exec
