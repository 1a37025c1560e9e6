// tests/rewrite/rule_graphs.hpp - a rule's source as a graph, on random valid spreads
#pragma once
#include <tensorpar/rewrite/apply.hpp>
#include <tensorpar/rewrite/instances.hpp>

namespace tests {
using namespace tensorpar;

struct rule_graph {
  spread_graph graph;
  rule_instance instance;
};

/// Tensor variables are parameters (indices: inputs), the outputs are "y0", "y1", ... Both sides are valid and all degrees above one;
/// nullopt if no draw was so.
/// Tables get twelve times as many rows, since indices are drawn below twelve.
inline std::optional<rule_graph> graph_of_source(rule const& r, std::vector<rule_case> const& cases, std::mt19937& draw,
                                                 int attempts = 2000) {
  using by_node = std::vector<std::vector<parallel_shape>>;
  auto valid = [&](pattern_graph const& p, typed_pattern const& t, rule_instance const& g, by_node& have) {
    for (std::size_t i = 0; i < p.nodes.size(); ++i) {
      std::vector<parallel_shape> in;
      for (pattern_value v : p.nodes[i].in) in.push_back(detail::value_of(v, g.tensors, have));
      parallel_result const y = infer_parallel_shapes(t.op[i], in);
      if (!y.ok()) return false;
      have.push_back(y.out);
    }
    return true;
  };
  for (int n = 0; n < attempts; ++n) {
    rule_case const& c = cases[draw() % cases.size()];
    auto g = random_instance(r, c, draw, standard_vocabulary(), 200);
    if (!g) continue;
    bool indices = false, split = true;
    for (parallel_shape const& s : g->tensors) indices = indices || is_integer(s.type.type);
    std::vector<shape> types;
    for (parallel_shape& s : g->tensors) {
      if (indices && !is_integer(s.type.type) && s.type.rank == 2) s.type.d[0].n *= 12;
      types.push_back(s.type);
    }
    for (std::size_t p = 0; p < r.parameters.size(); ++p)
      split = split && (r.parameters[p].kind != parameter_kind::degree || g->at.parameter[p] > 1);
    auto source = detail::type_pattern(r.source, types, g->at.parameter, standard_vocabulary());
    auto target = detail::type_pattern(r.target, types, g->at.parameter, standard_vocabulary());
    if (!source || !target || !split) continue;
    g->source = *source;
    g->target = *target;
    by_node have, other;
    if (!valid(r.source, *source, *g, have) || !valid(r.target, *target, *g, other)) continue;
    spread_graph s;
    std::vector<int> tensor;
    for (std::size_t x = 0; x < r.tensors.size(); ++x) {
      tensor.push_back(is_integer(types[x].type) ? s.graph.add_input(r.tensors[x], types[x].of(dtype::i32))
                                                 : s.graph.add_parameter(r.tensors[x], types[x], init::normal_02));
      s.shapes.push_back(g->tensors[x]);
      s.shapes.back().type = s.graph.type(tensor.back());
    }
    std::vector<std::vector<int>> results;
    for (std::size_t i = 0; i < r.source.nodes.size(); ++i) {
      std::vector<int> in;
      for (pattern_value v : r.source.nodes[i].in) in.push_back(detail::value_of(v, tensor, results));
      int const node = s.graph.add(source->op[i], in, "n" + std::to_string(i));
      results.push_back(s.graph.node(node).out);
      for (std::size_t k = 0; k < have[i].size(); ++k) s.shapes.push_back(have[i][k]);
    }
    for (std::size_t k = 0; k < r.source.outputs.size(); ++k)
      s.graph.add_output("y" + std::to_string(k), detail::value_of(r.source.outputs[k], tensor, results));
    // what the target does without has another use
    std::vector<bool> const kept = detail::mentioned(r, r.target).tensors;
    for (std::size_t x = 0; x < kept.size(); ++x) if (!kept[x]) s.graph.add_output("kept " + r.tensors[x], tensor[x]);
    return rule_graph{std::move(s), std::move(*g)};
  }
  return std::nullopt;
}

/// A forward graph with a loss that depends on every output.
inline computation_graph with_loss(computation_graph g) {
  int loss = -1;
  auto const outputs = g.outputs;
  g.outputs.clear();
  for (graph_port const& o : outputs) {
    int const t = g.add_input("target " + o.name, g.type(o.value));
    int const e = g.node(g.add(mean_squared_error{}, {o.value, t})).out[0];
    loss = loss < 0 ? e : g.node(g.add(add{}, {loss, e})).out[0];
  }
  g.add_output("loss", loss);
  return g;
}

}  // namespace tests
