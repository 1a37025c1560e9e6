// tests/peers/strategies.test.cpp - what is compared with is what its name says, and the search is never behind it
#include <tensorpar/peers/strategies.hpp>

#include <doctest/doctest.h>
#include <support/effort.hpp>
#include <support/search_once.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/search/joint/joint.hpp>
#include <tensorpar/zoo/registry.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tensorpar::peers;

namespace {

baseline const* named(std::vector<baseline> const& all, std::string const& name) {
  for (baseline const& b : all) if (b.name == name) return &b;
  return nullptr;
}
bool fits(baseline const& b, machine const& on) {
  for (int d = 0; d < on.size(); ++d) if (b.cost.bytes[static_cast<std::size_t>(d)] > on.kind_of(d).memory) return false;
  return true;
}
machine dgx(int nodes) { return preset("dgx-h100:" + std::to_string(nodes)); }

}  // namespace

TEST_CASE("strategies: joint search is never behind any of them that fits") {
  strategy_options few;
  few.mcmc_steps = 3000;
  int compared = 0, turn = 0;
  for (char const* model : {"mlp_unify", "dlrm", "xdl", "candle_uno", "bert_large:layers=2", "resnext50_artifact"})
    for (char const* cluster : {"summit:1", "dgx-h100:2"}) {
      if (test_effort::slow && turn++ % 4) continue;
      machine const on = preset(cluster);
      computation_graph const g = zoo::make(model, 48 * on.size());
      joint_options o;
      o.search.optimizer.kind = optimizer_kind::adamw;
      joint_result const r = optimize_jointly(g, on, cost::analytical{}, o);
      REQUIRE(r.feasible());
      for (baseline const& b : strategies(g, on, cost::analytical{}, o.search, few)) {
        CAPTURE(model);
        CAPTURE(cluster);
        CAPTURE(b.name);
        if (fits(b, on)) CHECK(r.cost.seconds <= b.cost.seconds * (1 + 1e-9));
        ++compared;
      }
    }
  CHECK(compared >= (test_effort::slow ? 12 : 60));
}

TEST_CASE("strategies: each is what it says") {
  machine const on = dgx(2);
  computation_graph const g = zoo::make("gpt3_1b3:layers=2", 32);
  search_options o;
  o.optimizer.kind = optimizer_kind::adamw;
  auto const all = strategies(g, on, cost::analytical{}, o, {.mcmc_steps = 100});
  std::string const batch = batch_loops(g, g.node_count());
  baseline const *two = named(all, "ZeRO-2"), *three = named(all, "ZeRO-3"), *megatron = named(all, "Megatron"),
      *mesh = named(all, "uniform mesh");
  REQUIRE((two && three && megatron && mesh));
  int whole = 0;
  for (int v = 0; v < g.node_count(); ++v) {
    auto const i = static_cast<std::size_t>(v);
    CHECK(two->nodes[i].sharding == three->nodes[i].sharding);
    CHECK(two->nodes[i].zero != ir::zero_stage::weights);
    whole += three->nodes[i].zero == ir::zero_stage::weights;
    if (batch[i]) CHECK(two->nodes[i].sharding == ir::sharding{0, {{batch[i], 16, 1}}});
    i64 samples = 1;
    for (ir::mesh_axis const& a : megatron->nodes[i].sharding.axes) if (batch[i] && a.letter == batch[i]) samples *= a.degree;
    if (batch[i]) CHECK(16 / samples <= 8);                      // groups lie within a node
  }
  CHECK(whole >= 10);
  CHECK(three->cost.bytes[0] < two->cost.bytes[0]);
  CHECK(three->cost.seconds >= two->cost.seconds);
  CHECK(mesh->cost.seconds <= megatron->cost.seconds);
  // pairs of linear operators: outputs first, then inputs, with partial sums between a reduction and the next block
  int columns = 0, rows = 0;
  for (int v = 0; v < g.node_count(); ++v)
    if (g.node(v).op.is<linear>())
      for (ir::mesh_axis const& a : megatron->nodes[static_cast<std::size_t>(v)].sharding.axes) {
        columns += a.letter == 'o'; rows += a.letter == 'i';
      }
  CHECK(columns + rows > 0);
  CHECK_FALSE(named(strategies(zoo::make("mlp_unify", 64), preset("summit:1"), cost::analytical{}, {}, {.mcmc_steps = 0}), "Megatron"));
  CHECK_FALSE(named(strategies(zoo::make("mlp_unify", 64), preset("summit:1"), cost::analytical{}, {}, {.mcmc_steps = 0}), "random walk"));
}

