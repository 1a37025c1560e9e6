// tests/exec/cpu/kernels/rms_norm.test.cpp - RMS norm by its definition, and its derivative as the slope of a sum
#include <doctest/doctest.h>

#include <cmath>
#include <support/dense.hpp>
#include <tensorpar/exec/cpu/eigen.hpp>
#include <tensorpar/exec/cpu/kernels/rms_norm.hpp>

using namespace tensorpar;
using policy = compute::eigen<double>;

namespace {
std::vector<double> by_definition(std::vector<double> const& x, std::vector<double> const& gamma, double eps) {
  std::vector<double> y;
  std::size_t const e = gamma.size();
  for (std::size_t r = 0; r < x.size() / e; ++r) {
    double squares = 0;
    for (std::size_t i = 0; i < e; ++i) squares += x[r * e + i] * x[r * e + i];
    for (std::size_t i = 0; i < e; ++i) y.push_back(x[r * e + i] / std::sqrt(squares / static_cast<double>(e) + eps) * gamma[i]);
  }
  return y;
}
}  // namespace

TEST_CASE("rows of any length, with a large or a small epsilon") {
  std::mt19937_64 draw(1);
  for (i64 e : {1, 2, 7, 64})
    for (double eps : {1e-5, 0.5}) {
      auto const x = tests::random_dense<double>({3, 2, dim(e)}, 1, draw), gamma = tests::random_dense<double>({dim(e)}, 1, draw);
      auto const y = tests::run_whole<policy>(rmsnorm{eps}, {x, gamma})[0].real, want = by_definition(x.real, gamma.real, eps);
      REQUIRE(y.size() == want.size());
      for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == doctest::Approx(want[i]).epsilon(1e-13));
    }
}

TEST_CASE("the derivatives are slopes") {
  std::mt19937_64 draw(2);
  auto x = tests::random_dense<double>({2, 5}, 1, draw), gamma = tests::random_dense<double>({5}, 1, draw);
  auto const d = tests::random_dense<double>({2, 5}, 1, draw);
  auto const weighted = [&] {
    double s = 0;
    auto const y = by_definition(x.real, gamma.real, 1e-5);
    for (std::size_t i = 0; i < y.size(); ++i) s += y[i] * d.real[i];
    return s;
  };
  auto const slope = [&](double& at) {
    double const was = at, h = 1e-5;
    at = was + h;
    double const up = weighted();
    at = was - h;
    double const down = weighted();
    at = was;
    return (up - down) / (2 * h);
  };
  auto const dx = tests::run_whole<policy>(rmsnorm_grad_x{}, {d, x, gamma})[0].real;
  for (std::size_t i = 0; i < dx.size(); ++i) CHECK(dx[i] == doctest::Approx(slope(x.real[i])).epsilon(1e-7));
  auto const dg = tests::run_whole<policy>(rmsnorm_grad_gamma{}, {d, x})[0].real;
  for (std::size_t i = 0; i < dg.size(); ++i) CHECK(dg[i] == doctest::Approx(slope(gamma.real[i])).epsilon(1e-7));
}
