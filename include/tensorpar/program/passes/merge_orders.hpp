// tensorpar/program/passes/merge_orders.hpp - the groups' schedules as one order of operators, or who waits
// for whom for ever
#pragma once
#include <algorithm>
#include <map>
#include <set>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/computation_graph.hpp>
#include <tensorpar/plan/pipeline_form.hpp>

namespace tensorpar::passes::detail {

/// The nodes of one pass, ascending, but sums in place: these come behind what they add, so that it need not
/// be kept to the pass's end.
inline std::vector<int> order_in_pass(computation_graph const& g, std::vector<int> const& nodes) {
  std::vector<int> r;
  std::map<int, std::vector<int>> behind;
  for (int v : nodes) {
    if (!g.node(v).in_place) continue;
    int last = -1;
    for (int x : g.node(v).in)
      if (int const p = g.value(x).producer; std::binary_search(nodes.begin(), nodes.end(), p))
        last = std::max(last, p);
    behind[last].push_back(v);
  }
  auto const put = [&](auto const& self, int v) -> void {
    if (v >= 0) r.push_back(v);
    if (auto const it = behind.find(v); it != behind.end())
      for (int u : it->second) self(self, u);
  };
  put(put, -1);
  for (int v : nodes)
    if (!g.node(v).in_place) put(put, v);
  return r;
}

/// The nodes of a graph in which node v belongs to passes[v] (stage -1: after all passes), in an order that
/// agrees with every group's schedule. A pass comes when all that it reads has come, its nodes as
/// `order_in_pass` says. Throws `error` where an entry means nothing, a pass is missing or comes twice, or
/// waits for one that can never come before it. O(nodes * log).
inline std::vector<int> merge_orders(computation_graph const& g, std::vector<pass_entry> const& passes,
                                     pipeline const& pipe) {
  std::vector<int> order;
  std::map<std::vector<int>, std::vector<int>> nodes;                  // pass -> its nodes
  auto key = [](pass_entry const& p) {
    return std::vector<int>{p.stage, static_cast<int>(p.what), p.micro_batch};
  };
  for (int v = 0; v < g.node_count(); ++v) nodes[key(passes[idx(v)])].push_back(v);
  std::vector<bool> there(g.nodes.size(), false);
  auto waits_for = [&](std::vector<int> const& all, pass_entry const& me) {
    for (int v : all)
      for (int x : g.node(v).in)
        if (int const p = g.value(x).producer; p >= 0 && !there[idx(p)] && !(passes[idx(p)] == me)) return p;
    return -1;
  };
  std::vector<std::size_t> next(pipe.schedule.size(), 0);
  std::set<std::vector<int>> seen;
  // by stage and kind: passes that have come
  std::vector<std::vector<int>> done(pipe.stages.size(), std::vector<int>(3, 0));
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t i = 0; i < next.size(); ++i)
      while (next[i] < pipe.schedule[i].size()) {
        pass_entry const& e = pipe.schedule[i][next[i]];
        std::string const here = "order of group " + std::to_string(i) + ", entry " + std::to_string(next[i]);
        if (e.stage < 0 || idx(e.stage) >= pipe.stages.size() || idx(pipe.stages[idx(e.stage)].group) != i)
          tensorpar::detail::bad_pipeline("stage " + std::to_string(e.stage), here, "a stage of this group");
        if (e.micro_batch < 0 || e.micro_batch >= pipe.micro_batches(e.stage) ||
            (e.what == pass::weights && !pipe.stages[idx(e.stage)].split_backward))
          tensorpar::detail::bad_pipeline(tensorpar::detail::spelled(e), here, "a pass of this stage");
        auto const it = nodes.find(key(e));
        if (it != nodes.end() && waits_for(it->second, e) >= 0) break;
        if (!seen.insert(key(e)).second)
          tensorpar::detail::bad_pipeline(tensorpar::detail::spelled(e) + " comes twice", here,
                                          "every pass once");
        if (int& after = done[idx(e.stage)][idx(static_cast<int>(e.what))]; after++ != e.micro_batch)
          tensorpar::detail::bad_pipeline(tensorpar::detail::spelled(e)
                                          + " comes before its micro-batch's turn", here,
                       "passes of each kind in the order of micro-batches (C4)");
        if (it != nodes.end())
          for (int v : order_in_pass(g, it->second)) {
            there[idx(v)] = true;
            order.push_back(v);
          }
        ++next[i];
        moved = true;
      }
  }
  for (std::size_t i = 0; i < next.size(); ++i)
    if (next[i] < pipe.schedule[i].size()) {
      pass_entry const& e = pipe.schedule[i][next[i]];
      int const v = waits_for(nodes.at(key(e)), e);
      tensorpar::detail::bad_pipeline(tensorpar::detail::spelled(e) + " waits for "
          + tensorpar::detail::spelled(passes[idx(v)]) + ", which can never come before it",
                   "order of group " + std::to_string(i), "orders in which every pass follows what it reads");
    }
  for (std::size_t s = 0; s < pipe.stages.size(); ++s)
    for (pass what : {pass::forward, pass::backward, pass::weights}) {
      int const had = done[s][idx(static_cast<int>(what))];
      if ((what != pass::weights || pipe.stages[s].split_backward) &&
          had < pipe.micro_batches(static_cast<int>(s)))
        tensorpar::detail::bad_pipeline(tensorpar::detail::spelled({static_cast<int>(s), what, had})
                                        + " is missing", "order",
                     "every pass of every stage once");
    }
  for (int v = 0; v < g.node_count(); ++v) {
    if (there[idx(v)]) continue;
    if (passes[idx(v)].stage >= 0)
      tensorpar::detail::bad_pipeline(tensorpar::detail::spelled(passes[idx(v)]) + " is missing", "order",
                                      "every pass of every stage once");
    order.push_back(v);
  }
  return order;
}

}  // namespace tensorpar::passes::detail
