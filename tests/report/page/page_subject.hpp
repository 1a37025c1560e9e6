// tests/report/page/page_subject.hpp - all that a page is made from, of a plan with its program and timeline
#pragma once
#include <report/report_subject.hpp>
#include <tensorpar/report/page/data.hpp>

namespace tests {

struct page_subject {
  report::plan_summary summary;
  report::device_groups groups;
  report::folding folds;
  std::vector<report::chain_link> chain;
  page_subject(training_graph const& t, plan const& p, program const& q, timeline const& time)
      : summary(report::summary_of("plan", t, p, q, time)),
        groups(report::device_groups_of(summary, p.cluster.device)),
        folds(report::fold_operators(t.graph, summary)),
        chain(report::critical_chain(q, time)) {}
  explicit page_subject(report_subject const& s) : page_subject(s.t, s.p, s.q, s.predicted) {}
  report::detail::page_parts parts() const { return {summary, groups, folds, chain}; }
};

}  // namespace tests
