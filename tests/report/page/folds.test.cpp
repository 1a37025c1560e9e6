// tests/report/page/folds.test.cpp - repeated layers are folded: by hand, and laws for random sequences
#include <tensorpar/report/page/folds.hpp>
#include <doctest/doctest.h>

#include <report/report_subject.hpp>
#include <support/small_graphs.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/program/step_of.hpp>

using namespace tensorpar;

namespace {
std::size_t at(int i) { return static_cast<std::size_t>(i); }
report::folding folded(std::string const& s, bool repeats = false) {
  std::vector<int> keys(s.begin(), s.end()), places(keys.size(), 0);
  for (std::size_t i = 0; repeats && i < keys.size(); ++i) places[i] = static_cast<int>(i);
  return report::fold_alike(keys, places);
}
}  // namespace

TEST_CASE("by hand: layers between a head and a tail, runs in runs, short runs") {
  report::folding const layers = folded("eabcabcabcabch");
  CHECK(layers.folds == std::vector<report::fold>{{1, 3, 4}});
  CHECK(layers.times == std::vector<int>{1, 4, 4, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
  CHECK(layers.stands_for(5, -1) == 2);
  CHECK(layers.stands_for(5, 0) == 5);
  CHECK(layers.stands_for(5, report::folding::all_folds) == 5);
  CHECK(layers.stands_for(13, 0) == 13);
  report::folding const nested = folded("aabbbaabbbaabbbz", true);          // 3 layers of 2 and 3 micro-batches
  CHECK(nested.folds == std::vector<report::fold>{{0, 5, 3}});
  CHECK(nested.times[0] == 6);
  CHECK(nested.times[2] == 9);
  CHECK(nested.times[1] == 0);
  report::folding const queries = report::fold_alike({5, 5, 5, 5, 5, 5, 5, 5, 5}, {0, 1, 2, 0, 1, 2, 0, 1, 2});
  CHECK(queries.folds == std::vector<report::fold>{{0, 1, 3}, {3, 1, 3}, {6, 1, 3}});       // three alike, on three micro-batches each
  CHECK(folded("aabb").folds.empty());                                       // saves too little
  CHECK(folded("aabb", true).folds.size() == 2);
  CHECK(folded("abcdabcd").folds == std::vector<report::fold>{{0, 4, 2}});
  CHECK(folded("").folds.empty());
  CHECK(report::detail::without_seed("dropout{rate=0.1,seed=12}") == "dropout{rate=0.1,}");
  CHECK(report::detail::without_seed("a{seed=1,b=2}") == "a{,b=2}");
}

TEST_CASE("laws: who stands for an operator is alike, stands before it and for itself; all are counted") {
  std::mt19937 draw(2);
  for (int turn = 0; turn < 300; ++turn) {
    std::vector<int> keys, places;
    while (keys.size() < 60) {
      std::vector<int> unit(1 + draw() % 5);
      for (int& x : unit) x = static_cast<int>(draw() % 3);
      for (auto k = 1 + draw() % 5; k > 0; --k) keys.insert(keys.end(), unit.begin(), unit.end());
    }
    for (std::size_t i = 0; i < keys.size(); ++i) places.push_back(draw() % 2);
    report::folding const f = report::fold_alike(keys, places);
    int all = 0, end = 0;
    for (report::fold const& x : f.folds) {
      CHECK(x.first >= end);
      end = x.end();
      CHECK(x.times > 1);
      for (int v = x.first; v < end; ++v) {
        CHECK(keys[at(v)] == keys[at(x.first + (v - x.first) % x.unit)]);
        CHECK(f.shown[at(v)] < x.first + x.unit);
      }
    }
    CHECK(end <= static_cast<int>(keys.size()));
    for (int v = 0; v < static_cast<int>(keys.size()); ++v) {
      int const u = f.shown[at(v)];
      CHECK(u <= v);
      CHECK(f.shown[at(u)] == u);
      CHECK(keys[at(u)] == keys[at(v)]);
      CHECK(f.fold_of[at(u)] == f.fold_of[at(v)]);
      CHECK((f.fold_of[at(v)] >= 0 || u == v));
      CHECK((f.times[at(v)] > 0) == (u == v));
      all += f.times[at(v)];
    }
    CHECK(all == static_cast<int>(keys.size()));
  }
}

TEST_CASE("repeated blocks fold into one; a sharding that differs parts them; seeds, names and memory do not; micro-batches fold too") {
  computation_graph g;
  int v = g.add_input("x", {8, 16});
  int const labels = g.add_input("labels", shape({8}, dtype::i32));
  for (int r = 0; r < 6; ++r) {
    int const first = g.node_count(), from = v;
    v = tests::out(g, g.add_with_weights(linear{16}, {v}, "fc@" + std::to_string(r)));
    v = tests::out(g, g.add(dropout{0.5, 7 * r}, {v}, "drop@" + std::to_string(r)));
    v = tests::out(g, g.add(add{}, {v, from}, "skip@" + std::to_string(r)));
    for (int k = first; k < g.node_count(); ++k) {
      g.node(k).block = 0;
      g.node(k).repetition = r;
    }
  }
  g.add_output("loss", tests::out(g, g.add_with_weights(cross_entropy{}, {v, labels}, "loss")));
  plan p = tests::serial_plan(g);
  auto const folding_of = [&] {
    planned_step const s = step_of(g, p);
    return report::fold_operators(s.graph.graph, report::summary_of("", s.graph, s.plan, s.program, {}));
  };
  CHECK(folding_of().folds == std::vector<report::fold>{{0, 3, 6}});
  for (int k = 0; k < 6; ++k) p.nodes[at(k)].recompute = true;                       // two layers of six: told, not shown
  CHECK(folding_of().folds == std::vector<report::fold>{{0, 3, 6}});
  p.cluster = tests::devices(2);
  for (int k = 0; k < 6; ++k) p.nodes[at(k)].sharding = {0, {{'0', 2, 1}}};
  CHECK(folding_of().folds == std::vector<report::fold>{{0, 3, 2}, {6, 3, 4}});
  plan q = tests::serial_plan(g);                                                    // two stages of three layers, two micro-batches each
  q.cluster = tests::devices(2);
  q.pipeline.unit = 8;
  q.pipeline.mini_batch = 16;
  q.pipeline.groups = {{0, 1}, {1, 1}};
  q.pipeline.stages.resize(2);
  for (int s = 0; s < 2; ++s) {
    q.pipeline.stages[at(s)].group = s;
    q.pipeline.stages[at(s)].micro_batch = 8;
  }
  for (int k = 0; k < g.node_count(); ++k) {
    q.pipeline.stages[at(k >= 9)].nodes.push_back(k);
    q.nodes[at(k)].sharding = {k >= 9, {}};
  }
  auto const F = pass::forward, B = pass::backward;
  q.pipeline.schedule = {{{0, F, 0}, {0, F, 1}, {0, B, 0}, {0, B, 1}}, {{1, F, 0}, {1, B, 0}, {1, F, 1}, {1, B, 1}}};
  p = q;
  report::folding const piped = folding_of();
  CHECK(piped.folds == std::vector<report::fold>{{0, 6, 3}, {18, 6, 3}, {36, 1, 2}});
}
