// tensorpar/search/solve/mapping.hpp - the fastest assignment that fits into memory, and a bound on all of
// them
#pragma once
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/plan/shortage.hpp>
#include <tensorpar/search/solve/mapping_options.hpp>
#include <tensorpar/search/solve/min_sum.hpp>
#include <tensorpar/search/solve/branches.hpp>
#include <tensorpar/search/solve/exact.hpp>
#include <tensorpar/search/solve/reduced.hpp>

namespace tensorpar::search {

struct mapping_statistics {
  int tables = 0;                       // joined by elimination
  int rounds = 0;                       // sums minimised
  bool exact_program = false;           // the dynamic program over the tree decided
  bool time_only_fits = false;          // the fastest assignment without regard to memory fits
  // branches lie side by side in more ways than `branch_budget` let be looked at: the bound may be that of
  // work that is shared evenly, and the plan one in sequence or one of some that were tried
  bool branches_left = false;
};

struct mapping_result {
  std::optional<shortage> infeasible;   // then nothing else is meaningful but the bound
  assignment choices;
  assignment_cost cost;
  assignment fastest;                   // without regard to memory
  double bound = 0;                     // no assignment in the space costs less
  double time_bound = 0;                // the same without regard to memory
  mapping_statistics statistics;
  bool found() const { return !infeasible; }
  /// Relative distance of the cost from the bound.
  double gap() const { return cost.seconds > 0 ? (cost.seconds - bound) / cost.seconds : 0; }
};

namespace detail {

class mapper {
  mapping_problem const& p_;
  mapping_options o_;
  evaluator price_;
  bool branches_;
  std::optional<smaller_problem> sequential_;
  std::optional<mapping_problem> relaxed_;
  mapping_result r_;
  bool have_ = false;                                   // r_.choices fits
  double bound_ = 0;
  bool exact_ = true;                                   // no sum was split up


  /// Seconds plus a price on bytes: `weight[d]` seconds for a byte on device d.
  static std::vector<std::vector<double>> unary(mapping_problem const& p, std::vector<double> const& weight) {
    std::vector<std::vector<double>> u;
    for (choice_set const& s : p.sets) {
      u.push_back(s.seconds);
      if (weight.empty()) continue;
      for (int i = 0; i < s.count(); ++i) {
        double w = 0;
        for (int k = 0; k < s.sizes[idx(i)]; ++k) w += weight[idx(s.shardings[idx(i)].start + k)];
        u.back()[idx(i)] += w * static_cast<double>(s.bytes[idx(i)]);
      }
    }
    return u;
  }
  additive_optimum minimise(mapping_problem const& p, std::vector<double> const& weight) {
    additive_optimum a = min_sum(p, unary(p, weight), o_.elimination);
    r_.statistics.tables += a.tables;
    ++r_.statistics.rounds;
    return a;
  }
  bool fits(std::vector<i64> const& bytes) const {
    for (std::size_t d = 0; d < bytes.size() && o_.memory; ++d) if (bytes[d] > p_.capacity[d]) return false;
    return true;
  }
  /// Keeps an assignment that fits and is faster than what there is.
  bool offer(assignment a) {
    assignment_cost c = price_(a);
    if (!fits(c.bytes)) return false;
    if (!have_ || c.seconds < r_.cost.seconds) {
      r_.choices = std::move(a);
      r_.cost = std::move(c);
      have_ = true;
    }
    return true;
  }

  /// The cheapest assignment in sequence with prices on bytes.
  assignment in_sequence_with(std::vector<double> const& weight, double& value) {
    additive_optimum a = minimise(branches_ ? sequential_->problem : p_, weight);
    value = a.value;
    exact_ = exact_ && a.exact;
    return branches_ ? sequential_->back(std::move(a.choices)) : std::move(a.choices);
  }
  double worth(std::vector<double> const& weight, std::vector<i64> const& bytes) const {
    double w = 0;
    for (std::size_t d = 0; d < weight.size(); ++d) w += weight[d] * static_cast<double>(bytes[d]);
    return w;
  }
  /// Sums in different orders differ in the last bits: the bound gives way by more than that.
  void raise(double value) {
    // never: nothing is left
    bound_ = value == infinity ? infinity : std::max(bound_, value - 1e-9 * (value < 0 ? -value : value));
  }

  /// Of few branches as many ways are looked at as the budget allows, and no more.
  bool many_branches() const {
    int forks = 0;
    for (int i = 0; i < p_.tree.size(); ++i) forks += p_.tree[i].kind == graph::sp_kind::parallel;
    return forks >= 48 && !p_.relaxed;
  }
  /// Branches side by side with the points of every fork thinned, so that the bound gives way a little; or,
  /// where that is too much, with one choice on every range of devices, which says nothing of other plans.
  template <class Take> void roughly(Take const& take) {
    i64 const budget = 3 * o_.branch_budget;
    if (auto const thinned = map_branches(p_, budget, 32)) {
      raise(thinned->bound);
      return take(*thinned);
    }
    smaller_problem const few = one_of_a_range(p_);
    auto narrow = map_branches(few.problem, budget, 16);
    if (!narrow) return;
    narrow->choices = few.back(std::move(narrow->choices));
    take(*narrow);
  }

