// tests/exec/cpu/kernels/activated.test.cpp - a function computed with its operator is the function of the operator's result, to the last
// bit
#include <tensorpar/exec/cpu/kernels/activated.hpp>
#include "support/dense.hpp"
#include <doctest/doctest.h>

#include <random>
#include <tensorpar/exec/cpu/eigen.hpp>

using namespace tensorpar;

namespace {
/// A function of the user's.
struct halved {
  static constexpr auto name = "halved";
  static constexpr auto notation = "... -> ...";
  constexpr op::inference infer(shapes in) const { return in[0]; }
};
}  // namespace
template <> struct tensorpar::exec::scalar_function<halved> {
  template <class Scalar> static Scalar of(Scalar x) { return x * exec::scalar_traits<Scalar>::from_double(0.5); }
};

namespace {
template <class Scalar> void same_bits(op::any_op const& both, std::vector<shape> const& in) {
  using policy = compute::eigen<Scalar, op::op_set<halved, op::activated<linear, halved>>>;
  std::mt19937_64 r(7);
  std::vector<tests::dense<Scalar>> x;
  for (shape const& s : in) x.push_back(tests::random_dense<Scalar>(s, 1, r));
  op::any_op one = both, then;
  one.op = both.op->first;
  then.op = both.op->then;
  auto const apart = tests::run_whole<policy>(then, {tests::run_whole<policy>(one, x)[0]})[0].real;
  auto const whole = tests::run_whole<policy>(both, x)[0].real;
  REQUIRE(whole.size() == apart.size());
  bool equal = true;
  for (std::size_t i = 0; i < whole.size(); ++i) equal = equal && whole[i] == apart[i];
  CHECK(equal);
}
void all(op::any_op const& both, std::vector<shape> const& in) {
  CAPTURE(op::spell(both));
  same_bits<double>(both, in);
  same_bits<float>(both, in);
  same_bits<prime_field>(both, in);
}
}  // namespace

TEST_CASE("an operator with a function gives what the two give one after the other, in every kind of number") {
  all(op::linear_relu{{40}}, {{36, 24}, {40, 24}, {40}});
  all(op::linear_sigmoid{{6, false}}, {{2, 4, 8}, {6, 8}});
  all(op::linear_tanh{{6}}, {{5, 8}, {6, 8}, {6}});
  all(op::conv2d_relu{{6, 3, 2, 1, 2, true}}, {{2, 4, 7, 6}, {6, 2, 3, 3}, {6}});
  all(op::conv2d_relu{{4, 1, 1, 0, 1, true}}, {{2, 6, 4, 3}, {4, 6, 1, 1}, {4}});
  all(op::activated<linear, halved>{{6}}, {{5, 8}, {6, 8}, {6}});
}
