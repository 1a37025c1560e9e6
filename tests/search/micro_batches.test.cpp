// tests/search/micro_batches.test.cpp - numbers of micro-batches divide one another and end with the batch
#include <doctest/doctest.h>
#include <tensorpar/search/micro_batches.hpp>

using tensorpar::i64;

TEST_CASE("divisors in a row: each a multiple of the one before by the least prime, up to the number itself") {
  for (i64 n = 1; n <= 3000; ++n) {
    std::vector<i64> const all = tensorpar::detail::divisors_in_a_row(n);
    CHECK(all.front() == 1);
    CHECK(all.back() == n);
    for (std::size_t k = 1; k < all.size(); ++k) {
      i64 const factor = all[k] / all[k - 1];
      bool divides = all[k] % all[k - 1] == 0 && factor > 1;
      for (i64 p = 2; p < factor; ++p) divides = divides && n / all[k - 1] % p != 0;
      CHECK_MESSAGE(divides, "of " << n << " after " << all[k - 1]);
    }
  }
}
