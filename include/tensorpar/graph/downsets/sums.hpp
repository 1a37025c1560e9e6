// tensorpar/graph/downsets/sums.hpp - costs of every downset, grown node by node, so that a stage is a
// difference of two
#pragma once
#include <algorithm>
#include <cmath>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/graph/downsets/objective.hpp>
#include <utility>
#include <vector>

namespace tensorpar::graph::detail {

/// Everything about the downsets that does not depend on a target, by rank: rank 0 is the full set, supersets
/// come before subsets, and device work falls.
template <downset_objective O> class downset_sums {
  O const& o_;
  downset_lattice const& l_;
  int nets_ = 0;


  void find_factors() {
    int const tables = o_.tables();
    factor.assign(idx(tables), infinity);
    for (int w = 0; w < o_.ways(); ++w) {
      stage_way const x = o_.way(w);
      if (x.devices > 0) factor[idx(x.table)] = std::min(factor[idx(x.table)], x.devices / x.share);
      else free_way = true;
    }
    int const n = l_.node_count();
    device_work.assign(idx(n), 0.0);
    for (int v = 0; v < n; ++v) {
      double least = infinity;
      for (int t = 0; t < tables; ++t)
        if (factor[idx(t)] < infinity && o_.work(t, v) < infinity)
          least = std::min(least, factor[idx(t)] * o_.work(t, v));
      device_work[idx(v)] = least < infinity ? least : 0.0;
      total += device_work[idx(v)];
    }
    absorbs.assign(idx(o_.ways()), 0.0);
    for (int w = 0; w < o_.ways(); ++w) {
      stage_way const x = o_.way(w);
      double rate = x.devices > 0 ? factor[idx(x.table)] : 0.0;
      if (x.devices == 0)
        for (int v = 0; v < n; ++v)
          if (double const own = o_.work(x.table, v); device_work[idx(v)] > 0 && own < infinity)
            rate = std::max(rate, own > 0 ? device_work[idx(v)] / own : infinity);
      absorbs[idx(w)] = rate * x.share;
      if (x.devices == 0) free_rate = std::max(free_rate, absorbs[idx(w)] * o_.copies() / x.copies);
    }
  }

  /// Each downset's cut nets follow from its parent's: nets of the new node enter, count up, or close.
  void find_cuts(std::vector<std::vector<int>> const& nets_of, std::vector<int> const& size) {
    int const count = l_.count();
    // by downset: nets, and how many of their nodes are in
    std::vector<int> start(idx(count) + 1, 0), item, seen;
    for (int d = 0; d < count; ++d) {
      start[idx(d)] = static_cast<int>(item.size());
      if (d == 0) continue;
      int i = start[idx(l_.parent(d))];
      int const end = start[idx(l_.parent(d) + 1)];
      auto const keep = [&](int h, int n) {
        if (n == size[idx(h)]) return;
        item.push_back(h);
        seen.push_back(n);
      };
      for (int h : nets_of[idx(l_.last(d))]) {
        for (; i < end && item[idx(i)] < h; ++i) keep(item[idx(i)], seen[idx(i)]);
        keep(h, i < end && item[idx(i)] == h ? seen[idx(i++)] + 1 : 1);
      }
      for (; i < end; ++i) keep(item[idx(i)], seen[idx(i)]);
      start[idx(d) + 1] = static_cast<int>(item.size());
    }
    start[idx(count)] = static_cast<int>(item.size());
    cut_start.assign(idx(count) + 1, 0);
    cut_net.reserve(item.size());
    cut_seen.reserve(item.size());
    for (int r = 0; r < count; ++r) {
      int const d = id[idx(r)];
      cut_net.insert(cut_net.end(), item.begin() + start[idx(d)], item.begin() + start[idx(d) + 1]);
      cut_seen.insert(cut_seen.end(), seen.begin() + start[idx(d)], seen.begin() + start[idx(d) + 1]);
      cut_start[idx(r) + 1] = static_cast<int>(cut_net.size());
    }
  }

  void find_order() {
    int const count = l_.count();
    std::vector<i64> q(idx(count), 0);
    std::vector<int> nodes(idx(count), 0);
    double const unit = total > 0 ? static_cast<double>(one) / total : 0.0;
    std::vector<i64> of(device_work.size());
    for (std::size_t v = 0; v < of.size(); ++v) of[v] = static_cast<i64>(std::llround(device_work[v] * unit));
    for (int d = 1; d < count; ++d) {
      q[idx(d)] = q[idx(l_.parent(d))] + of[idx(l_.last(d))];
      nodes[idx(d)] = nodes[idx(l_.parent(d))] + 1;
    }
    id.resize(idx(count));
    for (int d = 0; d < count; ++d) id[idx(d)] = d;
    std::sort(id.begin(), id.end(), [&](int a, int b) {
      if (q[idx(a)] != q[idx(b)]) return q[idx(a)] > q[idx(b)];
      return nodes[idx(a)] != nodes[idx(b)] ? nodes[idx(a)] > nodes[idx(b)] : a < b;
    });
    work_units.resize(idx(count));
    for (int r = 0; r < count; ++r) work_units[idx(r)] = q[idx(id[idx(r)])];
    units_of = std::move(of);
  }

  /// A downset without node x has none of x's descendants: with more work than all others together it holds
  /// x.
  void find_clear(reachability const& reach) {
    int const n = l_.node_count();
    std::vector<i64> without(idx(n), work_units[0]), net(idx(nets_), 0);
    for (int x = 0; x < n; ++x)
      for (int y = 0; y < n; ++y)
        if (y == x || reach.reaches(x, y)) without[idx(x)] -= units_of[idx(y)];
    for (int h = 0; h < nets_; ++h)
      for (int x : o_.nets()[idx(h)]) net[idx(h)] = std::max(net[idx(h)], without[idx(x)]);
    clear_units.assign(idx(l_.count()), -1);
    for (int r = 0; r < l_.count(); ++r)
      for (int i = cut_start[idx(r)]; i < cut_start[idx(r) + 1]; ++i)
        clear_units[idx(r)] = std::max(clear_units[idx(r)], net[idx(cut_net[idx(i)])]);
  }

  void sum_up() {
    int const count = l_.count(), tables = o_.tables();
    measure.assign(idx(count) * idx(o_.measures()), 0.0);
    std::vector<double> rows(measure);
    for (int d = 1; d < count; ++d)
      for (int k = 0, m = o_.measures(); k < m; ++k)
        rows[idx(d) * idx(m) + idx(k)] =
            rows[idx(l_.parent(d)) * idx(m) + idx(k)] + o_.measure(k, l_.last(d));
    for (int r = 0; r < count; ++r)
      std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(idx(id[idx(r)]) * idx(o_.measures())),
                  o_.measures(), measure.begin() + static_cast<std::ptrdiff_t>(idx(r) * idx(o_.measures())));
    std::vector<double> sum(idx(count), 0.0);
    std::vector<int> bars(idx(count), 0);
    for (int t = 0; t < tables; ++t) {
      for (int d = 1; d < count; ++d) {
        double const x = o_.work(t, l_.last(d));
        sum[idx(d)] = sum[idx(l_.parent(d))] + (x < infinity ? x : 0.0);
        bars[idx(d)] = bars[idx(l_.parent(d))] + (x < infinity ? 0 : 1);
      }
      work.emplace_back(idx(count));
      barred.emplace_back(idx(count));
      for (int r = 0; r < count; ++r) {
        work.back()[idx(r)] = sum[idx(id[idx(r)])];
        barred.back()[idx(r)] = bars[idx(id[idx(r)])];
      }
      charge.emplace_back();
      for (int h = 0; h < nets_; ++h) charge.back().push_back(o_.charge(t, h));
      in.emplace_back(idx(count), 0.0);
      out.emplace_back(idx(count), 0.0);
      for (int r = 0; r < count; ++r)
        for (int i = cut_start[idx(r)]; i < cut_start[idx(r) + 1]; ++i) {
          in.back()[idx(r)] += charge.back()[idx(cut_net[idx(i)])].in;
          out.back()[idx(r)] += charge.back()[idx(cut_net[idx(i)])].out;
        }
    }
    before.assign(idx(count), 0.0);
    after.assign(idx(count), 0.0);
    std::vector<double> low(idx(nets_), 0.0), high(idx(nets_), 0.0);
    for (int h = 0; h < nets_ && !free_way; ++h) {
      low[idx(h)] = high[idx(h)] = infinity;
      for (int t = 0; t < tables; ++t)
        if (factor[idx(t)] < infinity) {
          low[idx(h)] = std::min(low[idx(h)], factor[idx(t)] * charge[idx(t)][idx(h)].out);
          high[idx(h)] = std::min(high[idx(h)], factor[idx(t)] * charge[idx(t)][idx(h)].in);
        }
    }
    std::vector<double> device(idx(count), 0.0);
    for (int d = 1; d < count; ++d) device[idx(d)] = device[idx(l_.parent(d))] + device_work[idx(l_.last(d))];
    for (int r = 0; r < count; ++r) {
      before[idx(r)] = device[idx(id[idx(r)])];
      after[idx(r)] = total - before[idx(r)];
      for (int i = cut_start[idx(r)]; i < cut_start[idx(r) + 1]; ++i) {
        before[idx(r)] += low[idx(cut_net[idx(i)])];
        after[idx(r)] += high[idx(cut_net[idx(i)])];
      }
    }
  }

