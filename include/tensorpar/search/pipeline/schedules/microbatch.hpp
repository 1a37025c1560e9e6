// tensorpar/search/pipeline/schedules/microbatch.hpp - a pipeline's schedule by name
#pragma once
#include <array>
#include <optional>
#include <string_view>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/search/pipeline/schedules/controllable_v.hpp>
#include <tensorpar/search/pipeline/schedules/greedy.hpp>
#include <tensorpar/search/pipeline/schedules/in_flight_ratio.hpp>
#include <tensorpar/search/pipeline/schedules/interleaved.hpp>
#include <tensorpar/search/pipeline/schedules/schedule_kind.hpp>
#include <tensorpar/search/pipeline/schedules/zero_bubble_auto.hpp>

namespace tensorpar::search {

/// Fills `p.order` (and `split_backward`, which the zero-bubble kinds set in every stage and the others leave
/// alone). `k_f_k_b` takes every stage's k and keeps what `in_flight_ratio` says for the largest ratio of
/// backward to forward time among the stages; `greedy` is `refined_greedy`; 1F1B and the zero-bubble kinds
/// set k = 1, the others leave it alone. `zb_auto` obeys `limit`, activation units on each group. What each
/// kind costs and what it demands of the stages: see its header. Nothing: no schedule of this kind fits.
/// Throws `error` as the kind's own function does.
template <class = void>
std::optional<pipeline> make_schedule(schedule_kind kind, pipeline p, passes::stage_edges const& e,
                                             simulation::pipeline_costs const& c, double limit = infinity) {
  switch (kind) {
    case schedule_kind::gpipe: return gpipe(std::move(p), e);
    case schedule_kind::one_f_one_b: return one_f_one_b(std::move(p), e);
    case schedule_kind::k_f_k_b: {
      simulation::pipeline_simulator const checked(p, e, c);
      double ratio = 1e-9;
      for (simulation::stage_seconds const& s : c.stages)
        if (s.backward + s.weights > 0)
          ratio = std::max(ratio, s.forward > 0 ? std::min(1e9, (s.backward + s.weights) / s.forward) : 1e9);
      auto const in_flight = in_flight_samples(p, e, in_flight_ratio(1, ratio));
      return k_f_k_b(std::move(p), e, in_flight);
    }
    case schedule_kind::greedy: return refined_greedy(std::move(p), e, c);
    case schedule_kind::interleaved: return interleaved_1f1b(std::move(p), e);
    case schedule_kind::zb_h1: return zb_h1(std::move(p), e);
    case schedule_kind::zb_h2: return zb_h2(std::move(p), e);
    case schedule_kind::zb_auto: return zb_automatic(std::move(p), e, c, {.limit = limit});
    case schedule_kind::zb_v: return zb_v(std::move(p), e, c);
    case schedule_kind::v_half: return v_half(p, e, c);
    case schedule_kind::v_min: return v_min(p, e, c);
  }
  return std::nullopt;
}

#ifdef TENSORPAR_COMPILED
extern template std::optional<pipeline> make_schedule<>(schedule_kind kind, pipeline p, passes::stage_edges
    const& e, simulation::pipeline_costs const& c, double limit);
#endif

}  // namespace tensorpar::search
