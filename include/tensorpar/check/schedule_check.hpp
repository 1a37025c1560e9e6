// tensorpar/check/schedule_check.hpp - is a pipeline valid: conditions C1 to C5 of the thesis, and no group
// waits for ever
#pragma once
#include <string>
#include <tensorpar/check/schedule_findings.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/graph/convexity.hpp>
#include <tensorpar/graph/order.hpp>
#include <tensorpar/plan/pipeline.hpp>
#include <vector>

namespace tensorpar {

namespace detail {

/// Shares nothing with generators and simulator: the laws as they stand in section 3.3, on explicit
/// positions, set by set.
class schedule_checker {
  pipeline const& p_;
  schedule_findings found_;
  // by 3 stage + pass, by micro-batch: position in its group's order, -1: missing
  std::vector<std::vector<int>> place_;
  static constexpr std::size_t most = 100;
  std::size_t count_ = 0;                 // of all findings, kept or not
  int edges_ok_ = -1;

  int stages() const { return static_cast<int>(p_.stages.size()); }
  static std::string say(int stage) { return "stage " + std::to_string(stage); }
  static std::string say(pass_entry const& e) {
    return std::string(name_of(e.what)) + " " + std::to_string(e.micro_batch) + " of " + say(e.stage);
  }
  void find(schedule_fault f, int stage, std::string text) {
    find(f, {stage, pass::forward, -1}, std::move(text));
  }
  void find(schedule_fault f, pass_entry const& e, std::string text) {
    if (++count_ <= most)
      found_.push_back({f, e.stage, e.what, e.micro_batch, std::string(name_of(f)) + ": " + std::move(text)});
  }
  int& place(pass_entry const& e) {
    return place_[3 * idx(e.stage) + idx(static_cast<int>(e.what))][idx(e.micro_batch)];
  }
  bool group_exists(int s) const {
    return p_.stages[idx(s)].group >= 0 && idx(p_.stages[idx(s)].group) < p_.groups.size();
  }
  bool same_group(int s, int t) const { return p_.stages[idx(s)].group == p_.stages[idx(t)].group; }

  /// Micro-batches of a stage that hold samples of micro-batch k of size b: first and last.
  std::pair<int, int> holding(int stage, int k, i64 b) const {
    i64 const size = p_.stages[idx(stage)].micro_batch;
    return {static_cast<int>(k * b / size), static_cast<int>(((k + 1) * b - 1) / size)};
  }
  /// Everything that must have ended before e (C4's own stage and C5), in a fixed order.
  template <graph::topology S>
  std::vector<pass_entry> needs(S const& edges, std::vector<std::vector<int>> const& out,
                                pass_entry const& e) const {
    std::vector<pass_entry> r;
    if (e.what == pass::weights) return {{e.stage, pass::backward, e.micro_batch}};
    if (e.what == pass::backward) r.push_back({e.stage, pass::forward, e.micro_batch});
    auto const all = [&](int other) {
      auto const [first, last] = holding(other, e.micro_batch, p_.stages[idx(e.stage)].micro_batch);
      for (int k = first; k <= last; ++k) r.push_back({other, e.what, k});
    };
    if (e.what == pass::forward)
      for (int u : graph::predecessors(edges, e.stage)) all(u);
    else
      for (int u : out[idx(e.stage)]) all(u);
    return r;
  }

