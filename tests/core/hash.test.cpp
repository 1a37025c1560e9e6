// tests/core/hash.test.cpp - hashes are the same everywhere, see every bit, and know order
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <tensorpar/core/hash.hpp>
#include <vector>

using namespace tensorpar;

namespace {

u64 hash_of(std::vector<u64> const& values) {
  core::hasher h;
  for (u64 v : values) h.add(v);
  return h.value();
}

enum class colour { red, green };

}  // namespace

TEST_CASE("name_hash is FNV-1a: the published vectors") {
  static_assert(core::name_hash("") == 0xcbf29ce484222325ull);
  static_assert(core::name_hash("a") == 0xaf63dc4c8601ec8cull);
  static_assert(core::name_hash("foobar") == 0x85944171f73967e8ull);
  CHECK(core::name_hash("\xff") == ((14695981039346656037ull ^ 0xff) * 1099511628211ull));  // bytes, not signed characters
}

TEST_CASE("mix is splitmix64: the published vectors, and the inverse gives every argument back") {
  static_assert(core::mix(0) == 0xe220a8397b1dcdafull);  // the first output of splitmix64 seeded with 0
  static_assert(core::mix(0x9e3779b97f4a7c15ull) == 0x6e789e6aa1b965f4ull);
  auto const unshift = [](u64 y, int s) {  // solves y == x ^ (x >> s)
    u64 x = y;
    for (int done = s; done < 64; done += s) x = y ^ (x >> s);
    return x;
  };
  auto const invert = [](u64 odd) {  // Newton: the inverse modulo 2^64
    u64 x = odd;
    for (int i = 0; i < 6; ++i) x *= 2 - odd * x;
    return x;
  };
  std::mt19937_64 random(7);
  for (int i = 0; i < 1000; ++i) {
    u64 const x = random();
    u64 y = unshift(core::mix(x), 31) * invert(0x94d049bb133111ebull);
    y = unshift(y, 27) * invert(0xbf58476d1ce4e5b9ull);
    REQUIRE(unshift(y, 30) - 0x9e3779b97f4a7c15ull == x);
  }
}

TEST_CASE("mix shardings: one bit in changes about half of the bits out") {
  std::mt19937_64 random(11);
  for (int bit = 0; bit < 64; ++bit) {
    int changed = 0;
    for (int i = 0; i < 200; ++i) {
      u64 const x = random();
      changed += std::popcount(core::mix(x) ^ core::mix(x ^ (u64{1} << bit)));
    }
    CHECK(changed > 200 * 32 * 9 / 10);
    CHECK(changed < 200 * 32 * 11 / 10);
  }
}

TEST_CASE("hasher: equal sequences agree, at compile time and at run time") {
  constexpr u64 at_compile_time = core::hasher{}.add(3).add(std::string_view("linear")).add(2.5).value();
  std::string const name = "linear";
  CHECK(core::hasher{}.add(3).add(std::string_view(name)).add(2.5).value() == at_compile_time);
  // A plan that was stored keeps its hash: this number may only change together with the plan's schema version.
  CHECK(hash_of({1, 2, 3}) == 0x813a2cb2ef985cd1ull);
}

TEST_CASE("hasher: order, length and boundaries count") {
  CHECK(hash_of({1, 2}) != hash_of({2, 1}));
  CHECK(hash_of({}) != hash_of({0}));
  CHECK(hash_of({0}) != hash_of({0, 0}));
  CHECK(core::hasher{}.add(std::string_view("ab")).add(std::string_view("c")).value() !=
        core::hasher{}.add(std::string_view("a")).add(std::string_view("bc")).value());
}

TEST_CASE("hasher: values that compare equal hash equal") {
  CHECK(core::hasher{}.add(0.0).value() == core::hasher{}.add(-0.0).value());
  CHECK(core::hasher{}.add(1).value() == core::hasher{}.add(i64{1}).value());
  CHECK(core::hasher{}.add(-1).value() == core::hasher{}.add(i64{-1}).value());
  CHECK(core::hasher{}.add(colour::green).value() == core::hasher{}.add(1).value());
  CHECK(core::hasher{}.add(colour::red).value() != core::hasher{}.add(colour::green).value());
  CHECK(core::hasher{}.add(1.0).value() != core::hasher{}.add(std::nextafter(1.0, 2.0)).value());
  CHECK(core::hasher{}.add(std::numeric_limits<double>::infinity()).value() != core::hasher{}.add(-std::numeric_limits<double>::infinity()).value());
}

TEST_CASE("hasher: no two of 200,000 short sequences collide") {
  std::set<u64> seen;
  int made = 0;
  for (u64 a = 0; a < 100; ++a)
    for (u64 b = 0; b < 100; ++b)
      for (u64 c = 0; c < 19; ++c, ++made) seen.insert(hash_of({a, b, c}));
  for (u64 a = 0; a < 10000; ++a, ++made) seen.insert(hash_of({a}));
  CHECK(seen.size() == static_cast<std::size_t>(made));
}
