// tensorpar/exec/teams/lines.hpp - a team on one row of each of several matrices: sums and maps, 16 bytes at a time where rows allow it
#pragma once
#include <tensorpar/exec/teams/kernel.hpp>

namespace tensorpar::detail {

/// Neighbours that fit into 16 bytes of each of these, at least one.
template <class... T> inline constexpr int neighbours = [] {
  std::size_t most = 1;
  for (std::size_t n : {sizeof(T)...}) most = n > most ? n : most;
  return static_cast<int>(16 / most);
}();

/// The sum of f(x[i] ...) for 0 <= i < n. f takes numbers as they are computed with.
template <class Number, class Team, class F, class... T> constexpr Number line_sum(Team const& team, i64 n, F const& f, T const*... x) {
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
template <class Team, class F, class To, class... T> constexpr void line_map(Team const& team, i64 n, F const& f, To* y, T const*... x) {
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

}  // namespace tensorpar::detail
