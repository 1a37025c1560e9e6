// tests/support/networks.hpp - operators of well-known networks as graphs, weights and inputs included as nodes
#pragma once
#include <string>
#include "random_graph.hpp"

namespace tests {

struct network {
  std::string name;
  lists before;
  std::vector<char> leads;  // weights and inputs

  int input() { return add({}, true); }
  int op(std::vector<int> const& in, int weights = 0) {
    std::vector<int> all = in;
    for (int k = 0; k < weights; ++k) all.push_back(add({}, true));
    return add(all, false);
  }
  int dense(int x) { return op({x}, 2); }

 private:
  int add(std::vector<int> const& in, bool lead) {
    before.push_back(in);
    leads.push_back(lead);
    return static_cast<int>(before.size()) - 1;
  }
};

inline network split_test() {
  network g{"split_test", {}, {}};
  int x = g.op({g.dense(g.input())});
  x = g.op({g.op({g.dense(x), g.dense(x)})});
  x = g.op({g.op({g.dense(x), g.dense(x)})});
  g.op({x});
  return g;
}

/// Encoder layers: attention (4 projections), add, layer norm; two dense, add, layer norm.
inline network transformer(int layers) {
  network g{"transformer", {}, {}};
  int x = g.input();
  for (int l = 0; l < layers; ++l) {
    int const a = g.dense(g.op({g.dense(x), g.dense(x), g.dense(x)}));
    int const h = g.op({g.op({a, x})}, 2);
    int const f = g.dense(g.op({g.dense(h)}));
    x = g.op({g.op({f, h})}, 2);
  }
  g.op({g.dense(x)});
  return g;
}

inline network dlrm() {
  network g{"dlrm", {}, {}};
  std::vector<int> parts{g.dense(g.dense(g.input()))};
  for (int t = 0; t < 26; ++t) parts.push_back(g.op({g.input()}, 1));
  g.dense(g.dense(g.op(parts)));
  return g;
}

inline network candle_uno() {
  network g{"candle_uno", {}, {}};
  std::vector<int> parts{g.input(), g.input()};
  for (int t = 0; t < 5; ++t) {
    int x = g.input();
    for (int l = 0; l < 8; ++l) x = g.dense(x);
    parts.push_back(x);
  }
  int x = g.op(parts);
  for (int l = 0; l < 5; ++l) x = g.dense(x);
  return g;
}

/// The modules A, B, C, D, E in their order, with the branches that fork again in E.
inline network inception_v3() {
  network g{"inception_v3", {}, {}};
  auto const convs = [&](int x, int n) {
    for (int k = 0; k < n; ++k) x = g.dense(x);
    return x;
  };
  int x = g.op({convs(g.op({convs(g.input(), 3)}), 2)});
  for (int k = 0; k < 3; ++k) x = g.op({convs(x, 1), convs(x, 2), convs(x, 3), convs(g.op({x}), 1)});
  x = g.op({convs(x, 1), convs(x, 3), g.op({x})});
  for (int k = 0; k < 4; ++k) x = g.op({convs(x, 1), convs(x, 3), convs(x, 5), convs(g.op({x}), 1)});
  x = g.op({convs(x, 2), convs(x, 4), g.op({x})});
  for (int k = 0; k < 2; ++k) {
    int const t = convs(x, 1), u = convs(x, 2);
    x = g.op({convs(x, 1), convs(t, 1), convs(t, 1), convs(u, 1), convs(u, 1), convs(g.op({x}), 1)});
  }
  g.op({convs(g.op({g.op({x})}), 1)});
  return g;
}

inline std::vector<network> all_networks() { return {split_test(), transformer(1), transformer(12), dlrm(), candle_uno(), inception_v3()}; }

/// The normal cell of NASNet on the outputs h (0) and p (1) of the two cells before: not series-parallel.
inline network nasnet_cell() {
  network g{"nasnet_cell", {}, {}};
  int const h = g.op({}), p = g.op({h});
  auto const pair = [&](int a, int b) { return g.op({g.op({a}), g.op({b})}); };
  g.op({pair(h, h), pair(p, h), pair(h, p), pair(p, p), pair(h, h)});
  return g;
}

}  // namespace tests
