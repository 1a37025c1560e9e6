// tests/report/exposed_communication.test.cpp - communication that no computing hides: by hand, and against a count of small steps
#include <tensorpar/report/exposed_communication.hpp>
#include <doctest/doctest.h>

#include <report/report_subject.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/simulate/engine.hpp>

using namespace tensorpar;

TEST_CASE("by hand: what overlaps is hidden, spans that overlap count once") {
  timeline t;
  t.spans = {{0, lane::compute, 0, "a", 0, 4},       {0, lane::communication, 1, "b", 3, 6}, {0, lane::communication, 1, "c", 5, 7},
             {1, lane::compute, 0, "a", 0, 1},       {1, lane::communication, 1, "b", 2, 6}, {2, lane::communication, 1, "b", 3, 3}};
  t.seconds = 7;
  program const none;                                           // without a program the lane decides
  std::vector<report::communication_time> const all = report::communication_times(none, t);
  CHECK(all == std::vector<report::communication_time>{{0, 7, 4, 3}, {1, 5, 4, 4}, {2, 0, 0, 0}});
  CHECK(report::exposed_communication(none, t) == all[0]);      // device 0 is busy longest, though device 1 exposes more
  CHECK(report::exposed_communication(none, timeline{}).device == -1);
  program q;                                                    // a slice is a local copy, whatever lane it is in
  q.tasks.resize(2);
  q.tasks[1].kind = task_kind::reshard;
  q.tasks[1].step.kind = ir::reshard_kind::slice;
  CHECK(report::exposed_communication(q, t).exposed == 0);
}

TEST_CASE("random plans: between nothing and all of the communication, and all of it without overlap") {
  for (unsigned seed = 0; seed < 12; ++seed) {
    auto const s = tests::report_of(seed % 2 ? tests::residual_mlp() : tests::small_transformer(), 4, seed);
    for (timeline const* time : {&s.predicted, &s.measured})
      for (report::communication_time const& x : report::communication_times(s.q, *time)) {
        CHECK(x.exposed <= x.communicating * (1 + 1e-9));
        CHECK(x.busy <= time->seconds * (1 + 1e-9));
        double exposed = 0;                                     // where its spans begin and end, what runs between
        std::vector<double> at;
        for (span const& y : time->spans)
          if (y.device == x.device) at.insert(at.end(), {y.start, y.end});
        std::sort(at.begin(), at.end());
        for (std::size_t i = 1; i < at.size(); ++i) {
          double const middle = (at[i - 1] + at[i]) / 2;
          bool computes = false, talks = false;
          for (span const& y : time->spans)
            if (y.device == x.device && y.start < middle && middle < y.end)
              (report::communicates(s.q.tasks[static_cast<std::size_t>(y.task)]) ? talks : computes) = true;
          if (talks && !computes) exposed += at[i] - at[i - 1];
        }
        CHECK(x.exposed == doctest::Approx(exposed));
      }
    timeline const one_lane = simulate(s.q, s.p.cluster, cost::analytical{}, {.overlap = false});
    for (report::communication_time const& x : report::communication_times(s.q, one_lane))
      CHECK(x.exposed == doctest::Approx(x.communicating));
  }
}
