// tensorpar/core/hash.hpp - stable hashes: the same number on every machine, in every run
#pragma once
#include <array>
#include <bit>
#include <concepts>
#include <string>
#include <string_view>
#include <tensorpar/core/config.hpp>
#include <type_traits>

namespace tensorpar::core {

/// FNV-1a over characters. Operators are told apart by this number, never by address: under
/// -fsanitize=undefined g++ 12 does not take `&a == &b` of two inline variables as a constant expression.
constexpr u64 name_hash(std::string_view s) {
  u64 h = 14695981039346656037ull;
  for (char c : s) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return h;
}

/// One round of a 64-bit finaliser (splitmix64): a bijection that mixes every input bit into all others.
constexpr u64 mix(u64 x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// An order-dependent hash of values. Law: equal sequences of added values give equal `value()`; no pointer
/// may be added.
class hasher {
  u64 h_ = 0x7465'6e73'6f72'7061ull;

 public:
  constexpr hasher& add(u64 x) { h_ = mix(h_ ^ x) + 0x632be59bd9b4e019ull; return *this; }
  template <class T>
    requires(std::integral<T> || std::is_enum_v<T>)
  constexpr hasher& add(T x) { return add(static_cast<u64>(x)); }
  // -0 and 0 compare equal, so they hash equal
  constexpr hasher& add(double x) { return add(std::bit_cast<u64>(x == 0 ? 0.0 : x)); }
  constexpr hasher& add(std::string_view s) { return add(name_hash(s)).add(static_cast<u64>(s.size())); }
  constexpr u64 value() const { return mix(h_); }
};

/// Hashes arrays of numbers for tables that nobody walks over.
struct array_hash {
  template <class T, std::size_t N> constexpr std::size_t operator()(std::array<T, N> const& key) const {
    hasher h;
    for (T x : key) h.add(x);
    return static_cast<std::size_t>(h.value());
  }
};

namespace detail {
/// 16 lower-case hexadecimal digits.
inline std::string hex_of(u64 x) {
  std::string r(16, '0');
  for (std::size_t i = 16; i-- > 0; x >>= 4) r[i] = "0123456789abcdef"[x & 15];
  return r;
}
}  // namespace detail

}  // namespace tensorpar::core
