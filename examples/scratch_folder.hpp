// examples/scratch_folder.hpp - a folder of this run alone for the files that an example or a test writes, removed at its end
#pragma once
#include <filesystem>
#include <stdexcept>
#include <stdlib.h>
#include <string>

class scratch_folder {
  std::string path_ = (std::filesystem::temp_directory_path() / ("tensorpar-" + std::string(6, 'X'))).string();

 public:
  scratch_folder() {
    if (!::mkdtemp(path_.data())) throw std::runtime_error("no folder can be made in the temporary folder (at " + path_ + ")");
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
