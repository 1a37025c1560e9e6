// tensorpar/plan/plan_file_text.hpp - what plans in files are read with and written with
#pragma once
#include <string>
#include <tensorpar/core/whole_file.hpp>
#include <tensorpar/plan/plan_text.hpp>

namespace tensorpar::detail {

/// `read_plan`, and `write_plan` (plan/plan_file.hpp): templates, so that they are compiled where
/// tensorpar::compiled is.
template <class> plan plan_in_file(std::string const& path) {
  return decode_plan(core::read_file(path, "a readable JSON file"), path);
}
template <class> void plan_to_file(plan const& p, std::string const& path) {
  core::write_whole_file(path, text_of(p, path));
}

}  // namespace tensorpar::detail
