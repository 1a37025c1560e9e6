// tensorpar/prover/cases/setting.hpp - ranks, axes and numbers under which both sides of a rule make sense
#pragma once
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/iteration_space.hpp>
#include <tensorpar/rewrite/rule.hpp>
#include <tensorpar/rewrite/vocabulary.hpp>

namespace tensorpar::prover {

/// One way to fill in what a rule leaves open, degrees and extents aside: the rank of every tensor variable,
/// and values of the parameters (degrees: 1; functions: the operator's number in the vocabulary's list of
/// functions).
struct rule_setting {
  std::vector<int> rank;                 // by tensor
  std::vector<bool> integer;             // by tensor: holds indices
  std::vector<i64> parameter;            // by parameter
};

/// Types and operators of a pattern in one setting. `value[node][slot]`; `op[node]`.
struct typed_pattern {
  std::vector<op::any_op> op;
  std::vector<std::vector<shape>> value;
  shape const& at(rewrite::pattern_value v, std::vector<shape> const& tensors) const {
    return rewrite::detail::value_of(v, tensors, value);
  }
};

namespace detail {

/// The operators that function parameters may stand for.
inline std::vector<op::op_info const*> const& functions_of(rewrite::vocabulary const& words) {
  static thread_local std::vector<op::op_info const*> all;
  static thread_local rewrite::vocabulary const* last = nullptr;
  if (last != &words) {
    all.clear();
    for (op::op_info const* o : words) if (rewrite::is_function(*o)) all.push_back(o);
    last = &words;
  }
  return all;
}

/// An axis number of a term, from the left; -1: there is none such.
inline int axis_value(rewrite::rule_factor const& f, int rank, std::vector<i64> const& parameter) {
  i64 a = f.axis_parameter >= 0 ? parameter[idx(f.axis_parameter)] : f.axis;
  if (a < 0) a += rank;
  return a >= 0 && a < rank ? static_cast<int>(a) : -1;
}
/// The number that an attribute stands for. nullopt: it is along an axis that is not there, or about a
/// sharding.
inline std::optional<i64> term_value(rewrite::rule_term const& t, bool real,
                                     std::vector<shape> const& tensors, std::vector<i64> const& parameter) {
  i64 n = t.number;
  double x = t.factors.empty() && real ? std::bit_cast<double>(t.number) : 1;
  for (rewrite::rule_factor const& f : t.factors) {
    if (f.kind == rewrite::term_kind::parameter) {
      if (real) x *= std::bit_cast<double>(parameter[idx(f.index)]);
      else n *= parameter[idx(f.index)];
    } else if (f.kind == rewrite::term_kind::extent) {
      shape const& s = tensors[idx(f.index)];
      int const a = axis_value(f, s.rank, parameter);
      if (a < 0) return std::nullopt;
      n *= s.d[a].n;
    } else {
      return std::nullopt;
    }
  }
  return real ? std::bit_cast<i64>(x) : n;
}

/// An operator on operands of these shapes, and its results.
struct typed_operator {
  op::any_op op;
  std::vector<shape> out;
};
/// A pattern's operator (`o`: what a function parameter stands for) on operands of these shapes: attributes
/// are worked out from tensors and parameters, axes count from the left, weights must fit. nullopt where
/// something does not.
inline std::optional<typed_operator> type_operator(op::op_info const& o, rewrite::pattern_node const& n,
                                                   std::vector<shape> const& in,
                                                   std::vector<shape> const& tensors,
                                                   std::vector<i64> const& parameter) {
  i64 attr[op::max_attrs] = {};
  for (std::size_t i = 0; i < n.attr.size(); ++i) {
    if (n.attr[i].open) continue;
    auto const x = term_value(n.attr[i], o.attr_kind(static_cast<int>(i)) == 'f', tensors, parameter);
    if (!x) return std::nullopt;
    attr[i] = *x;
    if (rewrite::role_of(o, static_cast<int>(i)) != rewrite::attr_role::axis) continue;
    if (attr[i] < 0) attr[i] += in[0].rank;   // axes from the last one are a matter of rules
    if (attr[i] < 0 || attr[i] >= in[0].rank) return std::nullopt;
  }
  op::any_op const op = rewrite::with_followers(o, attr, {in.data(), static_cast<int>(in.size())});
  int const activations = o.arity < 0 ? static_cast<int>(in.size()) : o.arity;
  if (static_cast<int>(in.size()) < activations) return std::nullopt;
  // an operator that works element by element takes scalars too
  bool const pointwise = o.fixed && o.notation->n == 0;
  for (int k = 0; k < activations; ++k)
    if (in[idx(k)].rank < 1 && !pointwise) return std::nullopt;
  op::inference const y = o.infer(op.attr, {in.data(), activations});
  if (!y.ok()) return std::nullopt;
  op::weight_list const w = o.weights(op.attr, {in.data(), activations});
  if (static_cast<int>(in.size()) != activations + w.n) return std::nullopt;
  for (int k = 0; k < w.n; ++k)
    if (shape const& x = in[idx(activations + k)]; !same_extents(w.w[k].type, x) || is_integer(x.type))
      return std::nullopt;
  return typed_operator{op, {y.out, y.out + y.n}};
}

/// Types and operators of one side for these tensors and parameters; nullopt where a shape rule complains.
inline std::optional<typed_pattern> type_pattern(rewrite::pattern_graph const& g,
                                                 std::vector<shape> const& tensors,
                                                 std::vector<i64> const& parameter,
                                                     rewrite::vocabulary const& words) {
  typed_pattern t;
  for (rewrite::pattern_node const& n : g.nodes) {
    std::vector<shape> in;
    for (rewrite::pattern_value v : n.in) {
      if (v.node >= 0 && v.slot >= static_cast<int>(t.value[idx(v.node)].size())) return std::nullopt;
      in.push_back(t.at(v, tensors));
    }
    op::op_info const* o = n.op;
    if (!o) {
      auto const& f = functions_of(words);
      o = f[idx(parameter[idx(n.function)]) % f.size()];
    }
    auto y = type_operator(*o, n, in, tensors, parameter);
    if (!y) return std::nullopt;
    t.op.push_back(y->op);
    t.value.push_back(std::move(y->out));
  }
  for (rewrite::pattern_value v : g.outputs)
    if (v.node >= 0 && v.slot >= static_cast<int>(t.value[idx(v.node)].size())) return std::nullopt;
  return t;
}

/// Which axes must have one extent because an operator walks them in one loop. Axes whose extents an operator
/// computes have classes of their own.
class extent_classes {
  std::vector<int> parent_;
  std::vector<std::vector<int>> tensors_;
  using by_node = std::vector<std::vector<std::vector<int>>>;
  by_node sides_[2];

