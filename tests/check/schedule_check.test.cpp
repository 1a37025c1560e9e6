// tests/check/schedule_check.test.cpp - each condition violated by hand, and random orders compared with carrying them out sample by sample
#include <tensorpar/check/schedule_check.hpp>
#include <doctest/doctest.h>

#include <array>
#include <tensorpar/check/schedule_findings.hpp>
#include <tensorpar/search/pipeline/schedules/zero_bubble.hpp>
#include "support/effort.hpp"
#include "support/pipelines.hpp"
#include "support/shrink.hpp"

using namespace tensorpar;
using namespace tensorpar::search;
using tests::at;

namespace {

schedule_finding const* first(schedule_findings const& f, schedule_fault kind) {
  for (auto const& x : f)
    if (x.fault == kind) return &x;
  return nullptr;
}
std::string all(schedule_findings const& f) {
  std::string s;
  for (auto const& x : f) s += x.text + "\n";
  return s;
}
/// One operator per stage.
schedule_findings findings(pipeline const& p, passes::stage_edges const& e, int devices = 100) { return check_pipeline(e, e, p, devices); }

/// The laws without the checker: groups take turns, a pass runs once all samples that it needs are there, sample by sample. True if every
/// pass of every stage ran exactly once, in ascending order.
bool carried_out(pipeline const& p, passes::stage_edges const& e) {
  std::size_t const n = p.stages.size(), samples = static_cast<std::size_t>(p.mini_batch);
  std::vector<std::vector<char>> done[3];
  for (auto& d : done) d.assign(n, std::vector<char>(samples, 0));
  std::vector<std::vector<int>> out(n);
  for (std::size_t s = 0; s < n; ++s)
    for (int u : e[s]) out[at(u)].push_back(static_cast<int>(s));
  std::vector<std::size_t> place(p.schedule.size(), 0);
  auto const runs = [&](pass_entry const& x, std::size_t g) {
    if (x.stage < 0 || at(x.stage) >= n || at(p.stages[at(x.stage)].group) != g) return false;
    pipeline_stage const& s = p.stages[at(x.stage)];
    std::size_t const b = static_cast<std::size_t>(s.micro_batch), w = at(static_cast<int>(x.what));
    if (w == 2 && !s.split_backward) return false;
    if (x.micro_batch < 0 || (at(x.micro_batch) + 1) * b > samples) return false;
    for (std::size_t i = 0; i < at(x.micro_batch) * b; ++i)
      if (!done[w][at(x.stage)][i]) return false;   // ascending
    for (std::size_t i = at(x.micro_batch) * b; i < (at(x.micro_batch) + 1) * b; ++i) {
      if (done[w][at(x.stage)][i]) return false;
      if (w > 0 && !done[w - 1][at(x.stage)][i]) return false;
      if (w == 0)
        for (int u : e[at(x.stage)])
          if (!done[0][at(u)][i]) return false;
      if (w == 1)
        for (int v : out[at(x.stage)])
          if (!done[1][at(v)][i]) return false;
    }
    for (std::size_t i = at(x.micro_batch) * b; i < (at(x.micro_batch) + 1) * b; ++i) done[w][at(x.stage)][i] = 1;
    return true;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t g = 0; g < p.schedule.size(); ++g)
      while (place[g] < p.schedule[g].size() && runs(p.schedule[g][place[g]], g)) {
        ++place[g];
        moved = true;
      }
  }
  for (std::size_t g = 0; g < p.schedule.size(); ++g)
    if (place[g] < p.schedule[g].size()) return false;
  for (std::size_t s = 0; s < n; ++s)
    for (std::size_t w = 0; w < (p.stages[s].split_backward ? 3u : 2u); ++w)
      for (char c : done[w][s])
        if (!c) return false;
  return true;
}

