// tensorpar/search/pipeline/stages/engine.hpp - the least bottleneck over one family of partitions, by
// bisection that knows which times matter
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/graph/sp/relaxation.hpp>
#include <tensorpar/search/pipeline/stages/decision.hpp>
#include <tensorpar/search/pipeline/stages/evaluate.hpp>
#include <utility>
#include <vector>

namespace tensorpar::search {

/// How much was searched.
struct stage_statistics {
  i64 limits = 0;    // times per sample that were decided
  i64 problems = 0;  // sub-trees under needs, equal ones once
  i64 partials = 0;    // partial pipelines
  friend bool operator==(stage_statistics const&, stage_statistics const&) = default;
};

namespace detail {

/// A pipeline and what it comes to.
struct priced_stages {
  std::vector<found_stage> stages;
  stage_cost cost;
};

/// Finds the least limit at which `decide(limit)` finds a pipeline. `decide` returns pipelines (priced;
/// empty: none), `rejected()` the least time above the limit that it met, so that an interval without any
/// candidate is never halved: with tolerance 0 the answer is exact. No pipeline is below `low`; the first
/// limit decided is `first`. Calls `found` for each pipeline, which may return a ceiling: no need to look
/// above it. Returns the greatest time that no pipeline is known to be below... of the family: [returned,
/// best found].
template <class Decide, class Rejected, class Found>
double bisect_limit(double low, double first, double ceiling, double tolerance, Decide&& decide,
                    Rejected&& rejected, Found&& found) {
  double high = -1, limit = std::max(low, first);
  if (tolerance < 1e-9) tolerance = 1e-9;  // sums are rounded
  for (int round = 0; round < 200; ++round) {
    if (limit > ceiling) limit = ceiling;
    bool feasible = false;
    for (priced_stages& p : decide(limit)) {
      feasible = true;
      if (high < 0 || p.cost.bottleneck < high) high = p.cost.bottleneck;
      ceiling = std::min(ceiling, found(std::move(p)));
    }
    if (!feasible) {
      double const next = rejected();
      // nothing is too slow: memory or devices do not suffice at any time
      if (next == infinity) return infinity;
      low = std::max(low, next);
    }
    if (low >= ceiling) return low;
    if (high < 0 && ceiling < infinity && ceiling - low <= tolerance * ceiling) return low;
    if (high >= 0) {
      if (high - low <= tolerance * high) return low;
      limit = std::min((low + high) / 2, high * (1 - 0.5 * tolerance));
      if (limit < low) limit = low;
    } else {
      limit = std::max(low, round == 0 ? limit * 1.5 : ceiling < infinity ? ceiling : limit * 3);
    }
  }
  return low;
}

/// A family of partitions: those of `stage_decision` over one tree. Trees of one series of all operators give
/// contiguous stages of a line.
template <stage_model M> class stage_family {
  M const& m_;
  stage_tree tree_;
  stage_blocks blocks_;
  bool sequential_;

 public:
  stage_family(M const& m, graph::sp_tree tree, bool sequential)
      : m_(m),
        tree_(std::move(tree), m.tensors(), m.operators(), [&](int v) { return m.kind(v); }),
        blocks_(tree_),
        sequential_(sequential) {}
  stage_tree const& tree() const { return tree_; }

  /// Every pipeline that is met goes to `found`; the arguments are those of `bisect_limit`. Returns a time
  /// per sample that no pipeline of the family over these batchings is below.
  template <class Found>
  double search(std::vector<stage_batching> const& batchings, double low, double first, double ceiling,
                double tolerance, stage_statistics& count, Found&& found) {
    in_flight_needs needs(batchings, m_.mini_batch());
    stage_prices<M> prices(m_, tree_, batchings);
    if (prices.choices().empty()) return infinity;
    auto decide = [&](double limit) {
      prices.set_limit(limit * (1 + 1e-12));
      stage_decision<M> d(tree_, blocks_, prices, needs);
      std::vector<priced_stages> r;
      for (auto& stages : d.solve()) {
        priced_stages p{std::move(stages), {}};
        p.cost = cost_of(m_, p.stages, sequential_);
        if (!p.cost.shortage) r.push_back(std::move(p));
      }
      ++count.limits;
      count.problems += static_cast<i64>(d.problems());
      count.partials += static_cast<i64>(d.partials());
      return r;
    };
    return bisect_limit(
        low, first, ceiling, tolerance, decide, [&] { return prices.min_rejected(); }, found);
  }
};

/// A series-parallel tree of the graph, operators weighing what they take on the smallest group with
/// micro-batches of so many samples. Throws `error` if sizes differ, and for an empty or cyclic graph.
template <stage_model M>
graph::relaxation<double> stage_relaxation(graph::adjacency const& a, M const& m, i64 micro_batch) {
  if (a.node_count() != m.operators())
    throw error("the graph has " + std::to_string(a.node_count()) + " nodes and the model " +
                    std::to_string(m.operators()) + " operators",
                "stages", "one operator for each node");
  std::vector<double> weight(idx(m.operators()), -1);
  for (int v = 0; v < m.operators(); ++v) {
    double& w = weight[idx(m.kind(v))];
    stage_choice c;
    c.micro_batch = micro_batch;
    if (w < 0) w = m.work(v, c, 0).per_sample(micro_batch, m.mini_batch());
  }
  return graph::relax(a, [&](int v) { return weight[idx(m.kind(v))]; });
}

/// One series of all operators in this order.
inline graph::sp_tree line_of(std::vector<int> const& order) {
  graph::sp_expr e;
  std::vector<int> parts;
  for (int v : order) parts.push_back(e.leaf(v));
  return graph::normalise(e, e.compose(graph::sp_kind::series, parts));
}
/// The order in which a tree holds its operators: branch by branch.
inline std::vector<int> order_of(graph::sp_tree const& t) {
  std::vector<int> r;
  for (int i = 0; i < t.size(); ++i)
    if (t.kind(i) == graph::sp_kind::leaf) r.push_back(t.node(i));
  return r;
}
inline graph::sp_tree line_of(graph::sp_tree const& t) { return line_of(order_of(t)); }

/// Other topological orders than a given one, where they differ: by the longest path from a source, by that
/// to a sink, and those two with ties turned round. O(operators log operators + edges).
inline std::vector<std::vector<int>> other_orders(graph::adjacency const& a, std::vector<int> const& order) {
  std::size_t const n = order.size();
  std::vector<int> place(n, 0), early(n, 0), late(n, 0);
  for (std::size_t i = 0; i < n; ++i) place[idx(order[i])] = static_cast<int>(i);
  for (int v : order)
    for (int w : a.successors(v))
      early[idx(w)] =
          std::max(early[idx(w)], early[idx(v)] + 1);
  for (std::size_t i = n; i-- > 0;)
    for (int w : a.successors(order[i]))
      late[idx(order[i])] =
          std::min(late[idx(order[i])], late[idx(w)] - 1);
  std::vector<std::vector<int>> r;
  for (std::vector<int> const* level : {&early, &late})
    for (int sign : {1, -1}) {
      std::vector<int> x = order;
      std::stable_sort(x.begin(), x.end(), [&](int v, int w) {
        int const p = (*level)[idx(v)], q = (*level)[idx(w)];
        return p != q ? p < q
                      : sign * place[idx(v)] < sign * place[idx(w)];
      });
      bool known = x == order;
      for (auto const& y : r) known = known || y == x;
      if (!known) r.push_back(std::move(x));
    }
  return r;
}

}  // namespace detail

}  // namespace tensorpar::search
