// tests/support/threaded_teams.hpp - teams whose lanes are threads: what lanes do to one another shows, under ThreadSanitizer by name
#pragma once
#include <barrier>
#include <cstring>
#include <functional>
#include <tensorpar/exec/teams/kernels/host.hpp>
#include <thread>
#include <vector>

namespace tests {

using namespace tensorpar;

template <int Lanes> struct lanes_in_step {
  std::barrier<> meeting{Lanes};
  alignas(16) std::byte room[Lanes][16];
};
/// One lane of a team.
template <int Lanes> struct threaded_team {
  lanes_in_step<Lanes>* shared;
  int lane;
  void meet() const { shared->meeting.arrive_and_wait(); }
  template <class F> void each(i64 n, F&& f) const {
    for (i64 i = lane; i < n; i += Lanes) f(i);
    meet();
  }
  template <class Scalar, class F> Scalar sum(i64 n, F&& f) const {
    Scalar part(0);
    for (i64 i = lane; i < n; i += Lanes) part += f(i);
    return joined(part, [](Scalar a, Scalar b) { return a + b; });
  }
  template <class Scalar, class F> Scalar top(i64 n, F&& f) const {
    Scalar part = f(lane < n ? lane : 0);
    for (i64 i = lane + Lanes; i < n; i += Lanes) part = exec::scalar_traits<Scalar>::greater(f(i), part) ? f(i) : part;
    return joined(part, [](Scalar a, Scalar b) { return exec::scalar_traits<Scalar>::greater(b, a) ? b : a; });
  }
  template <class F> void alone(F&& f) const {
    if (lane == 0) f();
    meet();
  }
  static constexpr int lanes = Lanes;
  template <int Turns> static constexpr int slots = Turns;
  template <int Turns, class F> void turns(i64 n, F&& f) const {
    int turn = 0;
    for (i64 i = lane; i < n; i += Lanes) f(i, turn++);
  }
  template <int Turns, class Scalar, class F> Scalar sum_turns(i64 n, F&& f) const {
    return sum<Scalar>(n, [&](i64 i) { return f(i, static_cast<int>(i / Lanes)); });
  }

 private:
  template <class Scalar, class Join> Scalar joined(Scalar part, Join join) const {
    static_assert(sizeof(Scalar) <= 16);
    std::memcpy(shared->room[lane], &part, sizeof part);
    meet();
    Scalar all(0), next(0);
    std::memcpy(&all, shared->room[0], sizeof all);
    for (int l = 1; l < Lanes; ++l) {
      std::memcpy(&next, shared->room[l], sizeof next);
      all = join(all, next);
    }
    meet();
    return all;
  }
};

/// Models `team_device`.
template <int Lanes> class threaded_teams : public exec::host_teams<> {
  static void on_lanes(std::function<void(int)> const& run) {          // one type, and so one class of threads, for all kernels
    std::vector<std::jthread> lanes;
    for (int lane = 1; lane < Lanes; ++lane) lanes.emplace_back([&run, lane] { run(lane); });
    run(0);
  }

 public:
  template <class F> void each(i64 n, F const& f) const {
    on_lanes([&](int lane) { for (i64 i = lane; i < n; i += Lanes) f(i); });
  }
  template <class F> void teams(i64 n, F const& f) const {
    lanes_in_step<Lanes> shared;
    on_lanes([&](int lane) { for (i64 i = 0; i < n; ++i) f(i, threaded_team<Lanes>{&shared, lane}); });
  }
  template <class F> void teams_holding(i64 n, F const& f) const {
    using tensorpar::exec::detail::in_turns;
    i64 const turns = (f.stretches() + Lanes - 1) / Lanes;
    if (turns > 0 && turns <= 4) return teams(n, exec::detail::in_turns<F, 4>{f});
    teams(n, exec::detail::in_turns<F, 0>{f});
  }
  template <class Scalar, class Result> void product(exec::matrix_products<Scalar, Result> const& p) const {
    tensorpar::exec::detail::product_at<Scalar, Result> const f{p};
    each(f.count(), f);
  }
};

}  // namespace tests
