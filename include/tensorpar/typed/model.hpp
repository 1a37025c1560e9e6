// tensorpar/typed/model.hpp - writing a model down: tensors as handles, one builder for the compiler and for
// the program
#pragma once
#include <source_location>
#include <tensorpar/typed/tables.hpp>

namespace tensorpar {

class model_builder;

/// A tensor while a model is being written. Valid as long as its builder.
struct ref {
  model_builder* g;
  int v;                              // value id; -1: what should have made it was refused already
  constexpr shape const& type() const;
};
/// Several tensors side by side: the operands of a join, the results of a split.
struct bundle {
  static constexpr int max = 32;
  int n;
  ref r[max];
  constexpr ref operator[](int i) const { return r[i]; }
  constexpr int size() const { return n; }
  /// More than 32 tensors are remembered as too many; the operator that joins them is refused.
  constexpr bundle& push(ref x) { if (n < max) r[n] = x; ++n; return *this; }
};

/// The shape of an input or weight as it is written, `{batch, features(64)}`. More axes than a shape has are
/// counted, to be refused by name.
struct written_shape {
  shape type;
  int axes;
  constexpr written_shape(shape const& s) : type(s), axes(s.rank) {}
  constexpr written_shape(std::initializer_list<dim> l, dtype t = dtype::f32)
      : type(l.size() <= std::size_t{shape::max_rank} ? shape(l, t) : shape()),
        axes(static_cast<int>(l.size())) {}
};

/// Records operators and checks their shapes. Never stops at a mistake: it keeps a complaint and stays silent
/// about what follows from it. The same object serves constant evaluation (typed<Model>) and run time
/// (lower(builder)). Nodes are numbered as they are written. Where both sides of one expression write
/// operators, `(x | f) + (x | g)`, C++ leaves their order to the compiler (constant evaluation goes from left
/// to right on all of them): name the sides first where numbers must agree. Amortised O(rank * operands) per
/// operator.
class model_builder {
 public:
  using location = std::source_location;

 private:
  core::pool<model_node> nodes_;
  core::pool<model_value> values_;
  core::pool<int> operands_, producers_;
  core::pool<i64> attrs_;
  core::pool<model_block> blocks_;
  core::pool<model_port> inputs_, weights_, outputs_;
  core::pool<model_complaint> complaints_;
  int current_ = -1;

  static constexpr op::place where(std::source_location const& l) {
    return {l.file_name(), static_cast<int>(l.line())};
  }
  constexpr int value(int producer, model_role r, shape const& s) {
    return values_.push({producer, -1, r, current_, op::init::zeros, false, false, s});
  }
  constexpr int stand_for(int v) {
    model_value const x = values_[v];
    return values_.push({x.producer, v, model_role::carried, current_, op::init::zeros, false, false,
                         x.type});
  }
  /// May operators that are written now use this value?
  constexpr bool visible(int v) const {
    int const r = values_[v].block;
    if (r < 0) return true;
    for (int c = current_; c >= 0; c = blocks_[c].parent) if (c == r) return true;
    return false;
  }
  constexpr ref fail(op::any_op const& o, char const* rule, shape const& a, shape const& b) {
    return fail(o, op::mismatch(rule, a, b));
  }
  constexpr ref miscounted(op::any_op const& o, int given, shape const& wanted) {
    refuse({complaint_kind::operand_count, op::mismatch("wrong number of operands", shape{dim(given)},
                                                        wanted),
            o.op, o.name, o.at});
    return {this, -1};
  }
  constexpr bool has_too_many_axes(label name, written_shape const& s, location const& l) {
    if (s.axes <= shape::max_rank) return false;
    refuse({complaint_kind::too_many_axes,
            op::mismatch("too many axes", shape{dim(s.axes)}, shape{dim(shape::max_rank)}), &no_operator,
                name, where(l)});
    return true;
  }
  /// Operands that exist and may be used, of these types.
  constexpr ref add(op::any_op const& o, ref const* x, int k, shape const* in) {
    op::op_info const& op = *o.op;
    int const activations = op.arity < 0 ? k : op.arity;
    if (k < activations) return miscounted(o, k, shape{dim(activations)});
    op::inference const r = op.infer(o.attr, {in, activations});
    if (r.rule) return fail(o, r.rule, r.out[0], r.out[1]);
    bool const shared = k > activations;
    if (!op.weighty) {
      if (shared) return miscounted(o, k, shape{dim(activations)});
      return write(o, x, k, activations, r, op::weight_list{});
    }
    op::weight_list const w = op.weights(o.attr, {in, activations});
    if (shared) {
      if (k != activations + w.n)
        return miscounted(o, k,
                          w.n ? shape{dim(activations), dim(activations + w.n)} : shape{dim(activations)});
      for (int i = 0; i < w.n; ++i) {
        if (!fits(in[activations + i], w.w[i].type))
          return fail(o, "shared weight does not fit", in[activations + i], w.w[i].type);
        model_value& s = values_[x[activations + i].v];
        if (s.open_start) { s.start = w.w[i].start; s.open_start = false; }
      }
    }
    return write(o, x, k, activations, r, w);
  }
  /// The tables of an operator that was accepted; its own weights are made unless k operands contain them.
  constexpr ref write(op::any_op const& o, ref const* x, int k, int activations, op::inference const& r,
                      op::weight_list const& w) {
    int const id = nodes_.size(), in0 = operands_.size(), pred0 = producers_.size(), attr0 = attrs_.size(),
              out0 = values_.size();
    int const own = k > activations ? 0 : w.n, attrs = o.op->attrs;
    model_value* const v = values_.extend(r.n + own);
    model_value const* const values = v - out0;
    for (int i = 0; i < r.n; ++i)
      v[i] = {id, -1, model_role::activation, current_, op::init::zeros, false, false, r.out[i]};
    for (int i = 0; i < own; ++i)
      v[r.n + i] = {-1, -1, model_role::parameter, current_, w.w[i].start, false, false, w.w[i].type};
    int* const operands = operands_.extend(k + own);
    int preds = 0;
    for (int i = 0; i < k; ++i) {
      int const y = operands[i] = x[i].v;
      if (int const p = values[y].producer; p >= 0) { producers_.push(p); ++preds; }
    }
    for (int i = 0; i < own; ++i) operands[k + i] = out0 + r.n + i;
    if (attrs > 0) {
      i64* const a = attrs_.extend(attrs);
      for (int i = 0; i < attrs; ++i) a[i] = o.attr[i];
    }
    nodes_.push(
        {o.op, o.name, o.at, attr0, in0, activations, activations + w.n, out0, r.n, pred0, preds, current_});
    return {this, out0};
  }

