// tensorpar/report/page/html.hpp - one page about a plan: graph, placement, timelines, memory; no network
#pragma once
#include <tensorpar/report/page/head.hpp>
#include <tensorpar/report/page/script.hpp>
#include <tensorpar/report/page/sections.hpp>
#include <tensorpar/report/page/timelines.hpp>

namespace tensorpar::report {

/// A page that opens in any browser without a network. It tells the step's numbers with the search's bound,
/// what dominates, the critical chain, and the graph with its placement, in which repeated layers are folded.
/// Then the parallel computation graph, timelines (zoomable), memory over time and against capacity, bytes by
/// collective, every operator with its sharding and what it saves, and the cluster. With `compared`, the
/// first of which is this plan, it says why the others lose. `notes`: what the caller adds, such as other
/// rivals, memory by kind, date and command line. All text is escaped, and nothing outside is referred to.
/// Light or dark as the reader prefers. Throws `error` for a plan that is none (`require_feasible`). Size:
/// about 20 bytes per span, 300 per operator and 900 per box that is drawn. Devices on which the same happens
/// at the same time share their spans.
inline std::string html_report(training_graph const& t, plan const& p, program const& q,
                               timeline const& predicted, std::vector<named_timeline> const& others = {},
                               std::vector<plan_summary> const& compared = {}, page_notes const& notes = {}) {
  using namespace detail;
  plan_summary const s = summary_of("", t, p, q, predicted);
  device_groups const groups = device_groups_of(s, p.cluster.device);
  folding const folds = fold_operators(t.graph, s);
  std::vector<chain_link> const chain = critical_chain(q, predicted);
  page_parts const parts{s, groups, folds, chain};
  return page_head(s, q.tasks.size(), notes, group_style(groups.size())) + page_cards(s, predicted, others) +
         words_section(s) + chain_section(summary_of(chain, t.graph, q, predicted)) +
         comparison_section(s, compared, notes.rivals) + graph_section(t, parts) +
         parallel_section(t, p, groups) + time_sections() + memory_section(s, groups) +
         bytes_section(s) + operators_section() + page_foot(p.cluster, notes) +
         "</main>\n<div id=\"tip\"></div>\n<script type=\"application/json\" id=\"data\">" +
         script_json(report_data(t, parts, q, predicted, others)) + "</script>\n<script>" + html_script +
         html_timelines + "</script>\n</body>\n</html>\n";
}

}  // namespace tensorpar::report
