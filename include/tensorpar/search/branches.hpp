// tensorpar/search/branches.hpp - parallel branches side by side or in sequence, between the operators where they fork and join
#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tensorpar/search/evaluate.hpp>

namespace tensorpar {

/// What is known of all structures: an assignment that is good, and that none is better than `bound`.
struct branch_optimum {
  assignment choices;
  double bound = 0;
};

namespace detail {

/// What is asked; all of it outlives the answer.
struct branch_problem {
  mapping_tables const* tables;
  sp_binary const* tree;
  std::vector<int> const* set_of;
  std::vector<operator_pair> const* pairs;
  int devices, grain;
};

/// Works from the forks: with the choices of the operator before a fork (f) and of the one after its join (x) given, branches have nothing
/// to do with each other but time and devices. A branch, in a range of devices, is a set of points (t, p): seconds inside of it and
/// seconds of what it exchanges with f and x. In sequence both add up; side by side the larger t counts, and p, which belongs to the
/// whole, still adds up; points that another one is nowhere worse than are left out. Series are chains over their operators.
/// Of a movement between operators that are neither neighbours in a chain nor at its ends the least counts that the earlier one's choice
/// allows, one between operators of two branches does not count, and what a branch that starts or ends with a fork exchanges with f or x
/// counts inside: all that can only lower the bound.
class branch_mapper {
  struct point { double t, p; int trace; };
  using points = std::vector<point>;
  struct decision { int op, choice, left, right; };      // op -1: of both below

  branch_problem p_;
  i64 left_;                                             // of the budget: points made
  std::map<std::pair<int, int>, int> pair_;
  struct partner { int op; std::vector<double> least; };  // by choice: of what is exchanged with this later operator
  std::vector<std::vector<partner>> later_;
  std::vector<std::vector<int>> ops_;                    // by entry of the tree, ascending
  std::vector<decision> decisions_;
  std::map<std::array<int, 7>, points> solved_;          // (entry, range, f, its class, x, its class)
  std::map<std::array<int, 5>, std::vector<points>> chains_;   // (entry, range, f, its class): by choice of the last operator before x
  std::map<std::array<int, 2>, std::vector<int>> class_; // (operator, entry) -> choice -> class of its movements to the entry's operators

  static std::size_t at(int i) { return idx(i); }
  choice_set const& choices(int v) const { return p_.tables->sets[at((*p_.set_of)[at(v)])]; }
  bool fits(int v, int c, device_range r) const {
    return choices(v).spreads[at(c)].start == r.start && choices(v).sizes[at(c)] <= r.size;
  }
  sp_kind kind(int e) const { return (*p_.tree)[e].kind; }
  int op_of(int e) const { return (*p_.tree)[e].left; }

  /// What two operators exchange, if anything.
  operator_pair const* link(int a, int b) const {
    auto const i = pair_.find({std::min(a, b), std::max(a, b)});
    return i == pair_.end() ? nullptr : &(*p_.pairs)[at(i->second)];
  }
  double over(operator_pair const* q, bool ascending, int ca, int cb) const {
    return !q ? 0 : ascending ? p_.tables->seconds(*q, ca, cb) : p_.tables->seconds(*q, cb, ca);
  }
  double pair(int a, int ca, int b, int cb) const { return over(link(a, b), a < b, ca, cb); }
  double outside(int v, int c, int f, int fc, int x, int xc) const {
    double r = (f < 0 ? 0 : pair(v, c, f, fc)) + (x < 0 ? 0 : pair(v, c, x, xc));
    for (partner const& q : later_[at(v)]) if (q.op != f && q.op != x) r += q.least[at(c)];
    return r;
  }
  bool among(int e, int op) const { return e >= 0 && std::binary_search(ops_[at(e)].begin(), ops_[at(e)].end(), op); }
  /// Choices of an operator outside that mean the same to all operators of an entry share a number, that of the first of them.
  int class_of(int op, int choice, int e) {
    if (op < 0) return -1;
    auto const [i, fresh] = class_.try_emplace({op, e});
    if (fresh) {
      std::map<std::vector<int>, int> first;
      for (int c = 0; c < choices(op).count(); ++c) {
        std::vector<int> key;
        for (int v : ops_[at(e)])
          if (auto const q = pair_.find({std::min(op, v), std::max(op, v)}); q != pair_.end()) {
            operator_pair const& both = (*p_.pairs)[at(q->second)];
            key.push_back(p_.tables->classes[at(op < v ? both.rows : both.cols)].of[at(c)]);
          }
        i->second.push_back(first.try_emplace(std::move(key), c).first->second);
      }
    }
    return i->second[at(choice)];
  }
  int decide(int op, int choice, int left, int right) {
    decisions_.push_back({op, choice, left, right});
    return static_cast<int>(decisions_.size()) - 1;
  }

