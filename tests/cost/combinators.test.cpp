// tests/cost/combinators.test.cpp - scaled, calibrated, cached: laws, and what each adds
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/cost/combinators.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>

#include <random>

#include "support/laws/cost_model.hpp"

using namespace tensorpar;

namespace {
/// Counts how often it is asked.
struct counting {
  int* asked = nullptr;
  cost::analytical inner{};
  double seconds(cost::compute_query const& q) const { ++*asked; return inner.seconds(q); }
  double seconds(cost::reshard_query const& q) const { ++*asked; return inner.seconds(q); }
};
}  // namespace

TEST_CASE("laws") {
  for (char const* name : {"logical-2x2", "autodist-b12", "logical:6"}) {
    machine const m = preset(name);
    laws::check_cost_model(cost::scaled<cost::analytical>{{}, 2, 0.5}, m);
    cost::calibrated<cost::analytical> const fitted =
        cost::calibrate(cost::analytical{}, {{cost::cost_family::contraction, 1, 3}, {cost::cost_family::keep, 1, 9},
                                             {cost::cost_family::elementwise, 1, 2}});
    laws::check_cost_model(fitted, m);
    laws::check_cost_model(cost::cached<cost::analytical>{}, m);
    laws::check_cost_model(cost::cached<cost::calibrated<cost::scaled<cost::analytical>>>{}, m);
  }
}

TEST_CASE("scaled multiplies operators and reshards") {
  machine const m = preset("logical-2x2");
  auto const op = laws::some_operators(8).front();
  auto const step = laws::some_steps(m, 1, 1).front();
  shape const s{dim(16), dim(8)};
  cost::compute_query const c = op.query(4, m.kinds[0]);
  cost::reshard_query const q{step, s, 4, m};
  cost::scaled<cost::analytical> const twice{{}, 2, 3};
  CHECK(twice.seconds(c) == 2 * cost::analytical{}.seconds(c));
  CHECK(twice.seconds(q) == 3 * cost::analytical{}.seconds(q));
}

TEST_CASE("families follow the loops") {
  std::map<std::string, cost::cost_family> want{
      {"linear", cost::cost_family::contraction},  {"contraction", cost::cost_family::contraction},
          {"matmul", cost::cost_family::contraction},
      {"conv2d", cost::cost_family::contraction},  {"relu", cost::cost_family::elementwise},        {"add", cost::cost_family::elementwise},
      {"softmax", cost::cost_family::elementwise}, {"transpose", cost::cost_family::elementwise},
          {"concat", cost::cost_family::elementwise}};
  int seen = 0;
  for (auto const& o : laws::some_operators(8)) {
    auto const it = want.find(std::string(o.op.op->name));
    if (it == want.end()) continue;
    CAPTURE(it->first);
    ++seen;
    CHECK(cost::family_of(o.op, {o.in.data(), static_cast<int>(o.in.size())}) == it->second);
  }
  CHECK(seen == 9);
  shape const x{dim(4), dim(4)};
  CHECK(cost::family_of(square_sum{}, {&x, 1}) == cost::cost_family::reduction);
  CHECK(cost::family_of(contraction("mk->m"), {&x, 1}) == cost::cost_family::reduction);
  shape const pair[] = {x, x}, vector[] = {x, {dim(4)}};
  CHECK(cost::family_of(contraction("mk,nk->mn"), {pair, 2}) == cost::cost_family::contraction);
  CHECK(cost::family_of(contraction("mk,mk->k"), {pair, 2}) == cost::cost_family::reduction);      // every element once
  CHECK(cost::family_of(contraction("mk,k->m"), {vector, 2}) == cost::cost_family::reduction);
  CHECK(cost::family_of(mean_squared_error{}, {pair, 2}) == cost::cost_family::reduction);
  CHECK(std::string(cost::name_of(cost::family_of(ir::reshard_kind::all_gather))) == "all_gather");
}

