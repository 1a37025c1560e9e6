// tensorpar/search/solve/mapping_options.hpp - how far the search for an assignment goes
#pragma once
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/core/thread_pool.hpp>

namespace tensorpar::search {

struct elimination_limits {
  // table cells times choices that eliminating one operator may take; beyond, its costs are split up
  double work = 2e7;
  core::thread_pool* workers = nullptr;   // share large tables; none: the caller alone
  double shared = 1e6;            // from so much work on; no number changes any result
};

struct mapping_options {
  elimination_limits elimination;
  i64 exact_budget = 2'000'000;         // for each of the exact programs; 0: never
  i64 branch_budget = 3'000'000;        // for branches between forks and joins (map_branches); 0: never
  int price_rounds = 16;                // trials of a price on memory where no exact program finishes
  bool memory = true;                   // false: whatever fits or not
  // where branches are searched: a bound of so many seconds need not be better
  double enough = infinity;
};

}  // namespace tensorpar::search
