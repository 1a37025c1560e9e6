// tests/report/comparison.test.cpp - plans side by side: ratios, what does not fit, and which operators make the difference
#include <doctest/doctest.h>

#include <report/found_in.hpp>
#include <report/report_subject.hpp>
#include <sstream>
#include <tensorpar/report/comparison.hpp>

using namespace tensorpar;
using tests::has;

namespace {
tensorpar::report::operator_summary an_operator(int node, std::string name, std::string op, std::string sharding, double compute,
                                                double move, double reduced) {
  tensorpar::report::operator_summary o;
  o.node = node;
  o.name = std::move(name);
  o.op = std::move(op);
  o.sharding = std::move(sharding);
  o.compute = compute;
  o.move = move;
  o.bytes[static_cast<std::size_t>(ir::reshard_kind::all_reduce)] = reduced;
  return o;
}
report::plan_summary a_plan(std::string name, double seconds, std::vector<tensorpar::report::operator_summary> operators, i64 peak,
                            i64 capacity) {
  report::plan_summary s;
  s.name = std::move(name);
  s.seconds = seconds;
  s.operators = std::move(operators);
  s.devices = {{1, 1, peak / 2, 0}, {1, 1, peak, capacity}};
  for (report::operator_summary const& o : s.operators)
    for (std::size_t k = 0; k < s.bytes.size(); ++k) s.bytes[k] += o.bytes[k];
  return s;
}
}  // namespace

TEST_CASE("plans side by side") {
  auto const a = tests::report_of(tests::residual_mlp(), 4, 3), b = tests::report_of(tests::residual_mlp(), 1, 4);
  std::vector<report::plan_summary> const all{report::summary_of("chosen", a.t, a.p, a.q, a.predicted),
                                      report::summary_of("one device", b.t, b.p, b.q, b.predicted)};
  std::vector<std::vector<std::string>> const rows = report::comparison_rows(all);
  REQUIRE(rows.size() == 3);
  CHECK(rows[1][0] == "chosen");
  CHECK(rows[1][1] == report::seconds_text(all[0].seconds));
  CHECK(rows[2][2] == report::detail::printed("%.2fx", all[1].seconds / all[0].seconds));
  CHECK(rows[2][3] == report::bytes_text(static_cast<double>(all[1].peak())));
  std::size_t column = 4;
  for (std::size_t k = 0; k < report::move_kinds; ++k) {
    if (all[0].bytes[k] <= 0 && all[1].bytes[k] <= 0) continue;
    REQUIRE(rows[0].size() > column);
    CHECK(rows[0][column] == report::move_text(static_cast<ir::reshard_kind>(k)));
    CHECK(rows[1][column] == (all[0].bytes[k] > 0 ? report::bytes_text(all[0].bytes[k]) : "-"));
    CHECK(rows[2][column] == "-");  // a single device sends nothing
    ++column;
  }
  CHECK(rows[0].size() == column);
  CHECK(column > 4);
  std::string const text = report::comparison(all);
  CHECK(std::count(text.begin(), text.end(), '\n') == 3);
  CHECK(report::comparison({}) == "");
  CHECK(report::reasons({}) == "");
  CHECK(report::reasons({all[0]}) == "");
}

TEST_CASE("the operators that make the difference come first, with both shardings") {
  report::operator_summary const same = an_operator(1, "b", "relu", "o /2", 1, 0, 0);
  report::plan_summary const here = a_plan("chosen", 3, {an_operator(0, "a", "linear", "o /2", 1, 0, 0), same}, 100, 1000),
                     there = a_plan("data parallel", 5.5, {an_operator(0, "a", "linear", "batch /2", 1.5, 2, 2048), same}, 3000, 1000);
  std::vector<std::string> const why = report::why_not(here, there);
  REQUIRE(why.size() == 2);  // b is sharded alike and moves alike: not a reason
  CHECK(why[0] == "data parallel does not fit (a device lacks 1.95 KiB), and takes 2.50 s more");
  CHECK(why[1] == "a, batch /2: 1.50 s computing, 2.00 s moving (all-reduce 2.00 KiB); here o /2: 1.00 s computing");
  CHECK(has(report::comparison({here, there}), "does not fit: lacks 1.95 KiB"));
  CHECK(!has(report::comparison({here, here}), "does not fit"));
  CHECK(report::why_not(there, here)[0] == "chosen takes 2.50 s less");
  CHECK(report::why_not(here, here) == std::vector<std::string>{"chosen takes as long"});
  CHECK(report::why_not(here, there, 0).size() == 1);
  CHECK(report::why_not(here, report::plan_summary{}).size() == 1);  // another graph: nothing to compare by operator
}

