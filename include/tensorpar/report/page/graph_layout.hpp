// tensorpar/report/page/graph_layout.hpp - where the boxes of a drawn graph go: layers from top to bottom,
// few crossings, straight long edges
#pragma once
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>
#include <tensorpar/core/index.hpp>

namespace tensorpar::report {

struct drawn_node {
  double x = 0, y = 0, width = 0, height = 0;
};  // x, y: the middle of its top edge
struct drawn_edge {
  int from = 0, to = 0;
  std::vector<std::pair<double, double>> points;
};
struct drawing {
  std::vector<drawn_node> nodes;
  std::vector<drawn_edge> edges;
  double width = 0, height = 0;
};

namespace detail {

class layered {
 public:
  layered(std::vector<std::pair<double, double>> const& sizes, std::vector<std::pair<int, int>> const& edges)
      : sizes_(sizes), edges_(edges) {}

  drawing run() {
    assign_layers();
    add_bends();
    order_layers();
    place();
    return result();
  }

 private:
  static constexpr double gap_x = 26, gap_y = 34, bend_width = 10;
  static constexpr std::size_t few_bends = 20'000;
  std::vector<std::pair<double, double>> const& sizes_;
  std::vector<std::pair<int, int>> const& edges_;
  std::vector<int> layer_;                          // by vertex: nodes, then bends of long edges
  // neighbours one layer above and below; vertices of a layer from left to right
  std::vector<std::vector<int>> up_, down_, rows_;
  std::vector<std::vector<int>> bends_;             // by edge
  std::vector<double> x_;

  bool is_bend(int v) const { return idx(v) >= sizes_.size(); }
  double width(int v) const { return is_bend(v) ? bend_width : sizes_[idx(v)].first; }

