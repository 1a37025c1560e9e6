// src/prices.cpp - compiled once for tensorpar::compiled: choices of operators, and what they cost
#include <tensorpar/search/solve/step_bound.hpp>
#include <tensorpar/simulate/prices.hpp>

template tensorpar::simulation::task_prices tensorpar::simulation::price(tensorpar::program const&, tensorpar::machine const&,
                                                                         tensorpar::cost::model_ref const&);
namespace tensorpar::search {
using cost::model_ref;
template additive_optimum min_sum<>(mapping_problem const&, std::vector<std::vector<double>> const&, elimination_limits);
template class choice_layouts<model_ref>;
template class choice_sets<model_ref>;
template class choice_book<model_ref>;
template class detail::objective_builder<model_ref>;
template step_bound step_bound_of(training_graph const&, machine const&, model_ref const&, objective_options, sharding_limits const&,
                                  elimination_limits const&, bool);
}  // namespace tensorpar::search
