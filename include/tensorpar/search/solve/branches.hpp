// tensorpar/search/solve/branches.hpp - parallel branches side by side or in sequence, between the operators
// where they fork and join
#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/search/solve/branch_links.hpp>
#include <tensorpar/search/solve/branch_points.hpp>
#include <unordered_map>
#include <utility>

namespace tensorpar::search {

/// What is known of all structures: an assignment that is good, and that none is better than `bound`.
struct branch_optimum {
  assignment choices;
  double bound = 0;
};

namespace detail {

inline constexpr std::size_t every_point = idx(-1);

/// Works from the forks. Let the choices of the operator before a fork (f) and of the one after its join (x)
/// be given. Then branches share nothing but time and devices. A branch, in a range of devices, is a set of
/// points (t, p): seconds inside of it, and seconds of its exchange with f and x. In sequence both add up.
/// Side by side the larger t counts; p still adds up. A point is left out where another is nowhere worse.
/// Series are chains over their operators.
/// Three simplifications can only lower the bound. A reshard between operators that are neither neighbours in
/// a chain nor at its ends counts the least that the earlier one's choice allows. One between operators of
/// two branches does not count. The exchange with f or x of a branch that starts or ends with a fork counts
/// inside.
class branch_mapper : branch_links {
  using point = branch_point;
  using points = branch_points;
  using draft = branch_frontier::draft;
  /// By numbers; references into it stay.
  template <std::size_t N, class T>
  using table = std::unordered_map<std::array<int, N>, T, core::array_hash>;

  i64 left_;                                             // of the budget: points made
  std::size_t max_points_;                              // of a fork: thinned beyond
  branch_frontier kept_;
  table<7, points> solved_;                              // (entry, range, f, its class, x, its class)
  // (entry, range, f, its class): by choice of the last operator before x
  table<5, std::vector<points>> chains_;
  // series -> up to its last operator, and the forks after it
  std::map<int, std::pair<std::vector<int>, std::vector<int>>> split_;
  std::vector<draft> ends_;                              // of the entry at hand
  struct answer { points const* of; int entry; };
  table<5, answer> alike_;                               // (kind of entry, range, class of f, class of x)
  std::vector<double> slack_;   // by entry: how many times too dear points may be, where some are left out

  /// An operator by itself, with the operators f and x outside.
  points alone(int v, device_range r, int f, int fc, int x, int xc) {
    operator_pair const *const qf = f < 0 ? nullptr : link(v, f), *const qx = x < 0 ? nullptr : link(v, x);
    ends_.clear();
    for (int c : fitting(v, r)) {
      double out = over(qf, v < f, c, fc) + over(qx, v < x, c, xc);
      for (partner const& q : later_[idx(v)]) if (q.op != f && q.op != x) out += q.least[idx(c)];
      ends_.push_back({choices(v).seconds[idx(c)], out, -1, -1, c});
    }
    return best_of(ends_, v);
  }
  /// Keeps what nothing else is better than.
  points best_of(std::vector<draft>& all, int op) {
    left_ -= static_cast<i64>(all.size());
    return kept_.best_of(all, op);
  }

  points const& solve(int e, device_range r, int f, int fc, int x, int xc) {
    int const cf = like_.class_of(f, fc, e), cx = like_.class_of(x, xc, e);
    std::array<int, 7> const key{e, r.first, r.count, cf < 0 ? -1 : f, cf, cx < 0 ? -1 : x, cx};
    if (auto const i = solved_.find(key); i != solved_.end()) return i->second;
    std::array<int, 5> const kind_key{like_.kind_of(e, f, x), r.first, r.count, cf, cx};
    if (auto const i = alike_.find(kind_key); i != alike_.end()) {
      left_ -= static_cast<i64>(i->second.of->size());
      int const other = i->second.entry;
      slack_[idx(e)] = std::max(slack_[idx(e)], slack_[idx(other)]);
      return solved_.emplace(key, kept_.moved(*i->second.of, like_.first_of(e) - like_.first_of(other)))
          .first->second;
    }
    points made;
    if (left_ < 0) {
    } else if (kind(e) == graph::sp_kind::leaf) {
      made = alone(op_of(e), r, f, fc, x, xc);
    } else if (kind(e) == graph::sp_kind::parallel) {
      int const a = (*p_.tree)[e].left, b = (*p_.tree)[e].right;
      std::vector<branch_frontier::composition> some;
      i64 pairs = 0;
      auto const compose = [&](points const& left, points const& right, bool side) {
        i64 const n = static_cast<i64>(left.size() * right.size());
        left_ -= n;
        pairs += n;
        some.push_back({&left, &right, side});               // references into a map stay
      };
      points const& first = solve(a, r, f, fc, x, xc);
      compose(first, solve(b, r, f, fc, x, xc), false);
      for (auto const& [ra, rb] : divisions(r, p_.grain)) {
        points const& left = solve(a, ra, f, fc, x, xc);
        if (!left.empty()) compose(left, solve(b, rb, f, fc, x, xc), true);
      }
      if (left_ >= 0) made = kept_.best_of(some);
      left_ -= pairs;
      double const own = max_points_ < made.size() ? thin(made, max_points_) : 1;
      slack_[idx(e)] = std::max(slack_[idx(e)], own * std::max(slack_[idx(a)], slack_[idx(b)]));
    } else {
      made = series(e, r, f, fc, x, xc);
      auto const& [parts, tail] = split_.at(e);
      for (auto const* some : {&parts, &tail})
        for (int part : *some) slack_[idx(e)] = std::max(slack_[idx(e)], slack_[idx(part)]);
    }
    points const& kept = solved_.emplace(key, std::move(made)).first->second;
    if (left_ >= 0) alike_.emplace(kind_key, answer{&kept, e});
    return kept;
  }