 public:
  constexpr model_builder() = default;
  /// Writes into tables that somebody else owns, as long as they suffice: what is already where it is wanted
  /// need not be copied.
  template <class Tables>
    requires requires(Tables& t) { t.producers[0]; }
  constexpr explicit model_builder(Tables& t)
      : nodes_(t.nodes),
        values_(t.values),
        operands_(t.operands),
        producers_(t.producers),
        attrs_(t.attrs),
        blocks_(t.blocks),
        inputs_(t.inputs),
        weights_(t.weights),
        outputs_(t.outputs) {}
  /// Are all tables still those that were given?
  constexpr bool in_place() const {
    return nodes_.in_lent() && values_.in_lent() && operands_.in_lent() && producers_.in_lent() &&
           attrs_.in_lent() && blocks_.in_lent() && inputs_.in_lent() && weights_.in_lent() &&
           outputs_.in_lent();
  }

  /// A tensor that the host feeds. Names of inputs differ.
  constexpr ref input(label name, written_shape const& s, location l = location::current()) {
    if (has_too_many_axes(name, s, l)) return {this, -1};
    int const v = values_.push({-1, -1, model_role::input, -1, op::init::zeros, false, false, s.type});
    inputs_.push({name, v, where(l)});
    return {this, v};
  }
  constexpr ref input(label name, written_shape s, dtype t, location l = location::current()) {
    s.type.type = t;
    return input(name, s, l);
  }
  /// A parameter that several operators share: `all(x, table) | embedding{...}`. Without `start`, its first
  /// operator decides how it starts.
  constexpr ref weight(written_shape const& s, location l = location::current()) {
    return weight(label{}, s, l);
  }
  constexpr ref weight(label name, written_shape const& s, location l = location::current()) {
    if (has_too_many_axes(name, s, l)) return {this, -1};
    int const v = value(-1, model_role::parameter, s.type);
    values_[v].start = op::init::normal_02;
    values_[v].open_start = true;
    weights_.push({name, v, where(l)});
    return {this, v};
  }
  constexpr ref weight(label name, written_shape const& s, op::init start, location l = location::current()) {
    ref const r = weight(name, s, l);
    if (r.v < 0) return r;
    values_[r.v].start = start;
    values_[r.v].open_start = false;
    return r;
  }
  constexpr void output(label name, ref x, location l = location::current()) {
    if (x.v < 0) return;
    if (!visible(x.v)) {
      refuse({complaint_kind::shape_mismatch,
              op::mismatch("tensor of a repeated block, used outside", x.type(), scalar), &no_operator, name,
              where(l)});
      return;
    }
    outputs_.push({name, x.v, where(l)});
  }
  /// Says that a result is not used on purpose (one part of a split, say).
  constexpr void discard(ref x) { if (x.v >= 0) values_[x.v].discarded = true; }

  // Constant evaluation of a model is this function, and calls are most of its price: tables are reached by
  // plain pointers here.

