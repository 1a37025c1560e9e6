// tensorpar/exec/teams/kernels/loss.hpp - team kernels of losses: a device's share of a mean over all logical
// elements
#pragma once
#include <tensorpar/exec/cpu/kernels/loss.hpp>
#include <tensorpar/exec/teams/kernels/rows.hpp>

namespace tensorpar::exec {

namespace detail {
/// log(sum(exp(x))) - x[label], by row.
template <class Scalar> struct row_loss_at {
  Scalar const* logits;
  std::int32_t const* label;
  computed<Scalar>* to;
  i64 n;
  index_check check;
  constexpr i64 length() const { return n; }
  template <class Team> constexpr void operator()(i64 r, Team const& team) const {
    using traits = scalar_traits<Scalar>;
    Scalar const* x = logits + r * n;
    auto const s = team_softmax_sum(x, n, team);
    team.alone([&] { to[r] = s.top + traits::log(s.sum) - x[check(label[r])]; });
  }
};
template <class Scalar> struct value_term {
  Scalar const* x;
  constexpr Scalar operator()(i64 i) const { return x[i]; }
};
template <class Scalar> struct squared_difference_term {
  Scalar const *a, *b;
  constexpr computed<Scalar> operator()(i64 i) const { return (a[i] - b[i]) * (a[i] - b[i]); }
};
template <class Scalar> struct cross_entropy_grad_at {
  computed<Scalar> const* dy;
  Scalar const* logits;
  std::int32_t const* label;
  Scalar* to;
  i64 n;
  computed<Scalar> share;
  index_check check;
  constexpr i64 length() const { return n; }
  template <class Team> constexpr void operator()(i64 r, Team const& team) const {
    Scalar* y = to + r * n;
    Scalar const* x = logits + r * n;
    auto const s = team_softmax_sum(x, n, team);
    softmax_terms<Scalar> const p{s.top, scalar_traits<Scalar>::reciprocal(s.sum)};
    i64 const at = check(label[r]);
    computed<Scalar> const f = *dy * share;
    line_map(
        team, n,
        [&](i64 i, computed<Scalar> v) { return (i == at ? p.of(v) - computed<Scalar>(1) : p.of(v)) * f; }, y,
        x);
  }
};
template <class Scalar> struct scaled_difference_at {
  computed<Scalar> const* dy;
  Scalar const *a, *b;
  Scalar* y;
  computed<Scalar> f;
  constexpr void operator()(i64 i) const { y[i] = (a[i] - b[i]) * (*dy * f); }
};
}  // namespace detail

template <class Scalar> struct team_kernel<Scalar, cross_entropy> {
  static i64 workspace(cross_entropy const&, shapes in, shapes) {
    return in[1].elements() + detail::parts_of_sum(in[1].elements());
  }
  template <class Device> static void run(Device const& d, kernel_call const& c, cross_entropy const&) {
    i64 const e = detail::last_extent(c.in_block[0]), rows = detail::row_count(c.in_block[0]);
    computed<Scalar>* const losses = static_cast<computed<Scalar>*>(c.workspace);
    d.teams(rows, detail::row_loss_at<Scalar>{detail::operand<Scalar>(c, 0),
                                              detail::operand<std::int32_t>(c, 1),
                                              losses,
                                              e,
                                              {d.fault(), c.op->op, e}});
    using number = computed<Scalar>;
    detail::sum_all<number>(d, rows, detail::value_term<number>{losses}, losses + rows,
                            detail::result<number>(c), detail::share_of<number>(c.in_block[1]));
  }
};
template <class Scalar> struct team_kernel<Scalar, cross_entropy_grad> {
  template <class Device> static void run(Device const& d, kernel_call const& c, cross_entropy_grad const&) {
    i64 const e = detail::last_extent(c.in_block[1]);
    d.teams(detail::row_count(c.in_block[1]),
            detail::cross_entropy_grad_at<Scalar>{detail::operand<computed<Scalar>>(c, 0),
                                                  detail::operand<Scalar>(c, 1),
                                                  detail::operand<std::int32_t>(c, 2),
                                                  detail::result<Scalar>(c),
                                                  e,
                                                  detail::share_of<computed<Scalar>>(c.in_block[2]),
                                                  {d.fault(), c.op->op, e}});
  }
};
template <class Scalar> struct team_kernel<Scalar, mean_squared_error> {
  static i64 workspace(mean_squared_error const&, shapes in, shapes) {
    return detail::parts_of_sum(in[0].elements());
  }
  template <class Device> static void run(Device const& d, kernel_call const& c, mean_squared_error const&) {
    detail::squared_difference_term<Scalar> const term{detail::operand<Scalar>(c, 0),
                                                       detail::operand<Scalar>(c, 1)};
    detail::sum_all<computed<Scalar>>(
        d, c.in_block[0].elements(), term, static_cast<computed<Scalar>*>(c.workspace),
        detail::result<computed<Scalar>>(c), detail::share_of<computed<Scalar>>(c.in_block[0]));
  }
};
template <class Scalar> struct team_kernel<Scalar, mean_squared_error_grad> {
  template <class Device>
  static void run(Device const& d, kernel_call const& c, mean_squared_error_grad const&) {
    using number = computed<Scalar>;
    d.each(c.out_block[0].elements(),
           detail::scaled_difference_at<Scalar>{detail::operand<number>(c, 0), detail::operand<Scalar>(c, 1),
                                                detail::operand<Scalar>(c, 2), detail::result<Scalar>(c),
                                                number(2) * detail::share_of<number>(c.in_block[1])});
  }
};

}  // namespace tensorpar::exec
