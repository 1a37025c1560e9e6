// tests/report/found_in.hpp - how often a text holds another
#pragma once
#include <cstddef>
#include <string_view>

namespace tests {

inline std::size_t count(std::string_view text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
  return n;
}
inline bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace tests
