// tests/prover/random_rule.hpp - rules of good form and no sense: for what must hold of every rule that can be written
#pragma once
#include <random>
#include <tensorpar/rewrite/rule.hpp>
#include <tensorpar/rewrite/vocabulary.hpp>

namespace tests {
using namespace tensorpar;
using namespace tensorpar::prover;

inline rewrite::rule random_rule(std::mt19937& draw) {
  auto below = [&](std::size_t n) { return static_cast<int>(draw() % n); };
  rewrite::rule r;
  r.name = draw() % 3 ? "rule " + std::to_string(draw() % 100) : "";
  r.tensors = {"x", "y_1", "weight"};
  r.tensors.resize(1 + draw() % 3);
  r.parameters = {{"k", rewrite::parameter_kind::degree}, {"m", rewrite::parameter_kind::degree}, {"d", rewrite::parameter_kind::axis},
                  {"s", rewrite::parameter_kind::number}, {"f", rewrite::parameter_kind::function}};
  auto term = [&](rewrite::attr_role role, bool real) {
    rewrite::rule_term t;
    rewrite::parameter_kind const kind = role == rewrite::attr_role::degree ? rewrite::parameter_kind::degree
                                : role == rewrite::attr_role::axis ? rewrite::parameter_kind::axis
                                                          : rewrite::parameter_kind::number;
    if (draw() % 3 == 0) {
      t.number = real ? std::bit_cast<i64>(static_cast<double>(draw()) / 7)
                      : static_cast<i64>(draw() % 7) - (role == rewrite::attr_role::axis ? 3 : 0);
      return t;
    }
    for (std::size_t i = 0; i < r.parameters.size(); ++i)
      if (r.parameters[i].kind == kind && (t.factors.empty() || (role == rewrite::attr_role::degree && draw() % 3 == 0)))
        t.factors.push_back({rewrite::term_kind::parameter, static_cast<int>(i), 0, -1});
    if (role == rewrite::attr_role::number && !real && draw() % 4 == 0) {
      if (draw() % 2) t.factors = {{rewrite::term_kind::extent, below(r.tensors.size()), -2 + below(4), -1}};
      else t.factors.push_back({rewrite::term_kind::extent, below(r.tensors.size()), 0, 2});
    }
    return t;
  };
  std::vector<op::op_info const*> const ops(rewrite::standard_vocabulary().begin(), rewrite::standard_vocabulary().end());
  for (rewrite::pattern_graph* g : {&r.source, &r.target}) {
    auto value = [&]() -> tensorpar::rewrite::pattern_value {
      if (!g->nodes.empty() && draw() % 2) {
        int const v = below(g->nodes.size());
        rewrite::pattern_node const& n = g->nodes[static_cast<std::size_t>(v)];
        return {v, n.op && n.op->name == "split" ? below(2) : 0};
      }
      return {-1, below(r.tensors.size())};
    };
    for (int n = 1 + below(4); n > 0; --n) {
      rewrite::pattern_node p;
      if (draw() % 6 == 0) {
        p.function = 4;
        p.in = {value()};
      } else {
        p.op = ops[draw() % ops.size()];
        for (int i = 0; i < p.op->attrs; ++i) {
          rewrite::attr_role const role = rewrite::role_of(*p.op, i);
          p.attr.push_back(role == rewrite::attr_role::follows ||
                           role == rewrite::attr_role::label ? rewrite::open_term() : term(role, p.op->attr_kind(i) == 'f'));
        }
        for (int k = p.op->arity < 0 ? 2 : p.op->arity == 0 ? 1 : p.op->arity; k > 0; --k) p.in.push_back(value());
      }
      g->nodes.push_back(std::move(p));
    }
    g->outputs = {{static_cast<int>(g->nodes.size()) - 1, 0}};
    for (std::size_t v = 0; v + 1 < g->nodes.size(); ++v) {   // every node is used: text has no place for others
      bool used = false;
      for (rewrite::pattern_node const& n : g->nodes) for (rewrite::pattern_value x : n.in) used = used || x.node == static_cast<int>(v);
      if (!used) g->outputs.push_back({static_cast<int>(v), 0});
    }
  }
  for (std::size_t most = std::max(r.source.outputs.size(), r.target.outputs.size()); r.source.outputs.size() < most;)
    r.source.outputs.push_back(r.source.outputs[0]);
  while (r.target.outputs.size() < r.source.outputs.size()) r.target.outputs.push_back(r.target.outputs[0]);
  if (draw() % 2)
    r.conditions.push_back({rewrite::condition_kind::divides, rewrite::parameter_term(0),
                            {1, {{rewrite::term_kind::degree, 0, 0, 2}}, false}, -1});
  if (draw() % 2)
    r.conditions.push_back({rewrite::condition_kind::inner, rewrite::parameter_term(2), rewrite::number_term(1 + draw() % 2), 0});
  if (draw() % 2)
    r.conditions.push_back({rewrite::condition_kind::equal, {1, {{rewrite::term_kind::copies, 0, 0, -1}}, false},
                            {2, {{rewrite::term_kind::sums, 0, 0, -1}}, false}, -1});
  if (draw() % 2) r.conditions.push_back({rewrite::condition_kind::different, rewrite::parameter_term(2), rewrite::number_term(-1), -1});
  return r;
}

/// One that has no problems.
inline rewrite::rule good_random_rule(std::mt19937& draw) {
  for (;;)
    if (rewrite::rule r = random_rule(draw); rewrite::problems(r).empty()) return r;
}

}  // namespace tests
