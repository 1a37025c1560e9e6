// tests/tool/plan_command.test.cpp - `plan` and `compare` tell what the library answers; progress; the caller's own graph
#include <tensorpar/tool/plan_command.hpp>

#include <doctest/doctest.h>
#include <support/scratch_folder.hpp>
#include <tensorpar/tool/compare_command.hpp>
#include <tensorpar/tool/outcome.hpp>
#include <tensorpar/tool/progress.hpp>
#include <tensorpar/tool/standard_output.hpp>
#include <tensorpar/tool/tool.hpp>

#include "tool_run.hpp"

using namespace tensorpar;
using namespace tests;

namespace {

planned answer(i64 batch = 48) {
  training_problem const asked{.graph = zoo::make(small_model, 1), .samples = batch, .optimizer = {optimizer_kind::adamw}, .name = small_model};
  return plan_training(asked, preset("logical-2x2"), cost::analytical{}, {.effort = effort::quick, .threads = 1});
}

}  // namespace

TEST_CASE("the plan that is written is the library's, and every JSON line says what it comes to") {
  scratch_folder const folder;
  std::string const file = folder.path() + "/plan.json", page = folder.path() + "/page.html";
  tool_run const r = run_line(plan_line("--json --out " + file + " --html " + page));
  REQUIRE(r.code == 0);
  planned const wanted = answer();
  CHECK(read_plan(file) == wanted.plan);
  CHECK(r.events("tried").size() == wanted.tried.size());
  core::json const plan = r.events("plan").at(0);
  CHECK(plan["predicted_step_s"].get<double>() == doctest::Approx(wanted.seconds()));
  CHECK(plan["peak_bytes"].get<i64>() == *std::max_element(wanted.arena().begin(), wanted.arena().end()));
  CHECK(plan["strategy"] == report::strategy_text(wanted.graph, wanted.plan));
  CHECK(plan["samples_per_s"].get<double>() == doctest::Approx(48 / wanted.seconds()));
  i64 kinds = 0;
  for (auto const& [kind, bytes] : plan["memory_bytes"].items()) kinds += bytes.get<i64>();
  CHECK(kinds <= plan["peak_bytes"].get<i64>());
  CHECK(kinds > 0);
  std::string const html = bytes_of_file(page);
  CHECK(html.find(plan["strategy"].get<std::string>()) != html.npos);
  CHECK(html.find("tensorpar plan --model") != html.npos);
  CHECK(r.err.empty());                                       // a short search says nothing to a file
}

TEST_CASE("moments, gradients and masters in bf16 are said, stored, checked and counted") {
  scratch_folder const folder;
  std::string const file = folder.path() + "/plan.json", other = folder.path() + "/other.json";
  tool_run const wide = run_line(plan_line("--precision bf16 --json --out " + other));
  tool_run const narrow = run_line(plan_line("--precision bf16 --moments bf16 --gradients bf16 --masters bf16 --json --out " + file));
  REQUIRE(wide.code == 0);
  REQUIRE(narrow.code == 0);
  plan const p = read_plan(file);
  CHECK(p.optimizer == optimizer_choice{.kind = optimizer_kind::adamw, .moments = dtype::bf16, .gradients = dtype::bf16, .masters = dtype::bf16});
  CHECK(read_plan(other).optimizer == optimizer_choice{.kind = optimizer_kind::adamw});
  auto const bytes = [](tool_run const& r, char const* kind) { return r.events("plan").at(0)["memory_bytes"][kind].get<i64>(); };
  CHECK(bytes(narrow, "optimizer") * 5 < bytes(wide, "optimizer") * 2);          // 4 bytes a weight instead of 12, and what is rounded up
  CHECK(run_line(plan_line("--precision bf16 --moments bf16")).says(" TFLOP/s as given, moments in bf16\n"));
  CHECK(run_line("check " + file).code == 0);
  CHECK(run_line("simulate " + file).code == 0);
  tool_run const shown = run_line("show " + file), apart = run_line("diff " + file + " " + other);
  CHECK(shown.says("moments in bf16, gradients in bf16, no masters"));
  CHECK(apart.says("moments"));
  CHECK(apart.says("gradients"));
  CHECK(apart.says("masters"));
}

TEST_CASE("links of different levels in lanes of their own, where the command line or the cluster says so") {
  scratch_folder const folder;
  std::string const file = folder.path() + "/plan.json", cluster = folder.path() + "/cluster.json";
  REQUIRE(run_line(plan_line("--lane-per-link --out " + file)).code == 0);
  machine wanted = preset("logical-2x2");
  wanted.lane_per_link = true;
  CHECK(read_plan(file).cluster == wanted);
  CHECK(run_line("show " + file).says("a lane of communication per level of links"));
  CHECK(run_line("check " + file).code == 0);
  write_cluster(wanted, cluster);
  REQUIRE(run_line("plan --model " + std::string(small_model) + " --batch 48 --effort quick --threads 1 --cluster " + cluster + " --out " + file).code == 0);
  CHECK(read_plan(file).cluster == wanted);
  wanted = preset("dgx-h100:4");
  wanted.lane_per_link = true;
  CHECK(tools::with_devices(wanted, 64).lane_per_link);
  CHECK(tools::with_devices(wanted, 64).name == "dgx-h100:8");
  CHECK(tools::with_devices(wanted, 8).lane_per_link);
}

