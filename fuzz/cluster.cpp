// fuzz/cluster.cpp - any bytes: a cluster file gives a machine that survives writing and reading, or tensorpar::error
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <tensorpar/plan/cluster_file.hpp>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace tensorpar;
  std::string_view const text(reinterpret_cast<char const*>(data), size);
  try {
    std::string const once = encode_cluster(parse_cluster(text, "input")).dump();
    if (encode_cluster(parse_cluster(once, "again")).dump() != once) std::abort();
  } catch (error const&) {
  }
  return 0;
}
