// tensorpar/ir/machine/precision.hpp - the number format of a training step: how many bytes a number takes,
// and which of a device's rates counts
#pragma once
#include <cstdio>
#include <optional>
#include <string_view>
#include <tensorpar/ir/machine/machine.hpp>
#include <tensorpar/ir/mixed_precision.hpp>

namespace tensorpar {

inline constexpr char const* precision_names[precisions] = {"f32", "tf32", "bf16", "fp8"};

/// Throws `error` unless it is one of `precision_names`.
inline precision precision_of(std::string_view name) {
  for (int k = 0; k < precisions; ++k) if (name == precision_names[k]) return static_cast<precision>(k);
  throw error("no number format \"" + std::string(name) + "\"", "precision", "f32, tf32, bf16, fp8");
}
/// Activations and weights of two bytes, beside weights kept in f32 (`mixed_precision`)?
constexpr bool is_narrow(precision p) { return p == precision::bf16 || p == precision::fp8; }

/// The format that a kind's FLOP/s are of. Nothing where they are of none of its rates: measured, or of a
/// kind that has no rates.
inline std::optional<precision> format_of(device_kind const& k) {
  for (int f = 0; f < precisions; ++f)
    if (double const rate = k.rates.in(static_cast<precision>(f)); rate > 0 && rate == k.flops)
      return static_cast<precision>(f);
  return std::nullopt;
}

/// The machine with the FLOP/s that its devices have in this format. Kinds without rates, and those with
/// FLOP/s of the user's own, keep theirs. Throws `error` where a kind has rates, but none in this format.
/// O(kinds). Law: at_precision(at_precision(m, p), q) == at_precision(m, q).
inline machine at_precision(machine m, precision p) {
  for (device_kind& k : m.kinds) {
    if (!format_of(k)) continue;
    if (double const rate = k.rates.in(p); rate > 0) {
      k.flops = rate;
      continue;
    }
    std::string valid;
    for (int f = 0; f < precisions; ++f)
      if (k.rates.in(static_cast<precision>(f)) > 0)
        valid += (valid.empty() ? "" : ", ") + std::string(precision_names[f]);
    throw error(
        "device kind \"" + k.name + "\" has no known FLOP/s in " + precision_names[static_cast<int>(p)],
        m.name, valid);
  }
  return m;
}

/// bf16 where an input or a parameter of the graph is, else f32: what can be told of a graph. An optimizer's
/// states may be in bf16 beside either. O(values).
inline precision precision_in(computation_graph const& g) {
  for (graph_value const& v : g.values)
    if (v.producer < 0 && v.role != value_role::state && v.type.type == dtype::bf16) return precision::bf16;
  return precision::f32;
}
/// The forward graph in this format: `mixed_precision` of it for bf16 and fp8, unless it is in bf16 already.
/// Throws `error` for a graph in bf16 and a format of four bytes, and as `mixed_precision` does. O(graph).
inline computation_graph at_precision(computation_graph const& forward, precision p) {
  bool const narrow = precision_in(forward) == precision::bf16;
  if (is_narrow(p)) return narrow ? forward : mixed_precision(forward);
  if (narrow)
    throw error(std::string("a graph in bf16 for training in ") + precision_names[static_cast<int>(p)],
                "precision", "bf16 or fp8, or the graph before mixed_precision");
  return forward;
}

/// "bf16: 2 bytes a number, H100-SXM5-80GB 989 TFLOP/s": what is assumed of this machine in this format, and
/// ", moments in bf16", ", gradients in bf16", ", no masters" where the optimizer has it so.
inline std::string precision_text(machine const& m, precision p, optimizer_choice const& o = {}) {
  std::string s = std::string(precision_names[static_cast<int>(p)]) + ": " + (is_narrow(p) ? "2" : "4") +
                  " bytes a number";
  for (device_kind const& k : m.kinds) {
    char rate[64];
    std::snprintf(rate, sizeof rate, " %.4g TFLOP/s", k.flops / 1e12);
    s += ", " + k.name + rate + (k.rates.in(p) == k.flops ? "" : " as given");
  }
  if (o.moments != dtype::f32) s += std::string(", moments in ") + name_of(o.moments);
  if (o.gradients != dtype::f32) s += std::string(", gradients in ") + name_of(o.gradients);
  if (o.masters != dtype::f32) s += ", no masters";
  return s;
}

}  // namespace tensorpar
