// tests/exec/cpu/eigen.test.cpp - every forward kernel against straight loops, every gradient against finite differences
#include "support/laws/compute.hpp"
#include "samples.hpp"
#include "straight_loops.hpp"
#include <set>
#include <tensorpar/exec/cpu/common/kernels.hpp>
#include <tensorpar/exec/cpu/common/kernels_gemm.hpp>
#include <tensorpar/exec/cpu/kernels/attention.hpp>
#include <tensorpar/exec/cpu/kernels/batch_norm.hpp>
#include <tensorpar/exec/cpu/kernels/contraction.hpp>
#include <tensorpar/exec/cpu/kernels/convolution.hpp>
#include <tensorpar/exec/cpu/kernels/embedding.hpp>
#include <tensorpar/exec/cpu/kernels/loss.hpp>
#include <tensorpar/exec/cpu/kernels/pointwise.hpp>
#include <tensorpar/exec/cpu/kernels/pooling.hpp>
#include <tensorpar/exec/cpu/kernels/reduction.hpp>
#include <tensorpar/exec/cpu/kernels/rms_norm.hpp>
#include <tensorpar/exec/cpu/kernels/structural.hpp>
#include <tensorpar/exec/cpu/kernels/update.hpp>
#include <tensorpar/exec/device/kernel.hpp>
#include "support/eigen_once.hpp"

using namespace tensorpar;
using policy = compute::eigen<double>;
using tests::dense;

namespace {

double worst_difference(std::vector<dense<double>> const& a, std::vector<dense<double>> const& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    REQUIRE(a[k].real.size() == b[k].real.size());
    CHECK(a[k].index == b[k].index);
    for (std::size_t e = 0; e < a[k].real.size(); ++e) worst = std::max(worst, tests::distance(a[k].real[e], b[k].real[e]));
  }
  return worst;
}

/// sum over results of weight * result
double weighted(std::vector<dense<double>> const& y, std::vector<dense<double>> const& w) {
  double s = 0;
  for (std::size_t k = 0; k < y.size(); ++k)
    for (std::size_t e = 0; e < y[k].real.size(); ++e) s += y[k].real[e] * w[k].real[e];
  return s;
}

}  // namespace

TEST_CASE("forward kernels agree with straight loops") {
  std::mt19937_64 r(3);
  tensorpar::exec::step_state state;
  state.step = 4;
  state.seed = 9;
  state.learning_rate = 0.3;
  std::set<std::string> seen;
  for (auto const& list : {tests::forward_samples(), tests::other_samples()})
    for (tests::sample const& s : list) {
      auto const x = tests::operands_of<double>(s, r);
      std::vector<dense<double>> expected;
      for (shape const& t : tests::infer_all(s.op, x)) expected.push_back(tests::make_dense<double>(tests::whole(t)));
      bool const known = tests::straight_loops(s.op, x, expected, state);
      CHECK_MESSAGE(known, (spell(s.op) + " has no reference"));
      if (!known) continue;
      double const worst = worst_difference(tests::run_whole<policy>(s.op, x, state), expected);
      CHECK_MESSAGE(worst < 1e-12, (spell(s.op) + " is off by " + std::to_string(worst)));
      seen.insert(std::string(s.op.op->name));
    }
  CHECK(seen.size() == 60);
}

TEST_CASE("float kernels agree with double ones") {
  std::mt19937_64 r(8);
  for (tests::sample const& s : tests::forward_samples()) {
    auto x = tests::operands_of<double>(s, r);
    std::vector<dense<float>> f;
    for (auto& t : x) {
      f.push_back({t.block, {}, t.index});
      for (double& e : t.real) { f.back().real.push_back(static_cast<float>(e)); e = f.back().real.back(); }
    }
    auto const y = tests::run_whole<compute::eigen<float>>(s.op, f);
    std::vector<dense<double>> wide;
    for (auto const& t : y) wide.push_back({t.block, {t.real.begin(), t.real.end()}, t.index});
    double const worst = worst_difference(wide, tests::run_whole<policy>(s.op, x));
    CHECK_MESSAGE(worst < 2e-5, (spell(s.op) + " is off by " + std::to_string(worst)));
  }
}