TEST_CASE("many operators are counted, not listed, and times add up") {
  std::vector<tensorpar::report::operator_summary> a, b;
  for (int i = 0; i < 60; ++i) {
    a.push_back(an_operator(i, "n" + std::to_string(i), i % 3 ? "relu{x=1}" : "add", "o /2", 0.5, 0, 0));
    b.push_back(an_operator(i, "n" + std::to_string(i), i % 3 ? "relu{x=1}" : "add", "batch /2", i % 3 ? 1 : 0.75, 0, 0));
  }
  std::vector<std::string> const why = report::why_not(a_plan("p", 30, a, 1, 0), a_plan("q", 55, b, 1, 0));
  REQUIRE(why.size() == 3);
  CHECK(why[1] == "40 x relu, batch /2: 40.0 s computing; here o /2: 20.0 s computing");
  CHECK(why[2] == "20 x add, batch /2: 15.0 s computing; here o /2: 10.0 s computing");
}

TEST_CASE("joined groups are a partition in order of first members") {
  std::mt19937 draw(3);
  for (int turn = 0; turn < 50; ++turn) {
    std::vector<tensorpar::report::operator_summary> all;
    for (auto n = draw() % 20; n > 0; --n)
      all.push_back(an_operator(static_cast<int>(all.size()), "", std::string(1, static_cast<char>('a' + draw() % 4)), "s", 1, 2, 3));
    auto const groups =
        report::detail::joined(all, true, [&](std::size_t i, std::size_t j) { return report::detail::same_choice(all[i], all[j]); });
    std::vector<int> seen(all.size(), 0);
    std::size_t before = 0;
    for (report::detail::alike const& g : groups) {
      REQUIRE((&g == &groups.front() || g.which.front() > before));
      before = g.which.front();
      CHECK(g.sum.compute == static_cast<double>(g.which.size()));
      CHECK(g.sum.move == 2 * static_cast<double>(g.which.size()));
      CHECK(g.sum.sent() == 3 * static_cast<double>(g.which.size()));
      for (std::size_t i : g.which) { ++seen[i]; CHECK(all[i].op == g.sum.op); }
    }
    CHECK(std::count(seen.begin(), seen.end(), 1) == static_cast<std::ptrdiff_t>(all.size()));
    CHECK(report::detail::joined(all, false, [](std::size_t, std::size_t) { return true; }).size() == all.size());
  }
}

TEST_CASE("rivals in rows: who has no step or no plan says so") {
  auto const rows = report::rival_rows({"ours", "x", 2, 1024, 0, ""}, {{"slow", "y", 3, 512, 0, "slower"},
                                                                         {"big", "", 1, 4096, 2048, ""},
                                                                         {"none", "", 0, 0, 0, "refused"}});
  REQUIRE(rows.size() == 5);
  CHECK(rows[1] == std::vector<std::string>{"ours", "x", "2.00 s", "-", "1.00 KiB", "fits", ""});
  CHECK(rows[2] == std::vector<std::string>{"slow", "y", "3.00 s", "1.50x", "512 B", "fits", "slower"});
  CHECK(rows[3] == std::vector<std::string>{"big", "", "1.00 s", "0.50x", "4.00 KiB", "lacks 2.00 KiB", ""});
  CHECK(rows[4] == std::vector<std::string>{"none", "", "-", "-", "-", "-", "refused"});
  report::plan_summary a, b;
  a.seconds = 1, b.seconds = 2, b.name = "b";
  b.devices = {{0, 0, 100, 80}};
  report::rival const r = report::rival_of(a, b);
  CHECK(r.name == "b");
  CHECK(r.lacks == 20);
  CHECK(r.reason == "b does not fit (a device lacks 20 B), and takes 1.00 s more");
}