  /// Changes one operator's choice after the other, on the devices where it stands, as long as all together
  /// get faster: what `map_branches` leaves out counts here. Returns the seconds; those given were the
  /// assignment's. Ends early where `branch_budget` operators have been priced.
  double improved(assignment& a, double seconds) const {
    int const n = p_.operators();
    i64 left = o_.branch_budget;
    for (int v = 0, alike = 0; alike < n; v = (v + 1) % n, ++alike) {
      choice_set const& all = p_.choices(v);
      auto const stands = [&](int c) { return std::pair(all.shardings[idx(c)].start, all.sizes[idx(c)]); };
      int best = a[idx(v)];
      for (int c = 0; c < all.count(); ++c) {
        if (c == best || stands(c) != stands(best) || (left -= n) < 0) continue;
        a[idx(v)] = c;
        double const now = price_.seconds(a);
        if (now >= seconds * (1 - 1e-9)) continue;
        seconds = now;
        best = c;
        alike = 0;
      }
      a[idx(v)] = best;
    }
    return seconds;
  }

  std::optional<std::vector<exact_point>> exactly(bool memory, bool bytes_only,
                                                  double most = infinity) const {
    if (o_.exact_budget <= 0) return std::nullopt;
    return exact_mappings(p_, {memory, bytes_only, o_.exact_budget, most});
  }
  void settle(exact_point const& x) {
    r_.choices = x.choices;
    r_.cost = price_(x.choices);
    bound_ = r_.cost.seconds;
    have_ = r_.statistics.exact_program = true;
  }

  shortage shortage_of(std::vector<i64> const& bytes, bool proven) const {
    shortage s;
    for (int d = 0; d < p_.devices; ++d) {
      i64 const missing = bytes[idx(d)] - p_.capacity[idx(d)];
      if (s.device < 0 || missing > s.missing) s = {d, missing, bytes[idx(d)], p_.capacity[idx(d)], proven};
    }
    return s;
  }
  /// The assignment in sequence with the fewest bytes per device; of equal ones the fastest by itself.
  assignment leanest() const {
    assignment a;
    for (int v = 0; v < p_.operators(); ++v) {
      choice_set const& c = p_.choices(v);
      int best = -1;
      for (int i = 0; i < c.count(); ++i) {
        if (c.shardings[idx(i)].start != 0) continue;
        if (best < 0 || c.bytes[idx(i)] < c.bytes[idx(best)] ||
            (c.bytes[idx(i)] == c.bytes[idx(best)] && c.seconds[idx(i)] < c.seconds[idx(best)]))
          best = i;
      }
      a.push_back(best);
    }
    return a;
  }
  /// Is there too little memory even with all devices' memory in one?
  bool too_little_in_total() const {
    double need = 0, have = 0;
    for (int v = 0; v < p_.operators(); ++v) {
      choice_set const& c = p_.choices(v);
      double least = infinity;
      for (int i = 0; i < c.count(); ++i)
        least = std::min(least, static_cast<double>(c.bytes[idx(i)]) * c.sizes[idx(i)]);
      need += least;
    }
    for (i64 b : p_.capacity) have += static_cast<double>(b);
    return need > have;
  }

  void constrained(assignment const& fastest) {
    if (auto const all = exactly(true, false)) {
      if (!all->empty()) { settle(all->front()); return; }
      if (auto const lean = exactly(true, true)) {
        shortage best;
        for (exact_point const& x : *lean)
          if (shortage const s = shortage_of(x.cost.bytes, true); best.device < 0 || s.missing < best.missing)
            best = s;
        r_.infeasible = best;
      } else r_.infeasible = shortage_of(assignment_bytes(p_, leanest()), true);
      return;
    }
    prices_on_memory(fastest);
    if (!have_) {
      bool const even = p_.capacity == std::vector<i64>(idx(p_.devices), p_.capacity.front());
      r_.infeasible =
          shortage_of(assignment_bytes(p_, leanest()), too_little_in_total() || (!branches_ && even));
    }
  }

