// tensorpar/search/problem/problem.hpp - the mapping problem as numbers: choices per operator, costs per
// operator and per pair of operators
#pragma once
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/graph/sp/binary.hpp>
#include <tensorpar/ir/machine/device_range.hpp>
#include <tensorpar/ir/sharded_update.hpp>
#include <vector>

namespace tensorpar::search {

/// What a choice saves besides (program/passes/memory_pass.hpp).
struct choice_saving {
  ir::zero_stage zero = ir::zero_stage::none;
  bool recompute = false;
  friend bool operator==(choice_saving const&, choice_saving const&) = default;
};

/// The choices of an operator; operators that look alike share one.
struct choice_set {
  std::vector<ir::sharding> shardings;
  std::vector<choice_saving> savings;   // of each; empty: none saves memory
  std::vector<int> sizes;               // devices of each
  // forward, backward, update and gradient synchronisation on the local shapes
  std::vector<double> seconds;
  std::vector<i64> bytes;               // on each of its devices
  int count() const { return static_cast<int>(shardings.size()); }
  choice_saving saving(int i) const { return savings.empty() ? choice_saving{} : savings[idx(i)]; }
};

/// Choices of one choice set seen from one side of a pair: those with the same layouts are one class.
struct choice_classes {
  int set = -1;
  int count = 0;
  std::vector<int> of;                  // choice -> class, numbered in order of first occurrence
  friend bool operator==(choice_classes const&, choice_classes const&) = default;
};

/// Seconds of moving tensors between two operators (forward values one way, gradients the other, a shared
/// parameter's copies), by the classes of both.
struct pair_cost {
  int rows = 0, cols = 0;
  std::vector<double> seconds;
  double at(int r, int c) const { return seconds[idx(r) * idx(cols) + idx(c)]; }
};

/// Operators first < second exchange tensors.
struct operator_pair {
  int first, second;
  int cost;                             // index of a pair_cost
  int rows, cols;                       // indices of choice_classes of first and second
};

/// What choices there are and what they cost, by number. Problems about the same devices and cost model may
/// share them.
struct mapping_tables {
  std::vector<choice_set> sets;
  std::vector<choice_classes> classes;
  std::vector<pair_cost> costs;
  double seconds(operator_pair const& p, int a, int b) const {
    return costs[idx(p.cost)].at(classes[idx(p.rows)].of[idx(a)],
                                         classes[idx(p.cols)].of[idx(b)]);
  }
};

/// All of a problem but what choices and pairs cost.
struct problem_frame {
  int devices = 1;
  int grain = 1;
  std::vector<i64> capacity;            // bytes, by device
  std::vector<std::string> names;       // of operators, for reports
  std::vector<int> set_of;              // operator -> choice set
  std::vector<operator_pair> pairs;     // ascending, each pair of operators once
  graph::sp_binary tree;
  // the graph is not series-parallel: the tree orders more than the graph does
  bool relaxed = false;
};

/// What is to be decided, as numbers. Plain data: engines and tests know nothing else of models, machines and
/// cost models.
/// The cost of an assignment is defined on the tree, in a device range (first: all devices):
///  - leaf: its seconds. A sharding must start where the range starts and fit into it.
///  - series: both parts in the same range, one after the other (sum), plus the reshards between them.
///  - parallel: the same, or side by side. Then one part is on the first k devices and the other on the rest,
///    either way round, k a multiple of `grain`. The larger part counts, plus the reshards between them.
///
/// A pair is counted where its two operators first lie in one sub-tree, so skip connections count wherever
/// they lead.
/// Bytes: on every device the sum over the operators that use it must not exceed its capacity.
struct mapping_problem : mapping_tables, problem_frame {
  int operators() const { return static_cast<int>(set_of.size()); }
  choice_set const& choices(int v) const { return sets[idx(set_of[idx(v)])]; }
  bool fits(int v, int choice, device_range r) const {
    choice_set const& c = choices(v);
    auto const i = idx(choice);
    return c.shardings[i].start == r.first && c.sizes[i] <= r.count;
  }
};

/// A choice for every operator.
using assignment = std::vector<int>;

/// Every way to lay two parts side by side on a range: the first part's range and the second's. Canonical
/// order: by size of the left range; first part left before first part right.
inline std::vector<std::pair<device_range, device_range>> divisions(device_range r, int grain) {
  std::vector<std::pair<device_range, device_range>> d;
  for (int k = grain; k < r.count; k += grain) {
    device_range const left{r.first, k}, right{r.first + k, r.count - k};
    d.push_back({left, right});
    d.push_back({right, left});
  }
  return d;
}

/// For every entry of a tree, the ranges in which it may have to be solved, ascending by (start, size).
/// O(tree * ranges * divisions).
inline std::vector<std::vector<device_range>> reachable_ranges(graph::sp_binary const& t, int devices,
                                                               int grain) {
  std::vector<std::vector<device_range>> r(idx(t.size()));
  auto const put = [](std::vector<device_range>& s, device_range x) {
    std::size_t i = 0;
    while (i < s.size() && (s[i].first < x.first || (s[i].first == x.first && s[i].count < x.count))) ++i;
    if (i == s.size() || !(s[i] == x)) s.insert(s.begin() + static_cast<std::ptrdiff_t>(i), x);
  };
  r[idx(t.root())].push_back({0, devices});
  for (int i = t.root(); i >= 0; --i) {
    if (t[i].kind == graph::sp_kind::leaf) continue;
    auto const mine = r[idx(i)];
    for (device_range x : mine) {
      put(r[idx(t[i].left)], x);
      put(r[idx(t[i].right)], x);
      if (t[i].kind == graph::sp_kind::parallel)
        for (auto const& [a, b] : divisions(x, grain)) {
          put(r[idx(t[i].left)], a);
          put(r[idx(t[i].right)], b);
        }
    }
  }
  return r;
}

}  // namespace tensorpar::search
