// tests/zoo/graphpipe.test.cpp - the branched models: sizes by hand, and that they are what they are said to be
#include <doctest/doctest.h>
#include <tensorpar/graph/sp/series_parallel.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/zoo/graphpipe.hpp>

using namespace tensorpar;

namespace {
template <class Model, class Sizes> computation_graph small(Sizes const& s) {
  model_builder g;
  Model::define(g, s);
  return lower(g, {zoo::batch = 4});
}
double parameters_of(computation_graph const& g) {
  double n = 0;
  for (graph_value const& v : g.values)
    if (v.role == value_role::parameter) n += static_cast<double>(v.type.elements());
  return n;
}
constexpr zoo::mmt_sizes tiny{.branches = 2, .layers = 1, .tokens = 4, .hidden = 8, .heads = 2, .wide = 16};
}  // namespace

TEST_CASE("zoo: the multi-modal transformer has the thesis's sizes") {
  computation_graph const g = small<zoo::mmt<>>(zoo::mmt_sizes{});
  // a layer: four projections of 1024 x 1024 and two linear layers of 1024 x 4096, with biases
  double const layer = 4 * (1024. * 1024 + 1024) + 2 * 1024. * 4096 + 4096 + 1024;
  CHECK(parameters_of(g) == 32 * layer);
  CHECK(g.node_count() == 32 * 8 + 2);
  CHECK(graph::sp_decomposition(g));
  CHECK(graph::sources(g).size() == 4 * 3);
}

TEST_CASE("zoo: DLRM and CANDLE-Uno have the thesis's sizes") {
  computation_graph const d = small<zoo::dlrm_graphpipe<>>(zoo::dlrm_graphpipe_sizes{});
  double const square = 4096. * 4096 + 4096;
  CHECK(parameters_of(d) == 7 * 4 * square + 7 * 64e6 + (7 * 4096. + 7 * 6400) * 4096 + 4096 + square + 4096 + 1);
  CHECK(graph::sp_decomposition(d));
  computation_graph const c = small<zoo::candle_uno_graphpipe<>>(zoo::candle_uno_graphpipe_sizes{});
  CHECK(parameters_of(c) == 7 * 4 * square + 7 * 4096 + 1);
  CHECK(graph::sp_decomposition(c));
}

TEST_CASE("zoo: reduced models compile as types and differentiate") {
  static constexpr auto net = typed<zoo::mmt<tiny>>;
  CHECK(parameters(net) == 2 * (4 * (64 + 8) + 8 * 16 + 16 + 16 * 8 + 8));
  CHECK(differentiate(lower(net, {zoo::batch = 2})).graph.node_count() > 18);
  static constexpr auto score = typed<zoo::dlrm_graphpipe<zoo::dlrm_graphpipe_sizes{2, 2, 1, 1, 8, 16, 4, 3}>>;
  CHECK(differentiate(lower(score, {zoo::batch = 2})).loss >= 0);
  static constexpr auto growth = typed<zoo::candle_uno_graphpipe<zoo::candle_uno_graphpipe_sizes{3, 2, 8}>>;
  CHECK(differentiate(lower(growth, {zoo::batch = 2})).loss >= 0);
}
