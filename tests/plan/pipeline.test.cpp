// tests/plan/pipeline.test.cpp - pipelines are values: equality, hash, counts
#include <tensorpar/plan/pipeline.hpp>
#include <doctest/doctest.h>

#include <functional>
#include <set>
#include <vector>

using namespace tensorpar;

namespace {
pipeline some() {
  pipeline p;
  p.mini_batch = 24;
  p.groups = {{0, 2}, {2, 1}};
  p.stages.resize(2);
  p.stages[0].nodes = {0, 1};
  p.stages[0].micro_batch = 4;
  p.stages[1].nodes = {2};
  p.stages[1].group = 1;
  p.stages[1].micro_batch = 8;
  p.schedule = {{{0, pass::forward, 0}, {0, pass::backward, 0}}, {{1, pass::forward, 0}}};
  return p;
}
}  // namespace

TEST_CASE("whatever changes is another value with another hash") {
  std::vector<std::function<void(pipeline&)>> const changes{
      [](pipeline& p) { p.mini_batch = 48; },
      [](pipeline& p) { p.groups[1].first = 3; },
      [](pipeline& p) { p.groups[1].count = 2; },
      [](pipeline& p) { p.groups.push_back({5, 1}); },
      [](pipeline& p) { p.stages[0].nodes = {0}; },
      [](pipeline& p) { p.stages[0].nodes = {0, 2}; },
      [](pipeline& p) { p.stages[1].group = 0; },
      [](pipeline& p) { p.stages[0].micro_batch = 8; },
      [](pipeline& p) { p.stages[0].k = 2; },
      [](pipeline& p) { p.stages[0].split_backward = true; },
      [](pipeline& p) { p.stages[0].recompute = true; },
      [](pipeline& p) { p.stages[0].shard_optimizer = true; },
      [](pipeline& p) { p.schedule[0][1].what = pass::weights; },
      [](pipeline& p) { p.schedule[0][1].micro_batch = 1; },
      [](pipeline& p) { p.schedule[0][1].stage = 1; },
      [](pipeline& p) { p.schedule[1].clear(); },
      [](pipeline& p) { std::swap(p.schedule[0][0], p.schedule[0][1]); },
      [](pipeline& p) { p.unit = 2; }};
  std::set<u64> hashes{some().hash()};
  CHECK(some() == some());
  for (auto const& change : changes) {
    pipeline p = some();
    change(p);
    CHECK(!(p == some()));
    CHECK(hashes.insert(p.hash()).second);
  }
}

TEST_CASE("micro-batches of a stage; empty pipelines; names of passes") {
  CHECK(some().micro_batches(0) == 6);
  CHECK(some().micro_batches(1) == 3);
  CHECK(!some().empty());
  CHECK(pipeline{}.empty());
  CHECK(name_of(pass::forward) == "forward");
  CHECK(name_of(pass::backward) == "backward");
  CHECK(name_of(pass::weights) == "weights");
}
