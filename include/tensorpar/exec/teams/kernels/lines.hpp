// tensorpar/exec/teams/kernels/lines.hpp - a team on one row of each of several matrices: sums and maps, 16
// bytes at a time where rows allow it;
// and rows that lanes hold between passes
#pragma once
#include <initializer_list>
#include <tensorpar/exec/teams/kernels/kernel.hpp>
#include <type_traits>
#include <utility>

namespace tensorpar::exec::detail {

/// Neighbours that fit into 16 bytes of each of these, at least one.
template <class... T> inline constexpr int neighbours = [] {
  std::size_t most = 1;
  for (std::size_t n : {sizeof(T)...}) most = n > most ? n : most;
  return static_cast<int>(16 / most);
}();

/// The sum of f(x[i] ...) for 0 <= i < n. f takes numbers as they are computed with.
template <class Number, class Team, class F, class... T>
constexpr Number line_sum(Team const& team, i64 n, F const& f, T const*... x) {
  constexpr int N = neighbours<T...>;
  if (n % N == 0 && at_16(x...))
    return team.template sum<Number>(n / N, [&](i64 i) {
      return [&](pack<T, N> const&... p) {
        Number s(0);
        for (int k = 0; k < N; ++k) s += f(computed<T>(p.v[k])...);
        return s;
      }(take<N>(x, i * N)...);
    });
  return team.template sum<Number>(n, [&](i64 i) { return f(computed<T>(x[i])...); });
}
/// The largest x[i] for 0 <= i < n, n > 0.
template <class Number, class Team, class T> constexpr Number line_top(Team const& team, i64 n, T const* x) {
  constexpr int N = neighbours<T>;
  if (n % N == 0 && at_16(x))
    return team.template top<Number>(n / N, [&](i64 i) {
      auto const p = take<N>(x, i * N);
      Number r = p.v[0];
      for (int k = 1; k < N; ++k)
        if (Number const v = p.v[k]; scalar_traits<Number>::greater(v, r)) r = v;
      return r;
    });
  return team.template top<Number>(n, [&](i64 i) { return x[i]; });
}
/// y[i] = f(i, x[i] ...) for 0 <= i < n. y may be one of the others.
template <class Team, class F, class To, class... T>
constexpr void line_map(Team const& team, i64 n, F const& f, To* y, T const*... x) {
  constexpr int N = neighbours<To, T...>;
  if (n % N == 0 && at_16(y, x...))
    return team.each(n / N, [&](i64 i) {
      [&](pack<T, N> const&... p) {
        pack<To, N> r{};
        for (int k = 0; k < N; ++k) r.v[k] = f(i * N + k, computed<T>(p.v[k])...);
        put(y, i * N, r);
      }(take<N>(x, i * N)...);
    });
  team.each(n, [&](i64 i) { y[i] = f(i, computed<T>(x[i])...); });
}

/// Two numbers that are added up at once.
template <class Number> struct two {
  Number a, b;
  constexpr two() : two(0) {}
  constexpr explicit two(int) : a(0), b(0) {}
  constexpr two(Number x, Number y) : a(x), b(y) {}
  constexpr two& operator+=(two const& o) {
    a += o.a;
    b += o.b;
    return *this;
  }
  friend constexpr two operator+(two x, two const& y) { return x += y; }
};
/// Rows of the same n elements that are gone over again and again. f takes the numbers of each of them, then
/// those of the lines beside.
template <class Team, class T, int M> struct loose_rows {
  Team const& team;
  i64 n;
  T const* x[std::size_t{M}];
  template <class Number, class F, class... B> constexpr Number sum(F const& f, B const*... beside) const {
    return [&]<std::size_t... m>(std::index_sequence<m...>) {
      return line_sum<Number>(team, n, f, x[m]..., beside...);
    }(std::make_index_sequence<std::size_t{M}>{});
  }
  template <class F, class To, class... B> constexpr void map(F const& f, To* y, B const*... beside) const {
    [&]<std::size_t... m>(std::index_sequence<m...>) {
      line_map(team, n, [&](i64, auto... v) { return f(v...); }, y, x[m]..., beside...);
    }(std::make_index_sequence<std::size_t{M}>{});
  }
};
/// The same, read once: every lane keeps its part, at most Turns stretches of 16 bytes of each.
template <class Team, class T, int M, int Turns> class held_rows {
  static constexpr int N = neighbours<T>;
  Team const& team_;
  i64 stretches_;
  pack<T, N> v_[std::size_t{M}][std::size_t{Team::template slots<Turns>}];

  template <class F, class... B>
  constexpr auto of(F const& f, int slot, int j, pack<B, N> const&... beside) const {
    return [&]<std::size_t... m>(std::index_sequence<m...>) {
      return f(computed<T>(v_[m][slot].v[j])..., computed<B>(beside.v[j])...);
    }(std::make_index_sequence<std::size_t{M}>{});
  }

 public:
  constexpr explicit held_rows(loose_rows<Team, T, M> const& r) : team_(r.team), stretches_(r.n / N) {
    team_.template turns<Turns>(stretches_, [&](i64 i, int slot) {
      for (int m = 0; m < M; ++m) v_[m][slot] = take<N>(r.x[m], i * N);
    });
  }
  template <class Number, class F, class... B> constexpr Number sum(F const& f, B const*... beside) const {
    return team_.template sum_turns<Turns, Number>(stretches_, [&](i64 i, int slot) {
      return [&](pack<B, N> const&... b) {
        Number s(0);
        for (int j = 0; j < N; ++j) s += of(f, slot, j, b...);
        return s;
      }(take<N>(beside, i * N)...);
    });
  }
  /// f(slot, j, numbers ...) for element j of a stretch, by the lane that has it in that slot.
  template <class F> constexpr void each(F const& f) const {
    team_.template turns<Turns>(stretches_, [&](i64, int slot) {
      for (int j = 0; j < N; ++j) of([&](auto... v) { f(slot, j, v...); }, slot, j);
    });
  }
  template <class F, class To, class... B> constexpr void map(F const& f, To* y, B const*... beside) const {
    team_.template turns<Turns>(stretches_, [&](i64 i, int slot) {
      [&](pack<B, N> const&... b) {
        pack<To, N> r{};
        for (int j = 0; j < N; ++j) r.v[j] = of(f, slot, j, b...);
        put(y, i * N, r);
      }(take<N>(beside, i * N)...);
    });
  }
};
/// The rows as lanes hold them in so many turns; 0: loose.
template <int Turns, class Team, class T, int M> constexpr auto rows_in(loose_rows<Team, T, M> const& r) {
  if constexpr (Turns > 0) return held_rows<Team, T, M, Turns>(r);
  else return r;
}
/// Stretches of 16 bytes in a row of n elements; 0: all lines must begin at a multiple of 16 bytes to be
/// held, and they do not.
template <class T> constexpr i64 stretches_in(i64 n, std::initializer_list<T const*> all) {
  bool aligned = n % neighbours<T> == 0;
  for (T const* p : all) aligned = aligned && at_16(p);
  return aligned ? n / neighbours<T> : 0;
}
/// Turns in which a lane holds so many numbers of a row, where they are floats when they are computed with;
/// else none.
template <class Scalar, int Numbers>
inline constexpr int numbers_held = sizeof(computed<Scalar>) == 4 ? Numbers / neighbours<Scalar> : 0;
/// So many turns, each of which is 16 bytes of registers, likewise.
template <class Scalar, int Turns>
inline constexpr int turns_held = sizeof(computed<Scalar>) == 4 ? Turns : 0;
/// A functor of teams, with lanes that hold what they can in so many turns.
template <class F, int Turns> struct in_turns {
  F f;
  template <class Team> constexpr void operator()(i64 i, Team const& team) const {
    f(i, team, std::integral_constant<int, Turns>{});
  }
  constexpr i64 length() const { return f.length(); }
};
/// f(i, team, integral_constant<Turns>) for 0 <= i < n. Turns: as the device can for rows of f.stretches();
/// 0, loose ones, where it cannot.
template <class Device, class F> void teams_on_rows(Device const& d, i64 n, F const& f) {
  if constexpr (requires { d.teams_holding(n, f); }) d.teams_holding(n, f);
  else d.teams(n, in_turns<F, 0>{f});
}

}  // namespace tensorpar::exec::detail