TEST_CASE("a fit finds the factors that samples were made with, and is the least squares in logarithms") {
  std::mt19937_64 random(3);
  std::array<double, cost::cost_families> truth{2, 0.5, 3, 1.5, 4, 0.25, 8, 1, 1.25};
  std::vector<cost::calibration_sample> exact, noisy;
  for (int i = 0; i < 200; ++i) {
    int const f = static_cast<int>(random() % cost::cost_families);
    double const predicted = std::exp(static_cast<double>(random() % 1000) / 50 - 15),
                 noise = std::exp(static_cast<double>(random() % 1000) / 1000 - 0.5);
    exact.push_back({static_cast<cost::cost_family>(f), predicted, predicted * truth[static_cast<std::size_t>(f)]});
    noisy.push_back({static_cast<cost::cost_family>(f), predicted, predicted * truth[static_cast<std::size_t>(f)] * noise});
  }
  auto const found = cost::fit_factors(exact);
  for (std::size_t f = 0; f < truth.size(); ++f) CHECK(found[f] == doctest::Approx(truth[f]));
  auto error_of = [&](std::array<double, cost::cost_families> const& factor) {
    double e = 0;
    for (cost::calibration_sample const& s : noisy)
      e += std::pow(std::log(s.measured) - std::log(factor[static_cast<std::size_t>(s.family)] * s.predicted), 2);
    return e;
  };
  auto const best = cost::fit_factors(noisy);
  for (std::size_t f = 0; f < best.size(); ++f)
    for (double nudge : {0.99, 1.01}) {
      auto other = best;
      other[f] *= nudge;
      CHECK(error_of(other) > error_of(best));
    }
}

TEST_CASE("a fit leaves families without samples alone, keeps `keep` below a copy, and refuses senseless samples") {
  auto const none = cost::fit_factors({});
  for (double f : none) CHECK(f == 1);
  auto const r = cost::fit_factors({{cost::cost_family::keep, 1, 10}, {cost::cost_family::elementwise, 1, 2}});
  CHECK(r[static_cast<std::size_t>(cost::cost_family::keep)] == 2);
  for (cost::calibration_sample const bad : {cost::calibration_sample{cost::cost_family::keep, 0, 1},
                                       {cost::cost_family::keep, 1, 0}, {cost::cost_family::keep, 1, -1},
                                       {cost::cost_family::keep, 1, 1 / 0.0}, {cost::cost_family::keep, std::nan(""), 1}})
    CHECK_THROWS_AS(cost::fit_factors({bad}), error);
}

TEST_CASE("cached asks once per distinct query and never mixes two up") {
  int asked = 0;
  cost::cached<counting> const c{counting{&asked}};
  machine const a = preset("logical-2x2"), b = preset("summit");
  auto const ops = laws::some_operators(8);
  auto const steps = laws::some_steps(a, 100, 5);
  shape const s{dim(16), dim(8)}, t{dim(32), dim(8)};
  std::vector<double> first;
  for (int round = 0; round < 3; ++round) {
    std::size_t i = 0;
    auto same = [&](double x, double truth) {
      CHECK(x == truth);
      if (round == 0) first.push_back(x);
      else CHECK(x == first[i]);
      ++i;
    };
    for (auto const& o : ops)
      for (i64 bytes : {4, 8})
        for (device_kind const* k : {&a.kinds[0], &b.kinds[0]})
          same(c.seconds(o.query(bytes, *k)), cost::analytical{}.seconds(o.query(bytes, *k)));
    for (ir::reshard_step const& m : steps)
      for (shape const& x : {s, t})
        for (machine const* on : {&a, &b})
          same(c.seconds(cost::reshard_query{m, x, 4, *on}), cost::analytical{}.seconds(cost::reshard_query{m, x, 4, *on}));
  }
  CHECK(c.misses() == asked);
  CHECK(c.hits() + c.misses() == static_cast<i64>(3 * first.size()));
  CHECK(asked < static_cast<int>(first.size()) + 1);
  // equal steps came up more than once, so some were found even in the first round
  CHECK(asked > 50);
}
