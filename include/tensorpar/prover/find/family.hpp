// tensorpar/prover/find/family.hpp - what rules are searched over: tensors of some shapes, and operators with
// some attributes
#pragma once
#include <algorithm>
#include <tensorpar/core/error.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/rewrite/rule.hpp>
#include <tensorpar/rewrite/rule_parser.hpp>

namespace tensorpar::prover {

/// A tensor variable: one letter per axis; equal letters have equal extents and are split alike, capital ones
/// are not split at all. An axis of several letters is as long as theirs together; it is split only where
/// they are all one letter, as this is.
/// `summed`: it comes in partial sums; `counted`: in as many as the first degree;
/// `beside_sums`: with a copy for every partial sum of the summed ones.
struct family_tensor {
  std::string name;
  std::vector<std::string> axes;
  bool summed = false, integer = false, beside_sums = false, counted = false;
};
/// A parameter and the values it is sampled with (axes; for numbers that decide shapes); empty: degrees,
/// functions, factors.
struct family_parameter {
  rewrite::rule_parameter what;
  std::vector<i64> values;
};
/// An operator with its attributes, ready to be applied to `operands` tensors. Attributes may depend on
/// parameters and on extents of the family's tensors.
struct family_step {
  rewrite::pattern_node node;                     // without operands
  int operands = 1;
  int slot = 0;                          // which of the operator's results
  bool commutative = false;
  bool shardings = false;                  // a parallel operator
  bool once = false;                     // at most once in a term
};
/// A finite vocabulary of terms: what is enumerated together.
struct family {
  std::string name;
  std::vector<family_tensor> tensors;
  std::vector<family_parameter> parameters;
  std::vector<family_step> steps;
  int max_operators = 3;
  // pairs of which both sides have more operators than this are not looked at
  int min_side = 3;
};

namespace detail {

/// Calls visit(word) for the words between these separators, without blanks around them.
template <class Visit> void each_word(std::string_view s, char by, Visit const& visit) {
  while (!s.empty()) {
    auto const e = s.find(by);
    std::string_view w = s.substr(0, e);
    while (!w.empty() && (w.front() == ' ' || w.front() == '\n')) w.remove_prefix(1);
    while (!w.empty() && (w.back() == ' ' || w.back() == '\n')) w.remove_suffix(1);
    if (!w.empty()) visit(w);
    s = e == s.npos ? std::string_view() : s.substr(e + 1);
  }
}
/// "x:a(bc)+"
inline family_tensor family_tensor_of(std::string_view w, std::string const& where) {
  auto const colon = w.find(':');
  if (colon == w.npos || colon == 0)
    throw error("a tensor without axes: " + std::string(w), where, "name:axes");
  family_tensor t{std::string(w.substr(0, colon)), {}, false, false, false, false};
  bool joined = false;
  for (char c : w.substr(colon + 1)) {
    if (c == '+') t.summed = true;
    else if (c == '@') t.counted = true;
    else if (c == '#') t.integer = true;
    else if (c == '*') t.beside_sums = true;
    else if (c == '(') { joined = true; t.axes.emplace_back(); }
    else if (c == ')') joined = false;
    else if (joined) t.axes.back() += c;
    else t.axes.emplace_back(1, c);
  }
  return t;
}
/// "d=0,1", "k", "s#", "?f"
inline family_parameter family_parameter_of(std::string_view w) {
  family_parameter p{{std::string(w), rewrite::parameter_kind::degree}, {}};
  if (w.front() == '?') p.what = {std::string(w.substr(1)), rewrite::parameter_kind::function};
  if (auto const at = w.find('='); at != w.npos) {
    p.what.name = std::string(w.substr(0, at));
    bool const number = !p.what.name.empty() && p.what.name.back() == '#';
    if (number) p.what.name.pop_back();
    p.what.kind = number ? rewrite::parameter_kind::number : rewrite::parameter_kind::axis;
    each_word(w.substr(at + 1), ',', [&](std::string_view v) {
      i64 n = 0;
      std::from_chars(v.data(), v.data() + v.size(), n);
      p.values.push_back(n);
    });
  } else if (w.back() == '#') {
    p.what = {std::string(w.substr(0, w.size() - 1)), rewrite::parameter_kind::number};
  }
  return p;
}
/// An operator of family f, whose tensors and parameters are known.
inline family_step family_step_of(std::string_view w, family const& f, rewrite::vocabulary const& words) {
  // read by the parser of rules: operands become tensors of their own; what extents speak of is mentioned
  // beside
  std::string text;
  bool const once = w.front() == '!';
  w.remove_prefix(once);
  int n = 0;
  for (std::size_t i = 0; i < w.size(); ++i) {
    bool const operand = w[i] == '_' && i > 0 && (w[i - 1] == '(' || w[i - 1] == ',' || w[i - 1] == ' ');
    if (operand) text += "o" + std::to_string(n++);
    else text += w[i];
  }
  std::size_t beside = 0;
  for (family_tensor const& t : f.tensors)
    if (text.find("extent(" + t.name + ",") != text.npos) { text += ", ?beside(" + t.name + ")"; ++beside; }
  rewrite::rule const r = rewrite::parse_rule(text + " => " + text, words, "family " + f.name);
  rewrite::pattern_node node = r.source.nodes.at(0);
  if (r.source.nodes.size() != 1 + beside)
    throw error("more than one operator in " + std::string(w), "family " + f.name, "one operator");
  auto rename = [&](int p) {
    rewrite::rule_parameter const& q = r.parameters[idx(p)];
    for (std::size_t i = 0; i < f.parameters.size(); ++i)
      if (f.parameters[i].what == q) return static_cast<int>(i);
    throw error("there is no parameter " + q.name + " of its kind", "family " + f.name,
                "the parameters of the family");
  };
  for (rewrite::rule_term& t : node.attr)
    for (rewrite::rule_factor& x : t.factors) {
      if (x.kind == rewrite::term_kind::parameter) {
        x.index = rename(x.index);
        continue;
      }
      std::string const& of = r.tensors[idx(x.index)];
      auto const found = std::find_if(f.tensors.begin(), f.tensors.end(),
                                      [&](family_tensor const& u) { return u.name == of; });
      x.index = static_cast<int>(found - f.tensors.begin());
      if (found == f.tensors.end())
        throw error("an extent that the family lacks in " + std::string(w), "family " + f.name,
                    "extents of its tensors");
      if (x.axis_parameter >= 0) x.axis_parameter = rename(x.axis_parameter);
    }
  if (node.function >= 0) node.function = rename(node.function);
  node.in.clear();
  family_step s{std::move(node), n, r.source.outputs[0].slot, false, false, once};
  if (s.node.op) {
    s.shardings = is_parallel(*s.node.op);
    s.commutative = rewrite::is_commutative(*s.node.op);
  }
  return s;
}

}  // namespace detail

/// A family from text. `tensors`: "x:abi w:o(IJ) y:abi+" (+: in partial sums, @: in as many as the first
/// degree, *: copied for them, #: holds indices). `parameters`:
/// "d=0,1 k m s# stride#=1,2 ?f": axes have values, degrees none; numbers end in '#', with values where they
/// decide shapes; functions begin with '?'. `steps`: operators as in rules with '_' for operands, separated
/// by ';': "partition{d,k}(_); slice{0,0,extent(x,0)}(_)"; with '!' before an operator that occurs once at
/// most in a term, and ".1" behind one for its second result.
/// At most `family_term::most` operators. Throws `error` naming what cannot be read.
inline family make_family(std::string name, std::string_view tensors, std::string_view parameters,
                          std::string_view steps, int max_operators = 3, int min_side = 3,
                          rewrite::vocabulary const& words = rewrite::standard_vocabulary()) {
  family f;
  f.name = std::move(name);
  f.max_operators = max_operators;
  f.min_side = min_side;
  detail::each_word(tensors, ' ', [&](std::string_view w) {
    f.tensors.push_back(detail::family_tensor_of(w, "family " + f.name));
  });
  detail::each_word(parameters, ' ',
                    [&](std::string_view w) { f.parameters.push_back(detail::family_parameter_of(w)); });
  detail::each_word(steps, ';', [&](std::string_view w) {
    f.steps.push_back(detail::family_step_of(w, f, words));
  });
  return f;
}

}  // namespace tensorpar::prover
