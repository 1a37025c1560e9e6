// src/check.cpp - compiled once for tensorpar::compiled: the checker
#include <tensorpar/check/check.hpp>

namespace tensorpar {
template std::vector<finding> detail::check::check_all<>(training_graph const&, plan const&, program const&, bool, std::size_t, bool);
}  // namespace tensorpar
