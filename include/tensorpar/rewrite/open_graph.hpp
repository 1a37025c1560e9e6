// tensorpar/rewrite/open_graph.hpp - a parallel computation graph that rules change in place
#pragma once
#include <algorithm>
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/parallel_inference.hpp>

namespace tensorpar::rewrite {

/// A computation graph and the sharding of every value: what rules work on. Where the parts lie is decided
/// later.
struct sharding_graph {
  computation_graph graph;
  std::vector<ir::parallel_shape> shapes;    // by value
};

/// What is wrong with the shardings; empty: nothing. O(nodes * operands * loops).
inline std::vector<std::string> problems(sharding_graph const& g) {
  std::vector<std::string> all;
  for (int v = 0; v < g.graph.node_count(); ++v) {
    graph_node const& n = g.graph.node(v);
    std::vector<ir::parallel_shape> in;
    for (int x : n.in) in.push_back(g.shapes[idx(x)]);
    ir::parallel_result const r = ir::infer_parallel_shapes(n.op, in);
    std::string const where = "node " + std::to_string(v) + ": ";
    if (!r.ok()) all.push_back(where + r.problem);
    for (std::size_t k = 0; k < r.out.size() && r.ok(); ++k)
      if (!(r.out[k] == g.shapes[idx(n.out[k])]))
        all.push_back(where + "result " + std::to_string(k) + " lies as " +
                      ir::spell(g.shapes[idx(n.out[k])]) + ", made is " + ir::spell(r.out[k]));
  }
  return all;
}

/// The graph with nothing sharding. Throws `error` where an operator does not fit its operands.
inline sharding_graph unsharded(computation_graph g) {
  sharding_graph s{std::move(g), {}};
  for (graph_value const& v : s.graph.values) s.shapes.emplace_back(v.type);
  if (auto const all = problems(s); !all.empty())
    throw error(all.front(), "graph", "operators on whole tensors");
  return s;
}

/// A sharding graph with nodes that come and go. Node and value numbers are never used again, so what is kept
/// of them stays valid or is seen to be gone; new nodes have the largest numbers, so everything is visited in
/// one order in every run.
class open_graph {
 public:
  struct value_info {
    ir::parallel_shape where;
    graph_value origin;                  // role, name, start
    int producer = -1, slot = 0;
    std::vector<int> users;              // nodes, one entry per operand
    int outputs = 0;                     // how many outputs of the graph it is
    bool alive = true;
  };
  struct node_info {
    op::any_op op;
    std::string name;
    std::vector<value_id> in, out;
    bool alive = true;
    int place = 0;                       // in the order of the closed graph, where others do not come first
  };

  explicit open_graph(sharding_graph const& g) {
    for (std::size_t x = 0; x < g.graph.values.size(); ++x) {
      graph_value const& v = g.graph.values[x];
      values_.push_back({g.shapes[x], v, v.producer, v.slot, {}, 0, true});
    }
    for (int v = 0; v < g.graph.node_count(); ++v) {
      graph_node const& n = g.graph.node(v);
      nodes_.push_back({n.op, n.name, n.in, n.out, true, v});
      for (int x : n.in) at(x).users.push_back(v);
      index_[n.op.op->id].push_back(v);
      ++alive_;
    }
    for (graph_port const& o : g.graph.outputs) {
      outputs_.push_back(o);
      ++at(o.value).outputs;
    }
  }

  int node_count() const { return static_cast<int>(nodes_.size()); }   // gone ones too
  int value_count() const { return static_cast<int>(values_.size()); }
  int alive() const { return alive_; }
  node_info const& node(int v) const { return nodes_[idx(v)]; }
  value_info const& value(int x) const { return values_[idx(x)]; }
  std::vector<graph_port> const& outputs() const { return outputs_; }
  /// Nodes of an operator, ascending; some may be gone.
  std::vector<int> const& nodes_of(u64 operator_id) const {
    static std::vector<int> const none;
    auto const it = index_.find(operator_id);
    return it == index_.end() ? none : it->second;
  }
  auto const& index() const { return index_; }

