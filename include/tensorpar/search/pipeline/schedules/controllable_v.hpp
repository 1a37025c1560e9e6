// tensorpar/search/pipeline/schedules/controllable_v.hpp - V-shaped schedules with as little memory as asked
// for: V-Half, V-Min and between
#pragma once
#include <array>
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/search/pipeline/schedules/zero_bubble_v.hpp>

namespace tensorpar::search {

namespace detail {

/// One micro-batch's way through p groups in slots, repeated every six: one slot for each of forward,
/// backward and weights of both chunks. From group to neighbouring group it takes `down` (forward, chunk 0),
/// `up` (forward, chunk 1), `back_down` (backward, chunk 1) and `back_up` slots, at the three turns `turn`
/// slots.
struct v_block {
  int down = 1, up = 1, back_down = 1, back_up = 1;
  std::array<int, 3> turn{1, 1, 1};

  /// Slots of F0, F1, B1, B0, W1, W0 on group i; false if two fall together in the repetition.
  bool slots(int p, int i, std::array<int, 6>& t) const {
    t[0] = i * down;
    t[1] = (p - 1) * (down + up) + turn[0] - i * up;
    t[2] = (p - 1) * (down + up) + turn[0] + turn[1] + i * back_down;
    t[3] = (p - 1) * (down + up + back_down + back_up) + turn[0] + turn[1] + turn[2] - i * back_up;
    std::array<bool, 6> taken{};
    for (int k = 0; k < 4; ++k) {
      bool& here = taken[idx(t[idx(k)] % 6)];
      if (here) return false;
      here = true;
    }
    for (std::size_t k = 4; k < 6; ++k) {   // weights passes take what is left, as soon as they can
      t[k] = t[k - 2] + 1;
      while (taken[idx(t[k] % 6)]) ++t[k];
      taken[idx(t[k] % 6)] = true;
    }
    return true;
  }
  bool fits_together(int p) const {
    std::array<int, 6> t{};
    for (int i = 0; i < p; ++i)
      if (!slots(p, i, t)) return false;
    return true;
  }
  /// Group i's passes over m micro-batches in the order of their slots.
  std::vector<pass_entry> order(int p, int i, int m) const {
    std::array<int, 6> t{};
    slots(p, i, t);
    constexpr pass what[6] = {pass::forward,  pass::forward, pass::backward,
                              pass::backward, pass::weights, pass::weights};
    int const stage[6] = {i, 2 * p - 1 - i, 2 * p - 1 - i, i, 2 * p - 1 - i, i};
    std::array<int, 6> k{};
    std::vector<pass_entry> o;
    o.reserve(idx(m) * 6);
    for (;;) {   // six ascending lists merged
      std::size_t next = 6;
      for (std::size_t j = 0; j < 6; ++j)
        if (k[j] < m && (next == 6 || t[j] + 6 * k[j] < t[next] + 6 * k[next])) next = j;
      if (next == 6) return o;
      o.push_back({stage[next], what[next], k[next]++});
    }
  }
};

}  // namespace detail

/// V-shaped schedules of controllable memory (Qi et al. 2024, arXiv 2405.15362); stages as for `zb_v`. One
/// micro-batch's passes form a block that repeats every six slots. Slower or faster steps down and up decide
/// how long activations live. With D slots for a step forward and back, about D p / 6 micro-batches live on
/// every group. All blocks with D from 2 to 6 and turns of at most six slots that fit together are run in
/// virtual time, with weights passes in their slots and where groups wait. Of those whose groups hold at most
/// `limit` activation units, the shortest iteration wins, then the least memory. D = 2 is V-Min, D = 3
/// V-Half. Nothing if none holds so little. Splits every stage. O(blocks * passes), hundreds of blocks.
/// Throws `error` unless the stages are such a chain.
inline std::optional<pipeline> controllable_v(pipeline p, passes::stage_edges const& e,
                                              simulation::pipeline_costs const& c, double limit) {
  detail::require_v(p, e, "a V schedule");
  for (pipeline_stage& s : p.stages) s.split_backward = true;
  simulation::pipeline_simulator run(p, e, c);
  int const n = static_cast<int>(p.groups.size()), m = p.micro_batches(0);
  std::optional<pipeline> best;
  double least = 0, held = 0;
  auto const consider = [&](pipeline const& x) {
    simulation::pipeline_run const* r = run.attempt(x.schedule);
    if (!r) return;
    double const holds = *std::max_element(r->activations.begin(), r->activations.end());
    if (holds > limit * (1 + 1e-9) ||
        (best && (r->makespan > least || (r->makespan == least && holds >= held))))
      return;
    best = x;
    least = r->makespan;
    held = holds;
  };
  pipeline q = p;
  q.schedule.assign(p.groups.size(), {});
  for (int d = 2; d <= 6; ++d)
    for (int down = 1; down < d; ++down)
      for (int up = 1; up < d; ++up)
        for (int turns = 0; turns < 216; ++turns) {
          detail::v_block const block{
              down, up, d - up, d - down, {1 + turns % 6, 1 + turns / 6 % 6, 1 + turns / 36}};
          if (!block.fits_together(n)) continue;
          for (int g = 0; g < n; ++g) q.schedule[idx(g)] = block.order(n, g, m);
          consider(q);
          for (auto& o : q.schedule)
            std::erase_if(o, [](pass_entry const& x) { return x.what == pass::weights; });
          for (double fits : {1.0, 0.5, 0.0})
            if (pipeline filled = q; fill_weights(filled, e, c, {fits, limit})) consider(filled);
        }
  return best;
}

/// V-Half: floor((p + 2) / 2) micro-batches of activations on every group (1F1B's first holds p), and about
/// half of 1F1B's bubble at F = B = W.
inline std::optional<pipeline> v_half(pipeline const& p, passes::stage_edges const& e,
                                      simulation::pipeline_costs const& c) {
  return controllable_v(p, e, c, detail::chunk_units(p, c) * static_cast<double>((p.groups.size() + 2) / 2));
}
/// V-Min: floor((p + 4) / 3) micro-batches, and about two thirds of 1F1B's bubble at F = B = W; more, and
/// growing with the number of micro-batches, when F, B and W differ.
inline std::optional<pipeline> v_min(pipeline const& p, passes::stage_edges const& e,
                                     simulation::pipeline_costs const& c) {
  return controllable_v(p, e, c, detail::chunk_units(p, c) * static_cast<double>((p.groups.size() + 4) / 3));
}

}  // namespace tensorpar::search
