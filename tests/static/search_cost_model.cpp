// tests/static/search_cost_model.cpp - optimize takes any cost model and nothing less; results are plain values
#include <concepts>
#include <tensorpar/search/intra/optimize.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

namespace {

struct min_model {                                   // what the concept asks for, and no more
  double seconds(cost::compute_query const&) const { return 1; }
  double seconds(cost::reshard_query const&) const { return 1; }
};
struct no_moves {
  double seconds(cost::compute_query const&) const { return 1; }
};
struct no_compute {
  double seconds(cost::reshard_query const&) const { return 1; }
};
struct changes_its_mind {
  double seconds(cost::compute_query const&) { return 1; }
  double seconds(cost::reshard_query const&) { return 1; }
};

template <class M>
concept optimizes = requires(computation_graph const& g, machine const& m, M const& model) {
  { optimize(g, m, model) } -> std::same_as<search_result>;
};
static_assert(optimizes<min_model>);
static_assert(!optimizes<no_moves>);
static_assert(!optimizes<no_compute>);
static_assert(!optimizes<changes_its_mind>);

static_assert(std::regular<sharding_limits> && std::regular<search_space> && std::regular<device_range> && std::regular<cost_point>);
static_assert(std::copyable<mapping_problem> && std::copyable<mapping_result> && std::copyable<search_result>);
static_assert(!std::is_convertible_v<mapping_problem, evaluator>);

// compiled, not only named
[[maybe_unused]] search_result (*const instance)(computation_graph const&, machine const&, min_model const&,
                                                 search_options const&) = &optimize<min_model>;

}  // namespace
