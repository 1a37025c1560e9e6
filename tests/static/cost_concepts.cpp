// tests/static/cost_concepts.cpp - the cost_model concept: an archetype with the minimal definition, and types that lack exactly one thing
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/cost/combinators.hpp>
#include <tensorpar/cost/concepts.hpp>
#include <tensorpar/cost/profiled.hpp>
#include <tensorpar/simulate/engine.hpp>

#include "support/laws/cost_table.hpp"

namespace {

using namespace tensorpar;

/// Nothing but what the concept asks for: no default constructor, no copy.
struct archetype {
  explicit archetype(int) {}
  archetype(archetype const&) = delete;
  archetype& operator=(archetype const&) = delete;
  double seconds(cost::compute_query const&) const { return 1; }
  double seconds(cost::reshard_query const&) const { return 1; }
};
struct no_compute { double seconds(cost::reshard_query const&) const { return 1; } };
struct no_moves { double seconds(cost::compute_query const&) const { return 1; } };
struct not_constant {
  double seconds(cost::compute_query const&) { return 1; }
  double seconds(cost::reshard_query const&) { return 1; }
};
struct not_a_double {
  float seconds(cost::compute_query const&) const { return 1; }
  double seconds(cost::reshard_query const&) const { return 1; }
};
struct wrong_name {
  double cost(cost::compute_query const&) const { return 1; }
  double cost(cost::reshard_query const&) const { return 1; }
};

static_assert(cost::cost_model<archetype>);
static_assert(cost::cost_model_lack<archetype>::value);
static_assert(!cost::cost_model<no_compute> && cost::prices_moves<no_compute>);
static_assert(!cost::cost_model<no_moves> && cost::prices_compute<no_moves>);
static_assert(!cost::cost_model<not_constant>);
static_assert(!cost::cost_model<not_a_double> && cost::prices_moves<not_a_double>);
static_assert(!cost::cost_model<wrong_name>);
static_assert(!cost::cost_model<int> && !cost::cost_model<void>);

static_assert(cost::cost_model<cost::analytical> && cost::cost_model<cost::scaled<cost::analytical>> &&
              cost::cost_model<cost::calibrated<cost::analytical>> &&
              cost::cost_model<cost::cached<cost::analytical>> && cost::cost_model<cost::profiled<cost::analytical>>);
static_assert(cost::cost_model<cost::cached<cost::profiled<cost::calibrated<cost::scaled<cost::analytical>>>>>);
static_assert(cost::cost_model<laws::decreed>);
static_assert(std::regular<cost::analytical_options> && std::regular<cost::profile_table> && std::regular<simulation_options>);

// what takes a cost model takes the archetype
[[maybe_unused]] timeline run(program const& p, machine const& m, archetype const& a) { return simulate(p, m, a); }

}  // namespace
