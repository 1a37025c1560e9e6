// tensorpar/search/problem/evaluate.hpp - what an assignment costs, by the definition in problem.hpp
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/search/problem/problem.hpp>

namespace tensorpar::search {


/// By pair the entry of the tree where its operators first lie together. O(pairs * depth + tree).
inline std::vector<int> meetings(graph::sp_binary const& tree, std::vector<operator_pair> const& pairs) {
  // leaf: by operator, of which there are fewer
  std::vector<int> up(idx(tree.size()), -1), leaf(up.size(), -1), r;
  for (int i = 0; i < tree.size(); ++i) {
    if (tree[i].kind == graph::sp_kind::leaf) leaf[idx(tree[i].left)] = i;
    else up[idx(tree[i].left)] = up[idx(tree[i].right)] = i;
  }
  for (operator_pair const& q : pairs) {
    int a = leaf[idx(q.first)], b = leaf[idx(q.second)];
    // a whole has a larger number than its parts
    while (a != b) (a < b ? a : b) = up[idx(a < b ? a : b)];
    r.push_back(a);
  }
  return r;
}
/// For every entry of the tree the pairs (indices into p.pairs) that meet there.
inline std::vector<std::vector<int>> pairs_at(mapping_problem const& p) {
  std::vector<std::vector<int>> r(idx(p.tree.size()));
  std::vector<int> const where = meetings(p.tree, p.pairs);
  for (std::size_t k = 0; k < where.size(); ++k) r[idx(where[k])].push_back(static_cast<int>(k));
  return r;
}

/// What an assignment costs.
struct assignment_cost {
  double seconds = 0;
  std::vector<i64> bytes;               // by device
  bool operator==(assignment_cost const&) const = default;
};

/// Bytes per device of an assignment. O(operators * devices).
inline std::vector<i64> assignment_bytes(mapping_problem const& p, assignment const& a) {
  std::vector<i64> b(idx(p.devices), 0);
  for (int v = 0; v < p.operators(); ++v) {
    choice_set const& c = p.choices(v);
    auto const i = idx(a[idx(v)]);
    for (int k = 0; k < c.sizes[i]; ++k) {
      i64& on = b[idx(c.shardings[i].start + k)];
      on = core::saturating_add(on, c.bytes[i]);
    }
  }
  return b;
}

/// Prices an assignment under the best structure (in sequence or side by side, and where) that its shardings
/// allow.
/// `seconds` is `never` where none allows it. O(tree + pairs + parallel compositions * divisions).
class evaluator {
  mapping_problem const& p_;
  std::vector<std::vector<int>> pairs_;

  double between(int entry, assignment const& a) const {
    double t = 0;
    for (int k : pairs_[idx(entry)]) {
      operator_pair const& q = p_.pairs[idx(k)];
      t += p_.seconds(q, a[idx(q.first)], a[idx(q.second)]);
    }
    return t;
  }
  /// First and last device of every entry of the tree under an assignment.
  struct extent { int first, last; };
  std::vector<extent> extents(assignment const& a) const {
    std::vector<extent> r;
    for (int i = 0; i < p_.tree.size(); ++i) {
      auto const& e = p_.tree[i];
      if (e.kind == graph::sp_kind::leaf) {
        auto const c = idx(a[idx(e.left)]);
        int const first = p_.choices(e.left).shardings[c].start;
        r.push_back({first, first + p_.choices(e.left).sizes[c] - 1});
        continue;
      }
      extent const x = r[idx(e.left)], y = r[idx(e.right)];
      r.push_back({x.first < y.first ? x.first : y.first, x.last < y.last ? y.last : x.last});
    }
    return r;
  }
  double best(int entry, device_range r, assignment const& a, std::vector<extent> const& where) const {
    extent const w = where[idx(entry)];
    // some operator of every sub-tree starts where its range starts
    if (w.first != r.first || w.last >= r.first + r.count) return infinity;
    auto const& e = p_.tree[entry];
    if (e.kind == graph::sp_kind::leaf) return p_.choices(e.left).seconds[idx(a[idx(e.left)])];
    double t = best(e.left, r, a, where);
    if (t < infinity) t += best(e.right, r, a, where);
    if (e.kind == graph::sp_kind::parallel)
      for (auto const& [x, y] : divisions(r, p_.grain)) {
        if (where[idx(e.left)].first != x.first || where[idx(e.right)].first != y.first)
          continue;
        double const left = best(e.left, x, a, where), right = best(e.right, y, a, where),
                     both = left < right ? right : left;
        if (both < t) t = both;
      }
    return t < infinity ? t + between(entry, a) : infinity;
  }

 public:
  explicit evaluator(mapping_problem const& p) : p_(p), pairs_(pairs_at(p)) {}
  /// The seconds alone, in the time said above.
  double seconds(assignment const& a) const {
    return best(p_.tree.root(), {0, p_.devices}, a, extents(a));
  }
  /// Seconds and bytes. O(operators * devices) more.
  assignment_cost operator()(assignment const& a) const { return {seconds(a), assignment_bytes(p_, a)}; }
};

}  // namespace tensorpar::search
