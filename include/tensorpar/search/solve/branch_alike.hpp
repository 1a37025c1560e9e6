// tensorpar/search/solve/branch_alike.hpp - which branches of a problem look alike, so that one answer serves
// them all
#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/search/problem/evaluate.hpp>
#include <unordered_map>
#include <vector>

namespace tensorpar::search::detail {

/// What is asked; all of it outlives the answer.
struct branch_problem {
  mapping_tables const* tables;
  graph::sp_binary const* tree;
  std::vector<int> const* set_of;
  std::vector<operator_pair> const* pairs;
  int devices, grain;
};

/// Where operators stand along the tree, and which entries of the tree are alike: the same operators in the
/// same form, which exchange the same with one another and with operators outside. Reshards between two
/// branches of one entry do not count (branches.hpp).
class branch_likeness {
  // first: of the pair; earlier: along the tree
  struct link { int partner, cost, rows, cols; bool first, earlier; };
  // of an operator with one that stands there: its own classes
  struct meeting { int place, classes; };

  branch_problem p_;
  // along the tree, where what comes first may have a larger number
  std::vector<int> place_, op_at_;
  // by entry: the first place and the one after the last
  std::vector<std::pair<int, int>> within_;
  std::vector<std::vector<link>> links_;                 // by operator
  std::vector<std::vector<meeting>> met_;                // by operator, ascending
  std::unordered_map<std::array<int, 3>, int, core::array_hash> kind_;     // (entry, f, x) -> number
  std::map<std::vector<int>, int> kinds_;
  // (operator, entry) -> choice -> class
  std::unordered_map<std::array<int, 2>, std::vector<int> const*, core::array_hash> class_;
  // classes -> choice -> the first choice that is in the same of all of them
  std::map<std::vector<int>, std::vector<int>> joined_;

  // operators of an entry; larger ones are alike to none
  static constexpr int max_compared = 4096;

  void describe(int e, int whole, int f, int x, std::vector<int>& key) const {
    graph::sp_binary::entry const& n = (*p_.tree)[e];
    key.push_back(static_cast<int>(n.kind));
    if (n.kind != graph::sp_kind::leaf) {
      describe(n.left, whole, f, x, key);
      describe(n.right, whole, f, x, key);
      return;
    }
    key.push_back((*p_.set_of)[idx(n.left)]);
    key.push_back(static_cast<int>(links_[idx(n.left)].size()));
    for (link const& l : links_[idx(n.left)]) {
      int const who = l.partner == f            ? -1
                      : l.partner == x          ? -2
                      : among(whole, l.partner) ? 2 * (place(l.partner) - first_of(whole))
                                                : 2 * l.partner + 1;
      key.insert(key.end(), {who, l.cost, l.rows, l.cols, l.first * 2 + l.earlier});
    }
  }
  std::vector<int> const& joined(int op, std::vector<int> classes) {
    std::vector<int> const some = classes;
    classes.push_back((*p_.set_of)[idx(op)]);
    auto const [i, fresh] = joined_.try_emplace(std::move(classes));
    std::map<std::vector<int>, int> first;
    for (int c = 0; c < p_.tables->sets[idx((*p_.set_of)[idx(op)])].count() && fresh; ++c) {
      std::vector<int> key;
      for (int k : some) key.push_back(p_.tables->classes[idx(k)].of[idx(c)]);
      i->second.push_back(first.try_emplace(std::move(key), c).first->second);
    }
    return i->second;
  }

 public:
  /// `where`: by pair the entry where its operators meet. O(tree + pairs log pairs).
  branch_likeness(branch_problem const& p, std::vector<int> const& where)
      : p_(p),
        place_(p.set_of->size(), 0),
        within_(idx(p.tree->size())),
        links_(p.set_of->size()),
        met_(p.set_of->size()) {
    auto const visit = [&](auto const& self, int e) -> void {
      int const first = static_cast<int>(op_at_.size());
      if (graph::sp_binary::entry const& n = (*p_.tree)[e]; n.kind == graph::sp_kind::leaf) {
        if (n.left < static_cast<int>(place_.size())) place_[idx(n.left)] = first;
        op_at_.push_back(n.left);
      } else {
        self(self, n.left);
        self(self, n.right);
      }
      within_[idx(e)] = {first, static_cast<int>(op_at_.size())};
    };
    visit(visit, p.tree->root());
    for (std::size_t k = 0; k < p.pairs->size(); ++k) {
      operator_pair const& q = (*p.pairs)[k];
      met_[idx(q.first)].push_back({place(q.second), q.rows});
      met_[idx(q.second)].push_back({place(q.first), q.cols});
      if ((*p.tree)[where[k]].kind == graph::sp_kind::parallel) continue;
      bool const ascending = place(q.first) < place(q.second);
      links_[idx(q.first)].push_back({q.second, q.cost, q.rows, q.cols, true, ascending});
      links_[idx(q.second)].push_back({q.first, q.cost, q.rows, q.cols, false, !ascending});
    }
    for (auto& all : met_)
      std::sort(all.begin(), all.end(), [](meeting const& a, meeting const& b) { return a.place < b.place; });
  }

  int place(int op) const { return place_[idx(op)]; }
  int op_at(int place) const { return op_at_[idx(place)]; }
  int first_of(int e) const { return within_[idx(e)].first; }
  bool among(int e, int op) const {
    return e >= 0 && place(op) >= first_of(e) && place(op) < within_[idx(e)].second;
  }

  /// Entries between f and x with equal numbers have equal answers, operator by operator along the tree.
  /// O(operators of e), once.
  int kind_of(int e, int f, int x) {
    auto const [i, fresh] = kind_.try_emplace(std::array{e, f, x}, -1);
    if (fresh) {
      std::vector<int> key;
      if (within_[idx(e)].second - first_of(e) <= max_compared) describe(e, e, f, x, key);
      else key = {-1, e, f, x};
      i->second = kinds_.try_emplace(std::move(key), static_cast<int>(kinds_.size())).first->second;
    }
    return i->second;
  }
  /// Choices of an operator outside that mean the same to all operators of an entry share a number, that of
  /// the first of them.
  int class_of(int op, int choice, int e) {
    if (op < 0) return -1;
    auto const [i, fresh] = class_.try_emplace(std::array{op, e}, nullptr);
    if (fresh) {
      std::vector<int> some;
      auto const from = [&](int place) {
        return std::lower_bound(met_[idx(op)].begin(), met_[idx(op)].end(), place,
                                [](meeting const& m, int x) { return m.place < x; });
      };
      for (auto m = from(first_of(e)), end = from(within_[idx(e)].second); m != end; ++m)
        some.push_back(m->classes);
      std::sort(some.begin(), some.end());
      some.erase(std::unique(some.begin(), some.end()), some.end());
      i->second = &joined(op, std::move(some));
    }
    return (*i->second)[idx(choice)];
  }
};

}  // namespace tensorpar::search::detail
