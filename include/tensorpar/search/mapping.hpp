// tensorpar/search/mapping.hpp - the fastest assignment that fits into memory, and a bound on all of them
#pragma once
#include <optional>
#include <tensorpar/search/elimination.hpp>
#include <tensorpar/search/exact.hpp>
#include <tensorpar/search/reduced.hpp>

namespace tensorpar {

struct mapping_options {
  elimination_limits elimination;
  i64 exact_budget = 4'000'000;         // for each of the exact programs; 0: never
  int multiplier_rounds = 14;           // trials of a price on memory where no exact program finishes
};

/// No assignment fits (proven), or none was found.
struct shortage {
  int device = -1;                      // where most is missing
  i64 missing = 0;                      // bytes: what this device lacks even in the assignment that needs least
  i64 needed = 0, capacity = 0;         // bytes on that device
  bool proven = false;                  // of the space searched; else: not found
};

struct mapping_statistics {
  int tables = 0;                       // joined by elimination
  int rounds = 0;                       // sums minimised
  bool exact_program = false;           // the dynamic program over the tree decided
  bool time_only_fits = false;          // the fastest assignment without regard to memory fits
};

struct mapping_result {
  std::optional<shortage> infeasible;   // then nothing else is meaningful but the bound
  assignment choices;
  assignment_cost cost;
  double bound = 0;                     // no assignment in the space costs less
  mapping_statistics statistics;
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

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  /// Seconds plus a price on bytes: `weight[d]` seconds for a byte on device d.
  static std::vector<std::vector<double>> unary(mapping_problem const& p, std::vector<double> const& weight) {
    std::vector<std::vector<double>> u;
    for (choice_set const& s : p.sets) {
      u.push_back(s.seconds);
      if (weight.empty()) continue;
      for (int i = 0; i < s.count(); ++i) {
        double w = 0;
        for (int k = 0; k < s.sizes[at(i)]; ++k) w += weight[at(s.spreads[at(i)].start + k)];
        u.back()[at(i)] += w * static_cast<double>(s.bytes[at(i)]);
      }
    }
    return u;
  }
  additive_optimum minimise(mapping_problem const& p, std::vector<double> const& weight) {
    additive_optimum a = least_sum(p, unary(p, weight), o_.elimination);
    r_.statistics.tables += a.tables;
    ++r_.statistics.rounds;
    return a;
  }
  bool fits(std::vector<i64> const& bytes) const {
    for (std::size_t d = 0; d < bytes.size(); ++d) if (bytes[d] > p_.capacity[d]) return false;
    return true;
  }
  /// Keeps an assignment that fits and is faster than what there is.
  bool offer(assignment a) {
    assignment_cost c = price_(a);
    if (!fits(c.bytes)) return false;
    if (!have_ || c.seconds < r_.cost.seconds) { r_.choices = std::move(a); r_.cost = std::move(c); have_ = true; }
    return true;
  }

  /// One pass with prices on bytes: returns whether its assignment fits.
  bool pass(std::vector<double> const& weight) {
    double paid = 0;
    for (std::size_t d = 0; d < weight.size(); ++d) paid += weight[d] * static_cast<double>(p_.capacity[d]);
    if (!branches_) {
      additive_optimum const a = minimise(p_, weight);
      raise(a.value - paid);
      return offer(a.choices);
    }
    raise(minimise(*relaxed_, weight).value - paid);
    return offer(sequential_->back(minimise(sequential_->problem, weight).choices));
  }
  /// Sums in different orders differ in the last bits: the bound gives way by more than that.
  void raise(double value) { bound_ = std::max(bound_, value - 1e-9 * (value < 0 ? -value : value)); }

