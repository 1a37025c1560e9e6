// tests/exec/step/learning_rate.test.cpp - rates at the points that matter, and the laws over random schedules
#include <doctest/doctest.h>
#include <random>
#include <tensorpar/exec/step/learning_rate.hpp>

using namespace tensorpar;

TEST_CASE("a constant rate stays") {
  for (u64 s : {u64{0}, u64{1}, u64{1} << 63}) CHECK(rate(constant_rate{0.3}, s) == 0.3);
  CHECK(rate(rate_schedule{constant_rate{0.3}}, 5) == 0.3);
}

TEST_CASE("warm-up and half a cosine") {
  warm_up_cosine const s{.peak = 0.8, .warm_up = 4, .total = 104, .last = 0.2};
  CHECK(rate(s, 0) == doctest::Approx(0.2));
  CHECK(rate(s, 1) == doctest::Approx(0.4));
  CHECK(rate(s, 3) == 0.8);
  CHECK(rate(s, 4) == 0.8);
  CHECK(rate(s, 54) == doctest::Approx(0.5));  // the middle of the cosine
  CHECK(rate(s, 4 + 25) == doctest::Approx(0.2 + 0.6 * (1 + std::sqrt(0.5)) / 2));
  CHECK(rate(s, 104) == 0.2);
  CHECK(rate(s, u64{1} << 60) == 0.2);
  CHECK(rate(warm_up_cosine{.peak = 1, .warm_up = 0, .total = 2}, 0) == 1);
  CHECK(rate(warm_up_cosine{.peak = 1, .warm_up = 0, .total = 2}, 1) == doctest::Approx(0.5));
}

TEST_CASE("steps down") {
  step_decay const s{.first = 0.4, .every = 10, .factor = 0.5};
  CHECK(rate(s, 0) == 0.4);
  CHECK(rate(s, 9) == 0.4);
  CHECK(rate(s, 10) == doctest::Approx(0.2));
  CHECK(rate(s, 39) == doctest::Approx(0.05));
}

TEST_CASE("laws: within bounds, up in the warm-up and down after it, nearly continuous, pure") {
  std::mt19937_64 draw(2);
  auto const real = [&] { return static_cast<double>(draw() % 1000) / 1000; };
  for (int trial = 0; trial < 300; ++trial) {
    u64 const warm_up = draw() % 30, total = warm_up + 1 + draw() % 60;
    double const peak = real() + 0.001;
    std::vector<rate_schedule> const all{constant_rate{peak}, warm_up_cosine{peak, warm_up, total, peak * real()},
                                    step_decay{peak, 1 + draw() % 20, 0.05 + 0.95 * real()}};
    for (rate_schedule const& s : all) {
      bool const cosine = std::holds_alternative<warm_up_cosine>(s);
      for (u64 k = 0; k < 120; ++k) {
        double const x = rate(s, k), y = rate(s, k + 1);
        CHECK(x == rate(rate_schedule(s), k));
        CHECK(x >= 0);
        CHECK(x <= peak);
        if (cosine && k + 1 < warm_up)
          CHECK(y > x);
        else
          CHECK(y <= x);
        // a cosine over n steps falls by at most pi / (2 n) of its height in one
        if (cosine && k >= warm_up) CHECK(x - y <= peak * (1.5708 / static_cast<double>(total - warm_up)) + 1e-12);
      }
    }
  }
}

TEST_CASE("schedules that make no sense are refused") {
  auto const says = [](rate_schedule const& s) -> std::string {
    try {
      rate(s, 0);
    } catch (error const& e) { return e.where(); }
    return "";
  };
  CHECK(says(constant_rate{-1}) == "constant_rate.value");
  CHECK(says(constant_rate{std::nan("")}) == "constant_rate.value");
  CHECK(says(constant_rate{INFINITY}) == "constant_rate.value");
  CHECK(says(constant_rate{0}) == "");
  CHECK(says(warm_up_cosine{.peak = -1}) == "warm_up_cosine.peak");
  CHECK(says(warm_up_cosine{.peak = 0.1, .warm_up = 0, .total = 9, .last = 0.2}) == "warm_up_cosine.last");
  CHECK(says(warm_up_cosine{.peak = 1, .warm_up = 5, .total = 5}) == "warm_up_cosine.warm_up");
  CHECK(says(warm_up_cosine{.peak = 1, .warm_up = 0, .total = 0}) == "warm_up_cosine.warm_up");
  CHECK(says(step_decay{.first = 1, .every = 0}) == "step_decay.every");
  CHECK(says(step_decay{.first = 1, .every = 1, .factor = 0}) == "step_decay.factor");
  CHECK(says(step_decay{.first = 1, .every = 1, .factor = 1.5}) == "step_decay.factor");
  CHECK_THROWS_WITH_AS(detail::check_rate(-1e300, "step", 8), "a learning rate of -1e+300 (at step); valid: a finite number from 0 to 8",
                       error);
  CHECK_THROWS_WITH_AS(detail::check_rate(9, "step", 8), doctest::Contains("from 0 to 8"), error);
  CHECK_NOTHROW(detail::check_rate(8, "step", 8));
}