/// A random change of a random group's order; false if nothing changed.
bool mutate(pipeline& p, tests::random_source& r) {
  auto& o = p.schedule[at(r.below(static_cast<int>(p.schedule.size())))];
  int const n = static_cast<int>(o.size());
  if (n < 2) return false;
  auto const before = o;
  int const i = r.below(n), j = r.below(n);
  switch (r.below(6)) {
    case 0: std::swap(o[at(i)], o[at(j)]); break;
    case 1: o.erase(o.begin() + i); break;
    case 2: o.insert(o.begin() + i, o[at(j)]); break;
    case 3: std::rotate(o.begin() + std::min(i, j), o.begin() + std::min(i, j) + 1, o.begin() + std::max(i, j) + 1); break;
    case 4: std::reverse(o.begin() + std::min(i, j), o.begin() + std::max(i, j) + 1); break;
    default: {  // another pass, micro-batch or stage
      pass_entry& x = o[at(i)];
      if (r.chance(40)) x.what = static_cast<pass>(r.below(3));
      else if (r.chance(60)) x.micro_batch += r.below(5) - 2;
      else x.stage = r.below(static_cast<int>(p.stages.size()) + 2) - 1;
    }
  }
  return o != before;
}

}  // namespace

TEST_CASE("a valid pipeline has no findings") {
  auto const p = one_f_one_b(tests::chain_pipeline(3, 3, 5), passes::chain_of_stages(3));
  CHECK(all(findings(p, passes::chain_of_stages(3), 3)) == "");
  CHECK(carried_out(p, passes::chain_of_stages(3)));
}

TEST_CASE("C1: stages are convex and partition the operators") {
  auto p = one_f_one_b(tests::chain_pipeline(2, 2, 2), passes::chain_of_stages(2));
  tests::lists const line{{}, {0}, {1}};
  passes::stage_edges const e = passes::chain_of_stages(2);
  p.stages[0].nodes = {0, 1};
  p.stages[1].nodes = {2};
  CHECK(all(check_pipeline(line, e, p, 2)) == "");
  p.stages[1].nodes = {1, 2};
  CHECK(all(check_stages(line, e, p, 2)) == "C1: operator 1 is in stage 0 and in stage 1\n");
  p.stages[0].nodes = {0};
  p.stages[1].nodes = {2};
  CHECK(all(check_stages(line, e, p, 2)) == "C1: operator 1 is in no stage\n");
  p.stages[0].nodes = {0, 2};
  p.stages[1].nodes = {1};
  auto const f = check_stages(line, e, p, 2);
  REQUIRE(first(f, schedule_fault::c1));
  CHECK(first(f, schedule_fault::c1)->text == "C1: stage 0 is not convex: a path leaves it and comes back");
  CHECK(first(f, schedule_fault::c2) != nullptr);   // and 1 -> 2 leads back from stage 1 to stage 0
  p.stages[0].nodes = {0, 7};
  CHECK(all(check_stages(line, e, p, 2)).find("C1: stage 0 has operator 7, which does not exist") == 0);
  p.stages[0].nodes = {};
  CHECK(all(check_stages(line, e, p, 2)).find("C1: stage 0 has no operator") == 0);
}

TEST_CASE("C2: an edge between operators of two stages is an edge of the stages, from an earlier to a later one") {
  auto p = tests::chain_pipeline(2, 2, 2);
  CHECK(all(check_stages(tests::lists{{}, {0}}, passes::stage_edges{{}, {}}, p, 2)) ==
        "C2: operator 0 of stage 0 feeds operator 1 of stage 1, but no edge of the stages says so\n");
  CHECK(all(check_stages(tests::lists{{}, {}}, passes::stage_edges{{1}, {}}, p, 2)) ==
        "C2: an edge from stage 1 to stage 0: stages stand in topological order\n");
  CHECK(all(check_stages(tests::lists{{}, {}}, passes::stage_edges{{}, {0}}, p, 2)) == "");   // more order than needed is allowed
  CHECK(all(check_stages(tests::lists{{}, {}}, passes::stage_edges{{}, {5}}, p, 2)) ==
        "form: an edge from stage 5, which does not exist, to stage 1\n");
}

TEST_CASE("C3: groups are disjoint and within the cluster") {
  auto p = one_f_one_b(tests::chain_pipeline(2, 2, 2), passes::chain_of_stages(2));
  passes::stage_edges const e = passes::chain_of_stages(2);
  p.groups = {{0, 2}, {1, 1}};
  CHECK(all(findings(p, e, 4)) == "C3: device 1 is in group 0 and in group 1\n");
  p.groups = {{0, 2}, {2, 3}};
  CHECK(all(findings(p, e, 4)) == "C3: group 1 has devices 2 to 4 of 4\n");
  p.groups = {{0, 2}, {2, 0}};
  CHECK(first(findings(p, e, 4), schedule_fault::c3));
  p.groups = {{0, 2}, {-1, 1}};
  CHECK(first(findings(p, e, 4), schedule_fault::c3));
  p.groups = {{0, 2}, {2, 2}};
  p.stages[1].group = 2;
  CHECK(all(check_orders(p, e)) == "C3: stage 1 runs on group 2, which does not exist\n");
}

