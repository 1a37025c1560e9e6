// tensorpar/search/pipeline/stages.hpp - from a graph, devices and a stage model to a pipeline whose stages
// follow the graph
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/search/pipeline/answer.hpp>
#include <tensorpar/search/pipeline/every.hpp>
#include <tensorpar/search/pipeline/exchange.hpp>
#include <tensorpar/search/pipeline/nested.hpp>
#include <tensorpar/search/pipeline/step_times.hpp>

namespace tensorpar::search {

namespace detail {

/// The sizes to be tried. Throws `error` for a size that does not divide the mini-batch or is no multiple of
/// the graph's batch.
template <stage_model M>
std::vector<i64> sizes_to_try(M const& m, stage_options const& o, char const* where) {
  std::vector<i64> r =
      o.micro_batches.empty() ? usual_micro_batches(m.own_batch(), m.mini_batch()) : o.micro_batches;
  std::sort(r.begin(), r.end());
  for (i64 b : r)
    if (b < 1 || m.mini_batch() % b != 0 || b % m.own_batch() != 0)
      throw error("micro-batches of " + std::to_string(b) + " samples", where,
                  "divisors of the mini-batch, " + std::to_string(m.mini_batch()) +
                      ", that are multiples of " + std::to_string(m.own_batch()));
  if (r.empty())
    throw error("no micro-batch size", where, "a mini-batch that is a multiple of the graph's batch");
  return r;
}
template <stage_model M>
std::vector<stage_batching> batchings_of(M const& m, stage_options const& o, std::vector<i64> const& sizes) {
  std::vector<stage_batching> r;
  for (i64 b : sizes)
    for (int k : o.ks)
      if (k >= 1 && m.mini_batch() % (b * k) == 0) r.push_back({b, k});
  return r;
}

/// A micro-batch size and the least bottleneck it could have.
struct size_to_try {
  i64 size;
  double low;
};
/// The sizes in the order in which the bar is expected to fall soonest. Throws `error` where the model admits
/// none.
template <stage_model M>
std::vector<size_to_try> order_of_sizes(M const& m, stage_options const& o, std::vector<i64> const& sizes,
                                        bool by_iteration) {
  std::vector<size_to_try> r;
  for (i64 b : sizes)
    if (double const low = bottleneck_bound(m, batchings_of(m, o, {b})); low < infinity)
      r.push_back({b, low});
  if (r.empty())
    throw error("the model admits no micro-batch size on any number of devices", "stages",
                "a size that some degree divides");
  std::stable_sort(r.begin(), r.end(),
                   [](size_to_try const& x, size_to_try const& y) { return x.low < y.low; });
  // larger ones are faster per sample, smaller ones fill a pipeline sooner
  double const almost = r.front().low * 1.1;
  if (by_iteration)
    std::stable_sort(r.begin(), r.end(), [&](size_to_try const& x, size_to_try const& y) {
      bool const p = x.low <= almost, q = y.low <= almost;
      return p != q ? p : p ? x.size < y.size : x.low < y.low;
    });
  return r;
}

/// Searches a family at one size after another. Returns a bottleneck that no pipeline of the family at these
/// sizes is below.
template <stage_model M, class Skip>
double search_sizes(stage_family<M>& family, M const& m, stage_options const& o,
                    std::vector<size_to_try> const& order, double tolerance, best_stages& best,
                    stage_source source, stage_statistics& count, Skip&& skip) {
  double bound = infinity;
  for (size_to_try const& s : order) {
    double low = s.low;
    if (skip(s.size)) continue;
    if (low < best.ceiling()) {
      double ceiling = o.objective == stage_objective::thesis ? infinity : best.ceiling(), first = low * 1.1;
      // worth it where the line balances better than the tree did
      if (source == stage_source::line && best.best) {
        first = best.best->cost.bottleneck *
                (1 - (best.by_iteration() ? tolerance > 0.02 ? tolerance / 2 : 0 : o.tolerance));
        ceiling = std::min(ceiling, best.best->cost.bottleneck * 1.02);
      }
      low = std::max(low, family.search(batchings_of(m, o, {s.size}), low, first, ceiling, tolerance, count,
                                        [&](priced_stages p) {
                                          return best.offer(std::move(p), source, count.limits);
                                        }));
      best.close(source);
    }
    bound = std::min(bound, low);
  }
  return bound;
}

/// The best sequential pipeline: contiguous stages of a line, each waiting for the one before it. `bound` as
/// search_sizes returns it.
template <stage_model M>
best_stages best_sequential(M const& m, stage_options const& o, std::vector<int> const& line,
                            std::vector<size_to_try> const& order, stage_statistics& count, double& bound) {
  best_stages best(o.objective, m.mini_batch());
  stage_family<M> family(m, line_of(line), true);
  double const tolerance =
      o.objective == stage_objective::iteration ? std::max(o.tolerance, 0.01) : o.tolerance;
  bound = search_sizes(family, m, o, order, tolerance, best, stage_source::tree, count,
                       [](i64) { return false; });
  if (o.objective == stage_objective::iteration) settle(m, best, true);
  return best;
}

/// Anneals from the best pipeline and, on equal devices, from one device per stage; what fits into memory is
/// offered.
template <stage_model M>
void exchange_operators(graph::adjacency const& a, M const& m, stage_options const& o,
                        std::vector<int> const& line, best_stages& best, stage_statistics& count) {
  auto attempt = [&](std::vector<found_stage> const& from, u64 seed, double cold) {
    priced_stages p{stage_exchange<M>(a, m, from).run(o.exchanges, seed << 32, cold), {}};
    p.cost = cost_of(m, p.stages);
    if (!p.cost.shortage) best.offer(std::move(p), stage_source::exchange, ++count.limits);
  };
  if (!best.best) return;
  stage_choice one = best.best->stages.front().choice;
  one.data = one.tensor = 1;
  one.shard_optimizer = false;
  std::vector<found_stage> sorted;
  for (int s : quotient_order(best.best->cost.next))
    sorted.push_back(best.best->stages[idx(s)]);
  attempt(sorted, 1, 1e-3);
  auto const degrees = m.degrees();
  bool const offered = std::any_of(degrees.begin(), degrees.end(), [&](stage_choice c) {
    c.micro_batch = one.micro_batch;
    c.k = one.k;
    return c == one;
  });
  if (!m.uniform() || !offered || !m.admits(one) || m.devices() < 2 || m.devices() > m.operators()) return;
  u64 seed = 2;
  for (double cold : {0.2, 0.2, 0.2, 1e-2, 1e-4}) attempt(one_device_each(m, line, one), seed++, cold);
}

}  // namespace detail

namespace detail {
inline i64 size_of_best(best_stages const& best) {
  return best.best ? best.best->stages.front().choice.micro_batch : 0;
}
inline bool has_gap(best_stages const& best, stage_result const& r, stage_options const& o) {
  return !best.best || best.best->cost.bottleneck > r.bound * (1 + o.tolerance);
}
/// Looks at pipelines whose stages are runs of these orders, `sizes` in their order. Returns what PipeDream
/// would do, if it was asked: it may be simulated faster than it is estimated.
template <stage_model M>
std::optional<priced_stages> search_lines(M const& m, stage_options const& o,
                                          std::vector<std::vector<int>> const& orders,
                                          std::vector<size_to_try> const& sizes, double coarse, double fine,
                                          best_stages& best, stage_result& r) {
  constexpr int large = 512;  // operators: beyond, what costs most and gains least is left out
  bool const iteration = o.objective == stage_objective::iteration;
  std::optional<priced_stages> sequential;
  // never worse than what PipeDream would do
  if (o.line && m.operators() > 1 && m.operators() <= 192 && best.by_iteration()) {
    double bound = 0;
    best_stages alone = best_sequential(m, o, orders.front(), sizes, r.statistics, bound);
    if (alone.best) {
      alone.best->cost = cost_of(m, alone.best->stages);
      sequential = alone.best;
      best.offer(std::move(*alone.best), stage_source::line, ++r.statistics.limits);
      best.close(stage_source::line);
    }
  }
  if (o.line && m.operators() > 1) {
    // sizes that may be better than that one
    i64 const around = iteration && m.operators() > 192 ? size_of_best(best) : 0;
    bool const one = m.operators() > large;
    for (auto const& x : orders) {
      if (!has_gap(best, r, o)) break;
      stage_family<M> line(m, line_of(x), false);
      double const low = search_sizes(
          line, m, o, sizes, around != 0 && one ? coarse : fine, best, stage_source::line, r.statistics,
          [&](i64 b) { return around != 0 && (one ? b != around : b * 2 < around || b > around * 4); });
      r.family_bound = std::min(r.family_bound, low);
    }
  }
  return sequential;
}
}  // namespace detail

namespace detail {
/// Looks at partitions into all up-sets that are given; `every`: there are no others, and stages may differ
/// in their sizes, so that what is found is the best of all.
template <stage_model M>
void search_every(graph::adjacency const& a, M const& m, stage_options const& o, std::vector<i64> const& some,
                  std::vector<u64> const& sets, stage_tree const& tree, double fine, bool every,
                  best_stages& best, stage_result& r) {
  auto const batchings = batchings_of(m, o, some);
  in_flight_needs needs(batchings, m.mini_batch());
  stage_prices<M> prices(m, tree, batchings);
  every_partition<M> all(a, tree, prices, needs, sets);
  bool gave_up = false;
  auto decide = [&](double limit) {
    prices.set_limit(limit * (1 + 1e-12));
    ++r.statistics.limits;
    priced_stages p{all.solve(100'000, gave_up), {}};
    std::vector<priced_stages> found;
    if (p.stages.empty()) return found;
    p.cost = cost_of(m, p.stages);
    if (!p.cost.shortage) found.push_back(std::move(p));
    return found;
  };
  double const first = best.best ? best.best->cost.bottleneck * (1 - o.tolerance) : r.bound * 1.1;
  double const low = bisect_limit(
      r.bound, first, best.ceiling(), fine, decide,
      [&] { return gave_up ? infinity : prices.min_rejected(); },
      [&](priced_stages p) {
        return best.offer(std::move(p), stage_source::every_partition, r.statistics.limits);
      });
  if (!gave_up && every) {
    r.every_partition = true;
    r.family_bound = low;
    // else other placements of the same stages may be faster
    if (low < infinity && m.uniform()) r.bound = std::max(r.bound, low);
  }
}
}  // namespace detail

/// A pipeline for one training step: the thesis's stage partitioner (section 3.5, Algorithm 2) with its gaps
/// filled (stage_decision), for any acyclic graph: one that is not series-parallel goes through `relax`, and
/// the result says which dependencies that added.
///
/// The space: partitions into convex stages, on each the degrees that the model offers, micro-batches of
/// `micro_batches`, batchings of `ks`, and at most all devices. Memory is by samples in flight over the graph
/// of stages (`in_flight_grouped`: Table 3.2 for 1F1B, enough at any ratio of passes for kFkB). The families
/// of partitions:
/// - those of the tree (`stage_decision`): runs of parts of a series, whole branches together, joins with
///   ends of branches, recursively;
/// - where that leaves a gap to the bound, contiguous stages of lines of all operators: the tree's order
///   (what PipeDream knows) and, up to 32 operators or for the objective `bottleneck` up to 512, four more;
/// - every convex partition where the graph has at most `max_up_sets` up-sets (`every_partition` in the
///   result); else, under the condition of the four more lines and up to 62 operators, those between up-sets
///   of the lines, their unions and intersections;
/// - for the objective `bottleneck` what annealing reaches from the best so far (`stage_exchange`): any
///   partition into nested downsets. Where the graph has at most `max_downsets` downsets, every sequence of
///   nested ones too (`piper_stages`), below the best so far only. So on equal devices the answer is never
///   worse than Piper's.
///
/// Micro-batch sizes: all stages of a pipeline have one size in the first two families, and all sizes are
/// tried; for `iteration` and more than 192 operators the lines try those around the best size so far only.
/// Around the best, up to 512 operators, sizes are then mixed per stage over the tree. Over every partition
/// all sizes are mixed. Objective `bottleneck`: least over these families. Objective `iteration`: of all
/// pipelines that the searches for least bottlenecks pass the eight least estimates, and of those the least
/// simulated step (`settle`). Where weights are shared, one stage of everything is among them. It is not
/// proven least, but up to 192 operators the best sequential pipeline (`pipedream_stages`) is among them,
/// without its artificial edges. Objective `thesis`: tree and line of the tree's order, one size at a time.
///
/// Devices of several kinds are given to stages in topological order only, the first stages the first
/// devices.
/// `judge` (objective `iteration`, else not asked): who knows better than estimates what a step takes. It is
/// asked about the eight and about the four least estimates for every size that the largest micro-batch of a
/// pipeline had; its least step is the answer. Deterministic. Throws `error` for an empty or cyclic graph,
/// and where the model's operators are not the graph's nodes.
template <graph::topology G, stage_model M>
stage_result find_stages(G const& graph, M const& m, stage_options const& o = {},
                         step_judge* judge = nullptr) {
  using namespace detail;
  constexpr int large = 512;  // operators: beyond, what costs most and gains least is left out
  graph::adjacency const& a = graph::detail::as_adjacency(graph);
  stage_result r;
  std::vector<i64> const sizes = sizes_to_try(m, o, "find_stages");
  auto const relaxed = stage_relaxation(a, m, sizes.back());
  r.added = static_cast<int>(relaxed.added.size());
  r.critical_before = relaxed.before;
  r.critical_after = relaxed.after;
  r.bound = bottleneck_bound(m, batchings_of(m, o, sizes));

  best_stages best(o.objective, m.mini_batch(), judge != nullptr);
  bool const iteration = o.objective == stage_objective::iteration,
             thesis = o.objective == stage_objective::thesis;
  auto const order = order_of_sizes(m, o, sizes, best.by_iteration());
  double const coarse = iteration ? std::max(o.tolerance, 0.05) : o.tolerance,
               fine = iteration ? std::max(o.tolerance, 0.01) : o.tolerance;
  stage_family<M> tree(m, relaxed.tree, false);
  // these sizes together, from below the best
  auto again = [&](std::vector<i64> const& some, double times, double tolerance) {
    auto const batchings = batchings_of(m, o, some);
    double const low = bottleneck_bound(m, batchings);
    if (low >= best.ceiling()) return;
    tree.search(
        batchings, low, best.best->cost.bottleneck * times, best.ceiling(), tolerance, r.statistics,
        [&](priced_stages p) { return best.offer(std::move(p), stage_source::tree, r.statistics.limits); });
    best.close(stage_source::tree);
  };
  r.family_bound = search_sizes(tree, m, o, order, coarse, best, stage_source::tree, r.statistics,
                                [](i64) { return false; });
  auto best_size = [&] { return size_of_best(best); };
  if (iteration && !sharers_of(m).empty())
    offer_whole(m, batchings_of(m, o, sizes), best, ++r.statistics.limits);
  if (iteration && best.best) again({best_size()}, 1, fine);
  if (!thesis && best.best && o.mixed && sizes.size() > 1 && m.operators() <= large) {
    std::vector<i64> neighbours;
    for (i64 b : sizes)
      if (b * 2 == best_size() || b == best_size() || b == best_size() * 2) neighbours.push_back(b);
    again(neighbours, iteration ? 1 : 0.99, std::max(coarse, 0.01));
  }
  auto gap_left = [&] { return has_gap(best, r, o); };
  std::vector<std::vector<int>> orders{order_of(relaxed.tree)};
  bool const thorough =
      (o.objective == stage_objective::bottleneck && m.operators() <= large) || m.operators() <= 32;
  if (thorough)
    for (auto& x : other_orders(a, orders.front())) orders.push_back(std::move(x));
  std::optional<priced_stages> sequential = search_lines(m, o, orders, order, coarse, fine, best, r);
  std::size_t const max_sets = idx(std::max(o.max_up_sets, 0));
  std::vector<u64> sets = thesis ? std::vector<u64>{} : up_sets(a, max_sets);
  bool const every = !sets.empty() && o.mixed;
  if (sets.empty() && thorough && !thesis && max_sets > 0 && gap_left())
    sets = some_up_sets(orders, max_sets);
  if (!sets.empty()) {
    std::vector<i64> const some = every || !best.best ? sizes : std::vector<i64>{best_size()};
    detail::search_every(a, m, o, some, sets, tree.tree(), fine, every, best, r);
  }
  if (o.objective == stage_objective::bottleneck && o.exchanges > 0 && m.operators() <= large &&
      !r.every_partition && gap_left())
    exchange_operators(a, m, o, orders.front(), best, r.statistics);
  if (o.objective == stage_objective::bottleneck &&
      (!best.best || best.best->cost.bottleneck > r.bound * (1 + 1e-9)))
    if (auto p = nested_below(a, m, sizes, o.max_downsets, best.best ? best.best->cost.bottleneck : infinity))
      best.offer(std::move(*p), stage_source::nested, ++r.statistics.limits);
  if (!best.best) {
    r.infeasible = min_shortage(m, relaxed.tree, batchings_of(m, o, {sizes.front()}));
    return r;
  }
  if (iteration) {
    if (sequential) best.shortlist.push_back({std::move(*sequential), stage_source::line});
    settle(m, best, false, judge);
  }
  r.source = best.source;
  write_pipeline(m, std::move(*best.best), false, r);
  r.family_bound = std::min(r.family_bound, r.cost.bottleneck);
  r.bound = std::min(r.bound, r.cost.bottleneck);
  r.gap = (r.cost.bottleneck - r.bound) / r.cost.bottleneck;
  return r;
}

}  // namespace tensorpar::search
