// tests/search/intra/idle_recomputation.test.cpp - flags that do nothing go, those that do something stay, and the program is the same
#include <tensorpar/search/intra/idle_recomputation.hpp>
#include <doctest/doctest.h>

#include <support/effort.hpp>
#include <support/small_graphs.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

TEST_CASE("random flags: the same tasks, buffers and arenas with fewer of them") {
  std::mt19937 draw(3);
  int went = 0, stayed = 0;
  for (int trial = 0; trial < test_effort::cases(40); ++trial) {
    CAPTURE(trial);
    computation_graph const g = trial % 4 == 0   ? tests::small_transformer()
                                : trial % 4 == 1 ? tests::residual_mlp()
                                : trial % 4 == 2 ? tests::towers(4)
                                                 : tests::small_cnn();
    plan p = tests::random_plan(g, 1 + trial % 3, draw);
    training_graph const t = differentiate(g, {"loss", p.optimizer, p.micro_batches});
    for (op_strategy& c : p.nodes) c.recompute = draw() % 3 > 0;
    plan const before = p;
    int const flags = static_cast<int>(std::count_if(p.nodes.begin(), p.nodes.end(), [](op_strategy const& c) { return c.recompute; }));
    int const dropped = drop_idle_recomputation(t, p);
    went += dropped;
    stayed += flags - dropped;
    auto const made = [&](plan const& q) {
      planned_step const s = passes::memory_pass(t, q);
      return unroll(s.graph, s.plan);
    };
    program const a = made(before), b = made(p);
    CHECK(passes::task_hash(a) == passes::task_hash(b));
    CHECK(a.arena == b.arena);
    for (std::size_t v = 0; v < p.nodes.size(); ++v) {
      CHECK(p.nodes[v].recompute <= before.nodes[v].recompute);
      if (!p.nodes[v].recompute) continue;
      plan q = p;
      q.nodes[v].recompute = false;
      CHECK(passes::task_hash(made(q)) != passes::task_hash(a));
    }
  }
  MESSAGE(went << " flags did nothing, " << stayed << " something");
  CHECK(went > test_effort::cases(20));
  CHECK(stayed > test_effort::cases(20));
}
