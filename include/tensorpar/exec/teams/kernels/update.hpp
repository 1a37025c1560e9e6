// tensorpar/exec/teams/kernels/update.hpp - team kernels of parameter updates and of global-norm clipping
#pragma once
#include <cmath>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/exec/cpu/kernels/update.hpp>
#include <tensorpar/exec/device/random.hpp>
#include <tensorpar/exec/teams/kernels/kernel.hpp>

namespace tensorpar::exec {

namespace detail {
/// A weight as rules read and write it: itself, or with a master its master, of which it is then a rounded
/// copy.
template <class Weight, class Scalar> struct kept_weight {
  Scalar const* from;
  Weight* to;
  Scalar* master;                            // null: there is none
  constexpr Scalar at(i64 i) const { return from[i]; }
  template <int N> constexpr pack<Scalar, N> several_at(i64 i) const { return take<N>(from, i); }
  constexpr void put(i64 i, Scalar x) const {
    if (master) master[i] = x;
    to[i] = x;
  }
  template <int N> constexpr void put_several(i64 i, pack<Scalar, N> const& x) const {
    if (master) detail::put(master, i, x);
    pack<Weight, N> w{};
    for (int k = 0; k < N; ++k) w.v[k] = x.v[k];
    detail::put(to, i, w);
  }
  bool aligned() const { return at_16(from, to, master); }
};
/// A weight of few digits that is its own master: rounded up or down, by a draw that follows from seed, step
/// and logical element.
template <class Weight, class Scalar> struct drawn_weight {
  Weight const* from;
  Weight* to;
  op::tensor_block block;
  step_numbers_at step;                      // word 3: of the draws
  constexpr Scalar at(i64 i) const { return from[i]; }
  template <int N> constexpr pack<Scalar, N> several_at(i64 i) const {
    auto const w = take<N>(from, i);
    pack<Scalar, N> r{};
    for (int k = 0; k < N; ++k) r.v[k] = w.v[k];
    return r;
  }
  constexpr void put(i64 i, Scalar x) const {
    u64 const e = static_cast<u64>(logical_element(block, i));
    std::uint32_t const w = random_stream{step.word(3), 0x726f756e64}.words(e / 8)[e / 2 % 4];
    to[i] = Weight::drawn(x, static_cast<std::uint16_t>(e % 2 ? w >> 16 : w));
  }
  template <int N> constexpr void put_several(i64 i, pack<Scalar, N> const& x) const {
    for (int k = 0; k < N; ++k) put(i + k, x.v[k]);
  }
  bool aligned() const { return at_16(from, to); }
};
/// A gradient, clipped by a factor where there is one.
template <class Gradient, class Scalar> struct clipped_gradient {
  Gradient const* from;
  Scalar const* clip;                        // null: there is none
  constexpr Scalar of(Gradient x) const { return clip ? x * *clip : Scalar(x); }
  constexpr bool leaves_all() const { return clip && detail::leaves_all(*clip); }
  bool aligned() const { return at_16(from); }
};

// Every operand is read before the result of the same index is written: results may be the operands.
template <class W, class G, class Scalar> struct sgd_at {
  W w;
  clipped_gradient<G, Scalar> g;
  step_numbers_at step;                      // the rate
  Scalar decay;
  constexpr Scalar next(Scalar x, Scalar d) const {
    return g.leaves_all() ? x : x - step.number<Scalar>(0) * (d + decay * x);
  }
  constexpr void operator()(i64 i) const { w.put(i, next(w.at(i), g.of(g.from[i]))); }
  static constexpr int at_once = 16 / sizeof(Scalar);
  bool aligned() const { return w.aligned() && g.aligned(); }
  template <int N> constexpr void several(i64 i) const {
    auto x = w.template several_at<N>(i);
    auto const d = take<N>(g.from, i);
    for (int k = 0; k < N; ++k) x.v[k] = next(x.v[k], g.of(d.v[k]));
    w.put_several(i, x);
  }
};
template <class W, class G, class Scalar, class State> struct momentum_at {
  W w;
  clipped_gradient<G, Scalar> g;
  State const* v;
  State* to_v;
  step_numbers_at step;                      // the rate
  Scalar decay, keep;
  constexpr void turn(Scalar& x, Scalar d, Scalar& speed) const {
    if (g.leaves_all()) return;
    speed = keep * speed + d + decay * x;
    x = x - step.number<Scalar>(0) * speed;
  }
  constexpr void operator()(i64 i) const {
    Scalar x = w.at(i), speed = v[i];
    turn(x, g.of(g.from[i]), speed);
    to_v[i] = State(speed);
    w.put(i, x);
  }
  static constexpr int at_once = 16 / sizeof(Scalar);
  bool aligned() const { return w.aligned() && g.aligned() && at_16(v, to_v); }
  template <int N> constexpr void several(i64 i) const {
    auto x = w.template several_at<N>(i);
    auto speed = take<N>(v, i);
    auto const d = take<N>(g.from, i);
    for (int k = 0; k < N; ++k) {
      Scalar next = speed.v[k];
      turn(x.v[k], g.of(d.v[k]), next);
      speed.v[k] = State(next);
    }
    detail::put(to_v, i, speed);
    w.put_several(i, x);
  }
};
template <class W, class G, class Scalar, class State> struct adamw_at {
  W w;
  clipped_gradient<G, Scalar> g;
  State const *m, *v;
  State *to_m, *to_v;
  step_numbers_at step;                      // the rate, and what corrects the moments' bias
  Scalar decay, eps, b1, b2, c1, c2;
  constexpr void turn(Scalar& x, Scalar d, Scalar& first, Scalar& second) const {
    using traits = scalar_traits<Scalar>;
    if (g.leaves_all()) return;
    Scalar const rate = step.number<Scalar>(0), fix1 = step.number<Scalar>(1), fix2 = step.number<Scalar>(2);
    first = b1 * first + c1 * d;
    second = b2 * second + c2 * d * d;
    x = x - rate * (first * fix1 * traits::reciprocal(traits::sqrt(second * fix2) + eps) + decay * x);
  }
  constexpr void operator()(i64 i) const {
    Scalar x = w.at(i), first = m[i], second = v[i];
    turn(x, g.of(g.from[i]), first, second);
    to_m[i] = State(first);
    to_v[i] = State(second);
    w.put(i, x);
  }
  static constexpr int at_once = 16 / sizeof(Scalar);
  bool aligned() const { return w.aligned() && g.aligned() && at_16(m, v, to_m, to_v); }
  template <int N> constexpr void several(i64 i) const {
    auto x = w.template several_at<N>(i);
    auto first = take<N>(m, i), second = take<N>(v, i);
    auto const d = take<N>(g.from, i);
    for (int k = 0; k < N; ++k) {
      Scalar next_first = first.v[k], next_second = second.v[k];
      turn(x.v[k], g.of(d.v[k]), next_first, next_second);
      first.v[k] = State(next_first);
      second.v[k] = State(next_second);
    }
    detail::put(to_m, i, first);
    detail::put(to_v, i, second);
    w.put_several(i, x);
  }
};

/// Numbers of a step: the rate; for AdamW what corrects the bias of the moments; of the draws that round.
template <class Scalar>
step_arguments update_arguments(step_state const& s, Scalar fix1 = Scalar(0), Scalar fix2 = Scalar(0)) {
  auto const word = [](Scalar x) { return step_numbers_at::packed(x); };
  return {{word(constant_of<Scalar>(s.learning_rate)), word(fix1), word(fix2),
           core::hasher{}.add(s.seed).add(s.step).value()}};
}
template <class Scalar, class Rule> step_arguments rule_arguments(Rule const&, step_state const& s) {
  return update_arguments<Scalar>(s);
}
template <class Scalar> step_arguments rule_arguments(adamw_update const& op, step_state const& s) {
  u64 const steps = s.step + 1;
  return update_arguments<Scalar>(s, over_rest_to_one<Scalar>(op.beta1, steps),
                              over_rest_to_one<Scalar>(op.beta2, steps));
}

/// Runs a rule: weight, gradient and states by the types of their numbers. Masters and the clipping factor
/// are wide.
template <class State, class W, class G, class Device, class Scalar>
void run_rule(Device const& d, i64 n, W const& w, clipped_gradient<G, Scalar> g,
              step_numbers_at const& step, kernel_call const&, sgd_update const& op) {
  d.each(n, sgd_at<W, G, Scalar>{w, g, step, constant_of<Scalar>(op.weight_decay)});
}
template <class State, class W, class G, class Device, class Scalar>
void run_rule(Device const& d, i64 n, W const& w, clipped_gradient<G, Scalar> g,
              step_numbers_at const& step, kernel_call const& c, momentum_update const& op) {
  d.each(n, momentum_at<W, G, Scalar, State>{w, g, operand<State>(c, 2), result<State>(c, 1), step,
                                             constant_of<Scalar>(op.weight_decay),
                                             constant_of<Scalar>(op.momentum)});
}
template <class State, class W, class G, class Device, class Scalar>
void run_rule(Device const& d, i64 n, W const& w, clipped_gradient<G, Scalar> g,
              step_numbers_at const& step, kernel_call const& c, adamw_update const& op) {
  d.each(n, adamw_at<W, G, Scalar, State>{
                w, g, operand<State>(c, 2), operand<State>(c, 3), result<State>(c, 1), result<State>(c, 2),
                step, constant_of<Scalar>(op.weight_decay), constant_of<Scalar>(op.eps),
                constant_of<Scalar>(op.beta1), constant_of<Scalar>(op.beta2), rest_to_one<Scalar>(op.beta1),
                rest_to_one<Scalar>(op.beta2)});
}
/// Operands: weight, gradient, states, [master], [clip]; results: weight, states, [master].
template <class Scalar, class Rule, class Device>
void update(Device const& d, kernel_call const& c, Rule const& op, bool with_master) {
  using number = computed<Scalar>;
  i64 const n = c.out_block[0].elements();
  step_numbers_at const step{c.arguments,
                             c.arguments ? step_arguments{} : rule_arguments<number>(op, c.state)};
  int const operands = c.outputs + 1;                                          // without [clip]
  number const* const clip = c.inputs > operands ? operand<number>(c, operands) : nullptr;
  bool const states = c.outputs > (with_master ? 2 : 1);
  auto const with_states = [&]<class W, class G>(W const& w, clipped_gradient<G, number> g) {
    if constexpr (!std::same_as<Scalar, number> && !std::same_as<Rule, sgd_update>)
      if (states && is_narrow(c.in_block[2].type)) return run_rule<Scalar>(d, n, w, g, step, c, op);
    run_rule<number>(d, n, w, g, step, c, op);
  };
  auto const run = [&]<class W>(W const& w) {
    if constexpr (!std::same_as<Scalar, number>)
      if (is_narrow(c.in_block[1].type))
        return with_states(w, clipped_gradient<Scalar, number>{operand<Scalar>(c, 1), clip});
    with_states(w, clipped_gradient<number, number>{operand<number>(c, 1), clip});
  };
  if constexpr (!std::same_as<Scalar, number>)
    if (!with_master && is_narrow(c.in_block[0].type))
      return run(drawn_weight<Scalar, number>{operand<Scalar>(c, 0), result<Scalar>(c), c.out_block[0],
                                              step});
  if (with_master)
    run(kept_weight<Scalar, number>{operand<number>(c, c.outputs), result<Scalar>(c),
                                    result<number>(c, c.outputs - 1)});
  else
    run(kept_weight<number, number>{operand<number>(c, 0), result<number>(c), nullptr});
}

template <class Scalar> struct square_term {
  Scalar const* x;
  constexpr computed<Scalar> operator()(i64 i) const { return x[i] * x[i]; }
};
/// Numbers from here and there, in their order; many in a kernel, for a model has hundreds of parameters.
template <class Scalar> struct add_scalars_at {
  static constexpr int most = 64;
  Scalar const* x[most];
  int n;
  Scalar* y;
  bool first;
  constexpr void operator()(i64) const {
    Scalar s = first ? *x[0] : *y + *x[0];
    for (int k = 1; k < n; ++k) s = s + *x[k];
    *y = s;
  }
};
template <class Scalar> struct clip_factor_at {
  Scalar* y;                                 // holds the sum of squares
  Scalar* norm_at;
  Scalar limit;
  clip_factor op;
  constexpr void operator()(i64) const {
    *y = factor_of(*norm_at = scalar_traits<Scalar>::sqrt(*y), limit, op);
  }
};
}  // namespace detail

template <class Scalar, class Rule>
  requires(std::same_as<Rule, sgd_update> || std::same_as<Rule, momentum_update> ||
           std::same_as<Rule, adamw_update>)
struct team_kernel<Scalar, Rule> {
  static step_arguments arguments(Rule const& op, step_state const& s) {
    return detail::rule_arguments<computed<Scalar>>(op, s);
  }
  template <class Device> static void run(Device const& d, kernel_call const& c, Rule const& op) {
    detail::update<Scalar>(d, c, op, false);
  }
};
template <class Scalar, class Rule> struct team_kernel<Scalar, with_master<Rule>> {
  static step_arguments arguments(with_master<Rule> const& op, step_state const& s) {
    return detail::rule_arguments<computed<Scalar>>(static_cast<Rule const&>(op), s);
  }
  template <class Device>
  static void run(Device const& d, kernel_call const& c, with_master<Rule> const& op) {
    detail::update<Scalar>(d, c, static_cast<Rule const&>(op), true);
  }
};
template <class Scalar> struct team_kernel<Scalar, square_sum> {
  static i64 workspace(square_sum const&, shapes in, shapes) {
    return detail::parts_of_sum(in[0].elements());
  }
  template <class Device> static void run(Device const& d, kernel_call const& c, square_sum const&) {
    using number = computed<Scalar>;
    detail::sum_all<number>(d, c.in_block[0].elements(),
                            detail::square_term<Scalar>{detail::operand<Scalar>(c, 0)},
                            static_cast<number*>(c.workspace), detail::result<number>(c), number(1));
  }
};
template <class Scalar> struct team_kernel<Scalar, clip_factor> {
  template <class Device> static void run(Device const& d, kernel_call const& c, clip_factor const& op) {
    using number = computed<Scalar>;
    number* const y = detail::result<number>(c);
    for (int k = 0; k < c.inputs;) {
      detail::add_scalars_at<number> f{{}, 0, y, k == 0};
      while (f.n < f.most && k < c.inputs) f.x[f.n++] = detail::operand<number>(c, k++);
      d.each(1, f);
    }
    d.each(1, detail::clip_factor_at<number>{y, detail::result<number>(c, 1),
                                             constant_of<number>(op.max_norm), op});
  }
};

}  // namespace tensorpar::exec
