// tensorpar/ir/parallel_graph.hpp - a computation graph whose parallelism is operators in the graph
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/parallel_shape.hpp>

namespace tensorpar::ir {

/// A computation graph with parallel operators, the sharding of every value, and for every node which loops
/// are split where.
struct parallel_graph {
  computation_graph graph;
  std::vector<parallel_shape> shapes;        // by value
  // by node; parallel operators have the mesh of the operator they serve
  std::vector<sharding> meshes;
};

namespace detail {

class parallel_writer {
  struct held { layout where; value_id value; };
  computation_graph const& g_;
  parallel_graph p_;
  std::vector<std::vector<held>> have_;          // by value: the layouts in which it is there

  void note(value_id value, parallel_shape const& s) {
    p_.shapes.resize(p_.graph.values.size());
    p_.shapes[idx(value)] = s;
  }
  static parallel_shape shape_in(layout const& l, shape const& s) {
    parallel_shape q(s);
    for (layout_axis const& a : l.axes)
      (a.kind == part_kind::shard     ? q.degree[a.dim]
       : a.kind == part_kind::partial ? q.sum
                                      : q.copy) *= a.degree;
    return q;
  }
  /// Parallel operators one after another; returns the last one's result.
  value_id chain(value_id from, std::vector<op::any_op> const& ops, sharding const& mesh) {
    for (op::any_op const& o : ops) {
      parallel_shape const s = p_.shapes[idx(from)];
      node_id const v = p_.graph.add(o, {from});
      p_.meshes.push_back(mesh);
      from = p_.graph.node(v).out[0];
      parallel_result const r = parallel_rule(o, s);
      if (!r.ok()) throw error(r.problem, "parallelize", "shardings that fit the graph");
      note(from, r.out[0]);
    }
    return from;
  }
  /// Value y as this shape has it: a reshard makes and drops copies as a whole. Where copies of `first` are
  /// left out and nothing else happens, it stays as it is for those who read all of them.
  value_id with_copies(value_id y, value_id first, parallel_shape const& s, sharding const& mesh) {
    i64 const have = p_.shapes[idx(y)].copy;
    if (s.copy > have) y = chain(y, {op::any_op(parallel::replicate{s.copy / have})}, mesh);
    if (y != first) p_.shapes[idx(y)] = s;
    return y;
  }
  /// Value x in this layout.
  value_id bring(value_id x, layout const& want, sharding const& mesh) {
    auto& h = have_[idx(x)];
    for (held const& k : h) if (k.where == want) return k.value;
    graph_value const& v = g_.value(x);
    value_id y = h.front().value;
    if (v.producer < 0) {                                     // one whole tensor on the host or in its home
      std::vector<op::any_op> ops;
      for (int d = 0; d < v.type.rank; ++d)
        if (i64 const k = want.degree(part_kind::shard, d); k > 1) ops.push_back(parallel::partition{d, k});
      if (i64 const k = want.degree(part_kind::replicate); k > 1) ops.push_back(parallel::replicate{k});
      y = chain(y, ops, mesh);
    } else {
      for (reshard_step const& m : reshard(h.front().where, want, v.type)) {
        y = chain(y, ir::operators_of(m, v.type.rank), mesh);
        y = with_copies(y, h.front().value, shape_in(m.after, v.type), mesh);
      }
      // another group of devices may hold more copies
      y = with_copies(y, h.front().value, shape_in(want, v.type), mesh);
    }
    h.push_back({want, y});
    return y;
  }