  bool sizes() {
    bool good = true;
    if (p_.mini_batch < 1)
      find(schedule_fault::form, -1, "the mini-batch has " + std::to_string(p_.mini_batch) + " samples");
    for (int s = 0; s < stages(); ++s) {
      i64 const b = p_.stages[idx(s)].micro_batch;
      if (p_.mini_batch < 1 || b < 1 || p_.mini_batch % b != 0 || p_.mini_batch / b > max_micro_batches) {
        find(schedule_fault::form, s,
             say(s) + " has micro-batches of " + std::to_string(b) + " samples of a mini-batch of " +
                 std::to_string(p_.mini_batch));
        good = false;
      }
    }
    return good && p_.mini_batch >= 1;
  }
  template <graph::topology S> bool edges_fit(S const& edges) {
    if (edges_ok_ < 0) edges_ok_ = look_at_edges(edges) ? 1 : 0;
    return edges_ok_ == 1;
  }
  template <graph::topology S> bool look_at_edges(S const& edges) {
    bool good = graph::node_count(edges) == stages();
    if (!good) {
      find(schedule_fault::form, -1,
           "edges of " + std::to_string(graph::node_count(edges)) + " stages for " +
               std::to_string(stages()));
      return false;
    }
    for (int s = 0; s < stages(); ++s)
      for (int u : graph::predecessors(edges, s)) {
        if (u < 0 || u >= stages()) {
          find(schedule_fault::form, s, "an edge from " + say(u) + ", which does not exist, to " + say(s));
          good = false;
        } else if (u >= s) {
          find(schedule_fault::c2, s,
               "an edge from " + say(u) + " to " + say(s) + ": stages stand in topological order");
          good = false;
        }
      }
    return good;
  }

  void place_entries() {
    place_.assign(3 * p_.stages.size(), {});
    for (int s = 0; s < stages(); ++s)
      for (int w = 0; w < (p_.stages[idx(s)].split_backward ? 3 : 2); ++w)
        place_[3 * idx(s) + idx(w)].assign(idx(p_.micro_batches(s)), -1);
    for (std::size_t g = 0; g < p_.schedule.size(); ++g)
      for (std::size_t i = 0; i < p_.schedule[g].size(); ++i) {
        pass_entry const& e = p_.schedule[g][i];
        std::string const where = " in the order of group " + std::to_string(g);
        if (e.stage < 0 || e.stage >= stages() || e.what < pass::forward || e.what > pass::weights) {
          find(schedule_fault::form, -1, "an entry of stage " + std::to_string(e.stage) + where);
        } else if (p_.stages[idx(e.stage)].group != static_cast<int>(g)) {
          find(schedule_fault::form, e,
               say(e) + where + ", but the stage runs on group " +
                   std::to_string(p_.stages[idx(e.stage)].group));
        } else if (e.micro_batch < 0 ||
                   idx(e.micro_batch) >= place_[3 * idx(e.stage) + idx(static_cast<int>(e.what))].size()) {
          find(schedule_fault::c4, e, say(e) + where + ": the stage has no such pass");
        } else if (place(e) >= 0) {
          find(schedule_fault::c4, e, say(e) + where + " is there twice");
        } else {
          place(e) = static_cast<int>(i);
        }
      }
  }
  void within_stages() {
    for (int s = 0; s < stages(); ++s)
      for (int w = 0; w < 3; ++w) {
        auto const& mine = place_[3 * idx(s) + idx(w)];
        int before = -1;
        for (std::size_t k = 0; k < mine.size(); ++k) {
          pass_entry const e{s, static_cast<pass>(w), static_cast<int>(k)};
          if (mine[k] < 0) {
            find(schedule_fault::c4, e, say(e) + " is missing");
            continue;
          }
          if (mine[k] < before)
            find(schedule_fault::c4, e, say(e) + " comes before that of an earlier micro-batch");
          before = mine[k] > before ? mine[k] : before;
          if (w == 0) continue;
          int const first = place_[3 * idx(s) + idx(w - 1)][k];
          if (first >= 0 && mine[k] < first)
            find(schedule_fault::c4, e,
                 say(e) + " comes before its " + std::string(name_of(static_cast<pass>(w - 1))) + " pass");
        }
      }
  }

