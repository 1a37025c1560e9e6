// tensorpar/plan/plan_file.hpp - plans on disk: a crash leaves the old file or the new one, never half of one
#pragma once
#include <string>
#include <tensorpar/plan/plan.hpp>
#ifndef TENSORPAR_COMPILED
#include <tensorpar/plan/plan_file_text.hpp>
#endif

namespace tensorpar {

namespace detail {
template <class> plan plan_in_file(std::string const& path);
template <class> void plan_to_file(plan const& p, std::string const& path);
#ifdef TENSORPAR_COMPILED
extern template plan plan_in_file<void>(std::string const&);
extern template void plan_to_file<void>(plan const&, std::string const&);
#endif
}  // namespace detail

/// The plan in the file. Throws `error` if it cannot be read, and as `decode` does. O(size of the file).
inline plan read_plan(std::string const& path) { return detail::plan_in_file<void>(path); }
/// Indented by one space per level, so that versions of a plan compare well line by line. Throws `error` as
/// `decode` does where `read_plan` would refuse the file; then nothing is written. O(size of the plan).
inline void write_plan(plan const& p, std::string const& path) { detail::plan_to_file<void>(p, path); }

}  // namespace tensorpar
