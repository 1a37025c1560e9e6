// fuzz/json.cpp - any bytes: parse_json returns a value that survives writing and reading, or throws tensorpar::error
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <tensorpar/core/json.hpp>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string_view const text(reinterpret_cast<char const*>(data), size);
  try {
    tensorpar::core::json const value = tensorpar::core::parse_json(text, "input");
    std::string const once = value.dump();
    if (tensorpar::core::parse_json(once, "again").dump() != once) std::abort();
  } catch (tensorpar::error const&) {
  }
  return 0;
}
