// src/pipelines.cpp - compiled once for tensorpar::compiled: schedules of stages, unrolled and compared
#include <tensorpar/search/pipeline/fit_stages.hpp>
#include <tensorpar/search/pipeline/map_within.hpp>

namespace tensorpar::search {
template class graph_stages<cost::model_ref>;
template std::optional<pipeline> make_schedule<>(schedule_kind, pipeline, passes::stage_edges const&, simulation::pipeline_costs const&, double);
template fitted_stages fit_stages(std::vector<std::vector<int>> const&, computation_graph const&, machine const&,
                                  graph_stages<cost::model_ref> const&, stage_options const&, schedule_kind, int, double);
template mapped_stages map_within(computation_graph const&, plan, cost::model_ref const&, search_options const&);
}  // namespace tensorpar::search
