// tests/report/page/pipeline_page.test.cpp - pipelines drawn as a page
#include <tensorpar/report/page/pipeline_page.hpp>

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
