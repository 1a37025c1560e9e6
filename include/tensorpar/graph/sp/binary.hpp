// tensorpar/graph/sp/binary.hpp - series-parallel trees with two parts a composition, leaning left, right or
// balanced
#pragma once
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/graph/sp/tree.hpp>
#include <vector>

namespace tensorpar::graph {

/// How n parts become pairs: ((a b) c) d, a (b (c d)), or halves (the left one larger by one for odd n).
enum class sp_shape : unsigned char { left, right, balanced };

/// A binary series-parallel tree; parts before their whole, the root last. Regular value.
class sp_binary {
 public:
  struct entry {
    sp_kind kind;
    int left, right;  // a leaf: left is its graph node
    friend bool operator==(entry const&, entry const&) = default;
  };
  int size() const { return static_cast<int>(entries_.size()); }
  int root() const { return size() - 1; }
  entry const& operator[](int i) const { return entries_[idx(i)]; }
  int add(entry e) {
    entries_.push_back(e);
    return size() - 1;
  }
  /// Edges on the longest way from the root to a leaf. O(size).
  int height() const {
    std::vector<int> h(entries_.size(), 0);
    for (std::size_t i = 0; i < h.size(); ++i)
      if (auto const& e = entries_[i]; e.kind != sp_kind::leaf)
        h[i] = 1 + std::max(h[idx(e.left)], h[idx(e.right)]);
    return h.back();
  }
  friend bool operator==(sp_binary const&, sp_binary const&) = default;

 private:
  std::vector<entry> entries_;
};

/// The binary form of a tree. Law: nary(binary(t, shape)) == t for every shape; a balanced one of n equal
/// parts has ceil(log2 n) levels. O(size).
inline sp_binary binary(sp_tree const& t, sp_shape shape) {
  sp_binary r;
  std::vector<int> made(idx(t.size()), -1), level, next;
  for (int i = 0; i < t.size(); ++i) {
    sp_kind const k = t.kind(i);
    if (k == sp_kind::leaf) {
      made[idx(i)] = r.add({k, t.node(i), -1});
      continue;
    }
    level.clear();
    for (int p : t.parts(i)) level.push_back(made[idx(p)]);
    if (shape == sp_shape::left) {
      int acc = level.front();
      for (std::size_t j = 1; j < level.size(); ++j) acc = r.add({k, acc, level[j]});
      made[idx(i)] = acc;
    } else if (shape == sp_shape::right) {
      int acc = level.back();
      for (std::size_t j = level.size() - 1; j-- > 0;) acc = r.add({k, level[j], acc});
      made[idx(i)] = acc;
    } else {
      // depth: log of the number of parts
      auto const halves = [&](auto const& self, std::size_t from, std::size_t to) -> int {
        if (to - from == 1) return level[from];
        std::size_t const mid = from + (to - from + 1) / 2;
        int const a = self(self, from, mid), b = self(self, mid, to);
        return r.add({k, a, b});
      };
      made[idx(i)] = halves(halves, 0, level.size());
    }
  }
  return r;
}

/// Back to the normal form. Precondition: not empty. O(size log size).
inline sp_tree nary(sp_binary const& b) {
  sp_expr e;
  for (int i = 0; i < b.size(); ++i) {
    auto const& x = b[i];
    if (x.kind == sp_kind::leaf) e.leaf(x.left);
    else e.compose(x.kind, {x.left, x.right});
  }
  return normalise(e, b.root());
}

/// `((1;2);(3;4))`: a semicolon for series, a bar for parallel.
inline std::string to_string(sp_binary const& b) {
  std::vector<std::string> s(idx(b.size()));
  for (int i = 0; i < b.size(); ++i) {
    auto const& x = b[i];
    if (x.kind == sp_kind::leaf) s[idx(i)] = std::to_string(x.left);
    else
      s[idx(i)] = "(" + s[idx(x.left)] +
                                       (x.kind == sp_kind::series ? ";" : "|") +
                                       s[idx(x.right)] + ")";
  }
  return s.back();
}

}  // namespace tensorpar::graph
