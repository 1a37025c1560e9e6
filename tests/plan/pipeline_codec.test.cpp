// tests/plan/pipeline_codec.test.cpp - a pipeline survives the file, and what is no pipeline is refused by file and key
#include <tensorpar/plan/pipeline_codec.hpp>

#include <doctest/doctest.h>

#include <functional>

#include "support/random_pipeline.hpp"
#include <tensorpar/plan/plan_text.hpp>

using namespace tests;

TEST_CASE("random pipelines survive encoding") {
  std::mt19937 draw(1);
  computation_graph const g = residual_mlp();
  for (int i = 0; i < 40; ++i) {
    plan const p = random_pipeline(g, {.devices = 2 + i % 6, .shared_groups = i % 3 == 0}, 1 + i % 2, 8 << i % 2, draw);
    std::string const text = encode(p).dump();
    CHECK(decode_plan(text, "p.json") == p);
    plan q = p;
    q.pipeline.schedule[0].pop_back();
    CHECK(q.hash() != p.hash());
  }
}

TEST_CASE("a damaged pipeline is refused by key") {
  std::mt19937 draw(2);
  pipeline const p = random_pipeline(residual_mlp(), {.devices = 4, .sizes = false}, 1, 4, draw).pipeline;
  auto refuses = [&](std::function<void(tensorpar::core::json&)> const& change, char const* where, char const* what) {
    tensorpar::core::json j = detail::encode_pipeline(p);
    change(j);
    CAPTURE(where);
    try {
      detail::decode_pipeline({j, "f.json", "pipeline"}, 7, 4);
      FAIL("accepted");
    } catch (error const& e) {
      std::string const text = e.what();
      CAPTURE(text);
      CHECK(text.find(where) != std::string::npos);
      CHECK(text.find(what) != std::string::npos);
    }
  };
  refuses([](tensorpar::core::json& j) { j.erase("groups"); }, "f.json: pipeline", "\"groups\" is missing");
  refuses([](tensorpar::core::json& j) { j["more"] = 1; }, "more", "unknown key");
  refuses([](tensorpar::core::json& j) { j["mini_batch"] = 0; }, "pipeline.mini_batch", "out of range");
  refuses([](tensorpar::core::json& j) { j["unit"] = 5; }, "pipeline.unit", "out of range");
  refuses([](tensorpar::core::json& j) { j["groups"][0]["count"] = 9; }, "pipeline.groups[0].count", "out of range");
  refuses([](tensorpar::core::json& j) { j["stages"][0]["nodes"] = {3, 3}; }, "pipeline.stages[0].nodes[1]", "out of range");
  refuses([](tensorpar::core::json& j) { j["stages"][0]["nodes"] = tensorpar::core::json::array(); }, "pipeline.stages[0].nodes",
          "a list of 0");
  refuses([](tensorpar::core::json& j) { j["stages"][0]["micro_batch"] = 3; }, "pipeline.stages[0].micro_batch", "divides 4");
  refuses([](tensorpar::core::json& j) { j["stages"][0]["recompute"] = 1; }, "pipeline.stages[0].recompute", "not a truth value");
  refuses([](tensorpar::core::json& j) { j["stages"][0]["group"] = -1; }, "pipeline.stages[0].group", "out of range");
  refuses([](tensorpar::core::json& j) { j["schedule"].erase(0); }, "pipeline.schedule", "a list of");
  for (char const* bad : {"", "F", "F0", "F0.", "X0.0", "F0.9", "F99.0", "F0.0 ", "F00.0", "F0.00", "F-1.0", "F0.1234567890123", "f0.0"})
    refuses([&](tensorpar::core::json& j) { j["schedule"][0][0] = bad; }, "pipeline.schedule[0][0]", "not a pass");
  refuses([](tensorpar::core::json& j) { j["schedule"][0][0] = 7; }, "pipeline.schedule[0][0]", "not a text");
}
