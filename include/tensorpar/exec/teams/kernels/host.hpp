// tensorpar/exec/teams/kernels/host.hpp - teams of lanes played by one thread of this processor: kernels for
// accelerators, run and debugged here
#pragma once
#include <array>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/teams/kernels/lines.hpp>

namespace tensorpar::exec {

/// A team whose lanes take turns, the last one first: what relies on an order among lanes shows.
template <int Lanes> struct host_team {
  template <class F> constexpr void each(i64 n, F&& f) const {
    for (i64 i = n - 1; i >= 0; --i) f(i);
  }
  template <class Scalar, class F> constexpr Scalar sum(i64 n, F&& f) const {
    std::array<Scalar, std::size_t{Lanes}> part{};
    for (int lane = Lanes - 1; lane >= 0; --lane)
      for (i64 i = lane; i < n; i += Lanes) part[idx(lane)] += f(i);
    for (std::size_t half = Lanes / 2; half > 0; half /= 2)
      for (std::size_t lane = 0; lane < half; ++lane) part[lane] += part[lane + half];
    return part[0];
  }
  template <class Scalar, class F> constexpr Scalar top(i64 n, F&& f) const {
    Scalar r = f(n - 1);
    for (i64 i = n - 2; i >= 0; --i) {
      Scalar const x = f(i);
      if (scalar_traits<Scalar>::greater(x, r)) r = x;
    }
    return r;
  }
  template <class F> constexpr void alone(F&& f) const { f(); }

  static constexpr int lanes = Lanes;
  // one thread holds what all lanes do
  template <int Turns> static constexpr int slots = Turns * Lanes;
  template <int Turns, class F> constexpr void turns(i64 n, F&& f) const {
    for (i64 i = n - 1; i >= 0; --i) f(i, static_cast<int>(i));
  }
  template <int Turns, class Scalar, class F> constexpr Scalar sum_turns(i64 n, F&& f) const {
    return sum<Scalar>(n, [&](i64 i) { return f(i, static_cast<int>(i)); });
  }
};

/// Models `team_device`. Lanes: a power of two; it changes how sums are rounded and nothing else.
template <int Lanes = 32> class host_teams {
  static_assert(Lanes > 0 && (Lanes & (Lanes - 1)) == 0);

 public:
  using memory = host_memory;
  memory device_memory() const { return {}; }
  template <class F> void each(i64 n, F const& f) const {
    i64 rest = 0;
    if constexpr (requires { F::at_once; })
      if (f.aligned()) {
        constexpr int together = F::at_once;
        rest = n / together * together;
        for (i64 i = n / together - 1; i >= 0; --i) f.template several<together>(i * together);
      }
    for (i64 i = n - 1; i >= rest; --i) f(i);
  }
  template <class F> void teams(i64 n, F const& f) const {
    for (i64 i = n - 1; i >= 0; --i) f(i, host_team<Lanes>{});
  }
  template <class F> void teams_holding(i64 n, F const& f) const {
    i64 const turns = (f.stretches() + Lanes - 1) / Lanes;
    if (turns == 1) return teams(n, detail::in_turns<F, 1>{f});
    if (turns == 2) return teams(n, detail::in_turns<F, 2>{f});
    teams(n, detail::in_turns<F, 0>{f});
  }
  template <class Scalar, class Result> void product(matrix_products<Scalar, Result> const& p) const {
    detail::product_at<Scalar, Result> const f{p};
    each(f.count(), f);
  }
  /// The calling thread's: calls are done when they return.
  index_fault* fault() const {
    static thread_local index_fault f;
    return &f;
  }
  void settle() const { detail::throw_if_fault(*fault()); }
};

}  // namespace tensorpar::exec
