// tests/tool/demo_command.test.cpp - `run-demo` measures four plans of one network on this machine, and they train the same
#include <tensorpar/tool/demo_command.hpp>

#include <doctest/doctest.h>
#include <support/executors_once.hpp>

#include "tool_run.hpp"

using namespace tensorpar;
using namespace tests;

TEST_CASE("the demo tells plan, rivals and one device, as text and as JSON") {
  tool_run const text = run_line("run-demo --devices 2 --rounds 1");
  CAPTURE(text.err);
  REQUIRE(text.code == 0);
  for (char const* words : {"chosen plan: ", "predicted", "measured in turns: the chosen plan is ", "data parallel", "tensor parallel",
                            "one device", "after 3 equal steps all have the same parameters"}) {
    CAPTURE(words);
    CHECK(text.says(words));
  }
  CHECK(text.says("this machine is busy") != text.says("the prediction "));
  tool_run const json = run_line("run-demo --devices 2 --rounds 1 --json");
  REQUIRE(json.code == 0);
  REQUIRE(json.lines().size() == 1);
  core::json const race = json.events("race").at(0);
  CHECK(race["same_training"] == true);
  CHECK(race["contenders"].size() == 4);
  CHECK(race["differ"].get<double>() <= tools::float_noise);
  for (core::json const& c : race["contenders"]) {
    CHECK(c["measured_step_s"].get<double>() > 0);
    CHECK(c["predicted_step_s"].get<double>() > 0);
  }
}