  /// Appends an operator. k counts the activations, or activations and all weights where weights are shared.
  constexpr ref add(op::any_op const& o, ref const* x, int k) {
    if (k > bundle::max) return fail(o, "a join takes at most 32 operands", scalar, shape{dim(k)});
    model_value const* const values = values_.begin();
    for (int i = 0; i < k; ++i) {
      if (x[i].v < 0) return {this, -1};
      if (values[x[i].v].block >= 0 && !visible(x[i].v))
        return fail(o, "tensor of a repeated block, used outside", x[i].type(), scalar);
    }
    if (k == 1) return add(o, x, 1, &values[x[0].v].type);
    struct { shape x[bundle::max]; } several{};          // cheap in constant evaluation (see pool)
    for (int i = 0; i < k; ++i) several.x[i] = values[x[i].v].type;
    return add(o, x, k, several.x);
  }
  constexpr ref fail(op::any_op const& o, op::complaint const& c) {
    refuse({complaint_kind::shape_mismatch, c, o.op, o.name, o.at});
    return {this, -1};
  }
  constexpr void refuse(model_complaint const& c) { complaints_.push(c); }

  /// Opens a block that runs `times` times on x[0, k); `inside` receives what the block sees. Close it with
  /// what it gives back.
  constexpr int open(i64 times, ref const* x, int k, ref* inside, op::place at) {
    int const r = blocks_.push({times, current_, nodes_.size(), 0, values_.size(), 0, k, at});
    current_ = r;
    for (int i = 0; i < k; ++i) inside[i] = {this, stand_for(x[i].v)};
    return r;
  }
  /// After it `y` stands outside of the block. Precondition: as many tensors as were opened, of the same
  /// types.
  constexpr void close(int r, ref* y) {
    leave(r);
    for (int i = 0, k = blocks_[r].carried; i < k; ++i) y[i].v = stand_for(y[i].v);
  }
  /// Closes a block; used alone where its content was refused.
  constexpr void leave(int r) {
    current_ = blocks_[r].parent;
    blocks_[r].last = nodes_.size();
    blocks_[r].value_end = values_.size();
  }

  /// Copies the tables of another model in as a block of this one; x are its inputs, `y` receives its
  /// outputs. O(size of the part).
  constexpr void splice(graph_view const& s, ref const* x, ref* y);

  constexpr shape const& type(int v) const { return values_[v].type; }
  /// May operators that are written now use this tensor? Not one from inside a repeated block that is closed.
  constexpr bool visible(ref x) const { return x.v >= 0 && visible(x.v); }
  constexpr bool ok() const { return complaints_.empty(); }
  constexpr core::slice<model_complaint> complaints() const { return complaints_.view(); }
  constexpr graph_view view() const {
    return {nodes_.view(),   values_.view(), operands_.view(), producers_.view(), attrs_.view(),
            blocks_.view(), inputs_.view(), weights_.view(),  outputs_.view()};
  }
};

/// The empty shape where the tensor was refused.
constexpr shape const& ref::type() const { return v < 0 ? scalar : g->type(v); }

constexpr void model_builder::splice(graph_view const& s, ref const* x, ref* y) {
  int const node0 = nodes_.size(), in0 = operands_.size(), attr0 = attrs_.size(), block0 = blocks_.size();
  core::pool<int> at(s.values.n, -1);
  for (int i = 0; i < s.inputs.n; ++i) at[s.inputs[i].value] = x[i].v;
  auto block = [&](int r) { return r < 0 ? current_ : r + block0; };
  for (int i = 0; i < s.values.n; ++i) {
    model_value v = s.values[i];
    if (v.role == model_role::input) continue;
    if (v.role == model_role::carried) { v.source = at[v.source]; v.producer = values_[v.source].producer; }
    else if (v.producer >= 0) v.producer += node0;
    v.block = block(v.block);
    at[i] = values_.push(v);
  }
  for (model_block q : s.blocks) {
    q.parent = block(q.parent);
    q.first += node0;
    q.last += node0;
    q.value_end = at[q.value_end];
    q.value0 = at[q.value0];
    blocks_.push(q);
  }
  for (int v : s.operands) operands_.push(at[v]);
  for (i64 a : s.attrs) attrs_.push(a);
  for (model_node n : s.nodes) {
    n.attr0 += attr0;
    n.in0 += in0;
    n.out0 = at[n.out0];
    n.block = block(n.block);
    n.pred0 = producers_.size();
    for (int i = 0; i < n.operand_count; ++i)
      if (int const p = values_[operands_[n.in0 + i]].producer; p >= 0) producers_.push(p);
    n.pred_count = producers_.size() - n.pred0;
    nodes_.push(n);
  }
  for (model_port p : s.weights) { p.value = at[p.value]; weights_.push(p); }
  for (int i = 0; i < s.outputs.n; ++i) y[i] = {this, at[s.outputs[i].value]};
}

}  // namespace tensorpar
