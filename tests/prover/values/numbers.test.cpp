// tests/prover/values/numbers.test.cpp - elements are visited in row-major order, and places are counted in the same one
#include <tensorpar/prover/values/numbers.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <tensorpar/prover/symbolic.hpp>
#include <tensorpar/prover/values/field_numbers.hpp>

using namespace tensorpar;
using namespace tensorpar::prover;

static_assert(number_algebra<field_numbers> && number_algebra<symbolic_numbers>);
static_assert(!number_algebra<int>);

TEST_CASE("every element once, in row-major order, where offset_of says") {
  for (shape const& s : {shape{}, shape{4}, shape{2, 3}, shape{3, 1, 2}, shape{2, 2, 2, 3}, shape{1, 1}}) {
    std::vector<std::vector<i64>> seen;
    prover::detail::each_element(s, [&](i64 const* c, std::size_t at) {
      CHECK(at == seen.size());
      CHECK(prover::detail::offset_of(s, c) == at);
      seen.emplace_back(c, c + s.rank);
      for (int d = 0; d < s.rank; ++d) CHECK(c[d] < s.d[d].n);
    });
    CHECK(static_cast<i64>(seen.size()) == s.elements());
    CHECK(std::is_sorted(seen.begin(), seen.end()));
    CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
  }
}

TEST_CASE("a tensor without elements is not visited") {
  int n = 0;
  prover::detail::each_element(shape{3, 0, 2}, [&](i64 const*, std::size_t) { ++n; });
  CHECK(n == 0);
}