  struct draft { double t, p; int left, right, choice; };
  /// Keeps what nothing else is better than; only these are remembered as decisions.
  points best_of(std::vector<draft>& all, int op) {
    left_ -= static_cast<i64>(all.size());
    auto const before = [](draft const& a, draft const& b) {
      return a.t != b.t ? a.t < b.t : a.p != b.p ? a.p < b.p : a.choice != b.choice ? a.choice < b.choice : a.left < b.left;
    };
    // the first in this order is kept, and all others must beat its p: most fall before anything is sorted
    draft const* first = nullptr;
    for (draft const& d : all) if (d.t + d.p < never && (!first || before(d, *first))) first = &d;
    points r;
    if (first) {
      draft const best = *first;
      r.push_back({best.t, best.p, decide(op, best.choice, best.left, best.right)});
      std::erase_if(all, [&](draft const& d) { return !(d.p < best.p && d.t + d.p < never); });
      std::sort(all.begin(), all.end(), before);
      for (draft const& d : all)
        if (d.p < r.back().p) r.push_back({d.t, d.p, decide(op, d.choice, d.left, d.right)});
    }
    all.clear();
    return r;
  }

  void composed(points const& a, points const& b, bool side, std::vector<draft>& to) {
    left_ -= static_cast<i64>(a.size() * b.size());
    if (left_ < 0) return;
    for (point const& x : a)
      for (point const& y : b) to.push_back({side ? std::max(x.t, y.t) : x.t + y.t, x.p + y.p, x.trace, y.trace, -1});
  }

  points const& solve(int e, device_range r, int f, int fc, int x, int xc) {
    int const cf = class_of(f, fc, e), cx = class_of(x, xc, e);
    std::array<int, 7> const key{e, r.start, r.size, cf < 0 ? -1 : f, cf, cx < 0 ? -1 : x, cx};
    if (auto const i = solved_.find(key); i != solved_.end()) return i->second;
    std::vector<draft> all;
    points made;
    if (left_ < 0) {
    } else if (kind(e) == sp_kind::leaf) {
      int const v = op_of(e);
      for (int c = 0; c < choices(v).count(); ++c)
        if (fits(v, c, r)) all.push_back({choices(v).seconds[at(c)], outside(v, c, f, fc, x, xc), -1, -1, c});
      made = best_of(all, v);
    } else if (kind(e) == sp_kind::parallel) {
      int const a = (*p_.tree)[e].left, b = (*p_.tree)[e].right;
      composed(solve(a, r, f, fc, x, xc), solve(b, r, f, fc, x, xc), false, all);
      for (auto const& [ra, rb] : divisions(r, p_.grain)) {
        points const& left = solve(a, ra, f, fc, x, xc);     // references into a map stay
        if (!left.empty()) composed(left, solve(b, rb, f, fc, x, xc), true, all);
      }
      made = best_of(all, -1);
    } else made = series(e, r, f, fc, x, xc);
    return solved_.emplace(key, std::move(made)).first->second;
  }

  std::vector<int> elements(int e) const {
    if (kind(e) != sp_kind::series) return {e};
    std::vector<int> r = elements((*p_.tree)[e].left), s = elements((*p_.tree)[e].right);
    r.insert(r.end(), s.begin(), s.end());
    return r;
  }
  /// The cheapest of a fork between two operators of one chain: everything counts inside.
  point inner(int e, device_range r, int f, int fc, int x, int xc) {
    point best{never, 0, -1};
    for (point const& q : solve(e, r, f, fc, x, xc)) if (q.t + q.p < best.t) best = {q.t + q.p, 0, q.trace};
    return best;
  }