TEST_CASE("C4: each pass once, ascending, forward before backward before weights") {
  auto const e = passes::chain_of_stages(1);
  auto p = tests::chain_pipeline(1, 1, 2);
  auto const say = [&](std::vector<pass_entry> o) {
    p.schedule = {std::move(o)};
    CHECK_FALSE(carried_out(p, e));
    return all(findings(p, e));
  };
  constexpr pass F = pass::forward, B = pass::backward, W = pass::weights;
  CHECK(say({{0, F, 0}, {0, B, 0}, {0, F, 1}}) == "C4: backward 1 of stage 0 is missing\n");
  CHECK(say({{0, F, 0}, {0, F, 0}, {0, B, 0}, {0, F, 1}, {0, B, 1}}) ==
        "C4: forward 0 of stage 0 in the order of group 0 is there twice\n");
  CHECK(say({{0, F, 1}, {0, F, 0}, {0, B, 0}, {0, B, 1}}) == "C4: forward 1 of stage 0 comes before that of an earlier micro-batch\n");
  CHECK(say({{0, F, 0}, {0, F, 1}, {0, B, 1}, {0, B, 0}}) == "C4: backward 1 of stage 0 comes before that of an earlier micro-batch\n");
  CHECK(say({{0, F, 0}, {0, B, 0}, {0, B, 1}, {0, F, 1}}) == "C4: backward 1 of stage 0 comes before its forward pass\n");
  CHECK(say({{0, F, 0}, {0, B, 0}, {0, F, 1}, {0, B, 1}, {0, W, 0}}) ==
        "C4: weights 0 of stage 0 in the order of group 0: the stage has no such pass\n");
  CHECK(say({{0, F, 0}, {0, B, 0}, {0, F, 1}, {0, B, 1}, {0, F, 2}}) ==
        "C4: forward 2 of stage 0 in the order of group 0: the stage has no such pass\n");
  p.stages[0].split_backward = true;
  CHECK(say({{0, F, 0}, {0, W, 0}, {0, B, 0}, {0, F, 1}, {0, B, 1}, {0, W, 1}}) ==
        "C4: weights 0 of stage 0 comes before its backward pass\n");
  CHECK(say({{0, F, 0}, {0, B, 0}, {0, F, 1}, {0, B, 1}, {0, W, 1}}) == "C4: weights 0 of stage 0 is missing\n");
  p.schedule = {{{0, F, 0}, {0, B, 0}, {0, F, 1}, {0, B, 1}, {0, W, 0}, {0, W, 1}}};
  CHECK(all(findings(p, e)) == "");
  p.schedule = {{{0, F, 0}, {0, B, 0}, {0, F, 1}, {0, B, 1}, {0, W, 0}}};
  auto const missing = check_orders(p, e);
  REQUIRE(missing.size() == 1);
  CHECK(missing[0] == schedule_finding{schedule_fault::c4, 0, W, 1, "C4: weights 1 of stage 0 is missing"});
}

TEST_CASE("C5 within a group: what feeds a stage comes before it, by samples") {
  auto p = tests::chain_pipeline(2, 1, 4);
  p.stages[0].micro_batch = 2;
  p.stages[1].micro_batch = 4;
  auto const e = passes::chain_of_stages(2);
  constexpr pass F = pass::forward, B = pass::backward;
  p.schedule = {{{0, F, 0}, {0, F, 1}, {1, F, 0}, {1, B, 0}, {0, B, 0}, {0, B, 1}}};
  CHECK(all(findings(p, e)) == "");
  p.schedule = {{{0, F, 0}, {1, F, 0}, {0, F, 1}, {1, B, 0}, {0, B, 0}, {0, B, 1}}};
  CHECK(all(findings(p, e)) == "C5: forward 0 of stage 1 comes before forward 1 of stage 0 in the order of group 0\n");
  p.schedule = {{{0, F, 0}, {0, F, 1}, {1, F, 0}, {0, B, 0}, {1, B, 0}, {0, B, 1}}};
  auto const f = check_orders(p, e);
  REQUIRE(f.size() == 1);
  CHECK(f[0].fault == schedule_fault::c5);
  CHECK(f[0].stage == 0);
  CHECK(f[0].what == B);
  CHECK(f[0].micro_batch == 0);
  CHECK(f[0].text == "C5: backward 0 of stage 0 comes before backward 0 of stage 1 in the order of group 0");
}

