// tensorpar/typed/lower.hpp - a model becomes a computation graph: symbols bound, repeated blocks unrolled; one function for all models
#pragma once
#include <string>
#include <tensorpar/ir/computation_graph.hpp>
#include <tensorpar/typed/audit.hpp>
#include <tensorpar/typed/model.hpp>
#include <tensorpar/typed/text.hpp>
#include <vector>

namespace tensorpar {

namespace detail {

class lowering {
  graph_view const g_;
  slice<binding> const bound_;
  computation_graph out_;
  std::vector<int> now_;               // value of the model -> value of the result, in the current turn
  std::vector<u64> names_;             // hashes of the names given to nodes, kept as an open table
  int next_ = 0;                       // region

  int& now(int v) { return now_[static_cast<std::size_t>(v)]; }
  shape bound(shape const& s, std::string const& of) const {
    shape const r = bind(s, bound_);
    for (int i = 0; i < r.rank; ++i) {
      if (!r.d[i].is_static()) throw error("axis '" + spell(r.d[i].sym) + "' has no size", of, "lower(model, {" + spell(r.d[i].sym) + " = n})");
      if (r.d[i].n < 1) throw error("axis " + std::to_string(i) + " of " + spell(s) + " has size " + std::to_string(r.d[i].n), of, "a size of at least 1");
    }
    return r;
  }
  static std::string spelled(label const& l) { return l.index < 0 ? std::string(l.text) : std::string(l.text) + "." + std::to_string(l.index); }
  static std::string in_turn(std::string s, int region, i64 turn) { return region < 0 ? s : s + "@" + std::to_string(turn); }

  /// `wanted`, or that with underscores behind it where it is taken (an unnamed operator's "linear7" may be somebody's name).
  std::string unused(std::string wanted) {
    for (;;) {
      std::size_t const mask = names_.size() - 1;
      u64 const h = name_hash(wanted) | 1;   // 0: a free slot
      std::size_t i = h & mask;
      while (names_[i] && names_[i] != h) i = (i + 1) & mask;
      if (!names_[i]) { names_[i] = h; return wanted; }
      wanted += '_';
    }
  }
  int value_of(int v, i64 turn) {
    if (now(v) < 0) {                  // a shared weight at its first use in this turn
      model_value const& x = g_.values[v];
      int k = 0;
      while (g_.weights[k].value != v) ++k;
      label const& l = g_.weights[k].name;
      std::string const name = unused(in_turn(l.text ? spelled(l) : "weight" + std::to_string(k), x.region, turn));
      now(v) = out_.add_parameter(name, bound(x.type, "weight " + name), x.start);
    }
    return now(v);
  }
  void one(int v, i64 turn) {
    model_node const& n = g_.nodes[v];
    std::string const name = unused(n.name ? in_turn(n.name, n.region, turn) : std::string(n.op->name) + std::to_string(out_.node_count()));
    std::vector<int> in;
    for (int i = 0; i < n.operand_count; ++i) {
      int const x = g_.operands[n.in0 + i];
      if (x >= n.out0) {               // the operator's own weight
        model_value const& w = g_.values[x];
        now(x) = out_.add_parameter(name + "." + std::to_string(i - n.activations), bound(w.type, "weight of " + name), w.start);
        in.push_back(now(x));
      } else in.push_back(value_of(x, turn));
    }
    int const id = out_.add(g_.op(v), std::move(in), name);
    out_.node(id).region = n.region;
    out_.node(id).turn = static_cast<int>(turn);
    for (int i = 0; i < n.result_count; ++i) now(n.out0 + i) = out_.node(id).out[static_cast<std::size_t>(i)];
  }
  void block(int r, i64 outer_turn) {
    model_region const& q = g_.regions[r];
    std::vector<int> carried;
    for (int i = 0; i < q.carried; ++i) carried.push_back(value_of(g_.values[q.value0 + i].source, outer_turn));
    int const inner = next_;
    for (i64 t = 0; t < q.times; ++t) {
      for (int x = q.value0; x < q.value_end; ++x) now(x) = -1;
      for (int i = 0; i < q.carried; ++i) now(q.value0 + i) = carried[static_cast<std::size_t>(i)];
      next_ = inner;
      range(q.first, q.last, r, outer_turn * q.times + t);
      for (int i = 0; i < q.carried; ++i) carried[static_cast<std::size_t>(i)] = value_of(g_.values[q.value_end + i].source, outer_turn * q.times + t);
    }
    if (q.times == 0) while (next_ < g_.regions.n && inside(next_, r)) ++next_;
    for (int i = 0; i < q.carried; ++i) now(q.value_end + i) = carried[static_cast<std::size_t>(i)];
  }
  bool inside(int r, int outer) const {
    while (r >= 0 && r != outer) r = g_.regions[r].parent;
    return r == outer;
  }
  void range(int first, int last, int region, i64 turn) {
    for (int v = first;;) {
      if (next_ < g_.regions.n && g_.regions[next_].parent == region && g_.regions[next_].first == v) {
        int const r = next_++;
        block(r, turn);
        v = g_.regions[r].last;
      } else if (v < last) one(v++, turn);
      else return;
    }
  }

