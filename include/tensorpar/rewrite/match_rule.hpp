// tensorpar/rewrite/match_rule.hpp - where in a graph a rule's source stands
#pragma once
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/rewrite/open_graph.hpp>
#include <tensorpar/rewrite/rule.hpp>
#include <tensorpar/rewrite/vocabulary.hpp>

namespace tensorpar::rewrite {

/// A rule's source found in a graph: nodes, values and attributes for all that it names. What `bound` leaves
/// out is chosen by who applies it.
struct rule_match {
  std::vector<int> node;                 // by node of the source
  std::vector<int> tensor;               // by tensor variable: a value
  std::vector<i64> parameter;            // by parameter; axes count from the left
  std::vector<op::op_info const*> function;  // by parameter, of function parameters
  std::vector<bool> bound;               // by parameter
  friend bool operator==(rule_match const&, rule_match const&) = default;
};

namespace detail {

inline int axis_of_factor(rule_factor const& f, int rank, rule_match const& m) {
  i64 const a = f.axis_parameter >= 0 ? m.parameter[idx(f.axis_parameter)] : f.axis;
  // any number may be claimed
  return a < -rank || a >= rank ? -1 : static_cast<int>(a < 0 ? a + rank : a);
}
/// What a term is in a match; nullopt: an axis is not there, or the number is too large. `real`: a product of
/// doubles.
inline std::optional<i64> value_in(rule_term const& t, bool real, rule_match const& m, open_graph const& g) {
  i64 n = t.number;
  double x = t.factors.empty() && real ? std::bit_cast<double>(t.number) : 1;
  for (rule_factor const& f : t.factors) {
    if (f.kind == term_kind::parameter) {
      if (real) x *= std::bit_cast<double>(m.parameter[idx(f.index)]);
      else if (__builtin_mul_overflow(n, m.parameter[idx(f.index)], &n)) return std::nullopt;
      continue;
    }
    ir::parallel_shape const& s = g.value(m.tensor[idx(f.index)]).where;
    i64 times = f.kind == term_kind::copies ? s.copy : s.sum;
    if (f.kind == term_kind::extent || f.kind == term_kind::degree) {
      int const a = axis_of_factor(f, s.type.rank, m);
      if (a < 0) return std::nullopt;
      times = f.kind == term_kind::extent ? s.type.d[a].n : s.degree[a];
    }
    if (__builtin_mul_overflow(n, times, &n)) return std::nullopt;
  }
  return real ? std::bit_cast<i64>(x) : n;
}
/// An attribute as rules see it: axes from the left.
inline i64 plain_attribute(op::any_op const& o, int i, int rank) {
  return role_of(*o.op, i) == attr_role::axis && o.attr[i] < 0 ? o.attr[i] + rank : o.attr[i];
}

class rule_search {
  rule const& r_;
  open_graph const& g_;
  // nodes of the source, each but the first of a piece joined to one before it
  std::vector<int> const& order_;
  std::vector<rule_match>& found_;
  rule_match m_;
  int limit_;

  pattern_node const& source(int p) const { return r_.source.nodes[idx(p)]; }
  int rank_of(int v) const { return g_.node(v).in.empty() ? 0 : g_.value(g_.node(v).in[0]).where.type.rank; }

