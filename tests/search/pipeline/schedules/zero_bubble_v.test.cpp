// tests/search/pipeline/schedules/zero_bubble_v.test.cpp - ZB-V: valid on any costs within its memory, and no bubble where none is promised
#include <tensorpar/search/pipeline/schedules/zero_bubble_v.hpp>
#include <doctest/doctest.h>

#include <tensorpar/check/schedule_check.hpp>
#include "support/effort.hpp"
#include "support/pipelines.hpp"

using namespace tensorpar;
using namespace tensorpar::search;
using tests::at;
using tests::random_source;

namespace {

/// Whole seconds and units, so that sums are exact.
simulation::pipeline_costs random_costs(random_source& r, int stages) {
  simulation::pipeline_costs c;
  for (int s = 0; s < stages; ++s)
    c.stages.push_back({1.0 + r.below(6), 1.0 + r.below(6), double(r.below(5)), double(r.below(3)), 1.0 + r.below(3)});
  for (int s = 1; s < stages; ++s)
    if (r.chance(30)) c.transfers.push_back({s - 1, s, double(r.below(4)), double(r.below(4))});
  c.freed_at_backward = 0.25 * r.below(4);
  return c;
}

}  // namespace

TEST_CASE("F = B = W: from 2p micro-batches on no group is idle within its span, each keeps p micro-batches") {
  for (int p = 1; p <= 9; ++p)
    for (int m = 1; m <= 3 * p + 2; ++m) {
      CAPTURE(p); CAPTURE(m);
      auto const e = passes::chain_of_stages(2 * p);
      auto const c = tests::even_costs(at(2 * p), 3, 3, 3, 0.5);
      auto const q = zb_v(tests::v_pipeline(p, m), e, c);
      for (auto const& f : check_orders(q, e)) FAIL(f.text);
      auto const r = simulate_pipeline(q, e, c);
      for (double units : r.activations) CHECK(units <= std::min(m, p));
      if (m < 2 * p) continue;
      for (int g = 0; g < p; ++g) CHECK(r.last[at(g)] - r.first[at(g)] == 18 * m);
      CHECK(r.activations == std::vector<double>(at(p), p));
      CHECK(r.makespan == 18 * m + 3 * (p - 1));   // no order is faster: the last group cannot start before p - 1 forward passes
    }
}

TEST_CASE("any costs, with transfers: valid, split, and within what the first group of 1F1B keeps") {
  random_source r{1};
  for (int round = 0; round < test_effort::cases(200); ++round) {
    int const p = 1 + r.below(6), m = 1 + r.below(3 * p), size = 1 + r.below(3);
    auto const e = passes::chain_of_stages(2 * p);
    auto const c = random_costs(r, 2 * p);
    pipeline given = tests::v_pipeline(p, m);
    given.mini_batch *= size;
    for (auto& s : given.stages) s.micro_batch = size;
    pipeline const q = zb_v(given, e, c);
    INFO(tests::text(q));
    for (auto const& f : check_orders(q, e)) FAIL(f.text);
    auto const run = simulate_pipeline(q, e, c);
    double most = 0;
    for (auto const& s : c.stages) most = std::max(most, s.activation);
    auto const chain = passes::chain_of_stages(p);   // its stages are the two chunks of a group
    double const first = simulate_pipeline(one_f_one_b(tests::chain_pipeline(p, p, m), chain), chain,
                                           tests::even_costs(at(p), 1, 1, 1, 2 * most)).activations[0];
    for (double units : run.activations) CHECK(units <= first);
    pipeline rest = q;
    rest.schedule.clear();
    for (auto& s : given.stages) s.split_backward = true;
    CHECK(rest == given);
  }
}

TEST_CASE("of the ways to fill none has a shorter iteration, or as short a one and a shorter span") {
  random_source r{2};
  int differ = 0;
  for (int round = 0; round < test_effort::cases(200); ++round) {
    int const p = 2 + r.below(4), m = 1 + r.below(3 * p);
    auto const e = passes::chain_of_stages(2 * p);
    auto const c = random_costs(r, 2 * p);
    pipeline const q = zb_v(tests::v_pipeline(p, m), e, c);
    auto const got = simulate_pipeline(q, e, c);
    pipeline plain = q;
    for (auto& o : plain.schedule) std::erase_if(o, [](pass_entry const& x) { return x.what == pass::weights; });
    double most = 0;
    for (auto const& s : c.stages) most = std::max(most, 2 * s.activation);
    bool met = false;
    for (double fits : {0.0, 0.25, 0.5, 0.75, 1.0}) {
      pipeline other = plain;
      REQUIRE(fill_weights(other, e, c, {fits, p * most}));
      auto const o = simulate_pipeline(other, e, c);
      CHECK(std::pair(got.makespan, got.span()) <= std::pair(o.makespan, o.span()));
      met = met || other.schedule == q.schedule;
      differ += got.makespan < o.makespan;
    }
    CHECK(met);
  }
  CHECK(differ > test_effort::cases(200) / 10);
}

TEST_CASE("what is no V is refused, naming the stage") {
  int const p = 3;
  auto const e = passes::chain_of_stages(2 * p);
  auto const c = tests::even_costs(at(2 * p), 1, 1, 1);
  pipeline const v = tests::v_pipeline(p, 6);
  auto const refused = [&](pipeline const& q, passes::stage_edges const& edges, char const* words) {
    CHECK_THROWS_WITH_AS(zb_v(q, edges, c), doctest::Contains(words), error);
    CHECK_THROWS_WITH_AS(search::detail::require_v(q, edges, "some V"), doctest::Contains(words), error);
  };
  CHECK_NOTHROW(search::detail::require_v(v, e, "some V"));
  CHECK_THROWS_WITH_AS(search::detail::require_v(tests::chain_pipeline(6, 2, 6), e, "some V"), doctest::Contains("some V"), error);
  refused(tests::chain_pipeline(6, 2, 6), e, "6 stages on 2 groups");
  refused(tests::chain_pipeline(6, 3, 6), e, "stage 3");   // down and down again
  refused(tests::chain_pipeline(0, 0, 4), {}, "0 stages on 0 groups");
  for (int s = 0; s < 2 * p; ++s) {
    std::string const name = "stage " + std::to_string(s) + " ";
    pipeline other = v;
    other.stages[at(s)].group = (v.stages[at(s)].group + 1) % p;
    refused(other, e, name.c_str());
    if (s == 0) continue;
    other = v;
    other.stages[at(s)].micro_batch = 2;
    refused(other, e, name.c_str());
    passes::stage_edges edges = e;
    edges[at(s)].clear();
    refused(v, edges, name.c_str());
    edges[at(s)] = {s - 1, s - 1};
    refused(v, edges, name.c_str());
    if (s < 2) continue;
    edges[at(s)] = {s - 2, s - 1};
    refused(v, edges, name.c_str());
    edges[at(s)] = {s - 2};
    refused(v, edges, name.c_str());
  }
  CHECK_THROWS_WITH_AS(zb_v(v, e, tests::even_costs(5, 1, 1, 1)), doctest::Contains("costs of 5 stages"), error);
}
