// tensorpar/graph/sp/tree.hpp - the n-ary normal form of a series-parallel graph
#pragma once
#include <algorithm>
#include <concepts>
#include <string>
#include <string_view>
#include <tensorpar/core/index.hpp>
#include <tensorpar/graph/sp/expr.hpp>
#include <vector>

namespace tensorpar::graph {

class sp_tree;
class sp_series;
class sp_parallel;
namespace detail {
class sp_normaliser;
}

/// One part of a series: a leaf or a parallel composition, never a series. `visit` asks for exactly these
/// two.
class sp_series_part {
  sp_tree const* t_;
  int i_;

 public:
  sp_series_part(sp_tree const& t, int i) : t_(&t), i_(i) {}
  int index() const { return i_; }
  template <std::invocable<int> L, std::invocable<sp_parallel> P>
  decltype(auto) visit(L&& leaf, P&& parallel) const;
};

/// One part of a parallel composition: a leaf or a series, never parallel.
class sp_parallel_part {
  sp_tree const* t_;
  int i_;

 public:
  sp_parallel_part(sp_tree const& t, int i) : t_(&t), i_(i) {}
  int index() const { return i_; }
  template <std::invocable<int> L, std::invocable<sp_series> S>
  decltype(auto) visit(L&& leaf, S&& series) const;
};

/// A series-parallel decomposition in normal form: series and parallel alternate, every composition has at
/// least two parts, parts of a parallel composition are sorted (smallest first leaf first). So two trees are
/// equal exactly if they are equal up to associativity and up to the order of parallel parts. Regular value.
/// There is no way to make one that is not normal: `normalise`, `parse` and the recognisers are the only
/// sources.
/// Storage: entries 0 .. size()-1, parts before their whole, the root last, a sub-tree contiguous; so
/// bottom-up work is a plain loop.
class sp_tree {
 public:
  int size() const { return static_cast<int>(entries_.size()); }
  int root() const { return size() - 1; }
  sp_kind kind(int i) const { return at(i).kind; }
  /// The graph node of a leaf. Precondition: kind(i) == leaf.
  int node(int i) const { return at(i).first; }
  /// The parts of a composition in order; empty for a leaf.
  core::slice<int> parts(int i) const {
    if (at(i).kind == sp_kind::leaf) return {nullptr, 0};
    return {links_.data() + at(i).first, at(i).count};
  }

  /// Typed access, in which the alternation of series and parallel is a matter of types.
  template <std::invocable<int> L, std::invocable<sp_series> S, std::invocable<sp_parallel> P>
  decltype(auto) visit(L&& leaf, S&& series, P&& parallel) const;

  /// Reads `S(0,P(1,2),3)`, normal or not. Throws `error` on bad text and on an expression without any node.
  static sp_tree parse(std::string_view text);

  friend bool operator==(sp_tree const& a, sp_tree const& b) = default;

 private:
  friend class detail::sp_normaliser;
  struct entry {
    sp_kind kind;
    int first, count;
    friend bool operator==(entry const&, entry const&) = default;
  };
  entry const& at(int i) const { return entries_[idx(i)]; }
  std::vector<entry> entries_;
  std::vector<int> links_;
};

/// The parts of a composition, by their types.
template <class Part> class sp_parts {
  sp_tree const* t_;
  core::slice<int> parts_;

 public:
  sp_parts(sp_tree const& t, int i) : t_(&t), parts_(t.parts(i)) {}
  int size() const { return parts_.size(); }
  Part operator[](int k) const { return Part(*t_, parts_[k]); }
};
class sp_series : public sp_parts<sp_series_part> {
 public:
  using sp_parts::sp_parts;
};
class sp_parallel : public sp_parts<sp_parallel_part> {
 public:
  using sp_parts::sp_parts;
};

template <std::invocable<int> L, std::invocable<sp_parallel> P>
decltype(auto) sp_series_part::visit(L&& leaf, P&& parallel) const {
  if (t_->kind(i_) == sp_kind::leaf) return leaf(t_->node(i_));
  return parallel(sp_parallel(*t_, i_));
}
template <std::invocable<int> L, std::invocable<sp_series> S>
decltype(auto) sp_parallel_part::visit(L&& leaf, S&& series) const {
  if (t_->kind(i_) == sp_kind::leaf) return leaf(t_->node(i_));
  return series(sp_series(*t_, i_));
}
template <std::invocable<int> L, std::invocable<sp_series> S, std::invocable<sp_parallel> P>
decltype(auto) sp_tree::visit(L&& leaf, S&& series, P&& parallel) const {
  switch (kind(root())) {
    case sp_kind::leaf: return leaf(node(root()));
    case sp_kind::series: return series(sp_series(*this, root()));
    default: return parallel(sp_parallel(*this, root()));
  }
}

namespace detail {

class sp_normaliser {
  struct temp {
    sp_kind kind;
    int first, count, least;  // least: the first leaf in print order
  };
  std::vector<temp> temps_;
  std::vector<int> links_, items_;

  temp const& at(int i) const { return temps_[idx(i)]; }
  int part(int i, int k) const { return links_[idx(at(i).first + k)]; }