  /// Appends a node. Precondition: `results` is what its operands' shardings give. Returns its number, which
  /// is its place too where none is given.
  int add(op::any_op o, std::vector<value_id> in, std::vector<ir::parallel_shape> const& results,
          std::string name = {}, int place = -1) {
    int const v = node_count();
    node_info n{o, std::move(name), std::move(in), {}, true, place < 0 ? v : place};
    for (std::size_t k = 0; k < results.size(); ++k) {
      graph_value origin;
      origin.type = results[k].type;
      n.out.push_back(static_cast<int>(values_.size()));
      values_.push_back({results[k], std::move(origin), v, static_cast<int>(k), {}, 0, true});
    }
    for (int x : n.in) at(x).users.push_back(v);
    nodes_.push_back(std::move(n));
    index_[o.op->id].push_back(v);
    ++alive_;
    return v;
  }
  /// Everything that used `from` uses `to`.
  void redirect(int from, int to) {
    if (from == to) return;
    for (int v : value(from).users) {
      for (value_id& x : nodes_[idx(v)].in) if (x == from) x = to;
      at(to).users.push_back(v);
    }
    std::sort(at(to).users.begin(), at(to).users.end());
    at(from).users.clear();
    if (value(from).outputs) {
      for (graph_port& o : outputs_) if (o.value == from) o.value = to;
      at(to).outputs += value(from).outputs;
      at(from).outputs = 0;
    }
  }
  /// Removes a node whose results nobody uses.
  void remove(int v) {
    node_info& n = nodes_[idx(v)];
    for (int x : n.in) {
      auto& u = at(x).users;
      u.erase(std::find(u.begin(), u.end(), v));
    }
    for (int x : n.out) at(x).alive = false;
    n.alive = false;
    --alive_;
    auto& list = index_[n.op.op->id];
    list.erase(std::lower_bound(list.begin(), list.end(), v));
  }
  bool unused(int v) const {
    for (int x : node(v).out) if (!value(x).users.empty() || value(x).outputs) return false;
    return true;
  }

  /// The graph as a whole, in topological order: of the nodes that may come next always the one with the
  /// first place, then the smallest number.
  /// O((nodes + operands) log nodes).
  /// `numbers`: by node, its number there or -1.
  sharding_graph close(std::vector<int>* numbers = nullptr) const {
    sharding_graph g;
    if (numbers) numbers->assign(nodes_.size(), -1);
    std::vector<int> number(values_.size(), -1), open(nodes_.size(), 0);
    auto note = [&](int x, int y) {
      number[idx(x)] = y;
      g.shapes.resize(g.graph.values.size());
      g.shapes[idx(y)] = value(x).where;
    };
    for (int x = 0; x < static_cast<int>(values_.size()); ++x) {
      value_info const& v = value(x);
      if (v.producer >= 0 || !v.alive) continue;
      graph_value const& o = v.origin;
      note(x, g.graph.append_value(o.role, o.name, o.type, o.start));
    }
    std::vector<std::pair<int, int>> ready;   // (place, number): a heap, smallest first
    auto push = [&](int v) {
      ready.push_back({node(v).place, v});
      std::push_heap(ready.begin(), ready.end(), std::greater<>());
    };
    for (int v = 0; v < node_count(); ++v) {
      if (!node(v).alive) continue;
      for (int x : node(v).in) open[idx(v)] += value(x).producer >= 0;
      if (!open[idx(v)]) push(v);
    }
    while (!ready.empty()) {
      std::pop_heap(ready.begin(), ready.end(), std::greater<>());
      int const v = ready.back().second;
      ready.pop_back();
      std::vector<value_id> in;
      for (int x : node(v).in) in.push_back(number[idx(x)]);
      int const w = g.graph.add(node(v).op, std::move(in), node(v).name);
      if (numbers) (*numbers)[idx(v)] = w;
      for (std::size_t k = 0; k < node(v).out.size(); ++k) {
        note(node(v).out[k], g.graph.node(w).out[k]);
        for (int u : value(node(v).out[k]).users)
          if (--open[idx(u)] == 0) push(u);
      }
    }
    for (graph_port const& o : outputs_)
      g.graph.append_output(o.name, number[idx(o.value)]);
    return g;
  }

 private:
  std::vector<value_info> values_;
  std::vector<node_info> nodes_;
  std::vector<graph_port> outputs_;
  std::map<u64, std::vector<int>> index_;   // by operator
  int alive_ = 0;

  value_info& at(int x) { return values_[idx(x)]; }
};

}  // namespace tensorpar::rewrite
