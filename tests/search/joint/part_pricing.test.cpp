// tests/search/joint/part_pricing.test.cpp - a quick bound on all that rules make of a network is one
#include <tensorpar/search/joint/cut_network.hpp>
#include <tensorpar/search/joint/develop.hpp>
#include <tensorpar/search/joint/part_pricing.hpp>

#include <doctest/doctest.h>

#include <numeric>
#include <random>
#include <support/effort.hpp>
#include <support/search_once.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/search/joint/joint.hpp>
#include <tensorpar/zoo/registry.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

namespace {

machine drawn_machine(std::mt19937& draw, int devices) {
  double const speed = 1e9 * (1 + static_cast<double>(draw() % 100)), link = 1e6 * (1 + static_cast<double>(draw() % 10000));
  return make_cluster("random", {"device", speed, speed / 2, i64{1} << 34, 1e-6}, devices, devices % 2 ? devices : devices / 2,
                      {"link", devices, 1e-6, link}, {"outer", devices, 1e-5, link / 4});
}

}  // namespace

TEST_CASE("a quick bound is not above the bound of what is developed, whatever the threshold, and ends where it is enough") {
  std::mt19937 draw(21);
  cost::analytical const model;
  int close = 0, rewritten_kinds = 0;
  int const cases = test_effort::cases(40);
  char const* const names[] = {"bert_artifact", "mlp_unify", "xdl", "dlrm", "candle_uno", "split_test", "resnext50_artifact"};
  for (int turn = 0; turn < cases; ++turn) {
    std::string const name = names[turn % 7];
    int const devices = 2 + static_cast<int>(draw() % 11);
    CAPTURE(name);
    CAPTURE(devices);
    computation_graph const g = zoo::make_reduced(name, 24);
    machine const on = drawn_machine(draw, devices);
    joint_options o;
    o.search.compare = false;
    o.rewriting.alpha = draw() % 3 ? 1.05 : 1.5;
    o.min_part = 2 + static_cast<int>(draw() % 8);
    search::detail::cut_network const cut = search::detail::cut(g, o);
    search::detail::rewritten_parts const every = search::detail::rewritten(cut, o);
    REQUIRE(every.all);
    for (auto const& some : every.of) rewritten_kinds += some.size() > 1;
    auto const priced = [&](double enough) {
      auto const prices = std::make_shared<layout_prices<cost::analytical>>(model, on, o.search.scalar_bytes);
      search::detail::part_pricing<cost::analytical> price(on, model, o, prices);
      double const quick = search::detail::quick_bound(cut, every, *price.shared(), enough);
      return std::pair(quick, search::detail::develop(g, cut, o, price).bound);       // by the same tables
    };
    auto const [quick, bound] = priced(infinity);
    CHECK(quick > 0);
    CHECK(quick <= bound * (1 + 1e-9));
    close += quick > 0.8 * bound;
    double const enough = quick * static_cast<double>(1 + draw() % 10) / 10;
    auto const [early, same] = priced(enough);
    CHECK(early >= enough * (1 - 1e-9));
    CHECK(early <= quick * (1 + 1e-9));
    CHECK(same == bound);
  }
  CHECK(close > cases / 4);
  CHECK((rewritten_kinds > 0 || cases < 7));
}

TEST_CASE("a budget that ends the list says so, and equal parts are of one kind unless nothing is remembered") {
  computation_graph const g = zoo::make_reduced("bert_artifact", 24);
  joint_options o;
  search::detail::cut_network const cut = search::detail::cut(g, o);
  std::vector<int> const counts = cut.counts();
  CHECK(std::accumulate(counts.begin(), counts.end(), 0) == static_cast<int>(cut.parts.size()));
  CHECK(search::detail::rewritten(cut, o).all);
  o.rewriting.priced = 1;
  CHECK_FALSE(search::detail::rewritten(cut, o).all);
  o.remember = false;
  CHECK(search::detail::cut(g, o).first.size() == cut.parts.size());
}
