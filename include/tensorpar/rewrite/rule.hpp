// tensorpar/rewrite/rule.hpp - a rewrite rule as a value: two pattern graphs over typed operators that
// compute the same
#pragma once
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/op/core/any_op.hpp>
#include <vector>

namespace tensorpar::rewrite {

/// What a rule leaves open besides its tensors. A function stands for any operator of one operand and no
/// attributes that keeps every index.
enum class parameter_kind : int { degree, axis, number, function };
struct rule_parameter {
  std::string name;
  parameter_kind kind;
  friend bool operator==(rule_parameter const&, rule_parameter const&) = default;
};

/// A number that a rule knows once it is matched: a parameter, or what is known of a tensor variable along an
/// axis (`extent`, `degree`) or as a whole (`copies`, `sums`: its two replica counts).
enum class term_kind : int { parameter, extent, degree, copies, sums };
struct rule_factor {
  term_kind kind = term_kind::parameter;
  int index = 0;                       // of the parameter or tensor
  // extent, degree: along this axis (negative: from the last), or along a parameter's
  int axis = 0, axis_parameter = -1;
  friend bool operator==(rule_factor const&, rule_factor const&) = default;
};
/// A product of a number and factors; of a real attribute either a number (the bits of a double) or a product
/// of parameters. As the attribute of an operator, `open` stands for what follows from the operands (the
/// width of a matrix product) or is a label only; nothing is written then.
struct rule_term {
  i64 number = 1;
  std::vector<rule_factor> factors;
  bool open = false;
  friend bool operator==(rule_term const&, rule_term const&) = default;
};
inline rule_term number_term(i64 n) { return {n, {}, false}; }
inline rule_term parameter_term(int p) { return {1, {{term_kind::parameter, p, 0, -1}}, false}; }
inline rule_term open_term() { return {1, {}, true}; }

/// Result `slot` of a pattern's node, or, for node == -1, the tensor variable `slot`.
struct pattern_value {
  int node = -1, slot = 0;
  friend bool operator==(pattern_value const&, pattern_value const&) = default;
  friend auto operator<=>(pattern_value const&, pattern_value const&) = default;
};
struct pattern_node {
  op::op_info const* op = nullptr;         // nullptr: a function parameter
  int function = -1;
  std::vector<rule_term> attr;         // one per attribute of the operator
  std::vector<pattern_value> in;
  friend bool operator==(pattern_node const& a, pattern_node const& b) {
    return (a.op ? a.op->id : 0) == (b.op ? b.op->id : 0) && a.function == b.function && a.attr == b.attr &&
           a.in == b.in;
  }
};
/// A small graph. Nodes stand in topological order; `outputs` are what the rest of the graph may use.
struct pattern_graph {
  std::vector<pattern_node> nodes;
  std::vector<pattern_value> outputs;
  friend bool operator==(pattern_graph const&, pattern_graph const&) = default;
};

/// What must hold of a match besides that both sides are valid graphs.
///   divides    a divides b             equal      a == b
///   different  two axes differ         inner      axis a is none of the last b axes of tensor `tensor`
enum class condition_kind : int { divides, equal, different, inner };
struct rule_condition {
  condition_kind kind = condition_kind::equal;
  rule_term a, b;
  int tensor = -1;
  friend bool operator==(rule_condition const&, rule_condition const&) = default;
};

/// `source` may be replaced by `target`, output by output, wherever both are valid and the conditions hold:
/// outputs then have the same values, the same extents and the same sharding. A degree, an axis or a whole
/// number of the target that the source does not bind is chosen by who applies the rule.
struct rule {
  std::string name;
  std::vector<std::string> tensors;    // names of the tensor variables
  std::vector<rule_parameter> parameters;
  pattern_graph source, target;
  std::vector<rule_condition> conditions;
  friend bool operator==(rule const&, rule const&) = default;
};

/// What an attribute of an operator means for rules: which parameters may stand there.
///   follows   from the operands' shapes or from their number: never written     label   a name, no meaning
enum class attr_role : int { degree, axis, number, follows, label };
inline attr_role role_of(op::op_info const& o, int i) {
  if (o.first) return role_of(*o.first, i);
  std::string_view const a = o.attr_name(i), n = o.name;
  if (o.attr_kind(i) == 'a') return attr_role::label;
  if (a == "degree") return attr_role::degree;
  if (a == "dim" || a == "axis" || a == "first" || a == "which" ||
      (n == "transpose" && (a == "a" || a == "b")))
    return attr_role::axis;
  if ((n == "linear" || n == "conv2d") && (a == "out" || a == "bias")) return attr_role::follows;
  if (n == "conv2d" && (a == "kernel" || a == "kernel_w")) return attr_role::follows;
  if ((n == "embedding" || n == "embedding_bag") && (a == "rows" || a == "width")) return attr_role::follows;
  return attr_role::number;
}

/// Fills in the attributes that follow from the operands: the operator that `attr` and these shapes stand
/// for.
inline op::any_op with_followers(op::op_info const& o, i64 const* attr, shapes in) {
  op::any_op r;
  r.op = &o;
  for (int i = 0; i < o.attrs; ++i) {
    r.attr[i] = attr[i];
    if (role_of(o, i) == attr_role::label) r.attr[i] = 0;
    if (role_of(o, i) != attr_role::follows) continue;
    std::string_view const a = o.attr_name(i);
    auto extent = [&](int k, int d) -> i64 { return in.size() > k && in[k].rank > d ? in[k].d[d].n : 1; };
    if (a == "bias") r.attr[i] = in.size() > 2;
    else if (a == "width") r.attr[i] = extent(1, 1);
    else if (a == "kernel") r.attr[i] = extent(1, 2);
    else if (a == "kernel_w") r.attr[i] = extent(1, 3) == extent(1, 2) ? 0 : extent(1, 3);
    else r.attr[i] = extent(1, 0);   // out, rows
  }
  return r;
}

namespace detail {
/// What stands for a pattern's value: one of `tensors`, or one of `results` by node and slot.
template <class T>
T const& value_of(pattern_value v, std::vector<T> const& tensors,
                  std::vector<std::vector<T>> const& results) {
  return v.node < 0 ? tensors[idx(v.slot)] : results[idx(v.node)][idx(v.slot)];
}
inline void each_term(rule const& r, auto&& visit) {
  for (pattern_graph const* g : {&r.source, &r.target})
    for (pattern_node const& n : g->nodes)
      for (rule_term const& t : n.attr) visit(t);
  for (rule_condition const& c : r.conditions) { visit(c.a); visit(c.b); }
}
/// Which tensors and parameters a pattern mentions. A parameter is bound by an attribute that it makes up,
/// alone or with others.
struct mentions {
  std::vector<bool> tensors, parameters;
};
inline mentions mentioned(rule const& r, pattern_graph const& g) {
  mentions m{std::vector<bool>(r.tensors.size(), false), std::vector<bool>(r.parameters.size(), false)};
  auto tensor = [&](pattern_value v) { if (v.node < 0) m.tensors[idx(v.slot)] = true; };
  for (pattern_node const& n : g.nodes) {
    if (n.function >= 0) m.parameters[idx(n.function)] = true;
    for (pattern_value v : n.in) tensor(v);
    for (rule_term const& t : n.attr)
      for (rule_factor const& f : t.factors) {
        if (f.kind == term_kind::parameter) m.parameters[idx(f.index)] = true;
        if (f.axis_parameter >= 0) m.parameters[idx(f.axis_parameter)] = true;
      }
  }
  for (pattern_value v : g.outputs) tensor(v);
  return m;
}
/// Does the parameter make up a real attribute, with which values are computed?
inline bool is_factor(pattern_graph const& g, int p) {
  for (pattern_node const& n : g.nodes)
    for (std::size_t i = 0; i < n.attr.size(); ++i)
      for (rule_factor const& f : n.attr[i].factors)
        if (f.kind == term_kind::parameter && f.index == p && n.op->attr_kind(static_cast<int>(i)) == 'f')
          return true;
  return false;
}
}  // namespace detail

/// What is wrong with a rule's form; empty: nothing. Sizes and values are the business of others. O(size).
inline std::vector<std::string> problems(rule const& r) {
  std::vector<std::string> all;
  auto is_parameter = [&](int p, parameter_kind k) {
    return p >= 0 && p < static_cast<int>(r.parameters.size()) &&
           r.parameters[idx(p)].kind == k;
  };
  detail::each_term(r, [&](rule_term const& t) {
    for (rule_factor const& f : t.factors) {
      int const n = static_cast<int>(f.kind == term_kind::parameter ? r.parameters.size() : r.tensors.size());
      if (f.index < 0 || f.index >= n) all.push_back("a term names a parameter or tensor that is not there");
      if (f.axis_parameter != -1 && !is_parameter(f.axis_parameter, parameter_kind::axis))
        all.push_back("a term's axis is no axis");
    }
  });
  for (pattern_graph const* g : {&r.source, &r.target}) {
    std::string const side = g == &r.source ? "source" : "target";
    auto check = [&](pattern_value v, int before, std::string const& where) {
      if (v.node < -1 || v.node >= before || v.slot < 0 ||
          (v.node < 0 && v.slot >= static_cast<int>(r.tensors.size())))
        all.push_back(where + " is not there");
    };
    for (std::size_t i = 0; i < g->nodes.size(); ++i) {
      pattern_node const& n = g->nodes[i];
      std::string const where = side + " node " + std::to_string(i);
      for (std::size_t k = 0; k < n.in.size(); ++k)
        check(n.in[k], static_cast<int>(i), where + ": operand " + std::to_string(k));
      for (rule_term const& t : n.attr)
        for (rule_factor const& f : t.factors)
          if (f.kind != term_kind::parameter && f.kind != term_kind::extent)
            all.push_back(where + ": an attribute depends on a sharding");
      if (!n.op) {
        if (!is_parameter(n.function, parameter_kind::function))
          all.push_back(where + " has neither operator nor function");
        if (n.in.size() != 1 || !n.attr.empty()) all.push_back(where + ": a function takes one operand");
        continue;
      }
      if (static_cast<int>(n.attr.size()) != n.op->attrs)
        all.push_back(where + ": " + std::string(n.op->name) + " has " + std::to_string(n.op->attrs) +
                      " attributes, not " + std::to_string(n.attr.size()));
      if (n.op->arity >= 0 && static_cast<int>(n.in.size()) < n.op->arity)
        all.push_back(where + ": " + std::string(n.op->name) + " takes " + std::to_string(n.op->arity) +
                      " operands");
      for (std::size_t k = 0; k < n.attr.size() && static_cast<int>(k) < n.op->attrs; ++k) {
        attr_role const role = role_of(*n.op, static_cast<int>(k));
        std::string const what = where + ": attribute " + std::string(n.op->attr_name(static_cast<int>(k)));
        if (n.attr[k].open != (role == attr_role::follows || role == attr_role::label))
          all.push_back(what + (n.attr[k].open ? " must be written" : " follows from the operands"));
        if (role == attr_role::degree && n.attr[k].number < 1) all.push_back(what + " is below 1");
        for (rule_factor const& f : n.attr[k].factors)
          if (role == attr_role::degree && f.kind == term_kind::extent) {
            all.push_back(what + " is an extent: a degree is a product of parameters and of a number");
          } else if (f.kind == term_kind::parameter) {
            parameter_kind const want = role == attr_role::degree ? parameter_kind::degree
                                        : role == attr_role::axis ? parameter_kind::axis
                                                                  : parameter_kind::number;
            if (!is_parameter(f.index, want)) all.push_back(what + " has a parameter of another kind");
          }
      }
    }
    for (std::size_t k = 0; k < g->outputs.size(); ++k)
      check(g->outputs[k], static_cast<int>(g->nodes.size()), side + ": output " + std::to_string(k));
  }
  if (r.source.outputs.empty() || r.source.outputs.size() != r.target.outputs.size())
    all.push_back("the two sides must have the same outputs, at least one");
  for (pattern_value v : r.source.outputs)
    if (v.node < 0) all.push_back("an output of the source must be made by an operator");
  if (!all.empty()) return all;
  detail::mentions const have = detail::mentioned(r, r.source), want = detail::mentioned(r, r.target);
  for (std::size_t i = 0; i < r.tensors.size(); ++i)
    if (!have.tensors[i]) all.push_back("tensor " + r.tensors[i] + " is not in the source");
  for (std::size_t i = 0; i < r.parameters.size(); ++i) {
    parameter_kind const k = r.parameters[i].kind;
    if (have.parameters[i]) continue;
    if (!want.parameters[i]) all.push_back("parameter " + r.parameters[i].name + " is in neither side");
    else if (k == parameter_kind::function ||
             (k == parameter_kind::number && detail::is_factor(r.target, static_cast<int>(i))))
      all.push_back("parameter " + r.parameters[i].name + " is not bound by the source");
  }
  return all;
}

}  // namespace tensorpar::rewrite
