// tests/report/critical_chain.test.cpp - what a step's time is made of: by hand, and for random plans, pipelines and memory savings
#include <tensorpar/report/critical_chain.hpp>
#include <doctest/doctest.h>

#include <report/report_subject.hpp>
#include <support/link_levels.hpp>
#include <support/random_pipeline.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/program/step_of.hpp>
#include <tensorpar/simulate/engine.hpp>

using namespace tensorpar;

namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

bool touches(task const& t, int b) {
  return t.workspace == b || std::find(t.in.begin(), t.in.end(), b) != t.in.end() || std::find(t.out.begin(), t.out.end(), b) != t.out.end();
}
/// Bytes of a device that a buffer takes: begin, end.
std::pair<i64, i64> bytes_on(program const& q, int b, int device) {
  buffer const& x = q.buffers[at(b)];
  for (std::size_t i = 0; i < x.devices.size(); ++i)
    if (x.devices[i] == device) return {x.offset[i], x.offset[i] + x.bytes};
  return {0, 0};
}
/// Does the later task wait for the earlier one on this device, by the words of `simulate`?
bool waits_on(program const& q, task const& a, int number, int device, report::chain_cause why) {
  task const& b = q.tasks[at(number)];
  bool reads = false, writes = false;
  for (int x = 0; x < static_cast<int>(q.buffers.size()); ++x) {
    bool const made = std::find(a.out.begin(), a.out.end(), x) != a.out.end(), used = touches(a, x);
    reads = reads || (made && std::find(b.in.begin(), b.in.end(), x) != b.in.end());
    if (!used) continue;
    auto const [p, r] = bytes_on(q, x, device);
    for (int y = 0; y < static_cast<int>(q.buffers.size()); ++y) {
      bool const filled = q.buffers[at(y)].first == number;        // an input
      if (y != b.workspace && std::find(b.out.begin(), b.out.end(), y) == b.out.end() && !(filled && touches(b, y))) continue;
      auto const [u, v] = bytes_on(q, y, device);
      writes = writes || x == y || (p < v && u < r);
    }
  }
  return why == report::chain_cause::data ? reads : writes;
}
/// Faults of a chain, or "".
std::string fault(program const& q, timeline const& t, bool simulated) {
  std::vector<report::chain_link> const c = report::critical_chain(q, t);
  if (c.empty()) return "no chain";
  double sum = 0, now = 0, end = 0;
  for (span const& x : t.spans) end = std::max(end, x.end);
  for (std::size_t i = 0; i < c.size(); ++i) {
    span const& x = t.spans[c[i].span];
    task const& b = q.tasks[at(x.task)];
    if (c[i].waiting < 0 || c[i].to < c[i].from) return "a length below zero";
    if (c[i].from != x.start || c[i].to > x.end) return "times that are not the span's";
    if (std::abs(now + c[i].waiting - c[i].from) > 1e-12 * t.seconds) return "a hole before link " + std::to_string(i);
    if (simulated && c[i].waiting != 0) return "a simulated task that waits for nothing";
    sum += c[i].waiting + (c[i].to - c[i].from);
    now = c[i].to;
    if ((c[i].cause == report::chain_cause::first) != (i == 0)) return "the first of the chain, and no other, waits for none";
    if (i == 0) continue;
    span const& before = t.spans[c[i - 1].span];
    task const& a = q.tasks[at(before.task)];
    if (before.task >= x.task) return "a task that waits for one behind it";
    bool real = false;
    for (span const& y : t.spans) {                  // of x's collective, the device on which the other ran
      if (y.task != x.task || y.start != x.start || y.device != before.device) continue;
      real = real || (c[i].cause == report::chain_cause::lane && y.where == before.where && y.link == before.link);
      real = real || ((c[i].cause == report::chain_cause::data || c[i].cause == report::chain_cause::memory) &&
                      waits_on(q, a, x.task, y.device, c[i].cause));
    }
    if (c[i].cause == report::chain_cause::message) real = b.kind == task_kind::receive && b.other_half == before.task;
    if (!real) return "link " + std::to_string(i) + " is none";
  }
  if (c.back().to != end) return "the chain does not end with the step";
  return std::abs(sum - end) <= 1e-9 * end ? "" : "lengths and waiting are not the step";
}

}  // namespace

TEST_CASE("by hand: lanes, data and waiting") {
  program q;
  q.tasks.resize(3);
  q.tasks[0].out = {0};
  q.tasks[1].kind = task_kind::reshard;
  q.tasks[1].step.kind = ir::reshard_kind::all_gather;
  q.tasks[1].in = {0}, q.tasks[1].out = {1};
  q.tasks[2].in = {1};
  q.buffers.resize(2);
  timeline t;
  t.spans = {{0, lane::compute, 0, "a", 1, 3}, {0, lane::compute, 2, "c", 7, 8}, {0, lane::communication, 1, "b", 3, 6}};
  t.seconds = 8;
  std::vector<report::chain_link> const c = report::critical_chain(q, t);
  REQUIRE(c.size() == 3);
  CHECK(c[0].span == 0);
  CHECK(c[0].waiting == 1);                        // from the start of the step
  CHECK(c[1].span == 2);
  CHECK(c[1].cause == report::chain_cause::data);
  CHECK(c[1].waiting == 0);
  CHECK(c[2].span == 1);
  CHECK(c[2].waiting == 1);
  CHECK(report::critical_chain(q, {}).empty());
  t.spans[1].task = 99;                            // of no task of the program
  CHECK(report::critical_chain(q, t).size() == 1);
}

