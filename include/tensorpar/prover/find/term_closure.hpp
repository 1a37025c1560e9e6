// tensorpar/prover/find/term_closure.hpp - which enumerated terms the rules found so far already make equal
#pragma once
#include <array>
#include <tensorpar/core/index.hpp>
#include <tensorpar/prover/find/enumerate.hpp>

namespace tensorpar::prover {

/// The terms of an enumeration in classes. Those of an instance of a known rule are one class, and so are
/// equal operators of equal operands (congruence). No term is made that was not enumerated, and no instance
/// goes through one that is larger than an equal term. So a step from one member of a class to another never
/// grows a term to shrink it later. It stays among terms that are valid in the family's own shardings.
/// A rule whose sides are in one class is implied by those applied before: that is the meaning of "implied"
/// here.
class term_closure {
  family const& f_;
  enumeration const& e_;
  // least_: operators of the smallest term of a class
  std::vector<int> parent_, least_;
  std::vector<std::vector<int>> members_;                       // by representative
  std::map<std::array<int, 4>, int> known_;                     // (step, classes of operands) -> term
  std::vector<rewrite::rule> rules_;

  /// What a rule's parameter stands for in an instance: one of the family's (>= 0), a product of two (product
  /// + ...), an extent of one of its tensors (extent + ...), or for axes a number (literal - number); open:
  /// unset.
  static constexpr int open = -1000, literal = -500, product = 1000, extent = 2000;
  static bool is_extent(rewrite::rule_term const& t) {
    return !t.factors.empty() && t.factors[0].kind == rewrite::term_kind::extent;
  }
  static int meaning(rewrite::rule_term const& t) {
    if (t.factors.empty()) return literal - static_cast<int>(t.number);
    if (is_extent(t)) {
      rewrite::rule_factor const& f = t.factors[0];
      return extent + 100 * f.index +
             (f.axis_parameter >= 0 ? 50 + f.axis_parameter : f.axis + shape::max_rank);
    }
    if (t.factors.size() == 1) return t.factors[0].index;
    int const a = t.factors[0].index, b = t.factors[1].index;
    return product + (a < b ? 30 * a + b : 30 * b + a);
  }
  struct binding {
    std::vector<int> tensor, parameter;
  };

  int find(int t) const { while (parent_[idx(t)] != t) t = parent_[idx(t)]; return t; }
  std::array<int, 4> key(int step, int const* in) const {
    std::array<int, 4> k{step, -1, -1, -1};
    for (int i = 0; i < f_.steps[idx(step)].operands; ++i)
      k[idx(i) + 1] = find(in[i]);
    if (f_.steps[idx(step)].commutative && k[1] > k[2]) std::swap(k[1], k[2]);
    return k;
  }
  int least(int c) const { return least_[idx(c)]; }
  bool unite(int a, int b) {
    a = find(a);
    b = find(b);
    if (a == b) return false;
    if (members_[idx(a)].size() < members_[idx(b)].size()) std::swap(a, b);
    parent_[idx(b)] = a;
    least_[idx(a)] = least(a) < least(b) ? least(a) : least(b);
    auto& into = members_[idx(a)];
    into.insert(into.end(), members_[idx(b)].begin(), members_[idx(b)].end());
    members_[idx(b)].clear();
    return true;
  }
  /// Equal operators of equal operands are equal; until nothing changes.
  void close() {
    for (bool changed = true; changed;) {
      changed = false;
      known_.clear();
      for (int t = 0; t < static_cast<int>(e_.terms.size()); ++t) {
        family_term const& u = e_.terms[idx(t)];
        if (u.step < 0) continue;
        auto const [it, fresh] = known_.emplace(key(u.step, u.in), t);
        if (!fresh && unite(t, it->second)) changed = true;
      }
    }
  }

