// tensorpar/graph/edge.hpp - a directed edge
#pragma once
#include <compare>

namespace tensorpar::graph {

/// A directed edge. Ordered by tail, then head.
struct edge {
  int from, to;
  friend constexpr bool operator==(edge const&, edge const&) = default;
  friend constexpr auto operator<=>(edge const&, edge const&) = default;
};

}  // namespace tensorpar::graph
