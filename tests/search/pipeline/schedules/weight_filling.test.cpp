// tests/search/pipeline/schedules/weight_filling.test.cpp - weights passes stand where the rule puts them, told from a simulation of what
// came out
#include <tensorpar/search/pipeline/schedules/weight_filling.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <tensorpar/check/schedule_check.hpp>
#include "support/effort.hpp"
#include "support/pipelines.hpp"
#include "support/random_pipeline.hpp"

using namespace tensorpar;
using namespace tensorpar::search;
using tests::at;
using tests::lists;
using tests::random_source;

namespace {

using order = std::vector<pass_entry>;

/// Stages of random sizes with orders of forward and backward passes, and what they cost.
struct problem {
  passes::stage_edges e;
  pipeline p;
  simulation::pipeline_costs c;
  std::string text() const { return tests::text(e) + "; " + tests::text(p) + "; freed " + std::to_string(c.freed_at_backward); }
};
problem random_problem(random_source& r) {
  problem x;
  x.e = tests::random_dag(r, 1 + r.below(5), 50, false);
  x.p = tests::mixed_pipeline(x.e, r);
  switch (r.below(4)) {
    case 0: x.p = gpipe(x.p, x.e); break;
    case 1: x.p = one_f_one_b(x.p, x.e); break;
    case 2:
      for (auto& s : x.p.stages) s.k = 1 + r.below(3);
      x.p = k_f_k_b(x.p, x.e, in_flight_samples(x.p, x.e, in_flight_grouped));
      break;
    default: {   // any order that is valid, with several stages on a group
      x.p.groups.resize(at(1 + r.below(static_cast<int>(x.e.size()))));
      for (auto& s : x.p.stages) s.group = r.below(static_cast<int>(x.p.groups.size()));
      std::mt19937 draw(static_cast<unsigned>(r.next()));
      tests::random_order(x.p, x.e, draw);
    }
  }
  for (auto& s : x.p.stages) s.split_backward = r.chance(75);
  x.c = tests::mixed_costs(x.p, r, x.e);
  x.c.freed_at_backward = 0.25 * r.below(5);   // sums stay exact
  return x;
}

order without_weights(order o) {
  std::erase_if(o, [](pass_entry const& x) { return x.what == pass::weights; });
  return o;
}
/// The same orders with each weights pass right after its backward pass, or all of them at the end.
pipeline with_weights(pipeline p, bool at_once) {
  for (auto& o : p.schedule) {
    order all, last;
    for (pass_entry const& x : o) {
      all.push_back(x);
      if (x.what == pass::backward && p.stages[at(x.stage)].split_backward)
        (at_once ? all : last).push_back({x.stage, pass::weights, x.micro_batch});
    }
    all.insert(all.end(), last.begin(), last.end());
    o = all;
  }
  return p;
}
/// When what a forward or backward pass waits for is there, by samples, from the times of a run.
double arrival(problem const& x, simulation::pipeline_run const& r, pass_entry const& e) {
  bool const forward = e.what == pass::forward;
  i64 const size = x.p.stages[at(e.stage)].micro_batch, from = e.micro_batch * size, to = from + size;
  double t = 0;
  for (std::size_t g = 0; g < x.p.schedule.size(); ++g)
    for (std::size_t i = 0; i < x.p.schedule[g].size(); ++i) {
      pass_entry const& o = x.p.schedule[g][i];
      int const early = forward ? o.stage : e.stage, late = forward ? e.stage : o.stage;
      auto const& before = x.e[at(late)];
      if (o.what != e.what || std::find(before.begin(), before.end(), early) == before.end()) continue;
      i64 const b = x.p.stages[at(o.stage)].micro_batch;
      if (o.micro_batch * b >= to || (o.micro_batch + 1) * b <= from) continue;
      double delay = 0;
      for (auto const& m : x.c.transfers)
        if (m.from == early && m.to == late) delay = forward ? m.forward : m.backward;
      t = std::max(t, r.passes[g][i].end + delay);
    }
  return t;
}

}  // namespace

