// tests/search/threads.test.cpp - a search finds the same for any number of threads, and asks cost models and watchers from one of them
#include <tensorpar/search/joint/joint.hpp>
#include <doctest/doctest.h>

#include <support/effort.hpp>
#include <support/search_once.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/search/pipeline/fit_stages.hpp>
#include <tensorpar/zoo/registry.hpp>
#include <thread>

using namespace tensorpar;
using namespace tensorpar::search;

namespace {

/// Remembers how often it was asked, and whether another thread than the first ever did.
struct one_thread {
  struct memory { std::thread::id who = std::this_thread::get_id(); bool alone = true; i64 asked = 0; };
  memory* seen;
  void note() const {
    seen->alone = seen->alone && std::this_thread::get_id() == seen->who;
    ++seen->asked;
  }
  double seconds(cost::compute_query const& q) const { note(); return cost::analytical{}.seconds(q); }
  double seconds(cost::reshard_query const& q) const { note(); return cost::analytical{}.seconds(q); }
};
struct counting_watch : joint_watch {
  std::thread::id who = std::this_thread::get_id();
  bool alone = true;
  std::vector<std::pair<int, double>> told;
  bool go_on(joint_progress const& p) override {
    alone = alone && std::this_thread::get_id() == who;
    told.push_back({p.candidates, p.least});
    return true;
  }
};

/// Under sanitizers three, whose races these look for; that all find the same is seen without.
std::vector<int> counts() { return test_effort::slow ? std::vector{3} : std::vector{1, 2, 3, 8}; }

void check_equal(search_result const& a, search_result const& b) {
  CHECK(a.feasible() == b.feasible());
  CHECK(a.plan == b.plan);
  CHECK(a.cost == b.cost);
  CHECK(a.bound == b.bound);
  CHECK(a.gap == b.gap);
  CHECK(a.choices == b.choices);
  CHECK(a.moves_priced == b.moves_priced);
  CHECK(a.statistics.tables == b.statistics.tables);
  CHECK(a.statistics.rounds == b.statistics.rounds);
  REQUIRE(a.baselines.size() == b.baselines.size());
  for (std::size_t i = 0; i < a.baselines.size(); ++i) {
    CHECK(a.baselines[i].cost == b.baselines[i].cost);
    CHECK(a.baselines[i].nodes == b.baselines[i].nodes);
  }
}

}  // namespace

TEST_CASE("joint search: plan, cost, bound and counts for 1, 2, 3 and 8 threads, tables of every size shared") {
  for (char const* name : {"dlrm", "mlp_unify", "bert_artifact"}) {
    CAPTURE(name);
    machine const on = preset("summit:1");
    computation_graph const g = zoo::make(name, 64 * on.size());
    std::optional<joint_result> first;
    i64 asked = 0;
    std::vector<std::pair<int, double>> told;
    for (int threads : counts()) {
      one_thread::memory seen;
      counting_watch watch;
      joint_options o;
      o.search.threads = threads;
      o.search.mapping.elimination.shared = 0;
      o.watch = &watch;
      joint_result r = optimize_jointly(g, on, one_thread{&seen}, o);
      CHECK(seen.alone);
      CHECK(watch.alone);
      if (!first) {
        first = std::move(r);
        asked = seen.asked;
        told = watch.told;
        REQUIRE(first->feasible());
        continue;
      }
      check_equal(*first, r);
      CHECK(seen.asked == asked);
      CHECK(watch.told == told);
      CHECK(first->graph.hash() == r.graph.hash());
      CHECK(first->rewriting.candidates == r.rewriting.candidates);
      CHECK(first->rewriting.tables == r.rewriting.tables);
      CHECK(first->rewriting.remembered == r.rewriting.remembered);
      CHECK(first->rewriting.steps == r.rewriting.steps);
      CHECK(first->rewriting.bound == r.rewriting.bound);
      CHECK(first->rewriting.sequential == r.rewriting.sequential);
    }
  }
}

TEST_CASE("search short of memory: the same for 1, 2, 3 and 8 threads") {
  for (char const* name : {"split_test", "bert_artifact"}) {
    if (test_effort::slow && name != std::string("split_test")) continue;        // a minute and a half
    machine on = preset("dgx-h100:1");
    computation_graph const g = zoo::make(name, 64);
    search_options o;
    o.optimizer.kind = optimizer_kind::adamw;
    search_result const ample = optimize(g, on, cost::analytical{}, o);
    REQUIRE(ample.feasible());
    i64 const peak = *std::max_element(ample.cost.bytes.begin(), ample.cost.bytes.end());
    for (int percent : {80, 60, 30}) {
      CAPTURE(name);
      CAPTURE(percent);
      for (device_kind& k : on.kinds) k.memory = peak / 100 * percent;
      std::optional<search_result> first;
      for (int threads : counts()) {
        o.threads = threads;
        o.mapping.elimination.shared = 0;
        o.mapping.exact_budget = 1000;                       // so that prices of bytes and splices decide
        search_result r = optimize(g, on, cost::analytical{}, o);
        if (!first) first = std::move(r);
        else check_equal(*first, r);
      }
      CHECK(first->feasible() == (percent > 30));
    }
  }
}

TEST_CASE("pipelines: programs unrolled by 1, 2, 3 and 8 threads are the same, and the cost model is asked by one") {
  computation_graph const g = zoo::make("gpt3_1b3:layers=3,hidden=64,heads=4,wide=256,seq=32,vocab=512", 1);
  machine const on = make_cluster("nodes", {"device", 1e11, 1e10, i64{1} << 30, 1e-6}, 4, 2, {"inside", 2, 1e-6, 1e10},
                                  {"between", 4, 5e-6, 1e9});
  std::optional<fitted_stages> first;
  for (int threads : counts()) {
    one_thread::memory seen;
    graph_stage_options o;
    o.mini_batch = 8;
    graph_stages<one_thread> const m(g, on, one_thread{&seen}, o);
    stage_options s;
    s.threads = threads;
    fitted_stages r = fit_stages(g, g, on, m, s);
    CHECK(seen.alone);
    CHECK(r.tried > 8);
    if (!first) { first = std::move(r); continue; }
    CHECK(r.plan == first->plan);
    CHECK(r.seconds == first->seconds);
    CHECK(r.arena == first->arena);
    CHECK(r.tried == first->tried);
  }
}
