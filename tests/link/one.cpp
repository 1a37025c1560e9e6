// tests/link/one.cpp - the first of two translation units with every header in it
#include <all_headers.hpp>

#include <cstdio>

tensorpar::u64 hash_in_two(char const* text);
int const* version_in_two();

int main() {
  bool const same_hash = hash_in_two("tensorpar") == tensorpar::core::hasher{}.add(std::string_view("tensorpar")).value();
  bool const same_object = version_in_two() == &tensorpar::version_minor;
  std::printf("hashes %s, inline variable %s\n", same_hash ? "agree" : "differ", same_object ? "shared" : "duplicated");
  return same_hash && same_object ? 0 : 1;
}