  std::vector<int> elements(int e) const {
    if (kind(e) != graph::sp_kind::series) return {e};
    std::vector<int> r = elements((*p_.tree)[e].left), s = elements((*p_.tree)[e].right);
    r.insert(r.end(), s.begin(), s.end());
    return r;
  }
  /// The cheapest of a fork between two operators of one chain: everything counts inside.
  point inner(int e, device_range r, int f, int fc, int x, int xc) {
    point best{infinity, 0, -1};
    for (point const& q : solve(e, r, f, fc, x, xc)) if (q.t + q.p < best.t) best = {q.t + q.p, 0, q.trace};
    return best;
  }

  int both(int a, int b) { return a < 0 ? b : b < 0 ? a : kept_.decide(-1, -1, a, b); }
  /// The same of several forks in a row.
  point inner(std::vector<int> const& forks, device_range r, int f, int fc, int x, int xc) {
    point all{0, 0, -1};
    for (int e : forks) {
      point const b = inner(e, r, f, fc, x, xc);
      all = {all.t + b.t, 0, both(all.trace, b.trace)};
    }
    return all;
  }

  /// By choice of the chain's last operator, up to and with it (one state where the chain has no operator of
  /// its own). What it exchanges with x is not counted yet, nor are the forks after it.
  std::vector<points> const& chain(std::vector<int> const& parts, std::vector<int> const& tail, int e,
                                   device_range r, int f, int fc, int x) {
    int const cf = like_.class_of(f, fc, e);
    std::array<int, 5> const key{e, r.first, r.count, cf < 0 ? -1 : f, cf};
    if (auto const i = chains_.find(key); i != chains_.end()) return i->second;
    int last = -1;                                         // the operator that was reached
    std::vector<int> forks;                                // after it
    std::vector<points> now(1, points{{0, 0, -1}});        // before the first operator there is one state
    for (std::size_t k = 0; k < parts.size(); ++k) {
      if (kind(parts[k]) != graph::sp_kind::leaf) {
        forks.push_back(parts[k]);
        continue;
      }
      int const v = op_of(parts[k]);
      // what comes next is counted when it is reached, and x and the last forks by who ends the chain
      std::size_t n = k + 1;
      while (n < parts.size() && kind(parts[n]) != graph::sp_kind::leaf) ++n;
      bool const ends = n >= parts.size();
      auto const counted = [&](int u) {
        if (u == f || (ends ? u == x : u == op_of(parts[n]))) return true;
        for (std::size_t i = k + 1; i < n; ++i) if (like_.among(parts[i], u)) return true;
        for (int q : tail) if (ends && like_.among(q, u)) return true;
        return false;
      };
      std::vector<points> next(idx(choices(v).count()));
      std::vector<draft> all;
      operator_pair const* const met = last < 0 ? nullptr : link(last, v);
      std::vector<branch_entrant> enter;
      operator_pair const* const qf = f < 0 ? nullptr : link(v, f);
      for (int c : fitting(v, r)) {
        double own = choices(v).seconds[idx(c)], out = over(qf, v < f, c, fc);
        for (partner const& u : later_[idx(v)])
          if (!counted(u.op)) (like_.among(e, u.op) ? own : out) += u.least[idx(c)];
        enter.push_back({c, own, out});
      }
      if (forks.empty() && level(now))
        left_ -= join_level(*p_.tables, now, met, last < v, std::exchange(enter, {}), v, kept_, next);
      for (auto const& [c, own, out] : enter) {
        if (left_ < 0) break;
        for (std::size_t i = 0; i < now.size(); ++i) {
          if (now[i].empty()) continue;
          int const before = static_cast<int>(i);
          point const fork = inner(forks, r, last < 0 ? f : last, last < 0 ? fc : before, v, c);
          double const between = fork.t + over(met, last < v, before, c);
          if (between == infinity) continue;
          for (point const& y : now[i])
            all.push_back({y.t + between + own, y.p + out, y.trace, fork.trace, c});
        }
        next[idx(c)] = best_of(all, v);
      }
      now = std::move(next);
      last = v;
      forks.clear();
    }
    return chains_.emplace(key, std::move(now)).first->second;
  }

