// tensorpar/search/intra/with_parts.hpp - the best plan of a machine and of its parts, and what that search
// says of its space
#pragma once
#include <algorithm>
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/search/intra/part_list.hpp>
#include <tensorpar/search/problem/evaluate.hpp>
#include <tensorpar/search/problem/shardings.hpp>
#include <vector>

namespace tensorpar::search {

/// What was searched.
struct search_space {
  sharding_limits shardings;
  int grain = 1;
  // the graph is not series-parallel: placement follows a tree that orders more than it does
  bool relaxed = false;
  // devices of the parts of the machine that were looked at too, most first
  std::vector<int> part_sizes;
  // no part was left out, of any devices (search/intra/part_list.hpp)
  bool every_part = false;
  bool neighbours = false;                    // no part of devices with neighbouring numbers was left out
  friend bool operator==(search_space const&, search_space const&) = default;
};

namespace detail {

inline double all_memory(machine const& on) {
  double sum = 0;
  for (int d = 0; d < on.size(); ++d) sum += static_cast<double>(on.kind_of(d).memory);
  return sum;
}

/// What the space of a search says of the parts that it looked at. Those that could not be faster than `best`
/// if nobody ever waited there need not be looked at.
inline void name_parts(part_list const& list, machine const& on, std::vector<double> const& alone,
                       double best, search_space& s) {
  std::vector<char> seen(idx(on.size()) + 1, 0);
  for (machine_part const& p : list.parts) seen[idx(p.as.size())] = 1;
  s.every_part = list.every;
  s.neighbours = list.neighbours;
  s.part_sizes.clear();
  for (int k = on.size() - 1; k > 0; --k) if (seen[idx(k)]) s.part_sizes.push_back(k);
  if (list.neighbours || !on.uniform()) return;
  bool all = true;
  double const one = shared_evenly(alone, on, {0, 1});
  for (int k = 1; k < on.size(); ++k) all = all && (seen[idx(k)] || one / k >= best);
  s.neighbours = all;
  s.every_part = all && (on.links.size() <= 1 || on.links.front().group >= on.size());
}

/// The best plan on a machine and on its parts, with the least bound of them and of the machine that is
/// numbered with its fastest devices first, parts included. On many devices meshes of few are not in the
/// space, a device that is slower than the others sets the pace of all, and branches of a large machine have
/// more places than can be tried. `best`: what all of the machine does; `alone`: seconds of a step on a
/// device, by kind; `nested`: do branches fork again (search/intra/nested_forks.hpp)? `kept`: bytes that must
/// be somewhere; `whole(machine, bar)` searches all of a machine for a plan of less than `bar` seconds;
/// `put(machine, part, result)` makes a part's plan one of the machine; `take(best, result)` replaces the
/// best. `told`: what over_parts knows in the end by numbers of devices.
template <class Result, class Whole, class Put, class Take>
Result with_parts(machine const& on, std::vector<double> const& alone, bool nested, double kept, Result best,
                  Whole const& whole, Put const& put, Take const& take,
                  std::map<int, double>* told = nullptr) {
  std::map<int, double> by_count;
  part_list const list = parts_of(on, alone, nested);
  auto const cost = [&] { return best.feasible() ? best.cost.seconds : infinity; };
  auto const least = [&](machine_part const& p) {
    return kept > all_memory(p.as) ? infinity : shared_evenly(alone, p.as, {0, p.as.size()}) * (1 - 1e-9);
  };
  bool left = best.statistics.branches_left;
  auto const attempt = [&](machine_part const& p, double bar) {
    Result r = whole(p.as, bar);
    double const bound = r.bound;
    left = left || (bound < bar && r.statistics.branches_left);
    if (!r.feasible() || !p.at.count) return bound;
    put(on, p.at, r);
    if (!r.feasible() || r.cost.seconds >= cost() * (1 - 1e-9)) return bound;
    best.infeasible.reset();
    take(best, r);
    return bound;
  };
  double bound = best.bound;
  if (list.reordered) {
    machine const sorted = fastest_first(on, alone);
    Result const first =
        with_parts(sorted, alone, nested, kept, whole(sorted, infinity), whole, put, take, &by_count);
    bound = std::min(bound, first.bound);
    left = left || first.statistics.branches_left;
  }
  best.bound = std::min(over_parts(list, bound, by_count, cost, least, attempt), cost());
  if (told) *told = std::move(by_count);
  best.statistics.branches_left = left;
  name_parts(list, on, alone, cost(), best.space);
  return best;
}

}  // namespace detail

}  // namespace tensorpar::search