TEST_CASE("the text names strategy, step, throughput, MFU, bound, memory by kind, and what was compared") {
  tool_run const r = run_line(plan_line());
  REQUIRE(r.code == 0);
  planned const wanted = answer();
  for (std::string const& text : {report::strategy_text(wanted.graph, wanted.plan), "predicted step " + report::seconds_text(wanted.seconds()),
                                  std::string(" samples/s"), std::string("(MFU)"), std::string("(gap "), std::string("weights "),
                                  std::string("of which it computes nothing for"), std::string("compared (* is the plan)")}) {
    CAPTURE(text);
    CHECK(r.says(text));
  }
}

TEST_CASE("no plan that fits ends with 3, in words and in JSON") {
  for (bool const json : {false, true}) {
    tool_run const r = run_line("plan --model gpt3_175b:layers=2 --cluster logical:2 --batch 2 --effort quick" + std::string(json ? " --json" : ""));
    CHECK(r.code == 3);
    if (json) CHECK(r.events("infeasible").at(0)["lacks_bytes"].get<i64>() > 0);
    else CHECK(r.says("it lacks "));
  }
}

TEST_CASE("compare: the plan beside rivals with reasons, and a sentence on which wins") {
  tool_run const r = run_line("compare --model " + small_model + " --cluster logical-2x2 --batch 48 --effort quick --json");
  REQUIRE(r.code == 0);
  double const step = r.events("plan").at(0)["predicted_step_s"].get<double>();
  std::vector<core::json> const rivals = r.events("rival");
  CHECK(rivals.size() == 4);
  for (core::json const& x : rivals) {
    CAPTURE(x.dump());
    if (x["step_s"].get<double>() > 0) CHECK(x["relative"].get<double>() == doctest::Approx(x["step_s"].get<double>() / step));
    CHECK_FALSE(x["reason"].get<std::string>().empty());
  }
  CHECK(r.events("verdict").at(0)["text"].get<std::string>().find("tensorpar's plan") != std::string::npos);
  tool_run const text = run_line("compare --model " + small_model + " --cluster logical-2x2 --batch 48 --effort quick");
  for (char const* name : {"DDP", "ZeRO-2", "FSDP", "Megatron", "why not", "strategies", "tensorpar's plan"}) CHECK(text.says(name));
}

TEST_CASE("a graph of one's own: no model is asked for, and its files are explained with it") {
  scratch_folder const folder;
  std::string const file = folder.path() + "/plan.json";
  tools::own_model const own{zoo::make(small_model, 1), "mine"};
  std::vector<std::string> const line{"plan", "--cluster", "logical:2", "--batch", "8", "--effort", "quick", "--out", file};
  tool_run const r = run_tool(line, false, own);
  REQUIRE(r.code == 0);
  CHECK(r.says("mine on logical:2"));
  CHECK(read_plan(file).model == "mine");
  CHECK(run_tool({"check", file}, false, own).code == 0);
  CHECK(run_tool({"check", file}).code == 1);                                      // the zoo has none of that name
  CHECK(run_tool({"show", file}).says("its operators cannot be told"));
  CHECK(run_tool({"show", file}, false, own).says("linear"));
  CHECK(run_tool({"plan", "--model", "dlrm", "--cluster", "logical:2"}, false, own).complains("no flag --model"));
  CHECK(run_tool({"plan", "--help"}, false, own).says("Example: tensorpar plan --cluster"));
  CHECK(run_tool({"plan", "--cluster", "logical:2"}, false, own).says("2 samples a step"));
}

TEST_CASE("progress: one line on a terminal, wiped at the end; none where it is quiet; lines elsewhere after a pause") {
  tool_run const r = run_line(plan_line(), true);
  CHECK(r.complains("\r\x1b[Ktensorpar: 0 s, "));
  CHECK(r.complains("best so far"));
  CHECK(r.complains("plans left"));
  CHECK(r.err.ends_with("\r\x1b[K"));
  CHECK(r.err.find('\n') == r.err.npos);
  CHECK(run_line(plan_line("--quiet"), true).err.empty());
  std::ostringstream out, err;
  {
    tools::search_progress p({out, err, false}, false, std::chrono::milliseconds(1));
    p.looks_at("shardings", 2);
    tried_plan one;
    one.what = "slow";
    one.seconds = 2;
    p.tried(one);
    one.what = "fast";
    one.seconds = 1;
    p.tried(one);
    one.seconds = 0.5;
    one.infeasible.emplace();
    p.tried(one);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  std::string const all = err.str();
  CHECK(all.find("shardings; 3 plans compared, best so far 1.00 s (fast); 2 kinds of plans left\n") != all.npos);
  CHECK(all.find('\r') == all.npos);
  CHECK(out.str().empty());
}

TEST_CASE("the entry returns the exit code of its command line") {
  std::string words[] = {"tensorpar", "pln"};
  char* argv[] = {words[0].data(), words[1].data(), nullptr};
  CHECK(tool(2, argv) == 2);
  CHECK(tool(2, argv, zoo::make(small_model, 1), "mine") == 2);
}
