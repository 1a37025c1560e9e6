// tensorpar/exec/teams/kernels/fused.hpp - team kernels of fused operators: by the device's library in one,
// or one after the other in place
#pragma once
#include <tensorpar/exec/teams/kernels/contraction.hpp>
#include <tensorpar/exec/teams/kernels/pointwise.hpp>
#include <tensorpar/op/kinds/fused.hpp>

namespace tensorpar::exec {

namespace detail {
/// By the device where it does such things, else by apart().
template <class Device, class Scalar, class Result, class Apart>
void product_with(Device const& d, matrix_products<Scalar, Result> const& p,
                  product_epilogue<Scalar, Result> const& e, Apart const& apart) {
  if constexpr (requires { d.product_with(p, e, apart); }) d.product_with(p, e, apart);
  else apart();
}
}  // namespace detail

template <class Scalar> struct team_kernel<Scalar, op::linear_with> {
  static constexpr bool multiplies = true;
  template <class Device> static void run(Device const& d, kernel_call const& c, op::linear_with const& op) {
    using namespace detail;
    i64 const n = c.out_block[0].elements();
    Scalar* const y = detail::result<Scalar>(c);
    auto p = detail::linear_product<Scalar>(c, op.bias);
    product_epilogue<Scalar> e;
    if (op.plus) e.plus = detail::operand<Scalar>(c, op.bias ? 3 : 2);
    if (e.plus == y) {                         // in place
      p.accumulate = op.plus;
      e.plus = nullptr;
    }
    if (op.then_gelu) {
      e.before = y;
      p.c.p = detail::result<Scalar>(c, 1);
    }
    detail::product_with(d, p, e, [&] {
      auto first = p;
      first.c.p = y;
      d.product(first);
      if (op.then_gelu) d.each(n, detail::map_one_at<Scalar, gelu>{y, detail::result<Scalar>(c, 1)});
      if (e.plus) d.each(n, detail::add_at<Scalar>{y, e.plus, y});
    });
  }
};
template <class Scalar> struct team_kernel<Scalar, op::contraction_with> {
  static constexpr bool multiplies = true;
  /// What sums of columns take.
  static i64 workspace(op::contraction_with const& op, shapes in, shapes) {
    i64 const columns = op.sums ? in[0].last().n : 0;
    return columns ? detail::column_scratch(in[0].elements() / columns, columns) : 0;
  }
  template <class Device>
  static void run(Device const& d, kernel_call const& c, op::contraction_with const& op) {
    using namespace detail;
    kernel_call product = c;
    product.inputs = 2;
    i64 const n = c.out_block[0].elements();
    detail::by_result<Scalar>(c, [&]<class To>(To* y) {
      detail::contraction_products<Scalar, To> const all(product, y,
                                                         op::parse_notation(op.product.spelled().view()));
      product_epilogue<Scalar, To> e;
      To const* const last = detail::operand<To>(c, c.inputs - 1);
      bool const onto = op.plus && last == y;            // in place
      if (op.plus && !onto) e.plus = last;
      if (op.slope) e.slope = last;
      if (op.sums) e.sums = detail::result<To>(c, 1);
      auto const apart = [&] {
        detail::contract_on(d, product, y, all, onto);
        if (e.slope) d.each(n, detail::map_two_at<To, gelu_grad>{y, e.slope, y});
        if (e.plus) d.each(n, detail::add_at<To>{y, e.plus, y});
        if (!e.sums) return;
        i64 const columns = detail::last_extent(c.in_block[0]);
        detail::sum_columns(d, detail::row_count(c.in_block[0]), columns,
                            detail::matrix_term<Scalar>{detail::operand<Scalar>(c, 0), columns},
                    static_cast<computed<Scalar>*>(c.workspace), e.sums);
      };
      if (!all.one()) return apart();
      auto p = all.first;
      p.accumulate = onto;
      detail::product_with(d, p, e, apart);
    });
  }
};

}  // namespace tensorpar::exec
