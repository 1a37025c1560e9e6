// tensorpar/core/config.hpp - the integer types every room speaks
#pragma once
#include <cstdint>

// AssertMacros.h of macOS has macros by the names of functions here. (`I`, `Bool`, `Success` and the like of
// C and X11 are no obstacle.)
#if defined(check) || defined(require) || defined(verify)
#error "a macro check, require or verify (macOS's AssertMacros.h?) hides tensorpar's functions: include \
tensorpar first, define __ASSERT_MACROS_DEFINE_VERSIONS_WITHOUT_UNDERSCORES 0 before AssertMacros.h, or \
#undef the macro"
#undef check
#undef require
#undef verify
#endif

namespace tensorpar {

using i64 = std::int64_t;
using u64 = std::uint64_t;

/// Version of the library; plans and caches record it.
inline constexpr int version_major = 0;
inline constexpr int version_minor = 1;

#ifdef TENSORPAR_COMPILED
static_assert(TENSORPAR_COMPILED == 1000 * version_major + version_minor,
              "tensorpar::compiled was made of other headers than these; the CMake target defines the macro");

namespace core {
#ifdef _GLIBCXX_DEBUG
inline constexpr bool debug_containers = true;
#else
inline constexpr bool debug_containers = false;
#endif
#if defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
inline constexpr bool old_strings = true;
#else
inline constexpr bool old_strings = false;
#endif
/// What caller and tensorpar::compiled must have alike. Every source that is compiled for the library names
/// its own; the library has one. So another is an error when the program is linked, which tells this name.
template <int Version, bool Debug_containers, bool Old_strings> struct compiled_library_with {
  static void is_linked();
};
extern template struct compiled_library_with<TENSORPAR_COMPILED, debug_containers, old_strings>;
[[gnu::used]] static void (*const compiled_library)() =
    &compiled_library_with<TENSORPAR_COMPILED, debug_containers, old_strings>::is_linked;
}  // namespace core
#endif

}  // namespace tensorpar
