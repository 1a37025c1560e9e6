// tests/search/handmade.hpp - mapping problems written down as numbers
#pragma once
#include <algorithm>
#include <random>
#include <string>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/graph/sp/tree.hpp>
#include <tensorpar/search/problem/problem.hpp>
#include <utility>
#include <vector>

namespace tensorpar::search_test {
using namespace search;

struct choice {
  int start, size;
  double seconds;
  i64 bytes = 0;
};

inline mapping_problem handmade(int devices, std::string_view tree, std::vector<std::vector<choice>> const& ops, int grain = 1) {
  mapping_problem p;
  p.devices = devices;
  p.grain = grain;
  p.capacity.assign(static_cast<std::size_t>(devices), 1'000'000'000);
  p.tree = binary(graph::sp_tree::parse(tree), graph::sp_shape::left);
  for (auto const& op : ops) {
    choice_set s;
    for (choice const& c : op) {
      s.shardings.push_back({c.start, {{'\0', c.size, 1}}});
      s.sizes.push_back(c.size);
      s.seconds.push_back(c.seconds);
      s.bytes.push_back(c.bytes);
    }
    p.set_of.push_back(static_cast<int>(p.sets.size()));
    p.sets.push_back(std::move(s));
    p.names.push_back("op" + std::to_string(p.names.size()));
  }
  return p;
}
/// Every choice a class of its own.
inline int own_classes(mapping_problem& p, int v) {
  choice_classes c{p.set_of[static_cast<std::size_t>(v)], 0, {}};
  for (int i = 0; i < p.choices(v).count(); ++i) c.of.push_back(c.count++);
  p.classes.push_back(std::move(c));
  return static_cast<int>(p.classes.size()) - 1;
}
template <class Cost> void connect(mapping_problem& p, int a, int b, Cost const& cost) {
  int const rows = own_classes(p, a), cols = own_classes(p, b);
  pair_cost c{p.choices(a).count(), p.choices(b).count(), {}};
  for (int i = 0; i < c.rows; ++i) for (int j = 0; j < c.cols; ++j) c.seconds.push_back(cost(i, j));
  p.costs.push_back(std::move(c));
  p.pairs.push_back({a, b, static_cast<int>(p.costs.size()) - 1, rows, cols});
}

/// A random tree of 2 to 7 operators on 1 to 3 devices, with `each` choices on every range of them, and reshards
/// between any two; and the tree as text. Numbers need not ascend along it.
inline std::pair<mapping_problem, std::string> random_tree(std::mt19937_64& g, int each) {
  auto const pick = [&](int n) { return static_cast<int>(g() % static_cast<u64>(n)); };
  int const n = 2 + pick(6), devices = 1 + pick(3);
  std::vector<std::string> parts;
  for (int v = 0; v < n; ++v) parts.push_back(std::to_string(v));
  std::shuffle(parts.begin(), parts.end(), g);
  while (parts.size() > 1) {
    std::size_t const i = static_cast<std::size_t>(pick(static_cast<int>(parts.size()) - 1));
    parts[i] = (pick(2) ? "S(" : "P(") + parts[i] + "," + parts[i + 1] + ")";
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
  std::vector<std::vector<choice>> all;
  for (int v = 0; v < n; ++v) {
    all.emplace_back();
    for (int start = 0; start < devices; ++start)
      for (int size = 1; start + size <= devices; ++size)
        for (int i = 0; i < each; ++i) all.back().push_back({start, size, static_cast<double>(1 + pick(9)), 0});
  }
  mapping_problem p = handmade(devices, parts[0], all);
  for (int a = 0; a < n; ++a)
    for (int b = a + 1; b < n; ++b)
      if (pick(3) == 0) {
        u64 const seed = g();
        connect(p, a, b, [&](int i, int j) { return static_cast<double>(core::mix(seed + static_cast<u64>(i * 64 + j)) % 7); });
      }
  return {std::move(p), parts[0]};
}

}  // namespace tensorpar::search_test
