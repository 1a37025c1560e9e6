// tests/report/pipeline_text.test.cpp - pipelines drawn as text and as a page
#include <tensorpar/report/pipeline_page.hpp>
#include <tensorpar/report/pipeline_text.hpp>

#include <doctest/doctest.h>

using namespace tensorpar;

namespace {
/// Two stages, two micro-batches, one second each way: 1F1B by hand.
pipeline two_stages() {
  pipeline p;
  p.mini_batch = 2;
  p.groups = {{0, 1}, {1, 2}};
  p.stages.resize(2);
  p.stages[0].nodes = {0};
  p.stages[1].nodes = {1};
  p.stages[1].group = 1;
  auto const F = pass::forward, B = pass::backward;
  p.schedule = {{{0, F, 0}, {0, F, 1}, {0, B, 0}, {0, B, 1}}, {{1, F, 0}, {1, B, 0}, {1, F, 1}, {1, B, 1}}};
  return p;
}
simulation::pipeline_costs seconds_each() { return {{{1, 1, 0, 0, 1}, {1, 1, 0, 0, 1}}, {}, 0}; }
}  // namespace

TEST_CASE("letters are micro-batches, capitals go back, dots are idle") {
  pipeline p = two_stages();
  passes::stage_edges const e = passes::chain_of_stages(2);
  CHECK(report::pipeline_text(p, simulation::simulate_pipeline(p, e, seconds_each(), true), 12) ==
        "device 0    |aabb..AA..BB|\n"
        "devices 1-2 |..aaAAbbBB..|\n"
        "             0          6.00 s\n");
  for (pipeline_stage& s : p.stages) s.split_backward = true;
  p.schedule[0].push_back({0, pass::weights, 0});
  CHECK(report::pipeline_text(p, simulation::simulate_pipeline(p, e, {{{1, 1, 1, 0, 1}, {1, 1, 1, 0, 1}}, {}, 0}, true),
                              7).starts_with("device 0    |ab.A.B+|\n"));
  CHECK_THROWS_WITH_AS(report::pipeline_text(p, simulation::simulate_pipeline(p, e, seconds_each()), 12),
                       doctest::Contains("without its passes"), error);
  CHECK(report::pipeline_text({}, {}, 0) == "  0 0 s\n");
}

TEST_CASE("the page shows every pass once, on one scale, and refers to nothing outside") {
  pipeline const p = two_stages();
  simulation::pipeline_run const r = simulation::simulate_pipeline(p, passes::chain_of_stages(2), seconds_each(), true);
  std::string const page = report::pipeline_page("a <b> & c",
      {{"first \"one\"", p, passes::chain_of_stages(2), r, {1024, 2048}}, {"second", p, passes::chain_of_stages(2), r, {}}});
  auto count = [&](std::string const& what) {
    int n = 0;
    for (std::size_t at = page.find(what); at != std::string::npos; at = page.find(what, at + 1)) ++n;
    return n;
  };
  CHECK(count("<title>stage ") == 16);                 // eight passes, drawn twice
  CHECK(count("forward 1: ") == 4);
  CHECK(page.find("a &lt;b&gt; &amp; c") != std::string::npos);
  CHECK(page.find("a <b>") == std::string::npos);
  CHECK(page.find("first &quot;one&quot;") != std::string::npos);
  CHECK(page.find("2.00 KiB") != std::string::npos);
  CHECK(count("http") == count("http://www.w3.org/2000/svg"));
  CHECK(count("<svg") == count("</svg>"));
  CHECK(count("<g>") == count("</g>"));
  simulation::pipeline_run const bare = simulation::simulate_pipeline(p, passes::chain_of_stages(2), seconds_each());
  CHECK_THROWS_AS(report::pipeline_page("x", {{"y", p, passes::chain_of_stages(2), bare, {}}}), error);
}
