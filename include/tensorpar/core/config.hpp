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

}  // namespace tensorpar
