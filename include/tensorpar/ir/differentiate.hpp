// tensorpar/ir/differentiate.hpp - from a forward graph to a training step with backward and update operators
#pragma once
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/loss_reduction.hpp>
#include <tensorpar/ir/sharded_update.hpp>
#include <tensorpar/op/kinds/optimizer_check.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>

namespace tensorpar {

struct training_options {
  std::string loss = "loss";           // the output whose gradient is taken; a scalar
  optimizer_choice optimizer;
  int micro_batches = 1;               // runs of the forward graph in a step
  loss_reduction reduction = loss_reduction::as_graph;       // of their losses
  friend bool operator==(training_options const&, training_options const&) = default;
};

/// A training step. The forward graph's nodes and values keep their ids and come first.
struct training_graph {
  computation_graph graph;
  int forward_nodes = 0;
  value_id loss;
  // the values that make the loss: one, or one per micro-batch that the graph holds
  std::vector<value_id> losses;
  loss_reduction reduction = loss_reduction::mean;    // of these, and of micro-batches
  // training_hash of the graph whose micro-batches this one holds; 0: of none
  u64 expanded_from = 0;
  std::vector<value_id> gradient;                // by forward value id: its complete gradient, or -1
  // by forward value id: the forward node in whose layout a parameter lives (its first user), or -1
  std::vector<node_id> home;
  // by value id, may be shorter: what became of a parameter whose copies share its update
  std::vector<ir::zero_stage> zero;
};

namespace detail {

/// A mask is one of the whole batch: throws `error` where several micro-batches cannot know which part of it
/// is theirs.
inline void require_one_mask(computation_graph const& g, int micro_batches) {
  for (graph_node const& n : g.nodes)
    if (micro_batches > 1 && n.op.is<dropout>() && n.sample_run == ir::sample_run::unknown)
      throw error("dropout" + (n.name.empty() ? "" : " '" + n.name + "'") + " on "
                  + op::spell(g.type(n.in[0])) +
                      " cannot tell along which axis samples lie, so " + std::to_string(micro_batches) +
                      " micro-batches would drop other elements than one", "differentiate",
                  "samples along one axis, followed by operators that keep them whole; or one micro-batch");
}

/// Implements gradient_builder over a computation graph. Keeps, for every tensor that a derivative touches,
/// which loop of the forward node each of its axes follows, so that derived operators inherit the forward
/// operator's sharding (`graph_node::letters`).
class differentiator final : public op::gradient_builder {
 public:
  training_graph t;

  differentiator(computation_graph const& forward, training_options const& o) : options_(o) {
    t.graph.nodes.reserve(6 * forward.nodes.size());  // about what a step has
    t.graph.values.reserve(5 * forward.values.size());
    t.graph = forward;  // keeps the room
    t.forward_nodes = forward.node_count();
    auto const n = forward.values.size();
    parts_.resize(n);
    t.gradient.assign(n, -1);
    t.home.assign(n, -1);
    wanted_.assign(n, false);
    runs_ = ir::sample_runs(forward);
    for (std::size_t x = 0; x < n; ++x) wanted_[x] = forward.values[x].role == value_role::parameter;
    for (node_id v = 0; v < t.forward_nodes; ++v) {
      t.graph.node(v).origin = v;
      t.graph.node(v).phase = step_phase::forward;
      if (graph_node& made = t.graph.node(v); !made.out.empty())
        made.sample_run = runs_[idx(made.out[0])].run;
      for (value_id x : t.graph.node(v).in) {
        if (t.graph.value(x).role == value_role::parameter && home(x) < 0)
          t.home[idx(x)] = v;
        if (wanted_[idx(x)] && t.graph.node(v).op.op->derive)
          for (value_id y : t.graph.node(v).out) wanted_[idx(y)] = true;
      }
    }
  }

