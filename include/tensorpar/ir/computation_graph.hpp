// tensorpar/ir/computation_graph.hpp - the graph of the problem at run time: operators, values, parameters
#pragma once
#include <string>
#include <tensorpar/core/error.hpp>
#include <tensorpar/op/any_op.hpp>
#include <tensorpar/op/spelling.hpp>
#include <vector>

namespace tensorpar {

/// Where a value comes from. Inputs and parameters have no producer; states belong to an optimizer (velocity, moments).
enum class value_role : int { activation, input, parameter, state };
/// Which part of a training step an operator belongs to.
enum class step_phase : int { forward, backward, update };

struct graph_value {
  shape type;
  value_role role = value_role::activation;
  int producer = -1;                      // node, or -1
  int slot = 0;                           // which result of the producer
  std::string name;                       // inputs, parameters, states, outputs
  init start = init::zeros;               // parameters and states
  int stored_in = -1;                     // an update's result: the parameter or state it replaces
  int part = 0, parts = 1;                // inputs: which part of the batch along axis 0 it is (a graph that holds several micro-batches)

  // made once a unit and not wherever one is copied: making code for strings and vectors is most of what compiling a model takes
  graph_value() = default;
  [[gnu::noinline, gnu::cold]] graph_value(graph_value const&) = default;
  [[gnu::noinline, gnu::cold]] graph_value(graph_value&&) noexcept = default;
  [[gnu::noinline, gnu::cold]] graph_value& operator=(graph_value const&) = default;
  [[gnu::noinline, gnu::cold]] graph_value& operator=(graph_value&&) noexcept = default;
  [[gnu::noinline, gnu::cold]] ~graph_value() = default;
};

struct graph_node {
  any_op op;
  std::string name;
  std::vector<int> in, out;               // value ids; weights stand after the activations
  int activations = 0;
  step_phase phase = step_phase::forward;
  int origin = -1;                        // the forward node this one was derived from; itself for forward nodes
  /// letters[i] is the loop of the origin's iteration space that loop i of this node's follows ('\0': none). Empty: the same letters.
  std::string letters;
  int region = -1, turn = 0;              // which repeated block it came from, and which turn of it
  int part = 0;                           // which micro-batch it works on, in a graph that holds several
  bool again = false;                     // a forward operator run once more, in the backward pass
  bool anew = false;                      // its operands are moved for it and others like it, not taken from the forward pass' copies
  bool in_place = false;                  // the result takes the place of the first operand where nothing reads that afterwards

  graph_node() = default;   // as in graph_value
  [[gnu::noinline, gnu::cold]] graph_node(graph_node const&) = default;
  [[gnu::noinline, gnu::cold]] graph_node(graph_node&&) noexcept = default;
  [[gnu::noinline, gnu::cold]] graph_node& operator=(graph_node const&) = default;
  [[gnu::noinline, gnu::cold]] graph_node& operator=(graph_node&&) noexcept = default;
  [[gnu::noinline, gnu::cold]] ~graph_node() = default;
};

struct graph_port {
  std::string name;
  int value;
};

/// A directed acyclic graph of operators over values. Nodes stand in topological order: operands before their users.
/// A regular value; models `topology` (graph/concepts.hpp) with operators as nodes.
class computation_graph {
 public:
  std::vector<graph_node> nodes;
  std::vector<graph_value> values;
  std::vector<graph_port> outputs;

  int node_count() const { return static_cast<int>(nodes.size()); }
  graph_node const& node(int v) const { return nodes[static_cast<std::size_t>(v)]; }
  graph_node& node(int v) { return nodes[static_cast<std::size_t>(v)]; }
  graph_value const& value(int x) const { return values[static_cast<std::size_t>(x)]; }
  graph_value& value(int x) { return values[static_cast<std::size_t>(x)]; }
  shape const& type(int x) const { return value(x).type; }

  /// Producers of v's operands, ascending and without repetition.
  std::vector<int> predecessors(int v) const {
    std::vector<int> r;
    for (int x : node(v).in) {
      int const p = value(x).producer;
      if (p < 0) continue;
      std::size_t i = 0;
      while (i < r.size() && r[i] < p) ++i;
      if (i == r.size() || r[i] != p) r.insert(r.begin() + static_cast<std::ptrdiff_t>(i), p);
    }
    return r;
  }

  int add_input(std::string name, shape const& s) { return add_value(s, value_role::input, std::move(name), init::zeros); }
  int add_parameter(std::string name, shape const& s, init start) { return add_value(s, value_role::parameter, std::move(name), start); }
  int add_state(std::string name, shape const& s) { return add_value(s, value_role::state, std::move(name), init::zeros); }
  [[gnu::cold]] void add_output(std::string name, int x) {
    graph_port& p = outputs.emplace_back();
    p.name = std::move(name);
    p.value = x;
  }
  int output(std::string_view name) const {
    for (graph_port const& p : outputs) if (p.name == name) return p.value;
    return -1;
  }

