// tests/peers/optima/piper_stages.test.cpp - Piper's space under a stage model against every sequence of nested downsets
#include <tensorpar/peers/optima/piper_stages.hpp>

#include <doctest/doctest.h>

#include <tensorpar/graph/downsets/lattice.hpp>
#include <tensorpar/peers/optima/lines.hpp>
#include <tensorpar/search/pipeline/nested.hpp>
#include <tensorpar/search/pipeline/stages.hpp>

#include "stage_oracle.hpp"
#include "support/effort.hpp"

using namespace tests;
using namespace tensorpar::search;
using namespace tensorpar;
using namespace tensorpar::peers;

namespace {

/// The least bottleneck with micro-batches of b samples, by trying everything; 1e300: nothing fits.
double tried(stage_problem const& p, i64 b) {
  auto const& m = p.model;
  unsigned const all = (1u << p.graph.size()) - 1;
  auto is_downset = [&](unsigned d) {
    for (std::size_t v = 0; v < p.graph.size(); ++v)
      if (d >> v & 1) for (int u : p.graph[v]) if (!(d >> u & 1)) return false;
    return true;
  };
  auto price = [&](unsigned stage, stage_choice const& c, i64 in_flight) {
    stage_work w;
    stage_border border;
    for (std::size_t v = 0; v < p.graph.size(); ++v) if (stage >> v & 1) w += m.work(static_cast<int>(v), c, 0);
    for (stage_tensor const& t : m.tensors()) {
      int inside = 0;
      for (int v : t.consumers) inside += stage >> v & 1;
      bool const made = stage >> t.producer & 1;
      if (!made && inside) { border.in += t.bytes; ++border.tensors_in; }
      if (made && inside < static_cast<int>(t.consumers.size())) { border.out += t.bytes; ++border.tensors_out; }
    }
    w += m.transfer(border, c, 0);
    return w.bytes(in_flight) > m.capacity(0, c.devices()) ? 1e300 : w.per_sample(b, m.mini_batch());
  };
  double best = 1e300;
  std::function<void(unsigned, int, int, double)> go = [&](unsigned left, int devices, int later, double most) {
    if (left == 0) { best = std::min(best, most); return; }
    for (unsigned d = (left - 1) & left;; d = (d - 1) & left) {
      if (is_downset(d))
        for (stage_choice c : m.degrees()) {
          c.micro_batch = b;
          if (!m.admits(c) || c.devices() > devices) continue;
          double const t = price(left & ~d, c, std::min(m.mini_batch(), b * (later + 1)));
          if (t < best) go(d, devices - c.devices(), later + 1, std::max(most, t));
        }
      if (d == 0) break;
    }
  };
  go(all, m.devices(), 0, 0);
  return best;
}

}  // namespace

TEST_CASE("the least bottleneck over sequences of downsets is found, and it is never above PipeDream's") {
  random_source r(5);
  for (int i = 0; i < test_effort::cases(200); ++i) {
    stage_problem_options o;
    o.devices = 2 + r.below(3);
    o.tight = r.chance(50);
    o.recompute = r.chance(30);
    stage_problem const p = random_stage_problem(r, random_dag(r, 2 + r.below(5), 40), o);
    CAPTURE(p.text);
    double expected = 1e300;
    for (i64 b : {1, 2, 4}) expected = std::min(expected, tried(p, b));
    stage_options least;
    least.objective = stage_objective::bottleneck;
    least.tolerance = 0;
    stage_result const found = piper_stages(p.graph, p.model, least);
    CHECK(found.feasible() == (expected < 1e299));
    if (!found.feasible()) continue;
    double most = 0;
    for (std::size_t s = 0; s < found.choices.size(); ++s)
      most = std::max(most, found.cost.work[s].per_sample(found.choices[s].micro_batch, 4));
    CHECK(most == doctest::Approx(expected).epsilon(1e-9));
    stage_result const line = pipedream_stages(p.graph, p.model, least);
    if (line.feasible()) CHECK(found.cost.bottleneck <= line.cost.bottleneck * (1 + 1e-9));
  }
}

