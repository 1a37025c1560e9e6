// tensorpar/exec/cudnn/graph.hpp - operations that a library is to do as one: tensors, and what is made of
// them, as values
#pragma once
#include <cstdint>
#include <tensorpar/core/config.hpp>
#include <tensorpar/core/index.hpp>
#include <utility>
#include <vector>

namespace tensorpar::detail {

enum class fused_type : unsigned char { f32, bf16, i32, truth };
/// The operation on x, and on b and t where it has them (repeated where they have one element):
///  - functions of elements; b where t is false;
///  - x b, matrices of the last two axes;
///  - sum or largest over the axes along which the result has one element;
///  - the same elements in other sizes; the index along `axis`;
///  - convolutions of images x (or the gradient of their results) with filters b, and their gradients.
enum class fused_op : unsigned char {
  product, minus, plus, quotient, exp_, log_, copy, index, at_least, select,
  multiply, sum, top, view,
  convolve, convolve_grad_x, convolve_grad_w
};

using fused_sizes = std::vector<std::int64_t>;
/// Extents, and how many elements apart neighbours are.
struct fused_tensor {
  enum class role : unsigned char { given, hidden, number };
  fused_sizes extent, apart;
  fused_type type = fused_type::f32;
  // given: has an address when the graph is run; number: has a value; hidden: nobody else sees it
  role is = role::hidden;
  float value = 0;
};
struct fused_window {
  std::int64_t stride = 1, pad_h = 0, pad_w = 0;
};
/// Tensors by number; -1: none.
struct fused_step {
  fused_op op{};
  int x = -1, b = -1, t = -1, to = -1;
  int axis = -1;
  fused_window window{};
};

/// Operations in an order in which they can be done.
struct fused_graph {
  std::vector<fused_tensor> tensors;
  std::vector<fused_step> steps;

  int given(fused_sizes extent, fused_sizes apart, fused_type type) {
    return add({std::move(extent), std::move(apart), type, fused_tensor::role::given, 0});
  }
  int number(float value) {
    return add({{1, 1, 1, 1}, {1, 1, 1, 1}, fused_type::f32, fused_tensor::role::number, value});
  }
  int hidden(fused_sizes extent, fused_sizes apart, fused_type type = fused_type::f32) {
    return add({std::move(extent), std::move(apart), type, fused_tensor::role::hidden, 0});
  }
  void put(fused_op op, int to, int x, int b = -1, int t = -1) { steps.push_back({op, x, b, t, to}); }
  /// A new tensor like x.
  int map(fused_op op, int x, int b = -1, int t = -1) {
    fused_tensor const like = tensors[idx(x)];
    int const to = hidden(like.extent, like.apart);
    put(op, to, x, b, t);
    return to;
  }

 private:
  int add(fused_tensor t) {
    tensors.push_back(std::move(t));
    return static_cast<int>(tensors.size()) - 1;
  }
};

}  // namespace tensorpar::detail