 public:
  lowering(graph_view const& g, slice<binding> b) : g_(g), bound_(b), now_(static_cast<std::size_t>(g.values.n), -1), names_(16, 0) {
    i64 most = g.weights.n;
    for (model_node const& n : g.nodes) most += g.times(n.region);
    for (model_region const& r : g.regions) most += g.weights.n ? g.times(r.parent) * r.times : 0;
    if (most > (i64{1} << 26)) throw error("the unrolled model has " + std::to_string(most) + " operators", "lower", "at most 67108864");
    while (names_.size() < 2 * static_cast<std::size_t>(most)) names_.resize(2 * names_.size(), 0);
  }
  computation_graph run() {
    for (model_port const& p : g_.inputs) now(p.value) = out_.add_input(spelled(p.name), bound(g_.values[p.value].type, "input " + spelled(p.name)));
    range(0, g_.nodes.n, -1, 0);
    for (model_port const& p : g_.outputs) out_.add_output(spelled(p.name), value_of(p.value, 0));
    return std::move(out_);
  }
};

/// The complaint as one sentence: the same words as the error types of typed/check.hpp.
inline error as_error(model_complaint const& c) {
  std::string const who(subject(c, c.kind == complaint_kind::shape_mismatch ? "output" : "input or weight").view());
  std::string what;
  switch (c.kind) {
    case complaint_kind::shape_mismatch: what = "shape mismatch in " + who + ": " + c.why.rule + ": " + spell(c.why.lhs) + ", " + spell(c.why.rhs); break;
    case complaint_kind::dangling_tensor: what = "dangling tensor of " + who + ", " + spell(c.why.lhs) + ": " + c.why.rule; break;
    default: what = "name clash of " + who + ": " + c.why.rule;
  }
  return error(what, std::string(text{}.put(c.at).view()), "");
}

}  // namespace detail

/// The computation graph of a model with its symbols bound: `lower(net, {batch = 32})`. Nodes keep the model's order; repeated blocks are
/// unrolled, each turn with weights of its own, and every node tells its region and turn (turns of nested blocks are counted through).
/// Inputs are values. Every node has a name, its own or its operator's with its number; in a repeated block "@turn" follows a given name.
/// Its weights are parameters "<node>.0", "<node>.1" ...; a shared weight has its own name or "weight<k>".
/// Precondition: the model was accepted (typed<M>, or builder.ok() and audit). Throws `error` for a symbol without a size, sizes below 1,
/// and where a shape rule refuses the bound sizes. O(unrolled operators).
inline computation_graph lower(graph_view const& g, slice<binding> bound) { return detail::lowering(g, bound).run(); }
inline computation_graph lower(graph_view const& g, std::initializer_list<binding> bound = {}) {
  return lower(g, slice<binding>{bound.begin(), static_cast<int>(bound.size())});
}

/// A model written at run time, checked first. Throws `error` with the first complaint: what, both shapes, why, file and line.
inline computation_graph lower(model_builder const& g, std::initializer_list<binding> bound = {}) {
  if (!g.ok()) throw detail::as_error(g.complaints()[0]);
  if (model_complaint const c = audit(g.view()); !c.ok()) throw detail::as_error(c);
  return lower(g.view(), bound);
}

}  // namespace tensorpar
