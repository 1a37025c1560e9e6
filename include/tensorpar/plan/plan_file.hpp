// tensorpar/plan/plan_file.hpp - plans on disk: a crash leaves the old file or the new one, never half of one
#pragma once
#include <tensorpar/core/whole_file.hpp>
#include <tensorpar/plan/plan_text.hpp>

namespace tensorpar {

/// The plan in the file. Throws `error` if it cannot be read, and as `decode` does.
inline plan read_plan(std::string const& path) {
  return decode_plan(core::read_file(path, "a readable JSON file"), path);
}
/// Indented by one space per level, so that versions of a plan compare well line by line. Throws `error` as
/// `decode` does where `read_plan` would refuse the file; then nothing is written.
inline void write_plan(plan const& p, std::string const& path) {
  core::write_whole_file(path, text_of(p, path));
}

}  // namespace tensorpar
