// tensorpar/typed/lower.hpp - a model becomes a computation graph: symbols bound, repeated blocks unrolled;
// one function for all models
#pragma once
#include <algorithm>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/computation_graph.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>
#include <tensorpar/typed/audit.hpp>
#include <tensorpar/typed/lowered.hpp>
#include <tensorpar/typed/model.hpp>
#include <tensorpar/typed/text.hpp>
#include <vector>

namespace tensorpar {

namespace detail {

// Cold: it runs once for a model, and -O2 spends half of the compilation time of a small unit on it
// otherwise.
class lowering {
  graph_view const g_;
  core::slice<binding> const bound_;
  computation_graph out_;
  core::pool<int> now_;               // value of the model -> value of the result, in the current repetition
  int const slots_;
  core::detail::zeroed<u64> names_;           // hashes of the names given to nodes, kept as an open table
  int next_ = 0;                       // block

  int& now(int v) { return now_[v]; }
  [[gnu::noinline, gnu::cold]] shape bound(shape const& s, std::string const& of) const {
    shape const r = bind(s, bound_);
    for (int i = 0; i < r.rank; ++i) if (!r.d[i].is_static() || r.d[i].n < 1) bad_size(r.d[i], of);
    return r;
  }
  [[noreturn, gnu::noinline, gnu::cold]] static void bad_size(dim const& d, std::string const& of) {
    std::string what, valid;
    op::detail::put_text(what, d.is_static() ? "an axis has size " : "axis '");
    if (d.is_static())
      op::detail::put_text(what, d.n); else { op::detail::put_text(what, d.sym); op::detail::put_text(what,
          "' has no size"); }
    op::detail::put_text(valid, d.is_static() ? "a size of at least 1" : "lower(model, {");
    if (!d.is_static()) { op::detail::put_text(valid, d.sym); op::detail::put_text(valid, " = n})"); }
    throw error(std::move(what), of, std::move(valid));
  }
  /// Every size belongs to an axis of the model that waits for one, and to one alone.
  [[gnu::noinline, gnu::cold]] void require_sizes() const {
    std::vector<axis> open;
    for (model_value const& v : g_.values)
      for (int i = 0; i < v.type.rank; ++i)
        if (axis const a = v.type.d[i].sym; a && std::find(open.begin(), open.end(), a) == open.end())
          open.push_back(a);
    for (int i = 0; i < bound_.n; ++i) {
      bool twice = false;
      for (int k = 0; k < i; ++k) twice = twice || bound_[k].sym == bound_[i].sym;
      bool const known = std::find(open.begin(), open.end(), bound_[i].sym) != open.end();
      if (known && !twice) continue;
      std::string what, valid;
      op::detail::put_text(what, twice ? "two sizes for axis '" : "a size for axis '");
      op::detail::put_text(what, bound_[i].sym);
      op::detail::put_text(what, twice ? "'" : "', which the model has not or has fixed");
      for (axis const& a : open) {
        op::detail::put_text(valid, valid.empty() ? "one size for each of " : ", ");
        op::detail::put_text(valid, a);
      }
      throw error(std::move(what), "lower",
                  valid.empty() ? "no sizes: the model has them all" : std::move(valid));
    }
  }
  [[noreturn, gnu::noinline, gnu::cold]] static void too_large() {
    throw error("the unrolled model is too large", "lower", "at most 67108864 operators");
  }
  /// "linear7", "x.3", "head@2"; without a number (below zero) the text alone.
  [[gnu::noinline, gnu::cold]] static std::string numbered(std::string_view text, char const* mark,
                                                           i64 number) {
    std::string s;
    op::detail::put_text(s, text);
    if (number >= 0) { op::detail::put_text(s, mark); op::detail::put_text(s, number); }
    return s;
  }
  static std::string spelled(label const& l) { return numbered(l.text, ".", l.index); }

