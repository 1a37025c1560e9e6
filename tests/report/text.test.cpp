// tests/report/text.test.cpp - explanations say what the program does
#include <doctest/doctest.h>

#include <report/found_in.hpp>
#include <report/report_subject.hpp>
#include <sstream>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/program/step_of.hpp>
#include <tensorpar/report/text.hpp>
#include <tensorpar/simulate/engine.hpp>

using namespace tensorpar;
using tests::has;

namespace {
std::size_t lines(std::string const& s) { return static_cast<std::size_t>(std::count(s.begin(), s.end(), '\n')); }
}  // namespace

TEST_CASE("an explanation names every operator, collective and device") {
  auto const s = tests::report_of(tests::residual_mlp(), 4, 3);
  std::string const text = report::explain(s.t, s.p, s.q, s.predicted);
  report::plan_summary const sum = report::summary_of("", s.t, s.p, s.q, s.predicted);
  for (report::operator_summary const& o : sum.operators) { CHECK(has(text, o.name)); CHECK(has(text, o.sharding)); }
  for (int k = 0; k < report::move_kinds; ++k)
    if (sum.bytes[static_cast<std::size_t>(k)] > 0) CHECK(has(text, report::move_text(static_cast<ir::reshard_kind>(k)) + " "));
  CHECK(has(text, "predicted step " + report::seconds_text(s.predicted.seconds)));
  CHECK(has(text, "dominated by comp") != has(text, "dominated by comm"));
  CHECK(has(text, "peak memory"));
  CHECK(has(text, "weights "));
  CHECK(has(text, "communicates and computes nothing") == (report::exposed_communication(s.q, s.predicted).exposed > 0));
  report::plan_summary in_words = report::summary_of("", s.t, s.p, s.q, s.predicted);
  in_words.strategy = "in words";
  CHECK(has(report::explain(in_words), "\n  in words\n"));
  CHECK(text.back() == '\n');
  plan q = s.p;
  q.bound = 0.9;
  q.cost = 1;
  CHECK(has(report::explain(s.t, q, s.q, s.predicted), "gap 10.0 %"));
  CHECK(!has(text, "own order"));
  for (std::size_t v = 0; v < q.nodes.size(); ++v) q.node_order.push_back(static_cast<int>(v));
  CHECK(has(report::explain(s.t, q, s.q, s.predicted), ", operators in the plan's own order\n"));
}

TEST_CASE("many operators share lines") {
  auto const s = tests::report_of(tests::hostile_names(300), 1, 1);
  std::string const text = report::explain(s.t, s.p, s.q, s.predicted);
  CHECK(lines(text) < 30);
  std::istringstream in(text);  // rows by their words: the widths of the columns are the table's business
  int found = 0;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string count, times, op;
    words >> count >> times >> op;
    if (times != "x") continue;
    ++found;
    CHECK((op == "relu" ? count == "200" : op == "add" && count == "100"));
  }
  CHECK(found == 2);
  CHECK(has(text, "contraction{bi,io->bo}"));  // not as packed words
}

TEST_CASE("a plan without a timeline is still explained") {
  auto const s = tests::report_of(tests::residual_mlp(), 2, 5);
  CHECK(has(report::explain(s.t, s.p, s.q, timeline{}), "nothing was timed"));
}

TEST_CASE("one operator, and the same text every time") {
  auto const s = tests::report_of(tests::one_operator(), 2, 5);
  std::string const text = report::explain(s.t, s.p, s.q, s.predicted);
  CHECK(has(text, "only"));
  CHECK(has(text, "nothing"));  // is moved
  auto const a = tests::report_of(tests::small_cnn(), 4, 9), b = tests::report_of(tests::small_cnn(), 4, 9);
  CHECK(report::explain(a.t, a.p, a.q, a.predicted) == report::explain(b.t, b.p, b.q, b.predicted));
  CHECK(report::explain(report::plan_summary{}).find("dominated") != std::string::npos);
}

