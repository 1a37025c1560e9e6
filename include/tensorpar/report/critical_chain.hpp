// tensorpar/report/critical_chain.hpp - what a step's time is made of: tasks that waited for one another up
// to its end
#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <tensorpar/report/tasks.hpp>
#include <vector>

namespace tensorpar::report {

/// Why a task could not start before another one ended.
enum class chain_cause : int {
  first,    // it waited for none
  data,     // it reads what the other made
  memory,   // it fills bytes that the other read or wrote
  lane,     // one lane runs one task at a time
  message,  // it receives what the other began to send
};

/// One task of a chain, on one device. The step's time from `from` to `to` counts as its own; before that
/// nothing of the chain runs for `waiting` seconds.
struct chain_link {
  std::size_t span = 0;  // index into the timeline's spans
  chain_cause cause = chain_cause::first;
  double from = 0, to = 0, waiting = 0;
};

namespace detail {

/// Finds, for a span, the span that it waited for.
class chain_finder {
  program const& q_;
  timeline const& t_;
  std::map<std::pair<int, int>, std::vector<std::size_t>> lanes_;  // (device, lane) -> spans by start
  std::vector<std::vector<std::size_t>> of_task_;                  // spans
  struct found {
    std::size_t span = none;
    chain_cause cause = chain_cause::first;
    double end = 0;
  };
  static constexpr std::size_t none = idx(-1);
  int last_lane_ = 1;

  static int lane_of(span const& s) { return s.where == lane::compute ? 0 : 1 + s.link; }
  span const& at(std::size_t s) const { return t_.spans[s]; }
  task const& of(span const& s) const { return q_.tasks[idx(s.task)]; }
  bool known(span const& s) const { return s.task >= 0 && idx(s.task) < q_.tasks.size(); }

  static bool has(std::vector<int> const& all, int b) {
    return std::find(all.begin(), all.end(), b) != all.end();
  }
  static bool meet(std::vector<int> const& a, std::vector<int> const& b) {
    return std::any_of(a.begin(), a.end(), [&](int x) { return has(b, x); });
  }
  /// Where a buffer begins on a device; -1: it is not there, or nobody gave it a place.
  i64 begin_of(int b, int device) const {
    buffer const& x = q_.buffers[idx(b)];
    auto const it = std::lower_bound(x.devices.begin(), x.devices.end(), device);
    std::size_t const i = idx(it - x.devices.begin());
    return it == x.devices.end() || *it != device || i >= x.offset.size() ? -1 : x.offset[i];
  }
  /// Does span b fill bytes of its device that task a read or wrote? An input is filled before who reads it
  /// first.
  bool shares_bytes(task const& a, span const& s) const {
    task const& b = of(s);
    auto const overlap = [&](int x, int y) {
      if (x == y) return true;
      i64 const p = begin_of(x, s.device), r = begin_of(y, s.device);
      return p >= 0 && r >= 0 && p < r + q_.buffers[idx(y)].bytes && r < p + q_.buffers[idx(x)].bytes;
    };
    auto const any = [&](int y) {
      for (int x : a.in)
        if (overlap(x, y)) return true;
      for (int x : a.out)
        if (overlap(x, y)) return true;
      return a.workspace >= 0 && overlap(a.workspace, y);
    };
    for (int y : b.in)
      if (q_.buffers[idx(y)].first == s.task && any(y)) return true;
    return std::any_of(b.out.begin(), b.out.end(), any) || (b.workspace >= 0 && any(b.workspace));
  }
  /// Why b, which stands behind a in the program, cannot run on this device before a ended; `first`: it can.
  chain_cause link_between(span const& a, span const& b) const {
    if (meet(of(a).out, of(b).in)) return chain_cause::data;
    if (shares_bytes(of(a), b)) return chain_cause::memory;
    return lane_of(a) == lane_of(b) ? chain_cause::lane : chain_cause::first;
  }
  static void take(found& best, found const& x) {
    bool const equal = best.span != none && x.end == best.end;
    if (best.span == none || x.end > best.end || (equal && x.cause < best.cause)) best = x;
  }
  /// Among the spans of b's device that end before b starts: the last one that it had to wait for.
  void look_back(span const& b, found& best) const {
    for (int l = 0; l <= last_lane_; ++l) {
      auto const it = lanes_.find({b.device, l});
      if (it == lanes_.end()) continue;
      std::vector<std::size_t> const& all = it->second;
      auto const end =
          std::partition_point(all.begin(), all.end(), [&](std::size_t s) { return at(s).start <= b.start; });
      for (auto k = end; k != all.begin();) {
        span const& a = at(*--k);
        if (best.span != none && a.end < best.end) break;  // spans of a lane do not overlap
        if (!known(a) || a.task >= b.task) continue;
        chain_cause const why = link_between(a, b);
        if (why == chain_cause::first) continue;
        take(best, {*k, why, std::min(a.end, b.start)});
        break;
      }
    }
  }
  /// Devices that b's device meets in b's task: all start when the last of them can.
  bool together(span const& a, span const& b) const {
    task const& x = of(b);
    if (a.device == b.device) return true;
    if (a.start != b.start || !communicates(x)) return false;
    if (x.step.kind == ir::reshard_kind::exchange) return true;
    for (int d : x.step.members(b.device))
      if (a.device == (q_.listed_for.empty() ? d : q_.listed_for[idx(d)])) return true;
    return false;
  }

