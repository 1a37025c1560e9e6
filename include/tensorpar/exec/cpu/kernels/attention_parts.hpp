// tensorpar/exec/cpu/kernels/attention_parts.hpp - kernels of attention over keys in parts, and of the monoid
// of its states
#pragma once
#include <tensorpar/exec/cpu/common/eigen_gemm.hpp>
#include <tensorpar/exec/cpu/common/softmax_state.hpp>
#include <tensorpar/exec/cpu/kernels/reduction.hpp>

namespace tensorpar::exec {

namespace detail {
/// Brings n states, `step` apart from x on, to the largest of their maxima (column m), which is returned:
/// calls visit(state's place, its factor) for each.
template <class Scalar, class Visit>
Scalar each_rescaled(Scalar const* x, i64 n, i64 step, i64 m, Visit&& visit) {
  Scalar top(0);
  if constexpr (!scalar_traits<Scalar>::exact) top = x[place_of_top(x + m, n, step) * step + m];
  for (i64 at = 0; at < n * step; at += step) visit(at, rescaling(x[at + m], top));
  return top;
}
/// Calls visit(first part of a group, parts in it, where its result stands) for every group, query and head.
template <class Scalar, class Visit>
void each_group(state_block<Scalar> const& x, i64 groups, Visit&& visit) {
  i64 const size = x.parts / groups;
  state_block<Scalar> y = x;
  y.parts = groups;
  for (i64 b = 0; b < x.batches; ++b)
    for (i64 g = 0; g < groups; ++g)
      for (i64 i = 0; i < x.queries; ++i)
        for (i64 h = 0; h < x.heads(); ++h) visit(x.at(b, g * size, i, h), size, y.at(b, g, i, h));
}
}  // namespace detail

template <class Scalar> struct kernel<Scalar, op::attention_parts> {
  static i64 workspace(op::attention_parts const&, shapes in, shapes) { return in[0].d[1].n * in[1].d[2].n; }
  static void run(kernel_call const& c, op::attention_parts const& op) {
    using traits = scalar_traits<Scalar>;
    detail::state_block<Scalar> const s(c.out_block[0], op.heads);
    i64 const keys = c.in_block[1].local[2];
    Scalar const factor = constant_of<Scalar>(1 / std::sqrt(static_cast<double>(s.head)));
    Scalar const *q = detail::operand<Scalar>(c, 0), *k = detail::operand<Scalar>(c, 1),
                 *v = detail::operand<Scalar>(c, 2);
    Scalar *y = detail::result<Scalar>(c), *w = static_cast<Scalar*>(c.workspace);
    i64 const row = s.heads() * (s.head + 2);
    s.each_part_and_head([&](i64 at_q, i64 b, i64 p, i64 h) {
      i64 const at_k = (b * s.parts + p) * keys * s.width + h * s.head;
      multiply<Scalar>(s.queries, keys, s.head, {q + at_q, s.width, 1}, {k + at_k, 1, s.width}, {w, keys, 1});
      for (i64 i = 0; i < s.queries; ++i) {
        Scalar* weight = w + i * keys;
        for (i64 j = 0; j < keys; ++j) weight[j] = weight[j] * factor;
        Scalar const top = detail::top_of(weight, keys), shift = detail::shift_of(top);
        for (i64 j = 0; j < keys; ++j) weight[j] = traits::exp(weight[j] - shift);
        Scalar* state = y + s.at(b, p, i, h);
        state[s.head] = detail::sum_of<Scalar>(keys, [weight](i64 j) { return weight[j]; });
        state[s.head + 1] = top;
      }
      multiply<Scalar>(s.queries, s.head, keys, {w, keys, 1}, {v + at_k, s.width, 1},
                       {y + s.at(b, p, 0, h), row, 1});
    });
  }
};
/// Let P be the weights and (G, g, h) the gradients of o, l and m. Then dP = G V^T + g and dS = P dP. All
/// weights depend on the largest score, so h - sum(P dP) is added there. dQ = sum over parts of dS K f, dK =
/// dS^T Q f, dV = P^T G.
template <class Scalar> struct kernel<Scalar, op::attention_parts_grad> {
  static i64 workspace(op::attention_parts_grad const&, shapes in, shapes) {
    return in[1].d[1].n * (2 * in[2].d[2].n + in[1].d[2].n);
  }
  static void run(kernel_call const& c, op::attention_parts_grad const& op) {
    using traits = scalar_traits<Scalar>;
    detail::state_block<Scalar> const s(c.in_block[0], op.heads);
    i64 const keys = c.in_block[2].local[2], row = s.heads() * (s.head + 2);
    Scalar const factor = constant_of<Scalar>(1 / std::sqrt(static_cast<double>(s.head)));
    Scalar const *d = detail::operand<Scalar>(c, 0), *q = detail::operand<Scalar>(c, 1),
                 *k = detail::operand<Scalar>(c, 2), *v = detail::operand<Scalar>(c, 3);
    Scalar *dq = detail::result<Scalar>(c, 0), *dk = detail::result<Scalar>(c, 1),
           *dv = detail::result<Scalar>(c, 2);
    Scalar *w = static_cast<Scalar*>(c.workspace), *x = w + s.queries * keys, *one = x + s.queries * keys;
    for (i64 e = 0; e < c.out_block[0].elements(); ++e) dq[e] = Scalar(0);
    s.each_part_and_head([&](i64 at_q, i64 b, i64 p, i64 h) {
      i64 const at_k = (b * s.parts + p) * keys * s.width + h * s.head, at = s.at(b, p, 0, h);
      multiply<Scalar>(s.queries, keys, s.head, {q + at_q, s.width, 1}, {k + at_k, 1, s.width}, {w, keys, 1});
      multiply<Scalar>(s.queries, keys, s.head, {d + at, row, 1}, {v + at_k, 1, s.width}, {x, keys, 1});
      for (i64 i = 0; i < s.queries; ++i) {
        Scalar *weight = w + i * keys, *score = x + i * keys;
        Scalar const* g = d + at + i * row + s.head;
        for (i64 j = 0; j < keys; ++j) weight[j] = weight[j] * factor;
        i64 const place = detail::place_of_top(weight, keys, 1);
        Scalar const shift = detail::shift_of(detail::top_of(weight, keys));
        for (i64 j = 0; j < keys; ++j) {
          weight[j] = traits::exp(weight[j] - shift);
          score[j] = weight[j] * (score[j] + g[0]);
        }
        if constexpr (!traits::exact)
          score[place] += g[1] - detail::sum_of<Scalar>(keys, [score](i64 j) { return score[j]; });
        for (i64 j = 0; j < keys; ++j) score[j] = score[j] * factor;
      }
      multiply<Scalar>(keys, s.head, s.queries, {w, 1, keys}, {d + at, row, 1}, {dv + at_k, s.width, 1});
      multiply<Scalar>(keys, s.head, s.queries, {x, 1, keys}, {q + at_q, s.width, 1},
                       {dk + at_k, s.width, 1});
      multiply<Scalar>(s.queries, s.head, keys, {x, keys, 1}, {k + at_k, s.width, 1}, {one, s.head, 1});
      for (i64 i = 0; i < s.queries; ++i)
        for (i64 e = 0; e < s.head; ++e) dq[at_q + i * s.width + e] += one[i * s.head + e];
    });
  }
};

template <class Scalar> struct kernel<Scalar, op::softmax_merge> {
  static void run(kernel_call const& c, op::softmax_merge const& op) {
    detail::state_block<Scalar> const s(c.in_block[0], op.heads);
    i64 const step = s.at(0, 1, 0, 0), head = s.head;
    Scalar const* x = detail::operand<Scalar>(c, 0);
    Scalar* y = detail::result<Scalar>(c);
    detail::each_group(s, c.out_block[0].local[1], [&](i64 from, i64 size, i64 to) {
      for (i64 e = 0; e <= head; ++e) y[to + e] = Scalar(0);
      y[to + head + 1] = detail::each_rescaled(x + from, size, step, head + 1, [&](i64 at, Scalar f) {
        for (i64 e = 0; e <= head; ++e) y[to + e] += f * x[from + at + e];
      });
    });
  }
};
/// With (G, h) the gradients of (o, l) and m: every state's own are f G, and dm = f (G . (o, l)); where the
/// largest m is, on which all f depend, h - sum(dm) is added.
template <class Scalar> struct kernel<Scalar, op::softmax_merge_grad> {
  static void run(kernel_call const& c, op::softmax_merge_grad const& op) {
    detail::state_block<Scalar> const s(c.in_block[1], op.heads);
    i64 const step = s.at(0, 1, 0, 0), head = s.head, m = head + 1;
    Scalar const *d = detail::operand<Scalar>(c, 0), *x = detail::operand<Scalar>(c, 1);
    Scalar* dx = detail::result<Scalar>(c);
    detail::each_group(s, c.in_block[0].local[1], [&](i64 from, i64 size, i64 to) {
      Scalar all(0);
      detail::each_rescaled(x + from, size, step, m, [&](i64 p, Scalar f) {
        i64 const at = from + p;
        Scalar dot(0);
        for (i64 e = 0; e < m; ++e) { dx[at + e] = f * d[to + e]; dot += dx[at + e] * x[at + e]; }
        dx[at + m] = scalar_traits<Scalar>::exact ? Scalar(0) : dot;
        all += dot;
      });
      if constexpr (!scalar_traits<Scalar>::exact)
        dx[from + detail::place_of_top(x + from + m, size, step) * step + m] += d[to + m] - all;
    });
  }
};

template <class Scalar> struct kernel<Scalar, op::attention_finish> {
  static void run(kernel_call const& c, op::attention_finish const& op) {
    detail::state_block<Scalar> const s(c.in_block[0], op.heads);
    i64 const step = s.at(0, 1, 0, 0), head = s.head;
    Scalar const* x = detail::operand<Scalar>(c, 0);
    Scalar* y = detail::result<Scalar>(c);
    detail::each_group(s, 1, [&](i64 from, i64 size, i64 to) {
      // a state per value's head: both count heads in the same order
      Scalar* row = y + to / (head + 2) * head;
      Scalar sum(0);
      for (i64 e = 0; e < head; ++e) row[e] = Scalar(0);
      detail::each_rescaled(x + from, size, step, head + 1, [&](i64 at, Scalar f) {
        Scalar const* z = x + from + at;
        for (i64 e = 0; e < head; ++e) row[e] += f * z[e];
        sum += f * z[head];
      });
      Scalar const f = scalar_traits<Scalar>::reciprocal(sum);
      for (i64 e = 0; e < head; ++e) row[e] = row[e] * f;
    });
  }
};
/// With f the rescaling of a part and L the sum of all: do = f dy / L, dl = -f (dy . y) / L, dm = do . o + dl
/// l.
template <class Scalar> struct kernel<Scalar, op::attention_finish_grad> {
  static void run(kernel_call const& c, op::attention_finish_grad const& op) {
    detail::state_block<Scalar> const s(c.in_block[1], op.heads);
    i64 const step = s.at(0, 1, 0, 0), head = s.head;
    Scalar const *d = detail::operand<Scalar>(c, 0), *x = detail::operand<Scalar>(c, 1),
                 *y = detail::operand<Scalar>(c, 2);
    Scalar* dx = detail::result<Scalar>(c);
    detail::each_group(s, 1, [&](i64 from, i64 size, i64 to) {
      Scalar const *dy = d + to / (head + 2) * head, *row = y + to / (head + 2) * head;
      Scalar sum(0), dot(0);
      detail::each_rescaled(x + from, size, step, head + 1,
                            [&](i64 at, Scalar f) { sum += f * x[from + at + head]; });
      for (i64 e = 0; e < head; ++e) dot += dy[e] * row[e];
      Scalar const g = scalar_traits<Scalar>::reciprocal(sum);
      detail::each_rescaled(x + from, size, step, head + 1, [&](i64 p, Scalar rescaled) {
        i64 const at = from + p;
        Scalar const f = rescaled * g;
        dx[at + head] = Scalar(0) - f * dot;
        Scalar m = dx[at + head] * x[at + head];
        for (i64 e = 0; e < head; ++e) { dx[at + e] = f * dy[e]; m += dx[at + e] * x[at + e]; }
        dx[at + head + 1] = scalar_traits<Scalar>::exact ? Scalar(0) : m;
      });
    });
  }
};

}  // namespace tensorpar::exec
