// tensorpar/ir/computation_graph.hpp - the graph of the problem at run time: operators, values, parameters
#pragma once
#include <concepts>
#include <string>
#include <tensorpar/core/error.hpp>
#include <tensorpar/core/ids.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/name_index.hpp>
#include <tensorpar/ir/axis_share.hpp>
#include <tensorpar/op/core/spelling.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>
#include <vector>

namespace tensorpar {

/// Where a value comes from. Inputs and parameters have no producer; states belong to an optimizer (velocity,
/// moments).
enum class value_role : int { activation, input, parameter, state };
/// Which part of a training step an operator belongs to.
enum class step_phase : int { forward, backward, update };

struct graph_value {
  shape type;
  value_role role = value_role::activation;
  node_id producer;                       // -1: none
  int slot = 0;                           // which result of the producer
  std::string name;                       // inputs, parameters, states, outputs
  op::init start = op::init::zeros;               // parameters and states
  value_id stored_in;                     // an update's result: the parameter or state it replaces
  // inputs: which part of the batch along axis 0 it is (a graph that holds several micro-batches)
  int micro_batch = 0, micro_batches = 1;

  // made once a unit and not wherever one is copied: making code for strings and vectors is most of what
  // compiling a model takes
  graph_value() = default;
  [[gnu::noinline, gnu::cold]] graph_value(graph_value const&) = default;
  [[gnu::noinline, gnu::cold]] graph_value(graph_value&&) noexcept = default;
  [[gnu::noinline, gnu::cold]] graph_value& operator=(graph_value const&) = default;
  [[gnu::noinline, gnu::cold]] graph_value& operator=(graph_value&&) noexcept = default;
  [[gnu::noinline, gnu::cold]] ~graph_value() = default;
};

struct graph_node {
  op::any_op op;
  std::string name;
  std::vector<value_id> in, out;          // weights stand after the activations
  int activations = 0;
  step_phase phase = step_phase::forward;
  // the forward node this one was derived from; itself for forward nodes
  node_id origin;
  /// letters[i] is the loop of the origin's iteration space that loop i of this node's follows ('\0': none).
  /// Empty: the same letters.
  std::string letters;
  ir::axis_share share;                   // of an update whose loop follows a part of an axis
  // which repeated block it came from, and which repetition of it
  int block = -1, repetition = 0;
  // which micro-batch it works on, of how many, in a graph that holds several
  int micro_batch = 0, micro_batches = 1;
  // of its first result in a step: where samples stand (ir/sample_runs.hpp); -1: it cannot be told
  i64 sample_run = -1;
  bool recomputed = false;                // a forward operator run once more, in the backward pass
  // its operands are moved for it and others like it, not taken from the forward pass' copies
  bool refetch_operands = false;
  // the result takes the place of the first operand where nothing reads that afterwards
  bool in_place = false;
  // of a sum of a gradient over micro-batches: its operands are scattered as soon as they are made (ZeRO-2)
  bool in_parts = false;

  graph_node() = default;   // as in graph_value
  [[gnu::noinline, gnu::cold]] graph_node(graph_node const&) = default;
  [[gnu::noinline, gnu::cold]] graph_node(graph_node&&) noexcept = default;
  [[gnu::noinline, gnu::cold]] graph_node& operator=(graph_node const&) = default;
  [[gnu::noinline, gnu::cold]] graph_node& operator=(graph_node&&) noexcept = default;
  [[gnu::noinline, gnu::cold]] ~graph_node() = default;
};

struct graph_port {
  std::string name;
  value_id value;
};

/// A directed acyclic graph of operators over values. Nodes stand in topological order: operands before their
/// users.
/// A regular value; models `topology` (graph/concepts.hpp) with operators as nodes.
class computation_graph {
 public:
  std::vector<graph_node> nodes;
  std::vector<graph_value> values;
  std::vector<graph_port> outputs;

  int node_count() const { return static_cast<int>(nodes.size()); }
  graph_node const& node(node_id v) const { return nodes[idx(v)]; }
  graph_node& node(node_id v) { return nodes[idx(v)]; }
  graph_value const& value(value_id x) const { return values[idx(x)]; }
  graph_value& value(value_id x) { return values[idx(x)]; }
  shape const& type(value_id x) const { return value(x).type; }

