// tensorpar/prover/find/candidates.hpp - from pairs of equal terms to rules in a canonical form
#pragma once
#include <set>
#include <tensorpar/core/index.hpp>
#include <tensorpar/prover/find/enumerate.hpp>

namespace tensorpar::prover {

namespace detail {

class candidate_writer {
  family const& f_;
  enumeration const& e_;
  rewrite::rule r_;
  std::vector<int> tensor_, parameter_;   // the family's number -> the rule's, -1: not yet

  int tensor(int x) {
    int& t = tensor_[idx(x)];
    if (t < 0) {
      static constexpr char const* names[] = {"x", "y", "z", "u", "v", "w"};
      t = static_cast<int>(r_.tensors.size());
      r_.tensors.push_back(names[t % 6]);
    }
    return t;
  }
  int parameter(int p) {
    int& q = parameter_[idx(p)];
    if (q < 0) {
      rewrite::rule_parameter what = f_.parameters[idx(p)].what;
      int before = 0;
      for (rewrite::rule_parameter const& o : r_.parameters) before += o.kind == what.kind;
      static constexpr char const *degrees[] = {"k", "m", "n"}, *axes[] = {"d", "e", "h"},
                                  *functions[] = {"f", "g", "h"};
      if (what.kind == rewrite::parameter_kind::degree) what.name = degrees[before % 3];
      else if (what.kind == rewrite::parameter_kind::axis) what.name = axes[before % 3];
      else if (what.kind == rewrite::parameter_kind::function) what.name = functions[before % 3];
      // numbers keep the names of the family: they say which attribute they are
      q = static_cast<int>(r_.parameters.size());
      r_.parameters.push_back(std::move(what));
    }
    return q;
  }
  /// Adds a term after its operands, each once.
  rewrite::pattern_value add(int t, rewrite::pattern_graph& g, std::map<int, int>& done) {
    family_term const& term = e_.terms[idx(t)];
    if (term.step < 0) return {-1, tensor(term.in[0])};
    family_step const& s = f_.steps[idx(term.step)];
    if (auto const it = done.find(t); it != done.end()) return {it->second, s.slot};
    rewrite::pattern_node n = s.node;
    if (n.function >= 0) n.function = parameter(n.function);
    auto each_factor = [&](bool parameters, auto&& visit) {
      for (rewrite::rule_term& a : n.attr)
        for (rewrite::rule_factor& x : a.factors) {
          if ((x.kind == rewrite::term_kind::parameter) == parameters) visit(x.index);
          if (parameters && x.axis_parameter >= 0) visit(x.axis_parameter);
        }
    };
    each_factor(true, [&](int& p) { p = parameter(p); });
    for (int k = 0; k < s.operands; ++k) n.in.push_back(add(term.in[k], g, done));
    each_factor(false, [&](int& x) { x = tensor(x); });
    int id = 0;                          // another result of the same node is a term of its own
    while (id < static_cast<int>(g.nodes.size()) && !(g.nodes[idx(id)] == n)) ++id;
    if (id == static_cast<int>(g.nodes.size())) g.nodes.push_back(std::move(n));
    done.emplace(t, id);
    return {id, s.slot};
  }

 public:
  candidate_writer(family const& f, enumeration const& e)
      : f_(f), e_(e), tensor_(f.tensors.size(), -1), parameter_(f.parameters.size(), -1) {}
  rewrite::rule write(int source, int target) {
    std::map<int, int> done;
    r_.source.outputs = {add(source, r_.source, done)};
    done.clear();
    r_.target.outputs = {add(target, r_.target, done)};
    return std::move(r_);
  }
};

}  // namespace detail

/// The rule "source => target" of two terms, with tensors, degrees, axes and functions named in the order in
/// which they occur.
inline rewrite::rule candidate(family const& f, enumeration const& e, int source, int target) {
  return detail::candidate_writer(f, e).write(source, target);
}

/// A rule and the pair that it came from.
struct candidate_rule {
  rewrite::rule what;
  term_pair from;
};

/// The rules that a family's pairs stand for, each once: from the larger side to the smaller one, or the
/// other way round where only that binds every variable. Pairs of which neither way does are left out. In the
/// order in which they were found; `seen` holds the texts that were met before and takes these.
inline std::vector<candidate_rule> candidates(family const& f, enumeration const& e,
                                              std::set<std::string>& seen) {
  std::vector<candidate_rule> all;
  for (term_pair const& p : e.pairs) {
    for (bool swapped : {false, true}) {
      rewrite::rule r = swapped ? candidate(f, e, p.left, p.right) : candidate(f, e, p.right, p.left);
      if (!rewrite::problems(r).empty()) continue;
      if (seen.insert(rewrite::spell(r)).second) all.push_back({std::move(r), p});
      break;
    }
  }
  return all;
}
inline std::vector<candidate_rule> candidates(family const& f, enumeration const& e) {
  std::set<std::string> seen;
  return candidates(f, e, seen);
}

}  // namespace tensorpar::prover
