// tensorpar/ir/iteration_space.hpp - a node's loops with extents: which may be split, and where each stands
// in operands and results
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/axis_list.hpp>
#include <tensorpar/ir/computation_graph.hpp>

namespace tensorpar::ir {

/// One loop of a node. in[k] / out[k]: the axis of operand / result k it runs over, or -1.
struct node_loop {
  char letter;                    // leading axes are '0', '1', ... from the left
  i64 units;                      // it may be split into any divisor of this many parts; 1: not at all
  bool reduced;                   // absent from every result
  axis_list<int> in, out;
};
struct iteration_space {
  std::vector<node_loop> loops;
  node_loop const* find(char letter) const {
    for (node_loop const& l : loops) if (l.letter == letter) return &l;
    return nullptr;
  }
};

namespace detail {
constexpr i64 gcd(i64 a, i64 b) { while (b) { i64 const t = a % b; a = b; b = t; } return a < 0 ? -a : a; }
}

/// Resolves the operator's notation against the ranks of these operands and results. O(loops * (operands +
/// results)).
inline iteration_space space_of(op::any_op const& o, std::vector<shape> const& in,
                                std::vector<shape> const& out) {
  int const activations = o.op->arity < 0 ? static_cast<int>(in.size()) : o.op->arity;
  shapes const acts{in.data(),
                    activations < static_cast<int>(in.size()) ? activations : static_cast<int>(in.size())};
  op::loops const p = o.op->pattern(o.attr, acts);
  iteration_space r;
  // an operator of a lone scalar ("->s") has no operand terms: no loop has an axis there
  auto term = [](std::size_t k, int terms) {
    return static_cast<int>(k) < terms ? static_cast<int>(k) : terms - 1;
  };
  int leads = 0;
  auto letters_in = [&](int t, bool result) {
    int n = 0;
    for (int i = 0; i < p.n; ++i) n += (result ? p.l[i].out[t] : p.l[i].in[t]) != -1;
    return n;
  };
  std::vector<int> lead_in(in.size(), 0), lead_out(out.size(), 0);
  for (std::size_t k = 0; k < in.size() && p.operands; ++k)
    if (int const t = term(k, p.operands); p.lead_in[t]) {
      lead_in[k] = in[k].rank - letters_in(t, false);
      if (lead_in[k] > leads) leads = lead_in[k];
    }
  for (std::size_t k = 0; k < out.size() && p.results; ++k)
    if (int const t = term(k, p.results); p.lead_out[t]) {
      lead_out[k] = out[k].rank - letters_in(t, true);
      if (lead_out[k] > leads) leads = lead_out[k];
    }
  r.loops.reserve(idx(leads + p.n));
  auto finish = [&](node_loop&& l, bool splittable) {
    i64 g = 0;
    for (std::size_t k = 0; k < in.size(); ++k) if (l.in[k] >= 0) g = detail::gcd(g, in[k].d[l.in[k]].n);
    for (std::size_t k = 0; k < out.size(); ++k) if (l.out[k] >= 0) g = detail::gcd(g, out[k].d[l.out[k]].n);
    i64 const own = o.op->units(o.attr, l.letter, acts);
    l.units = splittable ? (own ? own : g) : 1;
    r.loops.push_back(std::move(l));
  };
  auto const of = [](std::size_t n) { return axis_list<int>(n, -1); };
  for (int i = 0; i < leads; ++i) {
    node_loop l{static_cast<char>('0' + i), 1, true, of(in.size()), of(out.size())};
    for (std::size_t k = 0; k < in.size(); ++k) if (i < lead_in[k]) l.in[k] = i;
    for (std::size_t k = 0; k < out.size(); ++k) if (i < lead_out[k]) { l.out[k] = i; l.reduced = false; }
    finish(std::move(l), true);
  }
  for (int i = 0; i < p.n; ++i) {
    op::loop const& q = p.l[i];
    node_loop l{q.letter, 1, q.reduced, of(in.size()), of(out.size())};
    for (std::size_t k = 0; k < in.size() && p.operands; ++k)
      l.in[k] = op::axis_at(q.in[term(k, p.operands)], in[k].rank);
    for (std::size_t k = 0; k < out.size(); ++k)
      l.out[k] = op::axis_at(q.out[term(k, p.results)], out[k].rank);
    finish(std::move(l), q.splittable);
  }
  return r;
}

/// The iteration space of node v.
inline iteration_space space_of(computation_graph const& g, node_id v) {
  std::vector<shape> in, out;
  in.reserve(g.node(v).in.size());
  out.reserve(g.node(v).out.size());
  for (value_id x : g.node(v).in) in.push_back(g.type(x));
  for (value_id x : g.node(v).out) out.push_back(g.type(x));
  return space_of(g.node(v).op, in, out);
}

}  // namespace tensorpar::ir