  int both(int a, int b) { return a < 0 ? b : b < 0 ? a : decide(-1, -1, a, b); }
  /// The same of several forks in a row.
  point inner(std::vector<int> const& forks, device_range r, int f, int fc, int x, int xc) {
    point all{0, 0, -1};
    for (int e : forks) {
      point const b = inner(e, r, f, fc, x, xc);
      all = {all.t + b.t, 0, both(all.trace, b.trace)};
    }
    return all;
  }

  /// By choice of the chain's last operator, up to and with it (one state where the chain has no operator of its own). What it exchanges
  /// with x is not counted yet, nor are the forks after it.
  std::vector<points> const& chain(std::vector<int> const& parts, std::vector<int> const& tail, int e, device_range r, int f, int fc,
                                   int x) {
    int const cf = class_of(f, fc, e);
    std::array<int, 5> const key{e, r.start, r.size, cf < 0 ? -1 : f, cf};
    if (auto const i = chains_.find(key); i != chains_.end()) return i->second;
    int last = -1;                                         // the operator that was reached
    std::vector<int> forks;                                // after it
    std::vector<points> now(1, points{{0, 0, -1}});        // before the first operator there is one state
    for (std::size_t k = 0; k < parts.size(); ++k) {
      if (kind(parts[k]) != sp_kind::leaf) {
        forks.push_back(parts[k]);
        continue;
      }
      int const v = op_of(parts[k]);
      // what comes next is counted when it is reached, and x and the last forks by who ends the chain
      std::size_t n = k + 1;
      while (n < parts.size() && kind(parts[n]) != sp_kind::leaf) ++n;
      bool const ends = n >= parts.size();
      auto const counted = [&](int u) {
        if (u == f || (ends ? u == x : u == op_of(parts[n]))) return true;
        for (std::size_t i = k + 1; i < n; ++i) if (among(parts[i], u)) return true;
        for (int q : tail) if (ends && among(q, u)) return true;
        return false;
      };
      std::vector<points> next(at(choices(v).count()));
      std::vector<draft> all;
      operator_pair const* const met = last < 0 ? nullptr : link(last, v);
      for (int c = 0; c < choices(v).count() && left_ >= 0; ++c) {
        if (!fits(v, c, r)) continue;
        double own = choices(v).seconds[at(c)], out = f < 0 ? 0 : pair(v, c, f, fc);
        for (partner const& u : later_[at(v)]) if (!counted(u.op)) (among(e, u.op) ? own : out) += u.least[at(c)];
        for (std::size_t i = 0; i < now.size(); ++i) {
          if (now[i].empty()) continue;
          int const before = static_cast<int>(i);
          point const fork = inner(forks, r, last < 0 ? f : last, last < 0 ? fc : before, v, c);
          double const between = fork.t + over(met, last < v, before, c);
          if (between == never) continue;
          for (point const& y : now[i]) all.push_back({y.t + between + own, y.p + out, y.trace, fork.trace, c});
        }
        next[at(c)] = best_of(all, v);
      }
      now = std::move(next);
      last = v;
      forks.clear();
    }
    return chains_.emplace(key, std::move(now)).first->second;
  }

  points series(int e, device_range r, int f, int fc, int x, int xc) {
    std::vector<int> parts = elements(e), tail;
    while (!parts.empty() && kind(parts.back()) != sp_kind::leaf) {
      tail.insert(tail.begin(), parts.back());
      parts.pop_back();
    }
    int const last = parts.empty() ? -1 : op_of(parts.back());
    std::vector<points> const& ends = chain(parts, tail, e, r, f, fc, x);
    std::vector<draft> all;
    for (std::size_t i = 0; i < ends.size() && left_ >= 0; ++i) {
      if (ends[i].empty()) continue;
      int const c = static_cast<int>(i);
      double const out = x < 0 || last < 0 ? 0 : pair(last, c, x, xc);
      point const b = inner(tail, r, last < 0 ? f : last, last < 0 ? fc : c, x, xc);
      if (b.t == never) continue;
      for (point const& y : ends[i]) all.push_back({y.t + b.t, y.p + out, y.trace, b.trace, -1});
    }
    return best_of(all, -1);
  }

  void read(int trace, assignment& to) const {
    if (trace < 0) return;
    decision const& d = decisions_[at(trace)];
    if (d.op >= 0) to[at(d.op)] = d.choice;
    read(d.left, to);
    read(d.right, to);
  }

