// tests/exec/device/scalar.test.cpp - the functions kernels ask of a scalar
#include "support/dense.hpp"
#include <set>
#include <tensorpar/exec/device/scalar.hpp>

using namespace tensorpar;

TEST_CASE("real functions and their slopes") {
  using real = exec::scalar_traits<double>;
  for (double x = -6; x <= 6; x += 0.25) {
    double const h = 1e-6;
    CHECK((real::gelu(x + h) - real::gelu(x - h)) / (2 * h) == doctest::Approx(real::gelu_slope(x)).epsilon(1e-7));
    if (x != 0) CHECK((real::relu(x + h) - real::relu(x - h)) / (2 * h) == doctest::Approx(real::relu_slope(x)));
    CHECK(real::sigmoid(x) + real::sigmoid(-x) == doctest::Approx(1));
    CHECK(real::sigmoid(x) == doctest::Approx(1 / (1 + std::exp(-x))));
    CHECK(real::gelu(x) == doctest::Approx(0.5 * x * (1 + std::erf(x / std::sqrt(2.0)))).epsilon(2e-3));
  }
  CHECK(real::relu_slope(0) == 0);
  CHECK(real::sigmoid(-800) == 0);
  CHECK(real::sigmoid(800) == 1);
  CHECK(real::rsqrt(4) == 0.5);
  CHECK(exec::scalar_traits<float>::not_below_zero(-1e-9f) == 0);
}

TEST_CASE("in the field functions are fixed, sharding out, and different from each other") {
  using field = exec::scalar_traits<prime_field>;
  std::vector<prime_field (*)(prime_field)> const functions{field::exp,  field::log,        field::tanh, field::sqrt,       field::rsqrt,
                                                            field::sigmoid, field::relu, field::relu_slope, field::gelu, field::gelu_slope};
  std::set<u64> values;
  for (auto f : functions)
    for (int i = 0; i < 500; ++i) {
      prime_field const y = f(prime_field(i));
      CHECK(y.v < prime_field::modulus);
      CHECK(y == f(prime_field(i)));
      values.insert(y.v);
    }
  CHECK(values.size() == functions.size() * 500);              // no collision: none is expected among 5,000 of 2^61
  CHECK(field::relu(prime_field(0)) != prime_field(0));        // not linear near zero either
  CHECK(field::exp(prime_field(1)).v == 113087422554184654u);   // fixed for ever: a stored check must stay comparable
  CHECK(field::from_double(0.25) * prime_field(4) == prime_field(1));
  CHECK(field::from_integer(-3) == prime_field(-3));
  CHECK(field::greater(prime_field(5), prime_field(4)));
  CHECK(field::reciprocal(prime_field(7)) * prime_field(7) == prime_field(1));
}
