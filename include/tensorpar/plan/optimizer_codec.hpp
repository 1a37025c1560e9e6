// tensorpar/plan/optimizer_codec.hpp - an optimizer as JSON
#pragma once
#include <tensorpar/op/kinds/update.hpp>
#include <tensorpar/plan/plan_reader.hpp>
#include <utility>

namespace tensorpar::detail {

constexpr char const* non_finite_names[] = {"error", "skip", "go_on"};
constexpr char const* optimizer_names[] = {"sgd", "momentum", "adamw"};

/// Its number formats, by the names of their keys.
inline constexpr std::pair<char const*, dtype optimizer_choice::*> formats[] = {
    {"moments", &optimizer_choice::moments},
    {"gradients", &optimizer_choice::gradients},
    {"masters", &optimizer_choice::masters}};

inline core::json encode_optimizer(optimizer_choice const& x) {
  core::json o = core::json::object();
  o["kind"] = optimizer_names[static_cast<int>(x.kind)];
  o["momentum"] = x.momentum;
  o["beta1"] = x.beta1;
  o["beta2"] = x.beta2;
  o["eps"] = x.eps;
  o["weight_decay"] = x.weight_decay;
  o["clip_norm"] = x.clip_norm;
  if (x.on_non_finite != non_finite::error)
    o["on_non_finite"] = non_finite_names[static_cast<int>(x.on_non_finite)];
  for (auto const& [key, type] : formats) if (x.*type != dtype::f32) o[key] = name_of(x.*type);
  return o;
}

/// Throws `error` that names the key for what is no optimizer. Keys of formats stand for bf16 alone.
inline optimizer_choice decode_optimizer(plan_reader const& o) {
  o.object({"kind", "momentum", "beta1", "beta2", "eps", "weight_decay", "clip_norm", "on_non_finite",
            "moments", "gradients", "masters"});
  optimizer_choice x;
  x.kind = static_cast<optimizer_kind>(o["kind"].one_of(optimizer_names));
  x.momentum = o["momentum"].real(0, 1);
  x.beta1 = o["beta1"].real(0, 1);
  x.beta2 = o["beta2"].real(0, 1);
  x.eps = o["eps"].real(0);
  x.weight_decay = o["weight_decay"].real(0);
  x.clip_norm = o["clip_norm"].real(0);
  if (o.at.contains("on_non_finite"))
    x.on_non_finite = static_cast<non_finite>(o["on_non_finite"].one_of(non_finite_names));
  for (auto const& [key, type] : formats) {
    if (!o.at.contains(key)) continue;
    if (o[key].text() != name_of(dtype::bf16)) o[key].fail("unknown", "bf16, or no such key for f32");
    x.*type = dtype::bf16;
  }
  return x;
}

}  // namespace tensorpar::detail