  void run() {
    t.loss = t.graph.output(options_.loss);
    if (t.loss < 0)
      throw error("the graph has no output named '" + options_.loss + "' to differentiate", "differentiate",
                  "an output that is a scalar loss");
    if (t.graph.type(t.loss).rank != 0)
      throw error("output '" + options_.loss + "' has shape " + op::spell(t.graph.type(t.loss)),
                  "differentiate", "a scalar loss");
    if (options_.micro_batches < 1)
      throw error("micro_batches is " + std::to_string(options_.micro_batches), "differentiate", "1 or more");
    op::require_optimizer(options_.optimizer);
    require_one_mask(t.graph, options_.micro_batches);
    t.losses = {t.loss};
    node_id const last = t.graph.value(t.loss).producer;
    if (last < 0)
      throw error("output '" + options_.loss + "' is an input", "differentiate", "a computed loss");
    t.reduction = ir::reduction_of(t.graph, t.loss, options_.reduction, options_.micro_batches > 1, false,
                                   runs_);
    enter(last);
    phase_ = step_phase::backward;
    int const terms = t.reduction == loss_reduction::sum ? 1 : options_.micro_batches;
    parts_[idx(t.loss)].push_back(emit(constant{1.0 / terms, 0, {}}, nullptr, 0));
    for (int v = t.forward_nodes - 1; v >= 0; --v) {
      bool reached = false;
      for (value_id y : t.graph.node(v).out) reached = reached || !parts_[idx(y)].empty();
      enter(v);
      phase_ = step_phase::backward;
      if (reached && t.graph.node(v).op.op->derive)
        t.graph.node(v).op.op->derive(t.graph.node(v).op.attr, *this);
      // the first user comes last in this order: now the gradients of the parameters that live here are
      // complete
      for (std::size_t k = 0; k < forward_in_.size(); ++k) {
        value_id const x = forward_in_[k];
        if (t.graph.value(x).role != value_role::parameter || home(x) != v ||
            parts_[idx(x)].empty() || complete(x) >= 0)
          continue;
        finish(x, operand_letters(static_cast<int>(k)));
        if (!options_.optimizer.takes_norm()) update(x, operand_letters(static_cast<int>(k)), -1);
      }
    }
    if (options_.optimizer.takes_norm()) clip();
  }

  int operands() const override { return static_cast<int>(forward_in_.size()); }
  tensor operand(int i) const override { return forward_in_[idx(i)]; }
  tensor result(int i) const override { return t.graph.node(node_).out[idx(i)]; }
  bool has_gradient(int i) const override { return !parts_[idx(result(i))].empty(); }
  bool wanted(int i) const override { return wanted_[idx(operand(i))]; }
  shape type(tensor x) const override { return t.graph.type(x); }
  tensor gradient(int i) override { return finish(result(i), result_letters(i)); }
  void give(int i, tensor g) override {
    parts_[idx(operand(i))].push_back(g);
    ++given_[g];
  }
  tensor emit(op::any_op const& o, std::initializer_list<tensor> x) override {
    return emit(o, x.begin(), static_cast<int>(x.size()));
  }
  tensor emit(op::any_op const& o, tensor const* x, int n) override {
    node_id const v = t.graph.append(o, std::vector<value_id>(x, x + n), t.graph.node(node_).name);
    graph_node& d = t.graph.node(v);
    d.phase = phase_;
    d.origin = node_;
    if (o.op->id == t.graph.node(node_).op.op->id) d.sample_run = t.graph.node(node_).sample_run;
    d.block = t.graph.node(node_).block;
    d.repetition = t.graph.node(node_).repetition;
    d.op.at = t.graph.node(node_).op.at;
    ir::iteration_space const own = ir::space_of(t.graph, v);
    for (ir::node_loop const& l : own.loops) {
      char c = 0;
      for (int k = 0; k < n && !c; ++k)
        if (int const a = l.in[idx(k)]; a >= 0)
          if (auto it = follows_.find(x[k]); it != follows_.end())
            c = it->second[idx(a)];
      bool operand_has_it = false;
      for (int a : l.in) operand_has_it = operand_has_it || a >= 0;
      // a loop of results alone (rows of a table)
      if (!c && !operand_has_it && space_.find(l.letter)) c = l.letter;
      d.letters.push_back(c);
    }
    for (std::size_t k = 0; k < d.out.size(); ++k) {
      std::string f(idx(t.graph.type(d.out[k]).rank), '\0');
      for (std::size_t i = 0; i < own.loops.size(); ++i)
        if (int const a = own.loops[i].out[k]; a >= 0) f[idx(a)] = d.letters[i];
      follows_[d.out[k]] = f;
    }
    return d.out.front();
  }

