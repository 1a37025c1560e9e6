// tests/search/solve/mapping.test.cpp - best_mapping against every sharding in every structure
#include "brute_force.hpp"
#include "handmade.hpp"
#include "random_problem.hpp"

#include <doctest/doctest.h>
#include <support/effort.hpp>
#include <tensorpar/search/solve/mapping.hpp>
#include <tensorpar/search/solve/mapping_options.hpp>
#include <tensorpar/search/solve/objective.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tensorpar::search_test;

namespace {

struct instance {
  training_graph graph;
  machine cluster;
  arbitrary_model model;
  mapping_problem problem;
  brute_force<arbitrary_model> all;
  static sharding_limits limits(recipe const& r) {
    sharding_limits l;
    l.max_axes = r.max_axes;
    l.replicas = r.replicas;
    return l;
  }
  static objective_options options(recipe const& r) {
    objective_options o;
    o.grain = r.grain;
    o.micro_batches = r.micro_batches;
    return o;
  }
  explicit instance(recipe const& r)
      : graph(r.build()), cluster(r.cluster()), model{r.seed}, problem(make_problem(graph, cluster, model, limits(r), options(r))),
        all(graph, cluster, model, problem.tree, r.grain, r.micro_batches, limits(r)) {}
  std::vector<ir::sharding> shardings(assignment const& a) const {
    std::vector<ir::sharding> s;
    for (int v = 0; v < problem.operators(); ++v)
      s.push_back(problem.choices(v).shardings[static_cast<std::size_t>(a[static_cast<std::size_t>(v)])]);
    return s;
  }
};

struct tally { int cases = 0, six = 0, branching = 0, memory = 0, infeasible = 0, skips = 0, side = 0, large = 0; double looked_at = 0; };

/// What is wrong with the search on this problem, or nothing.
std::string verdict(recipe const& r, double most, tally* count = nullptr) {
  instance x(r);
  double const size = x.all.count();
  if (size > most) return "skipped";
  auto const differ = [](std::string const& what, double got, double want) {
    return what + ": " + std::to_string(got) + ", brute force " + std::to_string(want);
  };
  double const least = x.all.least(x.problem.capacity);
  mapping_options exact;
  exact.exact_budget = 1'000'000'000;
  mapping_result const free = best_mapping(x.problem, exact);
  if (free.infeasible) return "infeasible without need";
  if (free.cost.seconds != least) return differ("optimum", free.cost.seconds, least);
  if (free.bound != least) return differ("bound of an exact search", free.bound, least);
  if (x.all.cost_of(x.shardings(free.choices)) != least)
    return differ("price of the assignment", x.all.cost_of(x.shardings(free.choices)), least);
  if (best_mapping(x.problem, exact).choices != free.choices) return "two runs differ";
  mapping_options rough;
  rough.exact_budget = 0;
  rough.elimination.work = r.seed % 2 ? 60 : 2e8;
  mapping_result const bounded = best_mapping(x.problem, rough);
  if (bounded.bound > least) return differ("bound above the optimum", bounded.bound, least);
  if (bounded.cost.seconds < least) return differ("cost below the optimum", bounded.cost.seconds, least);
  if (x.all.cost_of(x.shardings(bounded.choices)) != bounded.cost.seconds) return "price of the rough assignment";
  if (count) {
    ++count->cases;
    count->six += x.problem.operators() == 6;
    count->branching += branches(x.problem);
    count->looked_at += size;
    count->large += size > 20'000;
    int start = 0;
    for (ir::sharding const& s : x.shardings(free.choices)) start = std::max(start, s.start);
    count->side += start > 0;
    for (auto const& n : r.nodes) if (n.from.size() > 1) { ++count->skips; break; }
  }

  // memory: between what the leanest assignment needs and what the fastest takes, and below the leanest
  std::vector<i64> const none(static_cast<std::size_t>(x.problem.devices), 0);
  i64 const lean = x.all.min_shortage(none);
  i64 peak = 0;
  for (i64 b : free.cost.bytes) peak = std::max(peak, b);
  for (int share : {-1, 0, 1, 2}) {
    if (static_cast<int>(r.seed % 4) != share + 1) continue;
    for (int d = 0; d < x.problem.devices; ++d)
      x.problem.capacity[static_cast<std::size_t>(d)] =
          share < 0 ? lean - 1 - 4 * (r.kinds > 1 ? d : 0) : lean + (peak - lean) * share / 3 + (r.kinds > 1 ? 16 * d : 0);
    double const tight = x.all.least(x.problem.capacity);
    mapping_result const m = best_mapping(x.problem, exact), rough_m = best_mapping(x.problem, rough);
    if (tight == infinity) {
      i64 const lack = x.all.min_shortage(x.problem.capacity);
      if (!m.infeasible) return "feasible where nothing fits";
      if (!m.infeasible->proven) return "shortage not proven";
      if (m.infeasible->missing != lack)
        return differ("missing bytes", static_cast<double>(m.infeasible->missing), static_cast<double>(lack));
      if (m.infeasible->needed - m.infeasible->capacity != lack) return "needed - capacity is not missing";
      if (m.infeasible->capacity != x.problem.capacity[static_cast<std::size_t>(m.infeasible->device)]) return "capacity of another device";
      if (!rough_m.infeasible) return "rough search: feasible where nothing fits";
      if (rough_m.infeasible->missing < lack) return "rough search: less missing than is";
      if (count) ++count->infeasible;
    } else {
      if (m.infeasible) return "infeasible where something fits";
      if (m.cost.seconds != tight) return differ("optimum in memory", m.cost.seconds, tight);
      if (m.bound != tight) return differ("bound in memory", m.bound, tight);
      for (int d = 0; d < x.problem.devices; ++d)
        if (m.cost.bytes[static_cast<std::size_t>(d)] > x.problem.capacity[static_cast<std::size_t>(d)]) return "does not fit";
      if (rough_m.bound > tight) return differ("rough bound in memory", rough_m.bound, tight);
      if (rough_m.infeasible && rough_m.infeasible->proven) return "rough search proves what is wrong";
      if (!rough_m.infeasible && rough_m.cost.seconds < tight) return differ("rough cost in memory", rough_m.cost.seconds, tight);
      if (count) ++count->memory;
    }
  }
  return {};
}

}  // namespace

