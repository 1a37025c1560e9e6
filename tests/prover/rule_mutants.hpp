// tests/prover/rule_mutants.hpp - a rule with one thing changed: an axis, an operand, a degree, a number, an operator, a condition
#pragma once
#include <optional>
#include <random>
#include <string>
#include <tensorpar/rewrite/rule_text.hpp>
#include <tensorpar/rewrite/vocabulary.hpp>

namespace tests {
using namespace tensorpar;
using namespace tensorpar::prover;

enum class mutation : int { axis, operand, degree, number, op, output, condition };
inline constexpr char const* mutation_names[] = {"axis", "operand", "degree", "number", "operator", "output", "condition"};

/// Changes one place of one side at random. nullopt: there is no such place, or what came out has no good form or is the rule itself.
class rule_mutator {
  std::mt19937& draw_;
  int below(std::size_t n) { return static_cast<int>(draw_() % n); }

  rewrite::rule_term other_term(rewrite::rule const& r, rewrite::pattern_node const& n, std::size_t i) {
    rewrite::attr_role const role = rewrite::role_of(*n.op, static_cast<int>(i));
    bool const real = n.op->attr_kind(static_cast<int>(i)) == 'f';
    rewrite::parameter_kind const kind = role == rewrite::attr_role::degree ? rewrite::parameter_kind::degree
                                : role == rewrite::attr_role::axis ? rewrite::parameter_kind::axis
                                                          : rewrite::parameter_kind::number;
    std::vector<int> same;
    for (std::size_t p = 0; p < r.parameters.size(); ++p)
      if (r.parameters[p].kind == kind) same.push_back(static_cast<int>(p));
    rewrite::rule_term t = n.attr[i];
    int const way = below(4);
    if (way == 0 && !same.empty()) return rewrite::parameter_term(same[draw_() % same.size()]);
    if (way == 1 && !same.empty() && role != rewrite::attr_role::axis) {   // one factor more
      if (t.factors.empty() && real) return rewrite::parameter_term(same[draw_() % same.size()]);
      t.factors.push_back({rewrite::term_kind::parameter, same[draw_() % same.size()], 0, -1});
      return t;
    }
    if (real) return rewrite::number_term(std::bit_cast<i64>(static_cast<double>(below(5)) - 1.5));
    if (way == 2 && role != rewrite::attr_role::axis) {                    // times a number, or a factor less
      if (t.factors.size() > 1 && draw_() % 2) t.factors.pop_back();
      else t.number *= 2 + below(4);
      return t;
    }
    return rewrite::number_term(role == rewrite::attr_role::axis ? below(8) - 4 : role == rewrite::attr_role::degree ? 1 + below(7)
                                : below(4));
  }
  bool change_term(rewrite::rule& r, rewrite::pattern_graph& g, rewrite::attr_role role) {
    std::vector<std::pair<std::size_t, std::size_t>> at;
    for (std::size_t v = 0; v < g.nodes.size(); ++v)
      for (std::size_t i = 0; i < g.nodes[v].attr.size(); ++i)
        if (!g.nodes[v].attr[i].open && rewrite::role_of(*g.nodes[v].op, static_cast<int>(i)) == role) at.emplace_back(v, i);
    if (at.empty()) return false;
    auto const [v, i] = at[draw_() % at.size()];
    g.nodes[v].attr[i] = other_term(r, g.nodes[v], i);
    return true;
  }
  rewrite::pattern_value any_value(rewrite::rule const& r, rewrite::pattern_graph const& g, std::size_t before) {
    std::size_t const k = draw_() % (r.tensors.size() + before);
    if (k < r.tensors.size()) return {-1, static_cast<int>(k)};
    rewrite::pattern_node const& n = g.nodes[k - r.tensors.size()];
    return {static_cast<int>(k - r.tensors.size()), n.op && n.op->name == "split" ? below(2) : 0};
  }
  /// Another operator with as many attributes of the same kinds, or another number of them that have no attribute.
  bool change_operator(rewrite::rule& r, rewrite::pattern_graph& g) {
    if (g.nodes.empty()) return false;
    rewrite::pattern_node& n = g.nodes[draw_() % g.nodes.size()];
    auto plain = [](op::op_info const& o) {
      for (int i = 0; i < o.attrs; ++i)
        if (rewrite::role_of(o, i) != rewrite::attr_role::follows && rewrite::role_of(o, i) != rewrite::attr_role::label) return false;
      return true;
    };
    std::vector<op::op_info const*> fit;
    for (op::op_info const* o : rewrite::standard_vocabulary()) {
      if (n.op == o) continue;
      if (!n.op) {
        if (rewrite::is_function(*o)) fit.push_back(o);
        continue;
      }
      bool same = o->attrs == n.op->attrs;
      for (int i = 0; same && i < o->attrs; ++i)
        same = rewrite::role_of(*o, i) == rewrite::role_of(*n.op, i) && o->attr_kind(i) == n.op->attr_kind(i);
      if (same || (plain(*o) && plain(*n.op) && o->arity == n.op->arity)) fit.push_back(o);
    }
    for (std::size_t p = 0; p < r.parameters.size(); ++p)
      if (n.op && rewrite::is_function(*n.op) && r.parameters[p].kind == rewrite::parameter_kind::function && draw_() % 2) {
        n.op = nullptr;
        n.function = static_cast<int>(p);
        return true;
      }
    if (fit.empty()) return false;
    op::op_info const* const to = fit[draw_() % fit.size()];
    if (!n.op || to->attrs != n.op->attrs) n.attr.assign(static_cast<std::size_t>(to->attrs), rewrite::open_term());
    n.op = to;
    n.function = -1;
    return true;
  }
  bool change(rewrite::rule& r, rewrite::pattern_graph& g, mutation m) {
    if (m == mutation::axis) return change_term(r, g, rewrite::attr_role::axis);
    if (m == mutation::degree) return change_term(r, g, rewrite::attr_role::degree);
    if (m == mutation::number) return change_term(r, g, rewrite::attr_role::number);
    if (m == mutation::op) return change_operator(r, g);
    if (m == mutation::operand) {
      if (g.nodes.empty()) return false;
      std::size_t const v = draw_() % g.nodes.size();
      if (g.nodes[v].in.empty()) return false;
      g.nodes[v].in[draw_() % g.nodes[v].in.size()] = any_value(r, g, v);
      return true;
    }
    if (m == mutation::output) {
      g.outputs[draw_() % g.outputs.size()] = any_value(r, g, g.nodes.size());
      return true;
    }
    if (r.conditions.empty()) return false;
    r.conditions.erase(r.conditions.begin() + below(r.conditions.size()));
    return true;
  }

 public:
  explicit rule_mutator(std::mt19937& draw) : draw_(draw) {}
  std::optional<rewrite::rule> one(rewrite::rule r, mutation m) {
    rewrite::rule const before = r;
    if (!change(r, draw_() % 2 ? r.target : r.source, m) || r == before || !rewrite::problems(r).empty()) return std::nullopt;
    return r;
  }
};

}  // namespace tests
