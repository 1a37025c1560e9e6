// tests/exec/device/content_hash.test.cpp - a checksum of the bytes, however they are cut
#include <doctest/doctest.h>
#include <random>
#include <string>
#include <tensorpar/exec/device/content_hash.hpp>

using namespace tensorpar;

namespace {
u64 whole(std::string const& s) { return exec::content_hash().add(s.data(), s.size()).value(); }
}  // namespace

TEST_CASE("pieces do not matter, every bit and the length do") {
  std::mt19937 draw(1);
  for (std::size_t n = 0; n < 70; ++n) {
    std::string s(n, '\0');
    for (char& c : s) c = static_cast<char>(draw());
    u64 const h = whole(s);
    for (int turn = 0; turn < 5; ++turn) {
      exec::content_hash pieces;
      for (std::size_t at = 0; at < n;) {
        std::size_t const k = std::min<std::size_t>(1 + draw() % 11, n - at);
        pieces.add(s.data() + at, k);
        at += k;
      }
      CHECK(pieces.value() == h);
    }
    for (std::size_t bit = 0; bit < 8 * n; ++bit) {
      std::string t = s;
      t[bit / 8] = static_cast<char>(t[bit / 8] ^ (1 << bit % 8));
      CHECK(whole(t) != h);
    }
    CHECK(whole(s + '\0') != h);
  }
}
