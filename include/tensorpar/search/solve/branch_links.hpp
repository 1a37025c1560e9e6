// tensorpar/search/solve/branch_links.hpp - what the operators of a branch problem exchange, and the choices
// that stand in a range
#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/search/solve/branch_alike.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tensorpar::search::detail {

/// Tables of a branch problem. A pair whose operators stand in branches side by side has no place among what
/// is exchanged later.
class branch_links {
 protected:
  // by choice: of what is exchanged with this later operator
  struct partner { int op; std::vector<double> least; };

  branch_problem p_;
  std::map<std::pair<int, int>, int> pair_;
  std::vector<std::vector<partner>> later_;
  branch_likeness like_;
  // by choice set and range
  std::unordered_map<std::array<int, 3>, std::vector<int>, core::array_hash> fitting_;

  /// `where`: by pair, the entry of the tree in which its operators meet.
  branch_links(branch_problem const& p, std::vector<int> const& where)
      : p_(p), later_(p.set_of->size()), like_(p, where) {
    // pairs that look alike: what a choice exchanges at least
    std::map<std::array<int, 3>, std::vector<double>> least;
    for (std::size_t k = 0; k < p.pairs->size(); ++k) {
      operator_pair const& q = (*p.pairs)[k];
      pair_[{q.first, q.second}] = static_cast<int>(k);
      pair_cost const& c = p.tables->costs[idx(q.cost)];
      // of branches that stand side by side: left out
      if (kind(where[k]) == graph::sp_kind::parallel) continue;
      bool const rows = like_.place(q.first) < like_.place(q.second);
      auto const [known, fresh] = least.try_emplace({q.cost, rows ? q.rows : q.cols, rows});
      if (fresh) {
        std::vector<double> line(idx(rows ? c.rows : c.cols), infinity);
        for (int i = 0; i < c.rows; ++i)
          for (int j = 0; j < c.cols; ++j)
            line[idx(rows ? i : j)] = std::min(line[idx(rows ? i : j)], c.at(i, j));
        for (int i : p.tables->classes[idx(rows ? q.rows : q.cols)].of) known->second.push_back(line[idx(i)]);
      }
      later_[idx(rows ? q.first : q.second)].push_back({rows ? q.second : q.first, known->second});
    }
  }

  choice_set const& choices(int v) const { return p_.tables->sets[idx((*p_.set_of)[idx(v)])]; }
  graph::sp_kind kind(int e) const { return (*p_.tree)[e].kind; }
  int op_of(int e) const { return (*p_.tree)[e].left; }

  /// What two operators exchange, if anything.
  operator_pair const* link(int a, int b) const {
    auto const i = pair_.find({std::min(a, b), std::max(a, b)});
    return i == pair_.end() ? nullptr : &(*p_.pairs)[idx(i->second)];
  }
  double over(operator_pair const* q, bool ascending, int ca, int cb) const {
    return !q ? 0 : ascending ? p_.tables->seconds(*q, ca, cb) : p_.tables->seconds(*q, cb, ca);
  }
  /// The choices of an operator that stand in a range.
  std::vector<int> const& fitting(int v, device_range r) {
    auto const [i, fresh] = fitting_.try_emplace(std::array{(*p_.set_of)[idx(v)], r.first, r.count});
    choice_set const& all = choices(v);
    for (int c = 0; c < all.count() && fresh; ++c)
      if (all.shardings[idx(c)].start == r.first && all.sizes[idx(c)] <= r.count) i->second.push_back(c);
    return i->second;
  }
};

}  // namespace tensorpar::search::detail
