// tests/zoo/resnext.test.cpp - ResNeXt-50: operators and parameters of its three graphs, by hand
#include <doctest/doctest.h>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/zoo/resnext.hpp>

#include "counts.hpp"

using namespace tests;

namespace {
/// A stage of blocks from `in` channels to 2c: convolutions with biases, the 3x3 one in 32 groups; and the shortcut of its first block.
i64 stage(i64 blocks, i64 in, i64 c, bool shortcut) {
  i64 n = shortcut ? in * 2 * c + 2 * c : 0;
  for (i64 b = 0; b < blocks; ++b, in = 2 * c) n += (in * c + c) + (c * c / 32 * 9 + c) + (c * 2 * c + 2 * c);
  return n;
}
i64 all_stages(bool shortcuts) {
  i64 const ends = 3 * 64 * 49 + 64 + 2048 * 1000 + 1000;
  return ends + stage(3, 64, 128, shortcuts) + stage(4, 256, 256, shortcuts) + stage(6, 512, 512, shortcuts) +
         stage(3, 1024, 1024, shortcuts);
}
}  // namespace

TEST_CASE("ResNeXt-50 is 91 operators: 53 convolutions, 16 additions, 17 ReLUs that stand alone") {
  computation_graph const g = made<zoo::resnext<>>(zoo::resnext_sizes{});
  CHECK(fused_operators(g) == 91);
  auto n = operators(g);
  CHECK(n["conv2d"] == 53);
  CHECK(n["add"] == 16);
  CHECK(n["relu"] == 17 + 33);               // 33: behind the first convolution and two of every block
  CHECK(n["pool2d"] == 2);
  CHECK(n["flatten"] + n["linear"] + n["cross_entropy"] == 3);
  CHECK(parameters(g) == all_stages(true));
  CHECK(parameters(g) == 24'994'792);
  CHECK(tensorpar::graph::sp_decomposition(g));
}

TEST_CASE("the artifact's ResNeXt-50 is a chain of 55; with its residuals it is 67") {
  computation_graph const g = made<zoo::resnext<>>(zoo::resnext50_artifact);
  CHECK(fused_operators(g) == 55);
  auto n = operators(g);
  CHECK(n["conv2d"] == 49);
  CHECK(n["relu"] == 1 + 33);
  CHECK(n["pool2d"] == 2);
  CHECK(g.node_count() == 55 + 33);
  CHECK(parameters(g) == all_stages(false));
  CHECK(parameters(g) == 22'222'056);
  CHECK(tensorpar::graph::longest_path(g).length == g.node_count());
  zoo::resnext_sizes coded;
  coded.add = zoo::shortcuts::changing;
  computation_graph const r = made<zoo::resnext<>>(coded);
  CHECK(fused_operators(r) == 67);
  auto m = operators(r);
  CHECK(m["conv2d"] == 53);
  CHECK(m["add"] == 4);
  CHECK(m["relu"] == 5 + 33 + 4);            // 4: behind the shortcuts' convolutions
  CHECK(parameters(r) == 24'994'792);
}

TEST_CASE("reduced ResNeXt: a typed model, a tree, a derivative") {
  static constexpr auto net = typed<zoo::resnext<zoo::resnext_reduced>>;
  static_assert(is_series_parallel(net));
  CHECK(parameters(net) < 4000);
  computation_graph const g = lower(net, {zoo::batch = 24});
  CHECK(operators(g)["add"] == 3);
  CHECK(g.type(g.node(0).out[0]) == shape{zoo::batch(24), 6, 12, 12});
  CHECK(tensorpar::graph::sp_decomposition(g));
  CHECK(differentiate(g).loss >= 0);
}
