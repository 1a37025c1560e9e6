// tests/report/page/head.test.cpp - the first and the last lines of a page: what is known is told, what is not is left out
#include <tensorpar/report/page/head.hpp>
#include <doctest/doctest.h>

#include <report/found_in.hpp>
#include <report/page/page_subject.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/report/page/notes.hpp>

using namespace tensorpar;
using tests::has;

TEST_CASE("title, strategy, settings and numbers") {
  report::plan_summary s;
  s.model = "a<b>";
  s.devices.resize(1);
  s.numbers = "f32: 4 bytes";
  s.prefetch = 1;
  s.micro_batches = 4;
  std::string const bare = report::detail::page_head(s, 3, {}, ":root { --group-0: red; }");
  CHECK(has(bare, "<h1>a&lt;b&gt; on 1 device</h1>"));
  CHECK(has(bare, "3 tasks per step \xc2\xb7 4 micro-batches, collectives start 1 operator ahead"));
  CHECK(has(bare, "numbers in f32: 4 bytes"));
  CHECK(has(bare, "--group-0: red"));
  CHECK_FALSE(has(bare, "\"strategy\""));
  CHECK_FALSE(has(bare, "own order"));
  report::page_notes notes;
  notes.strategy = "data parallel & \"ZeRO\"";
  s.ordered = true;
  CHECK(has(report::detail::page_head(s, 3, notes, ""), "<p class=\"strategy\">data parallel &amp; &quot;ZeRO&quot;</p>"));
  CHECK(has(report::detail::page_head(s, 3, notes, ""), "own order"));
}

TEST_CASE("cards: throughput with its parts, exposed communication, memory that fits, that lacks and that is not known") {
  report::plan_summary s;
  s.seconds = 2;
  s.devices.resize(4);
  std::string const few = report::detail::page_cards(s, {}, {});
  for (char const* none : {"samples/s", "exposed", "bound"}) CHECK_FALSE(has(few, none));
  CHECK(has(few, "simulated"));
  s.rate = {8, 4000, 3e14, 0.25};
  s.communication = {2, 1.5, 1, 0.5};
  s.bound = 1.5, s.cost = 2;
  s.devices[1].peak = 300, s.devices[1].capacity = 200;
  std::string const all = report::detail::page_cards(s, {}, {});
  for (char const* part : {"8.00 samples/s", "2.00 a device; 4000 tokens/s, 1000 a device", "25.0 %", "300 TFLOP in a step", "500 ms",
                           "25 % of the step device 2 communicates and does not compute, of 1.00 s", "bound 1.50 s, gap 25.0 %",
                           "does not fit: a device lacks 100 B; 150 % of 200 B"})
    CHECK_MESSAGE(has(all, part), part);
  s.cost = 0;                                            // a pipeline has no estimate of the search
  CHECK(has(report::detail::page_cards(s, {}, {}), "bound 1.50 s, gap 25.0 %"));
  s.cost = 2;
  std::string const words = report::detail::words_section(s);
  CHECK(has(words, report::html_text(report::bound_text(s))));
  CHECK(report::detail::flop_text(1e17) == "100 PFLOP");
  CHECK(report::detail::flop_text(12) == "12.0 FLOP");
}

TEST_CASE("the foot has the cluster's numbers, the version, and date and command where they are given") {
  machine const m = preset("dgx_h100:2");
  std::string const foot = report::detail::page_foot(m, {});
  for (char const* part : {"H100-SXM5-80GB", m.links[0].name.c_str(), "<td class=\"n\">16</td>", "GB/s", "tensorpar 0.1"}) CHECK_MESSAGE(has(foot, part), part);
  CHECK_FALSE(has(foot, "<code>"));
  report::page_notes notes;
  notes.date = "1 <May>";
  notes.command = "plan --model 'a&b'";
  std::string const said = report::detail::page_foot(m, notes);
  CHECK(has(said, "1 &lt;May&gt;"));
  CHECK(has(said, "<code>plan --model &#39;a&amp;b&#39;</code>"));
  CHECK(has(report::detail::page_foot({}, {}), "<h2>Cluster</h2>"));
}
