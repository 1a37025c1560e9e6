// tests/search/pipeline/step_judge.test.cpp - who knows better than estimates is asked about enough pipelines, and has the last word
#include "stage_oracle.hpp"
#include "support/effort.hpp"
#include <doctest/doctest.h>
#include <map>
#include <set>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/search/pipeline/answer.hpp>
#include <tensorpar/search/pipeline/stages.hpp>
#include <tensorpar/search/pipeline/step_times.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tests;

namespace {

/// Says what it likes about each, the same about equal ones.
class oracle final : public step_judge {
 public:
  enum { anything, never, refuses } says = anything;
  std::vector<stage_result> asked;
  double least = 1e300;
  double seconds(stage_result const& r) override {
    asked.push_back(r);
    if (says == never) return infinity;
    if (says == refuses) throw error("this pipeline", "oracle", "another one");
    u64 h = 7;
    for (std::size_t s = 0; s < r.choices.size(); ++s) {
      h = core::mix(h + static_cast<u64>(r.choices[s].micro_batch * 64 + r.choices[s].devices()));
      for (int v : r.pipeline.stages[s].nodes) h = core::mix(h + static_cast<u64>(v));
    }
    double const t = 1 + static_cast<double>(h % 1000);
    least = std::min(least, t);
    return t;
  }
};
bool same(stage_result const& a, stage_result const& b) { return a.pipeline == b.pipeline && a.choices == b.choices; }

}  // namespace

TEST_CASE("a wide choice holds the least estimates of all and those of every micro-batch size, each once") {
  random_source r{31};
  int more = 0;
  for (int round = 0; round < test_effort::cases(200); ++round) {
    search::detail::best_stages wide(stage_objective::iteration, 8, true), narrow(stage_objective::iteration, 8);
    std::map<i64, std::set<double>> of_size;
    for (int i = 0, n = 1 + r.below(60); i < n; ++i) {
      search::detail::priced_stages p;
      stage_choice c;
      c.micro_batch = 1 << r.below(4);
      p.stages = {{{0}, {}, 0}, {{1}, c, 1}};
      p.cost.iteration = p.cost.bottleneck = 1 + r.below(40) + static_cast<double>(c.micro_batch) * 100;
      of_size[c.micro_batch].insert(p.cost.iteration);
      wide.offer(p, stage_source::line, i);
      narrow.offer(p, stage_source::line, i);
    }
    std::size_t const before = narrow.shortlist.size();
    narrow.widen();
    CHECK(narrow.shortlist.size() == before);
    wide.widen();
    std::set<double> have;
    for (std::size_t i = 0; i < wide.shortlist.size(); ++i) {
      CHECK(have.insert(wide.shortlist[i].pipeline.cost.iteration).second);
      if (i < before) CHECK(wide.shortlist[i].pipeline.cost.iteration == narrow.shortlist[i].pipeline.cost.iteration);
    }
    std::set<double> want;
    for (std::size_t i = 0; i < before; ++i) want.insert(narrow.shortlist[i].pipeline.cost.iteration);
    for (auto const& [size, all] : of_size) {
      int n = 0;
      for (double t : all)
        if (n++ < search::detail::best_stages::max_of_size) want.insert(t);
    }
    CHECK(have == want);
    more += have.size() > before;
  }
  CHECK(more > test_effort::cases(200) / 4);
}

TEST_CASE("a judge is asked about what would be chosen without one, and its least is chosen; if it says nothing, the least estimate") {
  random_source r{32};
  int other = 0, sizes = 0;
  for (int round = 0; round < test_effort::cases(40); ++round) {
    stage_problem_options q;
    q.devices = 4;
    q.mini_batch = 16;
    stage_problem const p = random_stage_problem(r, random_dag(r, 6 + r.below(6), 25), q);
    CAPTURE(p.text);
    stage_result const plain = find_stages(p.graph, p.model);
    oracle free;
    stage_result const found = find_stages(p.graph, p.model, {}, &free);
    REQUIRE(found.feasible() == plain.feasible());
    if (!plain.feasible()) {
      CHECK(free.asked.empty());
      continue;
    }
    bool knows = false;
    std::set<i64> seen;
    double least = 1e300;
    for (stage_result const& x : free.asked) {
      knows = knows || same(x, plain);
      seen.insert(x.choices.front().micro_batch);
      least = std::min(least, x.cost.iteration);
      CHECK(!x.cost.shortage);
    }
    CHECK(knows);
    CHECK(free.seconds(found) == free.least);
    CHECK(found.bound <= found.cost.bottleneck);
    other += !same(found, plain);
    sizes += seen.size() > 1;
    for (auto says : {oracle::never, oracle::refuses}) {
      oracle silent;
      silent.says = says;
      stage_result const s = find_stages(p.graph, p.model, {}, &silent);
      CHECK(silent.asked.size() + 1 == free.asked.size());
      CHECK(s.cost.iteration <= least * (1 + 1e-9));
    }
    oracle idle;
    stage_options o;
    o.objective = stage_objective::bottleneck;
    CHECK(same(find_stages(p.graph, p.model, o, &idle), find_stages(p.graph, p.model, o)));
    CHECK(idle.asked.empty());
  }
  CHECK(other > test_effort::cases(40) / 4);
  CHECK(sizes > test_effort::cases(40) / 4);
}