  /// Appends an operator on these operands (activations, then all of its weights). Returns its node id; results are `node(id).out`.
  /// Throws `error` where the operator's shape rule complains. O(operands * rank).
  [[gnu::cold]] int add(any_op const& o, std::vector<int> operands, std::string name = {}) {
    int const activations = o.op->arity < 0 ? static_cast<int>(operands.size()) : o.op->arity;
    inference const r = accepted(o, types_of(operands).view(), activations, name);
    int const id = node_count();
    any_op const op = o;                   // it may be of a node of this graph
    graph_node& n = nodes.emplace_back();
    n.op = op;
    n.name = std::move(name);
    n.in = std::move(operands);
    n.activations = activations;
    n.origin = id;
    for (int i = 0; i < r.n; ++i) {
      int const x = add_value(r.out[i], value_role::activation, {}, init::zeros);
      value(x).producer = id;
      value(x).slot = i;
      n.out.push_back(x);
    }
    return id;
  }
  /// The same with the operator's own weights made as new parameters named `name.0`, `name.1` ...; none are where it throws.
  int add_with_weights(any_op const& o, std::vector<int> operands, std::string name) {
    pool<shape> const in = types_of(operands);
    accepted(o, in.view(), o.op->arity < 0 ? in.size() : o.op->arity, name);       // weights follow from operands that the rule accepts
    weight_list const w = o.op->weights(o.attr, in.view());
    for (int i = 0; i < w.n; ++i) {
      std::string weight = name;
      detail::put_text(weight, ".");
      detail::put_text(weight, i64{i});
      operands.push_back(add_parameter(std::move(weight), w.w[i].type, w.w[i].start));
    }
    return add(o, std::move(operands), std::move(name));
  }

  /// A stable hash of operators, attributes, shapes and wiring (names excluded): two graphs that compute the same way agree on it.
  u64 hash() const {
    hasher h;
    h.add(values.size()).add(nodes.size());
    for (graph_value const& v : values) {
      h.add(v.role).add(v.type.rank).add(v.type.type);
      for (int i = 0; i < v.type.rank; ++i) h.add(v.type.d[i].n).add(v.type.d[i].sym.id);
    }
    for (graph_node const& n : nodes) {
      h.add(n.op.hash()).add(n.phase);
      for (int x : n.in) h.add(x);
      for (int x : n.out) h.add(x);
    }
    return h.value();
  }

 private:
  pool<shape> types_of(std::vector<int> const& operands) const {
    pool<shape> in;
    shape* const types = in.extend(static_cast<int>(operands.size()));
    for (std::size_t i = 0; i < operands.size(); ++i) types[i] = type(operands[i]);
    return in;
  }
  static inference accepted(any_op const& o, shapes in, int activations, std::string const& name) {
    if (in.n < activations) refuse(o, name, " has too few operands", nullptr);
    inference const r = infer_results(o, in, activations);
    if (!r.ok()) refuse(o, name, nullptr, &r);
    return r;
  }
  [[gnu::noinline, gnu::cold]] int add_value(shape const& s, value_role role, std::string&& name, init start) {
    shape const type = s;                  // it may be of a value of this graph
    graph_value& v = values.emplace_back();
    v.type = type;
    v.role = role;
    v.name = std::move(name);
    v.start = start;
    return static_cast<int>(values.size()) - 1;
  }
  /// Out of the way of what is compiled everywhere: `why`, or the complaint of the shape rule.
  [[noreturn, gnu::noinline, gnu::cold]] static void refuse(any_op const& o, std::string const& name, char const* why, inference const* r) {
    using detail::put_text;
    std::string what, where, valid;
    put_text(what, "operator ");
    put_text(what, o.op->name);
    if (!name.empty()) { put_text(what, " '"); put_text(what, name); put_text(what, "'"); }
    if (why) { put_text(what, why); put_text(valid, i64{o.op->arity}); put_text(valid, " operands"); }
    if (r) {
      put_text(what, ": ");
      put_text(what, r->rule);
      put_text(what, ": ");
      put_text(what, r->out[0]);
      put_text(what, ", ");
      put_text(what, r->out[1]);
    }
    if (o.at.file) { put_text(where, o.at.file); put_text(where, ":"); put_text(where, i64{o.at.line}); }
    throw error(std::move(what), std::move(where), std::move(valid));
  }
};

}  // namespace tensorpar