 public:
  static constexpr i64 one = i64{1} << 40;    // all device work, in units
  std::vector<double> factor;                 // by table: fewest devices per share
  std::vector<double> device_work;            // by node: device-seconds that it takes at least
  double total = 0;
  bool free_way = false;                      // is there a way without devices?
  // device-seconds that all ways without devices absorb per second
  double free_rate = 0;
  // by way: device-seconds of work in a stage per second of its price, at most
  std::vector<double> absorbs;
  std::vector<int> id;                        // by rank: the downset
  // by rank: device work, whole numbers, so that supersets never have less
  std::vector<i64> work_units;
  std::vector<i64> units_of;                  // by node
  // by rank: a downset with more work holds all nets that this one cuts
  std::vector<i64> clear_units;
  std::vector<double> measure;                // by rank, rows
  std::vector<std::vector<double>> work, in, out;  // by table and rank
  std::vector<std::vector<int>> barred;       // by table and rank: nodes that cannot run so
  std::vector<std::vector<net_charge>> charge;
  // by rank: device-seconds of all stages that make up the downset, and of all the others
  std::vector<double> before, after;
  std::vector<int> cut_start, cut_net, cut_seen;

  template <topology G> downset_sums(G const& g, O const& o, downset_lattice const& l) : o_(o), l_(l) {
    auto const& nets = o.nets();
    nets_ = static_cast<int>(nets.size());
    std::vector<std::vector<int>> nets_of(idx(l.node_count()));
    std::vector<int> size;
    for (int h = 0; h < nets_; ++h) {
      size.push_back(static_cast<int>(nets[idx(h)].size()));
      for (int v : nets[idx(h)]) nets_of[idx(v)].push_back(h);
    }
    find_factors();
    find_order();
    find_cuts(nets_of, size);
    find_clear(reachability(g));
    sum_up();
  }

