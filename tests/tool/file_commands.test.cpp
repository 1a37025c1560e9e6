// tests/tool/file_commands.test.cpp - plan files shown, compared, checked and simulated; the rules that are shipped; every help's example
#include <tensorpar/tool/file_commands.hpp>

#include <doctest/doctest.h>
#include <support/scratch_folder.hpp>
#include <tensorpar/tool/diff_command.hpp>
#include <tensorpar/tool/rules_command.hpp>
#include <tensorpar/tool/stored.hpp>

#include "tool_run.hpp"

using namespace tensorpar;
using namespace tests;

namespace {

std::string planned_file(scratch_folder const& folder, std::string const& name, std::string const& more = "") {
  std::string const file = folder.path() + "/" + name;
  REQUIRE(run_line(plan_line(more + " --out " + file)).code == 0);
  return file;
}

}  // namespace

TEST_CASE("every example of a help runs, one after the other") {
  scratch_folder const folder;
  for (tools::subcommand const& c : tools::subcommands) {
    CAPTURE(c.name);
    std::vector<std::string> args = words(c.example);
    for (std::string& a : args) if (a.ends_with(".json")) a = folder.path() + "/" + a;
    tool_run const r = run_tool(args);
    CAPTURE(r.err);
    CHECK(r.code == 0);
    CHECK(r.err.empty());
    CHECK_FALSE(r.out.empty());
  }
}

TEST_CASE("show, check and simulate agree with the plan, in words and in lines that parse") {
  scratch_folder const folder;
  std::string const file = planned_file(folder, "plan.json"), trace = folder.path() + "/trace.json", page = folder.path() + "/page.html";
  plan const p = read_plan(file);
  tool_run const show = run_tool({"show", file});
  CHECK(show.code == 0);
  CHECK(show.says("logical-2x2, 4 devices"));
  CHECK(show.says("48 samples"));
  CHECK(show.says("adamw"));
  CHECK(show.says("linear"));
  CHECK(run_tool({"show", file, "--json"}).events("show").at(0)["operators"].size() == p.nodes.size());
  tool_run const check = run_tool({"check", file});
  CHECK(check.code == 0);
  CHECK(check.says("nothing is wrong"));
  CHECK(run_tool({"check", file, "--json"}).events("checked").at(0)["findings"] == 0);
  tool_run const run = run_tool({"simulate", file, "--json", "--trace", trace, "--html", page});
  CHECK(run.code == 0);
  CHECK(run.events("simulated").at(0)["predicted_step_s"].get<double>() == doctest::Approx(p.step_seconds));
  CHECK(core::read_json(trace)["traceEvents"].size() > p.nodes.size());
  CHECK(bytes_of_file(page).starts_with("<!"));
  CHECK(run_tool({"simulate", file}).says("predicted step " + report::seconds_text(p.step_seconds)));
}

TEST_CASE("a plan that was tampered with is found out: one line per finding, exit code 4") {
  scratch_folder const folder;
  std::string const file = planned_file(folder, "plan.json"), wrong = folder.path() + "/wrong.json";
  plan p = read_plan(file);
  p.peak_bytes[0] += 64;
  write_plan(p, wrong);
  tool_run const r = run_tool({"check", wrong});
  CHECK(r.code == 4);
  CHECK(r.says("wrong.json: peak: "));
  tool_run const json = run_tool({"check", wrong, "--json"});
  CHECK(json.code == 4);
  CHECK(json.events("finding").size() == json.events("checked").at(0)["findings"].get<std::size_t>());
  CHECK(run_tool({"check", file, "--model", "dlrm"}).code == 1);                      // the plan of another graph
  CHECK(run_tool({"check", file, "--batch", "7"}).code == 1);
  write_bytes(wrong, "{");
  for (char const* command : {"show", "check", "simulate"}) {
    CHECK(run_tool({command, wrong}).code == 1);
    CHECK(run_tool({command, wrong}).complains("wrong.json:1:"));
  }
}

