// tests/exec/non_finite.test.cpp - NaN and infinity go through every operator as its formula has it, in every kernel family
#include "support/effort.hpp"
#include "support/fused_oracle.hpp"
#include "support/laws/non_finite.hpp"
#include "straight_loops.hpp"
#include <tensorpar/exec/cudnn/attention_graphs.hpp>
#include <tensorpar/exec/teams/teams.hpp>
#include "support/eigen_once.hpp"
#include "support/teams_once.hpp"

using namespace tensorpar;
using namespace tests;

namespace {

using reference = compute::eigen<double>;

}  // namespace

TEST_CASE("what is infinite or no number in a result is what the plain formula has there") {
  int tried = 0;
  each_bad_call<reference>(test_effort::cases(4), 1,
                           [&](op::any_op const& o, operands_of_double const& x, exec::step_state const& state, std::size_t k,
                                                    std::size_t e) {
    operands_of_double want;
    for (shape const& t : infer_all(o, x)) want.push_back(make_dense<double>(whole(t)));
    if (!straight_loops(o, x, want, state)) return;
    ++tried;
    std::string const got = kinds_by<reference>(o, x, state), right = kinds_of(want);
    CHECK_MESSAGE(got == right, (op::spell(o) + " with " + std::to_string(x[k].real[e]) + " at element " + std::to_string(e)
                                 + " of operand " + std::to_string(k) + ": " + got + "instead of " + right));
  });
  CHECK(tried > test_effort::cases(1000));
}

TEST_CASE("a NaN is in every number that would be another one if it were another number") {
  int tried = 0;
  each_bad_call<reference>(test_effort::cases(3), 2,
      [&](op::any_op const& o, operands_of_double const& x, exec::step_state const& state, std::size_t k, std::size_t e) {
    // these choose by the value of what they read: chosen numbers are tested below
    if (!std::isnan(x[k].real[e]) || (o.is<pool2d_grad>() && k > 0) || (o.is<relu_grad>() && k == 1) ||
        (o.is<clip_factor>() && o.as<clip_factor>().skip))
      return;
    ++tried;
    auto const y = run_whole<reference>(o, x, state);
    std::vector<operands_of_double> others;
    for (double other : {0.0, 0.7, -50.0, 50.0}) {
      operands_of_double changed = x;
      changed[k].real[e] = other;
      others.push_back(run_whole<reference>(o, changed, state));
    }
    bool lost = false;
    for (std::size_t t = 0; t < y.size(); ++t)
      for (std::size_t i = 0; i < y[t].real.size(); ++i)
        for (operands_of_double const& z : others) {
          double const a = others[0][t].real[i], b = z[t].real[i];
          lost = lost || (!std::isnan(y[t].real[i]) && std::fabs(a - b) > 1e-9 * (1 + std::fabs(a)));
        }
    CHECK_MESSAGE(!lost, (op::spell(o) + " loses a NaN at element " + std::to_string(e) + " of operand " + std::to_string(k) + ": " +
                          kinds_of(y)));
  });
  CHECK(tried > test_effort::cases(500));
}

TEST_CASE("every kernel family has the same numbers infinite, and the same that are none") {
  check_non_finite<compute::eigen<float>, reference>();
  check_non_finite<compute::teams<double>, reference>();
  check_non_finite<compute::teams<float>, reference>();
}

TEST_CASE("a maximum over a window is NaN wherever in it NaN is, and the gradient goes there") {
  for (op::any_op const& o : {op::any_op(max_pool()), op::any_op(max_pool(3, 2, 1))}) {
    std::mt19937_64 r(4);
    auto x = random_dense<double>({2, 2, 6, 6}, 1, r);
    for (std::size_t e = 0; e < x.real.size(); ++e) {
      double const before = x.real[e];
      x.real[e] = NAN;
      auto const y = run_whole<reference>(o, {x})[0];
      auto dy = y;
      for (double& d : dy.real) d = 1;
      pool2d const p = o.as<pool2d>();
      op::any_op const back = pool2d_grad{p.kernel, p.stride, p.pad, false};
      double windows = 0, given = 0;
      for (double v : y.real) windows += std::isnan(v);
      auto const dx = run_whole<reference>(back, {dy, x, y})[0];
      for (double d : dx.real) given += d;
      CHECK(windows > 0);
      CHECK(dx.real[e] == windows);                                  // all windows that it is in
      CHECK(given == static_cast<double>(y.real.size()));            // and no other gradient is lost
      CHECK(run_whole<compute::teams<double>>(back, {dy, x, y})[0].real == dx.real);
      CHECK(kinds_by<compute::teams<float>>(o, {x}, {}) == kinds_of(operands_of_double{y}));
      x.real[e] = before;
    }
  }
}

TEST_CASE("relu's gradient passes where the result is NaN, and ends where a unit is dead, whatever it is") {
  for (double d : {1.5, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    double const passed = exec::scalar_function<relu_grad>::of(d, static_cast<double>(NAN));
    CHECK(kind_of(passed) == kind_of(d));
    CHECK(kind_of(exec::scalar_function<relu_grad>::of(d, 2.0)) == kind_of(d));
    CHECK(exec::scalar_function<relu_grad>::of(d, 0.0) == 0);
    CHECK(exec::scalar_function<relu_grad>::of(static_cast<float>(d), -0.0f) == 0);
  }
}

TEST_CASE("attention as it is handed to cuDNN, whose maximum may drop a NaN, keeps it nevertheless") {
  std::mt19937_64 r(5);
  for (bool causal : {false, true}) {
    detail::attention_sizes const s{2, 2, 3, 3, 4, 0.5f, causal};
    operands_of_double x;                                                 // q, k, v
    for (int k = 0; k < 3; ++k) x.push_back(random_dense<double>({2, 3, 8}, 1, r));
    for (std::size_t k = 0; k < 3; ++k)
      for (std::size_t e = 0; e < x[k].real.size(); e += 5)
        for (double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY), -static_cast<double>(INFINITY)}) {
          operands_of_double odd = x;
          odd[k].real[e] = bad;
          auto const g = detail::attention_forward(s);
          fused_oracle o(g);
          o.give(g.at.q, odd[0].real);
          o.give(g.at.k, odd[1].real);
          o.give(g.at.v, odd[2].real);
          o.run();
          dense<double> y = make_dense<double>(whole(shape{2, 3, 8}));
          y.real = o.memory(g.at.y);
          CHECK(kinds_of(operands_of_double{y}) == kinds_by<reference>(op::any_op(attention{2, causal}), odd, {}));
        }
  }
}
