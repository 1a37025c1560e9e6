// tensorpar/exec/teams/attention.hpp - team kernels of multi-head attention: whole heads, any range of queries, many heads at once
#pragma once
#include <tensorpar/exec/attention_heads.hpp>
#include <tensorpar/exec/teams/contraction.hpp>
#include <tensorpar/exec/teams/rows.hpp>
#include <tensorpar/op/attention_lse.hpp>

namespace tensorpar {

namespace detail {
/// Row i of scores, of as many heads as there are, becomes weights: softmax(factor * row) over the keys that its query sees, zeros
/// elsewhere. s and p may be one. lse: gets log-sum-exps; or null.
template <class Scalar> struct masked_softmax_at {
  attention_heads<computed<Scalar>> a;
  computed<Scalar>* s;
  Scalar* p;
  computed<Scalar>* lse;
  constexpr i64 length() const { return a.keys; }
  template <class Team> constexpr void operator()(i64 i, Team const& team) const {
    computed<Scalar>* row = s + i * a.keys;
    Scalar* to = p + i * a.keys;
    i64 const n = a.seen(i % a.queries);
    team.each(n, [&](i64 j) { row[j] = row[j] * a.factor; });
    auto const sum = team_softmax(row, to, n, team);
    team.each(a.keys - n, [&](i64 j) { to[n + j] = Scalar(0); });
    if (lse) team.alone([&] { lse[i] = sum.top + scalar_traits<computed<Scalar>>::log(sum.sum); });
  }
};
/// With weights p and their gradients s: to = p (s - sum(s p)) factor. s and to may be one.
template <class Scalar> struct score_grad_at {
  Scalar const* p;
  computed<Scalar> const* s;
  Scalar* to;
  i64 keys;
  computed<Scalar> factor;
  constexpr i64 length() const { return keys; }
  template <class Team> constexpr void operator()(i64 i, Team const& team) const {
    using number = computed<Scalar>;
    Scalar const* w = p + i * keys;
    number const* x = s + i * keys;
    number const sum = line_sum<number>(team, keys, [](number a, number b) { return a * b; }, x, w);
    line_map(team, keys, [&](i64, number a, number b) { return b * (a - sum) * factor; }, to + i * keys, x, w);
  }
};
/// How many heads are computed at once: as many as have 2^24 scores together, at least one.
constexpr i64 heads_at_once(i64 heads, i64 queries, i64 keys) {
  i64 const room = i64{1} << 24, scores = queries * keys, n = scores > 0 ? room / scores : heads;
  return n < 1 ? 1 : n > heads ? heads : n;
}
/// Products of some heads of one batch element.
template <class Scalar, class Device> struct head_products {
  Device const& device;
  attention_heads<computed<Scalar>> const& a;
  i64 heads;

  /// A matrix whose heads stand side by side in rows of `width`, and one that has its heads one after another.
  struct side {
    Scalar const* p;
    bool transposed;
    i64 row, next;
  };
  side beside(Scalar const* p, bool transposed = false) const { return {p, transposed, a.width, a.head}; }
  side scores(Scalar const* p, bool transposed = false) const { return {p, transposed, a.keys, a.queries * a.keys}; }
  template <class Result> void operator()(i64 m, i64 n, i64 k, side x, side y, Result* to, i64 row, i64 next) const {
    auto const view = [](side const& o) {
      return o.transposed ? matrix_view<Scalar const>{o.p, 1, o.row} : matrix_view<Scalar const>{o.p, o.row, 1};
    };
    auto p = one_product<Scalar, Result>(m, n, k, view(x), view(y), {to, row, 1});
    p.batch[0] = {heads, x.next, y.next, next};
    device.product(p);
  }
  /// to = x y^T, scores in full; to = x y, rows of `width`.
  void score(side x, side y, computed<Scalar>* to) const {
    (*this)(a.queries, a.keys, a.head, x, y, to, a.keys, a.queries * a.keys);
  }
  void mix(i64 m, i64 k, side x, side y, Scalar* to) const { (*this)(m, a.head, k, x, y, to, a.width, a.head); }
  void weights(Scalar const* q, Scalar const* k, computed<Scalar>* s, Scalar* p, computed<Scalar>* lse = nullptr) const {
    score(beside(q), beside(k, true), s);
    device.teams(heads * a.queries, masked_softmax_at<Scalar>{a, s, p, lse});
  }
};
/// Scores are kept in full and take the place that weights take where they are no wider.
template <class Scalar> inline constexpr bool apart = !std::same_as<Scalar, computed<Scalar>>;
/// Calls visit(where queries begin, where keys begin, heads, those that came before) for some heads of each batch element.
template <class Scalar, class Visit> void each_heads(attention_heads<Scalar> const& a, i64 heads, Visit&& visit) {
  i64 const here = a.head ? a.width / a.head : 0, most = heads_at_once(heads, a.queries, a.keys);
  for (i64 b = 0; b < a.batches; ++b)
    for (i64 h = 0; h < here; h += most)
      visit(b * a.queries * a.width + h * a.head, b * a.keys * a.width + h * a.head, most < here - h ? most : here - h, b * here + h);
}
}  // namespace detail

template <class Scalar> struct team_kernel<Scalar, attention> {
  static constexpr bool multiplies = true;
  static i64 workspace(attention const& op, shapes in, shapes) {
    i64 const n = detail::heads_at_once(op.heads, in[0].d[1].n, in[1].d[1].n) * in[0].d[1].n * in[1].d[1].n;
    return detail::apart<Scalar> ? n + (n + 1) / 2 : n;
  }
  template <class Device>
  static void run(Device const& d, kernel_call const& c, attention const& op, computed<Scalar>* lse = nullptr) {
    detail::attention_heads<computed<Scalar>> const a(c.in_block[0], c.in_block[1], op.heads, op.causal);
    Scalar const *q = detail::operand<Scalar>(c, 0), *k = detail::operand<Scalar>(c, 1), *v = detail::operand<Scalar>(c, 2);
    Scalar* y = detail::result<Scalar>(c);
    i64 const scores = detail::heads_at_once(op.heads, a.queries, a.keys) * a.queries * a.keys;
    auto* const s = static_cast<computed<Scalar>*>(c.workspace);
    auto* const p = reinterpret_cast<Scalar*>(detail::apart<Scalar> ? s + scores : s);
    detail::each_heads(a, op.heads, [&](i64 at_q, i64 at_k, i64 heads, i64 before) {
      detail::head_products<Scalar, Device> const product{d, a, heads};
      product.weights(q + at_q, k + at_k, s, p, lse ? lse + before * a.queries : nullptr);
      product.mix(a.queries, a.keys, product.scores(p), product.beside(v + at_k), y + at_q);
    });
  }
};
/// The weights are computed again rather than kept. dP = dY V^T, dS = P (dP - sum(dP P)), dQ = dS K f, dK = dS^T Q f, dV = P^T dY.
template <class Scalar> struct team_kernel<Scalar, attention_grad> {
  static constexpr bool multiplies = true;
  static i64 workspace(attention_grad const& op, shapes in, shapes) {
    return 2 * detail::heads_at_once(op.heads, in[1].d[1].n, in[2].d[1].n) * in[1].d[1].n * in[2].d[1].n;
  }
  template <class Device> static void run(Device const& d, kernel_call const& c, attention_grad const& op) {
    detail::attention_heads<computed<Scalar>> const a(c.in_block[1], c.in_block[2], op.heads, op.causal);
    Scalar const *dy = detail::operand<Scalar>(c, 0), *q = detail::operand<Scalar>(c, 1), *k = detail::operand<Scalar>(c, 2),
                 *v = detail::operand<Scalar>(c, 3);
    Scalar *dq = detail::result<Scalar>(c, 0), *dk = detail::result<Scalar>(c, 1), *dv = detail::result<Scalar>(c, 2);
    i64 const scores = detail::heads_at_once(op.heads, a.queries, a.keys) * a.queries * a.keys;
    // full scores, then weights and their gradients; or weights, then scores in whose place their gradients come
    auto* const room = static_cast<computed<Scalar>*>(c.workspace);
    computed<Scalar>* const s = detail::apart<Scalar> ? room : room + scores;
    Scalar* const p = reinterpret_cast<Scalar*>(detail::apart<Scalar> ? room + scores : room);
    Scalar* const ds = p + scores;
    detail::each_heads(a, op.heads, [&](i64 at_q, i64 at_k, i64 heads, i64) {
      detail::head_products<Scalar, Device> const product{d, a, heads};
      product.weights(q + at_q, k + at_k, detail::apart<Scalar> ? s : room, p);
      product.mix(a.keys, a.queries, product.scores(p, true), product.beside(dy + at_q), dv + at_k);
      product.score(product.beside(dy + at_q), product.beside(v + at_k, true), s);
      d.teams(heads * a.queries, detail::score_grad_at<Scalar>{p, s, ds, a.keys, a.factor});
      product.mix(a.queries, a.keys, product.scores(ds), product.beside(k + at_k), dq + at_q);
      product.mix(a.keys, a.queries, product.scores(ds, true), product.beside(q + at_q), dk + at_k);
    });
  }
};

template <class Scalar> struct team_kernel<Scalar, attention_with_lse> {
  using plain = team_kernel<Scalar, attention>;
  static constexpr bool multiplies = true;
  static i64 workspace(attention_with_lse const& op, shapes in, shapes out) { return plain::workspace({op.heads, op.causal}, in, out); }
  template <class Device> static void run(Device const& d, kernel_call const& c, attention_with_lse const& op) {
    plain::run(d, c, {op.heads, op.causal}, static_cast<computed<Scalar>*>(c.out[1]));
  }
};
/// These kernels make the weights again: y and lse are for a device's library.
template <class Scalar> struct team_kernel<Scalar, attention_grad_from_lse> {
  using plain = team_kernel<Scalar, attention_grad>;
  static constexpr bool multiplies = true;
  static i64 workspace(attention_grad_from_lse const& op, shapes in, shapes out) {
    return plain::workspace({op.heads, op.causal}, in, out);
  }
  template <class Device> static void run(Device const& d, kernel_call const& c, attention_grad_from_lse const& op) {
    plain::run(d, c, {op.heads, op.causal});
  }
};

}  // namespace tensorpar
