// tests/cost/measure_host.test.cpp - this machine: plausible rates, soon; devices share cores
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/cost/measure_host.hpp>

#include "support/laws/cost_model.hpp"

using namespace tensorpar;

TEST_CASE("measured rates are plausible and come soon") {
  double const start = cost::detail::host_now();
  cost::host_rates const h = cost::measure_host();
  double const took = cost::detail::host_now() - start;
  MESSAGE("in " << took << " s: " << h.flops / 1e9 << " GFLOP/s, " << h.memory_bandwidth / 1e9 << " GB/s, " << h.handover * 1e6 << " us, "
                << h.cores << " cores");
  CHECK(took < 5);                                  // 0.3 s on an idle machine
  CHECK(h.cores >= 1);
  CHECK(h.flops > 1e6);
  CHECK(h.flops < 1e13);
  CHECK(h.memory_bandwidth > 1e7);
  CHECK(h.memory_bandwidth < 1e13);
  CHECK(h.handover > 1e-9);
  CHECK(h.handover < 1);
}

TEST_CASE("devices beyond the cores share them") {
  cost::host_rates const h{8e9, 16e9, 1e-6, 2};
  machine const one = cost::host_machine(1, h), two = cost::host_machine(2, h), four = cost::host_machine(4, h);
  CHECK(one.kinds[0].flops == 8e9);
  CHECK(one.kinds[0].memory_bandwidth == 16e9);
  CHECK(two.kinds[0].flops == 8e9);
  CHECK(two.kinds[0].memory_bandwidth == 8e9);      // one memory for both cores
  CHECK(four.kinds[0].flops == 4e9);
  CHECK(four.kinds[0].memory_bandwidth == 4e9);
  CHECK(four.links[0].latency == 2e-6);
  CHECK(four.size() == 4);
  CHECK(4 * four.kinds[0].memory == one.kinds[0].memory);
  CHECK_THROWS_AS(cost::host_machine(0, h), error);
  laws::check_cost_model(cost::analytical{cost::measured_rates}, cost::host_machine(6, h));
}

TEST_CASE("the small product that is timed is a product") {
  float const a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8};
  float c[] = {0, 0, 0, 1};
  cost::detail::small_matmul(a, b, c, 2);
  CHECK(c[0] == 19);
  CHECK(c[1] == 22);
  CHECK(c[2] == 43);
  CHECK(c[3] == 51);
}