 public:
  explicit parallel_writer(computation_graph const& g) : g_(g), have_(g.values.size()) {
    for (std::size_t x = 0; x < g_.values.size(); ++x) {
      graph_value const& v = g_.values[x];
      if (v.producer >= 0) continue;
      value_id const y = p_.graph.append_value(v.role, v.name, v.type, v.start);
      note(y, parallel_shape(v.type));
      have_[x].push_back({layout{}, y});
    }
  }
  void put(node_id v, sharding const& s) {
    graph_node const& n = g_.node(v);
    iteration_space const space = space_of(g_, v);
    if (int const bad = misfit(space, s); bad >= 0)
      throw error("loop '" + std::string(1, s.axes[idx(bad)].letter) + "' of " +
                      op::spell(n.op) + " cannot be split so",
                  "parallelize", "a divisor of the loop's units");
    std::vector<value_id> in;
    for (std::size_t k = 0; k < n.in.size(); ++k)
      in.push_back(bring(n.in[k], operand_layout(space, n.letters, s, static_cast<int>(k)), s));
    node_id const w = p_.graph.add(n.op, in, n.name);
    graph_node& m = p_.graph.node(w);
    m.phase = n.phase;
    m.block = n.block;
    m.repetition = n.repetition;
    p_.meshes.push_back(s);
    for (std::size_t k = 0; k < n.out.size(); ++k) {
      layout const l = result_layout(space, n.letters, s, static_cast<int>(k));
      note(m.out[k], shape_in(l, g_.type(n.out[k])));
      have_[idx(n.out[k])].push_back({l, m.out[k]});
    }
  }
  parallel_graph take() {
    for (graph_port const& o : g_.outputs)
      p_.graph.append_output(o.name, have_[idx(o.value)].front().value);
    return std::move(p_);
  }
};

}  // namespace detail

/// Writes a choice of shardings into the graph: between a producer's layout and a consumer's, the parallel
/// operators that the reshard stands for, shared by consumers that want the same layout. Parameters and
/// inputs are partitioned and replicated from one whole tensor. Precondition: shardings has one entry per
/// node of g, and each fits its node. O(nodes * operands).
inline parallel_graph parallelize(computation_graph const& g, std::vector<sharding> const& shardings) {
  detail::parallel_writer w(g);
  for (node_id v = 0; v < g.node_count(); ++v) w.put(v, shardings[idx(v)]);
  return w.take();
}

/// What is wrong with a parallel graph: operands whose sharding does not follow from the node's split loops,
/// degrees that do not divide, parallel operators that do not apply. Empty: valid. O(nodes * operands *
/// loops).
inline std::vector<std::string> problems(parallel_graph const& p) {
  std::vector<std::string> r;
  for (node_id v = 0; v < p.graph.node_count(); ++v) {
    graph_node const& n = p.graph.node(v);
    std::string const where = "node " + std::to_string(v) + " " + op::spell(n.op) + ": ";
    auto at = [&](value_id x) -> parallel_shape const& { return p.shapes[idx(x)]; };
    for (value_id x : n.out)
      for (int d = 0; d < at(x).type.rank; ++d)
        if (at(x).type.d[d].n % at(x).degree[d])
          r.push_back(where + "axis " + std::to_string(d) + " of " + spell(at(x)) + " is not divisible");
    if (is_parallel(n.op)) {
      parallel_result const q = parallel_rule(n.op, at(n.in[0]));
      if (!q.ok()) r.push_back(where + q.problem);
      continue;
    }
    iteration_space const space = space_of(p.graph, v);
    sharding const& s = p.meshes[idx(v)];
    if (misfit(space, s) >= 0) { r.push_back(where + "a loop is split that cannot be"); continue; }
    for (std::size_t k = 0; k < n.in.size(); ++k) {
      layout const want = operand_layout(space, n.letters, s, static_cast<int>(k));
      parallel_shape const& have = at(n.in[k]);
      // copies may be left unread
      bool same = have.sum == 1 && have.copy % want.degree(part_kind::replicate) == 0;
      for (int d = 0; d < have.type.rank; ++d)
        same = same && have.degree[d] == want.degree(part_kind::shard, d);
      if (!same)
        r.push_back(where + "operand " + std::to_string(k) + " lies as " + spell(have) +
                    " and is wanted otherwise");
    }
  }
  return r;
}

}  // namespace tensorpar::ir