 public:
  chain_finder(program const& q, timeline const& t) : q_(q), t_(t), of_task_(q.tasks.size()) {
    for (std::size_t s = 0; s < t.spans.size(); ++s) {
      lanes_[{at(s).device, lane_of(at(s))}].push_back(s);
      last_lane_ = std::max(last_lane_, lane_of(at(s)));
      if (known(at(s))) of_task_[idx(at(s).task)].push_back(s);
    }
    for (auto& [lane_of, all] : lanes_)
      std::stable_sort(all.begin(), all.end(),
                       [&](std::size_t a, std::size_t b) { return at(a).start < at(b).start; });
  }
  /// What span s waited for longest; its own index where that is nothing.
  chain_link before(std::size_t s) const {
    found best;
    if (!known(at(s))) return {s, chain_cause::first, 0, 0, 0};
    for (std::size_t other : of_task_[idx(at(s).task)])
      if (together(at(other), at(s))) look_back(at(other), best);
    task const& x = of(at(s));
    if (x.kind == task_kind::receive && x.other_half >= 0)
      for (std::size_t k : of_task_[idx(x.other_half)])
        take(best, {k, chain_cause::message, std::min(at(k).start, at(s).start)});
    if (best.span == none) return {s, chain_cause::first, 0, 0, 0};
    return {best.span, best.cause, 0, best.end, 0};
  }
};

}  // namespace detail

/// The chain of tasks that ends with the step, from the first to the last: each task waited for the one
/// before it, longer than for any other. In a simulated step each starts when that one ends, so that nothing
/// waits; in a measured one what lies between counts as `waiting`. Unlike `critical_path`
/// (simulate/engine.hpp), which knows data alone, lanes and memory count. Law: lengths and waiting times add
/// up to the end of the last span. Precondition: the spans are of this program, each lane in its order.
/// O(spans * log + links * neighbours).
inline std::vector<chain_link> critical_chain(program const& q, timeline const& t) {
  if (t.spans.empty()) return {};
  std::size_t now = 0;
  for (std::size_t s = 1; s < t.spans.size(); ++s)
    if (t.spans[s].end > t.spans[now].end) now = s;
  detail::chain_finder const find(q, t);
  std::vector<chain_link> r;
  for (double to = t.spans[now].end;;) {
    chain_link link{now, chain_cause::first, std::min(t.spans[now].start, to), to, 0};
    chain_link const before = find.before(now);
    link.cause = before.cause;
    double const ready = before.cause == chain_cause::first ? 0 : std::min(before.to, link.from);
    link.waiting = link.from - ready;
    r.push_back(link);
    if (before.cause == chain_cause::first) break;
    to = link.from - link.waiting;
    now = before.span;
  }
  std::reverse(r.begin(), r.end());
  return r;
}

/// What a chain is made of: seconds by kind of operator and phase ("linear, backward") or by kind of reshard
/// ("all-reduce"), the longest first.
struct chain_part {
  std::string what;
  double seconds = 0;
  int tasks = 0;
};
struct chain_summary {
  double computing = 0, communicating = 0, waiting = 0;  // seconds; together the chain's end
  std::vector<chain_part> parts;
};

/// Precondition: the chain is of this program and timeline, and the program of this graph. O(links * log).
inline chain_summary summary_of(std::vector<chain_link> const& chain, computation_graph const& g,
                                program const& q, timeline const& t) {
  constexpr char const* phases[] = {", forward", ", backward", ", update"};
  chain_summary r;
  std::map<std::string, chain_part> parts;
  for (chain_link const& l : chain) {
    span const& s = t.spans[l.span];
    bool const known = s.task >= 0 && idx(s.task) < q.tasks.size(), talks = communicates(q, s);
    std::string what = s.name;
    if (known) {
      task const& x = q.tasks[idx(s.task)];
      node_id const v = served(g, x);
      if (x.kind != task_kind::compute)
        what = move_text(x.step.kind);
      else if (v >= 0 && v < g.node_count() && g.node(v).op.op)
        what = std::string(g.node(v).op.op->name) + phases[static_cast<int>(g.node(x.node).phase)];
    }
    (talks ? r.communicating : r.computing) += l.to - l.from;
    r.waiting += l.waiting;
    chain_part& part = parts[what];
    part.what = what;
    part.seconds += l.to - l.from;
    ++part.tasks;
  }
  for (auto& [what, part] : parts) r.parts.push_back(std::move(part));
  std::stable_sort(r.parts.begin(), r.parts.end(),
                   [](chain_part const& a, chain_part const& b) { return a.seconds > b.seconds; });
  return r;
}

}  // namespace tensorpar::report
