// src/plan_training.cpp - compiled once for tensorpar::compiled: candidates of every kind, compared
#include <tensorpar/search/candidates.hpp>
#include <tensorpar/search/plan_training.hpp>

namespace tensorpar {
template planned detail::fastest_plan(training_problem const&, machine const&, cost::model_ref const&, planning_options const&);
}  // namespace tensorpar
