// tests/search/plan_watch.test.cpp - a watch is told of what is compared, in order, on the caller's thread; and may end the search
#include <tensorpar/search/plan_watch.hpp>

#include <doctest/doctest.h>
#include <stdexcept>
#include <support/search_once.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/search/plan_training.hpp>
#include <tensorpar/zoo/registry.hpp>
#include <thread>

using namespace tensorpar;

namespace {

struct log_watch final : search::plan_watch {
  std::vector<std::string> all;          // in order
  std::vector<std::size_t> left;
  std::vector<std::string> plans;
  std::thread::id const caller = std::this_thread::get_id();
  bool elsewhere = false;
  std::size_t stop_at = 1000;
  void looks_at(std::string const& what, std::size_t kinds) override {
    elsewhere = elsewhere || std::this_thread::get_id() != caller;
    all.push_back("at " + what);
    left.push_back(kinds);
  }
  void tried(tried_plan const& one) override {
    elsewhere = elsewhere || std::this_thread::get_id() != caller;
    all.push_back("tried " + one.what);
    plans.push_back(one.what);
    if (plans.size() == stop_at) throw std::runtime_error("enough");
  }
};

planned watched(log_watch& watch, int threads, int devices = 4, effort how = effort::normal) {
  training_problem const asked{.graph = zoo::make("gpt3_1b3:layers=2,hidden=16,heads=4,wide=32,seq=12,vocab=32", 1), .samples = 8};
  return plan_training(asked, logical(devices), cost::analytical{}, {.effort = how, .threads = threads, .watch = &watch});
}

}  // namespace

TEST_CASE("a watch is told of all that is in `tried`, once each and in that order, on the caller's thread") {
  log_watch one, two;
  planned const r = watched(one, 1);
  std::vector<std::string> told;
  for (tried_plan const& c : r.tried) told.push_back(c.what);
  CHECK(one.plans == told);
  CHECK_FALSE(one.elsewhere);
  watched(two, 2);
  CHECK(one.all == two.all);
  CHECK(one.left == two.left);
}

TEST_CASE("kinds of plans that are left grow fewer, down to none") {
  for (int const devices : {1, 4}) {
    CAPTURE(devices);
    for (effort const how : {effort::quick, effort::normal}) {
      log_watch w;
      watched(w, 1, devices, how);
      REQUIRE(!w.left.empty());
      CHECK(w.left.back() == 0);
      for (std::size_t k = 1; k < w.left.size(); ++k) CHECK(w.left[k] <= w.left[k - 1]);
      CHECK(w.all.front().starts_with("at "));
    }
  }
}

TEST_CASE("what a watch throws ends the search") {
  log_watch w;
  w.stop_at = 2;
  CHECK_THROWS_WITH(watched(w, 2), "enough");
  CHECK(w.plans.size() == 2);
}

TEST_CASE("a plan with a watch is the plan without") {
  log_watch w;
  training_problem const asked{.graph = zoo::make_reduced("mlp_unify", 1), .samples = 12};
  planned const a = plan_training(asked, logical(4), cost::analytical{}, {.watch = &w});
  CHECK(a.plan == plan_training(asked, logical(4), cost::analytical{}).plan);
}
