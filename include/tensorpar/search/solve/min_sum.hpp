// tensorpar/search/solve/min_sum.hpp - the cheapest choice for every operator of a problem where costs simply
// add up
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/search/solve/elimination.hpp>

namespace tensorpar::search {

/// Changes one operator's choice after another to what is best beside its neighbours, until nothing gets
/// better. O(rounds * pairs * choices).
inline void descend(mapping_problem const& p, std::vector<std::vector<double>> const& unary, assignment& a) {
  std::vector<std::vector<int>> pairs_of(idx(p.operators()));
  for (std::size_t k = 0; k < p.pairs.size(); ++k)
    for (int v : {p.pairs[k].first, p.pairs[k].second})
      pairs_of[idx(v)].push_back(static_cast<int>(k));
  bool better = true;
  for (int round = 0; better && round < 100; ++round) {
    better = false;
    for (int v = 0; v < p.operators(); ++v) {
      int& mine = a[idx(v)];
      std::vector<double> sum = unary[idx(p.set_of[idx(v)])];
      for (int k : pairs_of[idx(v)]) {
        operator_pair const& q = p.pairs[idx(k)];
        for (std::size_t i = 0; i < sum.size(); ++i) {
          int const c = static_cast<int>(i);
          sum[i] += q.first == v ? p.seconds(q, c, a[idx(q.second)])
                                 : p.seconds(q, a[idx(q.first)], c);
        }
      }
      int best = mine;
      for (std::size_t i = 0; i < sum.size(); ++i)
        if (sum[i] < sum[idx(best)]) best = static_cast<int>(i);
      if (sum[idx(best)] < sum[idx(mine)] * (1 - 1e-12)) { mine = best; better = true; }
    }
  }
}

/// The assignment with the least sum of `unary[set][choice]` over operators and of the problem's pair costs;
/// the tree is ignored. Where tables would grow too large, a lower bound, and the assignment found from it
/// improved operator by operator. Ties: the first choice, operators decided in the reverse of a fixed order.
/// Time and memory are exponential in the width of the graph alone: chains, residual networks and attention
/// blocks have width 2. Precondition: unary[s] has a finite entry for every set in use.
template <class = void>
additive_optimum min_sum(mapping_problem const& p, std::vector<std::vector<double>> const& unary,
                                  elimination_limits l = {}) {
  additive_optimum r = detail::eliminator(p, unary, l).least(p.set_of, p.pairs);
  if (!r.exact) descend(p, unary, r.choices);
  return r;
}

#ifdef TENSORPAR_COMPILED
extern template additive_optimum min_sum<>(mapping_problem const& p, std::vector<std::vector<double>> const&
    unary, elimination_limits l);
#endif

}  // namespace tensorpar::search
