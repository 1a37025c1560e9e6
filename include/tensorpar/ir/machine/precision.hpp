// tensorpar/ir/machine/precision.hpp - for which format of numbers a device's FLOP/s are, and those of other
// formats
#pragma once
#include <cstdio>
#include <string_view>
#include <tensorpar/ir/machine/machine.hpp>

namespace tensorpar {

/// What matrix products compute with. f32 and tf32 numbers take four bytes, bf16 numbers two
/// (`mixed_precision` makes such a graph of another).
enum class precision : int { f32, tf32, bf16 };
inline constexpr char const* precision_names[] = {"f32", "tf32", "bf16"};

/// Throws `error` unless it is one of `precision_names`.
inline precision precision_of(std::string_view name) {
  for (int k = 0; k < 3; ++k) if (name == precision_names[k]) return static_cast<precision>(k);
  throw error("no number format \"" + std::string(name) + "\"", "precision", "f32, tf32, bf16");
}

/// Dense peaks of a kind of device by format, in FLOP/s, from its maker's data sheet (figures with sparsity
/// are twice as high). 0: none, or none is published.
struct format_rates {
  std::string_view kind;
  double rate[3];                        // by precision
  // what the kind's own `flops` are for (ir/machine/machine_presets.hpp)
  precision preset;
};
inline constexpr format_rates known_rates[] = {
    {"V100-SXM2-16GB", {15.7e12, 0, 0}, precision::f32},
    {"H100-SXM5-80GB", {67e12, 494.5e12, 989e12}, precision::bf16},
    {"H200-SXM5-141GB", {67e12, 494.5e12, 989e12}, precision::bf16},
    {"Tesla M60", {4.8e12, 0, 0}, precision::f32},
    {"T4", {8.1e12, 0, 0}, precision::f32},
    {"GeForce TITAN X", {6.7e12, 0, 0}, precision::f32},
    {"A40", {37.4e12, 74.8e12, 149.7e12}, precision::f32},
    {"RTX A5500", {34.1e12, 0, 0}, precision::f32},
    {"logical", {20e9, 0, 0}, precision::f32}};

/// Of a known kind with FLOP/s that its maker publishes for some format, whichever. nullptr: a kind of the
/// user's own, or a known one with FLOP/s that he measured or wrote down himself.
inline format_rates const* rates_of(device_kind const& k) {
  for (format_rates const& r : known_rates)
    if (r.kind == k.name)
      for (double rate : r.rate) if (rate > 0 && rate == k.flops) return &r;
  return nullptr;
}

/// The machine with the FLOP/s that its devices have in this format. Kinds that are not known keep theirs.
/// Throws `error` where a known kind has none in it. O(kinds). Law: at_precision(at_precision(m, p), q) ==
/// at_precision(m, q).
inline machine at_precision(machine m, precision p) {
  for (device_kind& k : m.kinds) {
    format_rates const* const r = rates_of(k);
    if (!r) continue;
    if (double const rate = r->rate[static_cast<int>(p)]; rate > 0) {
      k.flops = rate;
      continue;
    }
    std::string valid;
    for (int f = 0; f < 3; ++f)
      if (r->rate[f] > 0) valid += (valid.empty() ? "" : ", ") + std::string(precision_names[f]);
    throw error(
        "device kind \"" + k.name + "\" has no known FLOP/s in " + precision_names[static_cast<int>(p)],
        m.name, valid);
  }
  return m;
}

/// "bf16: 2 bytes a number, H100-SXM5-80GB 989 TFLOP/s": what was assumed. `given`: the machine before
/// `at_precision`.
inline std::string precision_text(machine const& given, machine const& m, precision p) {
  std::string s = std::string(precision_names[static_cast<int>(p)]) + ": " +
                  (p == precision::bf16 ? "2" : "4") + " bytes a number";
  for (std::size_t k = 0; k < m.kinds.size(); ++k) {
    char rate[64];
    std::snprintf(rate, sizeof rate, " %.4g TFLOP/s", m.kinds[k].flops / 1e12);
    s += ", " + m.kinds[k].name + rate + (rates_of(given.kinds[k]) ? "" : " as given");
  }
  return s;
}

}  // namespace tensorpar
