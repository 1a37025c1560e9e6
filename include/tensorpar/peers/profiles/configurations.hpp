// tensorpar/peers/profiles/configurations.hpp - recompute or keep: the fastest choice per node that fits a
// stage's memory
#pragma once
#include <algorithm>
#include <cmath>
#include <numeric>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/core/numbers.hpp>
#include <utility>
#include <vector>

namespace tensorpar::peers {

/// A node that may give up `saved` bytes for `extra` seconds.
struct memory_swap {
  double saved = 0, extra = 0;
};
/// Which swaps to make (by their index, ascending), and what they take together.
struct swap_choice {
  bool feasible = false, exact = true;
  double extra = infinity;
  std::vector<int> taken;
};

namespace detail {

/// Swaps by rising seconds per byte; ties in the given order.
inline std::vector<int> swaps_by_price(std::vector<memory_swap> const& swaps) {
  std::vector<int> order(swaps.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return swaps[idx(a)].extra * swaps[idx(b)].saved < swaps[idx(b)].extra * swaps[idx(a)].saved;
  });
  return order;
}

}  // namespace detail

/// Swaps, and their order by price, which everything below goes by. O(n log n).
struct priced_swaps {
  std::vector<memory_swap> swaps;
  std::vector<int> order;
  priced_swaps(std::vector<memory_swap> s) : swaps(std::move(s)), order(detail::swaps_by_price(swaps)) {}
};

/// Piper's own choice: cheapest per byte first until enough is saved. May save more than asked where fewer
/// would do. O(n log n).
inline swap_choice greedy_swaps(priced_swaps const& s, double needed) {
  swap_choice r{true, false, 0, {}};
  for (int i : s.order) {
    if (needed <= 0) break;
    needed -= s.swaps[idx(i)].saved;
    r.extra += s.swaps[idx(i)].extra;
    r.taken.push_back(i);
  }
  std::sort(r.taken.begin(), r.taken.end());
  r.feasible = needed <= 0;
  if (!r.feasible) r.extra = infinity;
  return r;
}

/// What the best choice takes at least, a part of a swap being allowed, and what the greedy one takes;
/// infinite if nothing saves enough.
struct swap_bounds {
  double fractional = infinity,
         greedy = infinity;
};
/// O(n).
inline swap_bounds bounds_of_swaps(priced_swaps const& s, double needed) {
  if (needed <= 0) return {0, 0};
  double extra = 0;
  for (int i : s.order) {
    memory_swap const& x = s.swaps[idx(i)];
    if (x.saved >= needed) return {extra + x.extra * (needed / x.saved), extra + x.extra};
    needed -= x.saved;
    extra += x.extra;
  }
  return {};
}

/// The swaps that save at least `needed` bytes in the least extra time. This is a knapsack, solved exactly by
/// dynamic programming over partial choices, swaps by rising price. A partial choice is dropped if another
/// beats it in both bytes and time, or if the fractional bound places it above the greedy choice. Where swaps
/// save equal amounts (layers of one kind), few remain.
/// Precondition: saved > 0, extra >= 0. `max_states` bounds the partial choices kept; beyond it the best
/// choice found so far is returned with `exact == false` (never worse than `greedy_swaps`). O(n * states *
/// log states).
inline swap_choice min_swaps(priced_swaps const& s, double needed, int max_states = 20'000) {
    if (needed <= 0) return {true, true, 0, {}};
  swap_choice best = greedy_swaps(s, needed);
  best.exact = true;
  if (!best.feasible) return best;
  auto const& [swaps, order] = s;
  std::size_t const n = order.size();
  std::vector<double> bytes(n + 1, 0.0), seconds(n + 1, 0.0);  // of the first i swaps
  for (std::size_t i = 0; i < n; ++i) {
    bytes[i + 1] = bytes[i] + swaps[idx(order[i])].saved;
    seconds[i + 1] = seconds[i] + swaps[idx(order[i])].extra;
  }
  struct state {
    double saved, extra;
    int swap, from;  // the last swap taken, and the partial choice before it
  };
  std::vector<state> all{{0, 0, -1, -1}};
  std::vector<int> front{0}, next;
  for (std::size_t i = 0; i < n; ++i) {
    next.clear();
    memory_swap const& x = swaps[idx(order[i])];
    auto const bound = [&](double saved, double extra) {  // the rest at the best prices, the last one in part
      double const rest = needed - saved;
      auto const from = bytes.begin() + static_cast<std::ptrdiff_t>(i) + 1;
      auto const hint =
          idx(std::lower_bound(from, bytes.end(), bytes[i + 1] + rest) - bytes.begin());
      if (hint > n) return infinity;
      double const part = (bytes[i + 1] + rest - bytes[hint - 1]) / swaps[idx(order[hint - 1])].saved;
      return extra + seconds[hint - 1] - seconds[i + 1] + part * swaps[idx(order[hint - 1])].extra;
    };
    for (int k : front) {
      state const y = all[idx(k)];
      double const saved = y.saved + x.saved, extra = y.extra + x.extra;
      if (saved >= needed) {
        if (extra < best.extra) {
          best.extra = extra;
          best.taken = {order[i]};
          for (int q = k; all[idx(q)].swap >= 0; q = all[idx(q)].from) best.taken.push_back(all[idx(q)].swap);
          std::sort(best.taken.begin(), best.taken.end());
        }
      } else if (bound(saved, extra) < best.extra) {
        next.push_back(static_cast<int>(all.size()));
        all.push_back({saved, extra, order[i], k});
      }
      if (bound(y.saved, y.extra) < best.extra) next.push_back(k);
    }
    std::sort(next.begin(), next.end(), [&](int a, int b) {
      state const &y = all[idx(a)], &z = all[idx(b)];
      return y.saved != z.saved ? y.saved > z.saved : y.extra != z.extra ? y.extra < z.extra : a < b;
    });
    front.clear();
    double cheapest = infinity;
    for (int k : next)
      if (all[idx(k)].extra < cheapest) {
        cheapest = all[idx(k)].extra;
        front.push_back(k);
      }
    if (static_cast<int>(all.size()) > max_states) {
      best.exact = false;
      break;
    }
  }
  return best;
}

}  // namespace tensorpar::peers