  /// `wanted`, or that with underscores behind it where it is taken (an unnamed operator's "linear7" may be
  /// somebody's name).
  [[gnu::noinline, gnu::cold]] void make_unique(std::string& wanted) {
    for (;; op::detail::put_text(wanted, "_")) {
      u64 const mask = static_cast<u64>(slots_) - 1, h = core::name_hash(wanted) | 1;   // 0: a free slot
      u64 i = h & mask;
      while (names_.p[i] && names_.p[i] != h) i = (i + 1) & mask;
      if (names_.p[i]) continue;
      names_.p[i] = h;
      return;
    }
  }
  [[gnu::noinline, gnu::cold]] int value_of(int v, i64 repetition) {
    if (now(v) < 0) {                  // a shared weight at its first use in this repetition
      model_value const& x = g_.values[v];
      int k = 0;
      while (g_.weights[k].value != v) ++k;
      label const& l = g_.weights[k].name;
      std::string name = l.text ? spelled(l) : numbered("weight", "", k);
      if (x.block >= 0) { op::detail::put_text(name, "@"); op::detail::put_text(name, repetition); }
      make_unique(name);
      parameter(v, name, name);
    }
    return now(v);
  }
  [[gnu::noinline, gnu::cold]] void parameter(int v, std::string name, std::string const& of) {
    model_value const& x = g_.values[v];
    now(v) = out_.add_parameter(std::move(name), bound(x.type, of), x.start);
  }
  [[gnu::noinline, gnu::cold]] std::string name_of_node(model_node const& n, i64 repetition) {
    std::string name = n.name ? numbered(n.name, "@", n.block < 0 ? -1 : repetition)
                              : numbered(n.op->name, "", out_.node_count());
    make_unique(name);
    return name;
  }
  [[gnu::noinline, gnu::cold]] void one(int v, i64 repetition) {
    model_node const& n = g_.nodes[v];
    std::string name = name_of_node(n, repetition);
    std::vector<value_id> in;
    for (int i = 0; i < n.operand_count; ++i) {
      int const x = g_.operands[n.in0 + i];
      // the operator's own weight
      if (x >= n.out0) parameter(x, numbered(name, ".", i - n.activations), name);
      int const operand = value_of(x, repetition);
      in.push_back(operand);
    }
    op::any_op op = g_.op(v);
    // two dropouts of one model, or of two repetitions of a block, must not draw the same mask
    if (op.is<dropout>())
      op.attr[1] = static_cast<i64>(core::hasher().add(op.attr[1]).add(out_.node_count()).value() >> 1);
    graph_node& made = out_.node(out_.add(op, std::move(in), std::move(name)));
    made.block = n.block;
    made.repetition = static_cast<int>(repetition);
    for (int i = 0; i < n.result_count; ++i) now(n.out0 + i) = made.out[idx(i)];
  }
  [[gnu::noinline, gnu::cold]] void run_block(int r, i64 outer_repetition) {
    model_block const& q = g_.blocks[r];
    core::pool<int> carried_;
    int* const carried = carried_.extend(q.carried);
    for (int i = 0; i < q.carried; ++i)
      carried[i] = value_of(g_.values[q.value0 + i].source, outer_repetition);
    int const inner = next_;
    for (i64 t = 0; t < q.times; ++t) {
      for (int x = q.value0; x < q.value_end; ++x) now(x) = -1;
      for (int i = 0; i < q.carried; ++i) now(q.value0 + i) = carried[i];
      next_ = inner;
      range(q.first, q.last, r, outer_repetition * q.times + t);
      for (int i = 0; i < q.carried; ++i)
        carried[i] = value_of(g_.values[q.value_end + i].source, outer_repetition * q.times + t);
    }
    if (q.times == 0) while (next_ < g_.blocks.n && inside(next_, r)) ++next_;
    for (int i = 0; i < q.carried; ++i) now(q.value_end + i) = carried[i];
  }
  bool inside(int r, int outer) const {
    while (r >= 0 && r != outer) r = g_.blocks[r].parent;
    return r == outer;
  }
  [[gnu::noinline, gnu::cold]] void range(int first, int last, int block, i64 repetition) {
    for (int v = first;;) {
      if (next_ < g_.blocks.n && g_.blocks[next_].parent == block && g_.blocks[next_].first == v) {
        int const r = next_++;
        run_block(r, repetition);
        v = g_.blocks[r].last;
      } else if (v < last) one(v++, repetition);
      else return;
    }
  }

  [[gnu::noinline, gnu::cold]] static int slots_for(graph_view const& g) {
    i64 most = g.weights.n;
    for (model_node const& n : g.nodes) most += g.times(n.block);
    for (model_block const& r : g.blocks) most += g.weights.n ? g.times(r.parent) * r.times : 0;
    if (most > (i64{1} << 26)) too_large();
    int slots = 16;
    while (slots < 2 * most) slots *= 2;
    return slots;
  }

