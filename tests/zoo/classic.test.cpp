// tests/zoo/classic.test.cpp - VGG-19 and ResNet-50: operators and parameters, by hand
#include <doctest/doctest.h>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/zoo/classic.hpp>

#include "counts.hpp"

using namespace tests;

TEST_CASE("VGG-19 is 16 convolutions and 3 linear layers with 143,667,240 parameters") {
  computation_graph const g = made<zoo::vgg<>>(zoo::vgg_sizes{});
  auto n = operators(g);
  CHECK(n["conv2d"] == 16);
  CHECK(n["linear"] == 3);
  CHECK(n["relu"] == 18);
  CHECK(n["pool2d"] == 5);
  i64 total = 0, in = 3;
  for (auto [out, count] : {std::pair{64, 2}, {128, 2}, {256, 4}, {512, 4}, {512, 4}})
    for (int k = 0; k < count; ++k) {
      total += in * out * 9 + out;
      in = out;
    }
  total += 512 * 7 * 7 * 4096 + 4096 + 4096 * 4096 + 4096 + 4096 * 1000 + 1000;
  CHECK(parameters(g) == total);
  CHECK(parameters(g) == 143'667'240);
  CHECK(tensorpar::graph::longest_path(g).length == g.node_count());
}

TEST_CASE("ResNet-50 is 53 convolutions and 16 additions with 25,557,032 parameters") {
  computation_graph const g = made<zoo::resnet<>>(zoo::resnet_sizes{});
  auto n = operators(g);
  CHECK(n["conv2d"] == 53);
  CHECK(n["normalize"] == 53);
  CHECK(n["add"] == 16);
  CHECK(n["relu"] == 1 + 16 * 3);
  CHECK(g.node_count() == 53 * 3 + 16 + 49 + 1 + 3);
  i64 filters = 3 * 64 * 49, channels = 64, in = 64, c = 64;
  for (int blocks : {3, 4, 6, 3}) {
    filters += in * 4 * c;                     // the shortcut of the first block
    channels += 4 * c;
    for (int b = 0; b < blocks; ++b, in = 4 * c) {
      filters += in * c + c * c * 9 + c * 4 * c;
      channels += c + c + 4 * c;
    }
    c *= 2;
  }
  CHECK(parameters(g) == filters + 2 * channels + 2048 * 1000 + 1000);
  CHECK(parameters(g) == 25'557'032);
  CHECK(tensorpar::graph::sp_decomposition(g));
}

TEST_CASE("reduced VGG and ResNet: typed models, trees, derivatives") {
  static constexpr auto chain = typed<zoo::vgg<zoo::vgg_reduced>>;
  static constexpr auto net = typed<zoo::resnet<zoo::resnet_reduced>>;
  CHECK(parameters(chain) < 5000);
  CHECK(parameters(net) < 7000);
  for (computation_graph const& g : {lower(chain, {zoo::batch = 24}), lower(net, {zoo::batch = 24})}) {
    CHECK(tensorpar::graph::sp_decomposition(g));
    CHECK(differentiate(g).loss >= 0);
  }
}
