// tensorpar/search/degrees/kept_choices.hpp - the least sum over some of each operator's choices
#pragma once
#include <optional>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/search/solve/min_sum.hpp>
#include <tensorpar/search/solve/reduced.hpp>
#include <vector>

namespace tensorpar::search {

/// By choice set the loop of its operators' samples ('\0': none).
inline std::vector<char> batch_by_set(mapping_problem const& p, std::string const& batch) {
  std::vector<char> r(p.sets.size(), 0);
  for (int v = p.operators() - 1; v >= 0; --v) r[idx(p.set_of[idx(v)])] = batch[idx(v)];
  return r;
}
/// The least sum over the choices that `keep(set, choice)`, or nothing where an operator has none.
template <class Keep>
std::optional<assignment> min_among(mapping_problem const& p, Keep const& keep,
                                      elimination_limits const& limits) {
  for (int s = 0; s < static_cast<int>(p.sets.size()); ++s) {
    bool some = false;
    for (int i = 0; i < p.sets[idx(s)].count() && !some; ++i) some = keep(s, i);
    if (!some) return std::nullopt;
  }
  smaller_problem const q = with_choices(p, keep);
  std::vector<std::vector<double>> seconds;
  for (choice_set const& s : q.problem.sets) seconds.push_back(s.seconds);
  return q.back(min_sum(q.problem, seconds, limits).choices);
}

}  // namespace tensorpar::search