  /// In each of `bands` equal bands of work the `each` downsets that cut least, and the empty and the full
  /// one: flags by rank.
  std::vector<char> narrow_downsets(int bands, int each) const {
    int const count = l_.count();
    std::vector<char> r(idx(count), 0);
    std::vector<std::vector<std::pair<double, int>>> best(idx(bands) + 1);
    for (int i = 0; i < count; ++i) {
      double cut = 0;
      for (std::size_t t = 0; t < in.size(); ++t) cut = std::max(cut, in[t][idx(i)] + out[t][idx(i)]);
      auto& band = best[idx(work_units[idx(i)] * bands / (one + 1))];
      band.push_back({cut, i});
      std::sort(band.begin(), band.end());
      if (static_cast<int>(band.size()) > each) band.pop_back();
    }
    for (auto const& band : best)
      for (auto const& [cut, i] : band) r[idx(i)] = 1;
    r.front() = r.back() = 1;
    return r;
  }

  double const* measures(int r) const { return measure.data() + idx(r) * idx(o_.measures()); }

  /// What the nets charge the stage between the downsets of two ranks, in a table. A net that both cut was
  /// counted in full: it charges in + out - both if the stage holds some of its nodes, else nothing. O(nets
  /// cut).
  double boundary(int t, int low, int high) const {
    double r = in[idx(t)][idx(low)] + out[idx(t)][idx(high)];
    int i = cut_start[idx(low)], j = cut_start[idx(high)];
    int const m = cut_start[idx(low) + 1], n = cut_start[idx(high) + 1];
    while (i < m && j < n) {
      int const a = cut_net[idx(i)], b = cut_net[idx(j)];
      if (a == b) {
        net_charge const& c = charge[idx(t)][idx(a)];
        r -= cut_seen[idx(i)] != cut_seen[idx(j)] ? c.both : c.in + c.out;
      }
      i += a <= b;
      j += b <= a;
    }
    return r;
  }
};

}  // namespace tensorpar::graph::detail
