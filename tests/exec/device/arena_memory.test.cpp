// tests/exec/device/arena_memory.test.cpp - one allocation: aligned, zero, moved without copying
#include <cstdint>
#include <doctest/doctest.h>
#include <tensorpar/exec/device/arena_memory.hpp>

using arena_memory = tensorpar::exec::detail::arena_memory<>;

TEST_CASE("an arena is aligned, zero and of the size asked for") {
  for (tensorpar::i64 bytes : {1, 63, 64, 4097}) {
    arena_memory const m(bytes);
    REQUIRE(m.size() == bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(m.data()) % 64 == 0);
    for (tensorpar::i64 i = 0; i < bytes; ++i) REQUIRE(m.data()[i] == std::byte{0});
  }
  CHECK(arena_memory(0).data() == nullptr);
  arena_memory a(128), b(0);
  std::byte* const p = a.data();
  b = std::move(a);
  arena_memory const c(std::move(b));
  CHECK(c.data() == p);
  CHECK(c.size() == 128);
}
