// tests/report/reason.test.cpp - a step's account adds up to it, and the reason names what makes the difference
#include <doctest/doctest.h>
#include <random>
#include <support/effort.hpp>
#include <support/random_pipeline.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/program/step_of.hpp>
#include <tensorpar/report/reason.hpp>
#include <tensorpar/simulate/engine.hpp>

using namespace tests;
using report::step_account;

TEST_CASE("computing, waiting for communication and idling add up to the step, of random plans and pipelines") {
  std::mt19937 draw(3);
  int again = 0;
  for (int i = 0; i < test_effort::cases(40); ++i) {
    CAPTURE(i);
    computation_graph const g = residual_mlp();
    plan p = i % 3 == 2 ? random_pipeline(g, {.devices = 2 + i % 4}, 1, 4, draw) : random_plan(g, 4, draw);
    if (p.pipeline.empty()) for (op_strategy& n : p.nodes) n.recompute = draw() % 2;
    planned_step const s = step_of(g, p);
    timeline const t = simulate(s.program, p.cluster, cost::analytical{});
    step_account const a = report::account_of(s, t);
    CHECK(a.seconds == t.seconds);
    CHECK(a.computing + a.exposed + a.waiting == doctest::Approx(a.seconds));
    for (double x : {a.computing, a.recomputing, a.exposed, a.waiting}) CHECK(x >= -1e-12);
    CHECK(a.recomputing <= a.computing * (1 + 1e-9));
    again += a.recomputing > 0;
    CHECK(report::reason_text(a, a) == "takes as long");
  }
  CHECK(again > 5);
}

TEST_CASE("the reason says what is longer, what of it is done again, and what is sent") {
  step_account a, b;
  a.seconds = 1;
  a.computing = 0.9;
  a.exposed = 0.1;
  b = a;
  b.seconds = 1.3;
  b.computing = 1.1;
  b.recomputing = 0.15;
  b.exposed = 0.2;
  b.bytes[static_cast<std::size_t>(ir::reshard_kind::all_gather)] = 3e9;
  std::string const text = report::reason_text(a, b);
  CHECK(text.rfind("takes 300 ms more: computes 200 ms longer (150 ms more of it again), waits 100 ms longer for communication", 0) == 0);
  CHECK(text.find("more by all-gather") != text.npos);
  CHECK(text.find("idles") == text.npos);
  std::string const back = report::reason_text(b, a);
  CHECK(back.rfind("takes 300 ms less: computes 200 ms shorter (150 ms less of it again), waits 100 ms shorter", 0) == 0);
  CHECK(back.find("less by all-gather") != back.npos);
}
