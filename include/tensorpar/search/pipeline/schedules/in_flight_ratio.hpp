// tensorpar/search/pipeline/schedules/in_flight_ratio.hpp - samples in flight for any ratio of forward to
// backward time
#pragma once
#include <algorithm>
#include <cmath>
#include <map>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/search/pipeline/schedules/orders.hpp>
#include <tensorpar/simulate/pipeline.hpp>
#include <tuple>

namespace tensorpar::search {

/// The fewest samples stage x must keep in flight so that x and y finish as early as any kFkB order of x lets
/// them. y needs as long per sample, follows kFkB with i_y samples in flight, and nothing below y makes it
/// wait. Table 3.2 is the case forward = backward. Let X = k_x b_x, Y = k_y b_y, M = max(b_x, b_y), and let
/// each of X, Y and M divide or be divided by each other. (So it is for powers of two, and for 1F1B with
/// sizes of which one divides the other.) Then the answer is, rounded up to whole micro-batches of x,
///   i_y + max(X - Y, 0) + min(M (forward + backward) / forward,   max(M, min(X, Y))).
/// Found, and checked in the tests, by trying all; other k shift the blocks of k against each other: then two
/// stages are simulated and the answer is kept. O(1); O(k b * samples) once for each new combination of the
/// other kind, so not for several threads at once.
class in_flight_ratio {
  double forward_, backward_;
  std::map<std::tuple<i64, i64, i64, i64, i64>, i64> known_;

  static bool aligned(i64 a, i64 b) { return a % b == 0 || b % a == 0; }
  static i64 whole(i64 i, i64 b) { return (i + b - 1) / b * b; }

 public:
  /// Seconds of one sample's forward and backward pass (with weights), in any unit. Throws `error` unless
  /// positive and finite.
  explicit in_flight_ratio(double forward = 1, double backward = 1) : forward_(forward), backward_(backward) {
    if (!(forward > 0 && forward < infinity && backward > 0 && backward < infinity))
      throw error(
          "forward and backward times of " + std::to_string(forward) + " and " + std::to_string(backward),
          "in_flight_ratio", "positive and finite");
  }

  /// The closed form: exact if X, Y and M are aligned, else a lower bound.
  i64 closed_form(i64 k_x, i64 b_x, i64 k_y, i64 b_y, i64 i_y) const {
    i64 const x = k_x * b_x, y = k_y * b_y, larger = std::max(b_x, b_y),
              most = std::max(larger, std::min(x, y));
    double const wanted = static_cast<double>(larger) * (1 + backward_ / forward_);
    i64 const more =
        wanted >= static_cast<double>(most) ? most : static_cast<i64>(std::ceil(wanted * (1 - 1e-12)));
    return whole(i_y + std::max<i64>(x - y, 0) + more, b_x);
  }

  /// Pre: all at least 1, b_x divides b_y or the other way round, b_y divides i_y and i_y >= k_y b_y.
  i64 operator()(i64 k_x, i64 b_x, i64 k_y, i64 b_y, i64 i_y) {
    i64 const x = k_x * b_x, y = k_y * b_y, larger = std::max(b_x, b_y);
    if (aligned(x, y) && aligned(x, larger) && aligned(y, larger))
      return closed_form(k_x, b_x, k_y, b_y, i_y);
    i64 const unit = std::min(b_x, b_y);   // it divides everything
    auto const [at, is_new] = known_.try_emplace({k_x, b_x / unit, k_y, b_y / unit, i_y / unit}, 0);
    if (is_new) at->second = simulated(k_x, b_x / unit, k_y, b_y / unit, i_y / unit);
    return at->second * unit;
  }

  /// The same by trial: the first number from the closed form upwards with which the two stages take no
  /// longer than with all forward passes first. 16 rounds of the larger block, so that a delay per round adds
  /// up.
  i64 simulated(i64 k_x, i64 b_x, i64 k_y, i64 b_y, i64 i_y) const {
    i64 const larger = std::max(b_x, b_y),
              samples = whole(16 * std::max(k_x * b_x, k_y * b_y) + 2 * i_y, larger);
    pipeline p;
    p.mini_batch = samples;
    p.groups = {{0, 1}, {1, 1}};
    p.stages.resize(2);
    simulation::pipeline_costs c;
    for (std::size_t s = 0; s < 2; ++s) {
      i64 const b = s == 0 ? b_x : b_y;
      p.stages[s].group = static_cast<int>(s);
      p.stages[s].micro_batch = b;
      c.stages.push_back({forward_ * static_cast<double>(b), backward_ * static_cast<double>(b), 0, 0, 1});
    }
    simulation::pipeline_simulator run(p, passes::chain_of_stages(2), c);
    auto const seconds = [&](i64 i) {
      p.schedule = {k_f_k_b_order(p, 0, i / b_x, static_cast<int>(k_x)),
                 k_f_k_b_order(p, 1, i_y / b_y, static_cast<int>(k_y))};
      simulation::pipeline_run const* r = run.attempt(p.schedule);
      return r ? r->makespan : infinity;
    };
    double const best = seconds(samples) * (1 + 1e-12);
    i64 i = closed_form(k_x, b_x, k_y, b_y, i_y);
    while (i < samples && seconds(i) > best) i += b_x;
    return i;
  }
};

}  // namespace tensorpar::search
