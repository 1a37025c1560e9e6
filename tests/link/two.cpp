// tests/link/two.cpp - the second of two translation units with every header in it
#include <all_headers.hpp>

tensorpar::u64 hash_in_two(char const* text) { return tensorpar::core::hasher{}.add(std::string_view(text)).value(); }
int const* version_in_two() { return &tensorpar::version_minor; }
