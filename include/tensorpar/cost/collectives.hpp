// tensorpar/cost/collectives.hpp - seconds of collective algorithms in the alpha-beta model: ring, tree,
// hierarchical
#pragma once
#include <bit>
#include <tensorpar/core/index.hpp>
#include <tensorpar/cost/groups.hpp>

namespace tensorpar::cost {

/// A link as one device sees it: a message of b bytes takes latency + b / bandwidth. Latency in seconds,
/// bandwidth in bytes/s.
struct link_cost {
  double latency, bandwidth;
  constexpr double seconds(double messages, double bytes) const {
    return messages * latency + bytes / bandwidth;
  }
};

enum class collective_algorithm : int { best, ring, tree, hierarchical };

/// One group of n devices on equal links. S is what one device holds: before a reduction, after a gathering,
/// on either side of an all-to-all. Sources: Thakur, Rabenseifner, Gropp 2005, "Optimization of collective
/// communication operations in MPICH", section 4 (ring, recursive doubling and halving; two more rounds where
/// n is not a power of two); Bruck et al. 1997 (all-to-all).
namespace flat {

// ceil(log2 n)
constexpr double rounds(i64 n) { return static_cast<double>(std::bit_width(static_cast<u64>(n - 1))); }
constexpr bool power_of_two(i64 n) { return (n & (n - 1)) == 0; }
constexpr double others(i64 n) { return static_cast<double>(n - 1) / static_cast<double>(n); }

constexpr double all_reduce_ring(i64 n, double bytes, link_cost c) {
  return c.seconds(2 * static_cast<double>(n - 1), 2 * bytes * others(n));
}
/// Recursive doubling: everything, log2 n times. Best where latency rules.
constexpr double all_reduce_tree(i64 n, double bytes, link_cost c) {
  double const k = power_of_two(n) ? rounds(n) : rounds(n) - 1 + 2;
  return c.seconds(k, k * bytes);
}
/// Also all_gather: the same messages the other way round.
constexpr double reduce_scatter_ring(i64 n, double bytes, link_cost c) {
  return c.seconds(static_cast<double>(n - 1), bytes * others(n));
}
/// Recursive halving; where n is not a power of two the surplus first folds its data into others and gets its
/// part at the end.
constexpr double reduce_scatter_tree(i64 n, double bytes, link_cost c) {
  if (power_of_two(n)) return c.seconds(rounds(n), bytes * others(n));
  return c.seconds(rounds(n) - 1 + 2, bytes * (1 + others(n)) + bytes / static_cast<double>(n));
}
constexpr double all_to_all_pairs(i64 n, double bytes, link_cost c) {
  return c.seconds(static_cast<double>(n - 1), bytes * others(n));
}
constexpr double all_to_all_tree(i64 n, double bytes, link_cost c) {
  return c.seconds(rounds(n), rounds(n) * bytes / 2);
}

constexpr double least(double a, double b) { return a < b ? a : b; }
constexpr double all_reduce(i64 n, double s, link_cost c, collective_algorithm a) {
  if (n < 2) return 0;
  if (a == collective_algorithm::ring) return all_reduce_ring(n, s, c);
  if (a == collective_algorithm::tree) return all_reduce_tree(n, s, c);
  return least(all_reduce_ring(n, s, c), all_reduce_tree(n, s, c));
}
constexpr double reduce_scatter(i64 n, double s, link_cost c, collective_algorithm a) {
  if (n < 2) return 0;
  if (a == collective_algorithm::ring) return reduce_scatter_ring(n, s, c);
  if (a == collective_algorithm::tree) return reduce_scatter_tree(n, s, c);
  return least(reduce_scatter_ring(n, s, c), reduce_scatter_tree(n, s, c));
}

}  // namespace flat

/// A group over several levels of links. `link(l, senders)` is the link of level l while `senders` devices of
/// one block of the level below send over it at once. All functions: S as in `flat`, seconds, O(levels), no
/// allocation.
namespace layered {

/// The slowest link that the group crosses, as a flat algorithm in device order meets it: it leaves each
/// block on one link per group.
template <class Link> link_cost crossed(group_levels const& g, Link&& link) {
  link_cost worst{0, 0};
  i64 within = 1;
  for (int l = 0; l < g.levels; ++l) {
    std::size_t const i = idx(l);
    if (g.fan[i] > 1) {
      i64 const groups = g.even && g.abreast[i] > within ? g.abreast[i] / within : g.even ? 1 : g.abreast[i];
      link_cost const c = link(l, groups);
      worst.latency = c.latency > worst.latency ? c.latency : worst.latency;
      worst.bandwidth = worst.bandwidth == 0 || c.bandwidth < worst.bandwidth ? c.bandwidth : worst.bandwidth;
    }
    within *= g.fan[i];
  }
  return worst;
}
inline i64 size(group_levels const& g) {
  i64 n = 1;
  for (int l = 0; l < g.levels; ++l) n *= g.fan[idx(l)];
  return n;
}

/// Reduce-scatter level by level, inside out: each level works on the part that the one below left. Every
/// device sends on every level. The same for all_gather, outside in.
template <class Link>
double reduce_scatter(group_levels const& g, double bytes, Link&& link, collective_algorithm a) {
  using enum collective_algorithm;
  double const whole = a == hierarchical ? 0 : flat::reduce_scatter(size(g), bytes, crossed(g, link), a);
  if (a != best && a != hierarchical) return whole;
  double sum = 0;
  for (int l = 0; l < g.levels; ++l) {
    i64 const n = g.fan[idx(l)];
    if (n < 2) continue;
    sum += flat::reduce_scatter(n, bytes, link(l, g.abreast[idx(l)]), best);
    bytes /= static_cast<double>(n);
  }
  return a == hierarchical ? sum : flat::least(whole, sum);
}

/// Reduce-scatter inside, all-reduce of the parts outside, all-gather inside, at whatever level that split is
/// best.
template <class Link>
double all_reduce(group_levels const& g, double bytes, Link&& link, collective_algorithm a) {
  using enum collective_algorithm;
  double const whole = a == hierarchical ? 0 : flat::all_reduce(size(g), bytes, crossed(g, link), a);
  if (a != best && a != hierarchical) return whole;
  double inner = 0, sum = -1;
  for (int l = 0; l < g.levels; ++l) {
    i64 const n = g.fan[idx(l)];
    if (n < 2) continue;
    link_cost const c = link(l, g.abreast[idx(l)]);
    bool outermost = true;
    for (int k = l + 1; k < g.levels; ++k) outermost = outermost && g.fan[idx(k)] < 2;
    if (outermost) { sum = inner + flat::all_reduce(n, bytes, c, best); break; }
    inner += 2 * flat::reduce_scatter(n, bytes, c, best);
    bytes /= static_cast<double>(n);
  }
  if (sum < 0) sum = 0;
  return a == hierarchical ? sum : flat::least(whole, sum);
}

/// Every device has something for every other: what goes to devices of another block crosses that level. The
/// levels are used one after another (one port per device); tree only as a flat algorithm.
template <class Link>
double all_to_all(group_levels const& g, double bytes, Link&& link, collective_algorithm a) {
  using enum collective_algorithm;
  i64 const n = size(g);
  if (n < 2) return 0;
  link_cost const worst = crossed(g, link);
  if (a == ring) return flat::all_to_all_pairs(n, bytes, worst);
  if (a == tree) return flat::all_to_all_tree(n, bytes, worst);
  double sum = 0;
  i64 within = 1;
  for (int l = 0; l < g.levels; ++l) {
    i64 const here = within * g.fan[idx(l)];
    if (here > within)
      sum += link(l, g.abreast[idx(l)])
                 .seconds(static_cast<double>(here - within),
                          bytes * static_cast<double>(here - within) / static_cast<double>(n));
    within = here;
  }
  return a == hierarchical ? sum : flat::least(sum, flat::all_to_all_tree(n, bytes, worst));
}

}  // namespace layered

}  // namespace tensorpar::cost