TEST_CASE("lengths add up to the step, links are real: random plans, with and without overlap") {
  for (unsigned seed = 0; seed < 24; ++seed) {
    auto const s = tests::report_of(seed % 3 == 0   ? tests::small_transformer()
                                    : seed % 3 == 1 ? tests::residual_mlp()
                                                    : tests::small_cnn(),
                                    1 + static_cast<int>(seed % 6), seed, 1 + static_cast<int>(seed % 2));
    CAPTURE(seed);
    CHECK(fault(s.q, s.predicted, true) == "");
    CHECK(fault(s.q, simulate(s.q, s.p.cluster, cost::analytical{}, {.overlap = false}), true) == "");
    CHECK(fault(s.q, s.measured, false) == "");
  }
}

TEST_CASE("pipelines, recomputation, ZeRO and prefetched collectives") {
  std::mt19937 draw(5);
  int messages = 0, memory = 0;
  for (int turn = 0; turn < 60; ++turn) {
    computation_graph const g = turn % 2 ? tests::small_transformer() : tests::residual_mlp();
    plan p = tests::random_plan_of_a_kind(g, turn, draw);
    if (turn % 4 == 1 && p.pipeline.empty()) p.prefetch = 2;
    if (turn % 3 == 1) p.cluster = tests::on_link_levels(p.cluster);
    planned_step const s = step_of(g, p);
    timeline const t = simulate(s.program, p.cluster, cost::analytical{});
    CAPTURE(turn);
    CHECK(fault(s.program, t, true) == "");
    for (report::chain_link const& l : report::critical_chain(s.program, t)) {
      messages += l.cause == report::chain_cause::message;
      memory += l.cause == report::chain_cause::memory;
    }
  }
  CHECK(messages > 0);
  CHECK(memory > 0);
}

TEST_CASE("programs that list one of the devices that do the same") {
  std::mt19937 draw(8);
  for (int turn = 0; turn < 12; ++turn) {
    computation_graph const g = turn % 2 ? tests::small_transformer() : tests::residual_mlp();
    plan p = tests::serial_plan(g);
    p.cluster = tests::devices(8);
    for (int v = 0; v < g.node_count(); ++v) {
      ir::node_loop const* const rows = ir::space_of(g, v).find('0');
      bool const splits = turn % 3 && rows && rows->units % 4 == 0;
      p.nodes[at(v)].sharding = {0, {{splits ? '0' : '\0', 4, 2}, {'\0', 2, 1}}};
    }
    planned_step const s = step_to_simulate(g, p), whole = step_of(g, p);
    timeline const t = simulate(s.program, p.cluster, cost::analytical{}), all = simulate(whole.program, p.cluster, cost::analytical{});
    CAPTURE(turn);
    CHECK(t.spans.size() < all.spans.size());
    CHECK(fault(s.program, t, true) == "");
    CHECK(report::critical_chain(s.program, t).size() == report::critical_chain(whole.program, all).size());
  }
}

TEST_CASE("what a chain is made of adds up, the longest first, the same without a graph's help") {
  for (unsigned seed = 0; seed < 6; ++seed) {
    auto const s = tests::report_of(seed % 2 ? tests::residual_mlp() : tests::small_transformer(), 4, seed);
    std::vector<report::chain_link> const chain = report::critical_chain(s.q, s.predicted);
    report::chain_summary const sum = report::summary_of(chain, s.t.graph, s.q, s.predicted);
    CHECK(sum.computing + sum.communicating + sum.waiting == doctest::Approx(s.predicted.seconds));
    double all = 0;
    int tasks = 0;
    for (std::size_t i = 0; i < sum.parts.size(); ++i) {
      all += sum.parts[i].seconds;
      tasks += sum.parts[i].tasks;
      if (i > 0) CHECK(sum.parts[i].seconds <= sum.parts[i - 1].seconds);
    }
    CHECK(all == doctest::Approx(sum.computing + sum.communicating));
    CHECK(tasks == static_cast<int>(chain.size()));
    auto const names = [&](char const* what) {
      return std::any_of(sum.parts.begin(), sum.parts.end(), [&](report::chain_part const& p) { return p.what == what; });
    };
    CHECK(names("linear, backward"));
  }
  CHECK(report::summary_of({}, {}, {}, {}).parts.empty());
}
