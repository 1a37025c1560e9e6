// tensorpar/search/solve/dealt_tree.hpp - series-parallel trees in pairs, many branches in halves of equal
// work
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/graph/sp/binary.hpp>

namespace tensorpar::search::detail {

/// Up to so many branches of one fork are joined one after another, as series are.
inline constexpr std::size_t max_in_a_row = 32;

/// Pairs, leaning left; but of many branches of one fork every other one, by descending work, goes to either
/// side: in a row the last one alone could stand beside all others, and halves that hold equal branches are
/// alike. `work(operator)`: any number.
/// Law: nary(dealt_binary(t, work)) == t but for the order of branches. O(size log size).
template <class Work> graph::sp_binary dealt_binary(graph::sp_tree const& t, Work const& work) {
  graph::sp_binary r;
  std::vector<int> made(idx(t.size()), -1), size(idx(t.size()), 1);
  std::vector<double> sum(idx(t.size()), 0);
  for (int i = 0; i < t.size(); ++i) {
    graph::sp_kind const k = t.kind(i);
    if (k == graph::sp_kind::leaf) {
      made[idx(i)] = r.add({k, t.node(i), -1});
      sum[idx(i)] = static_cast<double>(work(t.node(i)));
      continue;
    }
    std::vector<int> parts(t.parts(i).begin(), t.parts(i).end());
    for (int p : parts) {
      sum[idx(i)] += sum[idx(p)];
      size[idx(i)] += size[idx(p)];
    }
    if (k == graph::sp_kind::series || parts.size() <= max_in_a_row) {
      int all = made[idx(parts.front())];
      for (std::size_t j = 1; j < parts.size(); ++j) all = r.add({k, all, made[idx(parts[j])]});
      made[idx(i)] = all;
      continue;
    }
    std::stable_sort(parts.begin(), parts.end(), [&](int a, int b) {
      return sum[idx(a)] != sum[idx(b)] ? sum[idx(a)] > sum[idx(b)] : size[idx(a)] > size[idx(b)];
    });
    // parts first, first + step, ...
    auto const deal = [&](auto const& self, std::size_t first, std::size_t step) -> int {
      if (first + step >= parts.size()) return made[idx(parts[first])];
      int const a = self(self, first, 2 * step), b = self(self, first + step, 2 * step);
      return r.add({k, a, b});
    };
    made[idx(i)] = deal(deal, 0, 1);
  }
  return r;
}

}  // namespace tensorpar::search::detail
