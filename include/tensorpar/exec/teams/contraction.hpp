// tensorpar/exec/teams/contraction.hpp - team kernels that sum over an index: batches of matrix products, or sums by elements
#pragma once
#include <tensorpar/exec/contraction_loops.hpp>
#include <tensorpar/exec/teams/kernel.hpp>

namespace tensorpar {

namespace detail {
/// Any number of operands: for every element of the result, the sum of their products over the loops that the result lacks.
template <class Scalar> struct contract_at {
  struct turn {
    i64 extent, out, in[loop::max_in];
  };
  Scalar const* x[loop::max_in];
  Scalar* y;
  int operands, kept, summed;
  turn t[contraction_loops::max];            // kept ones first
  i64 terms;

  contract_at(kernel_call const& c, contraction_loops const& all)
      : x{}, y(result<Scalar>(c)), operands(all.operands), kept(0), summed(0), t{}, terms(1) {
    for (int k = 0; k < operands; ++k) x[k] = operand<Scalar>(c, k);
    for (bool wanted : {true, false})
      for (int i = 0; i < all.n; ++i) {
        contraction_loop const& l = all.l[i];
        if (l.kept != wanted) continue;
        turn& to = t[kept + summed];
        to.extent = l.extent;
        to.out = l.out;
        for (int k = 0; k < operands; ++k) to.in[k] = l.in[k];
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
  constexpr Scalar term(i64 at, i64 k) const {
    Scalar r(1);
    for (int o = 0; o < operands; ++o) {
      i64 rest = k, place_in = 0;
      for (int i = kept + summed - 1; i >= kept; rest /= t[i--].extent) place_in += rest % t[i].extent * t[i].in[o];
      rest = at;
      for (int i = kept - 1; i >= 0; rest /= t[i--].extent) place_in += rest % t[i].extent * t[i].in[o];
      r = r * x[o][place_in];
    }
    return r;
  }
  constexpr void operator()(i64 at) const {
    Scalar s(0);
    for (i64 k = 0; k < terms; ++k) s += term(at, k);
    y[place(at)] = s;
  }
  template <class Team> constexpr void operator()(i64 at, Team const& team) const {
    Scalar const s = team.template sum<Scalar>(terms, [&](i64 k) { return term(at, k); });
    team.alone([&] { y[place(at)] = s; });
  }
};
template <class Scalar, class Device> void contract_by_elements(Device const& d, kernel_call const& c, contraction_loops const& all) {
  contract_at<Scalar> const f(c, all);
  if (f.terms >= 256) d.teams(f.results(), f);
  else d.each(f.results(), f);
}

template <class Scalar, class Device> void contract_on(Device const& d, kernel_call const& c, loops const& notation) {
  contraction_loops const all(c, notation);
  product_choice const p = c.inputs == 2 ? choose_product(all) : product_choice{};
  if (p.work <= 1) return contract_by_elements<Scalar>(d, c, all);
  unsigned taken = 0;
  auto const loop_of = [&](int i) {
    if (i < 0) return contraction_loop{1, 0, {}, false, {}};
    taken |= 1u << i;
    return all.l[i];
  };
  contraction_loop const m = loop_of(p.m), n = loop_of(p.n), k = loop_of(p.k);
  matrix_products<Scalar> product;
  // the two longest of the result's other loops make the batch
  for (auto& b : product.batch) {
    int longest = -1;
    for (int i = 0; i < all.n; ++i)
      if (!(taken >> i & 1) && all.l[i].kept && (longest < 0 || all.l[i].extent > all.l[longest].extent)) longest = i;
    contraction_loop const l = loop_of(longest);
    b = {l.extent, l.in[0], l.in[1], l.out};
  }
  auto const step = [](i64 s) { return s ? s : 1; };
  turn_outer(all, taken, [&](i64 out, i64 const* in, bool first) {
    product.m = m.extent;
    product.n = n.extent;
    product.k = k.extent;
    product.a = {operand<Scalar>(c, 0) + in[0], step(m.in[0]), step(k.in[0])};
    product.b = {operand<Scalar>(c, 1) + in[1], step(k.in[1]), step(n.in[1])};
    product.c = {result<Scalar>(c) + out, step(m.out), step(n.out)};
    product.accumulate = !first;
    d.template product<Scalar>(product);
  });
}
/// One product of matrices that are dense or transposed.
template <class Scalar> matrix_products<Scalar> one_product(i64 m, i64 n, i64 k, matrix_view<Scalar const> a, matrix_view<Scalar const> b,
                                                            matrix_view<Scalar> c, bool accumulate = false) {
  matrix_products<Scalar> p;
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
  template <class Device> static void run(Device const& d, kernel_call const& c, contraction const& op) {
    detail::contract_on<Scalar>(d, c, parse_notation(op.spelled().view()));
  }
};
template <class Scalar> struct team_kernel<Scalar, linear> {
  template <class Device> static void run(Device const& d, kernel_call const& c, linear const& op) {
    i64 const rows = detail::row_count(c.in_block[0]), in = detail::last_extent(c.in_block[0]), out = detail::last_extent(c.out_block[0]);
    Scalar* y = detail::result<Scalar>(c);
    d.template product<Scalar>(detail::one_product<Scalar>(rows, out, in, {detail::operand<Scalar>(c, 0), in, 1},
                                                           {detail::operand<Scalar>(c, 1), 1, in}, {y, out, 1}));
    if (op.bias && c.first_share) d.each(rows * out, detail::add_vector_at<Scalar>{detail::operand<Scalar>(c, 2), y, out, 1});
  }
};
template <class Scalar> struct team_kernel<Scalar, matmul> {
  template <class Device> static void run(Device const& d, kernel_call const& c, matmul const& op) {
    tensor_block const &a = c.in_block[0], &y = c.out_block[0];
    i64 const m = y.local[y.rank - 2], n = y.local[y.rank - 1], k = a.local[a.rank - (op.transpose_a ? 2 : 1)];
    auto p = detail::one_product<Scalar>(m, n, k, {detail::operand<Scalar>(c, 0), op.transpose_a ? 1 : k, op.transpose_a ? m : 1},
                                         {detail::operand<Scalar>(c, 1), op.transpose_b ? 1 : n, op.transpose_b ? k : 1},
                                         {detail::result<Scalar>(c), n, 1});
    p.batch[0] = {y.elements() / (m * n), m * k, k * n, m * n};
    d.template product<Scalar>(p);
  }
};

}  // namespace tensorpar