TEST_CASE("gradients agree with finite differences") {
  std::mt19937_64 r(4);
  tensorpar::exec::step_state state;
  state.seed = 3;
  std::set<std::string> seen;
  int directions = 0;
  for (tests::sample const& s : tests::forward_samples()) {
    if (!s.differentiable()) continue;
    auto x = tests::operands_of<double>(s, r);
    auto const y = tests::run_whole<policy>(s.op, x, state);
    if (y.empty() || y[0].integer()) continue;
    std::vector<dense<double>> w;
    for (auto const& t : y) w.push_back(tests::random_dense<double>(t.block.local_shape(), 1, r));
    tests::eager<policy> const g(s.op, x, y, w, state);
    for (auto const& e : g.emitted) seen.insert(std::string(e.op.op->name));
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (g.given[i] < 0) continue;
      auto const& gradient = g.tensors[static_cast<std::size_t>(g.given[i])];
      double worst = 0;
      std::size_t const step = x[i].real.size() / 60 + 1;      // large operands: a sample of their elements
      for (std::size_t e = 0; e < x[i].real.size(); e += step) {
        double const at = x[i].real[e], h = 1e-5;
        x[i].real[e] = at + h;
        double const up = weighted(tests::run_whole<policy>(s.op, x, state), w);
        x[i].real[e] = at - h;
        double const down = weighted(tests::run_whole<policy>(s.op, x, state), w);
        x[i].real[e] = at;
        worst = std::max(worst, tests::distance((up - down) / (2 * h), gradient.real[e]));
        ++directions;
      }
      CHECK_MESSAGE(worst < 1e-7, (spell(s.op) + ": gradient of operand " + std::to_string(i) + " is off by " + std::to_string(worst)));
    }
  }
  CHECK(directions > 1000);
  for (char const* name : {"contraction",
                           "conv2d_grad_x",
                           "conv2d_grad_w",
                           "pool2d_grad",
                           "global_average_grad",
                           "relu_grad",
                           "gelu_grad",
                           "sigmoid_grad",
                           "tanh_grad",
                           "swiglu_grad",
                           "softmax_grad",
                           "layernorm_grad_x",
                           "layernorm_grad_gamma",
                           "rmsnorm_grad_x",
                           "rmsnorm_grad_gamma",
                           "channel_moments_grad",
                           "normalize_sums",
                           "normalize_grad_x",
                           "normalize_grad_moments",
                           "unslice",
                           "embedding_grad",
                           "embedding_bag_grad",
                           "attention_grad",
                           "packed_attention_grad",
                           "attention_parts_grad",
                           "softmax_merge_grad",
                           "attention_finish_grad",
                           "sum",
                           "repeat",
                           "cross_entropy_grad",
                           "mean_squared_error_grad"})
    CHECK_MESSAGE(seen.count(name), name);
}

TEST_CASE("updates may run in place, and add may write its first operand") {
  std::mt19937_64 r(2);
  tensorpar::exec::step_state state;
  state.learning_rate = 0.1;
  for (tests::sample const& s : tests::other_samples()) {
    if (!is_update(s.op)) continue;
    auto x = tests::operands_of<double>(s, r);
    auto const y = tests::run_whole<policy>(s.op, x, state);
    int const slot[] = {0, 2, 3, 4};                              // the operand that result k replaces
    std::vector<void const*> in;
    std::vector<void*> out;
    std::vector<tensorpar::op::tensor_block> in_block, out_block;
    for (auto& t : x) { in.push_back(t.data()); in_block.push_back(t.block); }
    for (std::size_t k = 0; k < y.size(); ++k) {
      out.push_back(x[static_cast<std::size_t>(slot[k])].data());
      out_block.push_back(y[k].block);
    }
    policy{}.run({&s.op, static_cast<int>(in.size()), static_cast<int>(out.size()), in.data(), in_block.data(), out.data(),
                  out_block.data(), nullptr, true, state});
    for (std::size_t k = 0; k < y.size(); ++k) CHECK(x[static_cast<std::size_t>(slot[k])].real == y[k].real);
  }
  auto a = tests::random_dense<double>({12}, 1, r), b = tests::random_dense<double>({12}, 1, r);
  op::any_op const plus = add{};
  auto const sum = tests::run_whole<policy>(plus, {a, b});
  void const* in[] = {a.data(), b.data()};
  void* out[] = {a.data()};
  op::tensor_block const blocks[] = {a.block, b.block};
  policy{}.run({&plus, 2, 1, in, blocks, out, blocks, nullptr, true, {}});
  CHECK(a.real == sum[0].real);
}