  /// C5 between stages of one group can be read off the order; between groups a pass waits, which goes wrong
  /// only in a cycle.
  template <graph::topology S> void across_stages(S const& edges, bool whole) {
    std::vector<std::vector<int>> out(p_.stages.size());
    for (int s = 0; s < stages(); ++s)
      for (int u : graph::predecessors(edges, s)) {
        i64 const a = p_.stages[idx(u)].micro_batch, b = p_.stages[idx(s)].micro_batch;
        if (a % b != 0 && b % a != 0) {
          whole = false;
          find(schedule_fault::c5, s,
               "micro-batches of " + std::to_string(a) + " samples of " + say(u) + " before " +
                   std::to_string(b) + " of " + say(s) + ": neither divides the other");
        }
        out[idx(u)].push_back(s);
      }
    std::size_t const found_before = count_;
    std::vector<std::vector<int>> before;    // passes numbered group by group
    std::vector<int> first;
    int n = 0;
    for (auto const& o : p_.schedule) {
      first.push_back(n);
      n += static_cast<int>(o.size());
    }
    if (whole) before.resize(idx(n));
    for (std::size_t g = 0; g < p_.schedule.size(); ++g)
      for (std::size_t i = 0; i < p_.schedule[g].size(); ++i) {
        pass_entry const& e = p_.schedule[g][i];
        if (e.stage < 0 || e.stage >= stages() || e.what < pass::forward || e.what > pass::weights ||
            e.micro_batch < 0)
          continue;
        if (idx(e.micro_batch) >= place_[3 * idx(e.stage) + idx(static_cast<int>(e.what))].size()) continue;
        if (whole && i > 0) before[idx(first[g]) + i].push_back(first[g] + static_cast<int>(i) - 1);
        for (pass_entry const& u : needs(edges, out, e)) {
          int const where = place(u);
          if (u.stage != e.stage && same_group(u.stage, e.stage) && where > static_cast<int>(i))
            find(schedule_fault::c5, e,
                 say(e) + " comes before " + say(u) + " in the order of group " + std::to_string(g));
          if (whole) before[idx(first[g]) + i].push_back(first[idx(p_.stages[idx(u.stage)].group)] + where);
        }
      }
    if (whole && count_ == found_before) no_cycle(before, first);
  }
  void no_cycle(std::vector<std::vector<int>> const& before, std::vector<int> const& first) {
    std::vector<int> const cycle = graph::find_cycle(before);
    if (cycle.empty()) return;
    auto const entry = [&](int i, std::size_t& g) -> pass_entry const& {
      g = first.size() - 1;
      while (first[g] > i) --g;
      return p_.schedule[g][idx(i - first[g])];
    };
    // In the cycle each pass precedes the next. Only where it leaves a group is something waited for.
    std::string text;
    pass_entry named;
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      std::size_t g = 0, h = 0;
      pass_entry const &from = entry(cycle[i], g), &to = entry(cycle[(i + 1) % cycle.size()], h);
      if (g == h) continue;
      if (text.empty()) named = to;
      text += (text.empty() ? "" : "; ") + say(to) + " on group " + std::to_string(h) + " waits for " +
              say(from) + " on group " + std::to_string(g);
    }
    find(schedule_fault::deadlock, named, text + "; and so round");
  }

 public:
  explicit schedule_checker(pipeline const& p) : p_(p) {}