  /// Producers of v's operands, ascending and without repetition. (A template: who builds graphs alone does
  /// not pay for it.)
  template <std::same_as<int> Vertex = int>
  std::vector<Vertex> predecessors(node_id v) const {
    std::vector<Vertex> r;
    for (value_id x : node(v).in) {
      node_id const p = value(x).producer;
      if (p < 0) continue;
      std::size_t i = 0;
      while (i < r.size() && r[i] < p) ++i;
      if (i == r.size() || r[i] != p) r.insert(r.begin() + static_cast<std::ptrdiff_t>(i), p);
    }
    return r;
  }

  /// Appends a value that nothing makes; its id. Throws `error` for an extent below 1, for more than 2^48
  /// elements, and for a name that another input (parameter, state) has.
  value_id add_input(std::string name, shape const& s) {
    return add_named(value_role::input, std::move(name), s, op::init::zeros);
  }
  value_id add_parameter(std::string name, shape const& s, op::init start) {
    return add_named(value_role::parameter, std::move(name), s, start);
  }
  value_id add_state(std::string name, shape const& s) {
    return add_named(value_role::state, std::move(name), s, op::init::zeros);
  }
  /// The same for passes whose names may stand for several values.
  value_id append_value(value_role role, std::string name, shape const& s, op::init start = op::init::zeros) {
    names_.insert(key_of(static_cast<int>(role), name));
    return add_value(s, role, std::move(name), start);
  }
  /// Throws `error` for no value of this graph, and for a name that another output has.
  [[gnu::cold]] void add_output(std::string name, value_id x) {
    if (x < 0 || idx(x) >= values.size()) refuse_value("output '" + name + "'", x);
    if (names_.contains(key_of(outputs_key, name)) && output(name) >= 0) refuse_name("outputs", name);
    append_output(std::move(name), x);
  }
  /// The same for passes that make an output of several micro-batches.
  [[gnu::cold]] void append_output(std::string name, value_id x) {
    names_.insert(key_of(outputs_key, name));
    graph_port& p = outputs.emplace_back();
    p.name = std::move(name);
    p.value = x;
  }
  value_id output(std::string_view name) const {
    for (graph_port const& p : outputs) if (p.name == name) return p.value;
    return -1;
  }

  /// Appends an operator on these operands (activations, then all of its weights). Returns its node id;
  /// results are `node(id).out`. A dropout whose seed another one has gets a seed of its own, made from that
  /// and its place: no two draw one mask.
  /// Throws `error` where the operator's shape rule complains. O(operands * rank), for a dropout O(nodes).
  [[gnu::cold]] node_id add(op::any_op const& o, std::vector<value_id> operands, std::string name = {}) {
    return append(o.is<dropout>() ? with_own_seed(o) : o, std::move(operands), std::move(name));
  }
  /// The same with the operator as it is: for passes that repeat one, whose mask is drawn once more.
  [[gnu::cold]] node_id append(op::any_op const& o, std::vector<value_id> operands, std::string name = {}) {
    for (value_id x : operands)
      if (x < 0 || idx(x) >= values.size())
        refuse_value("operator " + std::string(o.op->name) + " '" + name + "'", x);
    int const activations = o.op->arity < 0 ? static_cast<int>(operands.size()) : o.op->arity;
    op::inference const r = accepted(o, types_of(operands).view(), activations, name);
    for (int i = 0; i < r.n; ++i)
      if (char const* const why = wrong_size(r.out[i])) refuse_size(o, name, "a result", r.out[i], why);
    node_id const id = node_count();
    op::any_op const op = o;                   // it may be of a node of this graph
    graph_node& n = nodes.emplace_back();
    n.op = op;
    n.name = std::move(name);
    n.in = std::move(operands);
    n.activations = activations;
    n.origin = id;
    for (int i = 0; i < r.n; ++i) {
      value_id const x = add_value(r.out[i], value_role::activation, {}, op::init::zeros);
      value(x).producer = id;
      value(x).slot = i;
      n.out.push_back(x);
    }
    return id;
  }
  /// The same with the operator's own weights made as new parameters named `name.0`, `name.1` ...; none are
  /// where it throws. Where several operators have no name, all but the first are called by operator and
  /// number.
  node_id add_with_weights(op::any_op const& o, std::vector<value_id> operands, std::string name) {
    for (value_id x : operands)
      if (x < 0 || idx(x) >= values.size())
        refuse_value("operator " + std::string(o.op->name) + " '" + name + "'", x);
    core::pool<shape> const in = types_of(operands);
    // weights follow from operands that the rule accepts
    accepted(o, in.view(), o.op->arity < 0 ? in.size() : o.op->arity, name);
    op::weight_list const w = o.op->weights(o.attr, in.view());
    for (int i = 0; i < w.n; ++i)
      if (char const* const why = wrong_size(w.w[i].type)) refuse_size(o, name, "a weight", w.w[i].type, why);
    if (name.empty() && w.n > 0 && names_.contains(key_of(static_cast<int>(value_role::parameter), ".0"))) {
      op::detail::put_text(name, o.op->name);
      op::detail::put_text(name, i64{node_count()});
    }
    std::string weight[op::weight_list::max];
    for (int i = 0; i < w.n; ++i) {
      weight[i] = name;
      op::detail::put_text(weight[i], ".");
      op::detail::put_text(weight[i], i64{i});
      require_own_name(value_role::parameter, weight[i]);
    }
    for (int i = 0; i < w.n; ++i)
      operands.push_back(
          append_value(value_role::parameter, std::move(weight[i]), w.w[i].type, w.w[i].start));
    return add(o, std::move(operands), std::move(name));
  }

