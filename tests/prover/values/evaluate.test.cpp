// tests/prover/values/evaluate.test.cpp - operators computed over any numbers, against the plainest loops over double
#include <tensorpar/prover/values/evaluate.hpp>
#include <doctest/doctest.h>

#include <exec/samples.hpp>
#include <exec/straight_loops.hpp>

using namespace tests;
using namespace tensorpar::prover;

namespace {
struct doubles {
  using value = double;
  double integer(i64 n) { return static_cast<double>(n); }
  double real(double c) { return c; }
  double plus(double a, double b) { return a + b; }
  double times(double a, double b) { return a * b; }
  double over(double a, double b) { return a / b; }
  double maximum(double a, double b) { return a < b ? b : a; }
  double apply(u64 f, double x) {
    if (f == core::name_hash("relu")) return x > 0 ? x : 0;
    if (f == core::name_hash("gelu")) return plain_gelu(x);
    if (f == core::name_hash("sigmoid")) return 1 / (1 + std::exp(-x));
    if (f == core::name_hash("tanh")) return std::tanh(x);
    if (f == core::name_hash("exp")) return std::exp(x);
    if (f == core::name_hash("1/sqrt")) return 1 / std::sqrt(x);
    FAIL("an unknown function");
    return 0;
  }
};
static_assert(number_algebra<doubles>);
}  // namespace

TEST_CASE("every operator that rules use computes what it means") {
  std::mt19937_64 draw(1);
  int known = 0;
  std::string unknown;
  for (sample const& s : forward_samples()) {
    CAPTURE(spell(s.op));
    std::vector<dense<double>> x;
    std::vector<elements<double>> in;
    for (shape const& t : s.in) {
      x.push_back(random_dense<double>(t, s.end, draw));
      in.push_back({t, x.back().real, {x.back().index.begin(), x.back().index.end()}, {}});
    }
    std::vector<shape> const out = infer_all(s.op, x);
    std::vector<dense<double>> y;
    for (shape const& t : out) y.push_back(make_dense<double>(whole(t)));
    REQUIRE(straight_loops(s.op, x, y, {}));
    doubles a;
    auto const made = evaluate(a, s.op, in, out);
    if (made.empty()) {
      if (unknown.find(s.op.op->name) == std::string::npos) unknown += std::string(s.op.op->name) + " ";
      continue;
    }
    ++known;
    REQUIRE(made.size() == y.size());
    for (std::size_t k = 0; k < y.size(); ++k) {
      REQUIRE(made[k].data.size() == y[k].real.size());
      REQUIRE(made[k].index.size() == y[k].index.size());
      for (std::size_t i = 0; i < y[k].real.size(); ++i) CHECK(made[k].data[i] == doctest::Approx(y[k].real[i]).epsilon(1e-12));
      for (std::size_t i = 0; i < y[k].index.size(); ++i) CHECK(made[k].index[i] == y[k].index[i]);
    }
  }
  CHECK(known > 35);
  // drawn at random, statistics of a batch, or a norm of whole rows: no rule is about them
  CHECK(unknown == "global_average swiglu dropout constant rmsnorm channel_moments normalize sum_heads repeat_heads cross_entropy mean_squared_error ");
}
