// tests/exec/samples.hpp - every operator on small operands whose extents have several divisors
#pragma once
#include "support/dense.hpp"
#include <tensorpar/op/kinds/parallel.hpp>
#include <tensorpar/op/operators.hpp>

namespace tests {

/// Operand shapes: activations, then weights. Integer operands draw from [0, end). A contraction differentiates only where each letter of
/// an operand is in the result or in the other operand, and only with two operands.
struct sample {
  tensorpar::op::any_op op;
  std::vector<shape> in;
  int end = 1;
  bool derived = true;
  bool differentiable() const { return derived && op.op->derive; }
};

inline shape ints(std::initializer_list<dim> l) { return shape(l, dtype::i32); }

inline std::vector<sample> forward_samples() {
  return {
      {linear{6}, {{4, 8}, {6, 8}, {6}}},
      {linear{6, false}, {{2, 4, 8}, {6, 8}}},
      {linear{40}, {{36, 24}, {40, 24}, {40}}},
      {matmul{}, {{2, 3, 4, 6}, {2, 3, 6, 8}}},
      {matmul{true, false}, {{4, 6}, {4, 8}}},
      {matmul{false, true}, {{2, 4, 6}, {2, 8, 6}}},
      {matmul{true, true}, {{2, 6, 4}, {2, 8, 6}}},
      {contraction("mk,kn->mn"), {{4, 6}, {6, 8}}},
      {contraction("bqhd,bkhd->bhqk"), {{2, 4, 2, 6}, {2, 3, 2, 6}}},
      {contraction("bhqk,bkhd->bqhd"), {{2, 2, 4, 6}, {2, 6, 2, 3}}},
      {contraction("01o,oi->01i"), {{2, 3, 4}, {4, 6}}},
      {contraction("01o,01i->oi"), {{2, 3, 4}, {2, 3, 6}}},
      {contraction("ab,cb->ca"), {{4, 6}, {8, 6}}},
      {contraction("ab,ab->ba"), {{4, 6}, {4, 6}}},
      {contraction("abc,db->d"), {{4, 2, 3}, {6, 2}}, 1, false},
      {contraction("a,b->ab"), {{4}, {6}}},
      {contraction("a,a->"), {{6}, {6}}},
      {contraction("ab,bc,cd->ad"), {{2, 4}, {4, 3}, {3, 2}}, 1, false},
      {contraction("nhwo->o"), {{2, 3, 2, 4}}},
      {contraction("abc->ac"), {{2, 4, 6}}},
      {contraction("abc->ab"), {{2, 4, 6}}},
      {contraction("ab->ba"), {{4, 6}}},
      {conv2d{4}, {{2, 4, 5, 6}, {4, 4, 3, 3}}},
      {conv2d{6, 3, 2, 1, 2, true}, {{2, 4, 7, 6}, {6, 2, 3, 3}, {6}}},
      {conv2d{4, 1, 1, 0, 1, true}, {{2, 6, 4, 3}, {4, 6, 1, 1}, {4}}},
      {conv2d{4, 3, 1, 0, 4, false, 1}, {{2, 4, 5, 4}, {4, 1, 3, 1}}},
      {conv2d{2, 5, 3, 2, 1, true, 2, 1}, {{2, 2, 8, 7}, {2, 2, 5, 2}, {2}}},
      {max_pool(), {{2, 4, 6, 4}}},
      {max_pool(3, 2, 1), {{2, 2, 7, 5}}},
      {avg_pool(3, 1, 1), {{2, 2, 5, 4}}},
      {global_average{}, {{2, 4, 3, 5}}},
      {relu{}, {{4, 6}}},
      {gelu{}, {{4, 6}}},
      {sigmoid{}, {{2, 3, 4}}},
      {tanh_{}, {{12}}},
      {add{}, {{4, 6}, {4, 6}}},
      {mul{}, {{4, 6}, {4, 6}}},
      {tensorpar::op::swiglu{}, {{4, 6}, {4, 6}}},
      {scale{0.3}, {{4, 6}}},
      {dropout{0.4, 3}, {{2, 6, 10}}},
      {dropout{0.5, 4}, {{12}}},
      {constant{1.5, 2, {4, 6}}, {}},
      {softmax{}, {{4, 2, 5}}},
      {layernorm{}, {{4, 2, 6}, {6}, {6}}},
      {rmsnorm{}, {{4, 2, 6}, {6}}},
      {rmsnorm{1e-2}, {{12, 8}, {8}}},
      {tensorpar::op::channel_moments{}, {{4, 2, 3, 2}}}, {tensorpar::op::normalize{}, {{4, 2, 3, 2}, {2, 2}, {2}, {2}}},
      {concat{1}, {{2, 3, 4}, {2, 1, 4}, {2, 2, 4}}},
      {concat{-1}, {{4, 3}, {4, 5}}},
      {split_axes{3, 1}, {{2, 6, 4}}},
      {slice_axis{1, 2, 3}, {{4, 6, 2}}},
      {transpose{}, {{2, 4, 6}}},
      {transpose{0, 2}, {{20, 3, 18, 2}}},
      {transpose{}, {{2, 8, 36}}},
      {transpose{0, 2}, {{72, 3, 16}}},
      {transpose{0, 1}, {{136, 40}}},
      {transpose{0, 1}, {ints({4, 6})}, 9},
      {reshape{1, 2, {3, 8}}, {{4, 6, 4}}},
      {reshape{0, 2, {12, 4}}, {{4, 6, 2}}},
      {flatten{}, {{4, 2, 6}}},
      {flatten{0}, {ints({4, 2})}, 9},
      {merge_axes{1}, {{2, 4, 3}}},
      {split_axis{1, 3}, {{2, 12, 2}}},
      {tensorpar::op::sum_axis{1}, {{4, 6, 2}}}, {tensorpar::op::sum_axis{-1}, {{2, 4, 6}}},
      {tensorpar::op::sum_heads{2, 3}, {{2, 24}}}, {tensorpar::op::repeat_heads{4, 3}, {{2, 3, 16}}},
      {tensorpar::op::repeat_axis{1, 4}, {{4, 6}}}, {tensorpar::op::repeat_axis{-1, 2}, {{2, 6}}},
      {embedding{8, 6}, {ints({2, 4}), {8, 6}}, 8},
      {embedding_bag{8, 6}, {ints({2, 4}), {8, 6}}, 8},
      {attention{3}, {{2, 4, 12}, {2, 6, 12}, {2, 6, 12}}},
      {attention{2, true}, {{2, 6, 8}, {2, 6, 8}, {2, 6, 8}}},
      {packed_attention{3}, {{2, 4, 36}}},
      {packed_attention{2, true}, {{2, 6, 24}}},
      {tensorpar::op::attention_parts{3}, {{2, 4, 12}, {2, 2, 6, 12}, {2, 2, 6, 12}}},
      {tensorpar::op::attention_parts{2}, {{1, 3, 4}, {1, 3, 5, 4}, {1, 3, 5, 4}}},
      {tensorpar::op::softmax_merge{2, 3}, {{2, 6, 2, 12}}}, {tensorpar::op::softmax_merge{1}, {{2, 4, 3, 6}}},
      {tensorpar::op::attention_finish{2}, {{2, 4, 2, 12}}}, {tensorpar::op::attention_finish{3}, {{2, 1, 4, 12}}},
      {cross_entropy{}, {{2, 4, 5}, ints({2, 4})}, 5},
      {mean_squared_error{}, {{4, 6}, {4, 6}}},
      {tensorpar::op::linear_relu{{6}}, {{4, 8}, {6, 8}, {6}}}, {tensorpar::op::linear_relu{{6, false}}, {{2, 4, 8}, {6, 8}}},
      {tensorpar::op::linear_sigmoid{{4}}, {{4, 8}, {4, 8}, {4}}}, {tensorpar::op::linear_tanh{{4, false}}, {{6, 8}, {4, 8}}},
      {tensorpar::op::conv2d_relu{{4}}, {{2, 4, 5, 6}, {4, 4, 3, 3}}},
      {tensorpar::op::conv2d_relu{{6, 3, 2, 1, 2, true}}, {{2, 4, 7, 6}, {6, 2, 3, 3}, {6}}},
  };
}
/// Operators without a derivative that is tested through them.
inline std::vector<sample> other_samples() {
  return {
      {sgd_update{0.1}, {{4, 6}, {4, 6}}},
      {sgd_update{0.1}, {{4, 6}, {4, 6}, {}}},
      {momentum_update{0.9, 0.1}, {{12}, {12}, {12}}},
      {momentum_update{0.9, 0.1}, {{12}, {12}, {12}, {}}},
      {adamw_update{}, {{12}, {12}, {12}, {12}}},
      {adamw_update{}, {{2, 6}, {2, 6}, {2, 6}, {2, 6}, {}}},
      {with_master<sgd_update>{{0.1}}, {{4, 6}, {4, 6}, {4, 6}}},
      {with_master<momentum_update>{{0.9, 0.1}}, {{12}, {12}, {12}, {12}, {}}},
      {with_master<adamw_update>{{}}, {{12}, {12}, {12}, {12}, {12}}},
      {square_sum{}, {{4, 6}}},
      {clip_factor{0.5}, {{}, {}, {}}},
      {clip_factor{0.5, true}, {{}, {}}},
      {clip_factor{0, true}, {{}}},
      {parallel::partition{0, 2}, {{4, 6}}},
      {parallel::combine{0, 2}, {{4, 6}}},
      {parallel::replicate{2}, {{4, 6}}},
      {parallel::reduce{2}, {{4, 6}}},
      {parallel::pipeline{0, 2}, {{4, 6}}},
      {parallel::batch{0, 2}, {ints({4, 6})}, 9},
  };
}

/// Operands of a sample. What has to be positive over the reals is: second moments (batch norm: sums over the block's count), sums of
/// attention's weights; gammas stay free.
template <class Scalar> std::vector<dense<Scalar>> operands_of(sample const& s, std::mt19937_64& r) {
  std::vector<dense<Scalar>> x;
  for (shape const& t : s.in) x.push_back(random_dense<Scalar>(t, s.end, r));
  if (s.op.is<tensorpar::op::normalize>()) {
    i64 const channels = s.in[0].d[1].n, count = s.in[0].elements() / channels;
    for (i64 c = 0; c < channels; ++c) x[1].real[static_cast<std::size_t>(channels + c)] = Scalar(static_cast<int>(2 * count + c));
  }
  if (s.op.is<tensorpar::op::attention_finish>()) {
    i64 const head = s.in[0].d[3].n / s.op.as<tensorpar::op::attention_finish>().heads;
    for (std::size_t e = 0; e < x[0].real.size(); ++e)
      if (static_cast<i64>(e) % head == head - 2) x[0].real[e] = x[0].real[e] * x[0].real[e] + Scalar(1);
  }
  if (s.op.is<adamw_update>() || s.op.is<with_master<adamw_update>>()) for (Scalar& e : x[3].real) e = e * e;
  if (s.op.is<clip_factor>()) for (auto& t : x) t.real[0] = t.real[0] * t.real[0];
  return x;
}

/// Runs operators as they are emitted, and remembers each.
template <tensorpar::exec::compute_policy Policy> class eager final : public tensorpar::op::gradient_builder {
 public:
  using scalar = typename Policy::scalar_type;
  struct record {
    tensorpar::op::any_op op;
    std::vector<dense<scalar>> operands;
  };
  std::vector<dense<scalar>> tensors;
  std::vector<record> emitted;
  std::vector<tensor> given;                                   // gradient of each operand, -1: none
  tensorpar::exec::step_state state;

  eager(tensorpar::op::any_op const& o, std::vector<dense<scalar>> const& x, std::vector<dense<scalar>> const& y,
        std::vector<dense<scalar>> const& dy, tensorpar::exec::step_state const& s)
      : given(x.size(), -1), state(s), in_(static_cast<int>(x.size())), out_(static_cast<int>(y.size())) {
    for (auto const* list : {&x, &y, &dy}) tensors.insert(tensors.end(), list->begin(), list->end());
    o.op->derive(o.attr, *this);
  }
  int operands() const override { return in_; }
  tensor operand(int i) const override { return i; }
  tensor result(int i) const override { return in_ + i; }
  tensor gradient(int i) override { return in_ + out_ + i; }
  bool has_gradient(int) const override { return true; }
  bool wanted(int i) const override { return !tensors[static_cast<std::size_t>(i)].integer(); }
  shape type(tensor t) const override { return tensors[static_cast<std::size_t>(t)].block.local_shape(); }
  tensor emit(tensorpar::op::any_op const& o, std::initializer_list<tensor> l) override { return emit(o, l.begin(),
                                                                                                      static_cast<int>(l.size())); }
  tensor emit(tensorpar::op::any_op const& o, tensor const* l, int n) override {
    std::vector<dense<scalar>> x;
    for (int i = 0; i < n; ++i) x.push_back(tensors[static_cast<std::size_t>(l[i])]);
    auto const y = run_whole<Policy>(o, x, state);
    emitted.push_back({o, x});
    tensor const first = static_cast<tensor>(tensors.size());
    tensors.insert(tensors.end(), y.begin(), y.end());
    return first;
  }
  void give(int i, tensor t) override {
    CHECK(given[static_cast<std::size_t>(i)] == -1);
    CHECK(fits(type(t), type(i)));
    given[static_cast<std::size_t>(i)] = t;
  }

 private:
  int in_, out_;
};

}  // namespace tests