  /// A byte on the scarcest device gets a price (Lagrange), between that at which the fastest assignment wins
  /// and that at which the leanest does. Each trial is where the two lines of what is known meet, so a
  /// handful of trials finds the best price. Every trial gives a bound. Equal blocks of a network change
  /// sides together, so the last two assignments are then spliced.
  void prices_on_memory(assignment fast) {
    assignment lean = leanest();
    offer(lean);
    shortage const worst = shortage_of(assignment_bytes(p_, fast), false);
    std::vector<double> one(idx(p_.devices), 0);
    one[idx(worst.device)] = 1;
    double const room = static_cast<double>(worst.capacity);
    double fast_bytes = worth(one, assignment_bytes(p_, fast)),
           lean_bytes = worth(one, assignment_bytes(p_, lean));
    double fast_seconds = price_.seconds(fast), lean_seconds = price_.seconds(lean), at_price = 0;
    if (lean_bytes > room) return;
    for (int round = 0; round < o_.price_rounds && fast_bytes > lean_bytes; ++round) {
      double const m = (lean_seconds - fast_seconds) / (fast_bytes - lean_bytes);
      if (!(m > 0)) break;
      std::vector<double> w = one;
      for (double& x : w) x *= m;
      double value = 0;
      assignment a = in_sequence_with(w, value);
      assignment_cost const c = price_(a);
      offer(a);
      at_price = m;
      if (!branches_) raise(value - m * room);
      double const bytes = worth(one, c.bytes);
      // the lines meet here: no better price
      if (c.seconds + m * bytes >= (lean_seconds + m * lean_bytes) * (1 - 1e-12)) break;
      if (bytes <= room) { lean = std::move(a); lean_bytes = bytes; lean_seconds = c.seconds; }
      else { fast = std::move(a); fast_bytes = bytes; fast_seconds = c.seconds; }
    }
    splice(fast, lean);
    if (!branches_) return;
    for (bool all : {false, true}) {
      std::vector<double> w(idx(p_.devices), all ? at_price / p_.devices : 0);
      if (!all) w[idx(worst.device)] = at_price;
      raise(minimise(*relaxed_, w).value - worth(w, p_.capacity));
    }
  }
  /// One assignment up to some operator, the other from there on: the longest parts of the faster one that
  /// fit, either way round.
  void splice(assignment const& fast, assignment const& lean) {
    int const n = p_.operators();
    for (bool fast_first : {true, false}) {
      int tried = 0;
      for (int k = n - 1; k > 0 && tried < 64; --k) {
        assignment a = lean;
        for (int v = 0; v < n; ++v) if (fast_first ? v < k : v >= n - k) a[idx(v)] = fast[idx(v)];
        if (!fits(assignment_bytes(p_, a))) continue;
        ++tried;
        offer(std::move(a));
      }
    }
  }

 public:
  mapper(mapping_problem const& p, mapping_options const& o)
      : p_(p), o_(o), price_(p), branches_(branches(p)) {}

  mapping_result run() {
    double value = 0;
    assignment fastest, before;                           // without single changes
    if (branches_) {
      sequential_ = in_sequence_only(p_);
      relaxed_ = relaxed_sum(p_, pairs_at(p_));
      raise(minimise(*relaxed_, {}).value);
    }
    fastest = in_sequence_with({}, value);
    double const seconds = price_.seconds(fastest);
    if (!branches_) raise(value);
    bool closed = branches_ ? bound_ >= seconds * (1 - 2e-9) : exact_;
    if (branches_ && !closed && bound_ < o_.enough) {
      if (auto const best = exactly(false, false, std::min(seconds, o_.enough)); best && best->empty()) {
        bound_ = std::min(seconds, o_.enough);                                // no assignment is faster
      } else if (best) {
        fastest = best->front().choices;
        bound_ = best->front().cost.seconds;
        closed = r_.statistics.exact_program = true;
      } else if (bound_ < seconds * (1 - 1e-3)) {                             // less is not worth the time
        auto const some = o_.branch_budget > 0 ? map_branches(p_, o_.branch_budget) : std::nullopt;
        r_.statistics.branches_left = !some;
        double least = seconds;
        auto const take = [&](branch_optimum const& found) {
          double const beside = price_.seconds(found.choices);
          if (beside < least) fastest = found.choices;
          least = std::min(least, beside);
        };
        if (some) {
          raise(some->bound);
          take(*some);
        } else if (o_.branch_budget > 0 && many_branches() && bound_ < seconds * 0.85) roughly(take);
        before = fastest;
        if (bound_ < least * (1 - 2e-9)) least = improved(fastest, least);
        closed = bound_ >= least * (1 - 2e-9);
      }
    }
    r_.statistics.time_only_fits = offer(fastest);
    if (!have_ && !before.empty()) offer(std::move(before));
    r_.fastest = fastest;
    r_.time_bound = closed ? price_.seconds(fastest) : bound_;
    if (r_.statistics.time_only_fits && closed) bound_ = r_.cost.seconds;
    if (!have_) constrained(fastest);
    r_.bound = have_ ? std::min(bound_, r_.cost.seconds) : bound_;
    return std::move(r_);
  }
};

}  // namespace detail

/// The fastest assignment that fits, a lower bound on every assignment that does, or what is missing.
/// Without parallel branches: one minimum of a sum, exact. With branches: the exact program over the tree if
/// its budget suffices. Else the better of the best in sequence and of what map_branches finds (of many
/// branches, roughly), changed in single operators as long as that helps, and the better bound of both.
/// If that does not fit into memory: the exact frontier if the budget suffices, else prices on memory (each
/// trial gives a bound and perhaps an assignment).
/// Deterministic.
/// Precondition: every operator has at least one choice on device 0 (the unsplit one is always legal).
template <class = void>
mapping_result best_mapping(mapping_problem const& p, mapping_options const& o = {}) {
  return detail::mapper(p, o).run();
}

#ifdef TENSORPAR_COMPILED
extern template mapping_result best_mapping<>(mapping_problem const& p, mapping_options const& o);
#endif

}  // namespace tensorpar::search