  /// A stable hash of operators, attributes, shapes and wiring (names excluded): two graphs that compute the
  /// same way agree on it.
  u64 hash() const {
    core::hasher h;
    h.add(values.size()).add(nodes.size());
    for (graph_value const& v : values) {
      h.add(v.role).add(v.type.rank).add(v.type.type);
      for (int i = 0; i < v.type.rank; ++i) h.add(v.type.d[i].n).add(v.type.d[i].sym.id);
    }
    for (graph_node const& n : nodes) {
      h.add(n.op.hash()).add(n.phase);
      for (value_id x : n.in) h.add(int{x});
      for (value_id x : n.out) h.add(int{x});
    }
    return h.value();
  }

 private:
  static constexpr int outputs_key = -1;
  core::detail::name_index names_;               // of inputs, parameters, states and outputs

  static u64 key_of(int kind, std::string_view name) { return core::hasher().add(kind).add(name).value(); }
  [[gnu::noinline, gnu::cold]] void require_own_name(value_role role, std::string const& name) const {
    if (!names_.contains(key_of(static_cast<int>(role), name))) return;
    for (graph_value const& v : values)
      if (v.role == role && v.producer < 0 && v.name == name)
        refuse_name(role == value_role::input       ? "inputs"
                    : role == value_role::parameter ? "parameters"
                                                    : "states",
                    name);
  }
  value_id add_named(value_role role, std::string&& name, shape const& s, op::init start) {
    require_own_name(role, name);
    return append_value(role, std::move(name), s, start);
  }
  [[noreturn, gnu::noinline, gnu::cold]] static void refuse_name(char const* kind, std::string const& name) {
    throw error("two " + std::string(kind) + " named '" + name + "'", "computation_graph",
                "a name of its own for each");
  }
  [[noreturn, gnu::noinline, gnu::cold]] void refuse_value(std::string const& reader, value_id x) const {
    throw error(reader + " reads value " + std::to_string(x), "computation_graph",
                values.empty() ? "values of the graph, which has none yet"
                               : "values 0 to " + std::to_string(values.size() - 1));
  }
  core::pool<shape> types_of(std::vector<value_id> const& operands) const {
    core::pool<shape> in;
    shape* const types = in.extend(static_cast<int>(operands.size()));
    for (std::size_t i = 0; i < operands.size(); ++i) types[i] = type(operands[i]);
    return in;
  }
  [[gnu::noinline, gnu::cold]] op::any_op with_own_seed(op::any_op o) const {
    i64 const given = o.as<dropout>().seed;
    for (u64 place = nodes.size();; ++place) {
      bool taken = false;
      for (graph_node const& n : nodes)
        taken = taken || (n.op.is<dropout>() && n.op.as<dropout>().seed == o.as<dropout>().seed);
      if (!taken) return o;
      dropout d = o.as<dropout>();
      d.seed = static_cast<i64>(core::hasher().add(given).add(place).value() >> 1);
      op::save(d, o.attr);
    }
  }
  static op::inference accepted(op::any_op const& o, shapes in, int activations, std::string const& name) {
    if (in.n < activations) refuse(o, name, " has too few operands", nullptr);
    op::inference const r = op::infer_results(o, in, activations);
    if (!r.ok()) refuse(o, name, nullptr, &r);
    return r;
  }
  /// Why no value may have this shape, or null.
  static char const* wrong_size(shape const& s) {
    for (int i = 0; i < s.rank; ++i) if (s.d[i].n < 1) return " has an extent below 1";
    return s.elements() > core::max_tensor_elements ? " has more than 2^48 elements" : nullptr;
  }
  static constexpr char const* valid_size = "extents of 1 or more, at most 2^48 elements";
  [[noreturn, gnu::noinline, gnu::cold]] static void refuse_size(op::any_op const& o, std::string const& name,
                                                                 char const* which, shape const& s,
                                                                 char const* why) {
    std::string what = ": ";
    for (char const* text : {which, " of shape "}) op::detail::put_text(what, text);
    op::detail::put_text(what, s);
    op::detail::put_text(what, why);
    refuse_with(o, name, std::move(what), valid_size);
  }
  [[gnu::noinline, gnu::cold]] value_id add_value(shape const& s, value_role role, std::string&& name,
                                                  op::init start) {
    shape const type = s;                  // it may be of a value of this graph
    if (char const* const why = wrong_size(type)) {
      std::string what = role == value_role::input       ? "input '"
                         : role == value_role::parameter ? "parameter '"
                                                         : "state '";
      op::detail::put_text(what, name);
      op::detail::put_text(what, "' of shape ");
      op::detail::put_text(what, type);
      op::detail::put_text(what, why);
      throw error(std::move(what), "computation_graph", valid_size);
    }
    graph_value& v = values.emplace_back();
    v.type = type;
    v.role = role;
    v.name = std::move(name);
    v.start = start;
    return static_cast<int>(values.size()) - 1;
  }
  /// Out of the way of what is compiled everywhere: `why`, or the complaint of the shape rule.
  [[noreturn, gnu::noinline, gnu::cold]] static void refuse(op::any_op const& o, std::string const& name,
                                                            char const* why, op::inference const* r) {
    using op::detail::put_text;
    std::string what, valid;
    if (why) {
      op::detail::put_text(what, why); op::detail::put_text(valid,
          i64{o.op->arity}); op::detail::put_text(valid, " operands");
    }
    if (r) {
      op::detail::put_text(what, ": ");
      op::detail::put_text(what, r->rule);
      op::detail::put_text(what, ": ");
      op::detail::put_text(what, r->out[0]);
      op::detail::put_text(what, ", ");
      op::detail::put_text(what, r->out[1]);
    }
    refuse_with(o, name, std::move(what), std::move(valid));
  }
  [[noreturn, gnu::noinline, gnu::cold]] static void refuse_with(op::any_op const& o, std::string const& name,
                                                                 std::string&& text, std::string&& valid) {
    using op::detail::put_text;
    std::string what, where;
    op::detail::put_text(what, "operator ");
    op::detail::put_text(what, o.op->name);
    if (!name.empty()) {
      op::detail::put_text(what, " '"); op::detail::put_text(what, name); op::detail::put_text(what, "'");
    }
    what += text;
    if (o.at.file) {
      op::detail::put_text(where, o.at.file); op::detail::put_text(where, ":"); op::detail::put_text(where,
          i64{o.at.line});
    }
    throw error(std::move(what), std::move(where), std::move(valid));
  }
};

}  // namespace tensorpar
