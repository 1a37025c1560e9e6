// tests/core/name_index.test.cpp - a set of hashes against std::set
#include <tensorpar/core/name_index.hpp>

#include <doctest/doctest.h>

#include <random>
#include <set>

using namespace tensorpar;

TEST_CASE("what was put in is in, nothing else is, in copies too") {
  std::mt19937_64 draw(1);
  core::detail::name_index index;
  std::set<u64> put;
  CHECK(!index.contains(0));
  for (int k = 0; k < 5000; ++k) {
    u64 const h = draw() % 4 ? draw() : 2 + draw() % 50;          // 0 and 1 share a slot
    CHECK(index.contains(h) == put.contains(h));
    index.insert(h);
    put.insert(h);
    if (k % 500 == 0) {
      core::detail::name_index const copy = index;
      for (u64 x : put) REQUIRE(copy.contains(x));
    }
  }
  index.insert(0);
  CHECK(index.contains(0));
}
