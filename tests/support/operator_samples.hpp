// tests/support/operator_samples.hpp - every operator of the library with operands it takes, in random sizes
#pragma once
#include <random>
#include <tensorpar/op/kinds/parallel.hpp>
#include <tensorpar/op/operators.hpp>
#include <vector>

namespace tests {

using namespace tensorpar;

/// An operator and the shapes of its activations.
struct operator_sample {
  op::any_op op;
  std::vector<shape> in;
};

inline std::vector<operator_sample> operator_samples(unsigned seed) {
  std::mt19937 r(seed);
  auto some = [&](i64 lo, i64 hi) { return lo + static_cast<i64>(r() % static_cast<unsigned>(hi - lo + 1)); };
  i64 const n = 4 * some(1, 3), c = 4 * some(1, 2), h = 2 * some(2, 4), w = 2 * some(2, 4), e = 4 * some(1, 4), s = 2 * some(1, 4),
            t = 2 * some(1, 4);
  axis const batch{"batch"}, width{"width"};
  auto ints = [](shape x) { return x.of(dtype::i32); };
  shape const image{batch(n), dim(c), dim(h), dim(w)}, rows{batch(n), width(e)}, words{batch(n), dim(s), width(e)}, none{}, vec{width(e)},
      chan{dim(c)}, mom{dim(2), dim(c)};
  std::vector<operator_sample> v;
  auto put = [&](op::any_op const& o, std::vector<shape> in) { v.push_back({o, std::move(in)}); };

  put(linear{.out = 2 * some(1, 6), .bias = some(0, 1) == 1}, {some(0, 1) ? rows : words});
  put(matmul{}, {{batch(n), dim(s), dim(e)}, {batch(n), dim(e), dim(t)}});
  put(matmul{.transpose_a = true, .transpose_b = true}, {{batch(n), dim(e), dim(s)}, {batch(n), dim(t), dim(e)}});
  put(contraction("mk,nk->mn"), {{dim(n), dim(e)}, {dim(t), dim(e)}});
  put(contraction("ab->b"), {{dim(n), dim(e)}});
  put(conv2d{.out = 2 * some(1, 4), .kernel = some(1, 3), .stride = some(1, 2), .bias = some(0, 1) == 1}, {image});
  put(conv2d{.out = 2 * c, .groups = c}, {image});
  put(conv2d{.out = 8, .kernel = 3, .kernel_w = 1, .pad_w = 0}, {image});
  put(op::linear_relu{{.out = 2 * some(1, 6), .bias = some(0, 1) == 1}}, {some(0, 1) ? rows : words});
  put(op::linear_sigmoid{{.out = 4}}, {rows});
  put(op::linear_tanh{{.out = 2 * some(1, 6)}}, {words});
  put(op::conv2d_relu{{.out = 2 * some(1, 4), .kernel = some(1, 3), .stride = some(1, 2), .bias = some(0, 1) == 1}}, {image});
  put(op::conv2d_relu{{.out = 2 * c, .groups = c}}, {image});
  put(max_pool(), {image});
  put(avg_pool(3, 1, 1), {image});
  put(global_average{}, {image});
  put(relu{}, {rows});
  put(gelu{}, {words});
  put(sigmoid{}, {rows});
  put(tanh_{}, {image});
  put(add{}, {words, words});
  put(mul{}, {rows, rows});
  put(op::swiglu{}, {words, words});
  put(scale{.factor = 0.25}, {rows});
  put(dropout{.rate = 0.25, .seed = some(0, 9)}, {words});
  put(constant{.value = 2, .rank = 2, .d = {n, e}}, {});
  put(softmax{}, {words});
  put(layernorm{}, {words});
  put(rmsnorm{}, {words});
  put(op::channel_moments{}, {image});
  put(op::normalize{}, {image, mom});
  put(concat{.axis_no = 1}, {rows, rows, {batch(n), width(3)}});
  put(split_axes{.parts = 2, .axis_no = -1}, {words});
  put(slice_axis{.axis_no = 1, .begin = 1, .length = s - 1}, {words});
  put(transpose{}, {words});
  put(transpose{.a = 0, .b = 2}, {words});
  put(reshape{.keep = 1, .rank = 2, .d = {e / 2, 2}}, {rows});
  put(reshape{.keep = 0, .rank = 1, .d = {n * e}}, {rows});
  put(flatten{}, {image});
  put(merge_axes{.first = 1, .to = width}, {words});
  put(split_axis{.which = -1, .inner = 2}, {words});
  put(op::sum_axis{.axis_no = some(1, 2)}, {words});
  put(op::repeat_axis{.axis_no = some(0, 2), .count = s}, {rows});
  put(op::sum_heads{.heads = 2, .count = 3}, {{batch(n), dim(s), width(12)}});
  put(op::repeat_heads{.heads = 4, .count = some(1, 3)}, {{batch(n), width(16)}});
  put(embedding{.rows = 4 * some(2, 8), .width = e}, {ints({batch(n), dim(s)})});
  put(embedding_bag{.rows = 4 * some(2, 8), .width = e}, {ints({batch(n), dim(s)})});
  put(attention{.heads = 4}, {words, {batch(n), dim(t), width(e)}, {batch(n), dim(t), width(e)}});
  put(packed_attention{.heads = 4}, {{batch(n), dim(s), dim(3 * e)}});
  put(cross_entropy{}, {rows, ints({batch(n)})});
  put(mean_squared_error{}, {words, words});

  shape const conved{batch(n), dim(2 * c), dim(h), dim(w)}, pooled{batch(n), dim(c), dim(h / 2), dim(w / 2)};
  put(conv2d_grad_x{.kernel = 3, .stride = 1, .pad = 1, .groups = 1, .kernel_w = 0, .pad_w = -1, .h = h, .w = w},
      {conved, {dim(2 * c), dim(c), 3, 3}});
  put(conv2d_grad_x{.kernel = 3, .stride = 1, .pad = 1, .groups = c, .kernel_w = 0, .pad_w = -1, .h = h, .w = w},
      {conved, {dim(2 * c), 1, 3, 3}});
  put(conv2d_grad_w{.kernel = 3, .stride = 1, .pad = 1, .groups = 1, .kernel_w = 0, .pad_w = -1}, {conved, image});
  put(conv2d_grad_w{.kernel = 3, .stride = 1, .pad = 1, .groups = c, .kernel_w = 0, .pad_w = -1}, {conved, image});
  put(pool2d_grad{2, 2, 0, false}, {pooled, image, pooled});
  put(global_average_grad{h, w}, {{batch(n), dim(c)}});
  put(relu_grad{}, {rows, rows});
  put(gelu_grad{}, {rows, rows});
  put(sigmoid_grad{}, {rows, rows});
  put(tanh__grad{}, {rows, rows});
  put(op::swiglu_grad{}, {rows, rows, rows});
  put(softmax_grad{}, {words, words});
  put(layernorm_grad_x{}, {words, words, vec});
  put(layernorm_grad_gamma{}, {words, words});
  put(rmsnorm_grad_x{}, {words, words, vec});
  put(rmsnorm_grad_gamma{}, {words, words});
  put(op::channel_moments_grad{}, {mom, image});
  put(op::normalize_sums{}, {image, image, mom});
  put(op::normalize_grad_x{}, {image, mom, chan});
  put(op::normalize_grad_moments{1e-5, n * h * w}, {mom, mom, chan});
  put(unslice_axis{.axis_no = 1, .begin = 1, .total = s + 2}, {words});
  put(embedding_grad{.rows = 8}, {words, ints({batch(n), dim(s)})});
  put(embedding_bag_grad{.rows = 8}, {rows, ints({batch(n), dim(s)})});
  shape const parted{batch(n), dim(2), dim(t), width(e)}, states{batch(n), dim(2), dim(s), dim(e + 8)};
  put(op::attention_parts{.heads = 4}, {words, parted, parted});
  put(op::softmax_merge{.heads = 4, .parts = some(1, 2)}, {states});
  put(op::attention_finish{.heads = 4}, {states});
  put(op::attention_parts_grad{.heads = 4}, {states.with(2, dim(s)), words, parted, parted});
  put(op::softmax_merge_grad{.heads = 4, .parts = 1}, {states.with(1, dim(1)), states});
  put(op::attention_finish_grad{.heads = 4}, {words, states, words});
  put(attention_grad{.heads = 4}, {words, words, {batch(n), dim(t), width(e)}, {batch(n), dim(t), width(e)}});
  put(packed_attention_grad{.heads = 4}, {words, {batch(n), dim(s), dim(3 * e)}});
  put(cross_entropy_grad{}, {none, rows, ints({batch(n)})});
  put(mean_squared_error_grad{}, {none, words, words});
  put(sgd_update{}, {rows, rows});
  put(momentum_update{}, {rows, rows, rows});
  put(adamw_update{}, {rows, rows, rows, rows});
  put(with_master<sgd_update>{}, {rows, rows, rows});
  put(with_master<momentum_update>{}, {rows, rows, rows, rows});
  put(with_master<adamw_update>{}, {rows, rows, rows, rows, rows});
  put(square_sum{}, {words});
  put(clip_factor{}, {none, none});
  put(clip_factor{0, true}, {none, none});
  put(parallel::partition{1, 2}, {rows});
  put(parallel::combine{1, 2}, {rows});
  put(parallel::replicate{2}, {rows});
  put(parallel::reduce{2}, {rows});
  put(parallel::pipeline{0, 2}, {rows});
  put(parallel::batch{0, 2}, {rows});
  return v;
}

}  // namespace tests
