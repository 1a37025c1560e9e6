// tests/report/page/sections.test.cpp - memory bars, the critical chain in words, comparisons with plans and with rivals
#include <tensorpar/report/page/sections.hpp>
#include <doctest/doctest.h>

#include <report/found_in.hpp>
#include <report/page/page_subject.hpp>

using namespace tensorpar;
using tests::count;

TEST_CASE("devices whose memory is alike share a row; parts and shortages part them") {
  report::plan_summary s;
  s.devices.resize(4);
  for (report::device_summary& d : s.devices) d.peak = 50, d.capacity = 100;
  report::device_groups const one = report::groups_by({0, 0, 0, 0}), two = report::groups_by({0, 0, 1, 1});
  CHECK(report::detail::memory_rows(s, one).size() == 1);
  CHECK(report::detail::memory_rows(s, two).size() == 2);
  s.devices[1].memory.bytes[0] = 20;
  CHECK(report::detail::memory_rows(s, one).size() == 2);
  s.devices[0].memory.bytes = {20, 0, 0, 25, 0};
  s.devices[3].peak = 120;
  std::string const all = report::detail::memory_section(s, one);
  CHECK(count(all, "<tr>") == 4);
  CHECK(count(all, "weights 20 B \xc2\xb7 activations 25 B") == 1);
  CHECK(count(all, "does not fit: lacks 20 B") == 1);
  CHECK(count(all, "class=\"fill over\"") == 1);
  CHECK(count(all, "of 100 B, 50 %") == 3);
}

TEST_CASE("a bar ends where the memory does, or the fullest device; parts have their lengths") {
  report::detail::memory_row x{{0}, 2, 25, 100, {}};
  CHECK(report::detail::memory_bar(x, 100).find("width:25.00%;background:var(--group-2)") != std::string::npos);
  CHECK(report::detail::memory_bar(x, 100).find("<b style=\"width:100.00%\">") != std::string::npos);
  x.parts.bytes = {10, 5, 0, 0, 0};
  std::string const bar = report::detail::memory_bar(x, 100);
  for (char const* part : {"width:10.00%", "width:5.00%"}) CHECK_MESSAGE(bar.find(part) != bar.npos, part);
  CHECK(count(bar, "width:10.00%") == 2);                        // and the rest, which nobody gave a kind
  x.capacity = 0;                                                // not known
  CHECK(report::detail::memory_bar(x, 25).find("<b ") == std::string::npos);
  x.peak = 0;
  x.parts = {};
  CHECK(count(report::detail::memory_bar(x, 0), "<i") == 0);
}

TEST_CASE("rivals of any kind: without a step, that do not fit, plans of the same graph with their operators") {
  auto const s = tests::report_of(tests::residual_mlp(), 4, 2);
  report::plan_summary const sum = report::summary_of("", s.t, s.p, s.q, s.predicted);
  CHECK(report::detail::comparison_section(sum, {}, {}) == "");
  CHECK(report::detail::comparison_section(sum, {sum}, {}) == "");
  std::string const rivals = report::detail::comparison_section(
      sum, {}, {{"<ZeRO>", "a & b", 2 * sum.seconds, 4096, 1024, "because <b>"}, {"none", "", 0, 0, 0, "refused"}});
  for (char const* part : {"this plan", "&lt;ZeRO&gt;", "a &amp; b", "2.00x", "4.00 KiB", "lacks 1.00 KiB", "because &lt;b&gt;", "refused"})
    CHECK_MESSAGE(rivals.find(part) != rivals.npos, part);
  CHECK(count(rivals, "<details>") == 0);
  report::plan_summary chosen = sum, other = sum;
  chosen.name = "chosen", other.name = "other";
  for (report::operator_summary& o : other.operators) o.sharding = "<i>", o.compute *= 2;
  std::string const both = report::detail::comparison_section(sum, {chosen, other}, {{"third", "", 1, 1, 0, ""}});
  CHECK(count(both, "<details>") == 1);
  CHECK(count(both, "<tr>") == 4);
  CHECK(count(both, "&lt;i&gt;: ") == 3);
  CHECK(both.find("this plan") == both.npos);
}

TEST_CASE("the chain in words") {
  CHECK(report::detail::chain_section({}) == "");
  report::chain_summary c{6, 3, 1, {{"linear, <b>", 6, 2}, {"all-reduce", 3, 1}}};
  std::string const said = report::detail::chain_section(c);
  for (char const* part : {"computing 60 %, communicating 30 %, waiting 10 % of 10.0 s", "linear, &lt;b&gt;", "60 % in 2 tasks", "30 % in 1 task"})
    CHECK_MESSAGE(said.find(part) != said.npos, part);
}

TEST_CASE("too many operators are not drawn, and not all pictures are kept") {
  computation_graph g;
  int v = g.add_input("x", {4, 4});
  for (int i = 0; i < 3000; ++i) v = tests::out(g, i % 7 % 3 ? g.add(relu{}, {v}) : g.add(tanh_{}, {v}));
  int const w = g.add_parameter("w", {4, 4}, tensorpar::op::init::normal_02);
  g.add_output("loss", tests::out(g, g.add(mean_squared_error{}, {v, w}, "loss")));
  auto const s = tests::report_of(g, 1, 1);
  tests::page_subject const x(s);
  std::string const folded = report::detail::graph_pictures(s.t, x.parts());
  CHECK(folded.find("<svg") != folded.npos);                     // seven operators, 428 times
  CHECK(folded.find("<template") == folded.npos);
  CHECK(folded.size() < 30'000);
  auto const random = tests::report_of(tests::hostile_names(3500), 6, 1);
  CHECK(report::detail::graph_pictures(random.t, tests::page_subject(random).parts()).find("are too many to be drawn") != std::string::npos);
}
