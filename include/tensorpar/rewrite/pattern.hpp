// tensorpar/rewrite/pattern.hpp - rules written in C++: operators by type, attributes by member, so that a
// wrong name does not compile
#pragma once
#include <initializer_list>
#include <tensorpar/core/error.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/computation_graph.hpp>
#include <tensorpar/rewrite/rule.hpp>

namespace tensorpar::rewrite {

/// A product in an attribute or condition: `k`, `k * m`, `2 * k`, `g.extent(x, d)`. Numbers convert to it.
struct rule_number {
  rule_term term;
  rule_number(rule_term t) : term(std::move(t)) {}
  rule_number(std::integral auto n) : term(number_term(static_cast<i64>(n))) {}
  rule_number(double x) : term(number_term(std::bit_cast<i64>(x))) {}
  friend rule_number operator*(rule_number a, rule_number const& b) {
    a.term.number *= b.term.number;
    a.term.factors.insert(a.term.factors.end(), b.term.factors.begin(), b.term.factors.end());
    return a;
  }
};

namespace detail {
template <class M> struct member_of;
template <class Op, class T> struct member_of<T Op::*> { using type = Op; };

/// The number of an attribute among those that the operator lists; -1: it lists no such member.
template <auto Member> constexpr int attribute_number() {
  using Op = typename member_of<decltype(Member)>::type;
  int n = 0, found = -1;
  Op op{};
  Op::describe(op, [&](char const*, auto& x) {
    if (static_cast<void const*>(&x) == static_cast<void const*>(&(op.*Member))) found = n;
    ++n;
  });
  return found;
}
}  // namespace detail

/// "This attribute is that number": set<&parallel::partition::degree>(k).
template <auto Member> struct attribute_setting {
  using operator_type = typename detail::member_of<decltype(Member)>::type;
  rule_number value;
};
template <auto Member> attribute_setting<Member> set(rule_number value) { return {std::move(value)}; }

/// A compile-time mistake's name: an attribute of one operator given to another.
template <class Given, class Wanted> struct attribute_of_another_operator {
  static constexpr bool value = std::is_same_v<Given, Wanted>;
};

/// Writes one rule. Values are handles; nodes are made on the side that is being written, the source first.
class rule_writer {
  rule r_;
  bool in_target_ = false;

  pattern_graph& side() { return in_target_ ? r_.target : r_.source; }
  rule_number parameter(std::string name, parameter_kind k) {
    r_.parameters.push_back({std::move(name), k});
    return parameter_term(static_cast<int>(r_.parameters.size()) - 1);
  }

 public:
  using value = pattern_value;
  explicit rule_writer(std::string name) { r_.name = std::move(name); }
  value tensor(std::string name) {
    r_.tensors.push_back(std::move(name));
    return {-1, static_cast<int>(r_.tensors.size()) - 1};
  }
  rule_number degree(std::string name) { return parameter(std::move(name), parameter_kind::degree); }
  rule_number axis(std::string name) { return parameter(std::move(name), parameter_kind::axis); }
  rule_number number(std::string name) { return parameter(std::move(name), parameter_kind::number); }
  rule_number function(std::string name) { return parameter(std::move(name), parameter_kind::function); }
  /// Extent of a tensor variable along an axis (a number from the left, negative from the right, or an axis
  /// parameter).
  rule_number extent(value x, rule_number const& axis) {
    rule_factor f{term_kind::extent, x.slot, 0, -1};
    if (axis.term.factors.empty()) f.axis = static_cast<int>(axis.term.number);
    else f.axis_parameter = axis.term.factors[0].index;
    return rule_term{1, {f}, false};
  }

