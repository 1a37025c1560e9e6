// tests/tool/demo/network.test.cpp - the demo's images are drawn by seed and can be told apart
#include <tensorpar/tool/demo/network.hpp>

#include <doctest/doctest.h>
#include <set>

using namespace tensorpar;
using namespace tensorpar::tools;

TEST_CASE("the demo's network has few weights in its convolution and many behind them") {
  computation_graph const g = demo_graph(demo_batch);
  CHECK(g.output("loss") >= 0);
  i64 filters = 0, all = 0;
  for (graph_value const& v : g.values) {
    if (v.role != value_role::parameter) continue;
    all += v.type.elements();
    if (v.type.rank == 4) filters += v.type.elements();
  }
  CHECK(filters == 4 * 81);
  CHECK(all > 1000 * filters);
}

TEST_CASE("images are the same for the same seeds, of all classes, and near their class's pattern") {
  host_batch const a = demo_images(64, 1), b = demo_images(64, 1), c = demo_images(64, 2);
  CHECK(a.at("image").real == b.at("image").real);
  CHECK(a.at("label").index == b.at("label").index);
  CHECK(a.at("image").real != c.at("image").real);
  std::set<std::int32_t> const classes(a.at("label").index.begin(), a.at("label").index.end());
  CHECK(classes.size() == 10);
  auto distance = [](host_batch const& x, std::size_t i, host_batch const& y, std::size_t j) {
    constexpr std::size_t n = demo_side * demo_side;
    double sum = 0;
    for (std::size_t k = 0; k < n; ++k)
      sum += std::abs(static_cast<double>(x.at("image").real[i * n + k]) - static_cast<double>(y.at("image").real[j * n + k])) / n;
    return sum;
  };
  for (std::size_t i = 0; i < 16; ++i)
    for (std::size_t j = 0; j < 16; ++j) {
      bool const same = a.at("label").index[i] == c.at("label").index[j];
      CHECK((distance(a, i, c, j) < 0.15) == same);
    }
}
