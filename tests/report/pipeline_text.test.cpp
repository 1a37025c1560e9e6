// tests/report/pipeline_text.test.cpp - pipelines drawn as text
#include <tensorpar/report/pipeline_text.hpp>

#include <doctest/doctest.h>
#include <report/two_stages.hpp>

using namespace tensorpar;
using tests::seconds_each;
using tests::two_stages;

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
