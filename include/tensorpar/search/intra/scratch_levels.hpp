// tensorpar/search/intra/scratch_levels.hpp - assignments that fit with kernels' scratch: of choices with
// much of it ever fewer are left
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/program/core/scratch.hpp>
#include <tensorpar/search/intra/fitting.hpp>
#include <tensorpar/search/solve/reduced.hpp>

namespace tensorpar::search {

/// By choice set and choice: bytes of the most scratch that an operator of the choice takes, forward,
/// backward or in its update. Kernels run one after another, so scratch does not add up over operators as the
/// bytes of choices do. Choices that save memory count as the sharding by itself. Operators of one set look
/// alike: one is asked about. O(choices * operators of a group).
inline std::vector<std::vector<i64>> scratch_by_choice(training_graph const& t, mapping_problem const& p,
                                                       workspace_rule w, i64 scalar_bytes) {
  computation_graph const& g = t.graph;
  std::vector<std::vector<int>> groups(idx(t.forward_nodes));
  for (int v = 0; v < g.node_count(); ++v)
    if (int const f = g.node(v).origin; f >= 0) groups[idx(f)].push_back(v);
  std::vector<std::vector<i64>> r(p.sets.size());
  for (int f = 0; f < p.operators(); ++f) {
    std::vector<i64>& most = r[idx(p.set_of[idx(f)])];
    choice_set const& c = p.choices(f);
    if (!most.empty() || c.count() == 0) continue;
    most.assign(idx(c.count()), 0);
    for (int v : groups[idx(f)]) {
      graph_node const& n = g.node(v);
      ir::iteration_space const space = ir::space_of(g, v);
      std::vector<shape> in(n.in.size()), out(n.out.size());
      for (std::size_t i = 0; i < most.size(); ++i) {
        if (i > 0 && c.shardings[i] == c.shardings[i - 1]) {
          most[i] = std::max(most[i], most[i - 1]);
          continue;
        }
        auto const list = [](std::vector<shape> const& s) {
          return shapes{s.data(), static_cast<int>(s.size())};
        };
        for (std::size_t k = 0; k < in.size(); ++k)
          in[k] =
              ir::part_of(ir::operand_layout(space, n.letters, c.shardings[i], static_cast<int>(k)),
                          g.type(n.in[k]));
        for (std::size_t k = 0; k < out.size(); ++k)
          out[k] =
              ir::part_of(ir::result_layout(space, n.letters, c.shardings[i], static_cast<int>(k)),
                          g.type(n.out[k]));
        most[i] = std::max(most[i], w(n.op, list(in), list(out)) * scalar_bytes);
      }
    }
  }
  return r;
}

namespace detail {

/// The least scratch with which every operator can stand on all devices, by set.
inline std::vector<i64> min_scratch(mapping_problem const& p,
                                      std::vector<std::vector<i64>> const& scratch) {
  std::vector<i64> r(scratch.size(), std::numeric_limits<i64>::max());
  for (std::size_t s = 0; s < scratch.size(); ++s)
    for (std::size_t i = 0; i < scratch[s].size(); ++i)
      if (p.sets[s].shardings[i].start == 0) r[s] = std::min(r[s], scratch[s][i]);
  return r;
}
/// Amounts of scratch below the largest, descending, down to what cannot be avoided: all, or each at most
/// half of the one before where there are many. What is little beside the devices' memory is not told apart.
inline std::vector<i64> scratch_levels(mapping_problem const& p,
                                       std::vector<std::vector<i64>> const& scratch) {
  constexpr std::size_t few = 8;
  std::vector<i64> all;
  for (auto const& s : scratch) all.insert(all.end(), s.begin(), s.end());
  i64 floor = 0;
  std::vector<i64> const least = min_scratch(p, scratch);
  for (std::size_t s = 0; s < scratch.size(); ++s) if (!scratch[s].empty()) floor = std::max(floor, least[s]);
  i64 const room = p.capacity.empty() ? 0 : *std::min_element(p.capacity.begin(), p.capacity.end());
  std::erase_if(all, [&](i64 x) { return x < floor; });
  std::sort(all.begin(), all.end(), std::greater<>{});
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::vector<i64> r;
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i - 1] < room / 64) break;
    if (all.size() <= few || i + 1 == all.size() || all[i] <= (r.empty() ? all[0] : r.back()) / 2)
      r.push_back(all[i]);
  }
  return r;
}

}  // namespace detail

/// `fit_arenas` where arenas hold kernels' scratch, of which the problem's estimate knows nothing: it is
/// searched again without the choices that take most of it, level by level, and the fastest of what fits is
/// taken. `scratch`: by set and choice (scratch_by_choice). O(levels * fit_arenas), 9 at most where there are
/// few different amounts, else as many as halves.
template <class Arenas>
mapping_result fit_arenas(mapping_problem const& p, mapping_options const& o, Arenas const& arenas,
                          std::vector<std::vector<i64>> const& scratch) {
  mapping_result best = fit_arenas(p, o, arenas);
  std::vector<i64> const least = detail::min_scratch(p, scratch);
  for (i64 const level : detail::scratch_levels(p, scratch)) {
    smaller_problem const q = with_choices(p, [&](int s, int i) {
      auto const& of = scratch[idx(s)];
      return of.empty() || of[idx(i)] <= std::max(level, least[idx(s)]);
    });
    auto const need = [&](assignment const& a) { return arenas(q.back(a)); };
    double const bar = best.found() ? best.cost.seconds : infinity;
    mapping_result r = detail::arena_fitter<decltype(need)>(q.problem, o, need, bar).run();
    bool const some = !r.choices.empty();
    bool const better =
        some ? r.cost.seconds < bar
             : !best.found() && r.infeasible && r.infeasible->missing < best.infeasible->missing;
    r.statistics.tables += best.statistics.tables;
    r.statistics.rounds += best.statistics.rounds;
    best.statistics = r.statistics;
    if (!better) continue;
    if (some) r.choices = q.back(std::move(r.choices));
    best = std::move(r);
  }
  return best;
}

}  // namespace tensorpar::search
