// tests/support/search_once.hpp - the searches, compiled once (support/search_once.cpp, or tensorpar::compiled)
#pragma once
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/search/candidates.hpp>
#include <tensorpar/search/plan_training.hpp>

#ifndef TENSORPAR_COMPILED
namespace tensorpar {
namespace search {
extern template search_result detail::optimize_by(computation_graph const&, machine const&, cost::model_ref const&, search_options const&);
extern template joint_result detail::optimize_jointly_by(computation_graph const&, machine const&, cost::model_ref const&,
                                                         joint_options const&);
}  // namespace search
extern template planned detail::fastest_plan(training_problem const&, machine const&, cost::model_ref const&, planning_options const&);
}  // namespace tensorpar
#endif
