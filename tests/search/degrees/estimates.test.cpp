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
  configurations<cost::analytical> all(asked, on, model);
  return search::detail::degree_estimates<cost::analytical>(all, asked, model).faster_than(bar, degree_limits{});
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

TEST_CASE("of one replica every micro-batch takes what is estimated, and updates come on top; bytes are within a tenth") {
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
      CHECK(taken == doctest::Approx(estimated).epsilon(1e-9));
      CHECK(a.seconds > e.seconds);                            // by updates
      CHECK(a.seconds < 1.5 * e.seconds);
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
    double const reached = cost::analytical_options{}.link_efficiency * bandwidth;
    double const ring = 2 * 3. / 4 * 4 * parameters / reached, covered = e.seconds / 2 * 2 / 3;      // two micro-batches
    CHECK(e.exposed > before);
    CHECK(e.exposed >= ring - covered);
    CHECK(e.exposed <= 1.01 * ring - covered);                 // messages start, one parameter after the other
    before = e.exposed;
  }
}

TEST_CASE("ZeRO-2 scatters the gradients of every micro-batch; ZeRO-3 gathers weights for both of its passes, too") {
  auto const of = [](i64 samples, ir::zero_stage shared) {
    for (auto const& e : estimates(samples, nodes(4, 1, 1e5)))
      if (e.config.data == 4 && e.config.micro_batch == 1 && e.config.recompute == recomputation::none && e.config.sharding == shared)
        return e;
    FAIL("no data parallelism among the estimates");
    return search::detail::estimated_config{};
  };
  for (i64 samples : {4, 8, 24}) {
    auto const once = of(samples, ir::zero_stage::none), each = of(samples, ir::zero_stage::weights);
    double const times = static_cast<double>(samples) / 4, sum = once.exposed + once.seconds / times * 2 / 3;
    CHECK(each.seconds == once.seconds);
    CHECK(each.exposed == doctest::Approx(1.5 * times * sum - each.seconds).epsilon(0.01));
    simulated_plan const run_once = run(samples, nodes(4, 1, 1e5), once.config), run_each = run(samples, nodes(4, 1, 1e5), each.config);
    CHECK(run_once.seconds == doctest::Approx(once.seconds + once.exposed).epsilon(0.15));
    CHECK(run_each.seconds == doctest::Approx(each.seconds + each.exposed).epsilon(0.15));
    if (times == 1) continue;                                  // as if updates alone were shared
    auto const scattered = of(samples, ir::zero_stage::gradients);
    CHECK(scattered.seconds == once.seconds);
    CHECK(scattered.exposed == doctest::Approx((times + 1) / 2 * sum - once.seconds * 2 / 3).epsilon(0.01));
    CHECK(run(samples, nodes(4, 1, 1e5), scattered.config).seconds ==
          doctest::Approx(scattered.seconds + scattered.exposed).epsilon(0.15));
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
