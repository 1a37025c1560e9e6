#include <doctest/doctest.h>

#include <array>
#include <set>
#include <tensorpar/graph/downsets/objective.hpp>
#include <support/downset_reference.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/peers/optima/max_load.hpp>
#include <tensorpar/peers/optima/pipedream_wide.hpp>
#include <tensorpar/peers/optima/piper.hpp>

#include "support/effort.hpp"
#include "support/laws/downset_objective.hpp"
#include "support/random_graph.hpp"
#include "support/shrink.hpp"
#include "support/wide_profile.hpp"

using namespace tensorpar;
using namespace tensorpar::peers;
using tests::lists;
using tests::random_source;

namespace {

bool same(double a, double b) { return a == b || std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

/// A small training graph: random forward edges, some mirrored backward layers, colours that join, colours without forward layers, CPUs.
struct small_case {
  dnn_partitioning_profile g;
  max_load_limits limits;
};
small_case random_case(u64 seed) {
  random_source r{seed};
  int const n = 2 + r.below(4);
  lists const dag = tests::random_dag(r, n, 40);
  bool const training = r.chance(50);
  small_case c{wide::timed(dag, r.chance(50) ? 0.02 : 0.002, training, r.next()), {}};
  dnn_partitioning_profile& g = c.g;
  if (training && r.chance(60)) {
    int const v = n + r.below(n);
    g.colour[idx(v)] = g.colours++;  // a backward layer of its own: ordered by its backward edges
  }
  if (r.chance(30)) {
    int const a = r.below(n), b = r.below(n);
    for (int& x : g.colour)
      if (x == g.colour[idx(a)]) x = g.colour[idx(b)];
    std::vector<int> number(idx(g.colours), -1);
    int next = 0;
    for (int& x : g.colour) {
      if (number[idx(x)] < 0) number[idx(x)] = next++;
      x = number[idx(x)];
    }
    g.colours = next;
  }
  if (r.chance(20)) g.on_accelerator[idx(r.below(n))] = 0;
  double bytes = 0;
  for (double b : g.size) bytes += b;
  c.limits = {1 + r.below(3), r.below(2), r.chance(50) ? bytes * (0.3 + 0.1 * r.below(5)) : 1e18};
  return c;
}

/// The least largest load over every assignment of colours to a row of devices, priced one by one.
double exhaustive(small_case const& c) {
  dnn_partitioning_profile const& g = c.g;
  std::vector<char> forward(idx(g.colours), 0);
  for (int v = 0; v < g.node_count(); ++v)
    if (!g.backward[idx(v)]) forward[idx(g.colour[idx(v)])] = 1;
  std::vector<std::pair<int, int>> order;  // colours: the first may not come later
  for (int v = 0; v < g.node_count(); ++v)
    for (int u : g.predecessors(v)) {
      int const a = g.colour[idx(u)], b = g.colour[idx(v)];
      if (!g.backward[idx(u)] && !g.backward[idx(v)]) order.push_back({a, b});
      if (g.backward[idx(u)] && g.backward[idx(v)] && (!forward[idx(a)] || !forward[idx(b)])) order.push_back({b, a});
    }
  int const row = c.limits.accelerators + c.limits.cpus;
  double best = infinity;
  std::vector<int> place(idx(g.colours), 0);
  for (bool more = true; more;) {
    bool valid = true;
    for (auto const& [a, b] : order) valid = valid && place[idx(a)] <= place[idx(b)];
    for (int cpu = 0; valid && cpu < (c.limits.cpus ? row : 1); ++cpu) {  // which of the row is the CPU
      device_split s;
      std::vector<std::vector<int>> all(idx(row));
      for (int v = 0; v < g.node_count(); ++v) all[idx(place[idx(g.colour[idx(v)])])].push_back(v);
      for (int d = 0; d < row; ++d) (c.limits.cpus && d == cpu ? s.cpus : s.accelerators).push_back(all[idx(d)]);
      max_load_price const p = price_max_load(g, s, c.limits.memory);
      if (p.fits) best = std::min(best, p.seconds);
    }
    more = false;
    for (int& p : place) {
      if (++p < row) { more = true; break; }
      p = 0;
    }
  }
  return best;
}

/// Piper's space, walked stage by stage from the end: sets as bits, every (d, t), every choice of configurations.
struct piper_walk {
  piper_profile const& g;
  piper_setup const& setup;
  double operator()(unsigned rest, int later, int devices) const {
    if (rest == 0) return 0;
    double best = infinity;
    for (unsigned part = rest; part; part = (part - 1) & rest) {
      std::vector<int> nodes;
      bool closed = true;
      for (int v = 0; v < g.node_count(); ++v) {
        if (!(part >> v & 1)) continue;
        nodes.push_back(v);
        for (int e : g.out[idx(v)]) closed = closed && !((rest & ~part) >> g.edges[idx(e)].to & 1);
      }
      if (!closed) continue;
      for (piper_degree const& t : g.degrees[0])
        for (int d = 1; d * t.degree <= devices && d + later <= std::min<i64>(setup.devices, setup.micro_batches); ++d) {
          if (setup.micro_batches % d) continue;
          double stage = infinity;
          for (unsigned choice = 0; choice < 1u << nodes.size(); ++choice) {
            piper_stage s{nodes, d, t.degree, {}};
            for (std::size_t i = 0; i < nodes.size(); ++i) s.configuration.push_back(static_cast<int>(choice >> i & 1));
            piper_stage_price const p = price_piper_stage(g, s, setup, later);
            if (p.memory <= setup.memory) stage = std::min(stage, p.seconds);
          }
          if (stage < best) best = std::min(best, std::max(stage, (*this)(rest & ~part, later + d, devices - d * t.degree)));
        }
    }
    return best;
  }
};

/// A cost model with nothing in common with the peers': three tables, nets of many nodes, ways with and without devices.
struct random_objective {
  int nodes, tables_, devices_, copies_;
  std::vector<graph::stage_way> ways_;
  std::vector<std::vector<double>> work_, bytes_;
  std::vector<std::vector<int>> nets_;
  std::vector<std::vector<graph::net_charge>> charge_;
  double memory;
  random_objective(int n, u64 seed) : nodes(n) {
    random_source r{seed};
    tables_ = 1 + r.below(3);
    devices_ = 1 + r.below(5);
    copies_ = r.below(5);
    for (int w = 0, m = 1 + r.below(4); w < m; ++w) {
      int const d = r.below(4);
      ways_.push_back({d, d == 0 ? 1 + r.below(2) : r.below(3), r.below(tables_), 1.0 + r.below(3)});
    }
    for (int t = 0; t < tables_; ++t) {
      work_.emplace_back();
      for (int v = 0; v < n; ++v) work_.back().push_back(r.chance(5) ? infinity : r.below(10));
    }
    for (int h = 0, m = r.below(2 * n); h < m; ++h) {
      std::vector<int> net;
      for (int v = 0; v < n; ++v)
        if (r.chance(40)) net.push_back(v);
      if (net.size() > 1) nets_.push_back(net);
    }
    for (int t = 0; t < tables_; ++t) {
      charge_.emplace_back();
      for (std::size_t h = 0; h < nets_.size(); ++h) {
        double const in = r.below(5), out = r.below(5);
        charge_.back().push_back({in, out, std::min(in, out) * r.below(3) / 2});
      }
    }
    bytes_.emplace_back();
    for (int v = 0; v < n; ++v) bytes_.back().push_back(r.below(10));
    memory = r.chance(50) ? 1e9 : 10 + r.below(60);
  }
  int ways() const { return static_cast<int>(ways_.size()); }
  graph::stage_way way(int w) const { return ways_[idx(w)]; }
  int tables() const { return tables_; }
  double work(int t, int v) const { return work_[idx(t)][idx(v)]; }
  std::vector<std::vector<int>> const& nets() const { return nets_; }
  graph::net_charge charge(int t, int h) const { return charge_[idx(t)][idx(h)]; }
  int measures() const { return 1; }
  double measure(int, int v) const { return bytes_[0][idx(v)]; }
  double seconds(graph::downset_stage const& s, int w, int later) const {
    return s.sum(0) * (1 + later) > memory ? infinity : (s.work + s.boundary) / ways_[idx(w)].share + 0.5 * w + 0.25 * later;
  }
  int devices() const { return devices_; }
  int copies() const { return copies_; }
};
/// The same, with what it may say to be decided sooner.
struct hasty_objective : random_objective {
  explicit hasty_objective(random_objective o) : random_objective(std::move(o)) {}
  std::array<graph::measure_limit, 2> limits(int w, int later, double target) const {
    graph::measure_limit const bytes{0, 0, 0.5 * (1 + later), 0.5 * (1 + later), memory * (1 + 1e-9)};
    if (0.5 * w + 0.25 * later <= target) return {{bytes, {}}};
    return {{bytes, {0, 0, 0, 0, -1}}};    // nothing does
  }
};

}  // namespace

static_assert(graph::downset_objective<max_load_objective>);
static_assert(graph::downset_objective<piper_objective>);
static_assert(graph::downset_objective<pipedream_objective>);
static_assert(graph::downset_objective<random_objective> && graph::downset_objective<hasty_objective>);
static_assert(graph::topology<max_load_space>);

TEST_CASE("the lattice has every downset once, and knows inclusion and differences") {
  auto const make = [](random_source& r) { return tests::random_dag(r, 1 + r.below(9), 10 + r.below(60)); };
  std::string const bad = tests::counterexample(1, test_effort::cases(400), make, [](lists const& g) {
      int const n = static_cast<int>(g.size());
      std::set<unsigned> want, got;
      for (unsigned s = 0; s < 1u << n; ++s) {
        bool closed = true;
        for (int v = 0; v < n; ++v)
          for (int u : g[idx(v)]) closed = closed && (!(s >> v & 1) || (s >> u & 1));
        if (closed) want.insert(s);
      }
      graph::downset_lattice const l(g, 1 << 20);
      std::vector<unsigned> set;
      for (int d = 0; d < l.count(); ++d) {
        unsigned s = 0;
        for (int v = 0; v < n; ++v) s |= l.contains(d, v) ? 1u << v : 0u;
        if (d > 0 && (l.parent(d) >= d || set[idx(l.parent(d))] != (s & ~(1u << l.last(d))) || !(s >> l.last(d) & 1))) return false;
        set.push_back(s);
        got.insert(s);
      }
      if (got != want || static_cast<int>(got.size()) != l.count() || set[0] != 0) return false;
      for (int a = 0; a < l.count(); ++a)
        for (int b = 0; b < l.count(); ++b) {
          bool const in = (set[idx(a)] & ~set[idx(b)]) == 0;
          if (l.within(a, b) != in) return false;
          if (!in) continue;
          unsigned s = 0;
          for (int v : l.between(a, b)) s |= 1u << v;
          if (s != (set[idx(b)] & ~set[idx(a)])) return false;
        }
      return true;
    });
  CHECK(bad == "");
}

TEST_CASE("the peers' prices keep the laws") {
  int finite[4] = {};
  for (u64 seed = 0; seed < static_cast<u64>(test_effort::cases(20)); ++seed) {
    random_source r{seed + 300};
    lists g = tests::random_dag(r, 8 + r.below(6), 25 + r.below(30), false);
    for (std::size_t v = 1; v < g.size(); ++v)
      if (g[v].empty()) g[v] = {0};
    auto const p = wide::timed(g, 0.05, r.chance(50), r.next());
    max_load_space const space = space_of(p);
    finite[0] += laws::downset_objective_laws(space, max_load_objective(p, space, {3, 1, 3e8}), r.next(), 400);
    auto const q = wide::piper(g, r.next(), {1, 2});
    finite[1] += laws::downset_objective_laws(q, piper_objective(q, {1e5 * (50 + r.below(200)), 1e9, 12, 24}), r.next(), 400);
    auto const t = wide::pipedream(g, r.next());
    peers::detail::pipedream_layers const layers(t);
    pipedream_setup const setup{{{6, 1e9}}, 1, 1e8 * (1 + r.below(5)), false};
    pipedream_objective const o(layers, setup);
    finite[2] += laws::downset_objective_laws(o.graph(), o, r.next(), 400);
    finite[3] += laws::downset_objective_laws(g, hasty_objective(random_objective(static_cast<int>(g.size()), r.next())), r.next(), 400);
  }
  for (int n : finite) CHECK(n > 50);
}

TEST_CASE("too many downsets and cycles are errors that say so") {
  lists const wide(12);
  CHECK(graph::downset_lattice(wide, 4096).count() == 4096);
  CHECK_THROWS_WITH_AS(graph::downset_lattice(wide, 4095), doctest::Contains("more than 4095 downsets"), error);
  CHECK_THROWS_WITH_AS(graph::downset_lattice(lists{{1}, {0}}, 10), doctest::Contains("cycle"), error);
}

TEST_CASE("min_bottleneck equals the recursion over all pairs, for cost models of any kind") {
  int feasible = 0;
  std::vector<u64> seeds{20167};  // ways without devices of one and of two copies share three: no number of either uses them all
  for (int i = 0; i < test_effort::cases(2000); ++i) seeds.push_back(static_cast<u64>(i));
  for (u64 seed : seeds) {
    random_source r{seed + 1000};
    lists const g = tests::random_dag(r, 1 + r.below(7), 20 + r.below(50));
    random_objective const o(static_cast<int>(g.size()), r.next());
    double const want = min_bottleneck_reference(g, o);
    graph::downset_pipeline const got = graph::min_bottleneck(g, o);
    CAPTURE(seed);
    CAPTURE(tests::text(g));
    REQUIRE(got.feasible == (want < infinity));
    if (!got.feasible) continue;
    ++feasible;
    REQUIRE(same(got.seconds, want));
    CHECK(same(graph::min_bottleneck(g, o, 1000, 0).seconds, want));  // a sample of the downsets first
    CHECK(graph::min_bottleneck(g, hasty_objective(o)).stages == got.stages);
    std::vector<int> place(g.size(), -1);
    double slowest = 0;
    for (std::size_t i = 0; i < got.stages.size(); ++i) {
      REQUIRE(!got.stages[i].nodes.empty());
      for (int v : got.stages[i].nodes) place[idx(v)] = static_cast<int>(i);
      slowest = std::max(slowest, got.stages[i].seconds);
    }
    CHECK(slowest == got.seconds);
    for (std::size_t v = 0; v < g.size(); ++v) {
      CHECK(place[v] >= 0);
      for (int u : g[v]) CHECK(place[idx(u)] <= place[v]);
    }
  }
  CHECK(feasible > test_effort::cases(100));
}

TEST_CASE("min_max_load equals the best of all assignments") {
  int feasible = 0, with_cpu = 0;
  for (u64 seed = 0; seed < static_cast<u64>(test_effort::cases(2000)); ++seed) {
    small_case const c = random_case(seed);
    double const want = exhaustive(c);
    max_load_optimum const got = min_max_load(c.g, c.limits);
    CAPTURE(seed);
    REQUIRE(got.feasible == (want < infinity));
    if (!got.feasible) continue;
    ++feasible;
    with_cpu += !got.split.cpus.empty();
    REQUIRE(same(got.seconds, want));
    CHECK(price_max_load(c.g, got.split, c.limits.memory).fits);
    CHECK(static_cast<int>(got.split.accelerators.size()) <= c.limits.accelerators);
    CHECK(static_cast<int>(got.split.cpus.size()) <= c.limits.cpus);
    CHECK(same(min_bottleneck_reference(space_of(c.g), max_load_objective(c.g, space_of(c.g), c.limits)), want));
  }
  CHECK(feasible > test_effort::cases(200));
  CHECK(with_cpu > test_effort::cases(10));
}

TEST_CASE("min_piper equals the best of all partitions, degrees and configurations") {
  int feasible = 0, swapped = 0;
  for (u64 seed = 0; seed < static_cast<u64>(test_effort::cases(1500)); ++seed) {
    random_source r{seed + 77};
    lists const dag = tests::random_dag(r, 1 + r.below(4), 45);
    piper_profile g = wide::piper(dag, r.next(), r.chance(50) ? std::vector<int>{1} : std::vector<int>{1, 2});
    piper_setup const setup{1e5 * (20 + r.below(150)), 1e9 * (1 + r.below(40)), 1 + r.below(4), r.chance(50) ? 4 : 6};
    double const want = piper_walk{g, setup}((1u << dag.size()) - 1, 0, setup.devices);
    piper_optimum const got = min_piper(g, setup);
    CAPTURE(seed);
    REQUIRE(got.feasible == (want < infinity));
    CHECK(got.exact);
    if (!got.feasible) continue;
    ++feasible;
    REQUIRE(same(got.seconds, want));
    CHECK(price_piper(g, got.stages, setup).fits);
    for (piper_stage const& s : got.stages)
      for (int c : s.configuration) swapped += c;
  }
  CHECK(feasible > test_effort::cases(100));
  CHECK(swapped > test_effort::cases(20));
}

TEST_CASE("hundreds of downsets: still the recursion over all pairs, with memory and transfers that bind") {
  int feasible = 0, transfers = 0;
  for (u64 seed = 0; seed < static_cast<u64>(test_effort::cases(60)); ++seed) {
    random_source r{seed + 5000};
    wide::layers g;
    int const from = g.node({}), chains = 2 + r.below(2), length = chains == 2 ? 9 + r.below(6) : 4 + r.below(2);
    std::vector<int> ends;
    for (int c = 0; c < chains; ++c) ends.push_back(g.chain(from, length));
    int const middle = g.node(ends), a = g.chain(middle, 3), b = g.chain(middle, 3);
    g.node({a, b});
    auto const p = wide::timed(g.inputs, r.chance(50) ? 0.01 : 0.1, r.chance(50), r.next());
    double bytes = 0;
    for (double x : p.size) bytes += x;
    max_load_limits const limits{2 + r.below(2), r.below(2), r.chance(50) ? bytes * (0.3 + 0.1 * r.below(4)) : 1e18};
    max_load_space const space = space_of(p);
    max_load_objective const o(p, space, limits);
    double const want = min_bottleneck_reference(space, o);
    CAPTURE(seed);
    graph::downset_pipeline const got = graph::min_bottleneck(space, o), sampled = graph::min_bottleneck(space, o, 1000, 0);
    REQUIRE(got.feasible == (want < infinity));
    REQUIRE(sampled.feasible == got.feasible);
    if (!got.feasible) continue;
    ++feasible;
    REQUIRE(same(got.seconds, want));
    REQUIRE(same(sampled.seconds, want));
    auto q = wide::piper(g.inputs, r.next(), r.chance(30) ? std::vector<int>{1, 2} : std::vector<int>{1});
    double held = 0;
    for (auto const& d : q.degrees) held += d[0].ways[0].per_sample + d[0].ways[0].fixed;
    piper_setup const setup{held * (0.2 + 0.1 * r.below(10)), q.bandwidth / (1 + r.below(100)), 2 + r.below(3), 12};
    piper_objective const po(q, setup);
    double const least = min_bottleneck_reference(q, po);
    graph::downset_pipeline const mine = graph::min_bottleneck(q, po, 1000, static_cast<int>(seed % 2) * 5000);
    REQUIRE(mine.feasible == (least < infinity));
    if (mine.feasible) REQUIRE(same(mine.seconds, least));
    transfers += mine.feasible;
  }
  CHECK(feasible >= test_effort::cases(30));
  CHECK(transfers >= test_effort::cases(15));
}

TEST_CASE("a wide graph: all of its downsets, and a split that no stage can improve by one group") {
  auto const g = wide::timed(wide::inception(), 1e-5, true, 5);
  max_load_limits const limits{6, 1, 1e18};
  max_load_optimum const got = min_max_load(g, limits);
  CHECK(got.pipeline.downsets > 35'000);
  REQUIRE(got.feasible);
  CHECK(same(got.seconds, got.pipeline.seconds));
  double work = 0;
  for (double t : g.accelerator) work += t;
  CHECK(got.seconds >= work / 6.1);  // six accelerators and a CPU a tenth as fast
  CHECK(got.seconds <= 1.02 * work / 6);
  CHECK(min_max_load(g, limits).split == got.split);
}
