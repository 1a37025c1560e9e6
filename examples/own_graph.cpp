// examples/own_graph.cpp - graph algorithms on graph types that know nothing of tensorpar
#include "standard_output.hpp"
#include <cstdio>
#include <string>
#include <tensorpar/graph/dominators.hpp>
#include <tensorpar/graph/order.hpp>
#include <tensorpar/graph/sp/series_parallel.hpp>
#include <tensorpar/graph/sp/tree.hpp>
#include <vector>

// [quoted: graph]
// A trainer's own nodes; two free functions next to them make it a `topology`, without copying.
namespace trainer {
struct layer {
  std::string name;
  std::vector<int> inputs;
};
struct network {
  std::vector<layer> layers;
};
int node_count(network const& n) { return static_cast<int>(n.layers.size()); }
std::vector<int> const& predecessors(network const& n, int v) { return n.layers[static_cast<std::size_t>(v)].inputs; }
}  // namespace trainer

int main() {
  trainer::network const net{{{"in", {}}, {"left", {0}}, {"right", {0}}, {"out", {1, 2}}}};
  static_assert(tensorpar::graph::topology<trainer::network>);
  auto const tree = tensorpar::graph::sp_decomposition(net);
  std::printf("%s\n", tree ? tensorpar::graph::to_string(*tree).c_str() : "not series-parallel");

  std::vector<std::vector<int>> const lists{{}, {0}, {0}, {1, 2}, {2}, {3, 4}};      // predecessor lists are a graph as they are
  std::printf("%s\n", tensorpar::graph::is_series_parallel(lists) ? "series-parallel" : "not series-parallel");
  // [end]
  return tree && tensorpar::graph::to_string(*tree) == "S(0,P(1,2),3)" && !tensorpar::graph::is_series_parallel(lists) ? 0 : 1;
}
