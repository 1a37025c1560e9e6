// tensorpar/exec/teams/kernels/contraction.hpp - team kernels that sum over an index: batches of matrix
// products, or sums by elements
#pragma once
#include <tensorpar/exec/cpu/common/contraction_loops.hpp>
#include <tensorpar/exec/teams/kernels/columns.hpp>

namespace tensorpar::exec {

namespace detail {
/// Any number of operands: for every element of the result, the sum of their products over the loops that the
/// result lacks.
template <class Scalar, class To> struct contract_at {
  struct turn {
    i64 extent, out, in[op::loop::max_in];
  };
  Scalar const* x[op::loop::max_in];
  To* y;
  int operands, kept, summed;
  turn t[contraction_loops::max];            // kept ones first
  i64 terms;
  bool adds;                                 // to what is there

  contract_at(kernel_call const& c, To* to, contraction_loops const& all, bool onto)
      : x{}, y(to), operands(all.operands), kept(0), summed(0), t{}, terms(1), adds(onto) {
    for (int k = 0; k < operands; ++k) x[k] = operand<Scalar>(c, k);
    for (bool wanted : {true, false})
      for (int i = 0; i < all.n; ++i) {
        contraction_loop const& l = all.l[i];
        if (l.kept != wanted) continue;
        turn& next = t[kept + summed];
        next.extent = l.extent;
        next.out = l.out;
        for (int k = 0; k < operands; ++k) next.in[k] = l.in[k];
        ++(wanted ? kept : summed);
        if (!wanted) terms *= l.extent;
      }
  }
  i64 results() const {
    i64 n = 1;
    for (int i = 0; i < kept; ++i) n *= t[i].extent;
    return n;
  }
  constexpr i64 place(i64 at) const {
    i64 out = 0;
    for (int i = kept - 1; i >= 0; at /= t[i--].extent) out += at % t[i].extent * t[i].out;
    return out;
  }
  constexpr computed<Scalar> term(i64 at, i64 k) const {
    computed<Scalar> r(1);
    for (int o = 0; o < operands; ++o) {
      i64 rest = k, place_in = 0;
      for (int i = kept + summed - 1; i >= kept; rest /= t[i--].extent)
        place_in += rest % t[i].extent * t[i].in[o];
      rest = at;
      for (int i = kept - 1; i >= 0; rest /= t[i--].extent) place_in += rest % t[i].extent * t[i].in[o];
      r = r * x[o][place_in];
    }
    return r;
  }
  constexpr void operator()(i64 at) const {
    computed<Scalar> s(0);
    for (i64 k = 0; k < terms; ++k) s += term(at, k);
    store(at, s);
  }
  constexpr void store(i64 at, computed<Scalar> s) const {
    To& to = y[place(at)];
    to = adds ? to + s : s;
  }
  template <class Team> constexpr void operator()(i64 at, Team const& team) const {
    computed<Scalar> const s = team.template sum<computed<Scalar>>(terms, [&](i64 k) { return term(at, k); });
    team.alone([&] { store(at, s); });
  }
};
template <class Scalar, class To, class Device>
void contract_by_elements(Device const& d, kernel_call const& c, To* y, contraction_loops const& all,
                          bool onto) {
  contract_at<Scalar, To> const f(c, y, all, onto);
  if (f.terms >= 256) d.teams(f.results(), f);
  else d.each(f.results(), f);
}

/// The products that a contraction of two operands consists of: the first, and which loops they leave over.
template <class Scalar, class To> struct contraction_products {
  contraction_loops all;
  matrix_products<Scalar, To> first{};
  unsigned taken = 0;
  bool any = false;                          // else it is no product, or of one number
  contraction_products(kernel_call const& c, To* y, op::loops const& notation);
  /// Is it one product and nothing else?
  bool one() const {
    return any && taken == (1u << all.n) - 1 && first.batch[0].extent == 1 && first.batch[1].extent == 1;
  }
};
template <class Scalar, class To>
contraction_products<Scalar, To>::contraction_products(kernel_call const& c, To* y, op::loops const& notation)
    : all(c, notation) {
  product_choice const p = c.inputs == 2 ? choose_product(all) : product_choice{};
  any = p.work > 1;
  if (!any) return;
  auto const loop_of = [&](int i) {
    if (i < 0) return contraction_loop{1, 0, {}, false, {}};
    taken |= 1u << i;
    return all.l[i];
  };
  contraction_loop const m = loop_of(p.m), n = loop_of(p.n), k = loop_of(p.k);
  // the two longest of the result's other loops make the batch
  for (auto& b : first.batch) {
    int longest = -1;
    for (int i = 0; i < all.n; ++i)
      if (!(taken >> i & 1) && all.l[i].kept && (longest < 0 || all.l[i].extent > all.l[longest].extent))
        longest = i;
    contraction_loop const l = loop_of(longest);
    b = {l.extent, l.in[0], l.in[1], l.out};
  }
  auto const step = [](i64 s) { return s ? s : 1; };
  first.m = m.extent;
  first.n = n.extent;
  first.k = k.extent;
  first.a = {operand<Scalar>(c, 0), step(m.in[0]), step(k.in[0])};
  first.b = {operand<Scalar>(c, 1), step(k.in[1]), step(n.in[1])};
  first.c = {y, step(m.out), step(n.out)};
}
/// `onto`: adds to what is there.
template <class Scalar, class To, class Device>
void contract_on(Device const& d, kernel_call const& c, To* y, contraction_products<Scalar, To> const& of,
                 bool onto) {
  if (!of.any) return contract_by_elements<Scalar>(d, c, y, of.all, onto);
  turn_outer(of.all, of.taken, [&](i64 out, i64 const* in, bool first) {
    matrix_products<Scalar, To> p = of.first;
    p.a.p += in[0];
    p.b.p += in[1];
    p.c.p += out;
    p.accumulate = onto || !first;
    d.product(p);
  });
}
template <class Scalar, class To, class Device>
void contract_on(Device const& d, kernel_call const& c, To* y, op::loops const& notation) {
  contract_on(d, c, y, contraction_products<Scalar, To>(c, y, notation), false);
}
/// Is this the sum over all leading axes of one operand, for every element of its last axis? That of a bias'
/// gradient.
constexpr bool sums_to_last_axis(op::loops const& l, int rank) {
  int kept = 0;
  bool last = false;
  for (int i = 0; i < l.n; ++i) {
    if (l.l[i].reduced) continue;
    ++kept;
    last = l.l[i].in[0] == rank - 1;
  }
  return l.operands == 1 && l.results == 1 && kept == 1 && last;
}

/// One product of matrices that are dense or transposed.
template <class Scalar, class Result = Scalar>
matrix_products<Scalar, Result> one_product(i64 m, i64 n, i64 k, matrix_view<Scalar const> a,
                                            matrix_view<Scalar const> b, matrix_view<Result> c,
                                            bool accumulate = false) {
  matrix_products<Scalar, Result> p;
  p.m = m;
  p.n = n;
  p.k = k;
  p.a = a;
  p.b = b;
  p.c = c;
  p.accumulate = accumulate;
  return p;
}
}  // namespace detail

template <class Scalar> struct team_kernel<Scalar, contraction> {
  static constexpr bool multiplies = true;
  static i64 workspace(contraction const& op, shapes in, shapes) {
    if (!detail::sums_to_last_axis(op::parse_notation(op.spelled().view()), in[0].rank)) return 0;
    i64 const columns = in[0].last().n;
    return columns ? detail::column_scratch(in[0].elements() / columns, columns) : 0;
  }
  template <class Device> static void run(Device const& d, kernel_call const& c, contraction const& op) {
    op::loops const notation = op::parse_notation(op.spelled().view());
    detail::by_result<Scalar>(c, [&](auto* y) {
      if (!detail::sums_to_last_axis(notation, c.in_block[0].rank))
        return detail::contract_on<Scalar>(d, c, y, notation);
      i64 const rows = detail::row_count(c.in_block[0]), columns = detail::last_extent(c.in_block[0]);
      detail::sum_columns(d, rows, columns,
                          detail::matrix_term<Scalar>{detail::operand<Scalar>(c, 0), columns},
                          static_cast<computed<Scalar>*>(c.workspace), y);
    });
  }
};
namespace detail {
/// x W^T, and the bias where this device adds it.
template <class Scalar> matrix_products<Scalar> linear_product(kernel_call const& c, bool bias) {
  i64 const rows = row_count(c.in_block[0]), in = last_extent(c.in_block[0]),
            out = last_extent(c.out_block[0]);
  auto p = one_product<Scalar>(rows, out, in, {operand<Scalar>(c, 0), in, 1}, {operand<Scalar>(c, 1), 1, in},
                               {result<Scalar>(c), out, 1});
  if (bias && c.first_share) p.bias = operand<Scalar>(c, 2);
  return p;
}
}  // namespace detail
template <class Scalar> struct team_kernel<Scalar, linear> {
  static constexpr bool multiplies = true;
  template <class Device> static void run(Device const& d, kernel_call const& c, linear const& op) {
    d.product(detail::linear_product<Scalar>(c, op.bias));
  }
};
template <class Scalar> struct team_kernel<Scalar, matmul> {
  static constexpr bool multiplies = true;
  template <class Device> static void run(Device const& d, kernel_call const& c, matmul const& op) {
    op::tensor_block const &a = c.in_block[0], &y = c.out_block[0];
    i64 const m = y.local[y.rank - 2], n = y.local[y.rank - 1],
              k = a.local[a.rank - (op.transpose_a ? 2 : 1)];
    auto p = detail::one_product<Scalar>(
        m, n, k, {detail::operand<Scalar>(c, 0), op.transpose_a ? 1 : k, op.transpose_a ? m : 1},
        {detail::operand<Scalar>(c, 1), op.transpose_b ? 1 : n, op.transpose_b ? k : 1},
        {detail::result<Scalar>(c), n, 1});
    p.batch[0] = {y.elements() / (m * n), m * k, k * n, m * n};
    d.product(p);
  }
};

}  // namespace tensorpar::exec