  /// A total order on normal forms: first leaf, then shape, depth first. With distinct leaves the first
  /// comparison decides.
  bool less(int a, int b) const {
    std::vector<std::pair<int, int>> pairs{{a, b}};
    while (!pairs.empty()) {
      auto const [x, y] = pairs.back();
      pairs.pop_back();
      if (x == y) continue;
      if (at(x).least != at(y).least) return at(x).least < at(y).least;
      if (at(x).kind != at(y).kind) return at(x).kind < at(y).kind;
      if (at(x).kind == sp_kind::leaf) continue;
      if (at(x).count != at(y).count) return at(x).count < at(y).count;
      for (int k = at(x).count - 1; k >= 0; --k) pairs.emplace_back(part(x, k), part(y, k));
    }
    return false;
  }

  /// Ends a composition whose parts are items_[from ..): leaves it as none, one or several items for a parent
  /// of kind `into`.
  void close(sp_kind kind, std::size_t from, sp_kind into) {
    std::size_t const n = items_.size() - from;
    if (n == 0 || (n > 1 && kind == into)) return;
    if (n > 1) {
      auto const first = items_.begin() + static_cast<std::ptrdiff_t>(from);
      if (kind == sp_kind::parallel)
        std::sort(first, items_.end(), [this](int a, int b) { return less(a, b); });
      temps_.push_back({kind, static_cast<int>(links_.size()), static_cast<int>(n), at(items_[from]).least});
      links_.insert(links_.end(), first, items_.end());
      items_.resize(from);
      items_.push_back(static_cast<int>(temps_.size()) - 1);
    } else if (temp const only = at(items_.back()); only.kind == into && into != sp_kind::leaf) {
      items_.pop_back();  // S(P(S(a,b)),c): the lone part is spliced into the parent
      for (int k = 0; k < only.count; ++k) items_.push_back(links_[idx(only.first + k)]);
    }
  }

 public:
  sp_tree run(sp_expr const& e, int root) {
    struct frame {
      int term, next;
      std::size_t from;
    };
    std::vector<frame> stack{{root, 0, 0}};
    while (!stack.empty()) {
      frame& f = stack.back();
      auto const t = e[f.term];
      sp_kind const into = stack.size() > 1 ? e[stack[stack.size() - 2].term].kind : sp_kind::leaf;
      if (t.kind == sp_kind::leaf) {
        temps_.push_back({t.kind, t.first, 0, t.first});
        items_.push_back(static_cast<int>(temps_.size()) - 1);
        stack.pop_back();
      } else if (f.next < t.count) {
        stack.push_back({e.parts(f.term)[f.next++], 0, items_.size()});
      } else {
        std::size_t const from = f.from;
        stack.pop_back();
        close(t.kind, from, into);
      }
    }
    if (items_.empty())
      throw error("a series-parallel expression without any node", "normalise", "at least one node");
    return emit(items_.front());
  }

 private:
  sp_tree emit(int root) const {
    struct frame {
      int temp, next;
      std::size_t from;
    };
    sp_tree r;
    std::vector<int> made;
    std::vector<frame> stack{{root, 0, 0}};
    while (!stack.empty()) {
      frame& f = stack.back();
      temp const& t = at(f.temp);
      if (t.kind != sp_kind::leaf && f.next < t.count) {
        stack.push_back({part(f.temp, f.next++), 0, made.size()});
        continue;
      }
      if (t.kind == sp_kind::leaf) {
        r.entries_.push_back({t.kind, t.first, 0});
      } else {
        r.entries_.push_back({t.kind, static_cast<int>(r.links_.size()), t.count});
        r.links_.insert(r.links_.end(), made.begin() + static_cast<std::ptrdiff_t>(f.from), made.end());
        made.resize(f.from);
      }
      made.push_back(static_cast<int>(r.entries_.size()) - 1);
      stack.pop_back();
    }
    return r;
  }
};

}  // namespace detail

/// The normal form: nested compositions of one kind are one, empty ones vanish, a composition of one part is
/// that part, parallel parts are sorted. Law: normalise(as_expr(t)) == t. O(size log size). Throws `error` if
/// no node is left.
inline sp_tree normalise(sp_expr const& e, int root) { return detail::sp_normaliser{}.run(e, root); }

inline sp_tree sp_tree::parse(std::string_view text) {
  sp_text const t = parse_sp_expr(text);
  return normalise(t.expr, t.root);
}

/// Adds a tree to an expression; returns its handle there. Precondition: i is an entry of t. O(size of t).
inline int append(sp_expr& e, sp_tree const& t) {
  std::vector<int> handle, parts;
  handle.reserve(idx(t.size()));
  for (int i = 0; i < t.size(); ++i) {
    if (t.kind(i) == sp_kind::leaf) {
      handle.push_back(e.leaf(t.node(i)));
      continue;
    }
    parts.clear();
    for (int k : t.parts(i)) parts.push_back(handle[idx(k)]);
    handle.push_back(e.compose(t.kind(i), parts));
  }
  return handle.back();
}

/// `S(0,P(1,2),3)`. Law: sp_tree::parse(to_string(t)) == t.
inline std::string to_string(sp_tree const& t) {
  struct frame {
    int entry, next;
  };
  std::string r;
  std::vector<frame> stack{{t.root(), 0}};
  while (!stack.empty()) {
    frame& f = stack.back();
    if (t.kind(f.entry) == sp_kind::leaf) {
      r += std::to_string(t.node(f.entry));
      stack.pop_back();
      continue;
    }
    auto const parts = t.parts(f.entry);
    if (f.next == parts.size()) {
      r += ')';
      stack.pop_back();
      continue;
    }
    if (f.next == 0) r += t.kind(f.entry) == sp_kind::series ? "S(" : "P(";
    else r += ',';
    stack.push_back({parts[f.next++], 0});
  }
  return r;
}

}  // namespace tensorpar::graph
