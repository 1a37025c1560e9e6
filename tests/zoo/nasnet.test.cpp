// tests/zoo/nasnet.test.cpp - NASNet-A: the parts of its cells, parameters by hand, and that it is not series-parallel
#include <doctest/doctest.h>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/zoo/nasnet.hpp>

#include "counts.hpp"

using namespace tests;

namespace {
i64 fit(i64 in, i64 out) { return in * out + 2 * out; }
i64 separable(i64 in, i64 out, i64 k) { return in * k * k + in * out + 2 * out + out * k * k + out * out + 2 * out; }
/// p: channels of the cell before the last; `larger`: it has more pixels as well.
i64 normal(i64 p, i64 h, i64 f, bool larger) {
  return (larger || p != f ? fit(p, f) : 0) + fit(h, f) + 2 * separable(f, f, 5) + 3 * separable(f, f, 3);
}
i64 reduction(i64 p, i64 h, i64 f, bool fitted) {
  i64 const q = fitted ? f : p;
  return (fitted ? fit(p, f) : 0) + fit(h, f) + separable(f, f, 5) + 2 * separable(q, f, 7) + separable(q, f, 5) + separable(f, f, 3);
}
/// Three stages of `cells` normal cells.
i64 by_hand(i64 stem, i64 filters, i64 cells) {
  i64 n = 3 * stem * 9 + 2 * stem;
  n += reduction(stem, stem, filters / 4, false);
  i64 p = stem, h = filters;                   // four parts of filters / 4
  n += reduction(p, h, filters / 2, true);
  p = h, h = 2 * filters;
  for (i64 stage = 0, f = filters; stage < 3; ++stage, f *= 2) {
    if (stage) {
      n += reduction(p, h, f, true);
      p = h, h = 4 * f;
    }
    for (i64 k = 0; k < cells; ++k) {
      n += normal(p, h, f, k == 0);
      p = h, h = 6 * f;
    }
  }
  return n + h * 1000 + 1000;
}
}  // namespace

TEST_CASE("NASNet-A (4 @ 1056) has 1056 channels at the end and 5,289,978 parameters; it is not series-parallel") {
  computation_graph const g = made<zoo::nasnet<>>(zoo::nasnet_sizes{});
  CHECK(parameters(g) == by_hand(32, 44, 4));
  CHECK(parameters(g) == 5'289'978);
  auto n = operators(g);
  CHECK(n["concat"] == 4 + 3 * 4);
  CHECK(n["add"] == 5 * (4 + 3 * 4));
  CHECK(n["pool2d"] == 4 * 4 + 3 * 3 * 4);     // two maxima and two averages, or three averages
  for (graph_node const& v : g.nodes)
    if (v.op.is<global_average>()) CHECK(g.type(v.out[0]) == shape{zoo::batch(1), 1056});
  CHECK(!tensorpar::graph::sp_decomposition(g));
  zoo::nasnet_sizes large;
  large.image = 331, large.stem = 96, large.filters = 168, large.cells = 6;
  computation_graph const l = made<zoo::nasnet<>>(large);
  CHECK(parameters(l) == by_hand(96, 168, 6));
  for (graph_node const& v : l.nodes)
    if (v.op.is<global_average>()) CHECK(l.type(v.out[0]).last().n == 4032);      // 6 @ 4032
}

TEST_CASE("a normal cell is 5 separable convolutions, 3 averages, 5 additions and a concatenation of six") {
  model_builder b;
  ref const p = b.input("p", {zoo::batch, 6, 8, 8}), h = b.input("h", {zoo::batch, 12, 8, 8});
  b.output("y", zoo::detail::normal_cell(p, h, 6));
  computation_graph const g = lower(b, {zoo::batch = 1});
  auto n = operators(g);
  CHECK(n["conv2d"] == 5 * 4 + 1);             // each applied twice, in two steps; one fits the channels of h
  CHECK(n["pool2d"] == 3);
  CHECK(n["add"] == 5);
  CHECK(g.type(g.output("y")) == shape{zoo::batch(1), 36, 8, 8});
  CHECK(!tensorpar::graph::sp_decomposition(g));
}

TEST_CASE("reduced NASNet: a typed model, no tree, a derivative") {
  static constexpr auto net = typed<zoo::nasnet<zoo::nasnet_reduced>>;
  static_assert(!is_series_parallel(net));
  CHECK(parameters(net) < 14000);
  computation_graph const g = lower(net, {zoo::batch = 24});
  CHECK(!tensorpar::graph::sp_decomposition(g));
  CHECK(differentiate(g).loss >= 0);
}
