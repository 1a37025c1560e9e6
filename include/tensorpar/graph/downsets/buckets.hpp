// tensorpar/graph/downsets/buckets.hpp - downsets in packed rows, so that supersets within bounds are found
// by comparing words
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/graph/downsets/objective.hpp>
#include <utility>
#include <vector>

namespace tensorpar::graph::detail {

/// Heights of downsets packed into words, each in a field with one bit to spare, its guard. a is within b
/// exactly if in every word (b | guards) - a keeps all guards: no field borrows.
struct downset_keys {
  int words = 1;
  std::vector<u64> guard;     // by word
  std::vector<u64> packed;    // by rank, rows of `words`

  /// `id`: by rank, the downset.
  downset_keys(downset_lattice const& l, std::vector<int> const& id) {
    std::vector<int> word, shift;
    int used = 0;
    guard.assign(1, 0);
    for (int c = 0; c < l.chains(); ++c) {
      int const bits = static_cast<int>(std::bit_width(static_cast<unsigned>(l.chain_length(c)))) + 1;
      if (used + bits > 64) {
        guard.push_back(0);
        used = 0;
      }
      word.push_back(static_cast<int>(guard.size()) - 1);
      shift.push_back(used);
      used += bits;
      guard.back() |= u64{1} << (used - 1);
    }
    words = static_cast<int>(guard.size());
    packed.assign(id.size() * guard.size(), 0);
    for (std::size_t r = 0; r < id.size(); ++r) {
      unsigned short const* const h = l.heights(id[r]);
      for (int c = 0; c < l.chains(); ++c)
        packed[r * guard.size() + idx(word[idx(c)])] |= u64{h[c]} << shift[idx(c)];
    }
  }
  u64 const* row(int r) const { return packed.data() + idx(r) * idx(words); }
};

/// What a superset must be: at most so much work, sums of work and boundary at most so high, limits `from` on
/// of the bucket kept, and its key. With more work than `clear_units` no net reaches past it, and the bound
/// is the exact one.
struct downset_probe {
  i64 max_units, clear_units;
  double max_out, max_in;   // bounds on work + out and work - in
  double max_clear;          // on work + out, beyond clear_units
  u64 const* key;
  int words;
  double const* sums;         // of the measures of the subset
  int first_limit, end_limit;
};

/// Downsets whose complements need the same devices and copies, in the order of falling work. Bounds are kept
/// per table, and their minima per block of 64, so that a block without any candidate is passed over at once.
struct downset_bucket {
  static constexpr std::size_t block = 64;
  std::vector<int> rank, point;
  std::vector<i64> units;
  std::vector<u64> key, more;                        // the first word with its guards; the other words, rows
  std::vector<std::vector<double>> out, in;          // by table
  std::vector<std::vector<double>> block_out, block_in;
  // given by whoever makes the bucket, `per_way` for each way
  std::vector<measure_limit> limits;
  std::vector<double> least;                         // by limit: the least sum
  std::vector<std::vector<double>> block_least;      // by limit and block

  void limit_by(std::vector<measure_limit> l) {
    limits = std::move(l);
    least.assign(limits.size(), infinity);
    block_least.resize(limits.size());
  }
  void add(int r, int k, i64 work_units, downset_keys const& keys, double const* sums) {
    for (std::size_t i = 0; i < limits.size(); ++i) {
      if (!limits[i].exists()) continue;
      double const sum = limits[i].of(sums);
      if (rank.size() % block == 0) block_least[i].push_back(sum);
      block_least[i].back() = std::min(block_least[i].back(), sum);
      least[i] = std::min(least[i], sum);
    }
    rank.push_back(r);
    point.push_back(k);
    units.push_back(work_units);
    u64 const* const row = keys.row(r);
    key.push_back(row[0] | keys.guard[0]);
    for (int w = 1; w < keys.words; ++w) more.push_back(row[w] | keys.guard[idx(w)]);
  }
  /// The bounds of the downset added last, table by table.
  void bound(std::size_t table, double high, double low) {
    if (table == out.size()) {
      out.emplace_back();
      in.emplace_back();
      block_out.emplace_back();
      block_in.emplace_back();
    }
    out[table].push_back(high);
    in[table].push_back(low);
    if (out[table].size() % block == 1) {
      block_out[table].push_back(high);
      block_in[table].push_back(low);
    } else {
      block_out[table].back() = std::min(block_out[table].back(), high);
      block_in[table].back() = std::min(block_in[table].back(), low);
    }
  }

  /// The point of the last member that is a superset of the probe within its bounds and of which
  /// `good(rank)`; -1 if there is none. Precondition: the last member has at most the probe's work.
  template <class Good>
  int scan(downset_probe const& p, int table, downset_keys const& keys, i64& pairs, Good const& good) const {
    struct max_sum { double const* of_block; double most; };
    std::array<max_sum, measure_limit::at_most> sums;
    std::size_t checks = 0;
    for (int i = p.first_limit; i < p.end_limit; ++i) {
      measure_limit const& m = limits[idx(i)];
      if (!m.exists()) continue;
      sums[checks++] = {block_least[idx(i)].data(), m.most + m.of(p.sums)};
      if (least[idx(i)] > sums[checks - 1].most) return -1;
    }
    std::size_t tail = 1;  // what is within reach is mostly at the end
    while (tail < units.size() && units[units.size() - tail] <= p.max_units)
      tail = std::min(2 * tail, units.size());
    auto const first =
        idx(std::partition_point(units.end() - static_cast<std::ptrdiff_t>(tail),
                                                      units.end(), [&](i64 u) { return u > p.max_units; }) -
                                 units.begin());
    double const *const high = out[idx(table)].data(), *const low = in[idx(table)].data();
    u64 const mine = p.key[0], guards = keys.guard[0];
    std::array<unsigned char, block> pass;
    for (std::size_t stop = rank.size(); stop > first;) {
      std::size_t const number = (stop - 1) / block, start = std::max(first, number * block);
      std::size_t const n = stop - start;
      stop = start;
      double const max_out = units[start + n - 1] > p.clear_units ? p.max_clear : p.max_out;
      if (block_out[idx(table)][number] > max_out || block_in[idx(table)][number] > p.max_in) continue;
      bool fits = true;
      for (std::size_t i = 0; i < checks; ++i) fits = fits && sums[i].of_block[number] <= sums[i].most;
      if (!fits) continue;
      pairs += static_cast<i64>(n);
      for (std::size_t i = 0; i < n; ++i)
        pass[i] = static_cast<unsigned char>((high[start + i] <= max_out) & (low[start + i] <= p.max_in) &
                                             (((key[start + i] - mine) & guards) == guards));
      for (std::size_t i = n; i-- > 0;) {
        if (!pass[i]) continue;
        bool inside = true;
        for (int w = 1; w < p.words && inside; ++w) {
          u64 const g = keys.guard[idx(w)];
          inside = ((more[(start + i) * idx(p.words - 1) + idx(w - 1)] - p.key[w]) & g) == g;
        }
        if (inside && good(rank[start + i])) return point[start + i];
      }
    }
    return -1;
  }
};

}  // namespace tensorpar::graph::detail
