// tensorpar/core/printable.hpp - text from outside, fit to be shown: UTF-8 without control characters
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace tensorpar::core {

namespace detail {

/// How many bytes at the front are one well-formed character of UTF-8; 0: none.
constexpr std::size_t utf8_length(std::string_view s) {
  auto const byte = [&](std::size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(s[i])); };
  if (s.empty()) return 0;
  unsigned const first = byte(0);
  std::size_t const n = first < 0x80   ? 1
                        : first < 0xc2 ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
  if (n > s.size()) return 0;
  for (std::size_t i = 1; i < n; ++i)
    if (byte(i) >> 6 != 2) return 0;
  bool const too_long = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  bool const no_character = (first == 0xed && byte(1) > 0x9f) || (first == 0xf4 && byte(1) > 0x8f);
  return too_long || no_character ? 0 : n;
}

}  // namespace detail

/// The text with every byte that is no UTF-8 or a control character as "\xff"; line breaks and tabs stay. Of
/// more than `most` bytes the first half and the last stay. O(text).
inline std::string printable(std::string_view s, std::size_t most = std::string_view::npos) {
  if (s.size() > most) {
    std::size_t first = most / 2, last = s.size() - most / 2;
    // no character is cut
    while (first > 0 && first + 4 > most / 2 && static_cast<unsigned char>(s[first]) >> 6 == 2) --first;
    while (last < s.size() && static_cast<unsigned char>(s[last]) >> 6 == 2) ++last;
    return printable(s.substr(0, first)) + " ... " + printable(s.substr(last));
  }
  std::string r;
  while (!s.empty()) {
    std::size_t const n = detail::utf8_length(s);
    auto const c = static_cast<unsigned char>(s[0]);
    // U+0080 to U+009F
    bool const second_set = n == 2 && c == 0xc2 && static_cast<unsigned char>(s[1]) < 0xa0;
    bool const control = c == 0x7f || (c < 0x20 && c != '\n' && c != '\t') || second_set;
    std::size_t const taken = n ? n : 1;
    if (n && !control) {
      r.append(s.substr(0, n));
    } else {
      for (std::size_t i = 0; i < taken; ++i) {
        auto const b = static_cast<unsigned char>(s[i]);
        r.append("\\x").append(1, "0123456789abcdef"[b >> 4]).append(1, "0123456789abcdef"[b & 15]);
      }
    }
    s.remove_prefix(taken);
  }
  return r;
}

}  // namespace tensorpar::core
