// tests/report/chrome_trace.test.cpp - valid trace events: every span of both timelines once, lanes named, memory as counters
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <report/report_subject.hpp>
#include <support/random_pipeline.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/program/step_of.hpp>
#include <tensorpar/report/chrome_trace.hpp>
#include <tensorpar/simulate/engine.hpp>

using namespace tensorpar;

TEST_CASE("every span of both timelines is there once, with its times") {
  auto const s = tests::report_of(tests::hostile_names(30), 4, 7, 2);
  core::json const trace = core::parse_json(report::chrome_trace(s.predicted, &s.measured), "trace.json");
  std::map<int, std::vector<core::json>> spans;
  std::map<std::pair<int, int>, std::string> threads;
  std::size_t counters = 0;
  for (core::json const& e : trace["traceEvents"]) {
    std::string const ph = e["ph"];
    REQUIRE((ph == "X" || ph == "M" || ph == "C"));
    if (ph == "X") spans[e["pid"]].push_back(e);
    if (ph == "M" && e["name"] == "thread_name") threads[{e["pid"], e["tid"]}] = e["args"]["name"];
    counters += ph == "C";
  }
  CHECK(counters == s.predicted.memory.size() + s.measured.memory.size());
  CHECK(counters > 0);
  for (auto const& [pid, time] : std::map<int, timeline const*>{{1, &s.predicted}, {2, &s.measured}}) {
    REQUIRE(spans[pid].size() == time->spans.size());
    for (std::size_t i = 0; i < time->spans.size(); ++i) {
      span const& x = time->spans[i];
      core::json const& e = spans[pid][i];
      CHECK(e["name"] == x.name);
      CHECK(std::abs(e["ts"].get<double>() - x.start * 1e6) <= 0.000501);  // to the nanosecond
      CHECK(std::abs(e["dur"].get<double>() - (x.end - x.start) * 1e6) <= 0.00101);
      CHECK(threads[{pid, e["tid"].get<int>()}] ==
            "device " + std::to_string(x.device) + (x.where == lane::compute ? " compute" : " communication"));
    }
  }
}

TEST_CASE("spans of a lane that do not overlap do not overlap in the trace, to the last digit") {
  std::mt19937 draw(1);
  timeline t;
  double now = 0;
  for (int i = 0; i < 500; ++i) {
    double const end = now + static_cast<double>(draw() % 4000) * 1e-12;
    t.spans.push_back({0, lane::compute, i, "x", now, end});
    now = end;
  }
  core::json const trace = core::parse_json(report::chrome_trace(t), "trace.json");
  long long last = 0;
  for (core::json const& e : trace["traceEvents"]) {
    if (e["ph"] != "X") continue;
    long long const from = std::llround(e["ts"].get<double>() * 1000), length = std::llround(e["dur"].get<double>() * 1000);
    CHECK(from >= last);
    CHECK(length >= 0);
    last = from + length;
  }
  auto const a = tests::report_of(tests::hostile_names(9), 3, 2), b = tests::report_of(tests::hostile_names(9), 3, 2);
  CHECK(report::chrome_trace(a.predicted, &a.measured) == report::chrome_trace(b.predicted, &b.measured));
}

TEST_CASE("a single or empty timeline is valid too") {
  CHECK(core::parse_json(report::chrome_trace({}), "trace.json")["traceEvents"].size() == 2);
  timeline t;
  t.spans.push_back({0, lane::compute, 0, "\xff not utf-8", 0, 1});
  CHECK(core::parse_json(report::chrome_trace(t), "trace.json")["traceEvents"].size() == 5);
}

