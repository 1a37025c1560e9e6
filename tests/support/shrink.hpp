// tests/support/shrink.hpp - from a failing random graph to a small one
#pragma once
#include <string>
#include "random_graph.hpp"

namespace tests {

/// Takes nodes and edges away as long as the graph still fails. Ends at a graph that fails and of which nothing can be left out.
template <class Fails> lists shrink(lists g, Fails const& fails) {
  for (bool changed = true; changed;) {
    changed = false;
    for (int v = static_cast<int>(g.size()) - 1; v >= 0; --v) {
      lists h;
      for (int w = 0; w < static_cast<int>(g.size()); ++w) {
        if (w == v) continue;
        h.emplace_back();
        for (int u : g[at(w)])
          if (u != v) h.back().push_back(u > v ? u - 1 : u);
      }
      if (!h.empty() && fails(h)) {
        g = h;
        changed = true;
      }
    }
    for (std::size_t v = 0; v < g.size(); ++v)
      for (std::size_t k = g[v].size(); k-- > 0;) {
        lists h = g;
        h[v].erase(h[v].begin() + static_cast<std::ptrdiff_t>(k));
        if (fails(h)) {
          g = h;
          changed = true;
        }
      }
  }
  return g;
}

/// Tries a property on many graphs. Empty if it holds for all, else the shrunken counterexample as text. `make(source)` gives a graph.
template <class Make, class Property> std::string counterexample(u64 seed, int times, Make const& make, Property const& holds) {
  random_source r{seed};
  for (int i = 0; i < times; ++i) {
    lists const g = make(r);
    if (!holds(g)) return text(shrink(g, [&](lists const& h) { return !holds(h); }));
  }
  return {};
}

}  // namespace tests
