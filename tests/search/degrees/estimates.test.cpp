// tests/search/degrees/estimates.test.cpp - estimates of configurations beside their programs, simulated
#include <tensorpar/search/degrees/estimates.hpp>

#include <algorithm>
#include <doctest/doctest.h>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/search/overlapped.hpp>
#include <tensorpar/zoo/registry.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

namespace {

training_problem gpt(i64 samples) {
  return {.graph = zoo::make("gpt3_1b3:layers=4,hidden=64,heads=4,wide=128,seq=32,vocab=256", 1), .samples = samples};
}
machine nodes(int n, int per, double outer) {
  device_kind const k{"device", 1e12, 1e11, i64{1} << 30, 1e-6};
  return make_cluster("nodes", k, n * per, per, {"inner", per, 1e-6, 4e9}, n > 1 ? link_level{"outer", n * per, 1e-6, outer} : link_level{});
}
std::vector<search::detail::estimated_config> estimates(i64 samples, machine const& on, double bar = infinity) {
  cost::analytical const model;
  training_problem const asked = gpt(samples);
  degree_limits const limits;
  configurations<cost::analytical> all(asked, on, model);
  return search::detail::degree_estimates<cost::analytical>(all, asked, model, limits).faster_than(bar);
}
/// The program of a configuration in which nothing is brought ahead.
simulated_plan run(i64 samples, machine const& on, parallel_config c) {
  cost::analytical const model;
  training_problem const asked = gpt(samples);
  c.prefetch = 0;
  configured_plan const x = configured(asked, on, model, c);
  return simulated(x.graph, x.plan, asked, model);
}

}  // namespace

TEST_CASE("a micro-batch takes at most what is estimated, and three quarters at least; bytes are within a tenth") {
  for (int devices : {1, 2, 4}) {
    CAPTURE(devices);
    machine const on = nodes(1, devices, 0);
    auto const some = estimates(8, on), more = estimates(16, on);
    int compared = 0;
    for (auto const& e : some) {
      if (e.config.data > 1 || e.config.pipeline > 1 || e.config.micro_batch > 2) continue;
      auto const f = std::find_if(more.begin(), more.end(), [&](auto const& x) { return x.config == e.config; });
      REQUIRE(f != more.end());
      CAPTURE(text_of(e.config));
      simulated_plan const a = run(8, on, e.config), b = run(16, on, e.config);
      double const estimated = f->seconds - e.seconds, taken = b.seconds - a.seconds;
      CHECK(taken <= estimated * (1 + 1e-9));
      CHECK(taken >= 0.75 * estimated);                        // updates among the last backward pass' operators are counted each time
      CHECK(e.exposed == 0);
      CHECK(e.bytes == doctest::Approx(static_cast<double>(a.peak)).epsilon(0.1));
      ++compared;
    }
    CHECK(compared == 6);                                      // two sizes, three kinds of recomputation
  }
}

TEST_CASE("sums of gradients are exposed by as much as a ring takes longer than the backward passes that cover it") {
  double parameters = 0;
  computation_graph const g = gpt(1).graph;
  for (graph_value const& v : g.values) if (v.role == value_role::parameter) parameters += static_cast<double>(v.type.elements());
  auto const of = [](double bandwidth) {
    for (auto const& e : estimates(8, nodes(4, 1, bandwidth)))
      if (e.config.data == 4 && e.config.micro_batch == 1 && e.config.recompute == recomputation::none && e.config.sharding == ir::zero_stage::none)
        return e;
    FAIL("no data parallelism among the estimates");
    return search::detail::estimated_config{};
  };
  CHECK(of(1e13).exposed == 0);
  double before = 0;
  for (double bandwidth : {1e7, 1e6, 1e5}) {
    auto const e = of(bandwidth);
    double const ring = 2 * 3. / 4 * 4 * parameters / bandwidth, covered = e.seconds / 2 * 2 / 3;      // two micro-batches
    CHECK(e.exposed > before);
    CHECK(e.exposed >= ring - covered);
    CHECK(e.exposed <= 1.5 * ring - covered);                  // gradients at the fullest task: sums, and one more of a layer
    before = e.exposed;
  }
}

TEST_CASE("what a bar leaves out is slower, and nothing else is left out") {
  machine const on = nodes(2, 4, 1e9);
  auto const all = estimates(16, on);
  REQUIRE(all.size() > 100);
  double least = infinity, most = 0;
  for (auto const& e : all) least = std::min(least, e.seconds), most = std::max(most, e.seconds);
  constexpr double margin = search::detail::degree_estimates<cost::analytical>::margin;
  for (double part : {0.0, 0.1, 0.4, 0.8}) {
    double const bar = least + part * (most - least);
    std::size_t below = 0;
    for (auto const& e : all) below += margin * e.seconds < bar;
    auto const left = estimates(16, on, bar);
    for (auto const& e : left) CHECK(margin * e.seconds < bar);
    CHECK(left.size() == below);
  }
}
