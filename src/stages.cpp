// src/stages.cpp - compiled once for tensorpar::compiled: graphs cut into stages
#include <tensorpar/search/pipeline/fit_stages.hpp>

namespace tensorpar::search {
using priced_stages = graph_stages<cost::model_ref>;
template stage_result find_stages(std::vector<std::vector<int>> const&, detail::stages_with_memory<priced_stages> const&, stage_options const&,
                                  step_judge*);
}  // namespace tensorpar::search
