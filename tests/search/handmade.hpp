// tests/search/handmade.hpp - mapping problems written down as numbers
#pragma once
#include <random>
#include <tensorpar/graph/sp/tree.hpp>
#include <tensorpar/search/problem/problem.hpp>

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

}  // namespace tensorpar::search_test
