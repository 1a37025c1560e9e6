// tensorpar/ir/parallel_graph.hpp - a computation graph whose parallelism is operators in the graph
#pragma once
#include <tensorpar/ir/parallel_shape.hpp>

namespace tensorpar {

/// A computation graph with parallel operators, the spread of every value, and for every node which loops are split where.
struct parallel_graph {
  computation_graph graph;
  std::vector<parallel_shape> shapes;        // by value
  std::vector<spread> grids;                 // by node; parallel operators have the grid of the operator they serve
};

/// Writes a choice of spreads into the graph: between a producer's layout and a consumer's, the parallel operators that the movement stands
/// for, shared by consumers that want the same layout. Parameters and inputs are partitioned and replicated from one whole tensor.
/// Precondition: spreads has one entry per node of g, and each fits its node. O(nodes * operands).
inline parallel_graph parallelize(computation_graph const& g, std::vector<spread> const& spreads) {
  parallel_graph p;
  struct held { layout where; int value; };
  std::vector<std::vector<held>> have(g.values.size());
  auto note = [&](int value, parallel_shape const& s) {
    p.shapes.resize(p.graph.values.size());
    p.shapes[static_cast<std::size_t>(value)] = s;
  };
  auto shape_in = [](layout const& l, shape const& s) {
    parallel_shape q(s);
    for (layout_axis const& a : l.axes)
      (a.kind == part_kind::shard ? q.degree[a.dim] : a.kind == part_kind::sum ? q.sum : q.copy) *= a.degree;
    return q;
  };
  for (std::size_t x = 0; x < g.values.size(); ++x) {
    graph_value const& v = g.values[x];
    if (v.producer >= 0) continue;
    int const y = p.graph.append_value(v.role, v.name, v.type, v.start);
    note(y, parallel_shape(v.type));
    have[x].push_back({layout{}, y});
  }
  auto chain = [&](int from, std::vector<any_op> const& ops, spread const& grid) {
    for (any_op const& o : ops) {
      parallel_shape const s = p.shapes[static_cast<std::size_t>(from)];
      int const v = p.graph.add(o, {from});
      p.grids.push_back(grid);
      from = p.graph.node(v).out[0];
      parallel_result const r = parallel_rule(o, s);
      if (!r.ok()) throw error(r.problem, "parallelize", "spreads that fit the graph");
      note(from, r.out[0]);
    }
    return from;
  };
  auto bring = [&](int x, layout const& want, spread const& grid) {
    auto& h = have[static_cast<std::size_t>(x)];
    for (held const& k : h) if (k.where == want) return k.value;
    graph_value const& v = g.value(x);
    int y = h.front().value;
    if (v.producer < 0) {                                     // one whole tensor on the host or in its home
      std::vector<any_op> ops;
      for (int d = 0; d < v.type.rank; ++d)
        if (i64 const k = want.degree(part_kind::shard, d); k > 1) ops.push_back(parallel::partition{d, k});
      if (i64 const k = want.degree(part_kind::copy); k > 1) ops.push_back(parallel::replicate{k});
      y = chain(y, ops, grid);
    } else {
      for (move_step const& m : movement(h.front().where, want, v.type)) {
        y = chain(y, operators_of(m, v.type.rank), grid);
        parallel_shape const s = shape_in(m.after, v.type);     // copies are dropped and made by the step as a whole
        if (s.copy > p.shapes[static_cast<std::size_t>(y)].copy)
          y = chain(y, {any_op(parallel::replicate{s.copy / p.shapes[static_cast<std::size_t>(y)].copy})}, grid);
        p.shapes[static_cast<std::size_t>(y)] = s;
      }
    }
    h.push_back({want, y});
    return y;
  };
  for (int v = 0; v < g.node_count(); ++v) {
    graph_node const& n = g.node(v);
    spread const& s = spreads[static_cast<std::size_t>(v)];
    iteration_space const space = space_of(g, v);
    if (int const bad = misfit(space, s); bad >= 0)
      throw error("loop '" + std::string(1, s.axes[static_cast<std::size_t>(bad)].letter) + "' of " + spell(n.op) + " cannot be split so",
                  "parallelize", "a divisor of the loop's units");
    std::vector<int> in;
    for (std::size_t k = 0; k < n.in.size(); ++k) in.push_back(bring(n.in[k], operand_layout(space, n.letters, s, static_cast<int>(k)), s));
    int const w = p.graph.add(n.op, in, n.name);
    graph_node& m = p.graph.node(w);
    m.phase = n.phase;
    m.region = n.region;
    m.turn = n.turn;
    p.grids.push_back(s);
    for (std::size_t k = 0; k < n.out.size(); ++k) {
      layout const l = result_layout(space, n.letters, s, static_cast<int>(k));
      note(m.out[k], shape_in(l, g.type(n.out[k])));
      have[static_cast<std::size_t>(n.out[k])].push_back({l, m.out[k]});
    }
  }
  for (graph_port const& o : g.outputs) p.graph.append_output(o.name, have[static_cast<std::size_t>(o.value)].front().value);
  return p;
}

/// What is wrong with a parallel graph: operands whose spread does not follow from the node's split loops, degrees that do not divide,
/// parallel operators that do not apply. Empty: valid. O(nodes * operands * loops).
inline std::vector<std::string> problems(parallel_graph const& p) {
  std::vector<std::string> r;
  for (int v = 0; v < p.graph.node_count(); ++v) {
    graph_node const& n = p.graph.node(v);
    std::string const where = "node " + std::to_string(v) + " " + spell(n.op) + ": ";
    auto at = [&](int x) -> parallel_shape const& { return p.shapes[static_cast<std::size_t>(x)]; };
    for (int x : n.out)
      for (int d = 0; d < at(x).type.rank; ++d)
        if (at(x).type.d[d].n % at(x).degree[d])
          r.push_back(where + "axis " + std::to_string(d) + " of " + spell(at(x)) + " is not divisible");
    if (is_parallel(n.op)) {
      parallel_result const q = parallel_rule(n.op, at(n.in[0]));
      if (!q.ok()) r.push_back(where + q.problem);
      continue;
    }
    iteration_space const space = space_of(p.graph, v);
    spread const& s = p.grids[static_cast<std::size_t>(v)];
    if (misfit(space, s) >= 0) { r.push_back(where + "a loop is split that cannot be"); continue; }
    for (std::size_t k = 0; k < n.in.size(); ++k) {
      layout const want = operand_layout(space, n.letters, s, static_cast<int>(k));
      parallel_shape const& have = at(n.in[k]);
      bool same = have.sum == 1 && have.copy == want.degree(part_kind::copy);
      for (int d = 0; d < have.type.rank; ++d) same = same && have.degree[d] == want.degree(part_kind::shard, d);
      if (!same) r.push_back(where + "operand " + std::to_string(k) + " lies as " + spell(have) + " and is wanted otherwise");
    }
  }
  return r;
}

}  // namespace tensorpar
