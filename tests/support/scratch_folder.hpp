// tests/support/scratch_folder.hpp - a folder of its own for a test, and the bytes of its files
#pragma once
#include "../../examples/scratch_folder.hpp"
#include <fstream>
#include <iterator>
#include <string>

namespace tests {

using ::scratch_folder;

inline std::string bytes_of_file(std::string const& path) {
  std::ifstream f(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(f), {}};
}
inline void write_bytes(std::string const& path, std::string const& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace tests
