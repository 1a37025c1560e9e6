// tensorpar/exec/teams/loss.hpp - team kernels of losses: a device's share of a mean over all logical elements
#pragma once
#include <tensorpar/exec/kernels_loss.hpp>
#include <tensorpar/exec/teams/rows.hpp>

namespace tensorpar {

namespace detail {
/// log(sum(exp(x))) - x[label], by row.
template <class Scalar> struct row_loss_at {
  Scalar const* logits;
  std::int32_t const* label;
  Scalar* to;
  i64 n;
  index_check check;
  template <class Team> constexpr void operator()(i64 r, Team const& team) const {
    using traits = scalar_traits<Scalar>;
    Scalar const* x = logits + r * n;
    Scalar const top = team_top(x, n, team);
    Scalar const s = team.template sum<Scalar>(n, [&](i64 i) { return traits::exp(x[i] - top); });
    team.alone([&] { to[r] = top + traits::log(s) - x[check(label[r])]; });
  }
};
template <class Scalar> struct value_term {
  Scalar const* x;
  constexpr Scalar operator()(i64 i) const { return x[i]; }
};
template <class Scalar> struct squared_difference_term {
  Scalar const *a, *b;
  constexpr Scalar operator()(i64 i) const { return (a[i] - b[i]) * (a[i] - b[i]); }
};
template <class Scalar> struct cross_entropy_grad_at {
  Scalar const *dy, *logits;
  std::int32_t const* label;
  Scalar* to;
  i64 n;
  Scalar share;
  index_check check;
  template <class Team> constexpr void operator()(i64 r, Team const& team) const {
    Scalar* y = to + r * n;
    team_softmax(logits + r * n, y, n, team);
    i64 const at = check(label[r]);
    Scalar const f = *dy * share;
    team.each(n, [&](i64 i) { y[i] = (i == at ? y[i] - Scalar(1) : y[i]) * f; });
  }
};
template <class Scalar> struct scaled_difference_at {
  Scalar const *dy, *a, *b;
  Scalar* y;
  Scalar f;
  constexpr void operator()(i64 i) const { y[i] = (a[i] - b[i]) * (*dy * f); }
};
}  // namespace detail

template <class Scalar> struct team_kernel<Scalar, cross_entropy> {
  static i64 workspace(cross_entropy const&, shapes in, shapes) { return in[1].elements() + detail::parts_of_sum(in[1].elements()); }
  template <class Device> static void run(Device const& d, kernel_call const& c, cross_entropy const&) {
    i64 const e = detail::last_extent(c.in_block[0]), rows = detail::row_count(c.in_block[0]);
    Scalar* const losses = static_cast<Scalar*>(c.workspace);
    d.teams(rows, detail::row_loss_at<Scalar>{detail::operand<Scalar>(c, 0), detail::operand<std::int32_t>(c, 1), losses, e,
                                              {d.fault(), c.op->op, e}});
    detail::sum_all<Scalar>(d, rows, detail::value_term<Scalar>{losses}, losses + rows, detail::result<Scalar>(c),
                            detail::share_of<Scalar>(c.in_block[1]));
  }
};
template <class Scalar> struct team_kernel<Scalar, cross_entropy_grad> {
  template <class Device> static void run(Device const& d, kernel_call const& c, cross_entropy_grad const&) {
    i64 const e = detail::last_extent(c.in_block[1]);
    d.teams(detail::row_count(c.in_block[1]),
            detail::cross_entropy_grad_at<Scalar>{detail::operand<Scalar>(c, 0), detail::operand<Scalar>(c, 1),
                                                  detail::operand<std::int32_t>(c, 2), detail::result<Scalar>(c), e,
                                                  detail::share_of<Scalar>(c.in_block[2]), {d.fault(), c.op->op, e}});
  }
};
template <class Scalar> struct team_kernel<Scalar, mean_squared_error> {
  static i64 workspace(mean_squared_error const&, shapes in, shapes) { return detail::parts_of_sum(in[0].elements()); }
  template <class Device> static void run(Device const& d, kernel_call const& c, mean_squared_error const&) {
    detail::squared_difference_term<Scalar> const term{detail::operand<Scalar>(c, 0), detail::operand<Scalar>(c, 1)};
    detail::sum_all<Scalar>(d, c.in_block[0].elements(), term, static_cast<Scalar*>(c.workspace), detail::result<Scalar>(c),
                            detail::share_of<Scalar>(c.in_block[0]));
  }
};
template <class Scalar> struct team_kernel<Scalar, mean_squared_error_grad> {
  template <class Device> static void run(Device const& d, kernel_call const& c, mean_squared_error_grad const&) {
    d.each(c.out_block[0].elements(),
           detail::scaled_difference_at<Scalar>{detail::operand<Scalar>(c, 0), detail::operand<Scalar>(c, 1), detail::operand<Scalar>(c, 2),
                                                detail::result<Scalar>(c), Scalar(2) * detail::share_of<Scalar>(c.in_block[1])});
  }
};

}  // namespace tensorpar