  /// Gives an attribute's parameters values in every way, then goes on with the next attribute.
  void attributes(int step, int v, std::size_t i) {
    pattern_node const& n = source(order_[idx(step)]);
    while (i < n.attr.size() && (n.attr[i].open || depends_on_extents(n.attr[i]))) ++i;
    if (i == n.attr.size()) return operands(step, v, false);
    op::any_op const& o = g_.node(v).op;
    bool const real = o.op->attr_kind(static_cast<int>(i)) == 'f';
    i64 const have = plain_attribute(o, static_cast<int>(i), rank_of(v));
    rule_term const& t = n.attr[i];
    std::vector<int> open;
    for (rule_factor const& f : t.factors)
      if (!m_.bound[idx(f.index)]) open.push_back(f.index);
    if (open.empty()) {
      auto want = value_in(t, real, m_, g_);
      if (role_of(*o.op, static_cast<int>(i)) == attr_role::axis && *want < 0) *want += rank_of(v);
      if (*want == have) attributes(step, v, i + 1);
      return;
    }
    auto with = [&](int p, i64 x, auto&& next) {
      m_.parameter[idx(p)] = x;
      m_.bound[idx(p)] = true;
      next();
      m_.bound[idx(p)] = false;
    };
    if (real) {                          // a factor is bound where it stands alone
      if (t.factors.size() == 1) with(open[0], have, [&] { attributes(step, v, i + 1); });
      return;
    }
    i64 rest = t.number;
    for (rule_factor const& f : t.factors)
      if (m_.bound[idx(f.index)]) rest *= m_.parameter[idx(f.index)];
    if (rest < 1 || have % rest) return;
    rest = have / rest;
    if (open.size() == 1) return with(open[0], rest, [&] { attributes(step, v, i + 1); });
    for (i64 k = 2; open.size() == 2 && k < rest; ++k)   // a product of two: every way to write it
      if (rest % k == 0)
        with(open[0], k, [&] { with(open[1], rest / k, [&] { attributes(step, v, i + 1); }); });
  }
  static bool depends_on_extents(rule_term const& t) {
    for (rule_factor const& f : t.factors) if (f.kind != term_kind::parameter) return true;
    return false;
  }
  /// Binds tensor variables to operands; operands that nodes make must be made by theirs.
  void operands(int step, int v, bool turned) {
    pattern_node const& n = source(order_[idx(step)]);
    auto const& in = g_.node(v).in;
    std::vector<int> fresh;
    bool good = n.in.size() == in.size();
    for (std::size_t k = 0; k < n.in.size() && good; ++k) {
      int const x = in[turned ? 1 - k : k];
      pattern_value const w = n.in[k];
      if (w.node < 0) {
        int& have = m_.tensor[idx(w.slot)];
        if (have < 0) { have = x; fresh.push_back(w.slot); }
        good = have == x;
      } else if (int const u = m_.node[idx(w.node)]; u >= 0) {
        good = g_.value(x).producer == u && g_.value(x).slot == w.slot;
      }
    }
    if (good) place(step + 1);
    for (int t : fresh) m_.tensor[idx(t)] = -1;
    if (!turned && n.op && is_commutative(*n.op) && in[0] != in[1]) operands(step, v, true);
  }
  void attempt(int step, int v) {
    int const p = order_[idx(step)];
    pattern_node const& n = source(p);
    op::any_op const& o = g_.node(v).op;
    if (!g_.node(v).alive || (n.op ? n.op->id != o.op->id : !is_function(*o.op))) return;
    for (int u : m_.node) if (u == v) return;
    bool named = false;
    if (!n.op) {
      op::op_info const*& f = m_.function[idx(n.function)];
      if (f && f->id != o.op->id) return;
      named = !f;
      f = o.op;
      m_.bound[idx(n.function)] = true;
    }
    // who reads this node's results in the source must be found reading them
    bool good = true;
    for (std::size_t q = 0; q < m_.node.size() && good; ++q) {
      if (m_.node[q] < 0) continue;
      pattern_node const& reader = r_.source.nodes[q];
      for (std::size_t k = 0; k < reader.in.size() && good; ++k)
        if (reader.in[k].node == p) {
          auto reads = [&](int x) {
            return g_.value(x).producer == v && g_.value(x).slot == reader.in[k].slot;
          };
          auto const& in = g_.node(m_.node[q]).in;
          good = reads(in[k]) || (reader.op && is_commutative(*reader.op) && reads(in[1 - k]));
        }
    }
    if (good) {
      m_.node[idx(p)] = v;
      attributes(step, v, 0);
      m_.node[idx(p)] = -1;
    }
    if (named) {
      m_.function[idx(n.function)] = nullptr;
      m_.bound[idx(n.function)] = false;
    }
  }
  void place(int step) {
    if (static_cast<int>(found_.size()) >= limit_) return;
    if (step == static_cast<int>(order_.size())) return finish();
    int const p = order_[idx(step)];
    // candidates: the producer of an operand already placed, the readers of a result, else every node of that
    // operator
    for (std::size_t q = 0; q < m_.node.size(); ++q) {
      if (m_.node[q] < 0) continue;
      pattern_node const& reader = r_.source.nodes[q];
      for (std::size_t k = 0; k < reader.in.size(); ++k) {
        if (reader.in[k].node != p) continue;
        std::vector<int> makers;
        for (int x : g_.node(m_.node[q]).in) {
          int const u = g_.value(x).producer;
          if (u >= 0 && std::find(makers.begin(), makers.end(), u) == makers.end()) makers.push_back(u);
        }
        for (int u : makers) attempt(step, u);
        return;
      }
    }
    for (pattern_value w : source(p).in) {
      int x = -1;
      if (w.node < 0) x = m_.tensor[idx(w.slot)];
      else if (int const u = m_.node[idx(w.node)]; u >= 0) {
        if (w.slot >= static_cast<int>(g_.node(u).out.size())) return;   // it has no such result
        x = g_.node(u).out[idx(w.slot)];
      }
      if (x < 0) continue;
      int last = -1;
      for (int u : std::vector<int>(g_.value(x).users)) {
        if (u != last) attempt(step, u);
        last = u;
      }
      return;
    }
    if (source(p).op) {
      for (int v : g_.nodes_of(source(p).op->id)) attempt(step, v);
      return;
    }
    for (auto const& [id, list] : g_.index())
      if (!list.empty() && is_function(*g_.node(list.front()).op.op))
        for (int v : list) attempt(step, v);
  }
  void finish() {
    for (pattern_value w : r_.source.outputs)
      if (w.slot >= static_cast<int>(g_.node(m_.node[idx(w.node)]).out.size())) return;
    // every operand is what the source says: those placed later were not looked at
    for (std::size_t p = 0; p < m_.node.size(); ++p) {
      pattern_node const& n = r_.source.nodes[p];
      auto const& node = g_.node(m_.node[p]);
      auto fits = [&](bool turned) {
        for (std::size_t k = 0; k < n.in.size(); ++k) {
          int const x = node.in[turned ? 1 - k : k];
          pattern_value const w = n.in[k];
          if (w.node < 0 ? m_.tensor[idx(w.slot)] != x
                         : g_.value(x).producer != m_.node[idx(w.node)] || g_.value(x).slot != w.slot)
            return false;
        }
        return true;
      };
      if (!fits(false) && !(n.op && is_commutative(*n.op) && fits(true))) return;
      for (std::size_t i = 0; i < n.attr.size(); ++i) {
        if (n.attr[i].open || !depends_on_extents(n.attr[i])) continue;
        auto const want = value_in(n.attr[i], false, m_, g_);
        if (!want || *want != plain_attribute(node.op, static_cast<int>(i), rank_of(m_.node[p]))) return;
      }
      // what only the source's own nodes may use
      for (std::size_t slot = 0; slot < node.out.size(); ++slot) {
        bool output = false;
        for (pattern_value w : r_.source.outputs)
          output = output || w == pattern_value{static_cast<int>(p), static_cast<int>(slot)};
        if (output) continue;
        auto const& x = g_.value(node.out[slot]);
        if (x.outputs) return;
        for (int u : x.users) if (std::find(m_.node.begin(), m_.node.end(), u) == m_.node.end()) return;
      }
    }
    found_.push_back(m_);
  }

