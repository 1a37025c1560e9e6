// tests/static/search_downset_objective.cpp - least_bottleneck takes any price of stages and nothing less
#include <concepts>
#include <tensorpar/search/baselines/downsets.hpp>

using namespace tensorpar;

namespace {

struct least_objective {                               // what the concept asks for, and no more
  std::vector<std::vector<int>> none;
  int ways() const { return 1; }
  stage_way way(int) const { return {}; }
  int tables() const { return 1; }
  double work(int, int) const { return 1; }
  std::vector<std::vector<int>> const& nets() const { return none; }
  net_charge charge(int, int) const { return {}; }
  int measures() const { return 0; }
  double measure(int, int) const { return 0; }
  double seconds(downset_stage const& s, int, int) const { return s.work; }
  int devices() const { return 1; }
  int copies() const { return 0; }
};
struct no_price_of_a_stage : least_objective {
  double seconds(downset_stage const&, int, int) const = delete;
};
struct no_devices : least_objective {
  int devices() const = delete;
};
struct no_nets : least_objective {
  std::vector<std::vector<int>> const& nets() const = delete;
};
struct changes_its_mind : least_objective {
  double work(int, int) { return 1; }
};

using lists = std::vector<std::vector<int>>;
template <class O>
concept plans = requires(lists const& g, O const& o) {
  { least_bottleneck(g, o) } -> std::same_as<downset_pipeline>;
};
static_assert(downset_objective<least_objective> && plans<least_objective>);
static_assert(!downset_objective<no_price_of_a_stage> && !plans<no_price_of_a_stage>);
static_assert(!plans<no_devices>);
static_assert(!plans<no_nets>);
static_assert(!plans<changes_its_mind>);

static_assert(std::copyable<downset_lattice> && std::copyable<downset_pipeline> && std::regular<downset_part>);

// compiled, not only named
[[maybe_unused]] downset_pipeline (*const instance)(lists const&, least_objective const&, int, int, double) =
    &least_bottleneck<lists, least_objective>;

}  // namespace
