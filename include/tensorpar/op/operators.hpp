// tensorpar/op/operators.hpp - every operator, and the list of their types
#pragma once
#include <tensorpar/op/attention/lse.hpp>
#include <tensorpar/op/attention/packed.hpp>
#include <tensorpar/op/attention/parts.hpp>
#include <tensorpar/op/kinds/activated.hpp>
#include <tensorpar/op/kinds/axis_sum.hpp>
#include <tensorpar/op/kinds/batch_norm.hpp>
#include <tensorpar/op/kinds/contraction.hpp>
#include <tensorpar/op/kinds/convolution.hpp>
#include <tensorpar/op/kinds/embedding.hpp>
#include <tensorpar/op/kinds/fused.hpp>
#include <tensorpar/op/kinds/head_repeat.hpp>
#include <tensorpar/op/kinds/loss.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>
#include <tensorpar/op/kinds/pooling.hpp>
#include <tensorpar/op/kinds/reduction.hpp>
#include <tensorpar/op/kinds/rms_norm.hpp>
#include <tensorpar/op/kinds/structural.hpp>
#include <tensorpar/op/kinds/update.hpp>

namespace tensorpar::op {

/// A list of operator types; a model or a compute policy announces its own operators with one.
template <class... Op> struct op_set {};

/// What a model may be written with.
using forward_operators =
    op_set<linear, matmul, contraction, conv2d, pool2d, global_average, relu, gelu, sigmoid, tanh_, add, mul,
           swiglu, scale, dropout, constant, softmax, layernorm, rmsnorm, channel_moments,
           normalize, concat, split_axes, slice_axis, transpose, reshape, flatten, merge_axes,
           split_axis, sum_axis, repeat_axis, sum_heads, repeat_heads, embedding, embedding_bag,
           attention, packed_attention, attention_parts, softmax_merge, attention_finish,
           cross_entropy, mean_squared_error, linear_relu, linear_sigmoid, linear_tanh,
           conv2d_relu>;
/// What `differentiate` adds.
using backward_operators =
    op_set<conv2d_grad_x, conv2d_grad_w, pool2d_grad, global_average_grad, relu_grad, gelu_grad, sigmoid_grad,
           tanh__grad, swiglu_grad, softmax_grad, layernorm_grad_x, layernorm_grad_gamma, rmsnorm_grad_x,
           rmsnorm_grad_gamma, channel_moments_grad, normalize_sums, normalize_grad_x, normalize_grad_moments,
           unslice_axis, embedding_grad, embedding_bag_grad, attention_grad, packed_attention_grad,
           attention_parts_grad, softmax_merge_grad, attention_finish_grad, cross_entropy_grad,
           mean_squared_error_grad, sgd_update, momentum_update, adamw_update, with_master<sgd_update>,
           with_master<momentum_update>, with_master<adamw_update>, square_sum, clip_factor>;
/// What neighbouring tasks of a program may become.
using task_operators =
    op_set<linear_with, contraction_with, norm_grads, attention_with_lse, attention_grad_from_lse,
           packed_attention_with_lse, packed_attention_grad_from_lse>;

}  // namespace tensorpar::op