  std::optional<std::vector<exact_point>> exactly(bool memory, bool bytes_only) const {
    if (o_.exact_budget <= 0) return std::nullopt;
    return exact_mappings(p_, {memory, bytes_only, o_.exact_budget});
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
      i64 const missing = bytes[at(d)] - p_.capacity[at(d)];
      if (s.device < 0 || missing > s.missing) s = {d, missing, bytes[at(d)], p_.capacity[at(d)], proven};
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
        if (c.spreads[at(i)].start != 0) continue;
        if (best < 0 || c.bytes[at(i)] < c.bytes[at(best)] || (c.bytes[at(i)] == c.bytes[at(best)] && c.seconds[at(i)] < c.seconds[at(best)])) best = i;
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
      double least = never;
      for (int i = 0; i < c.count(); ++i) least = std::min(least, static_cast<double>(c.bytes[at(i)]) * c.sizes[at(i)]);
      need += least;
    }
    for (i64 b : p_.capacity) have += static_cast<double>(b);
    return need > have;
  }

  void constrained() {
    if (auto const all = exactly(true, false)) {
      if (!all->empty()) { settle(all->front()); return; }
      if (auto const lean = exactly(true, true)) {
        shortage best;
        for (exact_point const& x : *lean)
          if (shortage const s = shortage_of(x.cost.bytes, true); best.device < 0 || s.missing < best.missing) best = s;
        r_.infeasible = best;
      } else r_.infeasible = shortage_of(assignment_bytes(p_, leanest()), true);
      return;
    }
    // A price on memory (Lagrange): double it until something fits, then narrow down. Every trial also gives a bound.
    offer(leanest());
    std::vector<double> shape(at(p_.devices), 0);
    bool const even = p_.capacity == std::vector<i64>(at(p_.devices), p_.capacity.front());
    if (branches_ || !even) shape.assign(at(p_.devices), 1.0 / p_.devices);
    else shape[0] = 1;                                   // in sequence, device 0 takes part in everything
    auto const weight = [&](double m) { std::vector<double> w = shape; for (double& x : w) x *= m; return w; };
    double low = 0, high = bound_ / static_cast<double>(std::max<i64>(1, p_.capacity.front()));
    int rounds = 0;
    while (rounds++ < o_.multiplier_rounds && !pass(weight(high))) { low = high; high *= 4; }
    while (rounds++ < o_.multiplier_rounds) { double const m = (low + high) / 2; (pass(weight(m)) ? high : low) = m; }
    if (!have_) r_.infeasible = shortage_of(assignment_bytes(p_, leanest()), too_little_in_total() || (!branches_ && even));
  }

 public:
  mapper(mapping_problem const& p, mapping_options const& o) : p_(p), o_(o), price_(p), branches_(branches(p)) {}

  mapping_result run() {
    bool decided = false;
    if (!branches_) {
      additive_optimum const a = minimise(p_, {});
      raise(a.value);
      decided = offer(a.choices);
      if (decided && a.exact) bound_ = r_.cost.seconds;
    } else if (auto const best = exactly(false, false)) {
      raise(best->front().cost.seconds);
      decided = offer(best->front().choices);
      if (decided) { bound_ = r_.cost.seconds; r_.statistics.exact_program = true; }
    } else {
      sequential_ = in_sequence_only(p_);
      relaxed_ = relaxed_sum(p_, pairs_at(p_));
      decided = pass({});
    }
    r_.statistics.time_only_fits = decided;
    if (!decided) {
      if (branches_ && !relaxed_) { sequential_ = in_sequence_only(p_); relaxed_ = relaxed_sum(p_, pairs_at(p_)); }
      constrained();
    }
    r_.bound = have_ ? std::min(bound_, r_.cost.seconds) : bound_;
    return std::move(r_);
  }
};

}  // namespace detail

/// The fastest assignment that fits, a lower bound on every assignment that does, or what is missing.
/// Without parallel branches: one minimum of a sum, exact. With branches: the exact program over the tree if its budget suffices, else the
/// best in sequence and a bound over all structures. If that does not fit into memory: the exact frontier if the budget suffices, else
/// prices on memory (each trial gives a bound and perhaps an assignment). Deterministic.
/// Precondition: every operator has at least one choice on device 0 (the unsplit one is always legal).
inline mapping_result best_mapping(mapping_problem const& p, mapping_options const& o = {}) { return detail::mapper(p, o).run(); }

}  // namespace tensorpar