TEST_CASE("a plan has no differences from itself; another's are settings, step and operators") {
  scratch_folder const folder;
  std::string const a = planned_file(folder, "a.json"), b = planned_file(folder, "b.json", "--micro-batches 2");
  tool_run const same = run_tool({"diff", a, a});
  CHECK(same.code == 0);
  CHECK(same.out == "no differences\n");
  CHECK(run_tool({"diff", a, a, "--json"}).events("diff").at(0)["differences"] == 0);
  tool_run const r = run_tool({"diff", a, b});
  CHECK(r.code == 0);
  CHECK(r.says("micro-batches"));
  CHECK(r.says("the second takes "));
  tool_run const json = run_tool({"diff", a, b, "--json"});
  CHECK(json.events("difference").size() == json.events("diff").at(0)["differences"].get<std::size_t>());
  plan p = read_plan(a);
  int changed = 0;
  for (op_strategy& n : p.nodes)
    if (!n.sharding.axes.empty()) n.sharding.axes.clear(), ++changed;
  REQUIRE(changed > 0);
  int told = 0;
  for (tools::plan_difference const& d : tools::differences({"a", read_plan(a), {}, {}, ""}, {"p", p, {}, {}, ""})) told += d.operators;
  CHECK(told == changed);
  p = read_plan(a);
  p.cluster.links.back().bandwidth *= 2;
  CHECK(tools::differences({"a", read_plan(a), {}, {}, ""}, {"p", p, {}, {}, ""}).at(0).what == "cluster");
  p = read_plan(a);
  p.offsets ^= 1;
  CHECK(tools::differences({"a", read_plan(a), {}, {}, ""}, {"p", p, {}, {}, ""}).at(0).what == "predictions or evidence");
}

TEST_CASE("files of plans with pipelines, with rewrites, with others' scratch, and of searches that found nothing") {
  scratch_folder const folder;
  std::string const file = folder.path() + "/plan.json";
  training_problem const asked{.graph = zoo::make(small_model, 1), .samples = 16, .name = small_model};
  for (auto const kind : {search::schedule_kind::one_f_one_b, search::schedule_kind::zb_h1}) {
    cost::analytical const model;
    planning_options const o{.schedules = std::vector{kind}, .threads = 1};
    planned const found = tensorpar::detail::plan_search<cost::analytical>(asked, logical_nodes(2, 1), model, o).pipelines();
    REQUIRE_FALSE(found.plan.pipeline.empty());
    write_plan(found.plan, file);
    CHECK(run_tool({"check", file}).code == 0);
    CHECK(run_tool({"show", file}).code == 0);
    CHECK(run_tool({"simulate", file}).code == 0);
    CHECK(run_tool({"diff", file, file}).out == "no differences\n");
  }
  planned const thorough = plan_training(asked, logical(2), cost::analytical{}, {.effort = effort::thorough, .threads = 1});
  write_plan(thorough.plan, file);
  CHECK(run_tool({"check", file}).code == 0);
  CHECK(run_tool({"simulate", file, "--json"}).events("simulated").at(0)["predicted_step_s"].get<double>() == doctest::Approx(thorough.seconds()));
  plan p = thorough.plan;
  p.scratch = "eigen";
  write_plan(p, file);
  CHECK(run_tool({"check", file}).complains("the scratch space of eigen"));
  CHECK(run_tool({"show", file}).says("scratch space is not known here"));
}

TEST_CASE("rules: as many as are shipped, by kind and by family") {
  tool_run const r = run_tool({"rules", "--json"});
  CHECK(r.code == 0);
  core::json const all = r.events("rules").at(0);
  std::size_t kinds = 0, families = 0;
  for (auto const& [name, n] : all["kinds"].items()) kinds += n.get<std::size_t>();
  for (auto const& [name, n] : all["families"].items()) families += n.get<std::size_t>();
  CHECK(all["rules"] == rewrite::shipped_rules().size());
  CHECK(kinds == rewrite::shipped_rules().size());
  CHECK(families == rewrite::shipped_rules().size());
  CHECK(run_tool({"rules", "matmul", "--json"}).events("rule").size() > 10);
  CHECK(run_tool({"rules"}).says("by what they change"));
}
