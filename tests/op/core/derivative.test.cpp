// tests/op/core/derivative.test.cpp - what operators emit and give when asked for their derivatives, whichever operands are wanted
#include <tensorpar/op/core/derivative.hpp>
#include <doctest/doctest.h>

#include <string>
#include <support/laws/operator.hpp>
#include <support/operator_samples.hpp>
#include <tensorpar/op/attention/attention.hpp>
#include <tensorpar/op/attention/packed.hpp>
#include <tensorpar/op/kinds/batch_norm.hpp>
#include <tensorpar/op/kinds/convolution.hpp>
#include <tensorpar/op/kinds/embedding.hpp>
#include <tensorpar/op/kinds/pooling.hpp>
#include <tensorpar/op/kinds/reduction.hpp>

using namespace tensorpar;

namespace {

/// A graph of one operator: handles are operands, results, then gradients and what was emitted. Every emitted operator must accept its
/// operands.
struct recorder final : op::gradient_builder {
  int operand_count, result_count;
  std::vector<shape> types;
  std::vector<bool> want;
  std::vector<std::string> emitted;
  std::vector<int> maker;     // by handle: the place in `emitted`, -1: none
  std::vector<bool> used;     // by place in `emitted`: is a result read or given?
  std::vector<tensor> given;  // by operand, -1: none
  std::string fault;

  recorder(std::vector<shape> const& in, std::vector<shape> const& out)
      : operand_count(static_cast<int>(in.size())), result_count(static_cast<int>(out.size())), types(in), want(in.size(), true),
        given(in.size(), -1) {
    types.insert(types.end(), out.begin(), out.end());
    maker.assign(types.size(), -1);
  }
  tensor fresh(shape const& s, int made_by = -1) {
    types.push_back(s);
    maker.push_back(made_by);
    return static_cast<tensor>(types.size()) - 1;
  }
  void use(tensor t) {
    if (int const m = maker[static_cast<std::size_t>(t)]; m >= 0) used[static_cast<std::size_t>(m)] = true;
  }
  int operands() const override { return operand_count; }
  tensor operand(int i) const override { return i; }
  tensor result(int i) const override { return operand_count + i; }
  tensor gradient(int i) override { return fresh(type(result(i))); }
  bool has_gradient(int) const override { return true; }
  bool wanted(int i) const override { return want[static_cast<std::size_t>(i)]; }
  shape type(tensor t) const override { return types[static_cast<std::size_t>(t)]; }
  tensor emit(op::any_op const& o, std::initializer_list<tensor> x) override { return emit(o, x.begin(), static_cast<int>(x.size())); }
  tensor emit(op::any_op const& o, tensor const* x, int n) override {
    std::vector<shape> in;
    for (int i = 0; i < n; ++i) in.push_back(type(x[i]));
    for (int i = 0; i < n; ++i) use(x[i]);
    int const activations = o.op->arity < 0 ? n : o.op->arity;
    emitted.emplace_back(o.op->name);
    used.push_back(false);
    op::inference const r = n < activations ? op::inference(op::mismatch("too few operands", scalar, scalar))
                                        : o.op->infer(o.attr, {in.data(), activations});
    if (!r.ok()) fault = emitted.back() + ": " + r.rule;
    tensor const first = static_cast<tensor>(types.size());
    for (int i = 0; i < (r.ok() ? r.n : 1); ++i) fresh(r.ok() ? r.out[i] : scalar, static_cast<int>(emitted.size()) - 1);
    return first;
  }
  void give(int i, tensor t) override {
    tensor& at = given[static_cast<std::size_t>(i)];
    if (!wanted(i)) fault = "gives what nobody wants: operand " + std::to_string(i);
    if (at >= 0) fault = "gives operand " + std::to_string(i) + " twice";
    if (!fits(type(t), type(operand(i)))) fault = "a gradient does not fit operand " + std::to_string(i);
    at = t;
    use(t);
  }
};

recorder differentiated(op::any_op const& o, std::vector<shape> in, std::vector<bool> const& want = {}) {
  auto const out = tests::results_of(o, in);
  for (shape const& w : tests::weights_of(o, in)) in.push_back(w);
  recorder r(in, out);
  if (!want.empty()) r.want = want;
  o.op->derive(o.attr, r);
  return r;
}
std::vector<bool> gives(recorder const& r) {
  std::vector<bool> g;
  for (int t : r.given) g.push_back(t >= 0);
  return g;
}

}  // namespace

TEST_CASE("every operator gives gradients of wanted operands only, once, with their shapes; what it emits fits its operands, and is used") {
  int derived = 0;
  for (unsigned seed = 1; seed <= 5; ++seed)
    for (auto const& s : tests::operator_samples(seed)) {
      if (!s.op.op->derive) continue;
      std::vector<bool> const all = gives(differentiated(s.op, s.in));
      std::size_t const n = all.size();
      for (unsigned set = 0; set < 1u << n && n <= 6; ++set) {
        std::vector<bool> want, expected;
        for (std::size_t i = 0; i < n; ++i) {
          want.push_back(set >> i & 1);
          expected.push_back(want[i] && all[i]);
        }
        recorder const r = differentiated(s.op, s.in, want);
        INFO("seed ", seed, ", ", std::string(s.op.op->name), ", wanted ", set);
        REQUIRE(r.fault == "");
        REQUIRE(gives(r) == expected);
        for (std::size_t i = 0; i < r.emitted.size(); ++i)
          if (!r.used[i]) FAIL("nobody uses ", r.emitted[i]);
        ++derived;
      }
    }
  CHECK(derived > 100);
}

TEST_CASE("layers have the derivatives that their definitions say") {
  using names = std::vector<std::string>;
  shape const image{2, 6, 8, 8}, sequence{2, 4, 8};
  CHECK(differentiated(attention{.heads = 2}, {sequence, sequence, sequence}).emitted == names{"attention_grad"});
  CHECK(differentiated(packed_attention{.heads = 2}, {{2, 5, 24}}).emitted == names{"packed_attention_grad"});
  CHECK(differentiated(conv2d{.out = 4, .kernel = 3, .bias = true}, {image}).emitted
        == names{"conv2d_grad_x", "conv2d_grad_w", "contraction"});
  CHECK(differentiated(max_pool(), {image}).emitted == names{"pool2d_grad"});
  CHECK(differentiated(global_average{}, {image}).emitted == names{"global_average_grad"});
  CHECK(differentiated(op::channel_moments{}, {image}).emitted == names{"channel_moments_grad"});
  CHECK(differentiated(softmax{}, {sequence}).emitted == names{"softmax_grad"});
  CHECK(differentiated(layernorm{}, {sequence}).emitted == names{"layernorm_grad_x", "layernorm_grad_gamma", "contraction"});
  CHECK(differentiated(rmsnorm{}, {sequence}).emitted == names{"rmsnorm_grad_x", "rmsnorm_grad_gamma"});
  recorder const rows = differentiated(embedding{.rows = 10, .width = 4}, {shape{2, 3}.of(dtype::i32)});
  CHECK(rows.emitted == names{"embedding_grad"});
  CHECK(gives(rows) == std::vector<bool>{false, true});  // indices have none
  recorder const bag = differentiated(embedding_bag{.rows = 10, .width = 4}, {shape{2, 3}.of(dtype::i32)});
  CHECK(gives(bag) == std::vector<bool>{false, true});
}
