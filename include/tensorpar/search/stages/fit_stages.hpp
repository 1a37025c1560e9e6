// tensorpar/search/stages/fit_stages.hpp - a pipeline whose program fits into memory: what was found is unrolled, and sought again if not
#pragma once
#include <optional>
#include <tensorpar/plan/tasks.hpp>
#include <tensorpar/search/fitting.hpp>
#include <tensorpar/search/microbatch.hpp>
#include <tensorpar/search/stages/to_plan.hpp>

namespace tensorpar {

/// A pipeline as a plan, and the arenas of its program. Exactly one of `infeasible` and a plan with stages.
struct fitted_stages {
  std::optional<shortage> infeasible;  // what the program lacks that lacked least of those tried; of estimates if none was unrolled
  tensorpar::plan plan;                // under the schedule that was asked for
  stage_result stages;
  std::vector<i64> arena;              // bytes by device, without a backend's scratch space
  int tried = 0;                       // programs unrolled
  bool feasible() const { return !infeasible; }
};

namespace detail {

/// By device, what a pipeline's stages are estimated to take.
inline std::vector<double> estimated_bytes(stage_result const& r, int devices) {
  std::vector<double> bytes(static_cast<std::size_t>(devices), 0);
  for (std::size_t s = 0; s < r.choices.size(); ++s) {
    device_group const g = r.pipeline.groups[static_cast<std::size_t>(r.pipeline.stages[s].group)];
    for (int d = g.first; d < g.first + g.count; ++d) bytes[static_cast<std::size_t>(d)] += r.cost.bytes[s];
  }
  return bytes;
}

}  // namespace detail

/// `find_stages`, and then the truth: estimates of memory add up over operators and know neither what lives for part of a pass only nor how
/// buffers lie beside each other. The pipeline is scheduled, unrolled and its arenas compared with the devices' memories; where one is too
/// large, pipelines are sought whose estimates leave as much more room as was lacking, up to `most` times, until the estimate finds
/// none. `model`: of this graph on this machine. Throws `error` as `find_stages` and `make_schedule` do, and where the schedule does
/// not fit the stages. Deterministic. O(tried * (find_stages + unrolling)).
template <topology G, cost_model C>
fitted_stages fit_stages(G const& graph, computation_graph const& forward, machine const& on, graph_stages<C> const& model,
                         stage_options const& o = {}, schedule_kind kind = schedule_kind::one_f_one_b,
                         optimizer_choice const& optimizer = {}, int most = 12) {
  using namespace detail;
  std::vector<i64> room;
  for (int d = 0; d < on.size(); ++d) room.push_back(on.kind_of(d).memory);
  fitted_stages r;
  double share = 1;  // of all memories, that estimates may fill
  while (r.tried < most) {
    stages_with_memory<graph_stages<C>> const smaller(model, share);
    stage_result found = share < 1 ? find_stages(graph, smaller, o) : find_stages(graph, model, o);
    if (!found.feasible()) {
      if (r.tried > 0) break;
      std::size_t const d = static_cast<std::size_t>(found.infeasible->device);
      i64 const lacks = static_cast<i64>(found.infeasible->lacks);
      r.infeasible = shortage{found.infeasible->device, lacks, room[d] + lacks, room[d], false};
      return r;
    }
    stage_edges const edges = edges_of(found);
    auto const scheduled = make_schedule(kind, found.pipeline, edges, costs_of(found));
    if (!scheduled)
      throw error("schedule " + std::string(name_of(kind)) + " does not fit these stages", "fit_stages", "another schedule");
    plan p = plan_of(forward, on, model, *scheduled, found.choices, optimizer);
    std::vector<i64> arena = unroll(expand(forward, p)).arena;
    ++r.tried;
    std::optional<shortage> const lacks = shortage_in(arena, room, false);
    if (!lacks) {
      r.infeasible.reset();
      r.plan = std::move(p);
      r.stages = std::move(found);
      r.arena = std::move(arena);
      return r;
    }
    if (!r.infeasible || lacks->missing < r.infeasible->missing) r.infeasible = lacks;
    std::vector<double> const said = estimated_bytes(found, on.size());
    double next = share * 0.98;
    for (std::size_t d = 0; d < said.size(); ++d)
      if (arena[d] > room[d]) next = std::min(next, said[d] / static_cast<double>(arena[d]));
    share = next;
  }
  return r;
}

}  // namespace tensorpar
