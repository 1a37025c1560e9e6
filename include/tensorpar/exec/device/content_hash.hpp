// tensorpar/exec/device/content_hash.hpp - a checksum of bytes that come in pieces
#pragma once
#include <bit>
#include <cstddef>
#include <cstring>
#include <tensorpar/core/hash.hpp>

namespace tensorpar::exec {

/// A 64-bit hash of bytes that come in pieces: `hasher` over their little-endian 64-bit words, the last one
/// filled with zeros, then their number. Any change within one word is found for certain (each round is a
/// bijection of the word), any other with probability 1 - 2^-64; it is no defence against a forger. Law: the
/// value depends on the bytes, not on how they were cut in pieces. O(bytes).
class content_hash {
  core::hasher h_;
  u64 word_ = 0, bytes_ = 0;

 public:
  content_hash& add(void const* data, std::size_t n) {
    auto const* p = static_cast<unsigned char const*>(data);
    for (; n && bytes_ % 8; --n) put(*p++);
    for (; n >= 8; n -= 8, p += 8, bytes_ += 8) {
      u64 w = 0;
      if constexpr (std::endian::native == std::endian::little)
        std::memcpy(&w, p, 8);
      else
        for (int i = 8; i-- > 0;) w = w << 8 | p[i];
      h_.add(w);
    }
    for (; n; --n) put(*p++);
    return *this;
  }
  u64 value() const {
    core::hasher h = h_;
    if (bytes_ % 8) h.add(word_);
    return h.add(bytes_).value();
  }

 private:
  void put(unsigned char c) {
    word_ |= u64{c} << bytes_ % 8 * 8;
    if (++bytes_ % 8 == 0) {
      h_.add(word_);
      word_ = 0;
    }
  }
};

}  // namespace tensorpar::exec