  /// An operator applied to values. Attributes that are not set are parameters of their own names, shared by
  /// all operators of the rule.
  template <op::operator_ Op, class... Set> value apply(std::initializer_list<value> in, Set const&... set) {
    static_assert(
        (attribute_of_another_operator<typename Set::operator_type, Op>::value && ...),
        "tensorpar: attribute_of_another_operator: a pattern sets an attribute that its operator does not "
        "have");
    pattern_node n;
    n.op = &op::info<Op>;
    n.in = in;
    n.attr.assign(idx(n.op->attrs), open_term());
    std::vector<bool> done(n.attr.size(), false);
    (assign(n, done, set), ...);
    for (int i = 0; i < n.op->attrs; ++i) {
      attr_role const role = role_of(*n.op, i);
      if (done[idx(i)] || role == attr_role::follows || role == attr_role::label)
        continue;
      n.attr[idx(i)] = named(std::string(n.op->attr_name(i)),
                                                  role == attr_role::degree ? parameter_kind::degree
                                                  : role == attr_role::axis ? parameter_kind::axis
                                                                            : parameter_kind::number);
    }
    side().nodes.push_back(std::move(n));
    return {static_cast<int>(side().nodes.size()) - 1, 0};
  }
  /// A function parameter applied to a value.
  value call(rule_number const& function, value x) {
    pattern_node n;
    n.function = function.term.factors.at(0).index;
    n.in = {x};
    side().nodes.push_back(std::move(n));
    return {static_cast<int>(side().nodes.size()) - 1, 0};
  }
  static value result(value v, int slot) { return {v.node, slot}; }
  /// Ends the source; what follows makes the target.
  void becomes(std::initializer_list<value> outputs) {
    r_.source.outputs = outputs;
    in_target_ = true;
  }
  void with_outputs(std::initializer_list<value> outputs) { r_.target.outputs = outputs; }
  void divides(rule_number a, rule_number b) {
    r_.conditions.push_back({condition_kind::divides, a.term, b.term, -1});
  }
  void equal(rule_number a, rule_number b) {
    r_.conditions.push_back({condition_kind::equal, a.term, b.term, -1});
  }
  void different(rule_number a, rule_number b) {
    r_.conditions.push_back({condition_kind::different, a.term, b.term, -1});
  }
  void inside(rule_number axis, value x, i64 by = 1) {
    r_.conditions.push_back({condition_kind::inner, axis.term, number_term(by), x.slot});
  }

  /// The rule. Throws `error` where it means nothing.
  rule done() && {
    if (auto const all = problems(r_); !all.empty())
      throw error("a rule that means nothing: " + all.front(), "rule " + r_.name, "");
    return std::move(r_);
  }

 private:
  rule_term named(std::string name, parameter_kind k) {
    for (std::size_t i = 0; i < r_.parameters.size(); ++i)
      if (r_.parameters[i].name == name && r_.parameters[i].kind == k)
        return parameter_term(static_cast<int>(i));
    return parameter(std::move(name), k).term;
  }
  template <auto Member>
  static void assign(pattern_node& n, std::vector<bool>& done, attribute_setting<Member> const& s) {
    static_assert(detail::attribute_number<Member>() >= 0,
                  "tensorpar: an operator does not list this member as an attribute");
    constexpr auto i = idx(detail::attribute_number<Member>());
    n.attr.at(i) = s.value.term;
    done.at(i) = true;
  }
};

/// A rule of two graphs: inputs and parameters of one name are one tensor variable, outputs correspond by
/// name, attributes are the numbers that stand there. So a rule may be two models that somebody declared.
/// Throws `error` where the graphs do not fit each other.
inline rule rule_of(std::string name, computation_graph const& source, computation_graph const& target) {
  rule r;
  r.name = std::move(name);
  auto side = [&](computation_graph const& g, pattern_graph& p) {
    std::vector<pattern_value> of(g.values.size());
    for (std::size_t x = 0; x < g.values.size(); ++x) {
      if (g.values[x].producer >= 0) continue;
      std::size_t t = 0;
      while (t < r.tensors.size() && r.tensors[t] != g.values[x].name) ++t;
      if (t == r.tensors.size()) r.tensors.push_back(g.values[x].name);
      of[x] = {-1, static_cast<int>(t)};
    }
    for (int v = 0; v < g.node_count(); ++v) {
      graph_node const& n = g.node(v);
      pattern_node q;
      q.op = n.op.op;
      for (int i = 0; i < n.op.op->attrs; ++i) {
        attr_role const role = role_of(*n.op.op, i);
        q.attr.push_back(role == attr_role::follows || role == attr_role::label ? open_term()
                                                                                : number_term(n.op.attr[i]));
      }
      for (int x : n.in) q.in.push_back(of[idx(x)]);
      for (std::size_t k = 0; k < n.out.size(); ++k)
        of[idx(n.out[k])] = {v, static_cast<int>(k)};
      p.nodes.push_back(std::move(q));
    }
    for (graph_port const& o : source.outputs) {
      int const x = g.output(o.name);
      if (x < 0)
        throw error("the target has no output " + o.name, "rule " + r.name, "the outputs of the source");
      p.outputs.push_back(of[idx(x)]);
    }
  };
  side(source, r.source);
  side(target, r.target);
  if (auto const all = problems(r); !all.empty())
    throw error("a rule that means nothing: " + all.front(), "rule " + r.name, "");
  return r;
}

}  // namespace tensorpar::rewrite