  int find(int c) const {
    while (parent_[idx(c)] != c) c = parent_[idx(c)];
    return c;
  }
  int fresh() { parent_.push_back(static_cast<int>(parent_.size())); return parent_.back(); }
  void unite(int a, int b) {
    a = find(a);
    b = find(b);
    parent_[idx(a > b ? a : b)] = a > b ? b : a;
  }
  std::vector<int> const& of(rewrite::pattern_value v, int side) const {
    return rewrite::detail::value_of(v, tensors_, sides_[side]);
  }

 public:
  extent_classes(rewrite::rule const& r, std::vector<shape> const& tensors, typed_pattern const& source,
                 typed_pattern const& target) {
    for (shape const& s : tensors) {
      tensors_.emplace_back();
      for (int d = 0; d < s.rank; ++d) tensors_.back().push_back(fresh());
    }
    for (int side = 0; side < 2; ++side) {
      rewrite::pattern_graph const& g = side ? r.target : r.source;
      typed_pattern const& t = side ? target : source;
      for (std::size_t i = 0; i < g.nodes.size(); ++i) {
        std::vector<shape> types;
        for (rewrite::pattern_value v : g.nodes[i].in) types.push_back(t.at(v, tensors));
        op::any_op const& o = t.op[i];
        auto& out = sides_[side].emplace_back();
        for (shape const& y : t.value[i]) out.emplace_back(idx(y.rank), -1);
        if (is_parallel(o)) {
          out[0] = of(g.nodes[i].in[0], side);
          continue;
        }
        bool const joins = o.is<concat>();
        for (ir::node_loop const& l : ir::space_of(o, types, t.value[i]).loops) {
          bool const own = joins && l.units == 1 && l.letter == 'E';   // the extents of a joined axis add up
          int c = -1;
          for (std::size_t k = 0; k < types.size(); ++k) {
            if (l.in[k] < 0 || own) continue;
            int const mine = of(g.nodes[i].in[k], side)[idx(l.in[k])];
            if (c < 0) c = mine;
            else unite(c, mine);
          }
          for (std::size_t k = 0; k < out.size(); ++k)
            if (int const d = l.out[k]; d >= 0) {
              bool same = c >= 0;   // a window's extent is not its operand's
              for (std::size_t j = 0; j < types.size(); ++j)
                if (l.in[j] >= 0 && types[j].d[l.in[j]].n != t.value[i][k].d[d].n) same = false;
              out[k][idx(d)] = same ? c : fresh();
            }
        }
        for (auto& y : out) for (int& c : y) if (c < 0) c = fresh();
      }
    }
    for (std::size_t k = 0; k < r.source.outputs.size(); ++k) {   // outputs stand for each other
      auto const &a = of(r.source.outputs[k], 0), &b = of(r.target.outputs[k], 1);
      for (std::size_t d = 0; d < a.size() && d < b.size(); ++d) unite(a[d], b[d]);
    }
  }
  int count() const { return static_cast<int>(parent_.size()); }
  std::vector<int> of_node(int side, int node, int slot) const {
    std::vector<int> r = sides_[side][idx(node)][idx(slot)];
    for (int& c : r) c = find(c);
    return r;
  }
  int of(int tensor, int axis) const {
    return find(tensors_[idx(tensor)][idx(axis)]);
  }
};

}  // namespace detail
}  // namespace tensorpar::prover
