// tensorpar/graph/sp/growth.hpp - a series-parallel order that grows node by node, adding dependencies where
// the graph is not
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/graph/sp/tree.hpp>
#include <utility>
#include <vector>

namespace tensorpar::graph::detail {

/// A growing series-parallel tree. A new group of nodes has the direct predecessors M. It is put behind the
/// smallest part of the tree that holds M and everything after it, the forest. The forest is cut into an
/// upper and a lower set, and upper runs before lower and group. The policy chooses the cut: by depth gives
/// the algorithm of Escribano, by cost the flexible one. T: type of weights.
/// Recursion goes as deep as the tree.
template <class T> class sp_growth {
  struct part {
    sp_kind kind;
    int node;
    std::vector<int> parts;
  };
  std::vector<part> parts_;
  std::vector<int> free_;
  int root_;
  std::vector<T> weight_;
  std::vector<char> wanted_, has_;  // by node: in M; by part: some leaf is in M

  part& operator[](int i) { return parts_[idx(i)]; }
  int fresh(sp_kind kind, int node, std::vector<int> parts) {
    if (free_.empty()) {
      parts_.push_back({kind, node, std::move(parts)});
      has_.push_back(0);
      return static_cast<int>(parts_.size()) - 1;
    }
    int const i = free_.back();
    free_.pop_back();
    parts_[idx(i)] = {kind, node, std::move(parts)};
    return i;
  }
  /// A composition in normal form; -1 for no parts.
  int make(sp_kind kind, std::vector<int> const& parts) {
    std::vector<int> flat;
    for (int p : parts) {
      if (p < 0) continue;
      if ((*this)[p].kind == kind) {
        flat.insert(flat.end(), (*this)[p].parts.begin(), (*this)[p].parts.end());
        free_.push_back(p);
      } else {
        flat.push_back(p);
      }
    }
    if (flat.size() < 2) return flat.empty() ? -1 : flat[0];
    return fresh(kind, -1, std::move(flat));
  }
  bool find(int i) {
    part const& p = (*this)[i];
    bool found = p.kind == sp_kind::leaf && wanted_[idx(p.node)];
    for (int k : p.parts) found = find(k) || found;
    has_[idx(i)] = found;
    return found;
  }

 public:
  /// One leaf of a forest, as a policy sees it.
  struct member {
    int node;
    bool needed;        // it precedes the group, or will: always in the upper set
    // the heaviest path within the forest that ends here / starts here, this node included
    T through, onward;
    bool up;            // the answer
  };

 private:
  std::vector<member> members_;
  std::vector<int> member_of_;

  T walk(int i, T offset, bool backward) {
    part const& p = (*this)[i];
    if (p.kind == sp_kind::leaf) {
      T const w = weight_[idx(p.node)];
      if (!backward) {
        member_of_[idx(p.node)] = static_cast<int>(members_.size());
        members_.push_back({p.node, false, offset + w, T{}, true});
      } else {
        members_[idx(member_of_[idx(p.node)])].onward = offset + w;
      }
      return w;
    }
    T total{};
    for (std::size_t k = 0; k < p.parts.size(); ++k) {
      bool const series = p.kind == sp_kind::series;
      T const x =
          walk(p.parts[backward ? p.parts.size() - 1 - k : k], series ? offset + total : offset, backward);
      total = series ? total + x : std::max(total, x);
    }
    return total;
  }
  void need(int i, bool all) {
    part const& p = (*this)[i];
    if (p.kind == sp_kind::leaf) {
      members_[idx(member_of_[idx(p.node)])].needed = all || wanted_[idx(p.node)];
      return;
    }
    std::size_t last = 0;  // in a series, everything before the last part that holds some of M
    for (std::size_t k = 0; k < p.parts.size(); ++k)
      if (has_[idx(p.parts[k])]) last = k;
    for (std::size_t k = 0; k < p.parts.size(); ++k)
      if (all || has_[idx(p.parts[k])] || (p.kind == sp_kind::series && k < last))
        need(p.parts[k], all || (p.kind == sp_kind::series && k < last));
  }
  std::pair<int, int> split(int i) {
    if ((*this)[i].kind == sp_kind::leaf)
      return members_[idx(member_of_[idx((*this)[i].node)])].up ? std::pair(i, -1) : std::pair(-1, i);
    sp_kind const kind = (*this)[i].kind;
    std::vector<int> const parts = std::move((*this)[i].parts);
    free_.push_back(i);
    std::vector<int> up, down;
    for (int p : parts) {
      auto const [a, b] = split(p);
      up.push_back(a);
      down.push_back(b);
    }
    int const a = make(kind, up);
    return {a, make(kind, down)};
  }
  template <class Policy> int put_behind(int forest, std::vector<int> const& group, Policy const& policy) {
    members_.clear();
    find(forest);
    walk(forest, T{}, false);
    walk(forest, T{}, true);
    need(forest, false);
    policy(members_);
    auto const [up, down] = split(forest);
    std::vector<int> lower{down};
    for (int v : group) lower.push_back(fresh(sp_kind::leaf, v, {}));
    int const rest = make(sp_kind::parallel, lower);
    return make(sp_kind::series, {up, rest});
  }

 public:
  /// Weights of all nodes that will ever be placed; starts with one of them as the only leaf.
  sp_growth(std::vector<T> weight, int first)
      : root_(-1), weight_(std::move(weight)), wanted_(weight_.size(), 0), member_of_(weight_.size(), -1) {
    root_ = fresh(sp_kind::leaf, first, {});
  }

  /// Places a group of nodes that share their direct predecessors. Preconditions: those are placed and not
  /// none. O(nodes placed).
  template <class Policy>
  void place(std::vector<int> const& group, std::vector<int> const& before, Policy const& policy) {
    for (int u : before) wanted_[idx(u)] = 1;
    find(root_);
    int owner = -1, cur = root_;
    std::size_t slot = 0;
    while (true) {
      part const& p = (*this)[cur];
      std::vector<int> hit;
      for (std::size_t k = 0; k < p.parts.size(); ++k)
        if (has_[idx(p.parts[k])]) hit.push_back(static_cast<int>(k));
      bool const series = p.kind == sp_kind::series, leaf = p.kind == sp_kind::leaf;
      if (!leaf && (series ? idx(hit.back()) + 1 == p.parts.size() : hit.size() == 1)) {
        owner = cur;
        slot = idx(hit.back());
        cur = p.parts[slot];
        continue;
      }
      std::vector<int> forest, rest;
      for (std::size_t k = 0; k < p.parts.size(); ++k) {
        bool const in = series ? k >= idx(hit.back()) : has_[idx(p.parts[k])] != 0;
        (in ? forest : rest).push_back(p.parts[k]);
      }
      if (!leaf) free_.push_back(cur);
      sp_kind const kind = p.kind;
      int made = put_behind(leaf ? cur : make(kind, forest), group, policy);
      rest.push_back(made);
      if (!leaf) made = make(kind, rest);
      if (owner < 0) {
        root_ = made;
      } else {
        std::vector<int> siblings = (*this)[owner].parts;
        siblings[slot] = made;
        std::vector<int> flat;
        for (int s : siblings)
          if ((*this)[s].kind == (*this)[owner].kind) {
            flat.insert(flat.end(), (*this)[s].parts.begin(), (*this)[s].parts.end());
            free_.push_back(s);
          } else {
            flat.push_back(s);
          }
        (*this)[owner].parts = std::move(flat);
      }
      break;
    }
    for (int u : before) wanted_[idx(u)] = 0;
  }

  /// The heaviest path up to every placed node, by node. O(nodes placed).
  std::vector<T> upto() {
    members_.clear();
    walk(root_, T{}, false);
    std::vector<T> r(weight_.size(), T{});
    for (member const& m : members_) r[idx(m.node)] = m.through;
    return r;
  }

  /// The tree of the nodes below `nodes`; others (imagined ones) are left out. Throws `error` if none is
  /// left.
  sp_tree tree(int nodes) {
    sp_expr e;
    int const root = copy(e, root_, nodes);
    return normalise(e, root);
  }

 private:
  int copy(sp_expr& e, int i, int nodes) {
    part const& p = (*this)[i];
    if (p.kind == sp_kind::leaf) return p.node < nodes ? e.leaf(p.node) : e.series({});
    std::vector<int> made;
    for (int k : p.parts) made.push_back(copy(e, k, nodes));
    return e.compose(p.kind, made);
  }
};

}  // namespace tensorpar::graph::detail
