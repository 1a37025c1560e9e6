// tests/link/two_cuda.cu - the second translation unit, by nvcc: the core's headers mean the same to both compilers
#if __has_include(<tensorpar/tensorpar.hpp>)
#include <tensorpar/tensorpar.hpp>
#endif
#include <tensorpar/core/hash.hpp>

tensorpar::u64 hash_in_two(char const* text) { return tensorpar::core::hasher{}.add(std::string_view(text)).value(); }
int const* version_in_two() { return &tensorpar::version_minor; }
