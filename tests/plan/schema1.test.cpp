// tests/plan/schema1.test.cpp - plan files of schema 1 are read as what they say
#include <doctest/doctest.h>
#include <tensorpar/core/read_file.hpp>
#include <tensorpar/plan/plan_text.hpp>
#include <tensorpar/plan/schema1.hpp>

using namespace tensorpar;

namespace {

/// A file that was written by a release of schema 1.
std::string old_file(char const* name) {
  return core::read_file(std::string(TENSORPAR_TEST_DATA) + "/schema1/" + name + ".json");
}

}  // namespace

TEST_CASE("files of schema 1 are read, and written again in schema 2 with the same content and hash") {
  for (char const* name : {"memory", "order", "pipeline"}) {
    CAPTURE(name);
    std::string const text = old_file(name);
    core::json const old = core::parse_json(text, name);
    REQUIRE(old["tensorpar_plan"] == 1);
    plan const p = decode_plan(text, name);
    CHECK(core::detail::hex_of(p.hash()) == old["hash"].get<std::string>());
    core::json const now = encode(p);
    CHECK(now["tensorpar_plan"] == 2);
    CHECK(now["hash"] == old["hash"]);
    CHECK(decode_plan(text_of(p, name), name) == p);
    core::json back = detail::in_schema(now, true);
    back["checksum"] = old["checksum"];
    CHECK(back.dump() == old.dump());
  }
}

TEST_CASE("every decision with a new name is where it was") {
  core::json const memory = core::parse_json(old_file("memory"), "memory"), order = core::parse_json(old_file("order"), "order"),
             pipe = core::parse_json(old_file("pipeline"), "pipeline");
  plan const m = decode(memory, "memory"), o = decode(order, "order"), q = decode(pipe, "pipeline");
  int updates = 0, weights = 0;
  for (std::size_t v = 0; v < m.nodes.size(); ++v) {
    std::string const said = memory["nodes"][v].value("sharding", "none");
    CHECK(m.nodes[v].zero == (said == "none" ? ir::zero_stage::none : said == "update" ? ir::zero_stage::updates
                              : ir::zero_stage::weights));
    updates += said == "update";
    weights += said == "weights";
  }
  CHECK(updates > 0);
  CHECK(weights > 0);
  CHECK(o.node_order == order["order"].get<std::vector<int>>());
  CHECK(!o.node_order.empty());
  REQUIRE(q.pipeline.schedule.size() == pipe["pipeline"]["order"].size());
  for (std::size_t g = 0; g < q.pipeline.schedule.size(); ++g) {
    REQUIRE(q.pipeline.schedule[g].size() == pipe["pipeline"]["order"][g].size());
    for (std::size_t i = 0; i < q.pipeline.schedule[g].size(); ++i)
      CHECK(detail::code_of(q.pipeline.schedule[g][i]) == pipe["pipeline"]["order"][g][i].get<std::string>());
  }
}

TEST_CASE("an edited file of schema 1 is refused, and so is one with names of both") {
  for (char const* name : {"memory", "order", "pipeline"}) {
    CAPTURE(name);
    core::json j = core::parse_json(old_file(name), name);
    j["model"] = "another";
    CHECK_THROWS_WITH_AS(decode_plan(j.dump(), name), doctest::Contains("edited or damaged"), error);
  }
  core::json j = core::parse_json(old_file("order"), "order");
  j["node_order"] = j["order"];
  CHECK_THROWS_AS(decode_plan(j.dump(), "order"), error);
  core::json now = encode(decode_plan(old_file("memory"), "memory"));
  now["tensorpar_plan"] = 1;
  CHECK_THROWS_AS(decode_plan(now.dump(), "memory"), error);
}
