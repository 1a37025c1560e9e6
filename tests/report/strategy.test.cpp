// tests/report/strategy.test.cpp - the sentence says what most operators do, what the rest do, and what saves memory
#include <doctest/doctest.h>
#include <report/found_in.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/program/training.hpp>
#include <tensorpar/report/strategy.hpp>
#include <tensorpar/zoo/registry.hpp>

using namespace tensorpar;
using tests::has;

namespace {

struct subject {
  computation_graph g = zoo::make("llama3_8b:layers=4,hidden=64,heads=4,kv_heads=2,wide=128,vocab=128,seq=16", 16);
  plan p = one_device_plan(g);
  std::string samples = search::batch_loops(g, g.node_count());
  void split(std::size_t v, i64 data, char other, i64 tensor) {
    p.nodes[v].sharding.axes.clear();
    if (data > 1) p.nodes[v].sharding.axes.push_back({samples[v], data, tensor});
    if (tensor > 1) p.nodes[v].sharding.axes.push_back({other, tensor, 1});
  }
  void each(auto const& f) { for (std::size_t v = 0; v < p.nodes.size(); ++v) f(v, g.nodes[v]); }
  std::string told() const { return report::strategy_text(g, p); }
};

}  // namespace

TEST_CASE("degrees of most operators with weights come first, others by kind") {
  subject s;
  CHECK(s.told() == "one device");
  s.p.cluster = logical(8);
  s.each([&](std::size_t v, graph_node const&) { s.split(v, 8, 0, 1); });
  CHECK(s.told() == "8-way data parallel");
  s.each([&](std::size_t v, graph_node const& n) { if (n.op.is<embedding>()) s.split(v, 2, 'r', 4); });
  CHECK(s.told().rfind("8-way data parallel, embedding", 0) == 0);
  CHECK(has(s.told(), " 2 x 4 (data x tensor)"));
  s.each([&](std::size_t v, graph_node const&) { s.split(v, 4, 'o', 2); });
  CHECK(s.told() == "4 x 2 data and tensor parallel");
  s.each([&](std::size_t v, graph_node const&) { s.split(v, 1, '\0', 8); });
  CHECK(s.told() == "8 devices do the same");
}

TEST_CASE("memory that is saved, prefetch and micro-batches are told, in part or whole") {
  subject s;
  s.p.cluster = logical(8);
  s.p.prefetch = 2;
  s.p.micro_batches = 4;
  s.each([&](std::size_t v, graph_node const&) { s.split(v, 8, 0, 1); });
  s.each([&](std::size_t v, graph_node const&) { s.p.nodes[v].zero = ir::zero_stage::weights; });
  CHECK(s.told() == "8-way data parallel, weights gathered where they are used (ZeRO-3), collectives 2 operators ahead, 4 micro-batches");
  s.each([&](std::size_t v, graph_node const& n) {
    s.p.nodes[v].zero = n.op.is<embedding>() ? ir::zero_stage::none : ir::zero_stage::updates;
  });
  CHECK(has(s.told(), "updates shared (ZeRO-1) for "));
  CHECK(!has(s.told(), "ZeRO-3"));
  s.p.micro_batches = 1;                              // gradients go as they come
  CHECK(has(s.told(), "updates shared (ZeRO-2) for "));
  s.p.micro_batches = 4;
  s.each([&](std::size_t v, graph_node const&) { s.p.nodes[v].zero = ir::zero_stage::gradients; });
  CHECK(has(s.told(), "8-way data parallel, gradients and updates shared (ZeRO-2), collectives"));
  s.each([&](std::size_t v, graph_node const&) { s.p.nodes[v].zero = ir::zero_stage::updates; });
  int attends = 0;
  s.each([&](std::size_t v, graph_node const& n) {
    if (n.op.is<attention>() && n.repetition < 3) s.p.nodes[v].recompute = true, ++attends;
  });
  CHECK(attends == 3);
  CHECK(has(s.told(), "3 of 4 layers recompute attention"));
  s.each([&](std::size_t v, graph_node const& n) { s.p.nodes[v].recompute = n.block >= 0; });
  CHECK(has(s.told(), "4 of 4 layers recompute everything"));
  s.p.infeasible = shortage{};
  CHECK(s.told() == "no plan");
}