TEST_CASE("a weights pass stands between others exactly where its group would wait long enough or lack memory, the oldest first") {
  random_source r{1};
  int waits = 0, memory = 0, idle = 0, last = 0;
  for (int round = 0; round < test_effort::cases(400); ++round) {
    problem x = random_problem(r);
    weight_filling how;
    double const shares[] = {0, 0.5, 0.75, 1, 2};
    bool const limited = r.chance(50);
    how.fits = shares[r.below(limited ? 4 : 5)];   // where memory made room, what is left of a wait may fit one that takes half as long
    if (limited) how.limit = 1 + r.below(16);
    pipeline const before = x.p;
    REQUIRE(fill_weights(x.p, x.e, x.c, how));
    INFO("fits ", how.fits, ", limit ", how.limit, "; ", x.text());
    for (auto const& f : check_orders(x.p, x.e)) FAIL(f.text);
    pipeline rest = x.p;
    for (auto& o : rest.schedule) o = without_weights(o);
    REQUIRE(rest == before);
    auto const run = simulate_pipeline(x.p, x.e, x.c, true);
    for (std::size_t g = 0; g < x.p.schedule.size(); ++g) {
      order const& o = x.p.schedule[g];
      std::size_t end = o.size();
      while (end > 0 && o[end - 1].what == pass::weights) --end;
      last += static_cast<int>(o.size() - end);
      order pending;
      double held = 0, now = 0;
      auto const units = [&](pass_entry const& e) { return x.c.stages[at(e.stage)].activation; };
      auto const seconds = [&] { return x.c.stages[at(pending.front().stage)].weights; };
      for (std::size_t i = 0; i < end; ++i) {
        pass_entry const& next = *std::find_if(o.begin() + static_cast<std::ptrdiff_t>(i), o.end(),
                                               [](pass_entry const& e) { return e.what != pass::weights; });
        double const wait = arrival(x, run, next) - now;
        bool const fits = !pending.empty() && wait > 0 && wait >= how.fits * seconds();
        bool const lacks = !pending.empty() && next.what == pass::forward && held + units(next) > how.limit;
        if (o[i].what == pass::weights) {
          REQUIRE(o[i] == pending.front());
          REQUIRE((fits || lacks));
          waits += fits && !lacks;
          memory += lacks && !fits;
          pending.erase(pending.begin());
          held -= (1 - x.c.freed_at_backward) * units(o[i]);
        } else {
          REQUIRE_FALSE((fits || lacks));
          idle += wait > 0 && !pending.empty();
          bool const split = x.p.stages[at(o[i].stage)].split_backward;
          if (o[i].what == pass::forward) held += units(o[i]);
          else held -= (split ? x.c.freed_at_backward : 1) * units(o[i]);
          if (o[i].what == pass::backward && split) pending.push_back({o[i].stage, pass::weights, o[i].micro_batch});
        }
        now = run.passes[g][i].end;
      }
      REQUIRE(order(o.begin() + static_cast<std::ptrdiff_t>(end), o.end()) == pending);
    }
  }
  CHECK(waits > test_effort::cases(400) / 10);
  CHECK(memory > test_effort::cases(400) / 10);
  CHECK(idle > test_effort::cases(400) / 10);
  CHECK(last > test_effort::cases(400) / 10);
}

TEST_CASE("waits that a weights pass fits into delay nobody: as fast as with all of them at the end, or faster") {
  random_source r{2};
  int faster = 0;
  for (int round = 0; round < test_effort::cases(400); ++round) {
    problem x = random_problem(r);
    pipeline const late = with_weights(x.p, false);
    REQUIRE(fill_weights(x.p, x.e, x.c));
    INFO(x.text());
    auto const got = simulate_pipeline(x.p, x.e, x.c, true), other = simulate_pipeline(late, x.e, x.c, true);
    for (std::size_t g = 0; g < x.p.schedule.size(); ++g) {
      auto const starts = [&](pipeline const& p, simulation::pipeline_run const& run) {
        std::vector<double> t;
        for (std::size_t i = 0; i < p.schedule[g].size(); ++i)
          if (p.schedule[g][i].what != pass::weights) t.push_back(run.passes[g][i].start);
        return t;
      };
      REQUIRE(starts(x.p, got) == starts(late, other));
      CHECK(got.last[g] <= other.last[g]);
    }
    faster += got.makespan < other.makespan;
  }
  CHECK(faster > test_effort::cases(400) / 10);
}

