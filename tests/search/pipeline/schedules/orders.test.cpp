// tests/search/pipeline/schedules/orders.test.cpp - orders by fixed rules: where each pass stands, and how many samples stages keep in
// flight
#include <tensorpar/search/pipeline/schedules/orders.hpp>
#include <doctest/doctest.h>

#include <array>
#include <tensorpar/check/schedule_check.hpp>
#include "support/effort.hpp"
#include "support/pipelines.hpp"

using namespace tensorpar;
using namespace tensorpar::search;
using tests::at;
using tests::lists;
using tests::random_source;

namespace {

/// Random stages of random sizes, several of them on a group, some of which split their backward pass.
pipeline shared_groups(lists const& e, random_source& r) {
  pipeline p = tests::mixed_pipeline(e, r);
  p.groups.resize(at(1 + r.below(static_cast<int>(e.size()))));
  for (auto& s : p.stages) {
    s.group = r.below(static_cast<int>(p.groups.size()));
    s.split_backward = r.chance(50);
  }
  return p;
}

/// By stage, the smallest number of whole micro-batches that is enough for k of them and for what each successor asks; all, if none is.
template <class Rule> std::vector<i64> smallest_enough(pipeline const& p, passes::stage_edges const& e, Rule const& rule) {
  std::vector<i64> r(p.stages.size(), 0);
  for (int s = static_cast<int>(r.size()) - 1; s >= 0; --s) {
    pipeline_stage const& x = p.stages[at(s)];
    auto const enough = [&](i64 samples) {
      bool good = samples >= x.k * x.micro_batch;
      for (int t = s + 1; t < static_cast<int>(r.size()); ++t) {
        pipeline_stage const& y = p.stages[at(t)];
        bool const feeds = std::find(e[at(t)].begin(), e[at(t)].end(), s) != e[at(t)].end();
        good = good && (!feeds || samples >= rule(i64{x.k}, x.micro_batch, i64{y.k}, y.micro_batch, r[at(t)]));
      }
      return good;
    };
    while (r[at(s)] < p.mini_batch && !enough(r[at(s)])) r[at(s)] += x.micro_batch;
  }
  return r;
}

}  // namespace

TEST_CASE("kFkB: before backward pass j stand the warm-up and k forward passes for each k backward passes that are done") {
  for (int m = 1; m <= 12; ++m)
    for (int k = 1; k <= 5; ++k)
      for (int warm_up = 0; warm_up <= m + 2; ++warm_up)
        for (bool split : {false, true}) {
          CAPTURE(m); CAPTURE(k); CAPTURE(warm_up); CAPTURE(split);
          pipeline p = tests::chain_pipeline(3, 3, m);
          p.stages[1].split_backward = split;
          auto const o = k_f_k_b_order(p, 1, warm_up, k);
          REQUIRE(o.size() == at(split ? 3 * m : 2 * m));
          int const first = std::max(warm_up, k);   // fewer could not be followed by k backward passes
          int done[2] = {0, 0};
          for (std::size_t i = 0; i < o.size(); ++i) {
            REQUIRE(o[i].stage == 1);
            if (o[i].what == pass::weights) {       // at once, as if it did not split
              REQUIRE(o[i - 1] == pass_entry{1, pass::backward, o[i].micro_batch});
              continue;
            }
            if (o[i].what == pass::backward) REQUIRE(done[0] == std::min(m, first + done[1] / k * k));
            REQUIRE(o[i].micro_batch == done[static_cast<int>(o[i].what)]++);
          }
        }
}

TEST_CASE("GPipe: valid on any stages and groups; forward passes first, by stage, then backward passes, by stage from the last one") {
  random_source r{1};
  for (int round = 0; round < test_effort::cases(300); ++round) {
    lists const e = tests::random_dag(r, 1 + r.below(7), 40, false);
    pipeline const p = shared_groups(e, r), q = gpipe(p, e);
    INFO(tests::text(e), "; ", tests::text(q));
    for (auto const& f : check_orders(q, e)) FAIL(f.text);
    for (auto const& o : q.schedule) {
      auto const place = [](pass_entry const& x) {
        bool const forward = x.what == pass::forward;
        return std::array<int, 4>{!forward, forward ? x.stage : -x.stage, x.micro_batch, x.what == pass::weights};
      };
      CHECK(std::is_sorted(o.begin(), o.end(), [&](pass_entry const& x, pass_entry const& y) { return place(x) < place(y); }));
    }
    pipeline rest = q;
    rest.schedule = p.schedule;
    CHECK(rest == p);
    if (p.groups.size() != p.stages.size()) continue;
    for (i64 samples : simulate_pipeline(q, e, tests::mixed_costs(p, r)).in_flight) CHECK(samples == p.mini_batch);
  }
}