  points series(int e, device_range r, int f, int fc, int x, int xc) {
    auto const [known, fresh] = split_.try_emplace(e);
    auto& [parts, tail] = known->second;
    if (fresh) parts = elements(e);
    while (!parts.empty() && kind(parts.back()) != graph::sp_kind::leaf) {
      tail.insert(tail.begin(), parts.back());
      parts.pop_back();
    }
    int const last = parts.empty() ? -1 : op_of(parts.back());
    std::vector<points> const& ends = chain(parts, tail, e, r, f, fc, x);
    std::vector<draft>& all = ends_;
    operator_pair const* const met = x < 0 || last < 0 ? nullptr : link(last, x);
    if (tail.empty()) {
      all.clear();
      for (std::size_t i = 0; i < ends.size() && left_ >= 0; ++i)
        if (!ends[i].empty()) {
          double const out = over(met, last < x, static_cast<int>(i), xc);
          for (point const& y : ends[i]) all.push_back({y.t, y.p + out, y.trace, -1, -1});
        }
      return best_of(all, -1);
    }
    std::vector<draft> with_forks;
    for (std::size_t i = 0; i < ends.size() && left_ >= 0; ++i) {
      if (ends[i].empty()) continue;
      int const c = static_cast<int>(i);
      double const out = over(met, last < x, c, xc);
      point const b = inner(tail, r, last < 0 ? f : last, last < 0 ? fc : c, x, xc);
      if (b.t == infinity) continue;
      for (point const& y : ends[i]) with_forks.push_back({y.t + b.t, y.p + out, y.trace, b.trace, -1});
    }
    return best_of(with_forks, -1);
  }

 public:
  branch_mapper(branch_problem const& p, i64 budget, std::size_t max_points = every_point)
      : branch_mapper(p, budget, max_points, meetings(*p.tree, *p.pairs)) {}
  branch_mapper(branch_problem const& p, i64 budget, std::size_t max_points, std::vector<int> const& where)
      : branch_links(p, where), left_(budget), max_points_(max_points), slack_(idx(p.tree->size()), 1) {}
  /// Bounds of all up to an operator of the outermost chain, by its choice, its own seconds counted;
  /// operators after it do not count. Nothing where the budget does not suffice.
  std::optional<std::vector<double>> up_to(int last) {
    int const root = p_.tree->root();
    std::vector<int> parts = elements(root);
    while (!parts.empty() && !(kind(parts.back()) == graph::sp_kind::leaf && op_of(parts.back()) == last))
      parts.pop_back();
    if (parts.empty()) return std::nullopt;
    std::vector<double> r;
    for (points const& q : chain(parts, {}, root, {0, p_.devices}, -1, -1, -1)) {
      r.push_back(infinity);
      for (point const& x : q) r.back() = std::min(r.back(), x.t + x.p);
    }
    return left_ < 0 ? std::nullopt : std::optional(std::move(r));
  }
  i64 left() const { return left_ < 0 ? 0 : left_; }

  std::optional<branch_optimum> run() {
    points const all = solve(p_.tree->root(), {0, p_.devices}, -1, -1, -1, -1);
    if (left_ < 0 || all.empty()) return std::nullopt;
    branch_optimum r{assignment(p_.set_of->size(), 0), infinity};
    int best = -1;
    for (point const& q : all) if (q.t + q.p < r.bound) { r.bound = q.t + q.p; best = q.trace; }
    r.bound /= slack_.back();
    kept_.read(best, r.choices,
               [&](int op, int shift) { return shift ? like_.op_at(like_.place(op) + shift) : op; });
    return r;
  }
};

}  // namespace detail

/// A good assignment under the best structure, and a bound on all of them, without regard to memory. Nothing
/// if the budget (points made) does not suffice. The assignment is the best one, and its cost the bound, on
/// two conditions. Every operator of a branch exchanges tensors only with its neighbours and, at the branch's
/// ends, with the operators where the branches fork and join. No branch starts or ends with a fork.
/// Deterministic. About choices^2 per operator and range, for every different choice of the operators at both
/// ends. Of the points of a fork at most `max_points` are kept; the bound gives way by as much as the others
/// could be cheaper.
inline std::optional<branch_optimum> map_branches(mapping_problem const& p, i64 budget = 3'000'000,
                                                  std::size_t max_points = detail::every_point) {
  return detail::branch_mapper({&p, &p.tree, &p.set_of, &p.pairs, p.devices, p.grain}, budget, max_points)
      .run();
}

}  // namespace tensorpar::search