TEST_CASE("C5: sizes of which one divides the other") {
  auto p = tests::chain_pipeline(2, 2, 6);
  p.stages[0].micro_batch = 2;
  p.stages[1].micro_batch = 3;
  p.schedule.resize(2);
  for (int s = 0; s < 2; ++s)
    for (pass w : {pass::forward, pass::backward})
      for (int k = 0; k < p.micro_batches(s); ++k) p.schedule[at(s)].push_back({s, w, k});
  CHECK(all(check_orders(p, passes::chain_of_stages(2))) ==
        "C5: micro-batches of 2 samples of stage 0 before 3 of stage 1: neither divides the other\n");
}

TEST_CASE("a deadlock is said as who waits for whom") {
  auto p = tests::chain_pipeline(2, 2, 2);
  constexpr pass F = pass::forward, B = pass::backward;
  // stage 1 wants both micro-batches before it gives the first gradient; stage 0 wants that gradient before it sends the second
  p.schedule = {{{0, F, 0}, {0, B, 0}, {0, F, 1}, {0, B, 1}}, {{1, F, 0}, {1, F, 1}, {1, B, 0}, {1, B, 1}}};
  auto const f = check_orders(p, passes::chain_of_stages(2));
  REQUIRE(f.size() == 1);
  CHECK(f[0].fault == schedule_fault::deadlock);
  CHECK(f[0].text.find("forward 1 of stage 1 on group 1 waits for forward 1 of stage 0 on group 0") != std::string::npos);
  CHECK(f[0].text.find("backward 0 of stage 0 on group 0 waits for backward 0 of stage 1 on group 1") != std::string::npos);
  CHECK_FALSE(carried_out(p, passes::chain_of_stages(2)));
}

TEST_CASE("malformed values are findings, not crashes") {
  auto const e = passes::chain_of_stages(2);
  auto const good = one_f_one_b(tests::chain_pipeline(2, 2, 2), e);
  auto p = good;
  p.schedule.pop_back();
  CHECK(first(check_orders(p, e), schedule_fault::form));
  p = good;
  p.schedule[0][0].stage = 1;
  CHECK(first(check_orders(p, e), schedule_fault::form));
  p = good;
  p.schedule[0][0] = {1 << 30, static_cast<pass>(9), -5};
  CHECK(first(check_orders(p, e), schedule_fault::form));
  p = good;
  p.schedule[0][0].micro_batch = -1;
  CHECK(first(check_orders(p, e), schedule_fault::c4));
  p = good;
  p.mini_batch = -4;
  CHECK(first(check_orders(p, e), schedule_fault::form));
  p = good;
  p.mini_batch = i64{1} << 40;
  CHECK(first(check_orders(p, e), schedule_fault::form));
  p = good;
  p.stages[0].micro_batch = 0;
  CHECK(first(check_orders(p, e), schedule_fault::form));
  CHECK(first(check_orders(good, passes::chain_of_stages(3)), schedule_fault::form));
  CHECK(first(check_pipeline(e, passes::chain_of_stages(1), good, 2), schedule_fault::form));
  p = good;
  p.groups.clear();
  CHECK(first(check_orders(p, e), schedule_fault::c3));
  CHECK(check_orders(pipeline{}, passes::stage_edges{}).size() == 1);   // a mini-batch of nothing
  p = good;
  for (int i = 0; i < 1000; ++i) p.schedule[0].push_back({0, pass::forward, 0});
  CHECK(check_orders(p, e).size() == 100);
}