  bool conditioned(rewrite::rule const& r, int p) const {
    for (rewrite::rule_condition const& c : r.conditions)
      for (rewrite::rule_term const* t : {&c.a, &c.b})
        for (rewrite::rule_factor const& x : t->factors)
          if (x.kind == rewrite::term_kind::parameter && x.index == p) return true;
    return false;
  }
  bool bind(rewrite::rule const& r, binding& b, int p, int to) const {
    int& have = b.parameter[idx(p)];
    // what the condition says of a number is not known here
    if (have == open && to <= literal && conditioned(r, p)) return false;
    if (have == open) have = to;
    return have == to;
  }
  /// Does a rule's operator stand for this step? Binds parameters.
  bool stands(rewrite::rule const& r, rewrite::pattern_node const& n, family_step const& s,
              binding& b) const {
    if ((n.op == nullptr) != (s.node.op == nullptr) || static_cast<int>(n.in.size()) != s.operands)
      return false;
    if (!n.op) return bind(r, b, n.function, s.node.function);
    if (n.op->id != s.node.op->id) return false;
    for (std::size_t i = 0; i < n.attr.size(); ++i) {
      rewrite::rule_term const &x = n.attr[i], &y = s.node.attr[i];
      if (x.open || y.open) continue;
      if (x.factors.empty() ? !(x == y) : x.factors.size() > 2 || y.factors.size() > 2 || x.number != 1)
        return false;
      if (x.factors.empty()) continue;
      if (is_extent(x)) {                   // of one of the family's tensors, which the rule's then is
        rewrite::rule_factor const &p = x.factors[0], &q = y.factors.empty() ? p : y.factors[0];
        if (!is_extent(y) || x.factors.size() != 1) return false;
        if (p.axis_parameter >= 0
                ? !bind(r, b, p.axis_parameter, q.axis_parameter >= 0 ? q.axis_parameter : literal - q.axis)
                : q.axis_parameter >= 0 || p.axis != q.axis)
          return false;
        int& have = b.tensor[idx(x.factors[0].index)];
        if (have < 0) have = find(y.factors[0].index);              // tensor variables are the first terms
        else if (find(have) != find(y.factors[0].index)) return false;
        continue;
      }
      if (x.factors.size() == 1) {
        if (!bind(r, b, x.factors[0].index, meaning(y))) return false;
        continue;
      }
      if (y.factors.size() != 2) return false;
      binding const before = b;             // a product's factors in either order
      if (bind(r, b, x.factors[0].index, y.factors[0].index) &&
          bind(r, b, x.factors[1].index, y.factors[1].index))
        continue;
      b = before;
      if (!bind(r, b, x.factors[0].index, y.factors[1].index) ||
          !bind(r, b, x.factors[1].index, y.factors[0].index))
        return false;
    }
    return true;
  }
  /// Adds to `all` every way in which pattern value v can be in class c, given b.
  void match(rewrite::rule const& r, rewrite::pattern_graph const& g, rewrite::pattern_value v, int c,
             binding const& b, std::vector<binding>& all) const {
    if (v.node < 0) {
      int const have = b.tensor[idx(v.slot)];
      if (have >= 0 && find(have) != c) return;
      all.push_back(b);
      all.back().tensor[idx(v.slot)] = c;
      return;
    }
    rewrite::pattern_node const& n = g.nodes[idx(v.node)];
    for (int t : members_[idx(c)]) {
      family_term const& u = e_.terms[idx(t)];
      if (u.step < 0 || u.operators > least(c)) continue;
      family_step const& s = f_.steps[idx(u.step)];
      // before anything is copied
      if ((n.op ? n.op->id : 0) != (s.node.op ? s.node.op->id : 0) || s.slot != v.slot) continue;
      binding next = b;
      if (!stands(r, n, s, next)) continue;
      for (bool turned : {false, true}) {
        if (turned && !(s.commutative && find(u.in[0]) != find(u.in[1]))) break;
        std::vector<binding> first{next}, second;
        for (std::size_t k = 0; k < n.in.size(); ++k, std::swap(first, second)) {
          second.clear();
          int const operand = find(u.in[turned ? 1 - static_cast<int>(k) : static_cast<int>(k)]);
          for (binding const& x : first) match(r, g, n.in[k], operand, x, second);
        }
        all.insert(all.end(), first.begin(), first.end());
      }
    }
  }
  /// The class of an instance of a pattern; -1: it was not enumerated.
  int look_up(rewrite::rule const& r, rewrite::pattern_graph const& g, rewrite::pattern_value v,
              binding const& b) const {
    if (v.node < 0) return b.tensor[idx(v.slot)];
    rewrite::pattern_node const& n = g.nodes[idx(v.node)];
    int in[3] = {-1, -1, -1};
    for (std::size_t k = 0; k < n.in.size(); ++k)
      if ((in[k] = look_up(r, g, n.in[k], b)) < 0) return -1;
    for (int s = 0; s < static_cast<int>(f_.steps.size()); ++s) {
      if (f_.steps[idx(s)].slot != v.slot) continue;
      binding again = b;
      if (!stands(r, n, f_.steps[idx(s)], again) || again.parameter != b.parameter) continue;
      if (auto const it = known_.find(key(s, in)); it != known_.end()) return find(it->second);
    }
    return -1;
  }
  bool apply_once(rewrite::rule const& r) {
    // from the side that binds everything
    rewrite::detail::mentions const source = rewrite::detail::mentioned(r, r.source);
    bool binds = r.source.outputs[0].node >= 0;
    for (bool b : source.parameters) binds = binds && b;
    rewrite::pattern_graph const &from = binds ? r.source : r.target, &to = binds ? r.target : r.source;
    if (from.outputs[0].node < 0) return false;
    std::vector<std::pair<int, int>> equal;
    binding none{std::vector<int>(r.tensors.size(), -1), std::vector<int>(r.parameters.size(), open)};
    std::vector<binding> all;
    for (int c = 0; c < static_cast<int>(members_.size()); ++c) {
      if (members_[idx(c)].empty()) continue;
      all.clear();
      match(r, from, from.outputs[0], c, none, all);
      for (binding const& b : all) {
        bool whole = true;
        for (int x : b.tensor) whole = whole && x >= 0;
        for (int p : b.parameter) whole = whole && p != open;
        int const other = whole ? look_up(r, to, to.outputs[0], b) : -1;
        if (other >= 0 && other != c) equal.emplace_back(c, other);
      }
    }
    bool changed = false;
    for (auto const& [a, b] : equal) changed = unite(a, b) || changed;
    if (changed) close();
    return changed;
  }

