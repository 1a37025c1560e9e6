// src/files.cpp - compiled once for tensorpar::compiled: plans in files
#include <tensorpar/plan/plan_file_text.hpp>

namespace tensorpar {
template plan detail::plan_in_file<void>(std::string const&);
template void detail::plan_to_file<void>(plan const&, std::string const&);
}  // namespace tensorpar