TEST_CASE("random orders of random stages: a finding exactly where carrying them out fails") {
  int valid = 0, invalid = 0, deadlocks = 0;
  auto const holds = [&](tests::lists const& g, u64 seed) {
    tests::random_source r{seed};
    pipeline p = tests::mixed_pipeline(g, r);
    auto const e = g;
    if (r.chance(30)) p = zb_h1(p, e);
    else p = r.chance(50) ? one_f_one_b(p, e) : gpipe(p, e);
    if (r.chance(30) && p.stages.size() > 1) {   // two stages on one group, one order after the other or dealt together
      std::size_t const a = at(r.below(static_cast<int>(p.stages.size()))), b = at(r.below(static_cast<int>(p.stages.size())));
      if (a != b) {
        std::vector<pass_entry> both;
        auto &x = p.schedule[a], &y = p.schedule[b];
        for (std::size_t i = 0, j = 0; i < x.size() || j < y.size();)
          if (j == y.size() || (i < x.size() && r.chance(50))) both.push_back(x[i++]);
          else both.push_back(y[j++]);
        x = both;
        y.clear();
        p.stages[b].group = static_cast<int>(a);
      }
    }
    if (r.chance(25))   // any order of each group in which passes ascend: often a deadlock
      for (auto& o : p.schedule) {
        std::vector<pass_entry> dealt;
        std::vector<std::array<int, 3>> next(p.stages.size(), {0, 0, 0});
        auto rest = o;
        while (!rest.empty()) {
          pass_entry x = rest[at(r.below(static_cast<int>(rest.size())))];
          int& k = next[at(x.stage)][at(static_cast<int>(x.what))];
          x.micro_batch = k;
          auto const found = std::find(rest.begin(), rest.end(), x);
          if (x.what != pass::forward && next[at(x.stage)][at(static_cast<int>(x.what) - 1)] <= k) continue;
          ++k;
          dealt.push_back(x);
          rest.erase(found);
        }
        o = dealt;
      }
    for (int changes = r.below(3); changes > 0; --changes) mutate(p, r);
    auto const f = check_orders(p, e);
    bool const works = carried_out(p, e);
    ++(works ? valid : invalid);
    if (first(f, schedule_fault::deadlock)) ++deadlocks;
    if (f.empty() == works) return true;
    MESSAGE(tests::text(p) << "\n" << all(f) << (works ? "works" : "fails"));
    return false;
  };
  for (u64 seed = 0; seed < static_cast<u64>(test_effort::cases(3000)); ++seed) {
    tests::random_source r{seed * 7919};
    auto const g = tests::random_dag(r, 1 + r.below(5), 40, false);
    if (holds(g, seed)) continue;
    auto const small = tests::shrink(g, [&](tests::lists const& h) { return !holds(h, seed); });
    FAIL("seed ", seed, ": ", tests::text(small));
  }
  CHECK(valid > test_effort::cases(800));
  CHECK(invalid > test_effort::cases(800));
  CHECK(deadlocks > test_effort::cases(50));
}

TEST_CASE("a pass dropped, doubled, or swapped with one of its kind is always found") {
  for (u64 seed = 0; seed < static_cast<u64>(test_effort::cases(600)); ++seed) {
    tests::random_source r{seed * 104729 + 1};
    auto const e = tests::random_dag(r, 1 + r.below(5), 40, false);
    pipeline p = tests::mixed_pipeline(e, r);
    p = r.chance(50) ? zb_h2(p, e) : one_f_one_b(p, e);
    REQUIRE(check_orders(p, e).empty());
    auto& o = p.schedule[at(r.below(static_cast<int>(p.schedule.size())))];
    int const i = r.below(static_cast<int>(o.size()));
    auto const kind = r.below(3);
    if (kind == 0) o.erase(o.begin() + i);
    if (kind == 1) o.insert(o.begin() + r.below(static_cast<int>(o.size())), o[at(i)]);
    if (kind == 2) {
      int j = -1;
      for (int k = 0; k < static_cast<int>(o.size()); ++k)
        if (k != i && o[at(k)].what == o[at(i)].what && o[at(k)].stage == o[at(i)].stage) j = k;
      if (j < 0) continue;
      std::swap(o[at(i)], o[at(j)]);
    }
    auto const f = check_orders(p, e);
    if (!first(f, schedule_fault::c4)) FAIL("seed ", seed, " kind ", kind, "\n", tests::text(p), "\n", all(f));
  }
}
