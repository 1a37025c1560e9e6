// tensorpar/search/micro_batches.hpp - which numbers of micro-batches a planner tries
#pragma once
#include <tensorpar/core/config.hpp>
#include <tensorpar/plan/pipeline.hpp>
#include <vector>

namespace tensorpar::detail {

/// Divisors of n from 1 to n, each a multiple of the one before by n's next prime factor, which is as small
/// as it may be. Factors above `max_micro_batches` are not told apart. O(max_micro_batches) at most.
inline std::vector<i64> divisors_in_a_row(i64 n) {
  std::vector<i64> r{1};
  for (i64 p = 2; n > 1;) {
    while (n % p != 0 && p <= max_micro_batches && p * p <= n) ++p;
    i64 const factor = n % p == 0 ? p : n;
    r.push_back(r.back() * factor);
    n /= factor;
  }
  return r;
}

}  // namespace tensorpar::detail
