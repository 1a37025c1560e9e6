// tests/report/page/pipeline_page.test.cpp - pipelines drawn as a page
#include <tensorpar/report/page/pipeline_page.hpp>

#include <doctest/doctest.h>
#include <report/two_stages.hpp>

using namespace tensorpar;
using tests::seconds_each;
using tests::two_stages;

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