TEST_CASE("a thread for each level of links that has a lane of its own") {
  timeline t;
  t.spans = {{0, lane::compute, 0, "a", 0, 1, 0}, {0, lane::communication, 1, "b", 0, 1, 0}, {1, lane::compute, 0, "a", 0, 1, 0},
             {1, lane::communication, 2, "c", 0, 1, 1}};
  core::json const j = core::parse_json(report::chrome_trace(t), "trace.json");
  std::map<int, std::string> names;
  std::map<std::string, int> thread;
  for (core::json const& e : j["traceEvents"]) {
    if (e["name"] == "thread_name") names[e["tid"]] = e["args"]["name"];
    if (e["ph"] == "X") thread[e["name"].get<std::string>() + (e["cat"] == "compute" ? "" : ", talks")] = e["tid"];
  }
  CHECK(names.size() == 4);
  CHECK(names[thread["a"]] == "device 1 compute");
  CHECK(names[thread["b, talks"]] == "device 0 communication, link level 0");
  CHECK(names[thread["c, talks"]] == "device 1 communication, link level 1");
}

TEST_CASE("categories are kinds of lanes, arguments tell what a task does: the same in both timelines, whatever the lane") {
  for (bool pipeline : {false, true}) {
    auto s = tests::report_of(tests::hostile_names(30), 4, 7, 2);
    if (pipeline) {
      std::mt19937 draw(3);
      planned_step step = step_of(tests::residual_mlp(), tests::random_plan_of_a_kind(tests::residual_mlp(), 0, draw));
      s.q = step.program;
      s.predicted = s.measured = simulate(s.q, step.plan.cluster, cost::analytical{});
    }
    for (span& x : s.predicted.spans) x.where = lane::compute;              // a simulation without overlap
    core::json const trace = core::parse_json(report::chrome_trace(s.predicted, &s.measured, &s.q), "trace.json");
    std::map<std::string, int> count[2], kinds;
    double bytes = 0;
    int groups = 0;
    for (core::json const& e : trace["traceEvents"]) {
      if (e["ph"] != "X") continue;
      core::json const& a = e["args"];
      task const& t = s.q.tasks[a["task"].get<std::size_t>()];
      bool const computes = t.kind == task_kind::compute;
      CHECK(e["cat"] == (report::communicates(t) ? "communication" : "compute"));
      CHECK(a["kind"] == (computes ? std::string(t.op.op->name) : report::move_text(t.step.kind)));
      CHECK(a["devices"] == report::devices_text(t.devices));
      CHECK(a.contains("bytes") == !computes);
      if (!computes) CHECK(a["bytes"] == std::llround(report::bytes_of_move(s.q, t)));
      if (!computes) bytes += a["bytes"].get<double>();
      if (a.contains("group")) {                                     // some of its devices, this one among them
        std::vector<int> members = t.step.members((e["tid"].get<int>() - 1) / 2);
        std::sort(members.begin(), members.end());
        CHECK(a["group"] == report::devices_text(members));
        CHECK(members.size() < t.devices.size());
        ++groups;
      }
      std::string const shapes = a["shapes"];
      CHECK(shapes.find(" -> ") != shapes.npos);
      if (!t.out.empty()) CHECK(shapes.find(op::spell(s.q.buffers[static_cast<std::size_t>(t.out[0])].type)) != shapes.npos);
      ++count[e["pid"].get<int>() - 1][e["cat"]];
      ++kinds[a["kind"]];
    }
    CHECK(count[0].size() == 2);
    CHECK(count[0] == count[1]);
    CHECK(kinds.size() > 4);
    CHECK(bytes > 0);
    CHECK((pipeline || groups > 0));
  }
}

TEST_CASE("without the program the lane is the category") {
  auto const s = tests::report_of(tests::residual_mlp(), 4, 2);
  core::json const trace = core::parse_json(report::chrome_trace(s.predicted), "trace.json");
  std::size_t i = 0;
  for (core::json const& e : trace["traceEvents"])
    if (e["ph"] == "X") CHECK(e["cat"] == (s.predicted.spans[i++].where == lane::compute ? "compute" : "communication"));
  CHECK(i == s.predicted.spans.size());
}