 private:
  training_options options_;
  std::vector<std::vector<value_id>> parts_;     // by forward value: gradient contributions
  std::map<value_id, int> given_;                // how often each was given
  std::vector<bool> wanted_;
  std::vector<ir::sample_run> runs_;                 // by forward value
  node_id node_;                                 // the forward node at hand
  std::vector<value_id> forward_in_;
  ir::iteration_space space_;
  std::map<value_id, std::string> follows_;      // per axis of a value: the loop of the forward node
  step_phase phase_ = step_phase::backward;

  node_id home(value_id x) const { return t.home[idx(x)]; }
  value_id complete(value_id x) const { return t.gradient[idx(x)]; }
  std::string letters_at(value_id x, ir::axis_list<int> ir::node_loop::* side, std::size_t k) const {
    std::string f(idx(t.graph.type(x).rank), '\0');
    for (ir::node_loop const& l : space_.loops)
      if (int const a = (l.*side)[k]; a >= 0) f[idx(a)] = l.letter;
    return f;
  }
  std::string operand_letters(int k) const {
    return letters_at(operand(k), &ir::node_loop::in, idx(k));
  }
  std::string result_letters(int k) const {
    return letters_at(result(k), &ir::node_loop::out, idx(k));
  }

  void enter(node_id v) {
    node_ = v;
    forward_in_ = t.graph.node(v).in;
    space_ = ir::space_of(t.graph, v);
    follows_.clear();
    for (int k = 0; k < operands(); ++k) follows_.emplace(operand(k), operand_letters(k));
    for (std::size_t k = 0; k < t.graph.node(v).out.size(); ++k)
      follows_.emplace(result(static_cast<int>(k)), result_letters(static_cast<int>(k)));
  }

  /// All contributions to the gradient of forward value x as one tensor; zeros if there is none.
  value_id finish(value_id x, std::string const& letters) {
    auto const i = idx(x);
    if (t.gradient[i] < 0) {
      if (t.graph.value(x).role == value_role::parameter) keep_sums(parts_[i]);
      for (value_id p : parts_[i]) follows_[p] = letters;
      if (parts_[i].empty()) {
        constant zero{0, t.graph.type(x).rank, {}};
        for (int d = 0; d < zero.rank; ++d) zero.d[d] = t.graph.type(x).d[d].n;
        t.gradient[i] = emit(zero, nullptr, 0);
        t.graph.value(t.gradient[i]).type.type = t.graph.type(x).type;
        node_id const made = t.graph.value(t.gradient[i]).producer;
        // its loops are named by place: they follow the axes, not those names
        ir::iteration_space const own = ir::space_of(t.graph, made);
        for (std::size_t l = 0; l < own.loops.size(); ++l)
          if (int const a = own.loops[l].out[0]; a >= 0)
            t.graph.node(made).letters[l] = letters[idx(a)];
      } else {
        value_id sum = parts_[i][0];
        for (std::size_t k = 1; k < parts_[i].size(); ++k) {
          sum = emit(add{}, {sum, parts_[i][k]});
          follows_[sum] = letters;
        }
        t.gradient[i] = sum;
      }
    }
    follows_[t.gradient[i]] = letters;
    return t.gradient[i];
  }

  /// A bf16 parameter's gradient sums over many samples and devices: it stays in f32 where the operators that
  /// make it can leave it so, and nobody else reads what they make; if bf16 is asked for, where one has to.
  void keep_sums(std::vector<value_id> const& parts) {
    bool wide = options_.optimizer.gradients == dtype::f32;
    for (value_id p : parts) wide = wide || t.graph.type(p).type == dtype::f32;
    if (!wide) return;
    for (value_id p : parts) {
      graph_value const& v = t.graph.value(p);
      bool const can = v.producer >= 0 && t.graph.node(v.producer).op.op->sums_wide;
      if (v.type.type == dtype::bf16 && (!can || given_[p] > 1)) return;
    }
    for (value_id p : parts) t.graph.value(p).type.type = dtype::f32;
  }

