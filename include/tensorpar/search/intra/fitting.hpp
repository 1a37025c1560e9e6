// tensorpar/search/intra/fitting.hpp - memory as the executor will take it: arenas of what was found correct
// the estimate it was found by
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/program/passes/memory_pass.hpp>
#include <tensorpar/program/unroll.hpp>
#include <tensorpar/search/solve/baselines.hpp>
#include <tensorpar/search/solve/mapping.hpp>

namespace tensorpar::search {

/// The arenas that assignments take, for plans like this one.
class arena_sizes {
  training_graph const& t_;
  plan like_;
  workspace_rule workspace_;

 public:
  /// `like`: everything of a plan but its operators' choices. `w`: of the policy that will run them, whose
  /// scratch is in the arenas.
  arena_sizes(training_graph const& t, plan like, workspace_rule w = no_workspace)
      : t_(t), like_(std::move(like)), workspace_(w) {}

  /// Bytes by device. Devices of a kind between two starts of shardings do the same as the first of them, or
  /// less.
  /// O(starts * unrolling).
  std::vector<i64> operator()(std::vector<op_strategy> nodes) const {
    machine const& on = like_.cluster;
    plan p = like_;
    p.nodes = std::move(nodes);
    std::vector<char> begins(idx(on.size()), 0);
    begins[0] = 1;
    for (op_strategy const& n : p.nodes) begins[idx(n.sharding.start)] = 1;
    planned_step const step = passes::memory_pass(t_, std::move(p));
    std::vector<i64> r(idx(on.size()), 0), of_kind(on.kinds.size(), -1);
    for (int d = 0; d < on.size(); ++d) {
      if (begins[idx(d)]) of_kind.assign(on.kinds.size(), -1);
      i64& same = of_kind[idx(on.device[idx(d)])];
      if (same < 0) same = arena_on(d, step.graph, step.plan, workspace_);
      r[idx(d)] = same;
    }
    return r;
  }
};

/// Where most is missing, or nothing if all fits.
inline std::optional<shortage> shortage_in(std::vector<i64> const& bytes, std::vector<i64> const& capacity,
                                           bool proven) {
  std::optional<shortage> s;
  for (std::size_t d = 0; d < bytes.size(); ++d)
    if (i64 const missing = bytes[d] - capacity[d]; missing > 0 && (!s || missing > s->missing))
      s = shortage{static_cast<int>(d), missing, bytes[d], capacity[d], proven};
  return s;
}

namespace detail {

/// Looks for the fastest assignment whose arenas fit, by the problem's seconds and estimated bytes.
template <class Arenas> class arena_fitter {
  mapping_problem const& p_;
  mapping_options o_;
  Arenas const& arenas_;
  evaluator price_;
  smaller_problem sequential_;
  double bar_;
  mapping_result r_;
  bool have_ = false;

  /// Does it fit? Kept, if nothing faster is; else remembered if it lacks less than what was tried.
  bool offer(assignment a, double seconds, std::vector<i64> need) {
    std::optional<shortage> const lacks = shortage_in(need, p_.capacity, false);
    if (lacks) {
      if (!have_ && (!r_.infeasible || lacks->missing < r_.infeasible->missing)) r_.infeasible = lacks;
      return false;
    }
    if (!have_ || seconds < r_.cost.seconds) {
      r_.choices = std::move(a);
      r_.cost = {seconds, std::move(need)};
      have_ = true;
    }
    return true;
  }
  bool offer(assignment a, double seconds) {
    std::vector<i64> need = arenas_(a);
    return offer(std::move(a), seconds, std::move(need));
  }
  bool offer(assignment a) {
    double const seconds = price_.seconds(a);
    return offer(std::move(a), seconds);
  }

  /// All assignments that are worth having by the estimate, the fastest first: the first that fits, of as
  /// many as may be tried.
  bool exactly() {
    if (o_.exact_budget <= 0) return false;
    mapping_problem open = p_;
    open.capacity.assign(p_.capacity.size(), std::numeric_limits<i64>::max());
    auto const all = exact_mappings(open, {true, false, o_.exact_budget});
    if (!all || all->size() > 500) return false;
    r_.statistics.exact_program = true;
    for (exact_point const& x : *all) if (x.cost.seconds >= bar_ || offer(x.choices, x.cost.seconds)) break;
    return true;
  }

  assignment at_price(double weight, int device) {
    mapping_problem const& q = sequential_.problem;
    std::vector<std::vector<double>> u;
    for (choice_set const& s : q.sets) {
      u.push_back(s.seconds);
      for (int i = 0; i < s.count(); ++i)
        if (device < s.sizes[idx(i)]) u.back()[idx(i)] += weight * static_cast<double>(s.bytes[idx(i)]);
    }
    additive_optimum a = min_sum(q, u, o_.elimination);
    r_.statistics.tables += a.tables;
    ++r_.statistics.rounds;
    return sequential_.back(std::move(a.choices));
  }
  /// The assignment in sequence with the fewest bytes; of equal ones the fastest by itself.
  assignment leanest() const {
    assignment a;
    for (int v = 0; v < p_.operators(); ++v) {
      choice_set const& c = sequential_.problem.choices(v);
      int best = 0;
      for (int i = 1; i < c.count(); ++i)
        if (std::pair(c.bytes[idx(i)], c.seconds[idx(i)]) <
            std::pair(c.bytes[idx(best)], c.seconds[idx(best)]))
          best = i;
      a.push_back(best);
    }
    return sequential_.back(std::move(a));
  }
  /// Bytes on the scarcest device get a price (Lagrange), between that at which the fastest assignment wins
  /// and that at which the leanest does; each trial is where the two lines of what is known meet. Equal
  /// blocks of a network change sides together, so the last two assignments are then spliced.
  void by_price() {
    assignment fast = at_price(0, 0);
    if (price_.seconds(fast) >= bar_ || offer(fast)) return;
    int const device = r_.infeasible->device;
    assignment lean = leanest();
    // the leanest moves more, which takes room of its own: try prices up to that
    if (!offer(lean)) {
      lean = at_price(price_.seconds(lean) / static_cast<double>(std::max<i64>(1, p_.capacity[idx(device)])),
                      device);
      if (!offer(lean)) return;
    }
    assignment_cost f = price_(fast), l = price_(lean);
    auto const bytes = [&](assignment_cost const& c) { return static_cast<double>(c.bytes[idx(device)]); };
    for (int round = 0; round < o_.price_rounds && bytes(f) > bytes(l); ++round) {
      double const m = (l.seconds - f.seconds) / (bytes(f) - bytes(l));
      if (!(m > 0)) break;
      assignment a = at_price(m, device);
      assignment_cost const c = price_(a);
      // the lines meet here: no better price
      if (c.seconds + m * bytes(c) >= (l.seconds + m * bytes(l)) * (1 - 1e-9)) break;
      if (offer(a, c.seconds)) { lean = std::move(a); l = c; }
      else { fast = std::move(a); f = c; }
    }
    splice(fast, lean);
  }
  struct trial { assignment choices; std::vector<i64> need; };
  /// The faster assignment up to some operator, the leaner from there on, or the other way round: halving
  /// what lies between as much as fits and as little as does not, counted in operators whose choices differ.
  /// All that was tried.
  std::vector<trial> spliced(assignment const& fast, assignment const& lean, bool first) const {
    std::vector<trial> r;
    std::vector<std::size_t> differ;
    for (std::size_t v = 0; v < fast.size(); ++v) if (fast[v] != lean[v]) differ.push_back(v);
    if (!first) std::reverse(differ.begin(), differ.end());
    std::size_t fits = 0, not_yet = differ.size();
    while (not_yet - fits > 1) {
      std::size_t const k = (fits + not_yet) / 2;
      assignment a = lean;
      for (std::size_t i = 0; i < k; ++i) a[differ[i]] = fast[differ[i]];
      std::vector<i64> need = arenas_(a);
      (shortage_in(need, p_.capacity, false) ? not_yet : fits) = k;
      r.push_back({std::move(a), std::move(need)});
    }
    return r;
  }
  /// Both ways; neither asks what the other found.
  void splice(assignment const& fast, assignment const& lean) {
    std::vector<trial> ways[2];
    auto const one = [&](int i, int) { ways[i] = spliced(fast, lean, i == 0); };
    if (o_.elimination.workers) o_.elimination.workers->run(2, one);
    else for (int i : {0, 1}) one(i, 0);
    for (std::vector<trial>& way : ways)
      for (trial& t : way) {
        double const seconds = price_.seconds(t.choices);
        offer(std::move(t.choices), seconds, std::move(t.need));
      }
  }

 public:
  /// `bar`: seconds that are too many. Nothing below them: no result, and maybe no shortage either.
  arena_fitter(mapping_problem const& p, mapping_options const& o, Arenas const& arenas,
               double bar = infinity)
      : p_(p), o_(o), arenas_(arenas), price_(p), sequential_(in_sequence_only(p)), bar_(bar) {}
  mapping_result run() {
    if (!exactly() || !have_) by_price();
    if (have_) r_.infeasible.reset();
    return std::move(r_);
  }
};

}  // namespace detail

/// Like `best_mapping`, but `arenas(choices)` says by device what must fit, not the problem's estimate. (It
/// is constant: threads may call it at once.) The estimate only says where to look: along the exact frontier
/// of seconds and bytes where the budget suffices, else along prices of bytes, in sequence. Nothing fits:
/// what the best of those tried lacks. No bound. O(trials * (min_sum + arenas)).
template <class Arenas>
mapping_result fit_arenas(mapping_problem const& p, mapping_options const& o, Arenas const& arenas) {
  return detail::arena_fitter<Arenas>(p, o, arenas).run();
}

}  // namespace tensorpar::search
