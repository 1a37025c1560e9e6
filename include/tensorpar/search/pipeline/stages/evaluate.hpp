// tensorpar/search/pipeline/stages/evaluate.hpp - what a partition into stages comes to: bottleneck, samples
// in flight, bytes, an iteration's time
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <tensorpar/core/error.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/search/pipeline/schedules/in_flight.hpp>
#include <tensorpar/search/pipeline/stages/border.hpp>
#include <tensorpar/search/pipeline/stages/partial_pipelines.hpp>
#include <vector>

namespace tensorpar::search {

/// A device that lacks memory, and how much.
struct stage_shortage {
  int device = 0;
  double lacks = 0;  // bytes
  friend bool operator==(stage_shortage const&, stage_shortage const&) = default;
};

/// What a pipeline of stages comes to under a model. By stage: work (with transfers), samples in flight,
/// bytes of each of its devices.
struct stage_cost {
  double bottleneck = 0;     // seconds per sample of the slowest stage
  double iteration = 0;      // seconds per mini-batch, estimated as said at `cost_of`
  int depth = 0;             // stages on the longest path
  i64 source_in_flight = 0;  // samples, the most of a stage without predecessors
  std::vector<stage_work> work;
  std::vector<i64> in_flight;
  std::vector<double> bytes;
  std::vector<std::vector<int>> next;  // stages that a stage sends to, ascending
  stage_sharing shared;                // of weights that stages share
  std::optional<stage_shortage> shortage;
};

namespace detail {

/// Stages in a topological order of their quotient; empty if that has a cycle.
inline std::vector<int> quotient_order(std::vector<std::vector<int>> const& next) {
  std::vector<int> missing(next.size(), 0), order;
  for (auto const& n : next)
    for (int y : n) ++missing[idx(y)];
  std::vector<char> done(next.size(), 0);
  for (bool found = true; found;) {
    found = false;
    for (std::size_t x = 0; x < next.size(); ++x)
      if (!done[x] && missing[x] == 0) {
        done[x] = 1;
        order.push_back(static_cast<int>(x));
        for (int y : next[x]) --missing[idx(y)];
        found = true;
        break;
      }
  }
  if (order.size() != next.size()) order.clear();
  return order;
}

}  // namespace detail

namespace detail {

/// By operator: the one stage that it stands in.
template <stage_model M>
std::vector<int> stage_of_operators(M const& m, std::vector<found_stage> const& stages) {
  std::size_t const n = stages.size();
  std::vector<int> stage_of(idx(m.operators()), -1);
  for (std::size_t s = 0; s < n; ++s)
    for (int v : stages[s].nodes) {
      if (v < 0 || v >= m.operators() || stage_of[idx(v)] >= 0)
        throw error("operator " + std::to_string(v) + " stands in two stages or does not exist",
                    "stage " + std::to_string(s), "every operator in one stage");
      stage_of[idx(v)] = static_cast<int>(s);
    }
  for (std::size_t v = 0; v < stage_of.size(); ++v)
    if (stage_of[v] < 0)
      throw error("operator " + std::to_string(v) + " is in no stage", "cost_of",
                  "every operator in one stage");
  return stage_of;
}
/// What crosses the borders of stages, and which stages follow which.
template <stage_model M>
std::vector<stage_border> borders_of(M const& m, std::vector<int> const& stage_of,
                                     std::vector<std::vector<int>>& next) {
  std::size_t const n = next.size();
  std::vector<stage_border> border(n);
  std::vector<int> seen(n, -1);
  for (std::size_t t = 0; t < m.tensors().size(); ++t) {
    stage_tensor const& x = m.tensors()[t];
    int const from = stage_of[idx(x.producer)];
    bool leaves = false;
    for (int v : x.consumers) {
      int const to = stage_of[idx(v)];
      if (to == from || seen[idx(to)] == static_cast<int>(t)) continue;
      seen[idx(to)] = static_cast<int>(t);
      leaves = true;
      border[idx(to)].in += x.bytes;
      ++border[idx(to)].tensors_in;
      next[idx(from)].push_back(to);
    }
    if (!leaves) continue;
    border[idx(from)].out += x.bytes;
    ++border[idx(from)].tensors_out;
  }
  return border;
}
/// Work, and the bottleneck.
template <stage_model M>
void add_work(M const& m, std::vector<found_stage> const& stages, std::vector<stage_border> const& border,
              stage_cost& r) {
  std::size_t const n = stages.size(), operators = idx(m.operators());
  std::vector<stage_work> known(operators);  // of a kind, in the stage that asked last
  std::vector<int> asked(operators, -1);
  for (std::size_t s = 0; s < n; ++s) {
    stage_choice const& c = stages[s].choice;
    stage_work w = m.transfer(border[s], c, stages[s].first);
    for (int v : stages[s].nodes) {
      std::size_t const k = idx(m.kind(v));
      if (asked[k] != static_cast<int>(s)) known[k] = m.work(v, c, stages[s].first);
      asked[k] = static_cast<int>(s);
      w += known[k];
    }
    r.work.push_back(w);
    r.bottleneck = std::max(r.bottleneck, w.per_sample(c.micro_batch, m.mini_batch()));
  }
}
/// Samples in flight, and depth. Returns by stage: does none come before it?
template <stage_model M>
std::vector<char> add_in_flight(M const& m, std::vector<found_stage> const& stages,
                                std::vector<int> const& order, stage_cost& r) {
  std::size_t const n = stages.size();
  r.in_flight.assign(n, 0);
  std::vector<int> deep(n, 1);
  std::vector<char> first(n, 1);
  for (std::size_t k = n; k-- > 0;) {
    std::size_t const s = idx(order[k]);
    stage_choice const& c = stages[s].choice;
    i64 i = c.k * c.micro_batch;
    for (int y : r.next[s]) {
      stage_choice const& d = stages[idx(y)].choice;
      i = std::max(i, in_flight_grouped(c.k, c.micro_batch, d.k, d.micro_batch,
                                        r.in_flight[idx(y)]));
      deep[s] = std::max(deep[s], 1 + deep[idx(y)]);
      first[idx(y)] = 0;
    }
    r.in_flight[s] = std::min(i, m.mini_batch());
    r.depth = std::max(r.depth, deep[s]);
  }
  return first;
}
/// Seconds of an iteration. Precondition: work, samples in flight and shared weights are known.
template <stage_model M>
void add_iteration(M const& m, std::vector<found_stage> const& stages, std::vector<int> const& order,
                   std::vector<char> const& first, stage_cost& r) {
  std::size_t const n = stages.size();
  // micro-batches of one stage that cover one of another
  auto passes = [&](std::size_t of, std::size_t whose) {
    i64 const a = stages[of].choice.micro_batch, b = stages[whose].choice.micro_batch;
    return static_cast<double>((b + a - 1) / a);
  };
  std::vector<double> fill(n, 0), drain(n, 0);
  for (int o : order) {
    std::size_t const s = idx(o);
    double once = r.work[s].once;
    if (!r.shared.empty()) {
      once += r.shared.join[s];
      if (int const from = r.shared.from[s]; from >= 0) {
        std::size_t const h = idx(from);
        double const begun =
            static_cast<double>(r.in_flight[h]) / static_cast<double>(stages[h].choice.micro_batch);
        fill[s] = std::max(fill[s], fill[h] + begun * r.work[h].forward) + r.shared.wait[s];
      }
    }
    drain[s] = std::max(drain[s], once);
    r.iteration = std::max(r.iteration, fill[s] +
                                            static_cast<double>(m.mini_batch()) /
                                                static_cast<double>(stages[s].choice.micro_batch) *
                                                r.work[s].micro_batch_seconds() +
                                            drain[s]);
    for (int y : r.next[s]) {
      std::size_t const t = idx(y);
      fill[t] = std::max(fill[t], fill[s] + passes(s, t) * r.work[s].forward);
      drain[t] = std::max(drain[t], drain[s] + passes(s, t) * (r.work[s].backward + r.work[s].weights));
    }
    if (first[s]) r.source_in_flight = std::max(r.source_in_flight, r.in_flight[s]);
  }
}

}  // namespace detail

/// Prices a partition into stages. `sequential` adds an edge from each stage to the next, as pipelines do
/// that know chains only. In flight: against the edges, the most that a successor asks for
/// (in_flight_grouped), at least k micro-batches, at most the mini-batch. Iteration: the largest over all
/// stages of fill + mini_batch / micro_batch * (forward + backward + weights) + drain:
///  - fill is the longest chain of forward passes before the stage's first one. A predecessor with smaller
///    micro-batches runs several.
///  - drain is the longest chain of backward passes after its last one, or the stage's own synchronisation
///    and update.
///
/// No schedule that flushes and keeps a stage's backward and weights passes together is faster. 1F1B of a
/// chain of equal stages takes exactly this long. Where stages share weights, a stage's first pass also
/// waits for those that live elsewhere. They are on their way once the stage where they live has begun as
/// many micro-batches as it keeps in flight. That stage joins their gradients after its last pass. Neither is
/// part of the bottleneck. O(operators * tensors + stages^2). Throws `error` if an operator is in no stage or
/// in two, or if stages wait for each other.
template <stage_model M>
stage_cost cost_of(M const& m, std::vector<detail::found_stage> const& stages, bool sequential = false) {
  std::size_t const n = stages.size();
  std::vector<int> const stage_of = detail::stage_of_operators(m, stages);
  stage_cost r;
  r.next.resize(n);
  std::vector<stage_border> const border = detail::borders_of(m, stage_of, r.next);
  if (sequential)
    for (std::size_t s = 0; s + 1 < n; ++s) r.next[s].push_back(static_cast<int>(s) + 1);
  for (auto& y : r.next) {
    std::sort(y.begin(), y.end());
    y.erase(std::unique(y.begin(), y.end()), y.end());
  }
  std::vector<int> const order = detail::quotient_order(r.next);
  if (order.empty() && n > 0) throw error("stages wait for each other", "cost_of", "an acyclic quotient");
  detail::add_work(m, stages, border, r);
  std::vector<char> const first = detail::add_in_flight(m, stages, order, r);
  std::vector<stage_place> places;
  for (auto const& s : stages) places.push_back({s.choice, s.first});
  r.shared = detail::sharing_of(m, stage_of, places);
  detail::add_iteration(m, stages, order, first, r);
  for (std::size_t s = 0; s < n; ++s) {
    r.bytes.push_back(r.work[s].bytes(r.in_flight[s]));
    if (!r.shared.empty())
      r.bytes[s] = r.shared.bytes[s] + std::max(r.bytes[s], r.work[s].fixed + r.shared.after[s]);
    double const lacks = r.bytes[s] - m.capacity(stages[s].first, stages[s].choice.devices());
    if (lacks > 0 && (!r.shortage || lacks > r.shortage->lacks))
      r.shortage = stage_shortage{stages[s].first, lacks};
  }
  return r;
}

}  // namespace tensorpar::search