TEST_CASE("dropout: rate, scale, and what a draw depends on") {
  auto x = tests::make_dense<double>(tests::whole({50, 40}));
  for (double& e : x.real) e = 1;
  tensorpar::exec::step_state state;
  state.seed = 1;
  auto draws = [&](double rate, i64 seed, tensorpar::exec::step_state const& s) { return tests::run_whole<policy>(dropout{rate, seed}, {x},
      s)[0].real; };
  auto const y = draws(0.3, 0, state);
  int dropped = 0;
  for (double e : y) {
    CHECK((e == 0 || e == doctest::Approx(1 / 0.7)));
    dropped += e == 0;
  }
  CHECK(dropped > 510);
  CHECK(dropped < 690);                                        // 600 expected, standard deviation 20
  CHECK(draws(0.0, 0, state) == x.real);
  CHECK(y == draws(0.3, 0, state));
  CHECK(y != draws(0.3, 1, state));
  for (int k = 0; k < 3; ++k) {
    tensorpar::exec::step_state other = state;
    (k == 0 ? other.step : k == 1 ? other.seed : other.micro_batch) = 5;
    CHECK(y != draws(0.3, 0, other));
  }
}

TEST_CASE("indices outside their range are the user's error") {
  auto x = tests::make_dense<double>(tests::whole(tests::ints({2})));
  auto const table = tests::make_dense<double>(tests::whole({4, 3}));
  auto const logits = tests::make_dense<double>(tests::whole({2, 4}));
  for (int bad : {-1, 4}) {
    x.index[1] = bad;
    CHECK_THROWS_WITH_AS((void)tests::run_whole<policy>(embedding{4, 3}, {x, table}),
                         doctest::Contains("index " + doctest::String(std::to_string(bad).c_str())), error);
    CHECK_THROWS_WITH_AS((void)tests::run_whole<policy>(cross_entropy{}, {logits, x}), doctest::Contains("label"), error);
  }
}

namespace {

/// x^2 + bias, by a trainer's author.
struct my_square {
  double bias = 0;
  static constexpr auto name = "my_square";
  static constexpr auto notation = "... -> ...";
  static constexpr void describe(auto& s, auto&& visit) { visit("bias", s.bias); }
  constexpr tensorpar::op::inference infer(shapes in) const { return in[0]; }
  i64 workspace(shapes in, shapes) const { return in[0].elements(); }
  template <class Scalar> static void compute(tensorpar::exec::kernel_call const& c, my_square const& op) {
    Scalar const* x = static_cast<Scalar const*>(c.in[0]);
    Scalar *y = static_cast<Scalar*>(c.out[0]), *scratch = static_cast<Scalar*>(c.workspace);
    for (i64 i = 0; i < c.out_block[0].elements(); ++i) scratch[i] = x[i] * x[i];
    for (i64 i = 0; i < c.out_block[0].elements(); ++i) y[i] = scratch[i] + tensorpar::exec::scalar_traits<Scalar>::from_double(op.bias);
  }
};

}  // namespace

TEST_CASE("a user's own operator joins by a list; without it there is a clear error") {
  using mine = compute::eigen<double, op::op_set<my_square>>;
  static_assert(exec::compute_policy<mine>);
  auto x = tests::make_dense<double>(tests::whole({3}));
  x.real = {1, 2, 3};
  CHECK(tests::run_whole<mine>(my_square{0.5}, {x})[0].real == std::vector<double>{1.5, 4.5, 9.5});
  CHECK(tests::run_whole<mine>(relu{}, {x})[0].real == x.real);
  std::mt19937_64 r(1);
  CHECK(tests::check_splits<mine>(my_square{0.5}, {tests::random_dense<double>({4, 6}, 1, r)}, {}, 0) == 5);
  CHECK_FALSE(policy::supports(my_square{}));
  CHECK_FALSE(policy::supports(op::any_op{}));
  op::any_op const o = my_square{};
  tensorpar::exec::kernel_call c;
  c.op = &o;
  CHECK_THROWS_WITH_AS(policy{}.run(c), doctest::Contains("no kernel for operator my_square"), error);
}
