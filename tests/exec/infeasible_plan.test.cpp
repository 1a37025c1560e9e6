// tests/exec/infeasible_plan.test.cpp - what a search leaves that found nothing is refused by whoever is handed it, with what is lacking
#include <tensorpar/plan/shortage.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <support/executors_once.hpp>
#include <support/search_once.hpp>
#include <support/small_graphs.hpp>
#include <tensorpar/exec/forward_pass.hpp>
#include <tensorpar/exec/step/step_for.hpp>
#include <tensorpar/plan/plan_file.hpp>
#include <tensorpar/program/evidence/certificate.hpp>
#include <tensorpar/report/page/html.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

namespace {

machine small(int n, i64 memory) { return make_cluster("small", {"d", 1e10, 1e9, memory, 1e-6}, n, n, {"in", n, 1e-6, 1e9}, {}); }
bool has(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }
std::string refusal(std::function<void()> const& f) {
  try {
    f();
  } catch (error const& e) {
    return e.what();
  }
  return "taken";
}

}  // namespace

TEST_CASE("every search that finds no plan x everything that takes a plan: device and bytes, whatever was asked") {
  computation_graph const g = tests::residual_mlp();
  machine const on = small(2, 2000);
  std::vector<std::pair<std::string, plan>> found;
  std::vector<shortage> lacks;
  auto const keep = [&](std::string const& who, auto const& r) {
    REQUIRE(!r.feasible());
    found.push_back({who, r.plan});
    lacks.push_back(*r.infeasible);
  };
  keep("optimize", optimize(g, on, cost::analytical{}));
  keep("optimize_jointly", optimize_jointly(g, on, cost::analytical{}));
  keep("one after the other", optimize_one_after_the_other(g, on, cost::analytical{}));
  keep("plan_training", plan_training({.graph = g, .samples = 24}, on, cost::analytical{}));
  keep("plan_training with rules", plan_training({.graph = g, .samples = 48}, on, cost::analytical{}, {.effort = effort::thorough}));
  graph_stage_options o;
  o.mini_batch = 48;
  std::vector<std::vector<int>> before;
  for (int v = 0; v < g.node_count(); ++v) before.push_back(g.predecessors(v));
  keep("fit_stages", fit_stages(before, g, on, graph_stages<cost::analytical>(g, on, cost::analytical{}, o)));
  training_graph const t = differentiate(g);
  program const some = unroll(t, tests::serial_plan(g));
  for (std::size_t k = 0; k < found.size(); ++k) {
    auto const& [who, p] = found[k];
    CAPTURE(who);
    std::string const wanted = "no plan fits: device " + std::to_string(lacks[k].device) + " lacks " + std::to_string(lacks[k].missing)
        + " bytes";
    auto const refused_by = [&](char const* what, std::function<void()> const& f) {
      CAPTURE(what);
      std::string const text = refusal(f);
      CHECK_MESSAGE(text.rfind(wanted, 0) == 0, text);
    };
    using float_executor = executor<compute::eigen<float>, comm::threads>;
    plan q = p;
    refused_by("unroll", [&] { unroll(t, p); });
    refused_by("unroll of one device", [&] { unroll(t, p, {.device = 0}); });
    refused_by("arena_on", [&] { arena_on(0, t, p); });
    refused_by("unroll of the forward pass", [&] { unroll(t, p, {.forward_only = true}); });
    refused_by("step_of", [&] { step_of(g, p); });
    refused_by("step_for", [&] { exec::step_for<compute::eigen<float>>(g, p); });
    refused_by("pipeline_pass", [&] { passes::pipeline_pass(g, p); });
    refused_by("memory_pass", [&] { passes::memory_pass(t, p); });
    refused_by("executor", [&] { float_executor(g, p); });
    refused_by("executor of a graph", [&] { float_executor(t, p); });
    refused_by("executor of a program", [&] { float_executor(planned_step{t, p, some}); });
    refused_by("seal", [&] { seal(g, q); });
    refused_by("rewritten", [&] { passes::rewritten(g, p); });
    refused_by("graph_of", [&] { graph_of(g, p, 24); });
    refused_by("one_device_plan", [&] { one_device_plan(g, p); });
    refused_by("fitting", [&] { fitting(t, p); });
    refused_by("encode", [&] { encode(p); });
    refused_by("write_plan", [&] { write_plan(p, "no_such_folder/plan.json"); });
    refused_by("summary_of", [&] { report::summary_of("", t, p, some, {}); });
    refused_by("html_report", [&] { report::html_report(t, p, some, {}); });
    refused_by("ordered", [&] { ordered(g, p, cost::analytical{}); });
    refused_by("greedy_order", [&] { greedy_order(t, p, cost::analytical{}); });
    refused_by("map_within", [&] { map_within(g, p, cost::analytical{}); });
    for (auto const& all : {check(t, p), check(t, p, some), check_forward(t, p, some), check_certificate(g, p)}) {
      REQUIRE(all.size() == 1);
      CHECK(all[0].text.rfind(wanted, 0) == 0);
    }
  }
}

TEST_CASE("plans say which training they are of where they are handed another one") {
  computation_graph const g = tests::residual_mlp();
  search_options o;
  o.model = "residual";
  o.optimizer.kind = optimizer_kind::adamw;
  o.micro_batches = 2;
  plan p = optimize(g, small(2, i64{1} << 30), cost::analytical{}, o).plan;
  CHECK(p.batch == 48);
  std::string const of = "it is of \"residual\", " + std::to_string(g.node_count())
      + " operators, 48 samples a step, 2 micro-batches, adamw; ";
  computation_graph const other = tests::small_cnn();
  std::string const given = "given is a graph of " + std::to_string(other.node_count()) + " operators on 12 samples";
  training_graph const t = differentiate(other, training_of(p));
  for (auto const& f : std::vector<std::function<void()>>{[&] { step_of(other, p); }, [&] { passes::rewritten(other, p); },
                                                          [&] { fitting(t, p); }})
    CHECK_MESSAGE(has(refusal(f), of + given), refusal(f));
  CHECK(has(refusal([&] { graph_of(tests::residual_mlp(), p, 50); }), "a batch of 50 for a plan of \"residual\""));
  seal(g, p);
  plan const back = decode(encode(p), "plan");
  CHECK(back == p);
  CHECK(back.batch == 48);
  core::json old = encode(p);                              // a file as it was written before plans said so
  plan without = p;
  without.batch = 0;
  CHECK(!encode(without).contains("batch"));
  CHECK(decode(encode(without), "plan").batch == 0);
  CHECK(without.hash() == p.hash());
}