 public:
  term_closure(family const& f, enumeration const& e) : f_(f), e_(e), members_(e.terms.size()) {
    for (int t = 0; t < static_cast<int>(e.terms.size()); ++t) {
      parent_.push_back(t);
      least_.push_back(e.terms[idx(t)].operators);
      members_[idx(t)] = {t};
    }
    close();
  }
  bool equal(int a, int b) const { return find(a) == find(b); }
  int classes() const {
    int n = 0;
    for (auto const& m : members_) n += !m.empty();
    return n;
  }
  /// Makes the instances of a rule equal. A rule with an operator that the family lacks has none. Rules of
  /// one output. O(matches).
  void apply(rewrite::rule const& r) {
    for (rewrite::pattern_graph const* g : {&r.source, &r.target})
      for (rewrite::pattern_node const& n : g->nodes) {
        bool known = false;
        for (family_step const& s : f_.steps)
          known = known || (n.op ? n.op->id : 0) == (s.node.op ? s.node.op->id : 0);
        if (!known) return;
      }
    rules_.push_back(r);
    apply_once(r);
  }
  /// Applies all of them again until nothing changes. O(passes * rules * matches).
  void settle() {
    for (bool changed = true; changed;) {
      changed = false;
      for (rewrite::rule const& s : rules_) changed = apply_once(s) || changed;
    }
  }
};

}  // namespace tensorpar::prover