  void assign_layers() {
    std::size_t const n = sizes_.size();
    layer_.assign(n, 0);
    std::vector<int> waiting(n, 0), ready;
    std::vector<std::vector<int>> out(n), in(n);
    for (auto const& [a, b] : edges_) {
      out[idx(a)].push_back(b);
      in[idx(b)].push_back(a);
      ++waiting[idx(b)];
    }
    std::vector<bool> source(n);
    for (std::size_t v = 0; v < n; ++v)
      if (source[v] = waiting[v] == 0; source[v]) ready.push_back(static_cast<int>(v));
    for (std::size_t i = 0; i < ready.size(); ++i)
      for (int w : out[idx(ready[i])]) {
        layer_[idx(w)] = std::max(layer_[idx(w)], layer_[idx(ready[i])] + 1);
        if (--waiting[idx(w)] == 0) ready.push_back(w);
      }
    // a source stands right above its first user, and so does what alone follows such a source
    std::vector<bool> follows = source;
    for (int v : ready)
      if (in[idx(v)].size() == 1 && follows[idx(in[idx(v)][0])] && out[idx(in[idx(v)][0])].size() == 1)
        follows[idx(v)] = true;
    for (std::size_t i = ready.size(); i-- > 0;) {
      auto const v = idx(ready[i]);
      if (!follows[v] || out[v].empty()) continue;
      int first = layer_[idx(out[v][0])];
      for (int w : out[v]) first = std::min(first, layer_[idx(w)]);
      layer_[v] = first - 1;
    }
  }
  /// Which edges pass through the layers between their ends by bends: the shortest ones, while all bends
  /// together are few enough. The others are drawn straight, behind the boxes: a fan-out into a chain has as
  /// many long edges as operators, each half of all layers long.
  std::vector<bool> bending() const {
    auto const length = [&](std::size_t e) {
      return idx(layer_[idx(edges_[e].second)] - layer_[idx(edges_[e].first)]);
    };
    std::vector<std::size_t> order(edges_.size());
    for (std::size_t e = 0; e < order.size(); ++e) order[e] = e;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return length(a) < length(b); });
    std::vector<bool> r(edges_.size(), false);
    std::size_t room = std::max(few_bends, sizes_.size() + edges_.size());
    for (std::size_t e : order) {
      if (length(e) - 1 > room) break;
      room -= length(e) - 1;
      r[e] = true;
    }
    return r;
  }
  void add_bends() {
    std::vector<bool> const bends = bending();
    up_.resize(sizes_.size());
    down_.resize(sizes_.size());
    bends_.resize(edges_.size());
    for (std::size_t e = 0; e < edges_.size(); ++e) {
      int at = edges_[e].first;
      if (!bends[e]) continue;
      for (int l = layer_[idx(at)] + 1; l <= layer_[idx(edges_[e].second)]; ++l) {
        int next = edges_[e].second;
        if (l < layer_[idx(next)]) {
          next = static_cast<int>(layer_.size());
          layer_.push_back(l);
          up_.emplace_back();
          down_.emplace_back();
          bends_[e].push_back(next);
        }
        down_[idx(at)].push_back(next);
        up_[idx(next)].push_back(at);
        at = next;
      }
    }
    int deepest = 0;
    for (int l : layer_) deepest = std::max(deepest, l);
    rows_.resize(layer_.empty() ? 0 : idx(deepest) + 1);
    for (std::size_t v = 0; v < layer_.size(); ++v) rows_[idx(layer_[v])].push_back(static_cast<int>(v));
  }
  /// Crossings between two neighbouring layers: inversions among edge ends sorted by start.
  long crossings() const {
    std::vector<std::size_t> at(layer_.size());
    for (auto const& row : rows_)
      for (std::size_t i = 0; i < row.size(); ++i) at[idx(row[i])] = i;
    long n = 0;
    for (std::size_t l = 0; l + 1 < rows_.size(); ++l) {
      std::vector<std::size_t> ends;
      for (int v : rows_[l]) {
        std::vector<std::size_t> mine;
        for (int w : down_[idx(v)]) mine.push_back(at[idx(w)]);
        std::sort(mine.begin(), mine.end());
        ends.insert(ends.end(), mine.begin(), mine.end());
      }
      std::vector<long> tree(rows_[l + 1].size() + 1, 0);  // counts of ends by position (Fenwick)
      for (std::size_t k = ends.size(); k-- > 0;) {
        for (std::size_t i = ends[k]; i > 0; i &= i - 1) n += tree[i];
        for (std::size_t i = ends[k] + 1; i < tree.size(); i += i & (~i + 1)) ++tree[i];
      }
    }
    return n;
  }
  void order_layers() {
    auto best = rows_;
    long fewest = crossings();
    for (int sweep = 0; sweep < 12 && fewest > 0; ++sweep) {
      bool const downwards = sweep % 2 == 0;
      for (std::size_t k = 1; k < rows_.size(); ++k) {
        std::size_t const l = downwards ? k : rows_.size() - 1 - k, beside = downwards ? l - 1 : l + 1;
        std::vector<double> at(layer_.size(), 0);
        for (std::size_t i = 0; i < rows_[beside].size(); ++i)
          at[idx(rows_[beside][i])] = static_cast<double>(i);
        std::vector<std::pair<double, int>> keyed;
        for (std::size_t i = 0; i < rows_[l].size(); ++i) {
          int const v = rows_[l][i];
          auto const& others = downwards ? up_[idx(v)] : down_[idx(v)];
          double sum = 0;
          for (int w : others) sum += at[idx(w)];
          keyed.push_back(
              {others.empty() ? static_cast<double>(i) : sum / static_cast<double>(others.size()), v});
        }
        std::stable_sort(keyed.begin(), keyed.end(),
                         [](auto const& a, auto const& b) { return a.first < b.first; });
        for (std::size_t i = 0; i < keyed.size(); ++i) rows_[l][i] = keyed[i].second;
      }
      if (long const n = crossings(); n < fewest) {
        fewest = n;
        best = rows_;
      }
    }
    rows_ = std::move(best);
  }
  /// Each vertex near the middle of its neighbours, in order and apart: least squares under distances, by
  /// pooling adjacent violators.
  void settle(std::vector<int> const& row, bool downwards) {
    struct pool {
      double sum, weight;
      std::size_t count;
      double at() const { return sum / weight; }
    };
    std::vector<pool> pools;
    std::vector<double> shift;
    double offset = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      int const v = row[i];
      if (i) offset += (width(row[i - 1]) + width(v)) / 2 + gap_x;
      shift.push_back(offset);
      // boxes line up with boxes, so that the main line of a residual network stays straight; bends follow
      // bends
      double sum = 0, all = 0;
      for (int w : downwards ? up_[idx(v)] : down_[idx(v)]) {
        double const pull = is_bend(v) == is_bend(w) ? 1 : 1e-4;
        sum += pull * x_[idx(w)];
        all += pull;
      }
      double const want = all > 0 ? sum / all : x_[idx(v)], weight = is_bend(v) ? 1e-3 : all > 0 ? 1 : 0.1;
      pools.push_back({(want - offset) * weight, weight, 1});
      while (pools.size() > 1 && pools[pools.size() - 2].at() >= pools.back().at()) {
        pool const last = pools.back();
        pools.pop_back();
        pools.back().sum += last.sum;
        pools.back().weight += last.weight;
        pools.back().count += last.count;
      }
    }
    std::size_t i = 0;
    for (pool const& p : pools)
      for (std::size_t k = 0; k < p.count; ++k, ++i) x_[idx(row[i])] = p.at() + shift[i];
  }
  void place() {
    x_.assign(layer_.size(), 0);
    for (auto const& row : rows_) {
      double at = 0;
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (i) at += (width(row[i - 1]) + width(row[i])) / 2 + gap_x;
        x_[idx(row[i])] = at;
      }
      for (int v : row) x_[idx(v)] -= at / 2;
    }
    for (int sweep = 0; sweep < 16; ++sweep)
      for (std::size_t k = 0; k < rows_.size(); ++k)
        settle(rows_[sweep % 2 ? rows_.size() - 1 - k : k], sweep % 2 == 0);
  }
  drawing result() const {
    drawing d;
    double left = 0, right = 0;
    for (std::size_t v = 0; v < x_.size(); ++v) {
      double const w = width(static_cast<int>(v)) / 2;
      left = v ? std::min(left, x_[v] - w) : x_[v] - w;
      right = v ? std::max(right, x_[v] + w) : x_[v] + w;
    }
    std::vector<double> top(rows_.size(), 0), tall(rows_.size(), 0);
    for (std::size_t v = 0; v < sizes_.size(); ++v)
      tall[idx(layer_[v])] = std::max(tall[idx(layer_[v])], sizes_[v].second);
    for (std::size_t l = 0; l < rows_.size(); ++l) {
      top[l] = d.height;
      d.height += tall[l] + (l + 1 < rows_.size() ? gap_y : 0);
    }
    d.width = right - left;
    for (std::size_t v = 0; v < sizes_.size(); ++v) {
      std::size_t const l = idx(layer_[v]);
      d.nodes.push_back(
          {x_[v] - left, top[l] + (tall[l] - sizes_[v].second) / 2, sizes_[v].first, sizes_[v].second});
    }
    for (std::size_t e = 0; e < edges_.size(); ++e) {
      auto const& [a, b] = edges_[e];
      drawn_edge g{a, b, {{d.nodes[idx(a)].x, d.nodes[idx(a)].y + d.nodes[idx(a)].height}}};
      for (int v : bends_[e]) {  // straight through the layers that it passes
        g.points.push_back({x_[idx(v)] - left, top[idx(layer_[idx(v)])]});
        g.points.push_back({x_[idx(v)] - left, top[idx(layer_[idx(v)])] + tall[idx(layer_[idx(v)])]});
      }
      g.points.push_back({d.nodes[idx(b)].x, d.nodes[idx(b)].y});
      d.edges.push_back(std::move(g));
    }
    return d;
  }
};

}  // namespace detail

/// A drawing of a directed acyclic graph whose boxes have these (width, height): every edge points down,
/// boxes never overlap. Layers by longest path, crossings reduced by barycentres, positions by least squares
/// (Sugiyama, Tagawa, Toda 1981; Brandes and Koepf's aim by simpler means). Deterministic. O(sweeps * (boxes
/// + edges) * log): where all edges together are longer than that, in layers, the longest are drawn straight
/// from end to end.
inline drawing draw_layered(std::vector<std::pair<double, double>> const& sizes,
                            std::vector<std::pair<int, int>> const& edges) {
  return detail::layered(sizes, edges).run();
}

}  // namespace tensorpar::report
