// tensorpar/exec/device/stored_type.hpp - the element types of a safetensors file, and what real ones are as
// float or double
#pragma once
#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <tensorpar/core/bfloat16.hpp>
#include <tensorpar/core/prime_field.hpp>
#include <vector>

namespace tensorpar::exec {

/// How elements are stored: the format's types of whole bytes. Field elements are U64, whole numbers below
/// 2^61 - 1.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"   // g++ 12 takes a scoped enumerator for a shadow of the type i64
enum class stored_type : int {
  bool8,
  u8,
  i8,
  f8_e4m3,
  f8_e5m2,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  f64,
  i64,
  field,
  c64
};
#pragma GCC diagnostic pop
inline constexpr int stored_types = 19;
constexpr i64 bytes_of(stored_type t) {
  return t < stored_type::i16 ? 1 : t < stored_type::i32 ? 2 : t < stored_type::f64 ? 4 : 8;
}
constexpr char const* name_of(stored_type t) {
  constexpr char const* names[] = {
      "BOOL", "U8",   "I8",  "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I16", "U16",
      "F16",  "BF16", "I32", "U32",     "F32",     "F64",     "I64",         "U64",         "C64"};
  static_assert(sizeof names == stored_types * sizeof *names);
  return names[static_cast<int>(t)];
}
/// Is it read as float and double?
constexpr bool is_real(stored_type t) {
  return t == stored_type::f16 || t == stored_type::bf16 || t == stored_type::f32 || t == stored_type::f64;
}
inline constexpr char const* real_types = "F16, BF16, F32, F64";

/// Specialise it to store your own scalar: it is written as its bytes, which must be those of the stored
/// type.
template <class Element> struct stored_as;
template <> struct stored_as<float> { static constexpr stored_type type = stored_type::f32; };
template <> struct stored_as<double> { static constexpr stored_type type = stored_type::f64; };
template <> struct stored_as<std::int32_t> { static constexpr stored_type type = stored_type::i32; };
template <> struct stored_as<prime_field> { static constexpr stored_type type = stored_type::field; };

namespace detail {

/// The number that the bits of an IEEE binary16 stand for, exactly; a NaN keeps its sign and payload.
constexpr float float_of_half(std::uint16_t h) {
  std::uint32_t const sign = (h & 0x8000u) << 16, exponent = h >> 10 & 31u, fraction = h & 1023u;
  if (exponent == 0) {                                               // zeros and subnormals: fraction * 2^-24
    float const x = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -x : x;
  }
  return std::bit_cast<float>(sign | (exponent == 31 ? 255u : exponent + 112u) << 23 | fraction << 13);
}

/// n elements of a real type, as they lie in a file on a little-endian machine, to float or double. F64 to
/// float rounds to the nearest (beyond a float's range: to infinity), all else is exact. Precondition:
/// is_real(t).
template <std::floating_point Real>
void reals_of(stored_type t, unsigned char const* from, std::size_t n, Real* to) {
  auto const each = [&](auto kind, auto const& number) {
    for (std::size_t i = 0; i < n; ++i) {
      decltype(kind) x;
      std::memcpy(&x, from + i * sizeof x, sizeof x);
      to[i] = static_cast<Real>(number(x));
    }
  };
  switch (t) {
    case stored_type::f16: return each(std::uint16_t{}, float_of_half);
    case stored_type::bf16: return each(bfloat16{}, [](bfloat16 x) { return static_cast<float>(x); });
    case stored_type::f32: return each(float{}, [](float x) { return x; });
    default: return each(double{}, [](double x) { return x; });
  }
}

}  // namespace detail

}  // namespace tensorpar::exec
