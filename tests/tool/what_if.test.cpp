// tests/tool/what_if.test.cpp - changes read from text; the same plan repriced equals a fresh simulation on the changed machine
#include <tensorpar/tool/what_if.hpp>

#include <doctest/doctest.h>
#include <random>
#include <support/scratch_folder.hpp>
#include <tensorpar/tool/repriced.hpp>

#include "tool_run.hpp"

using namespace tensorpar;
using namespace tests;

namespace {

tools::subject small_subject(std::string const& cluster) {
  tools::settings s;
  s.model = small_model;
  s.cluster = cluster;
  s.batch = 48;
  s.effort = "quick";
  s.threads = 1;
  return tools::subject_of(s, std::nullopt);
}

}  // namespace

TEST_CASE("changes of links by the beginning of a name, of memory and of rates") {
  machine const on = preset("dgx_h100:2");
  auto const changed = [&](std::string const& text) { return tools::changed_machine(tools::parse_what_if(text), on); };
  CHECK(changed("link:NDR*2").links[1].bandwidth == 2 * on.links[1].bandwidth);
  CHECK(changed("link:ndr*2").links[0] == on.links[0]);
  CHECK(changed("link:nvs/4").links[0].bandwidth == on.links[0].bandwidth / 4);
  CHECK(changed("link*2").links[0].bandwidth == 2 * on.links[0].bandwidth);
  CHECK(changed("link:NDR=100GB/s").links[1].bandwidth == 100e9);
  CHECK(changed("link:NDR=800Gbit/s").links[1].bandwidth == doctest::Approx(100e9));
  CHECK(changed("latency:NDR=2us").links[1].latency == doctest::Approx(2e-6));
  CHECK(changed("memory*0.5").kinds[0].memory == on.kinds[0].memory / 2);
  CHECK(changed("memory=40GiB").kinds[0].memory == i64{40} << 30);
  CHECK(changed("memory-bandwidth*2").kinds[0].memory_bandwidth == 2 * on.kinds[0].memory_bandwidth);
  CHECK(changed("flops*2").kinds[0].flops == 2 * on.kinds[0].flops);
  CHECK(changed("flops*2").kinds[0].rates.fp8 == 2 * on.kinds[0].rates.fp8);
  CHECK(format_of(changed("flops*1.7").kinds[0]) == format_of(on.kinds[0]));
  CHECK(changed("link:NDR*2,link:NDR*0.5") == on);
}

TEST_CASE("more or fewer devices: nodes like those that are there") {
  auto const with = [](std::string const& cluster, i64 n) { return tools::with_devices(preset(cluster), n); };
  CHECK(with("dgx-h100:8", 128) == preset("dgx-h100:16"));
  CHECK(with("dgx-h100:1", 16) == preset("dgx-h100:2"));
  CHECK(with("dgx-h100:8", 64) == preset("dgx-h100:8"));
  CHECK(with("dgx-h100:8", 8).links.size() == 1);
  CHECK(with("dgx-h100:8", 8).size() == 8);
  CHECK_THROWS_AS(with("dgx-h100:8", 100), tools::usage_error);
  CHECK_THROWS_AS(with("autodist-b10", 100), tools::usage_error);
  machine mine = preset("dgx-h100:8");
  mine.kinds[0].memory /= 2;                                      // no preset any more
  machine const more = tools::with_devices(mine, 128);
  CHECK(more.size() == 128);
  CHECK(more.kinds == mine.kinds);
  CHECK(more.links.back().group == 128);
  CHECK_THROWS_AS(tools::with_devices(mine, 100), tools::usage_error);
}

