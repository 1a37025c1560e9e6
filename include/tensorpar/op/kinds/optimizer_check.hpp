// tensorpar/op/kinds/optimizer_check.hpp - constants by which an optimizer updates anything at all
#pragma once
#include <cstdio>
#include <limits>
#include <tensorpar/core/error.hpp>
#include <tensorpar/op/kinds/update.hpp>

namespace tensorpar::op {

/// Throws `error` for constants that would fill parameters with NaN or climb along the gradient: not finite,
/// negative, a momentum above 1, or a beta of 1, whose bias correction divides by zero. Which of them the
/// kind uses does not matter.
inline void require_optimizer(optimizer_choice const& o) {
  auto const within = [](double x, double most, bool open, char const* name) {
    if (x >= 0 && (open ? x < most : x <= most)) return;
    char what[64], valid[64];
    std::snprintf(what, sizeof what, "%s is %g", name, x);
    std::snprintf(valid, sizeof valid, open ? "a number from 0 to below %g" : "a number from 0 to %.3g",
                  most);
    throw error(what, "optimizer", valid);
  };
  constexpr double any = std::numeric_limits<double>::max();
  if (o.kind != optimizer_kind::sgd && o.kind != optimizer_kind::momentum && o.kind != optimizer_kind::adamw)
    throw error("kind is " + std::to_string(static_cast<int>(o.kind)), "optimizer", "sgd, momentum or adamw");
  if (o.on_non_finite != non_finite::error && o.on_non_finite != non_finite::skip &&
      o.on_non_finite != non_finite::go_on)
    throw error("on_non_finite is " + std::to_string(static_cast<int>(o.on_non_finite)), "optimizer",
                "error, skip or go_on");
  auto const format = [](dtype type, char const* name) {
    if (type != dtype::f32 && type != dtype::bf16)
      throw error(std::string(name) + " are in " + name_of(type), "optimizer", "f32 or bf16");
  };
  format(o.moments, "moments");
  format(o.gradients, "gradients");
  format(o.masters, "masters");
  within(o.momentum, 1, false, "momentum");
  within(o.beta1, 1, true, "beta1");
  within(o.beta2, 1, true, "beta2");
  within(o.eps, any, false, "eps");
  within(o.weight_decay, any, false, "weight_decay");
  within(o.clip_norm, any, false, "clip_norm");
}

}  // namespace tensorpar::op
