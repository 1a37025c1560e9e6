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
  analytical inner{};
  double seconds(compute_query const& q) const { ++*asked; return inner.seconds(q); }
  double seconds(reshard_query const& q) const { ++*asked; return inner.seconds(q); }
};
}  // namespace

TEST_CASE("laws") {
  for (char const* name : {"logical-2x2", "autodist-b12", "logical:6"}) {
    machine const m = preset(name);
    laws::check_cost_model(scaled<analytical>{{}, 2, 0.5}, m);
    calibrated<analytical> const fitted =
        calibrate(analytical{}, {{cost_family::contraction, 1, 3}, {cost_family::keep, 1, 9}, {cost_family::elementwise, 1, 2}});
    laws::check_cost_model(fitted, m);
    laws::check_cost_model(cached<analytical>{}, m);
    laws::check_cost_model(cached<calibrated<scaled<analytical>>>{}, m);
  }
}

TEST_CASE("scaled multiplies operators and reshards") {
  machine const m = preset("logical-2x2");
  auto const op = laws::some_operators(8).front();
  auto const step = laws::some_steps(m, 1, 1).front();
  shape const s{dim(16), dim(8)};
  compute_query const c = op.query(4, m.kinds[0]);
  reshard_query const q{step, s, 4, m};
  scaled<analytical> const twice{{}, 2, 3};
  CHECK(twice.seconds(c) == 2 * analytical{}.seconds(c));
  CHECK(twice.seconds(q) == 3 * analytical{}.seconds(q));
}

TEST_CASE("families follow the loops") {
  std::map<std::string, cost_family> want{
      {"linear", cost_family::contraction},  {"contraction", cost_family::contraction}, {"matmul", cost_family::contraction},
      {"conv2d", cost_family::contraction},  {"relu", cost_family::elementwise},        {"add", cost_family::elementwise},
      {"softmax", cost_family::elementwise}, {"transpose", cost_family::elementwise},   {"concat", cost_family::elementwise}};
  int seen = 0;
  for (auto const& o : laws::some_operators(8)) {
    auto const it = want.find(std::string(o.op.op->name));
    if (it == want.end()) continue;
    CAPTURE(it->first);
    ++seen;
    CHECK(family_of(o.op, {o.in.data(), static_cast<int>(o.in.size())}) == it->second);
  }
  CHECK(seen == 9);
  shape const x{dim(4), dim(4)};
  CHECK(family_of(square_sum{}, {&x, 1}) == cost_family::reduction);
  CHECK(family_of(contraction("mk->m"), {&x, 1}) == cost_family::reduction);
  shape const pair[] = {x, x}, vector[] = {x, {dim(4)}};
  CHECK(family_of(contraction("mk,nk->mn"), {pair, 2}) == cost_family::contraction);
  CHECK(family_of(contraction("mk,mk->k"), {pair, 2}) == cost_family::reduction);      // every element once
  CHECK(family_of(contraction("mk,k->m"), {vector, 2}) == cost_family::reduction);
  CHECK(family_of(mean_squared_error{}, {pair, 2}) == cost_family::reduction);
  CHECK(std::string(name_of(family_of(reshard_kind::all_gather))) == "all_gather");
}

TEST_CASE("a fit finds the factors that samples were made with, and is the least squares in logarithms") {
  std::mt19937_64 random(3);
  std::array<double, cost_families> truth{2, 0.5, 3, 1.5, 4, 0.25, 8, 1, 1.25};
  std::vector<calibration_sample> exact, noisy;
  for (int i = 0; i < 200; ++i) {
    int const f = static_cast<int>(random() % cost_families);
    double const predicted = std::exp(static_cast<double>(random() % 1000) / 50 - 15),
                 noise = std::exp(static_cast<double>(random() % 1000) / 1000 - 0.5);
    exact.push_back({static_cast<cost_family>(f), predicted, predicted * truth[static_cast<std::size_t>(f)]});
    noisy.push_back({static_cast<cost_family>(f), predicted, predicted * truth[static_cast<std::size_t>(f)] * noise});
  }
  auto const found = fit_factors(exact);
  for (std::size_t f = 0; f < truth.size(); ++f) CHECK(found[f] == doctest::Approx(truth[f]));
  auto error_of = [&](std::array<double, cost_families> const& factor) {
    double e = 0;
    for (calibration_sample const& s : noisy)
      e += std::pow(std::log(s.measured) - std::log(factor[static_cast<std::size_t>(s.family)] * s.predicted), 2);
    return e;
  };
  auto const best = fit_factors(noisy);
  for (std::size_t f = 0; f < best.size(); ++f)
    for (double nudge : {0.99, 1.01}) {
      auto other = best;
      other[f] *= nudge;
      CHECK(error_of(other) > error_of(best));
    }
}

TEST_CASE("a fit leaves families without samples alone, keeps `keep` below a copy, and refuses senseless samples") {
  auto const none = fit_factors({});
  for (double f : none) CHECK(f == 1);
  auto const r = fit_factors({{cost_family::keep, 1, 10}, {cost_family::elementwise, 1, 2}});
  CHECK(r[static_cast<std::size_t>(cost_family::keep)] == 2);
  for (calibration_sample const bad : {calibration_sample{cost_family::keep, 0, 1},
                                       {cost_family::keep, 1, 0},
                                       {cost_family::keep, 1, -1},
                                       {cost_family::keep, 1, 1 / 0.0},
                                       {cost_family::keep, std::nan(""), 1}})
    CHECK_THROWS_AS(fit_factors({bad}), error);
}

TEST_CASE("cached asks once per distinct query and never mixes two up") {
  int asked = 0;
  cached<counting> const c{counting{&asked}};
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
          same(c.seconds(o.query(bytes, *k)), analytical{}.seconds(o.query(bytes, *k)));
    for (reshard_step const& m : steps)
      for (shape const& x : {s, t})
        for (machine const* on : {&a, &b}) same(c.seconds(reshard_query{m, x, 4, *on}), analytical{}.seconds(reshard_query{m, x, 4, *on}));
  }
  CHECK(c.misses() == asked);
  CHECK(c.hits() + c.misses() == static_cast<i64>(3 * first.size()));
  CHECK(asked < static_cast<int>(first.size()) + 1);
  // equal steps came up more than once, so some were found even in the first round
  CHECK(asked > 50);
}