 public:
  branch_mapper(branch_problem const& p, i64 budget) : p_(p), left_(budget) {
    for (int i = 0; i < p.tree->size(); ++i) {
      std::vector<int> mine;
      if (kind(i) == sp_kind::leaf) mine = {op_of(i)};
      else {
        mine = ops_[at((*p.tree)[i].left)];
        auto const& other = ops_[at((*p.tree)[i].right)];
        mine.insert(mine.end(), other.begin(), other.end());
        std::sort(mine.begin(), mine.end());
      }
      ops_.push_back(std::move(mine));
    }
    std::vector<int> place(p.set_of->size(), 0);           // along the tree, where what comes first may have a larger number
    int reached = 0;
    auto const visit = [&](auto const& self, int e) -> void {
      if (kind(e) == sp_kind::leaf) {
        if (op_of(e) < static_cast<int>(place.size())) place[at(op_of(e))] = reached++;
        return;
      }
      self(self, (*p_.tree)[e].left);
      self(self, (*p_.tree)[e].right);
    };
    visit(visit, p.tree->root());
    later_.resize(p.set_of->size());
    std::vector<int> const where = meetings(*p.tree, *p.pairs);
    std::map<std::array<int, 3>, std::vector<double>> least;   // pairs that look alike: what a choice exchanges at least
    for (std::size_t k = 0; k < p.pairs->size(); ++k) {
      operator_pair const& q = (*p.pairs)[k];
      pair_[{q.first, q.second}] = static_cast<int>(k);
      pair_cost const& c = p.tables->costs[at(q.cost)];
      if (kind(where[k]) == sp_kind::parallel) continue;       // of branches that stand side by side: left out
      bool const rows = place[at(q.first)] < place[at(q.second)];
      auto const [known, fresh] = least.try_emplace({q.cost, rows ? q.rows : q.cols, rows});
      if (fresh) {
        std::vector<double> line(at(rows ? c.rows : c.cols), never);
        for (int i = 0; i < c.rows; ++i)
          for (int j = 0; j < c.cols; ++j) line[at(rows ? i : j)] = std::min(line[at(rows ? i : j)], c.at(i, j));
        for (int i : p.tables->classes[at(rows ? q.rows : q.cols)].of) known->second.push_back(line[at(i)]);
      }
      later_[at(rows ? q.first : q.second)].push_back({rows ? q.second : q.first, known->second});
    }
  }
  /// Bounds of all up to an operator of the outermost chain, by its choice, its own seconds counted; operators after it do not count.
  /// Nothing where the budget does not suffice.
  std::optional<std::vector<double>> up_to(int last) {
    int const root = p_.tree->root();
    std::vector<int> parts = elements(root);
    while (!parts.empty() && !(kind(parts.back()) == sp_kind::leaf && op_of(parts.back()) == last)) parts.pop_back();
    if (parts.empty()) return std::nullopt;
    std::vector<double> r;
    for (points const& q : chain(parts, {}, root, {0, p_.devices}, -1, -1, -1)) {
      r.push_back(never);
      for (point const& x : q) r.back() = std::min(r.back(), x.t + x.p);
    }
    return left_ < 0 ? std::nullopt : std::optional(std::move(r));
  }
  i64 left() const { return left_ < 0 ? 0 : left_; }

  std::optional<branch_optimum> run() {
    points const all = solve(p_.tree->root(), {0, p_.devices}, -1, -1, -1, -1);
    if (left_ < 0 || all.empty()) return std::nullopt;
    branch_optimum r{assignment(p_.set_of->size(), 0), never};
    int best = -1;
    for (point const& q : all) if (q.t + q.p < r.bound) { r.bound = q.t + q.p; best = q.trace; }
    read(best, r.choices);
    return r;
  }
};

}  // namespace detail

/// A good assignment under the best structure, and a bound on all of them, without regard to memory; nothing if the budget (points made)
/// does not suffice. Where every operator of a branch exchanges tensors only with its neighbours and, at its two ends, with the operators
/// where the branches fork and join, and no branch starts or ends with a fork, the assignment is the best one: its cost is the bound.
/// Deterministic. About choices^2 per operator and range, for every different choice of the operators at both ends.
inline std::optional<branch_optimum> map_branches(mapping_problem const& p, i64 budget = 3'000'000) {
  return detail::branch_mapper({&p, &p.tree, &p.set_of, &p.pairs, p.devices, p.grain}, budget).run();
}

}  // namespace tensorpar
