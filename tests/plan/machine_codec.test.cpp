// tests/plan/machine_codec.test.cpp - a cluster in a plan's file: read as it was written, and brief where nothing more is known
#include <tensorpar/plan/machine_codec.hpp>
#include <doctest/doctest.h>

#include <plan/random_plan.hpp>
#include <random>
#include <tensorpar/ir/machine/machine_presets.hpp>

using namespace tensorpar;

namespace {
machine again(core::json const& j) { return detail::decode_machine(detail::plan_reader{j, "plan.json", ""}); }
}  // namespace

TEST_CASE("a machine that is written and read is the same, with rates and shares or without") {
  std::mt19937 draw(3);
  int rated = 0, plain = 0;
  for (int turn = 0; turn < 300; ++turn) {
    machine const m = test::random_plan(draw).cluster;
    core::json const j = detail::encode_machine(m);
    CHECK(again(j) == m);
    CHECK(j.contains("lane_per_link") == m.lane_per_link);
    for (std::size_t k = 0; k < m.kinds.size(); ++k) {
      CHECK(j["kinds"][k].contains("rates") == (m.kinds[k].rates != format_rates()));
      CHECK(j["kinds"][k].contains("efficiency") == (m.kinds[k].efficiency != kernel_efficiency()));
      ++(m.kinds[k].rates == format_rates() ? plain : rated);
    }
  }
  CHECK(rated > 50);
  CHECK(plain > 50);
  for (std::string const& name : preset_names()) CHECK(again(detail::encode_machine(preset(name))) == preset(name));
}

TEST_CASE("formats without a rate and shares that are not known may be left out") {
  core::json j = detail::encode_machine(preset("dgx-a100"));
  j["kinds"][0]["rates"].erase("tf32");
  j["kinds"][0]["efficiency"].erase("attention");
  machine const m = again(j);
  CHECK(m.kinds[0].rates.tf32 == 0);
  CHECK(m.kinds[0].rates.bf16 == 312e12);
  CHECK(m.kinds[0].efficiency.attention == 0);
  CHECK(m.kinds[0].efficiency.memory == 0.8);
  j["kinds"][0]["efficiency"]["products"] = -0.5;
  CHECK_THROWS_WITH_AS(again(j), doctest::Contains("-0.5 is out of range (at plan.json: kinds[0].efficiency.products)"), error);
}
