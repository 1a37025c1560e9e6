// tests/support/scratch_folder.hpp - a folder of its own for a test, removed at the end
#pragma once
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdlib.h>
#include <string>

namespace tests {

class scratch_folder {
  std::string path_;

 public:
  scratch_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "tensorpar-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  scratch_folder(scratch_folder const&) = delete;
  scratch_folder& operator=(scratch_folder const&) = delete;
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string const& path() const { return path_; }
  std::string operator/(std::string const& name) const { return path_ + "/" + name; }
};

inline std::string bytes_of_file(std::string const& path) {
  std::ifstream f(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(f), {}};
}
inline void write_bytes(std::string const& path, std::string const& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace tests
