// tensorpar/exec/step/learning_rate.hpp - learning rates as plain values: what the rate is follows from the
// step alone
#pragma once
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <tensorpar/core/config.hpp>
#include <tensorpar/core/error.hpp>
#include <variant>

namespace tensorpar {

/// The same rate at every step.
struct constant_rate {
  double value = 0.1;
  friend bool operator==(constant_rate const&, constant_rate const&) = default;
};
/// Grows linearly over the first `warm_up` steps to `peak` (Goyal et al. 2017, section 2.2), then falls along
/// half a cosine to `last` at step `total` (Loshchilov and Hutter 2017, equation 5, one period), where it
/// stays.
struct warm_up_cosine {
  double peak = 0.1;
  u64 warm_up = 0, total = 1000;
  double last = 0;
  friend bool operator==(warm_up_cosine const&, warm_up_cosine const&) = default;
};
/// `first`, multiplied by `factor` after every `every` steps.
struct step_decay {
  double first = 0.1;
  u64 every = 1000;
  double factor = 0.1;
  friend bool operator==(step_decay const&, step_decay const&) = default;
};
/// Any of them: a regular value.
using rate_schedule = std::variant<constant_rate, warm_up_cosine, step_decay>;

namespace detail {
inline void check_rate(double x, char const* name, double most = std::numeric_limits<double>::max()) {
  if (x >= 0 && x <= most) return;
  char text[64];                                   // to_string would write hundreds of digits
  std::snprintf(text, sizeof text, "a learning rate of %g", x);
  std::string const what = text;
  std::snprintf(text, sizeof text, "a finite number from 0 to %.3g", most);
  throw error(what, name, text);
}
}  // namespace detail

/// The learning rate of step 0, 1, ... Pure, so a resumed run goes on as it would have. O(1). Throws `error`
/// for a schedule that makes no sense. Laws: 0 <= rate <= the largest of the rates named; a warm-up never
/// falls, what follows it never grows.
inline double rate(constant_rate const& s, u64) {
  detail::check_rate(s.value, "constant_rate.value");
  return s.value;
}
inline double rate(warm_up_cosine const& s, u64 step) {
  detail::check_rate(s.peak, "warm_up_cosine.peak");
  detail::check_rate(s.last, "warm_up_cosine.last");
  if (s.last > s.peak)
    throw error("the last rate is above the peak", "warm_up_cosine.last",
                "from 0 to " + std::to_string(s.peak));
  if (s.total <= s.warm_up)
    throw error("a warm-up of " + std::to_string(s.warm_up) + " steps", "warm_up_cosine.warm_up",
                "fewer than all " + std::to_string(s.total) + " steps");
  // step 0 learns, too
  if (step < s.warm_up) return s.peak * (static_cast<double>(step + 1) / static_cast<double>(s.warm_up));
  if (step >= s.total) return s.last;
  double const done = static_cast<double>(step - s.warm_up) / static_cast<double>(s.total - s.warm_up);
  double const x = s.last + (s.peak - s.last) * (0.5 * (1 + std::cos(3.14159265358979323846 * done)));
  return x < s.peak ? x : s.peak;  // a sum may round to just above
}
inline double rate(step_decay const& s, u64 step) {
  detail::check_rate(s.first, "step_decay.first");
  if (s.every == 0) throw error("a decay after every 0 steps", "step_decay.every", "a whole number from 1");
  if (!(s.factor > 0 && s.factor <= 1))
    throw error("a factor of " + std::to_string(s.factor), "step_decay.factor", "above 0, at most 1");
  return s.first * std::pow(s.factor, static_cast<double>(step / s.every));
}
inline double rate(rate_schedule const& s, u64 step) {
  return std::visit([&](auto const& x) { return rate(x, step); }, s);
}

}  // namespace tensorpar