TEST_CASE("what is no change is refused with what would be one") {
  for (std::string const text : {"", "memory", "memory*", "*2", "memory*-1", "memory*0", "memory*x", "memory=3parsecs", "batch*2", "batch=1.5",
                                 "precision=f23", "optimizer=adam", "memory:x*2", "link:NDR*2,", "memory*inf", "memory*nan", "gpus=1e99"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(tools::parse_what_if(text), tools::usage_error);
  }
  CHECK_THROWS_AS(tools::changed_subject(tools::parse_what_if("batch=50,micro-batches=4"), small_subject("logical-2x2")), tools::usage_error);
  CHECK(tools::parse_what_if("link:NDR*2,memory*0.5").needs_search() == false);
  for (std::string const text : {"gpus=8", "batch=8", "precision=fp8", "optimizer=sgd", "micro-batches=2", "memory*2,batch=8"})
    CHECK(tools::parse_what_if(text).needs_search());
  tools::subject const x = tools::changed_subject(tools::parse_what_if("batch=96,optimizer=sgd,micro-batches=3,gpus=2,memory*2"), small_subject("logical-2x2"));
  CHECK(x.asked.samples == 96);
  CHECK(x.asked.optimizer.kind == optimizer_kind::sgd);
  CHECK(x.options.micro_batches == std::vector{3});
  CHECK(x.on.size() == 2);
  CHECK(x.on.kinds[0].memory == 2 * kinds::logical().memory);
}

TEST_CASE("the same plan repriced is what a fresh simulation of it on the changed machine takes") {
  std::mt19937 random(3);
  auto const factor = [&] { return std::to_string(0.25 + static_cast<double>(random() % 400) / 100); };
  for (std::string const cluster : {"logical-2x2", "summit:1", "autodist-b10"}) {
    tools::subject const x = small_subject(cluster);
    for (effort const how : {effort::quick, effort::normal}) {
      planning_options o = x.options;
      o.effort = how;
      planned const found = plan_training(x.asked, x.on, cost::analytical{}, o);
      REQUIRE(found.feasible());
      tools::step_again const again(found.graph, found.plan);
      CHECK(again.on(found.plan.cluster).seconds == doctest::Approx(found.seconds()).epsilon(1e-12));
      for (int k = 0; k < 4; ++k) {
        std::string const text = "link*" + factor() + ",latency*" + factor() + ",memory*" + factor() + ",flops*" + factor() +
                                 ",memory-bandwidth*" + factor();
        CAPTURE(text);
        plan changed = found.plan;
        changed.cluster = tools::changed_machine(tools::parse_what_if(text), found.plan.cluster);
        planned_step const fresh = step_of(found.graph, changed);
        tools::repriced const r = again.on(changed.cluster);
        CHECK(r.seconds == doctest::Approx(simulate(fresh.program, changed.cluster, cost::analytical{}).seconds).epsilon(1e-12));
        i64 lacks = 0;
        for (int d = 0; d < changed.cluster.size(); ++d)
          lacks = std::max(lacks, fresh.program.arena[static_cast<std::size_t>(d)] - changed.cluster.kind_of(d).memory);
        CHECK(r.lacks == lacks);
      }
    }
  }
  cost::analytical const model;                                    // a pipeline, too
  planning_options const o{.schedules = std::vector{search::schedule_kind::one_f_one_b}, .threads = 1};
  machine const two = logical_nodes(2, 1);
  planned const found = tensorpar::detail::plan_search<cost::analytical>(small_subject("logical:2").asked, two, model, o).pipelines();
  REQUIRE_FALSE(found.plan.pipeline.empty());
  plan changed = found.plan;
  changed.cluster = tools::changed_machine(tools::parse_what_if("link*0.3,flops*2"), two);
  CHECK(tools::step_again(found.graph, found.plan).on(changed.cluster).seconds ==
        doctest::Approx(simulate(step_of(found.graph, changed).program, changed.cluster, model).seconds).epsilon(1e-12));
  CHECK_THROWS_AS(tools::step_again(found.graph, found.plan).on(logical(4)), error);
}

TEST_CASE("answers say whether it is the same plan, and searches only where it must") {
  tool_run const r = run_line(plan_line("--json --what-if link:slow*4 --what-if memory=1MB --what-if batch=96,gpus=2 --what-if memory=1000"));
  REQUIRE(r.code == 0);
  std::vector<core::json> const all = r.events("what_if");
  REQUIRE(all.size() == 4);
  double const step = r.events("plan").at(0)["predicted_step_s"].get<double>();
  CHECK(all[0]["same_plan"] == true);
  CHECK(all[0]["step_s"].get<double>() <= step);
  CHECK(all[0]["lacks_bytes"] == 0);
  CHECK(all[3]["lacks_bytes"].get<i64>() > 0);
  CHECK(all[3]["step_s"].get<double>() == doctest::Approx(step));
  CHECK(all[2]["same_plan"] == false);
  CHECK(all[2]["effort"] == "quick");
  tools::subject x = tools::changed_subject(tools::parse_what_if("batch=96,gpus=2"), small_subject("logical-2x2"));
  x.asked.optimizer.kind = optimizer_kind::adamw;
  CHECK(all[2]["step_s"].get<double>() == doctest::Approx(plan_training(x.asked, x.on, cost::analytical{}, x.options).seconds()));
  tool_run const text = run_line(plan_line("--what-if link:slow*4 --what-if batch=96 --what-if memory=1000"));
  CHECK(text.says("what if link:slow*4: the same plan would take "));
  CHECK(text.says("without a search"));
  CHECK(text.says("what if batch=96: a plan of its own would take "));
  CHECK(text.says("but it would not fit: device "));
  tool_run const anew = run_line(plan_line("--json --micro-batches 1 --what-if memory=1000 --what-if-effort quick"));
  CHECK(anew.events("what_if").at(0)["fits"] == false);
}