 public:
  [[gnu::cold]] lowering(graph_view const& g, core::slice<binding> b)
      : g_(g), bound_(b), now_(g.values.n, -1), slots_(slots_for(g)), names_(slots_) {}
  [[gnu::cold]] computation_graph run() {
    require_sizes();
    for (model_port const& p : g_.inputs) {
      std::string name = spelled(p.name);
      shape const s = bound(g_.values[p.value].type, name);
      now(p.value) = out_.add_input(std::move(name), s);
    }
    range(0, g_.nodes.n, -1, 0);
    for (model_port const& p : g_.outputs) out_.add_output(spelled(p.name), value_of(p.value, 0));
    return std::move(out_);
  }
};

/// The complaint as one sentence: the same words as the error types of typed/check.hpp.
[[gnu::noinline, gnu::cold]] inline error as_error(model_complaint const& c) {
  std::string what;
  auto const count = [](shape const& s, int i) { return std::to_string(s.d[i].n); };
  if (c.kind == complaint_kind::operand_count) {
    what = "wrong number of operands of " + std::string(subject(c, "").view()) + ": " + count(c.why.lhs, 0) +
           " given, " + count(c.why.rhs, 0) +
           (c.why.rhs.rank > 1 ? ", or with all weights " + count(c.why.rhs, 1) : "") + " wanted";
    return error(std::move(what), std::string(text{}.put(c.at).view()), "");
  }
  if (c.kind == complaint_kind::too_many_axes) {
    what = "too many axes of " + std::string(subject(c, "input or weight").view()) + ": " +
           count(c.why.lhs, 0) + " given, at most " + count(c.why.rhs, 0);
    return error(std::move(what), std::string(text{}.put(c.at).view()), "");
  }
  op::detail::put_text(what, c.kind == complaint_kind::shape_mismatch    ? "shape mismatch in "
                 : c.kind == complaint_kind::dangling_tensor ? "dangling tensor of "
                                                             : "name clash of ");
  op::detail::put_text(what, subject(c, c.kind == complaint_kind::shape_mismatch ? "output"
                                     : "input or weight").view());
  op::detail::put_text(what, ": ");
  op::detail::put_text(what, c.why.rule);
  if (c.kind != complaint_kind::name_clash) {
    op::detail::put_text(what, ": "); op::detail::put_text(what, c.why.lhs);
  }
  if (c.kind == complaint_kind::shape_mismatch) {
    op::detail::put_text(what, ", "); op::detail::put_text(what, c.why.rhs);
  }
  text where;
  if (c.at.file) where.put(c.at);
  return error(std::move(what), std::string(where.view()), "");
}

}  // namespace detail

/// The computation graph of a model with its symbols bound: `lower(net, {batch = 32})`. Nodes keep the
/// model's order; repeated blocks are unrolled, each repetition with weights of its own, and every node tells
/// its block and repetition (repetitions of nested blocks are counted through). Inputs are values. Every node
/// has a name, its own or its operator's with its number; in a repeated block "@repetition" follows a given
/// name. Its weights are parameters "<node>.0", "<node>.1" ...; a shared weight has its own name or
/// "weight<k>".
/// Precondition: the model was accepted (typed<M>, or builder.ok() and audit). Throws `error` for a symbol
/// without a size or with two, for a size of no symbol, sizes below 1, and where a shape rule refuses the
/// bound sizes. O(unrolled operators).
[[gnu::noinline, gnu::cold]] inline computation_graph lower(graph_view const& g, core::slice<binding> bound) {
  return detail::lowering(g, bound).run();
}
inline computation_graph lower(graph_view const& g, std::initializer_list<binding> bound = {}) {
  return lower(g, core::slice<binding>{bound.begin(), static_cast<int>(bound.size())});
}

/// A model written at run time, checked first. Throws `error` with the first complaint: what, both shapes,
/// why, file and line.
inline computation_graph lower(model_builder const& g, std::initializer_list<binding> bound = {}) {
  if (!g.ok()) throw detail::as_error(g.complaints()[0]);
  if (model_complaint const c = audit(g.view()); !c.ok()) throw detail::as_error(c);
  return lower(g.view(), bound);
}

}  // namespace tensorpar