TEST_CASE("strategies: experts keep tables in parts and samples apart") {
  machine const on = dgx(1);
  computation_graph const g = zoo::make("dlrm", 64 * 8);
  auto const all = strategies(g, on, cost::analytical{}, {}, {.mcmc_steps = 0});
  baseline const* e = named(all, "expert");
  REQUIRE(e);
  std::string const batch = batch_loops(g, g.node_count());
  int tables = 0;
  for (int v = 0; v < g.node_count(); ++v) {
    auto const& axes = e->nodes[static_cast<std::size_t>(v)].sharding.axes;
    REQUIRE(axes.size() == 1);
    if (g.node(v).op.is<embedding_bag>()) { ++tables; CHECK(axes[0].letter != batch[static_cast<std::size_t>(v)]); }
    else if (g.node(v).op.is<linear>()) CHECK(axes[0].letter == batch[static_cast<std::size_t>(v)]);
  }
  CHECK(tables > 0);
  baseline const* zero = named(all, "ZeRO-2");
  REQUIRE(zero);
  CHECK(e->cost.seconds < zero->cost.seconds);
}

TEST_CASE("strategies: a random walk is repeated by its seed, and never ends behind where it began") {
  machine const on = preset("logical:4");
  computation_graph const g = zoo::make_reduced("bert_large", 24);
  training_graph const t = differentiate(g);
  mapping_problem const p = make_problem(t, on, cost::analytical{});
  assignment const from = data_parallel(p, batch_loops(g, p.operators()));
  evaluator const price(p);
  assignment const a = random_walk(p, from, {.mcmc_steps = 2000, .seed = 3});
  CHECK(a == random_walk(p, from, {.mcmc_steps = 2000, .seed = 3}));
  CHECK(price(a).seconds <= price(from).seconds);
  CHECK(random_walk(p, from, {.mcmc_steps = 0}) == from);
}

TEST_CASE("Megatron is a strategy for attention of one packed tensor too, and none where nothing attends") {
  machine const on = preset("logical:4");
  auto const found = [&](computation_graph const& g) {
    auto const all = strategies(g, on, cost::analytical{});
    return std::any_of(all.begin(), all.end(), [](baseline const& b) { return b.name == "Megatron"; });
  };
  std::string const small = "gpt3_1b3:layers=1,hidden=64,heads=4,seq=32,vocab=64,wide=128,packed=";
  CHECK(found(zoo::make(small + "1", 8)));
  CHECK(found(zoo::make(small + "0", 8)));
  CHECK(!found(zoo::make_reduced("mlp_unify", 24)));
}

TEST_CASE("BERT-Large within a node: what experts do (Megatron) is found, block by block, and with norms split along the sequence") {
  machine on = preset("dgx-h100:1");
  on.kinds[0].efficiency = {};                                  // where parts of a product waste as little as the whole
  computation_graph const g = zoo::make("bert_large:layers=4", 8);
  search_options o;
  o.optimizer.kind = optimizer_kind::adamw;
  search_result const r = optimize(g, on, cost::analytical{}, o);
  REQUIRE(r.feasible());
  auto const all = strategies(g, on, cost::analytical{}, o);
  auto const megatron = std::find_if(all.begin(), all.end(), [](baseline const& b) { return b.name == "Megatron"; });
  REQUIRE(megatron != all.end());
  CHECK(r.cost.seconds <= megatron->cost.seconds);
  auto splits = [&](int v, char letter) {
    for (ir::mesh_axis const& a : r.plan.nodes[static_cast<std::size_t>(v)].sharding.axes)
      if (a.letter == letter && a.degree > 1) return true;
    return false;
  };
  int columns = 0, rows = 0, heads = 0, norms = 0;
  for (int v = 0; v < g.node_count(); ++v) {
    graph_node const& n = g.node(v);
    auto made_by = [&](auto op) { int const p = g.value(n.in[0]).producer; return p >= 0 && g.node(p).op.is<decltype(op)>(); };
    auto read_by = [&](auto op) {
      for (graph_node const& u : g.nodes)
        for (int x : u.in) if (x == n.out[0] && u.op.is<decltype(op)>()) return true;
      return false;
    };
    if (n.op.is<attention>()) { ++heads; CHECK(splits(v, 'e')); }
    if (n.op.is<layernorm>() && v > 5) { ++norms; CHECK(splits(v, '1')); }
    if (!n.op.is<linear>()) continue;
    if (read_by(attention{}) || read_by(gelu{})) { ++columns; CHECK(splits(v, 'o')); }
    if (made_by(attention{}) || made_by(gelu{})) { ++rows; CHECK(splits(v, 'i')); }
  }
  CHECK(columns == 4 * 4 + 1);                                  // the head's too
  CHECK(rows == 4 * 2);
  CHECK(heads == 4);
  CHECK(norms >= 4 * 2);
}
