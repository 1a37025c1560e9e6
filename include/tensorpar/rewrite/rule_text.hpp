// tensorpar/rewrite/rule_text.hpp - rules as one line of text
#pragma once
#include <charconv>
#include <tensorpar/core/index.hpp>
#include <tensorpar/rewrite/rule.hpp>

namespace tensorpar::rewrite {

namespace detail {

inline std::string spell_axis(rule const& r, rule_factor const& f) {
  return f.axis_parameter >= 0 ? r.parameters[idx(f.axis_parameter)].name
                               : std::to_string(f.axis);
}
inline std::string spell_factor(rule const& r, rule_factor const& f) {
  if (f.kind == term_kind::parameter) return r.parameters[idx(f.index)].name;
  std::string const& x = r.tensors[idx(f.index)];
  switch (f.kind) {
    case term_kind::extent: return "extent(" + x + "," + spell_axis(r, f) + ")";
    case term_kind::degree: return "degree(" + x + "," + spell_axis(r, f) + ")";
    case term_kind::copies: return "copies(" + x + ")";
    default: return "sums(" + x + ")";
  }
}
/// `real`: the number is a double's bits.
inline std::string spell_term(rule const& r, rule_term const& t, bool real = false) {
  std::string s;
  if (t.factors.empty() || (!real && t.number != 1)) {
    if (real) {
      char b[32];
      auto const e = std::to_chars(b, b + sizeof b, std::bit_cast<double>(t.number));
      s.assign(b, e.ptr);
    } else {
      s = std::to_string(t.number);
    }
  }
  for (rule_factor const& f : t.factors) s += (s.empty() ? "" : "*") + spell_factor(r, f);
  return s;
}

class rule_speller {
  rule const& r_;
  pattern_graph const& g_;
  std::vector<std::string> named_;   // nodes that are used more than once, by name

  std::string node(int v) const {
    pattern_node const& n = g_.nodes[idx(v)];
    std::string s = n.op ? std::string(n.op->name)
                         : "?" + r_.parameters[idx(n.function)].name,
                a;
    for (std::size_t i = 0; i < n.attr.size(); ++i) {
      rule_term const& t = n.attr[i];
      std::string_view const name = n.op->attr_name(static_cast<int>(i));
      if (t.open) continue;
      std::string const value = spell_term(r_, t, n.op->attr_kind(static_cast<int>(i)) == 'f');
      if (value != name) a += (a.empty() ? "" : ",") + std::string(name) + "=" + value;
    }
    if (!a.empty()) s += "{" + a + "}";
    s += "(";
    for (std::size_t k = 0; k < n.in.size(); ++k) s += (k ? ", " : "") + value(n.in[k]);
    return s + ")";
  }
  std::string value(pattern_value v) const {
    if (v.node < 0) return r_.tensors[idx(v.slot)];
    std::string const& name = named_[idx(v.node)];
    return (name.empty() ? node(v.node) : name) + (v.slot ? "." + std::to_string(v.slot) : "");
  }

 public:
  rule_speller(rule const& r, pattern_graph const& g) : r_(r), g_(g), named_(g.nodes.size()) {}
  std::string text() {
    std::vector<int> uses(g_.nodes.size(), 0);
    auto use = [&](pattern_value v) { if (v.node >= 0) ++uses[idx(v.node)]; };
    for (pattern_node const& n : g_.nodes) for (pattern_value v : n.in) use(v);
    for (pattern_value v : g_.outputs) use(v);
    std::string s;
    int count = 0;
    auto taken = [&](std::string const& name) {
      for (std::string const& t : r_.tensors) if (t == name) return true;
      return false;
    };
    for (std::size_t v = 0; v < g_.nodes.size(); ++v) {
      if (uses[v] < 2) continue;
      std::string const whole = node(static_cast<int>(v));
      std::string name;
      do name = "t" + std::to_string(count++); while (taken(name));
      s += name + " = " + whole + "; ";
      named_[v] = name;
    }
    for (std::size_t k = 0; k < g_.outputs.size(); ++k) s += (k ? ", " : "") + value(g_.outputs[k]);
    return s;
  }
};
}  // namespace detail

/// "a | b", "a == b", "a != b", "a inside x", "a inside x by 2".
inline std::string spell(rule const& r, rule_condition const& c) {
  std::string const a = detail::spell_term(r, c.a);
  switch (c.kind) {
    case condition_kind::divides: return a + " | " + detail::spell_term(r, c.b);
    case condition_kind::equal: return a + " == " + detail::spell_term(r, c.b);
    case condition_kind::different: return a + " != " + detail::spell_term(r, c.b);
    default: {
      std::string const s = a + " inside " + r.tensors[idx(c.tensor)];
      return c.b.number == 1 ? s : s + " by " + std::to_string(c.b.number);
    }
  }
}
inline std::string spell(rule const& r, pattern_graph const& g) { return detail::rule_speller(r, g).text(); }

/// "name: source => target where condition, ...". An attribute that is a parameter of its own name is left
/// out, and so is what follows from operands. Precondition: problems(r) is empty.
/// Law: parse_rule(spell(r)) (rewrite/rule_parser.hpp) is r up to the numbering of tensors, parameters and
/// nodes.
inline std::string spell(rule const& r) {
  std::string s = (r.name.empty() ? "" : r.name + ": ") + spell(r, r.source) + " => " + spell(r, r.target);
  for (std::size_t i = 0; i < r.conditions.size(); ++i)
    s += (i ? ", " : " where ") + spell(r, r.conditions[i]);
  return s;
}

}  // namespace tensorpar::rewrite
