// tensorpar/exec/teams/kernels/attention.hpp - team kernels of multi-head attention: whole heads, any range
// of queries, many heads at once
#pragma once
#include <tensorpar/exec/cpu/common/attention_heads.hpp>
#include <tensorpar/exec/teams/kernels/contraction.hpp>
#include <tensorpar/exec/teams/kernels/rows.hpp>

namespace tensorpar::exec {

namespace detail {
/// Row i of scores, of as many heads as there are, becomes weights: softmax(factor * row) over the keys that
/// its query sees, zeros elsewhere. s and p may be one. lse: gets log-sum-exps; or null.
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
    line_map(
        team, keys, [&](i64, number a, number b) { return b * (a - sum) * factor; }, to + i * keys, x, w);
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

  /// A matrix per head: its rows and the next head's matrix are so far apart.
  struct side {
    Scalar const* p;
    bool transposed;
    i64 row, next;
  };
  /// Of queries, keys, values or their gradients; of results or theirs; of scores or weights.
  side beside(Scalar const* p, bool transposed = false) const { return {p, transposed, a.row, a.next}; }
  side results(Scalar const* p) const { return {p, false, a.width, a.head}; }
  side scores(Scalar const* p, bool transposed = false) const {
    return {p, transposed, a.keys, a.queries * a.keys};
  }
  template <class Result>
  void operator()(i64 m, i64 n, i64 k, side x, side y, Result* to, i64 row, i64 next) const {
    auto const view = [](side const& o) {
      return o.transposed ? matrix_view<Scalar const>{o.p, 1, o.row}
                          : matrix_view<Scalar const>{o.p, o.row, 1};
    };
    auto p = one_product<Scalar, Result>(m, n, k, view(x), view(y), {to, row, 1});
    p.batch[0] = {heads, x.next, y.next, next};
    device.product(p);
  }
  /// to = x y^T, scores in full.
  void score(side x, side y, computed<Scalar>* to) const {
    (*this)(a.queries, a.keys, a.head, x, y, to, a.keys, a.queries * a.keys);
  }
  /// to = x y: results, and gradients of queries, keys or values.
  void mix(side x, side y, Scalar* to) const {
    (*this)(a.queries, a.head, a.keys, x, y, to, a.width, a.head);
  }
  void back(i64 m, i64 k, side x, side y, Scalar* to) const {
    (*this)(m, a.head, k, x, y, to, a.row, a.next);
  }
  void weights(Scalar const* q, Scalar const* k, computed<Scalar>* s, Scalar* p,
               computed<Scalar>* lse = nullptr) const {
    score(beside(q), beside(k, true), s);
    device.teams(heads * a.queries, masked_softmax_at<Scalar>{a, s, p, lse});
  }
};
/// Scores are kept in full and take the place that weights take where they are no wider.
template <class Scalar> inline constexpr bool apart = !std::same_as<Scalar, computed<Scalar>>;
/// Calls visit(where they begin, heads, those that came before) for some heads of each batch element.
template <class Scalar, class Visit>
void each_heads(attention_heads<Scalar> const& a, i64 heads, Visit&& visit) {
  i64 const here = a.heads(), most = heads_at_once(heads, a.queries, a.keys);
  for (i64 b = 0; b < a.batches; ++b)
    for (i64 h = 0; h < here; h += most)
      visit(a.place(b, h), most < here - h ? most : here - h, b * here + h);
}
/// lse: gets log-sum-exps; or null.
template <class Scalar, class Device>
void attend_on(Device const& d, attention_heads<computed<Scalar>> const& a, i64 most,
               attention_operands<Scalar const> const& x, Scalar* y, computed<Scalar>* lse, void* room) {
  i64 const scores = heads_at_once(most, a.queries, a.keys) * a.queries * a.keys;
  auto* const s = static_cast<computed<Scalar>*>(room);
  auto* const p = reinterpret_cast<Scalar*>(apart<Scalar> ? s + scores : s);
  each_heads(a, most, [&](head_place const& at, i64 heads, i64 before) {
    head_products<Scalar, Device> const product{d, a, heads};
    product.weights(x.q + at.q, x.k + at.k, s, p, lse ? lse + before * a.queries : nullptr);
    product.mix(product.scores(p), product.beside(x.v + at.k), y + at.y);
  });
}
/// The weights are computed again rather than kept. dP = dY V^T, dS = P (dP - sum(dP P)), dQ = dS K f, dK =
/// dS^T Q f, dV = P^T dY.
template <class Scalar, class Device>
void attend_back_on(Device const& d, attention_heads<computed<Scalar>> const& a, i64 most, Scalar const* dy,
                    attention_operands<Scalar const> const& x, attention_operands<Scalar> const& dx,
                    void* scratch) {
  i64 const scores = heads_at_once(most, a.queries, a.keys) * a.queries * a.keys;
  // full scores, then weights and their gradients; or weights, then scores in whose place their gradients
  // come
  auto* const room = static_cast<computed<Scalar>*>(scratch);
  computed<Scalar>* const s = apart<Scalar> ? room : room + scores;
  Scalar* const p = reinterpret_cast<Scalar*>(apart<Scalar> ? room + scores : room);
  Scalar* const ds = p + scores;
  each_heads(a, most, [&](head_place const& at, i64 heads, i64) {
    head_products<Scalar, Device> const product{d, a, heads};
    product.weights(x.q + at.q, x.k + at.k, apart<Scalar> ? s : room, p);
    product.back(a.keys, a.queries, product.scores(p, true), product.results(dy + at.y), dx.v + at.k);
    product.score(product.results(dy + at.y), product.beside(x.v + at.k, true), s);
    d.teams(heads * a.queries, score_grad_at<Scalar>{p, s, ds, a.keys, a.factor});
    product.back(a.queries, a.keys, product.scores(ds), product.beside(x.k + at.k), dx.q + at.q);
    product.back(a.keys, a.queries, product.scores(ds, true), product.beside(x.q + at.q), dx.k + at.k);
  });
}
}  // namespace detail

/// Gradients make the weights again: y and log-sum-exps, where they are kept, are for a device's library.
template <class Scalar, class Op>
  requires(detail::attention_form<Op>::known)
struct team_kernel<Scalar, Op> {
  using form = detail::attention_form<Op>;
  static constexpr bool multiplies = true;
  static i64 workspace(Op const& op, shapes in, shapes) {
    i64 const queries = in[form::q].d[1].n, keys = in[form::k].d[1].n,
              n = detail::heads_at_once(op.heads, queries, keys) * queries * keys;
    return form::gradient ? 2 * n : detail::apart<Scalar> ? n + (n + 1) / 2 : n;
  }
  template <class Device> static void run(Device const& d, kernel_call const& c, Op const& op) {
    detail::attention_heads<computed<Scalar>> const a(c, op);
    auto const x = a.template three<Scalar const>(c.in + form::q);
    if constexpr (form::gradient) {
      detail::attend_back_on<Scalar>(d, a, op.heads, detail::operand<Scalar>(c, 0), x,
                                     a.template three<Scalar>(c.out), c.workspace);
    } else {
      computed<Scalar>* lse = nullptr;
      if constexpr (form::kept) lse = static_cast<computed<Scalar>*>(c.out[1]);
      detail::attend_on<Scalar>(d, a, op.heads, x, detail::result<Scalar>(c), lse, c.workspace);
    }
  }
};

}  // namespace tensorpar::exec
