// tensorpar/exec/teams/kernels/softmax_states.hpp - team kernels of the monoid of softmax states: a team
// merges, finishes or derives one group
#pragma once
#include <tensorpar/exec/cpu/common/softmax_state.hpp>
#include <tensorpar/exec/teams/kernels/kernel.hpp>

namespace tensorpar::exec {

namespace detail {
/// What a group's team works on: the i-th group, query and head, of states `step` apart.
template <class Scalar> struct state_groups {
  state_block<Scalar> x, y;                  // of the parts, and of the groups
  i64 size, step;                            // parts in a group, and their distance
  state_groups(state_block<Scalar> const& parts, i64 groups)
      : x(parts), y(parts), size(parts.parts / groups), step(parts.at(0, 1, 0, 0)) {
    y.parts = groups;
  }
  constexpr i64 count() const { return y.batches * y.parts * y.queries * y.heads(); }
  struct place {
    i64 from, to;
  };
  constexpr place of(i64 i) const {
    i64 const h = i % y.heads(), q = i / y.heads() % y.queries, g = i / y.heads() / y.queries % y.parts,
              b = i / y.heads() / y.queries / y.parts;
    return {x.at(b, g * size, q, h), y.at(b, g, q, h)};
  }
  /// The largest maximum of the states from `at` on.
  constexpr Scalar top(Scalar const* z) const {
    if constexpr (scalar_traits<Scalar>::exact) return Scalar(0);
    else return z[place_of_top(z + x.head + 1, size, step) * step + x.head + 1];
  }
  /// The factor of the p-th state.
  constexpr Scalar factor(Scalar const* z, i64 p, Scalar top) const {
    return rescaling(z[p * step + x.head + 1], top);
  }
};
template <class Scalar> struct merge_at {
  state_groups<Scalar> s;
  Scalar const* x;
  Scalar* y;
  template <class Team> constexpr void operator()(i64 i, Team const& team) const {
    auto const at = s.of(i);
    Scalar const* z = x + at.from;
    Scalar const top = s.top(z);
    team.each(s.x.head + 2, [&](i64 e) {
      Scalar sum(0);
      for (i64 p = 0; p < s.size; ++p) sum += s.factor(z, p, top) * z[p * s.step + e];
      y[at.to + e] = e == s.x.head + 1 ? top : sum;
    });
  }
};
template <class Scalar> struct merge_grad_at {
  state_groups<Scalar> s;
  Scalar const *d, *x;
  Scalar* dx;
  template <class Team> constexpr void operator()(i64 i, Team const& team) const {
    auto const at = s.of(i);
    i64 const m = s.x.head + 1, first = s.size;
    Scalar const *z = x + at.from, *g = d + at.to;
    Scalar* to = dx + at.from;
    Scalar const top = s.top(z);
    auto const dot = [&](i64 p) {
      Scalar r(0);
      for (i64 e = 0; e < m; ++e) r += s.factor(z, p, top) * g[e] * z[p * s.step + e];
      return r;
    };
    team.each(first * (m + 1), [&](i64 k) {
      i64 const p = k / (m + 1), e = k % (m + 1);
      if (e < m) to[p * s.step + e] = s.factor(z, p, top) * g[e];
      else to[p * s.step + m] = scalar_traits<Scalar>::exact ? Scalar(0) : dot(p);
    });
    if constexpr (!scalar_traits<Scalar>::exact)
      team.alone([&] {
        Scalar all(0);
        for (i64 p = 0; p < s.size; ++p) all += to[p * s.step + m];
        to[place_of_top(z + m, s.size, s.step) * s.step + m] += g[m] - all;
      });
  }
};
template <class Scalar> struct finish_at {
  state_groups<Scalar> s;
  Scalar const* x;
  Scalar* y;
  template <class Team> constexpr void operator()(i64 i, Team const& team) const {
    auto const at = s.of(i);
    i64 const head = s.x.head;
    Scalar const* z = x + at.from;
    Scalar const top = s.top(z);
    Scalar sum(0);
    for (i64 p = 0; p < s.size; ++p) sum += s.factor(z, p, top) * z[p * s.step + head];
    Scalar const f = scalar_traits<Scalar>::reciprocal(sum);
    // a state per value's head: both count heads in the same order
    Scalar* row = y + at.to / (head + 2) * head;
    team.each(head, [&](i64 e) {
      Scalar r(0);
      for (i64 p = 0; p < s.size; ++p) r += s.factor(z, p, top) * z[p * s.step + e];
      row[e] = r * f;
    });
  }
};
template <class Scalar> struct finish_grad_at {
  state_groups<Scalar> s;
  Scalar const *d, *x, *y;
  Scalar* dx;
  template <class Team> constexpr void operator()(i64 i, Team const& team) const {
    auto const at = s.of(i);
    i64 const head = s.x.head;
    Scalar const *z = x + at.from, *dy = d + at.to / (head + 2) * head, *row = y + at.to / (head + 2) * head;
    Scalar* to = dx + at.from;
    Scalar const top = s.top(z);
    Scalar sum(0);
    for (i64 p = 0; p < s.size; ++p) sum += s.factor(z, p, top) * z[p * s.step + head];
    Scalar const g = scalar_traits<Scalar>::reciprocal(sum);
    Scalar const dot = team.template sum<Scalar>(head, [&](i64 e) { return dy[e] * row[e]; });
    team.each(s.size * (head + 1), [&](i64 k) {
      i64 const p = k / (head + 1), e = k % (head + 1);
      Scalar const f = s.factor(z, p, top) * g;
      to[p * s.step + e] = e < head ? f * dy[e] : Scalar(0) - f * dot;
    });
    team.each(s.size, [&](i64 p) {
      Scalar m(0);
      for (i64 e = 0; e <= head; ++e) m += to[p * s.step + e] * z[p * s.step + e];
      to[p * s.step + head + 1] = scalar_traits<Scalar>::exact ? Scalar(0) : m;
    });
  }
};
}  // namespace detail

template <class Scalar> struct team_kernel<Scalar, op::softmax_merge> {
  template <class Device>
  static void run(Device const& d, kernel_call const& c, op::softmax_merge const& op) {
    detail::state_groups<Scalar> const s(detail::state_block<Scalar>(c.in_block[0], op.heads),
                                         c.out_block[0].local[1]);
    d.teams(s.count(), detail::merge_at<Scalar>{s, detail::operand<Scalar>(c, 0), detail::result<Scalar>(c)});
  }
};
template <class Scalar> struct team_kernel<Scalar, op::softmax_merge_grad> {
  template <class Device>
  static void run(Device const& d, kernel_call const& c, op::softmax_merge_grad const& op) {
    detail::state_groups<Scalar> const s(detail::state_block<Scalar>(c.in_block[1], op.heads),
                                         c.in_block[0].local[1]);
    d.teams(s.count(),
            detail::merge_grad_at<Scalar>{s, detail::operand<Scalar>(c, 0), detail::operand<Scalar>(c, 1),
                                          detail::result<Scalar>(c)});
  }
};
template <class Scalar> struct team_kernel<Scalar, op::attention_finish> {
  template <class Device>
  static void run(Device const& d, kernel_call const& c, op::attention_finish const& op) {
    detail::state_groups<Scalar> const s(detail::state_block<Scalar>(c.in_block[0], op.heads), 1);
    d.teams(s.count(),
            detail::finish_at<Scalar>{s, detail::operand<Scalar>(c, 0), detail::result<Scalar>(c)});
  }
};
template <class Scalar> struct team_kernel<Scalar, op::attention_finish_grad> {
  template <class Device>
  static void run(Device const& d, kernel_call const& c, op::attention_finish_grad const& op) {
    detail::state_groups<Scalar> const s(detail::state_block<Scalar>(c.in_block[1], op.heads), 1);
    d.teams(s.count(),
            detail::finish_grad_at<Scalar>{s, detail::operand<Scalar>(c, 0), detail::operand<Scalar>(c, 1),
                                           detail::operand<Scalar>(c, 2), detail::result<Scalar>(c)});
  }
};

}  // namespace tensorpar::exec