TEST_CASE("a limit is kept wherever weights passes right after their backward passes keep it") {
  random_source r{3};
  int kept = 0, not_kept = 0, needed = 0;
  for (int round = 0; round < test_effort::cases(400); ++round) {
    problem x = random_problem(r);
    auto const least = simulate_pipeline(with_weights(x.p, true), x.e, x.c), most = simulate_pipeline(with_weights(x.p, false), x.e, x.c);
    weight_filling how;
    how.limit = 1 + r.below(20);
    REQUIRE(fill_weights(x.p, x.e, x.c, how));
    INFO("limit ", how.limit, "; ", x.text());
    auto const got = simulate_pipeline(x.p, x.e, x.c);
    for (std::size_t g = 0; g < x.p.schedule.size(); ++g) {
      REQUIRE(got.activations[g] <= std::max(how.limit, least.activations[g]));
      ++(least.activations[g] <= how.limit ? kept : not_kept);
      needed += least.activations[g] <= how.limit && most.activations[g] > how.limit;
    }
  }
  CHECK(kept > test_effort::cases(400) / 10);
  CHECK(not_kept > test_effort::cases(400) / 10);
  CHECK(needed > test_effort::cases(400) / 20);
}

TEST_CASE("orders that wait for ever, as the checker says, are left alone") {
  random_source r{4};
  int forever = 0, fine = 0;
  for (int round = 0; round < test_effort::cases(400); ++round) {
    problem x = random_problem(r);
    for (auto& o : x.p.schedule) {   // kinds still ascend and forward comes before backward in each stage; else anything goes
      order const old = without_weights(o);
      o.clear();
      std::vector<int> done(3 * x.p.stages.size(), 0);
      while (o.size() < old.size()) {
        pass_entry e = old[at(r.below(static_cast<int>(old.size())))];
        if (r.chance(60)) e.what = pass::forward;
        int& k = done[3 * at(e.stage) + at(static_cast<int>(e.what))];
        if (k == x.p.micro_batches(e.stage) || (e.what == pass::backward && k >= done[3 * at(e.stage)])) continue;
        o.push_back({e.stage, e.what, k++});
      }
    }
    pipeline whole = x.p;
    for (auto& s : whole.stages) s.split_backward = false;
    auto const found = check_orders(whole, x.e);
    pipeline q = x.p;
    INFO(x.text());
    REQUIRE(fill_weights(q, x.e, x.c) == found.empty());
    ++(found.empty() ? fine : forever);
    if (!found.empty()) CHECK(q == x.p);
    else CHECK(check_orders(q, x.e).empty());
  }
  CHECK(forever > test_effort::cases(400) / 10);
  CHECK(fine > test_effort::cases(400) / 10);
}

TEST_CASE("orders that hold something else are refused, and not touched") {
  auto const e = passes::chain_of_stages(2);
  auto const c = tests::even_costs(2, 1, 1, 1);
  pipeline p = tests::chain_pipeline(2, 2, 2);
  for (auto& s : p.stages) s.split_backward = true;
  pipeline const plain = gpipe(tests::chain_pipeline(2, 2, 2), e), split = gpipe(p, e);
  auto const refused = [&](std::vector<order> const& o, simulation::pipeline_costs const& costs, char const* words) {
    pipeline q = p;
    q.schedule = o;
    pipeline const before = q;
    CHECK_THROWS_WITH_AS(fill_weights(q, e, costs), doctest::Contains(words), error);
    CHECK(q == before);
  };
  refused(split.schedule, c, "a pass of stage 0 (at order of group 0");
  auto const wrong = [&](std::size_t group, pass_entry const& x) {
    auto o = plain.schedule;
    o[group].back() = x;
    return o;
  };
  refused(wrong(1, {2, pass::backward, 1}), c, "a pass of stage 2 (at order of group 1");
  refused(wrong(1, {-1, pass::backward, 1}), c, "a pass of stage -1");
  refused(wrong(0, {0, pass::backward, 2}), c, "forward and backward passes");
  refused(wrong(0, {0, pass::backward, -1}), c, "forward and backward passes");
  refused(wrong(0, {0, pass::weights, 0}), c, "forward and backward passes");
  refused({plain.schedule[0]}, c, "orders of 1 groups");
  refused(plain.schedule, tests::even_costs(1, 1, 1, 1), "costs of 1 stages");
  refused(plain.schedule, tests::even_costs(2, 1, -1, 1), "backward of -1");
  pipeline good = p;
  good.schedule = plain.schedule;
  CHECK(fill_weights(good, e, c));
}