TEST_CASE("the search for the least bottleneck is never worse than Piper's on the same model, and says when nested downsets were better") {
  random_source r(17);
  int nested = 0, many = 0, compared = 0;
  for (int i = 0; i < test_effort::cases(40); ++i) {
    stage_problem_options o;
    o.devices = 2 + r.below(7);
    o.mini_batch = 8;
    o.tight = r.chance(25);
    o.recompute = r.chance(30);
    o.shard_optimizer = r.chance(20);
    o.max_tensor = r.chance(30) ? 2 : 1;
    o.alike = r.chance(50) ? 100 : 50;
    int const n = 3 + r.below(22);
    lists const graph = r.chance(50) ? random_dag(r, n, 5 + r.below(30)) : graph_of(random_sp_tree(r, n), n);
    stage_problem const p = random_stage_problem(r, graph, o);
    if (!tensorpar::search::detail::has_few_downsets(p.graph, 20'000)) continue;
    CAPTURE(p.text);
    stage_options least;
    least.objective = stage_objective::bottleneck;
    stage_result const piper = piper_stages(p.graph, p.model, least);
    CHECK((!piper.feasible() || piper.source == stage_source::nested));
    least.exchanges = r.chance(50) ? 200'000 : 0;
    stage_result const ours = find_stages(p.graph, p.model, least);
    if (piper.feasible()) {
      REQUIRE(ours.feasible());
      CHECK(ours.cost.bottleneck <= piper.cost.bottleneck * (1 + 1e-8));
      CHECK(ours.bound <= piper.cost.bottleneck * (1 + 1e-9));
    }
    compared += piper.feasible();
    many += piper.feasible() && !tensorpar::search::detail::has_few_downsets(p.graph, 2048);
    nested += ours.feasible() && ours.source == stage_source::nested;
    if (ours.feasible() && ours.source == stage_source::nested) {
      least.max_downsets = 0;
      stage_result const without = find_stages(p.graph, p.model, least);
      CHECK((!without.feasible() || ours.cost.bottleneck < without.cost.bottleneck));
    }
  }
  CHECK((test_effort::slow || (compared > 0 && many > 0 && nested > 0)));
}

TEST_CASE("downsets: what is looked for below a price is the optimum, or nothing where the price is the optimum") {
  random_source r(23);
  for (int i = 0; i < test_effort::cases(60); ++i) {
    stage_problem_options o;
    o.devices = 2 + r.below(4);
    o.tight = r.chance(30);
    stage_problem const p = random_stage_problem(r, random_dag(r, 2 + r.below(9), 30), o);
    CAPTURE(p.text);
    tensorpar::search::detail::downset_stages<additive_stages> const price(p.model, 1);
    int const sample = r.chance(50) ? 0 : 8192;
    graph::downset_pipeline const best = graph::min_bottleneck(p.graph, price, 4096, sample);
    if (!best.feasible) {
      CHECK(!graph::min_bottleneck(p.graph, price, 4096, sample, 1e6).feasible);
      continue;
    }
    graph::downset_pipeline const above = graph::min_bottleneck(p.graph, price, 4096, sample, best.seconds * (1.0001 + r.below(4)));
    REQUIRE(above.feasible);
    CHECK(above.seconds == doctest::Approx(best.seconds).epsilon(1e-9));
    graph::downset_pipeline const none = graph::min_bottleneck(p.graph, price, 4096, sample, best.seconds);
    CHECK(!none.feasible);
    CHECK(none.seconds == infinity);
  }
}

TEST_CASE("few downsets or many: counted exactly, and wide graphs are refused before anything is stored") {
  lists const chain{{}, {0}, {1}};  // 4 downsets
  CHECK(tensorpar::search::detail::has_few_downsets(chain, 4));
  CHECK(!tensorpar::search::detail::has_few_downsets(chain, 3));
  CHECK(!tensorpar::search::detail::has_few_downsets(chain, 0));
  CHECK(tensorpar::search::detail::has_few_downsets(lists(5), 32));
  CHECK(!tensorpar::search::detail::has_few_downsets(lists(5), 31));
  CHECK_THROWS_WITH_AS(graph::downset_lattice(lists(20'000), 400'000), doctest::Contains("more than 400000 downsets"), error);
}

namespace {
/// Prices of sending times `times`; a stage model else like another.
struct dear_sending : additive_stages {
  double times;
  dear_sending(additive_stages m, double t) : additive_stages(std::move(m)), times(t) {}
  stage_work transfer(stage_border const& b, stage_choice const& c, int first) const {
    stage_work w = additive_stages::transfer({b.in, 0, b.tensors_in, 0}, c, first);
    stage_work const out = additive_stages::transfer({0, b.out, 0, b.tensors_out}, c, first);
    w.forward += times * out.forward;
    w.backward += times * out.backward;
    return w;
  }
};
}  // namespace

TEST_CASE("sending may be cheaper than receiving, not dearer: then the optimum over downsets is no longer exact, and is refused") {
  random_source r(9);
  for (int i = 0; i < test_effort::cases(60); ++i) {
    stage_problem_options o;
    o.devices = 2 + r.below(2);
    stage_problem const p = random_stage_problem(r, random_dag(r, 3 + r.below(3), 60), o);
    CAPTURE(p.text);
    dear_sending const cheap(p.model, 0.5), dear(p.model, 2);
    CHECK(tensorpar::search::detail::sends_cheaply(cheap, 2));
    stage_options least;
    least.objective = stage_objective::bottleneck;
    least.tolerance = 0;
    stage_result const found = piper_stages(p.graph, cheap, least), line = pipedream_stages(p.graph, cheap, least);
    CHECK(found.cost.bottleneck <= line.cost.bottleneck * (1 + 1e-9));
    stage_result const any = find_stages(p.graph, dear, least);  // leaves that family out
    CHECK(any.feasible());
  }
  additive_stages const two({{1, 1, 0, 0, 0, 0, 1, 0}, {1, 1, 0, 0, 0, 0, 1, 0}}, tensors_of(lists{{}, {0}}, {1, 1}),
                            [] {
                              auto d = stage_devices::equal(2);
                              d.inner_bandwidth = d.outer_bandwidth = 1;
                              return d;
                            }(),
                            {2, 2, 1, 1, false, false});
  CHECK(!tensorpar::search::detail::sends_cheaply(dear_sending(two, 2), 1));
  CHECK_THROWS_WITH_AS(piper_stages(lists{{}, {0}}, dear_sending(two, 2)), doctest::Contains("sending is dearer"), error);
}
