// tests/static/search_downset_objective.cpp - min_bottleneck takes any price of stages and nothing less
#include <concepts>
#include <tensorpar/graph/downsets/downsets.hpp>

using namespace tensorpar;

namespace {

struct min_objective {                               // what the concept asks for, and no more
  std::vector<std::vector<int>> none;
  int ways() const { return 1; }
  graph::stage_way way(int) const { return {}; }
  int tables() const { return 1; }
  double work(int, int) const { return 1; }
  std::vector<std::vector<int>> const& nets() const { return none; }
  graph::net_charge charge(int, int) const { return {}; }
  int measures() const { return 0; }
  double measure(int, int) const { return 0; }
  double seconds(graph::downset_stage const& s, int, int) const { return s.work; }
  int devices() const { return 1; }
  int copies() const { return 0; }
};
struct no_price_of_a_stage : min_objective {
  double seconds(graph::downset_stage const&, int, int) const = delete;
};
struct no_devices : min_objective {
  int devices() const = delete;
};
struct no_nets : min_objective {
  std::vector<std::vector<int>> const& nets() const = delete;
};
struct changes_its_mind : min_objective {
  double work(int, int) { return 1; }
};

using lists = std::vector<std::vector<int>>;
template <class O>
concept plans = requires(lists const& g, O const& o) {
  { graph::min_bottleneck(g, o) } -> std::same_as<graph::downset_pipeline>;
};
static_assert(graph::downset_objective<min_objective> && plans<min_objective>);
static_assert(!graph::downset_objective<no_price_of_a_stage> && !plans<no_price_of_a_stage>);
static_assert(!plans<no_devices>);
static_assert(!plans<no_nets>);
static_assert(!plans<changes_its_mind>);

static_assert(std::copyable<graph::downset_lattice> && std::copyable<graph::downset_pipeline> && std::regular<graph::downset_part>);

// compiled, not only named
[[maybe_unused]] graph::downset_pipeline (*const instance)(lists const&, min_objective const&, int, int, double) =
    &graph::min_bottleneck<lists, min_objective>;

}  // namespace