  template <graph::topology G, graph::topology S>
  void structure(G const& operators, S const& edges, int devices) {
    int const n = graph::node_count(operators);
    std::vector<int> of(idx(n), -1);
    for (int s = 0; s < stages(); ++s) {
      auto const& nodes = p_.stages[idx(s)].nodes;
      if (nodes.empty()) find(schedule_fault::c1, s, say(s) + " has no operator");
      bool exist = true;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        int const v = nodes[i];
        if (v < 0 || v >= n) {
          exist = false;
          find(schedule_fault::c1, s,
               say(s) + " has operator " + std::to_string(v) + ", which does not exist");
          continue;
        }
        if (i > 0 && nodes[i - 1] >= v)
          find(schedule_fault::form, s, say(s) + " does not name its operators in ascending order");
        if (of[idx(v)] >= 0 && of[idx(v)] != s)
          find(schedule_fault::c1, s,
               "operator " + std::to_string(v) + " is in " + say(of[idx(v)]) + " and in " + say(s));
        of[idx(v)] = s;
      }
      if (exist && !graph::is_convex(operators, nodes))
        find(schedule_fault::c1, s, say(s) + " is not convex: a path leaves it and comes back");
    }
    for (int v = 0; v < n; ++v)
      if (of[idx(v)] < 0) find(schedule_fault::c1, -1, "operator " + std::to_string(v) + " is in no stage");
    if (edges_fit(edges))
      for (int v = 0; v < n; ++v)
        for (int u : graph::predecessors(operators, v)) {
          int const from = of[idx(u)], to = of[idx(v)];
          bool there = from < 0 || to < 0 || from == to;
          if (!there)
            for (int s : graph::predecessors(edges, to)) there = there || s == from;
          if (!there)
            find(schedule_fault::c2, to,
                 "operator " + std::to_string(u) + " of " + say(from) + " feeds operator " +
                     std::to_string(v) + " of " + say(to) + ", but no edge of the stages says so");
        }
    groups(devices);
  }
  void groups(int devices) {
    std::vector<int> of(idx(devices > 0 ? devices : 0), -1);
    for (std::size_t g = 0; g < p_.groups.size(); ++g) {
      device_range const& d = p_.groups[g];
      std::string const me = "group " + std::to_string(g);
      if (d.count < 1 || d.first < 0 || d.first > devices - d.count) {
        find(schedule_fault::c3, -1,
             me + " has devices " + std::to_string(d.first) + " to " +
                 std::to_string(i64{d.first} + d.count - 1) + " of " + std::to_string(devices));
        continue;
      }
      for (int i = d.first; i < d.first + d.count; ++i) {
        if (of[idx(i)] >= 0) {
          find(schedule_fault::c3, -1,
               "device " + std::to_string(i) + " is in group " + std::to_string(of[idx(i)]) + " and in " +
                   me);
          break;
        }
        of[idx(i)] = static_cast<int>(g);
      }
    }
  }
  template <graph::topology S> void orders(S const& edges) {
    bool const sizes_good = sizes();   // report both
    bool good = edges_fit(edges) && sizes_good;
    for (int s = 0; s < stages(); ++s)
      if (!group_exists(s)) {
        find(schedule_fault::c3, s,
             say(s) + " runs on group " + std::to_string(p_.stages[idx(s)].group) + ", which does not exist");
        good = false;
      }
    if (p_.schedule.size() != p_.groups.size()) {
      find(
          schedule_fault::form, -1,
          std::to_string(p_.schedule.size()) + " orders for " + std::to_string(p_.groups.size()) + " groups");
      good = false;
    }
    if (!good) return;
    std::size_t const so_far = count_;
    place_entries();
    within_stages();
    across_stages(edges, count_ == so_far);
  }
  schedule_findings take() { return std::move(found_); }
};

}  // namespace detail

/// C1 to C3 (thesis, section 3.3). Stages are convex and partition the operators. Every edge between
/// operators of two stages is an edge of `edges` (predecessor lists by stage, or any topology), and these
/// lead from earlier stages to later ones. Groups are disjoint and within `devices`. Nothing found: valid. At
/// most 100 findings, in a fixed order. O(stages * (V + E)).
template <graph::topology G, graph::topology S>
schedule_findings check_stages(G const& operators, S const& edges, pipeline const& p, int devices) {
  detail::schedule_checker c(p);
  c.structure(operators, edges, devices);
  return c.take();
}

/// C4 and C5, and that no group waits for ever. Every pass of every stage stands exactly once in its group's
/// order, weights passes exactly where the stage splits its backward pass and after it. C5 is taken by
/// samples, for micro-batch sizes of which one divides the other. A cycle of orders and dependencies is
/// reported as a deadlock that names who waits for whom. At most 100 findings, in a fixed order. O(passes log
/// passes + dependencies).
template <graph::topology S> schedule_findings check_orders(pipeline const& p, S const& edges) {
  detail::schedule_checker c(p);
  c.orders(edges);
  return c.take();
}

/// Both.
template <graph::topology G, graph::topology S>
schedule_findings check_pipeline(G const& operators, S const& edges, pipeline const& p, int devices) {
  detail::schedule_checker c(p);
  c.structure(operators, edges, devices);
  c.orders(edges);
  return c.take();
}

}  // namespace tensorpar
