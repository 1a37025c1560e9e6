// tensorpar/op/kinds/update.hpp - what happens to a parameter once its gradient is complete
#pragma once
#include <string_view>
#include <tensorpar/op/core/any_op.hpp>

namespace tensorpar {

/// What becomes of a step whose loss, or whose norm of all gradients where that is computed, is NaN or
/// infinite.
/// error: the step is done, and throws. Parameters are what the update made of them and may be NaN: load a
/// checkpoint, or store others. skip: parameters and the optimizer's state stay as they were, bit by bit, on
/// every device. Costs the norm, and that all updates wait for it, where gradients are not clipped anyway.
/// go_on: the step's result says so, nothing else.
/// Not seen is a gradient that is not finite where neither a norm is computed nor the loss shows it: mostly
/// the next step's loss does.
enum class non_finite : int { error, skip, go_on };

/// Which update rule, with its constants.
enum class optimizer_kind : int { sgd, momentum, adamw };
struct optimizer_choice {
  optimizer_kind kind = optimizer_kind::sgd;
  double momentum = 0.9, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  double clip_norm = 0;   // 0: gradients are not clipped
  non_finite on_non_finite = non_finite::error;
  // what momentum, or AdamW's two moments, are kept in: f32 or bf16. bf16 rounds away what changes a number
  // by less than 1/512, so beta1, beta2 or momentum near 1 stand still (DeepSeek-V3 2024, section 3.3.3,
  // trains so with beta2 = 0.95)
  dtype moments = dtype::f32;
  // what the gradients of bf16 parameters are added up in, over samples, micro-batches and devices: f32, or
  // bf16 where the operators that make them can (not of tables, convolutions and batch norm)
  dtype gradients = dtype::f32;
  // what bf16 parameters are kept in beside: f32, or bf16, by which they are their own masters. Draws round
  // them up or down then, so that small updates add up on average
  dtype masters = dtype::f32;
  /// So many moments are kept of every weight.
  constexpr int moment_count() const {
    return kind == optimizer_kind::sgd ? 0 : kind == optimizer_kind::momentum ? 1 : 2;
  }
  /// Do all updates wait for the norm of all gradients?
  constexpr bool takes_norm() const { return clip_norm != 0 || on_non_finite == non_finite::skip; }
  friend bool operator==(optimizer_choice const&, optimizer_choice const&) = default;
};

namespace detail {
/// The weight and its states, each in its own type: states follow weight and gradient.
constexpr op::inference updated(int results, shapes in) {
  op::inference r(results, in[0]);
  for (int k = 1; k < results && k + 1 < in.n; ++k) r.out[k].type = in[k + 1].type;
  return r;
}
}  // namespace detail

/// Updates are pointwise; result k replaces operand updated[k] in place (the learning rate of the step comes
/// with the run, not the graph). A trailing scalar operand, if present, multiplies the gradient first
/// (global-norm clipping); where it is below zero, nothing changes.

/// w -= lr * (g * clip + weight_decay * w). Operands w, g, [clip]; result w.
struct sgd_update {
  double weight_decay = 0;
  static constexpr auto name = "sgd_update";
  static constexpr auto notation = "..., ..., -> ...";
  static constexpr int arity = -1;
  static constexpr void describe(auto& s, auto&& visit) { visit("weight_decay", s.weight_decay); }
  constexpr op::inference infer(shapes in) const { return in[0]; }
  constexpr double flops(shapes in, shapes) const { return 3.0 * static_cast<double>(in[0].elements()); }
};
/// v = momentum * v + g * clip + weight_decay * w; w -= lr * v. Operands w, g, v, [clip]; results w, v.
struct momentum_update {
  double momentum = 0.9;
  double weight_decay = 0;
  static constexpr auto name = "momentum_update";
  static constexpr auto notation = "..., ..., ..., -> ..., ...";
  static constexpr int arity = -1;
  static constexpr void describe(auto& s, auto&& visit) {
    visit("momentum", s.momentum);
    visit("weight_decay", s.weight_decay);
  }
  constexpr op::inference infer(shapes in) const { return detail::updated(2, in); }
  constexpr double flops(shapes in, shapes) const { return 5.0 * static_cast<double>(in[0].elements()); }
};
/// Decoupled weight decay (Loshchilov and Hutter 2019), bias-corrected with the step number t = 1, 2, ...
/// m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; w -= lr * (mhat / (sqrt(vhat) + eps) + weight_decay * w).
/// Operands w, g, m, v, [clip]; results w, m, v.
struct adamw_update {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  static constexpr auto name = "adamw_update";
  static constexpr auto notation = "..., ..., ..., ..., -> ..., ..., ...";
  static constexpr int arity = -1;
  static constexpr void describe(auto& s, auto&& visit) {
    visit("beta1", s.beta1);
    visit("beta2", s.beta2);
    visit("eps", s.eps);
    visit("weight_decay", s.weight_decay);
  }
  constexpr op::inference infer(shapes in) const { return detail::updated(3, in); }
  constexpr double flops(shapes in, shapes) const { return 14.0 * static_cast<double>(in[0].elements()); }
};

namespace detail {
/// A rule's name with "master_" before it, and its notation with one operand and one result more.
template <class Rule> struct master_texts {
  static constexpr std::string_view prefix = "master_", name = Rule::name, notation = Rule::notation;
  struct letters { char c[128]; std::size_t n; };
  static constexpr letters joined(std::string_view const (&parts)[4]) {
    letters r{};
    for (std::string_view p : parts) for (char c : p) r.c[r.n++] = c;
    return r;
  }
  static constexpr letters full_name = joined({prefix, name, "", ""});
  // the operand that may be missing comes last
  static constexpr std::size_t clip = notation.find(", ->") + 1;
  static constexpr letters full_notation =
      joined({notation.substr(0, clip), " ...,", notation.substr(clip), ", ..."});
};
}  // namespace detail

/// The same rule for a weight in bf16 that is kept in full beside: what is updated is `master`, and the
/// weight is that, rounded (Micikevicius et al. 2018, section 3.1). Operands and results are Rule's with
/// master as the last one, before [clip].
template <class Rule> struct with_master : Rule {
  static constexpr std::string_view name{detail::master_texts<Rule>::full_name.c,
                                         detail::master_texts<Rule>::full_name.n};
  static constexpr std::string_view notation{detail::master_texts<Rule>::full_notation.c,
                                             detail::master_texts<Rule>::full_notation.n};
  constexpr op::inference infer(shapes in) const {
    op::inference r = Rule::infer(in);
    r.out[r.n] = in[r.n + 1];
    for (int i = 1; i <= r.n; ++i) r.out[i] = in[i + 1];
    ++r.n;
    return r;
  }
};

/// Sum of squares of all elements: one share of a global gradient norm.
struct square_sum {
  static constexpr auto name = "square_sum";
  static constexpr auto notation = "... -> ";
  constexpr op::inference infer(shapes) const { return scalar; }
  constexpr double flops(shapes in, shapes) const { return 2.0 * static_cast<double>(in[0].elements()); }
};
/// All operands and results are scalars. Results norm = sqrt(sum of the operands), and min(1, max_norm /
/// norm) before it: NaN of a norm that is NaN, 0 of an infinite one; but -1 of both if `skip`, by which
/// updates change nothing. max_norm 0: no limit.
struct clip_factor {
  double max_norm = 1;
  bool skip = false;
  static constexpr auto name = "clip_factor";
  static constexpr auto notation = " -> , ";
  static constexpr int arity = -1;
  static constexpr void describe(auto& s, auto&& visit) {
    visit("max_norm", s.max_norm);
    visit("skip", s.skip);
  }
  constexpr op::inference infer(shapes) const { return op::inference(2, scalar); }
  constexpr double flops(shapes in, shapes) const { return static_cast<double>(in.n) + 2; }
};

/// The operator by which this optimizer updates a parameter, with a master copy or without.
inline op::any_op update_rule(optimizer_choice const& o, bool master) {
  auto const rule = [&]<class Rule>(Rule const& r) {
    return master ? op::any_op(with_master<Rule>{r}) : op::any_op(r);
  };
  return o.kind == optimizer_kind::sgd        ? rule(sgd_update{o.weight_decay})
         : o.kind == optimizer_kind::momentum ? rule(momentum_update{o.momentum, o.weight_decay})
                                              : rule(adamw_update{o.beta1, o.beta2, o.eps, o.weight_decay});
}
/// The operator that all updates wait for; precondition: o.takes_norm().
inline op::any_op clip_rule(optimizer_choice const& o) {
  return clip_factor{o.clip_norm, o.on_non_finite == non_finite::skip};
}
constexpr bool has_master(op::any_op const& o) {
  return o.is<with_master<sgd_update>>() || o.is<with_master<momentum_update>>() ||
         o.is<with_master<adamw_update>>();
}
constexpr bool is_update(op::any_op const& o) {
  return o.is<sgd_update>() || o.is<momentum_update>() || o.is<adamw_update>() || has_master(o);
}

}  // namespace tensorpar