TEST_CASE("samples in flight: a diamond of mixed sizes, with rows of Table 3.2 worked out by hand") {
  passes::stage_edges const e{{}, {0}, {0}, {1, 2}};
  pipeline p = tests::chain_pipeline(4, 4, 32);
  i64 const sizes[] = {1, 1, 4, 2};
  int const ks[] = {1, 2, 1, 1};
  for (std::size_t s = 0; s < 4; ++s) {
    p.stages[s].micro_batch = sizes[s];
    p.stages[s].k = ks[s];
  }
  // 3: k b = 2. 2: row 10, 2 + 4 - 2 + 4 = 8. 1: row 7, 2 + 2 = 4. 0: row 2 asks for 4 + 1 = 5, row 9 for 8 + 4 = 12
  CHECK(in_flight_samples(p, e, in_flight_table) == std::vector<i64>{12, 4, 8, 2});
  p.mini_batch = 8;
  CHECK(in_flight_samples(p, e, in_flight_table) == std::vector<i64>{8, 4, 8, 2});
  p.mini_batch = 32;
  p.stages[2].micro_batch = 1;   // 2: row 9, 2 + 2 = 4. 0: row 7 asks for 4 + 1, as row 2 does
  CHECK(in_flight_samples(p, e, in_flight_table) == std::vector<i64>{5, 4, 4, 2});
}

TEST_CASE("samples in flight: the smallest whole micro-batches that all successors are content with") {
  random_source r{2};
  int several = 0;
  for (int round = 0; round < test_effort::cases(500); ++round) {
    lists const e = tests::random_dag(r, 1 + r.below(8), 40, false);
    pipeline p = tests::mixed_pipeline(e, r, 48);
    for (auto& s : p.stages) s.k = 1 + r.below(4);
    INFO(tests::text(e), "; ", tests::text(p));
    auto const agrees = [&](auto const& rule) {
      auto const got = in_flight_samples(p, e, rule);
      CHECK(got == smallest_enough(p, e, rule));
      return got;
    };
    agrees(in_flight_table);
    auto const samples = agrees(in_flight_grouped);
    // a rule that looks at what it is given: the arguments are this stage's, then the successor's
    agrees([](i64 k_x, i64 b_x, i64 k_y, i64 b_y, i64 i_y) { return i_y + 2 * k_x + b_x + 3 * k_y + 5 * b_y; });
    for (std::size_t s = 0; s < e.size(); ++s) several += e[s].size() > 1 && samples[s] < p.mini_batch;
  }
  CHECK(several > test_effort::cases(500) / 4);
}

TEST_CASE("kFkB and 1F1B on any stages: valid, and no stage keeps more in flight than it was given") {
  random_source r{3};
  for (int round = 0; round < test_effort::cases(300); ++round) {
    lists const e = tests::random_dag(r, 1 + r.below(7), 40, false);
    pipeline p = tests::mixed_pipeline(e, r, 24);
    auto const name = r.permutation(static_cast<int>(e.size()));   // groups need not be in the order of stages
    for (std::size_t s = 0; s < e.size(); ++s) {
      p.stages[s].group = name[s];
      p.stages[s].k = 1 + r.below(4);
      p.stages[s].split_backward = r.chance(30);
    }
    auto const c = tests::mixed_costs(p, r, e);
    auto const samples = in_flight_samples(p, e, in_flight_grouped);
    pipeline const q = k_f_k_b(p, e, samples), one = one_f_one_b(p, e);
    INFO(tests::text(e), "; ", tests::text(q));
    for (pipeline const* x : {&q, &one})
      for (auto const& f : check_orders(*x, e)) FAIL(f.text);
    CHECK(simulate_pipeline(q, e, c).in_flight == samples);   // in the order nothing comes back before the warm-up is over
    pipeline ones = p;
    for (auto& s : ones.stages) s.k = 1;
    CHECK(simulate_pipeline(one, e, c).in_flight == in_flight_samples(ones, e, in_flight));
    for (std::size_t s = 0; s < e.size(); ++s) CHECK(one.stages[s].k == 1);
  }
}

TEST_CASE("what fixed rules cannot order is refused in words") {
  auto const e = passes::chain_of_stages(4);
  pipeline const own = tests::chain_pipeline(4, 4, 4), shared = tests::chain_pipeline(4, 2, 4);
  CHECK_THROWS_WITH_AS(k_f_k_b(shared, e, {1, 1, 1, 1}), doctest::Contains("several stages on one group under kFkB"), error);
  CHECK_THROWS_WITH_AS(one_f_one_b(shared, e), doctest::Contains("several stages on one group"), error);
  CHECK_NOTHROW(gpipe(shared, e));
  CHECK_THROWS_WITH_AS(k_f_k_b(own, e, {1, 1, 1}), doctest::Contains("3 in-flight samples"), error);
  CHECK_THROWS_WITH_AS(k_f_k_b(own, e, {1, 1, 1, 1, 1}), doctest::Contains("4, one per stage"), error);
  pipeline uneven = own;
  uneven.stages[2].micro_batch = 3;
  CHECK_THROWS_WITH_AS(gpipe(uneven, e), doctest::Contains("a micro-batch of 3 samples"), error);
  CHECK_THROWS_WITH_AS(in_flight_samples(uneven, e, in_flight_table), doctest::Contains("stage 2"), error);
  CHECK_THROWS_WITH_AS(gpipe(own, passes::chain_of_stages(3)), doctest::Contains("edges of 3 stages"), error);
  CHECK_THROWS_WITH_AS(gpipe(own, passes::stage_edges{{1}, {}, {}, {}}), doctest::Contains("an edge from stage 1"), error);
}