TEST_CASE("search: best_mapping equals brute force over every sharding in every structure") {
  tally count;
  for (u64 seed = 1; count.cases < test_effort::cases(700); ++seed) {
    recipe const r = random_recipe(seed, 6, 4);
    std::string const wrong = verdict(r, 1'000'000, &count);
    if (wrong.empty() || wrong == "skipped") continue;
    recipe const small = shrink(r, [](recipe const& x) {
      std::string const w = verdict(x, 1'000'000);
      return !w.empty() && w != "skipped";
    });
    FAIL_CHECK(verdict(small, 1'000'000) << " in " << small.text());
    break;
  }
  MESSAGE(count.cases << " cases, " << count.six << " with 6 operators, " << count.branching << " with branches, " << count.side
                      << " run side by side, " << count.skips << " with several operands, " << count.memory << " tight, "
                      << count.infeasible << " infeasible, " << count.large << " beyond 20,000 assignments; " << count.looked_at
                      << " assignments");
  CHECK(count.cases >= test_effort::cases(500));
  CHECK(count.memory >= test_effort::cases(100));
  CHECK(count.infeasible >= test_effort::cases(20));
  CHECK(count.side >= test_effort::cases(20));
}

TEST_CASE("search: prices on memory where no exact program is allowed") {
  // every operator: fast with many bytes, or slow with few; between neighbours a price for changing sides
  std::mt19937_64 g(13);
  double worst = 0;
  int feasible = 0;
  for (int round = 0; round < 100; ++round) {
    int const n = 4 + round % 9;
    std::vector<std::vector<choice>> ops;
    std::string chain = "S(0";
    for (int v = 0; v < n; ++v) {
      ops.emplace_back();
      i64 bytes = 100;
      double seconds = 1 + static_cast<double>(g() % 10);
      for (int i = 0; i < 3; ++i) {
        ops.back().push_back({0, 1, seconds, bytes});
        seconds += 1 + static_cast<double>(g() % 10);
        bytes -= 1 + static_cast<i64>(g() % 40);
      }
      if (v) chain += "," + std::to_string(v);
    }
    mapping_problem p = handmade(1, chain + ")", ops);
    for (int v = 0; v + 1 < n; ++v) connect(p, v, v + 1, [](int i, int j) { return i == j ? 0.0 : 1.0; });
    p.capacity[0] = 100 * n * (60 + static_cast<i64>(g() % 39)) / 100;
    mapping_options rough;
    rough.exact_budget = 0;
    mapping_result const exact = best_mapping(p), r = best_mapping(p, rough);
    CHECK(exact.infeasible.has_value() == r.infeasible.has_value());
    if (exact.infeasible) {
      CHECK(r.infeasible->proven);
      CHECK(r.infeasible->missing == exact.infeasible->missing);
      continue;
    }
    ++feasible;
    CHECK(exact.gap() == 0);
    CHECK(r.cost.bytes[0] <= p.capacity[0]);
    CHECK(r.cost.seconds >= exact.cost.seconds);
    CHECK(r.bound <= exact.cost.seconds);
    worst = std::max(worst, r.gap());
  }
  MESSAGE("largest gap of prices alone: " << worst << " in " << feasible << " problems");
  CHECK(feasible >= 50);
  CHECK(worst < 0.4);
}

