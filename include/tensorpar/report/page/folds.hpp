// tensorpar/report/page/folds.hpp - repeated layers shown once: runs of neighbouring operators that are alike
#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/computation_graph.hpp>
#include <tensorpar/report/summary.hpp>
#include <vector>

namespace tensorpar::report {

/// `times` runs of `unit` neighbouring operators each: first ... first + times * unit - 1, alike run by run.
struct fold {
  int first = 0, unit = 0, times = 0;
  int end() const { return first + unit * times; }
  friend bool operator==(fold const&, fold const&) = default;
};

/// How operators are folded. Runs may hold runs, such as layers with micro-batches in them; they open
/// together.
struct folding {
  std::vector<fold> folds;   // the outermost, ascending
  std::vector<int> fold_of;  // by operator: the outermost that holds it, or -1
  std::vector<int> shown;    // by operator: which one stands for it while that is closed
  std::vector<int> times;    // by operator: for how many it stands, itself among them; 0: it is not shown
  /// Which operators are shown while `open` is (-1: none, all_folds: every one). O(1).
  static constexpr int all_folds = -2;
  int stands_for(int v, int open) const {
    return open == all_folds || fold_of[idx(v)] == open ? v : shown[idx(v)];
  }
};

namespace detail {

/// From each place of a sequence the run that covers most: neighbours of one length that are alike, two or
/// more; of several the shortest neighbours. O(places * period).
inline std::vector<fold> longest_runs(std::vector<int> const& s, int first, int end) {
  constexpr int longest = 2048;
  int const n = end - first;
  std::vector<fold> best(idx(n));
  std::vector<int> same(idx(n) + 1);
  for (int p = 1; p <= std::min(n / 2, longest); ++p) {
    std::fill(same.begin(), same.end(), 0);
    for (int i = n - p; i-- > 0;) {
      same[idx(i)] = s[idx(first + i)] == s[idx(first + i + p)] ? same[idx(i) + 1] + 1 : 0;
      int const times = same[idx(i)] / p + 1;
      fold& b = best[idx(i)];
      if (times > 1 && times * p > b.times * b.unit) b = {first + i, p, times};
    }
  }
  return best;
}

class folder {
  std::vector<int> const& key_;
  std::vector<int> const& place_;  // by operator: which repetition it is of
  folding r_;
  static constexpr int saved = 4;  // operators that a fold saves at least within one repetition

  void fold_inside(int first, int end, int outer) {
    std::vector<fold> const best = longest_runs(key_, first, end);
    for (int i = first; i < end;) {
      fold f = best[idx(i - first)];
      bool const repeats = f.times > 1 && place_[idx(i)] != place_[idx(i + f.unit)];
      for (int k = 1; repeats && k < f.times; ++k)  // queries of all micro-batches, then keys: two folds
        if (place_[idx(i + k * f.unit)] == place_[idx(i)]) f.times = k;
      if (f.times < 2 || (!repeats && f.unit * (f.times - 1) < saved)) {
        ++i;
        continue;
      }
      int const number = outer >= 0 ? outer : static_cast<int>(r_.folds.size());
      if (outer < 0) r_.folds.push_back(f);
      fold_inside(f.first, f.first + f.unit, number);
      for (int v = f.first; v < f.end(); ++v) {
        r_.fold_of[idx(v)] = number;
        r_.shown[idx(v)] = r_.shown[idx(f.first + (v - f.first) % f.unit)];
      }
      i = f.end();
    }
  }

 public:
  folder(std::vector<int> const& key, std::vector<int> const& place) : key_(key), place_(place) {}
  folding run() {
    int const n = static_cast<int>(key_.size());
    r_.fold_of.assign(key_.size(), -1);
    for (int v = 0; v < n; ++v) r_.shown.push_back(v);
    fold_inside(0, n, -1);
    r_.times.assign(key_.size(), 0);
    for (int v : r_.shown) ++r_.times[idx(v)];
    return std::move(r_);
  }
};

/// An operator's text without what differs between repetitions: the seed of its random numbers.
inline std::string without_seed(std::string s) {
  std::size_t const at = s.find("seed=");
  if (at == s.npos) return s;
  return s.erase(at, std::min(s.find_first_of(",}", at), s.size()) - at);
}

}  // namespace detail

/// Folds a sequence of operators. Those with equal keys are alike; `places`: by operator its repetition. Runs
/// of several repetitions fold however short they are, others where that saves four operators. Law: each
/// operator is shown or has one before it that stands for it, with the same key. O(operators * period) for
/// each depth of runs in runs.
inline folding fold_alike(std::vector<int> const& keys, std::vector<int> const& places) {
  return detail::folder(keys, places).run();
}
/// Which repetition of a block and which micro-batch a node belongs to, as one number.
inline int place_of(graph_node const& n) { return n.repetition * n.micro_batches + n.micro_batch; }
/// Folds forward operators: of repeated blocks and micro-batches where the graph says so, else of runs that
/// are alike. Alike are operators of one kind and shape, in one block, with one sharding on the same devices;
/// names, seeds and choices about memory may differ. Precondition: `s` is of this graph.
inline folding fold_operators(computation_graph const& g, plan_summary const& s) {
  std::map<std::string, int> number;
  std::vector<int> keys, places;
  for (operator_summary const& o : s.operators) {
    graph_node const& n = g.node(o.node);
    std::string key = detail::without_seed(o.op) + "|" + o.sharding + "|" + devices_text(o.devices) + "|" +
                      std::to_string(n.block);
    for (int x : n.in) key += "|" + op::spell(g.type(x));
    for (int y : n.out) key += ">" + op::spell(g.type(y));
    keys.push_back(number.insert({key, static_cast<int>(number.size())}).first->second);
    places.push_back(place_of(n));
  }
  return fold_alike(keys, places);
}

}  // namespace tensorpar::report
