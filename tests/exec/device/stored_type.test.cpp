// tests/exec/device/stored_type.test.cpp - every number of 16 bits, and the rounding of those of 64, against independent computations
#include <tensorpar/exec/device/has_parameters.hpp>
#include <tensorpar/exec/device/stored_type.hpp>

#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <random>
#include <set>
#include <string>

using namespace tensorpar;

namespace {

/// What the standard says of the bits of a binary format: no bits of the result are put together.
double by_definition(std::uint32_t bits, int exponent_bits, int fraction_bits) {
  std::uint32_t const fraction = bits & ((1u << fraction_bits) - 1), exponent = bits >> fraction_bits & ((1u << exponent_bits) - 1);
  double const sign = bits >> (exponent_bits + fraction_bits) ? -1 : 1, parts = std::ldexp(1.0, fraction_bits);
  int const bias = (1 << (exponent_bits - 1)) - 1;
  if (exponent == (1u << exponent_bits) - 1)
    return fraction ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction / parts, 1 - bias);
  return sign * std::ldexp(1 + fraction / parts, static_cast<int>(exponent) - bias);
}
template <class Real> bool same(Real a, double b) {
  if (std::isnan(b)) return std::isnan(a);
  return static_cast<double>(a) == b && std::signbit(a) == std::signbit(b);
}
template <class Real, class Stored> std::vector<Real> read(exec::stored_type t, std::vector<Stored> const& all) {
  std::vector<unsigned char> bytes(all.size() * sizeof(Stored) + 1);            // at an odd address
  if (!all.empty()) std::memcpy(bytes.data() + 1, all.data(), all.size() * sizeof(Stored));
  std::vector<Real> r(all.size());
  exec::detail::reals_of(t, bytes.data() + 1, r.size(), r.data());
  return r;
}

}  // namespace

TEST_CASE("all 65,536 numbers of both types of 16 bits, in float and in double") {
  std::vector<std::uint16_t> all;
  for (std::uint32_t b = 0; b < 65536; ++b) all.push_back(static_cast<std::uint16_t>(b));
  int wrong = 0, nans = 0, infinities = 0, subnormals = 0;
  auto const half = read<float>(exec::stored_type::f16, all), brain = read<float>(exec::stored_type::bf16, all);
  auto const half_in_double = read<double>(exec::stored_type::f16, all), brain_in_double = read<double>(exec::stored_type::bf16, all);
  for (std::uint32_t b = 0; b < 65536; ++b) {
    double const h = by_definition(b, 5, 10), f = by_definition(b, 8, 7);
    wrong += !same(half[b], h) + !same(half_in_double[b], h) + !same(brain[b], f) + !same(brain_in_double[b], f);
    nans += std::isnan(h);
    infinities += std::isinf(h);
    subnormals += h != 0 && std::fabs(h) < 0x1p-14;
  }
  CHECK(wrong == 0);
  CHECK(nans == 2 * 1023);
  CHECK(infinities == 2);
  CHECK(subnormals == 2 * 1023);
  static_assert(exec::detail::float_of_half(0x3c00) == 1 && exec::detail::float_of_half(0x7bff) == 65504 &&
                exec::detail::float_of_half(1) == 0x1p-24f);
}

TEST_CASE("a NaN of half precision keeps its sign and payload") {
  for (std::uint32_t b : {0x7e00u, 0x7e01u, 0xfe00u, 0xffffu}) {
    std::uint32_t const x = std::bit_cast<std::uint32_t>(exec::detail::float_of_half(static_cast<std::uint16_t>(b)));
    CHECK((x >> 31) == (b >> 15));
    CHECK((x >> 13 & 1023u) == (b & 1023u));
  }
}

TEST_CASE("F64 to float rounds to the nearest, ties to even, and beyond its range to infinity; all else keeps its number") {
  double const inf = std::numeric_limits<double>::infinity(), one_up = 1 + 0x1p-23;
  std::vector<double> const x{1 + 0x1p-24, one_up + 0x1p-24, 1 + 0x1.8p-24, -0.0, 1e300, -1e300, inf, 0x1p-150, 0x1.8p-149};
  std::vector<double> const want{1, 1 + 0x1p-22, one_up, -0.0, inf, -inf, inf, 0, 0x1p-148};
  auto const found = read<float>(exec::stored_type::f64, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    CAPTURE(i);
    CHECK(same(found[i], want[i]));
  }
  std::mt19937_64 draw(11);
  std::vector<double> wide;
  std::vector<float> narrow;
  for (int i = 0; i < 2000; ++i) {
    wide.push_back(std::ldexp(static_cast<double>(draw()), static_cast<int>(draw() % 200) - 164));
    narrow.push_back(static_cast<float>(wide.back()));
  }
  CHECK(read<double>(exec::stored_type::f64, wide) == wide);
  CHECK(read<float>(exec::stored_type::f32, narrow) == narrow);
  std::vector<double> const widened = read<double>(exec::stored_type::f32, narrow);
  std::vector<float> const rounded = read<float>(exec::stored_type::f64, wide);
  for (std::size_t i = 0; i < wide.size(); ++i) {
    CHECK(widened[i] == static_cast<double>(narrow[i]));
    float const r = rounded[i];                                                 // no float is nearer
    double const own = std::fabs(wide[i] - static_cast<double>(r));
    for (float to : {0.0f, std::numeric_limits<float>::infinity()})
      CHECK(own <= std::fabs(wide[i] - static_cast<double>(std::nextafter(r, to))));
  }
  CHECK(read<float>(exec::stored_type::f16, std::vector<std::uint16_t>{}).empty());
}

TEST_CASE("names and sizes of types") {
  std::set<std::string> names;
  i64 bytes = 0;
  for (int k = 0; k < exec::stored_types; ++k) {
    names.insert(exec::name_of(static_cast<exec::stored_type>(k)));
    bytes += exec::bytes_of(static_cast<exec::stored_type>(k));
  }
  CHECK(names.size() == exec::stored_types);
  CHECK(bytes == 8 * 1 + 4 * 2 + 3 * 4 + 4 * 8);
  CHECK(exec::bytes_of(exec::stored_as<prime_field>::type) == 8);
  CHECK(std::string(exec::name_of(exec::stored_as<prime_field>::type)) == "U64");
  CHECK(std::string(exec::name_of(exec::stored_type::i64)) == "I64");
}