  void update(value_id x, std::string const& letters, value_id factor) {
    phase_ = step_phase::update;
    follows_[x] = letters;
    std::vector<value_id> in{x, complete(x)}, stored{x};
    for (int k = 0; k < options_.optimizer.moment_count(); ++k) {
      value_id const s = t.graph.append_value(value_role::state, t.graph.value(x).name + (k ? ".v" : ".m"),
                                              t.graph.type(x).of(options_.optimizer.moments));
      follows_[s] = letters;
      in.push_back(s);
      stored.push_back(s);
    }
    bool const master = is_narrow(t.graph.type(x).type) && options_.optimizer.masters == dtype::f32;
    if (master) {
      value_id const s = t.graph.append_value(value_role::state, t.graph.value(x).name + ".master",
                                              t.graph.type(x).of(dtype::f32));
      t.graph.value(s).start = t.graph.value(x).start;
      follows_[s] = letters;
      in.push_back(s);
      stored.push_back(s);
    }
    if (factor >= 0) in.push_back(factor);
    value_id const y = emit(update_rule(options_.optimizer, master), in.data(), static_cast<int>(in.size()));
    for (std::size_t k = 0; k < stored.size(); ++k)
      t.graph.value(y + static_cast<int>(k)).stored_in = stored[k];
  }

  /// Norm shares of every gradient, one factor everywhere, then all updates. Where these may be skipped, zero
  /// times the loss is among the shares: NaN of one that is not finite. As gradients are, it is added up over
  /// micro-batches.
  void clip() {
    std::vector<value_id> shares, params;
    std::vector<std::string> letters;
    for (std::size_t i = 0; i < t.gradient.size(); ++i) {
      value_id const x = static_cast<int>(i);
      if (t.graph.value(x).role != value_role::parameter || complete(x) < 0) continue;
      enter(home(x));
      for (int k = 0; k < operands(); ++k)
        if (operand(k) == x) {
          letters.push_back(operand_letters(k));
          break;
        }
      params.push_back(x);
      phase_ = step_phase::update;
      follows_[complete(x)] = letters.back();
      shares.push_back(emit(square_sum{}, {complete(x)}));
    }
    if (params.empty()) return;
    if (options_.optimizer.on_non_finite == non_finite::skip) {
      enter(t.graph.value(t.loss).producer);
      phase_ = step_phase::backward;
      shares.push_back(emit(scale{0}, {t.loss}));
    }
    phase_ = step_phase::update;
    value_id const factor =
        emit(clip_rule(options_.optimizer), shares.data(), static_cast<int>(shares.size()));
    graph_node& f = t.graph.node(t.graph.value(factor).producer);
    // every device computes it for itself
    f.origin = -1;
    f.name = "clip";
    for (std::size_t i = 0; i < params.size(); ++i) {
      enter(home(params[i]));
      update(params[i], letters[i], factor);
    }
  }
};

}  // namespace detail

/// Is this value the loss, or a micro-batch's share of it?
inline bool is_loss(training_graph const& t, value_id value) {
  for (value_id x : t.losses) if (x == value) return true;
  return false;
}

/// The norm of all gradients before they are clipped, or -1.
inline value_id gradient_norm(training_graph const& t) {
  for (graph_node const& n : t.graph.nodes) if (n.op.is<clip_factor>()) return n.out[1];
  return -1;
}

/// Appends the backward and update operators of one training step to a forward graph whose symbols are bound.
/// Works on computation graphs and on graphs that contain parallel operators (the derivative of partition is
/// combine, of replicate is reduce).
/// Gradients that reach a parameter from several users are added; updates come as soon as the gradient is
/// complete and the parameter was last read, or after all gradients where their global norm is clipped.
/// Throws `error` if the loss is missing or not a scalar, and for constants that no optimizer can work with
/// (op/kinds/optimizer_check.hpp).
/// O(nodes * loops). Law: removing the appended nodes gives back `forward`.
template <class = void>
training_graph differentiate(computation_graph const& forward, training_options const& o = {}) {
  detail::differentiator d(forward, o);
  d.run();
  return std::move(d.t);
}
#ifdef TENSORPAR_COMPILED
extern template training_graph differentiate<>(computation_graph const&, training_options const&);
#endif
}  // namespace tensorpar
