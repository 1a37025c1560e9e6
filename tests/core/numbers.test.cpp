// tests/core/numbers.test.cpp - units of profiles, and the largest numbers that readers take
#include <tensorpar/core/numbers.hpp>
#include <doctest/doctest.h>

#include <cmath>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/peers/profiles/dnn_partitioning.hpp>

using namespace tensorpar;
using namespace tensorpar::peers;

namespace {
std::string profile(std::string const& latency) {
  return R"({"maxSizePerFPGA": 10, "maxFPGAs": 1, "maxCPUs": 0, "nodes": [{"id": 0, "supportedOnFpga": 1, "cpuLatency": 1, "fpgaLatency": )" +
         latency + R"(, "isBackwardNode": 0}], "edges": []})";
}
}  // namespace

TEST_CASE("compute times are read as the caller says") {
  CHECK(core::compute_scale(core::profile_units::as_published) == 1);
  CHECK(core::compute_scale(core::profile_units::compute_in_milliseconds) == 1e-3);
  CHECK(parse_dnn_partitioning(profile("4"), "p", core::profile_units::as_published).accelerator[0] == 4);
  CHECK(parse_dnn_partitioning(profile("4"), "p", core::profile_units::compute_in_milliseconds).accelerator[0] == doctest::Approx(0.004));
}

TEST_CASE("numbers up to the largest are taken, larger ones refused; sums of as many as there may be are finite") {
  CHECK(parse_dnn_partitioning(profile("1e18"), "p", core::profile_units::as_published).accelerator[0] == core::profile_max_number);
  CHECK_THROWS_AS(parse_dnn_partitioning(profile("1.1e18"), "p", core::profile_units::as_published), error);
  CHECK_THROWS_AS(parse_dnn_partitioning(profile("-1"), "p", core::profile_units::as_published), error);
  CHECK(std::isfinite(core::profile_max_number * core::profile_max_nodes * core::profile_max_edges));
  CHECK(infinity > core::profile_max_number * core::profile_max_nodes);
}