TEST_CASE("progress") {
  CHECK(report::progress_line({3, 12, 0.25, 0.975, 1234.4, 2e-3, 1.6e-3}) ==
        "epoch 3/12  loss 0.2500  accuracy 97.50 %  1234 samples/s  step 2.00 ms (predicted 1.60 ms, +25 %)");
  CHECK(report::progress_line({1, 1, 2, -1, 10, 1, 0}) == "epoch 1/1  loss 2.0000  10 samples/s  step 1.00 s");
}

TEST_CASE("settings and bounds in words") {
  report::plan_summary s;
  CHECK(report::settings_text(s) == "1 micro-batch, collectives start where they are needed");
  s.micro_batches = 3;
  s.prefetch = 2;
  s.operators.resize(3);
  s.operators[0].choice.recomputed = s.operators[1].choice.recomputed = true;
  s.operators[2].choice.zero = ir::zero_stage::weights;
  CHECK(report::settings_text(s) ==
        "3 micro-batches, collectives start 2 operators ahead, 2 operators computed again, ZeRO at 1 operator");
  CHECK(report::bound_text(s) == "");
  s.bound = 1;
  CHECK(report::bound_text(s) == "");                            // an estimate is needed to tell a gap
  s.cost = 2;
  CHECK(report::bound_text(s).starts_with("the search's estimate, without overlap: 2.00 s; no plan of its space"));
  CHECK(report::bound_text(s).ends_with("is below 1.00 s (gap 50.0 %)"));
  s.of_steps = true;
  CHECK(report::bound_text(s).starts_with("no step whose operators run on all these devices or on the first alone is below 1.00 s"));
  CHECK(report::bound_text(s).ends_with("(gap 50.0 %)"));
  s.recomputing = 0.5;
  s.communication.exposed = 0.25;
  CHECK(report::bound_text(s).ends_with("(gap 50.0 %; 500 ms are recomputation for want of memory; 250 ms are communication that nothing covers)"));
  s.cost = 1.04;                                                 // of small gaps nothing is said
  CHECK(report::bound_text(s).ends_with("(gap 3.8 %)"));
  s.cost = 0;                                                    // stages
  s.of_steps = false;
  CHECK(report::bound_text(s) == "");
  s.seconds = 2;
  CHECK(report::bound_text(s).starts_with("no step of these operators is below 1.00 s, in any stages, if no device ever waited (gap 50.0 %; 500 ms are recomp"));
}

TEST_CASE("what is computed again is summed by device, and the most of it is told") {
  computation_graph const g = tests::residual_mlp();
  plan p = tests::serial_plan(g);
  auto const recomputing = [&] {
    planned_step const x = step_of(g, p);
    timeline const t = simulate(x.program, p.cluster, cost::analytical{});
    double again = 0;
    for (span const& s : t.spans) {
      task const& k = x.program.tasks[static_cast<std::size_t>(s.task)];
      if (k.kind == task_kind::compute && k.node >= 0 && x.graph.graph.node(k.node).recomputed) again += s.end - s.start;
    }
    CHECK(report::summary_of("x", x.graph, x.plan, x.program, t).recomputing == doctest::Approx(again));
    return again;
  };
  CHECK(recomputing() == 0);
  p.nodes[1].recompute = p.nodes[3].recompute = true;
  CHECK(recomputing() > 0);
}

TEST_CASE("a gap is nothing only where the bound is reached") {
  CHECK(report::gap_text(1, 1) == "0 %");
  CHECK(report::gap_text(1, 1 - 1e-9) == "0 %");                                   // sums in another order
  CHECK(report::gap_text(1, 1 - 1e-6) == "below 0.1 %");
  CHECK(report::gap_text(1, 0.9996) == "below 0.1 %");
  CHECK(report::gap_text(1, 0.9994) == "0.1 %");
  CHECK(report::gap_text(2, 1) == "50.0 %");
}
