// tests/link/mixed_compiled.cpp - of two units in one program the one that is linked to tensorpar::compiled: it plans, by a model of its own too
#include <tensorpar/plan.hpp>
#include <tensorpar/plan/plan_file.hpp>
#ifndef TENSORPAR_COMPILED
#error "this unit is to have what tensorpar::compiled declares"
#endif

using namespace tensorpar;

namespace {
struct slow_links {
  cost::analytical inner{};
  double seconds(cost::compute_query const& q) const { return inner.seconds(q); }
  double seconds(cost::reshard_query const& q) const { return 1000 * inner.seconds(q); }
};
}  // namespace

planned planned_in_library(training_problem const& p, bool slow) {
  machine const on = preset("logical:4");
  return slow ? plan_training(p, on, slow_links{}, {.effort = effort::quick}) : plan_training(p, on, cost::analytical{}, {.effort = effort::quick});
}
void write_in_library(plan const& p, std::string const& file) { write_plan(p, file); }
