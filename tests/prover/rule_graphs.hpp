// tests/prover/rule_graphs.hpp - a rule's source as a graph, on random valid shardings
#pragma once
#include <tensorpar/prover/cases/instances.hpp>
#include <tensorpar/prover/rule_graph.hpp>
#include <tensorpar/rewrite/apply.hpp>

namespace tests {
using namespace tensorpar;
using namespace tensorpar::prover;

struct rule_graph {
  rewrite::sharding_graph graph;
  rule_instance instance;
};

/// Tensor variables are parameters (indices: inputs), the outputs are "y0", "y1", ... Both sides are valid and all degrees above one;
/// nullopt if no draw was so.
/// Tables get twelve times as many rows, since indices are drawn below twelve.
inline std::optional<rule_graph> graph_of_source(rewrite::rule const& r, std::vector<rule_case> const& cases, std::mt19937& draw,
                                                 int attempts = 2000) {
  for (int n = 0; n < attempts; ++n) {
    rule_case const& c = cases[draw() % cases.size()];
    auto g = random_instance(r, c, draw, rewrite::standard_vocabulary(), 200);
    if (!g) continue;
    bool indices = false, split = true;
    for (ir::parallel_shape const& s : g->tensors) indices = indices || is_integer(s.type.type);
    std::vector<shape> types;
    for (ir::parallel_shape& s : g->tensors) {
      if (indices && !is_integer(s.type.type) && s.type.rank == 2) s.type.d[0].n *= 12;
      types.push_back(s.type);
    }
    for (std::size_t p = 0; p < r.parameters.size(); ++p)
      split = split && (r.parameters[p].kind != rewrite::parameter_kind::degree || g->at.parameter[p] > 1);
    auto source = prover::detail::type_pattern(r.source, types, g->at.parameter, rewrite::standard_vocabulary());
    auto target = prover::detail::type_pattern(r.target, types, g->at.parameter, rewrite::standard_vocabulary());
    if (!source || !target || !split) continue;
    g->source = *source;
    g->target = *target;
    auto declare = [&](computation_graph& graph, std::size_t x) {
      return is_integer(types[x].type) ? graph.add_input(r.tensors[x], types[x].of(dtype::i32))
                                       : graph.add_parameter(r.tensors[x], types[x], op::init::normal_02);
    };
    auto s = graph_of_side(r.source, g->source, g->tensors, declare);
    if (!s || !graph_of_side(r.target, g->target, g->tensors, declare)) continue;
    // what the target does without has another use
    std::vector<bool> const kept = tensorpar::rewrite::detail::mentioned(r, r.target).tensors;
    for (std::size_t x = 0; x < kept.size(); ++x) if (!kept[x]) s->graph.add_output("kept " + r.tensors[x], static_cast<int>(x));
    return rule_graph{std::move(*s), std::move(*g)};
  }
  return std::nullopt;
}

/// A forward graph with a loss that depends on every output.
inline computation_graph with_loss(computation_graph g) {
  value_id loss;
  auto const outputs = g.outputs;
  g.outputs.clear();
  for (graph_port const& o : outputs) {
    value_id const t = g.add_input("target " + o.name, g.type(o.value));
    value_id const e = g.node(g.add(mean_squared_error{}, {o.value, t})).out[0];
    loss = loss < 0 ? e : g.node(g.add(add{}, {loss, e})).out[0];
  }
  g.add_output("loss", loss);
  return g;
}

}  // namespace tests