TEST_CASE("search: no change of one operator on its devices makes a mapping faster, where branches were not told all") {
  std::mt19937_64 g(34);
  mapping_options rough, sequential;
  rough.exact_budget = sequential.exact_budget = 0;
  sequential.branch_budget = 0;
  int open = 0, faster = 0, cases = test_effort::cases(400);
  for (int k = 0; k < cases; ++k) {
    auto const [p, text] = random_tree(g, 3);
    CAPTURE(text);
    evaluator const price(p);
    mapping_result const r = best_mapping(p, rough);
    REQUIRE(r.found());
    CHECK(price(r.choices).seconds == r.cost.seconds);
    double const least = best_mapping(p).cost.seconds;         // the exact program
    CHECK(r.cost.seconds >= least);
    CHECK(r.bound <= least);
    if (r.bound >= r.cost.seconds * (1 - 2e-9)) continue;
    auto const found = map_branches(p);
    if (!found || r.bound >= r.cost.seconds * (1 - 1e-3)) continue;
    ++open;
    double const unchanged = std::min(price(found->choices).seconds, best_mapping(p, sequential).cost.seconds);
    faster += r.cost.seconds < unchanged;
    CHECK(r.cost.seconds <= unchanged);
    assignment a = r.choices;
    for (int v = 0; v < p.operators(); ++v) {
      choice_set const& all = p.choices(v);
      std::size_t const at = static_cast<std::size_t>(v);
      int const was = a[at];
      for (int c = 0; c < all.count(); ++c) {
        auto const i = static_cast<std::size_t>(c), w = static_cast<std::size_t>(was);
        if (all.shardings[i].start != all.shardings[w].start || all.sizes[i] != all.sizes[w]) continue;
        a[at] = c;
        CHECK(price(a).seconds >= r.cost.seconds * (1 - 1e-9));
      }
      a[at] = was;
    }
  }
  MESSAGE(open << " not closed, of which single changes made " << faster << " faster");
  CHECK(open > cases / 20);
  CHECK(faster > cases / 100);
}
