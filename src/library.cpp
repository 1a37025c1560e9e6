// src/library.cpp - compiled once for tensorpar::compiled: what caller and library must have alike
#include <tensorpar/core/config.hpp>

namespace tensorpar::core {
template <int Version, bool Debug_containers, bool Old_strings>
void compiled_library_with<Version, Debug_containers, Old_strings>::is_linked() {}
template struct compiled_library_with<TENSORPAR_COMPILED, debug_containers, old_strings>;
}  // namespace tensorpar::core
