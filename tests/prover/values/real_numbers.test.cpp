// tests/prover/values/real_numbers.test.cpp - real functions against the operators' own definitions
#include <tensorpar/prover/values/real_numbers.hpp>
#include <doctest/doctest.h>

#include <random>
#include <tensorpar/exec/cpu/common/scalar_function.hpp>

using namespace tensorpar;
using namespace tensorpar::prover;

static_assert(number_algebra<real_numbers>);

TEST_CASE("functions are those that executors compute") {
  real_numbers a;
  for (int i = -40; i <= 40; ++i) {
    double const x = i / 8.0;
    CHECK(a.apply(core::name_hash("relu"), x) == doctest::Approx(exec::scalar_function<relu>::of(x)));
    CHECK(a.apply(core::name_hash("gelu"), x) == doctest::Approx(exec::scalar_function<gelu>::of(x)));
    CHECK(a.apply(core::name_hash("sigmoid"), x) == doctest::Approx(exec::scalar_function<sigmoid>::of(x)));
    CHECK(a.apply(core::name_hash("tanh"), x) == doctest::Approx(exec::scalar_function<tanh_>::of(x)));
    CHECK(a.apply(core::name_hash("exp"), x) == doctest::Approx(std::exp(x)));
  }
  CHECK(a.apply(core::name_hash("1/sqrt"), 4) == 0.5);
  CHECK(!a.unknown);
  a.apply(core::name_hash("cubed"), 2);
  CHECK(a.unknown);
}

TEST_CASE("what rounding makes is close, what is not finite says nothing") {
  std::mt19937 draw(1);
  auto const x = random_reals(shape{dim(4), dim(5)}, draw, 8);
  CHECK(x.data.size() == 20);
  auto y = x;
  CHECK(compare_reals(x, y) == closeness::close);
  y.data[3] += 1e-13;
  CHECK(compare_reals(x, y) == closeness::close);
  y.data[3] += 1e-4;
  CHECK(compare_reals(x, y) == closeness::apart);
  y.data[4] = std::numeric_limits<double>::quiet_NaN();
  CHECK(compare_reals(x, y) == closeness::not_finite);
  shape indices{dim(6)};
  indices.type = dtype::i64;
  for (i64 row : random_reals(indices, draw, 8).index) CHECK((row >= 0 && row < 8));
}
