// tensorpar/graph/sp/expr.hpp - series-parallel expressions as they are written down, before normalisation
#pragma once
#include <string>
#include <string_view>
#include <tensorpar/core/error.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/slice.hpp>
#include <vector>

namespace tensorpar::graph {

enum class sp_kind : unsigned char { leaf, series, parallel };

/// Any expression over S(...), P(...) and nodes: series in series, one part, no part, a node twice, a
/// sub-expression used twice. `normalise` (sp_tree.hpp) turns it into an `sp_tree`. Parts are handles
/// returned earlier, so no expression contains itself.
class sp_expr {
 public:
  struct term {
    sp_kind kind;
    int first, count;  // a leaf: first is its node; else the parts are links[first .. first + count)
  };

  int leaf(int node) { return add({sp_kind::leaf, node, 0}); }
  int series(std::vector<int> const& parts) { return compose(sp_kind::series, parts); }
  int parallel(std::vector<int> const& parts) { return compose(sp_kind::parallel, parts); }
  int compose(sp_kind kind, std::vector<int> const& parts) {
    int const first = static_cast<int>(links_.size());
    links_.insert(links_.end(), parts.begin(), parts.end());
    return add({kind, first, static_cast<int>(parts.size())});
  }

  term operator[](int i) const { return terms_[idx(i)]; }
  core::slice<int> parts(int i) const { return {links_.data() + (*this)[i].first, (*this)[i].count}; }
  int size() const { return static_cast<int>(terms_.size()); }

 private:
  int add(term t) {
    terms_.push_back(t);
    return static_cast<int>(terms_.size()) - 1;
  }
  std::vector<term> terms_;
  std::vector<int> links_;
};

/// An expression together with its outermost term.
struct sp_text {
  sp_expr expr;
  int root;
};

/// Reads `S(0,P(1,2),3)`: nodes are decimal numbers, blanks are skipped. Throws `error` with the column of
/// the first mistake. O(length), iterative: depth is bounded by memory only.
inline sp_text parse_sp_expr(std::string_view text) {
  struct open {
    sp_kind kind;
    std::vector<int> parts;
  };
  sp_text r{{}, -1};
  std::vector<open> stack;
  std::size_t i = 0;
  auto const fail = [&](char const* what, char const* valid) {
    throw error(std::string(what) + " in a series-parallel expression", "column " + std::to_string(i + 1),
                valid);
  };
  auto const blanks = [&] {
    while (i < text.size() && text[i] == ' ') ++i;
  };
  bool term_next = true;
  for (blanks(); i < text.size(); blanks()) {
    char const c = text[i];
    if (r.root >= 0) fail("text after the end", "one expression");
    int done = -1;
    if (term_next && c >= '0' && c <= '9') {
      int v = 0;
      for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
        if (v > 99'999'999) fail("node number too large", "at most nine digits");
        v = 10 * v + (text[i] - '0');
      }
      done = r.expr.leaf(v);
    } else if (term_next && (c == 'S' || c == 'P') && i + 1 < text.size() && text[i + 1] == '(') {
      stack.push_back({c == 'S' ? sp_kind::series : sp_kind::parallel, {}});
      i += 2;
      continue;
    } else if (c == ')' && !stack.empty() && (!term_next || stack.back().parts.empty())) {
      ++i;
      done = r.expr.compose(stack.back().kind, stack.back().parts);
      stack.pop_back();
    } else if (c == ',' && !term_next && !stack.empty()) {
      ++i;
      term_next = true;
      continue;
    } else {
      fail("unexpected character", "S(...), P(...) or a node number, parts separated by commas");
    }
    term_next = false;
    if (stack.empty()) r.root = done;
    else stack.back().parts.push_back(done);
  }
  if (r.root < 0) fail("unexpected end", "every parenthesis closed");
  return r;
}

}  // namespace tensorpar::graph
