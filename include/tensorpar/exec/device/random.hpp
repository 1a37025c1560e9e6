// tensorpar/exec/device/random.hpp - random numbers by position: what element i draws depends on (seed,
// stream, i) and on nothing else
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/op/core/inference.hpp>

namespace tensorpar::exec {

using random_words = std::array<std::uint32_t, 4>;

/// Philox4x32-10 (Salmon et al., SC'11, section 3.3): ten rounds of a keyed bijection of a 128-bit counter.
constexpr random_words philox(random_words x, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    u64 const p = u64{0xD2511F53} * x[0], q = u64{0xCD9E8D57} * x[2];
    x = {static_cast<std::uint32_t>(q >> 32) ^ x[1] ^ key0, static_cast<std::uint32_t>(q),
         static_cast<std::uint32_t>(p >> 32) ^ x[3] ^ key1, static_cast<std::uint32_t>(p)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return x;
}

/// Numbers addressed by index: any two elements may be drawn in any order, on any device.
struct random_stream {
  u64 seed = 0, stream = 0;
  constexpr random_words words(u64 index) const {
    return philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                   static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)},
                  static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
  }
  /// In [0, 1), a multiple of 2^-53.
  constexpr double uniform(u64 index) const {
    random_words const w = words(index);
    return unit(w[0], w[1]);
  }
  /// Mean 0, variance 1 (Box and Muller 1958).
  double normal(u64 index) const {
    random_words const w = words(index);
    return std::sqrt(-2 * std::log(1 - unit(w[0], w[1]))) * std::cos(6.283185307179586477 * unit(w[2], w[3]));
  }

 private:
  static constexpr double unit(std::uint32_t a, std::uint32_t b) {
    return static_cast<double>((u64{a} << 32 | b) >> 11) * 0x1p-53;
  }
};

/// How logical element `index` of a parameter of this (logical) shape starts: the same on every device, under
/// every sharding.
inline double initial_value(op::init start, shape const& s, u64 index, u64 seed, u64 parameter) {
  if (start == op::init::zeros) return 0;
  if (start == op::init::ones) return 1;
  random_stream const r{seed, core::mix(parameter ^ 0x706172616d657465ull)};
  if (start == op::init::normal_02) return 0.02 * r.normal(index);
  double fan_in = 1;
  for (int i = 1; i < s.rank; ++i) fan_in *= static_cast<double>(s.d[i].n);
  return std::sqrt(2 / fan_in) * r.normal(index);
}

}  // namespace tensorpar::exec