 public:
  rule_search(rule const& r, open_graph const& g, std::vector<int> const& order,
              std::vector<rule_match>& found, int limit)
      : r_(r),
        g_(g),
        order_(order),
        found_(found),
        m_{std::vector<int>(r.source.nodes.size(), -1), std::vector<int>(r.tensors.size(), -1),
           std::vector<i64>(r.parameters.size(), 1),
           std::vector<op::op_info const*>(r.parameters.size(), nullptr),
           std::vector<bool>(r.parameters.size(), false)},
        limit_(limit) {}
  void run() { place(0); }
};

/// Nodes of a source from its outputs inwards, every one but the first of a piece joined to those before it.
inline std::vector<int> search_order(pattern_graph const& g) {
  std::vector<int> order;
  std::vector<bool> done(g.nodes.size(), false);
  auto joined = [&](int p) {
    for (int q : order) {
      for (pattern_value w : g.nodes[idx(q)].in) if (w.node == p) return true;
      for (pattern_value w : g.nodes[idx(p)].in) {
        if (w.node == q) return true;
        // a tensor variable in common
        for (pattern_value x : g.nodes[idx(q)].in) if (w.node < 0 && x == w) return true;
      }
    }
    return false;
  };
  while (order.size() < g.nodes.size()) {
    int next = -1;
    for (int p = static_cast<int>(g.nodes.size()) - 1; p >= 0 && next < 0; --p)
      if (!done[idx(p)] && joined(p)) next = p;
    for (int p = static_cast<int>(g.nodes.size()) - 1; p >= 0 && next < 0; --p)
      if (!done[idx(p)]) next = p;
    done[idx(next)] = true;
    order.push_back(next);
  }
  return order;
}

}  // namespace detail

/// Every place where the rule's source stands, at most `limit`. Values inside are used by nobody else. In the
/// order of the numbers of the nodes that make the outputs; operands of sums and products in either order.
/// Conditions and the target are looked at by `apply_rule`. O(nodes of the last output's operator *
/// degree^(nodes of the source)).
inline std::vector<rule_match> find_matches(rule const& r, open_graph const& g, int limit = 1 << 20) {
  std::vector<rule_match> found;
  for (pattern_node const& n : r.source.nodes)
    if (n.op && g.nodes_of(n.op->id).empty()) return found;
  std::vector<int> const order = detail::search_order(r.source);
  detail::rule_search(r, g, order, found, limit).run();
  return found;
}

}  // namespace tensorpar::rewrite
