// tests/zoo/inception.test.cpp - Inception-v3: operators and parameters of both graphs, by hand
#include <doctest/doctest.h>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/zoo/inception.hpp>

#include "counts.hpp"

using namespace tests;

namespace {
/// Filters of all convolutions and their numbers of output channels.
struct sums {
  i64 filters = 0, channels = 0, convolutions = 0;
  void conv(i64 in, i64 out, i64 area) { filters += in * out * area; channels += out; ++convolutions; }
};
/// The tables of the paper's sections 5 and 6, module by module.
sums convolutions() {
  sums s;
  s.conv(3, 32, 9); s.conv(32, 32, 9); s.conv(32, 64, 9); s.conv(64, 80, 1); s.conv(80, 192, 9);
  for (auto [in, pool] : {std::pair<i64, i64>{192, 32}, {256, 64}, {288, 64}}) {                               // A
    s.conv(in, 64, 1);
    s.conv(in, 48, 1); s.conv(48, 64, 25);
    s.conv(in, 64, 1); s.conv(64, 96, 9); s.conv(96, 96, 9);
    s.conv(in, pool, 1);
  }
  s.conv(288, 384, 9); s.conv(288, 64, 1); s.conv(64, 96, 9); s.conv(96, 96, 9);                               // B
  for (i64 c : {128, 160, 160, 192}) {                                                                        // C
    s.conv(768, 192, 1);
    s.conv(768, c, 1); s.conv(c, c, 7); s.conv(c, 192, 7);
    s.conv(768, c, 1); s.conv(c, c, 7); s.conv(c, c, 7); s.conv(c, c, 7); s.conv(c, 192, 7);
    s.conv(768, 192, 1);
  }
  s.conv(768, 192, 1); s.conv(192, 320, 9);                                                                    // D
  s.conv(768, 192, 1); s.conv(192, 192, 7); s.conv(192, 192, 7); s.conv(192, 192, 9);
  for (i64 in : {1280, 2048}) {                                                                                // E
    s.conv(in, 320, 1);
    s.conv(in, 384, 1); s.conv(384, 384, 3); s.conv(384, 384, 3);
    s.conv(in, 448, 1); s.conv(448, 384, 9); s.conv(384, 384, 3); s.conv(384, 384, 3);
    s.conv(in, 192, 1);
  }
  return s;
}
}  // namespace

TEST_CASE("the artifact's Inception-v3 is 122 operators with 21,788,842 parameters") {
  computation_graph const g = made<zoo::inception<>>(zoo::inception_v3_artifact);
  sums const s = convolutions();
  CHECK(s.convolutions == 94);
  CHECK(fused_operators(g) == 122);
  auto n = operators(g);
  CHECK(n["conv2d"] == 94);
  CHECK(n["pool2d"] == 14);
  CHECK(n["concat"] == 11);
  CHECK(n["relu"] == 5 + 3 * 7);             // stem and A modules
  CHECK(n["flatten"] + n["linear"] + n["cross_entropy"] == 3);
  CHECK(parameters(g) == s.filters + s.channels + 2048 * 10 + 10);
  CHECK(parameters(g) == 21'788'842);
  CHECK(tensorpar::graph::sp_decomposition(g));
  for (graph_node const& v : g.nodes)
    if (v.op.is<concat>()) { CHECK(g.type(v.out[0]) == shape{zoo::batch(1), 256, 36, 36}); break; }
}

TEST_CASE("Inception-v3 has batch normalisation for biases, a mesh of 35 x 35, 23,834,568 parameters, and perhaps a second classifier") {
  computation_graph const g = made<zoo::inception<>>(zoo::inception_sizes{});
  sums const s = convolutions();
  auto n = operators(g);
  CHECK(n["conv2d"] == 94);
  CHECK(n["normalize"] == 94);
  CHECK(n["channel_moments"] == 94);
  CHECK(n["relu"] == 94);
  CHECK(n["pool2d"] == 13);
  CHECK(n["concat"] == 11);
  CHECK(g.node_count() == 4 * 94 + 13 + 11 + 4);     // average, dropout, linear, loss
  CHECK(parameters(g) == s.filters + 2 * s.channels + 2048 * 1000 + 1000);
  CHECK(parameters(g) == 23'834'568);
  CHECK(tensorpar::graph::sp_decomposition(g));
  std::vector<i64> meshes;
  for (graph_node const& v : g.nodes) if (v.op.is<concat>()) meshes.push_back(g.type(v.out[0]).d[2].n);
  CHECK(meshes == std::vector<i64>{35, 35, 35, 17, 17, 17, 17, 17, 8, 8, 8});

  zoo::inception_sizes two;
  two.auxiliary = true;
  computation_graph const h = made<zoo::inception<>>(two);
  CHECK(h.node_count() == g.node_count() + 1 + 2 * 4 + 5);     // average; two convolutions; flatten, linear, loss, its weight, sum
  CHECK(parameters(h) == parameters(g) + 768 * 128 + 256 + 128 * 768 * 25 + 2 * 768 + 768 * 1000 + 1000);
  CHECK(tensorpar::graph::sp_decomposition(h));
  CHECK(differentiate(h).loss >= 0);
}

TEST_CASE("reduced Inception: every kind of module, a tree, a derivative") {
  for (zoo::inception_sizes s : {zoo::inception_reduced, zoo::inception_artifact_reduced}) {
    computation_graph const g = made<zoo::inception<>>(s, 24);
    CHECK(operators(g)["concat"] == 5);
    CHECK(operators(g)["conv2d"] == 5 + 7 + 4 + 10 + 6 + 9);
    CHECK(parameters(g) < 11000);
    CHECK(tensorpar::graph::sp_decomposition(g));
    CHECK(differentiate(g).loss >= 0);
  }
}
