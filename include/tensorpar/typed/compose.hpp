// tensorpar/typed/compose.hpp - composition: everything is a function from tensors to tensors
#pragma once
#include <array>
#include <concepts>
#include <tensorpar/core/index.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>
#include <tensorpar/op/kinds/structural.hpp>
#include <tensorpar/typed/model.hpp>
#include <utility>

namespace tensorpar {

/// Several tensors as one bundle: `all(q, k, v) | attention{.heads = 12}`.
template <std::same_as<ref>... R> constexpr bundle all(ref x, R... more) {
  static_assert(sizeof...(R) < bundle::max, "tensorpar: all() takes at most 32 tensors");
  bundle b{};
  b.push(x);
  (b.push(more), ...);
  return b;
}

/// A function of one tensor, and one of a bundle. Operators are not functions; `x | op` applies either.
template <class F> concept block = std::invocable<F const&, ref> && !op::operator_<F>;
template <class F> concept join = std::invocable<F const&, bundle> && !op::operator_<F>;
template <class F> concept stage = op::operator_<F> || std::same_as<F, op::any_op> || block<F> || join<F>;

constexpr ref operator|(ref x, op::any_op const& o) { return x.g->add(o, &x, 1); }
constexpr ref operator|(bundle const& b, op::any_op const& o) { return b.r[0].g->add(o, b.r, b.n); }
template <block F> constexpr auto operator|(ref x, F const& f) { return f(x); }
template <join F> constexpr auto operator|(bundle const& b, F const& f) { return f(b); }

namespace refused {
/// What should be added to the tensor that it takes gives no single one.
template <class F> struct RESIDUAL_IS_NOT_ONE_TENSOR;
/// What stands before an operator: neither a tensor, nor a layer that goes before it.
template <class T> struct NOT_A_TENSOR_OR_OPERATOR;
}  // namespace refused
namespace detail {
template <class T>
concept class_of_no_stage = std::is_class_v<T> && !op::operator_<T> && !std::same_as<T, op::any_op> &&
                            !std::same_as<T, ref> && !std::same_as<T, bundle>;
template <class F> concept no_stage = !stage<F>;
/// The first of several that may not stand behind `|`.
template <class...> struct first_refused {};
template <class F, class... G> struct first_refused<F, G...> : first_refused<G...> {};
template <no_stage F, class... G>
struct first_refused<F, G...> { using type = op::refused::NOT_AN_OPERATOR<F>; };
template <class... F> using refusal = typename first_refused<F...>::type;
}  // namespace detail
/// What is neither names itself in one error: behind a tensor, several, or in a sequence (an operator needs
/// `name`, `notation` and `infer(shapes) -> inference`, op/core/concepts.hpp; a function of tensors takes
/// `ref` or `bundle`).
template <detail::class_of_no_stage T>
  requires(!block<T>)
constexpr op::refused::NOT_AN_OPERATOR<T> operator|(ref, T const&);
template <detail::class_of_no_stage T>
  requires(!join<T>)
constexpr op::refused::NOT_AN_OPERATOR<T> operator|(bundle const&, T const&);
template <stage F, detail::class_of_no_stage T>
  requires(!block<T> && !join<T>)
constexpr op::refused::NOT_AN_OPERATOR<T> operator|(F const&, T const&);
template <detail::class_of_no_stage T, op::operator_ F>
  requires(!block<T> && !join<T>)
constexpr refused::NOT_A_TENSOR_OR_OPERATOR<T> operator|(T const&, F const&);

namespace detail {
template <class A, class B> struct then {
  A a;
  B b;
  constexpr auto operator()(auto const& x) const requires requires { x | a | b; } { return x | a | b; }
};
template <class A> struct only {
  A a;
  constexpr auto operator()(auto const& x) const requires requires { x | a; } { return x | a; }
};
constexpr op::place place_of(std::source_location const& l) {
  return {l.file_name(), static_cast<int>(l.line())};
}
constexpr op::any_op at(op::any_op o, op::place p) { o.at = p; return o; }
constexpr ref put(op::any_op o, op::place p, ref x) { o.at = p; return x.g->add(o, &x, 1); }
constexpr ref put(op::any_op o, op::place p, ref x, ref y) {
  o.at = p;
  ref const in[2]{x, y};
  return x.g->add(o, in, 2);
}
/// Stands in complaints about repeated blocks.
struct repeat_op {
  static constexpr auto name = "repeat";
  static constexpr auto notation = "... -> ...";
  constexpr op::inference infer(shapes in) const { return in[0]; }
};
struct part_op {
  static constexpr auto name = "part";
  static constexpr auto notation = "... -> ...";
  constexpr op::inference infer(shapes in) const { return in[0]; }
};
}  // namespace detail

/// A sequence without its argument: `linear{512} | relu{}`, `seq(f, g, h)`.
template <stage A, stage B> constexpr detail::then<A, B> operator|(A a, B b) { return {a, b}; }
template <stage F> constexpr detail::only<F> seq(F f) { return {f}; }
template <stage F, stage... G> constexpr auto seq(F f, G... g) { return (f | ... | g); }
template <class... F>
  requires(detail::no_stage<F> || ...)
constexpr detail::refusal<F...> seq(F const&...);

/// Every branch on the same tensor: `par(f, g)(x)` is all(x | f, x | g).
template <stage... F> constexpr auto par(F... f) {
  static_assert(sizeof...(F) >= 1 && sizeof...(F) <= bundle::max, "tensorpar: par() takes 1 to 32 branches");
  return [=](ref x) {
    bundle b{};
    (b.push(x | f), ...);   // in order, which the arguments of a function are not
    return b;
  };
}
template <class... F>
  requires(detail::no_stage<F> || ...)
constexpr detail::refusal<F...> par(F const&...);

/// A tensor and where it was written (a binary operator takes no default argument).
struct written {
  ref r;
  op::place at;
  constexpr written(ref x, std::source_location l = std::source_location::current())
      : r(x), at(detail::place_of(l)) {}
};
constexpr ref operator+(written a, ref b) { return detail::put(add{}, a.at, a.r, b); }
constexpr ref operator*(written a, ref b) { return detail::put(mul{}, a.at, a.r, b); }

namespace detail {
template <class F>
concept gives_one = stage<F> && requires(ref x, F const& f) {
  { x | f } -> std::same_as<ref>;
};
}  // namespace detail
/// x + f(x).
template <detail::gives_one F>
constexpr auto residual(F f, std::source_location l = std::source_location::current()) {
  return [f, at = detail::place_of(l)](ref x) { return detail::put(add{}, at, x, x | f); };
}
template <detail::no_stage F> constexpr op::refused::NOT_AN_OPERATOR<F> residual(F const&);
template <stage F>
  requires(!detail::gives_one<F>)
constexpr refused::RESIDUAL_IS_NOT_ONE_TENSOR<F> residual(F const&);

/// N equal parts along an axis: `auto [q, k, v] = x | split<3>();`
template <int N>
constexpr auto split(int axis_no = -1, std::source_location l = std::source_location::current()) {
  static_assert(N >= 1 && N <= op::inference::max_out, "tensorpar: split<N> gives between 1 and 8 parts");
  return [axis_no, at = detail::place_of(l)](ref x) {
    ref const y = detail::put(split_axes{N, axis_no}, at, x);
    std::array<ref, idx(N)> r{};
    for (int i = 0; i < N; ++i) r[idx(i)] = ref{x.g, y.v < 0 ? -1 : y.v + i};
    return r;
  };
}

/// A block that runs several times, with weights of its own in every repetition; the tables hold it once. It
/// gives back the types it takes. On a bundle it carries all of its tensors: `all(previous, current) |
/// repeat<6>(cell)`.
template <class F> struct repeated {
  i64 times;
  F body;
  op::place at;
  // templates, so that a generic body is asked only about what it is given
  constexpr ref operator()(std::same_as<ref> auto x) const requires stage<F> {
    bundle b = all(x);
    run(b, [this](bundle const& in) { return all(in.r[0] | body); });
    return b.r[0];
  }
  constexpr bundle operator()(std::same_as<bundle> auto b) const requires join<F> {
    run(b, [this](bundle const& in) { return in | body; });
    return b;
  }

 private:
  constexpr void run(bundle& b, auto const& repetition) const {
    model_builder& g = *b.r[0].g;
    for (int i = 0; i < b.n; ++i) if (b.r[i].v < 0) return refuse(b);
    bundle in = b;
    int const r = g.open(times, b.r, b.n, in.r, at);
    bundle y = repetition(in);
    for (int i = 0; i < y.n; ++i) if (y.r[i].v < 0) { g.leave(r); return refuse(b); }
    auto complain = [&](char const* why, shape const& s, shape const& t) {
      g.leave(r);
      g.fail(detail::at(detail::repeat_op{}, at), op::mismatch(why, s, t));
      refuse(b);
    };
    if (times < 0) return complain("a negative number of turns", scalar, shape{dim(times)});
    if (y.n != b.n)
      return complain("the block takes and gives unlike counts", shape{dim(b.n)}, shape{dim(y.n)});
    for (int i = 0; i < b.n; ++i)
      if (!(y.r[i].type() == b.r[i].type()))
        return complain("the block must return what it takes", b.r[i].type(), y.r[i].type());
    for (int i = 0; i < b.n; ++i)
      if (!g.visible(y.r[i]))
        return complain("tensor of a repeated block, used outside", y.r[i].type(), scalar);
    g.close(r, y.r);
    b = y;
  }
  static constexpr void refuse(bundle& b) { for (int i = 0; i < b.n; ++i) b.r[i].v = -1; }
};
template <int N, class F>
constexpr repeated<F> repeat(F f, std::source_location l = std::source_location::current()) {
  return {N, f, detail::place_of(l)};
}
template <class F>
constexpr repeated<F> repeat(i64 n, F f, std::source_location l = std::source_location::current()) {
  return {n, f, detail::place_of(l)};
}

}  // namespace tensorpar
