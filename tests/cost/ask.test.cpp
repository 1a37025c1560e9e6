// tests/cost/ask.test.cpp - a cost model's answer that is no time is one error, with its call, operator and value
#include <tensorpar/cost/ask.hpp>
#include <doctest/doctest.h>

#include <cmath>
#include <support/small_graphs.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/program/unroll.hpp>
#include <tensorpar/search/intra/optimize.hpp>
#include <tensorpar/search/pipeline/graph_model.hpp>
#include <tensorpar/simulate/engine.hpp>

using namespace tests;
using namespace tensorpar::search;

namespace {

/// Answers `compute` and `move` where these are no zero.
struct liar {
  double compute = 0, move = 0;
  double seconds(tensorpar::cost::compute_query const& q) const {
    return compute == 0 ? tensorpar::cost::analytical{}.seconds(q) : compute;
  }
  double seconds(tensorpar::cost::reshard_query const& q) const { return move == 0 ? tensorpar::cost::analytical{}.seconds(q) : move; }
};
template <class F> std::string message(F const& f) {
  try { f(); } catch (error const& e) { return e.what(); }
  return "accepted";
}
bool has(std::string const& s, char const* part) { return s.find(part) != s.npos; }

}  // namespace

TEST_CASE("searches, stage models and simulations refuse what is no time") {
  computation_graph const g = residual_mlp();
  plan p = serial_plan(g);
  p.cluster = devices(2);
  p.nodes[1].sharding = {1, {}};                                                          // something moves
  program const q = unroll(differentiate(g), p);
  double const infinite = 1 / 0.0;
  for (double wrong : {std::nan(""), infinite, -infinite, -1e-3}) {
    CAPTURE(wrong);
    std::string const value = "the cost model answers " + std::to_string(wrong) + " s for ";
    for (bool moves : {false, true}) {
      liar const m = moves ? liar{0, wrong} : liar{wrong, 0};
      char const* const call = moves ? "(at seconds(reshard_query)); valid: a finite number of seconds, not negative"
                                     : "(at seconds(compute_query)); valid: a finite number of seconds, not negative";
      for (std::string const& s : {message([&] { optimize(g, devices(2), m); }), message([&] { simulate(q, p.cluster, m); })}) {
        CHECK(s.starts_with(value));
        CHECK(has(s, call));
        if (!moves) CHECK(has(s, " on ["));
      }
    }
  }
  std::string const s = message([&] { simulate(q, p.cluster, liar{-1, 0}); });
  CHECK(has(s, "linear{out="));
  CHECK(message([&] { simulate(q, p.cluster, liar{1, 1}); }) == "accepted");
  graph_stage_options o;
  o.mini_batch = g.type(0).d[0].n;
  CHECK(message([&] { graph_stages<liar> const stages(g, devices(2), liar{0, -1}, o); }).starts_with("the cost model answers -1.000000 s"));
}
