// src/shardings.cpp - compiled once for tensorpar::compiled: shardings of one stage
#include <tensorpar/search/intra/optimize.hpp>

namespace tensorpar::search {
using cost::model_ref;
template bool detail::has_nested_forks<>(computation_graph const&);
template search_result detail::optimize_by(computation_graph const&, machine const&, model_ref const&, search_options const&);
template search_result detail::optimize_whole(computation_graph const&, machine const&, model_ref const&, search_options const&,
                                              std::shared_ptr<layout_prices<model_ref>> const&, activation_choice*, double);
template search_result detail::optimize_with(computation_graph const&, machine const&, model_ref const&, search_options const&,
                                             std::shared_ptr<layout_prices<model_ref>> const&);
template void detail::reorder(computation_graph const&, model_ref const&, search_options const&, search_result&);
}  // namespace tensorpar::search
