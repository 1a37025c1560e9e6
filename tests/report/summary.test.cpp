// tests/report/summary.test.cpp - what a plan comes to adds up, and is said with the model's own names
#include <tensorpar/report/summary.hpp>
#include <doctest/doctest.h>

#include <report/found_in.hpp>
#include <report/report_subject.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/program/send_early.hpp>
#include <tensorpar/simulate/engine.hpp>

using namespace tensorpar;
using tests::has;

TEST_CASE("a sharding is said with the names of axes") {
  computation_graph g;
  axis const batch("batch"), hidden("hidden");
  int const x = g.add_input("x", {batch(8), dim(6)});
  int const v = g.add_with_weights(linear{.out = 12, .to = hidden}, {x}, "fc");
  std::string const all = report::sharding_text(g, v, {0, {{'0', 2, 1}, {'o', 3, 2}, {'\0', 2, 6}}});
  CHECK(has(all, "batch /2"));
  CHECK(has(all, "/3"));
  CHECK(has(all, "2 copies"));
  CHECK(has(report::sharding_text(g, v, {0, {{'i', 2, 1}}}), "(summed) /2"));
  CHECK(report::sharding_text(g, v, {}) == "one device");
  CHECK(report::sharding_text(g, v, {0, {{'0', 2, 2}, {'0', 2, 1}}}) == "batch /4");
}

TEST_CASE("a summary adds up") {
  for (unsigned seed = 0; seed < 12; ++seed) {
    auto const s = tests::report_of(seed % 2 ? tests::residual_mlp() : tests::small_transformer(), seed % 3 ? 4 : 6, seed,
                                    1 + static_cast<int>(seed % 2));
    report::plan_summary const sum = report::summary_of("chosen", s.t, s.p, s.q, s.predicted);
    CHECK(sum.operators.size() == static_cast<std::size_t>(s.t.forward_nodes));
    double of_operators = 0, of_tasks = 0, compute = 0, busy = 0;
    i64 tasks = 0;
    for (report::operator_summary const& o : sum.operators) of_operators += o.sent();
    for (task const& k : s.q.tasks) {
      of_tasks += report::bytes_of_move(s.q, k);
      tasks += k.kind == task_kind::reshard;
    }
    for (i64 n : sum.times) tasks -= n;
    CHECK(tasks == 0);
    CHECK(of_tasks == doctest::Approx(sum.sent()));
    CHECK(of_operators == doctest::Approx(sum.sent()));              // without clipping, every reshard serves some forward operator
    for (report::device_summary const& d : sum.devices) { compute += d.compute + d.move; CHECK(d.compute <= sum.seconds * (1 + 1e-9)); }
    for (span const& x : s.predicted.spans) busy += x.end - x.start;
    CHECK(compute == doctest::Approx(busy));
    CHECK(sum.peak() == *std::max_element(s.q.arena.begin(), s.q.arena.end()));
  }
}

TEST_CASE("an exchange in two halves is one reshard") {
  for (computation_graph const& g : {tests::residual_mlp(), tests::small_transformer()}) {
    training_graph const t = differentiate(g, {});
    plan p = tests::serial_plan(g);
    p.cluster = tests::devices(2);
    for (int v = g.node_count() / 2; v < g.node_count(); ++v) p.nodes[static_cast<std::size_t>(v)].sharding = {1, {}};
    program const q = unroll(t, p);
    program early = q;
    passes::send_early(early);
    report::plan_summary const whole = report::summary_of("", t, p, q, simulate(q, p.cluster, cost::analytical{})),
                       halves = report::summary_of("", t, p, early, simulate(early, p.cluster, cost::analytical{}));
    int split = 0;
    for (task const& k : early.tasks) {
      if (k.kind != task_kind::send && k.kind != task_kind::receive) continue;
      ++split;
      CHECK(report::communicates(k));
    }
    CHECK(split >= 4);                                     // there and back
    CHECK(whole.sent() > 0);
    CHECK(halves.bytes == whole.bytes);
    CHECK(halves.times == whole.times);
    for (std::size_t o = 0; o < whole.operators.size(); ++o) CHECK(halves.operators[o].bytes == whole.operators[o].bytes);
    for (std::size_t d = 0; d < whole.devices.size(); ++d) CHECK(halves.devices[d].compute == doctest::Approx(whole.devices[d].compute));
  }
}

TEST_CASE("attributes that are empty are left out") {
  CHECK(report::op_text(linear{512}) == "linear{out=512,bias=1}");
  CHECK(report::op_text(linear{.out = 10, .to = axis("classes")}) == "linear{out=10,bias=1,to=classes}");
  CHECK(report::op_text(relu{}) == "relu");
  CHECK(report::op_text(contraction("mk,kn->mn")) == "contraction{mk,kn->mn}");
}

TEST_CASE("what dominates follows the tasks, with and without overlap") {
  auto const s = tests::report_of(tests::residual_mlp(), 4, 3);
  timeline const one_lane = simulate(s.q, s.p.cluster, cost::analytical{}, {.overlap = false});
  report::plan_summary const two = report::summary_of("", s.t, s.p, s.q, s.predicted),
      one = report::summary_of("", s.t, s.p, s.q, one_lane);
  CHECK(two.sent() > 0);
  for (std::size_t d = 0; d < one.devices.size(); ++d) {
    CHECK(one.devices[d].move == doctest::Approx(two.devices[d].move));
    CHECK(one.devices[d].compute == doctest::Approx(two.devices[d].compute));
  }
  // by hand: two tasks on one device, 3 s of computing and 1 s of talking
  program q = s.q;
  q.tasks.clear();
  task work, talk;
  work.node = 2;
  talk.kind = task_kind::reshard;
  talk.step.kind = ir::reshard_kind::all_gather;
  q.tasks = {work, talk};
  timeline time;
  time.spans = {{1, lane::compute, 0, "work", 0, 3}, {1, lane::compute, 1, "talk", 3, 4}};
  time.seconds = 4;
  CHECK(report::summary_of("", s.t, s.p, q, time).dominated ==
        "computation: device 1 computes for 75 % of the step, most of it for fc2 (3.00 s); it communicates for 25 %, most of it in "
        "all-gather (1.00 s)");
}

TEST_CASE("what a device lacks, and what holds anything") {
  report::plan_summary s;
  s.devices = {{0, 0, 100, 80}, {0, 0, 90, 60}, {0, 0, 1000, 0}};
  CHECK(s.peak() == 1000);
  CHECK(s.lacks() == 30);
  s.devices = {{0, 0, 100, 100}};
  CHECK(s.lacks() == 0);
}
