// tensorpar/core/bfloat16.hpp - numbers of 16 bits with a float's exponent: stored so, computed with as float
#pragma once
#include <bit>
#include <cstdint>
#include <tensorpar/core/config.hpp>
#include <type_traits>

namespace tensorpar {

/// The upper half of an IEEE binary32: 8 bits of exponent, 8 of precision (one of them implied). A regular
/// value of 2 bytes that is stored and moved; arithmetic happens in float, which it turns into by itself.
/// Turning a float into one rounds to the nearest, ties to even. Laws: bfloat16(float(x)) == x; for finite x
/// within range |float(bfloat16(x)) - x| <= |x| / 256.
struct bfloat16 {
  std::uint16_t bits;

  bfloat16() = default;
  constexpr explicit bfloat16(float x) : bits(rounded(x)) {}
  constexpr explicit bfloat16(int x) : bits(rounded(static_cast<float>(x))) {}
  constexpr bfloat16& operator=(float x) {
    bits = rounded(x);
    return *this;
  }
  constexpr operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
  /// Rounded towards zero or away from it: away where the digits that are cut, as a number of 16 bits, and
  /// `draw` add up to more than 16 bits hold. Law: over all draws the mean is x, for finite x within range.
  static constexpr bfloat16 drawn(float x, std::uint16_t draw) {
    std::uint32_t const u = std::bit_cast<std::uint32_t>(x);
    if ((u & 0x7fffffffu) >= 0x7f800000u) return bfloat16(x);
    bfloat16 r;
    r.bits = static_cast<std::uint16_t>((u + draw) >> 16);
    return r;
  }
  constexpr bfloat16& operator+=(float x) { return *this = static_cast<float>(*this) + x; }

 private:
  static constexpr std::uint16_t rounded(float x) {
#if defined(__CUDACC__) && defined(__CUDA_ARCH__)                    // PTX, for compilers that assemble it
    if (!std::is_constant_evaluated()) {       // the same bits by one instruction
      std::uint16_t r;
      asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(x));
      return r;
    }
#endif
    std::uint32_t const u = std::bit_cast<std::uint32_t>(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fff;                // NaN
    return static_cast<std::uint16_t>((u + 0x7fffu + (u >> 16 & 1)) >> 16);
  }
};

/// What a stored number is computed with: itself, or float for bfloat16.
template <class Stored> struct computed_with { using type = Stored; };
template <> struct computed_with<bfloat16> { using type = float; };
template <class Stored> using computed = typename computed_with<Stored>::type;

}  // namespace tensorpar
