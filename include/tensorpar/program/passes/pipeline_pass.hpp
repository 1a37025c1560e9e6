// tensorpar/program/passes/pipeline_pass.hpp - a pipelined plan becomes a graph that holds every micro-batch,
// and the order in which its operators run
#pragma once
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/rebatch.hpp>
#include <tensorpar/ir/training_hash.hpp>
#include <tensorpar/op/kinds/structural.hpp>
#include <tensorpar/plan/pipeline_form.hpp>
#include <tensorpar/plan/step_fit.hpp>
#include <tensorpar/program/core/planned_step.hpp>
#include <tensorpar/program/passes/memory_pass.hpp>
#include <tensorpar/program/passes/merge_orders.hpp>
#include <tensorpar/program/passes/stage_steps.hpp>
#include <tuple>

namespace tensorpar::passes {

namespace detail {

class pipeline_expander {
  computation_graph const& forward_;
  plan const& plan_;
  pipeline const& pipe_;
  stage_steps steps_;
  // by value and micro-batch of its producer's stage: computed once, and recomputed
  std::vector<std::vector<int>> value_, again_;
  std::vector<std::vector<int>> node_;                // by forward node and micro-batch
  std::map<std::pair<int, int>, int> sum_;            // gradient -> sum over micro-batches
  // inputs, and values cut or joined for another micro-batch size
  std::map<std::vector<i64>, int> view_;
  planned_step r_;
  step_phase phase_ = step_phase::forward;

  pipeline_stage const& stage(int s) const { return pipe_.stages[idx(s)]; }
  /// Is forward operator v run once more in the backward pass?
  bool recomputed(int v) const {
    return v < forward_.node_count() &&
           (stage(steps_.stage[idx(v)]).recompute || plan_.nodes[idx(v)].recompute);
  }
  ir::zero_stage zero_of(int update) const {
    ir::zero_stage const own = plan_.nodes[idx(any().graph.node(update).origin)].zero;
    return own == ir::zero_stage::none && stage(steps_.stage[idx(update)]).shard_optimizer
               ? ir::zero_stage::updates
               : own;
  }
  i64 size(int s) const { return stage(s).micro_batch; }
  int count(int s) const { return pipe_.micro_batches(s); }
  training_graph const& of(int s) const { return steps_.made.at(size(s)); }
  training_graph const& any() const { return steps_.any(); }
  computation_graph& out() { return r_.graph.graph; }

  int new_value(graph_value v) {
    out().values.push_back(std::move(v));
    return static_cast<int>(out().values.size()) - 1;
  }
  void belongs(int node, pass_entry p) {
    r_.passes.resize(idx(out().node_count()), {-1, pass::weights, 0});
    r_.passes[idx(node)] = p;
  }
  pass_entry pass_of(int v, int s, int j) const {
    if (any().graph.node(v).phase == step_phase::forward) return {s, pass::forward, j};
    return {s, stage(s).split_backward && steps_.weight_part[idx(v)] ? pass::weights : pass::backward, j};
  }

  /// Old node v of stage s on micro-batch j, reading new values.
  int copy_node(int v, int s, int j, std::vector<value_id> operands, std::vector<std::vector<int>>& results) {
    int const id = out().node_count();
    graph_node n = of(s).graph.node(v);
    bool const update = n.phase == step_phase::update;
    if (auto const it = steps_.summed.find(v); it != steps_.summed.end())
      std::tie(n.origin, n.letters) = it->second;
    n.in = std::move(operands);
    n.micro_batch = j;
    n.micro_batches = count(s);
    if (!update && count(s) > 1 && !n.name.empty()) n.name += "#" + std::to_string(j);
    if (n.phase == step_phase::forward && phase_ == step_phase::forward) n.origin = id;
    else if (n.origin >= 0) n.origin = node_[idx(n.origin)][idx(update ? 0 : j)];
    if (!update) n.phase = phase_;
    std::vector<value_id> const old = std::move(n.out);
    n.out.clear();
    for (std::size_t k = 0; k < old.size(); ++k) {
      graph_value x = of(s).graph.value(old[k]);
      x.producer = id;
      x.slot = static_cast<int>(k);
      if (x.stored_in >= 0) x.stored_in = value_[idx(x.stored_in)][0];
      int const y = new_value(std::move(x));
      n.out.push_back(y);
      results[idx(old[k])].push_back(y);
    }
    out().nodes.push_back(std::move(n));
    return id;
  }

  /// Old value x as operator `reader` of stage s reads it on micro-batch j. `late`: in the backward pass.
  int need(int x, int reader, int s, int j, bool late) {
    graph_value const& v = of(s).graph.value(x);
    if (v.role == value_role::parameter || v.role == value_role::state) return value_[idx(x)][0];
    if (v.role == value_role::input) {
      auto const [it, fresh] = view_.insert({{x, -1, size(s), j}, 0});
      if (fresh) {
        graph_value y = v;
        y.micro_batch = j;
        y.micro_batches = count(s);
        it->second = new_value(std::move(y));
      }
      return it->second;
    }
    int const p = steps_.stage[idx(v.producer)];
    graph_node const& maker = any().graph.node(v.producer);
    if (maker.phase == step_phase::update) return value_[idx(x)][0];
    if (late && read_again(x, s)) return again_[idx(x)][idx(j)];
    if (size(p) == size(s)) return value_[idx(x)][idx(j)];
    if (maker.phase == step_phase::forward && steps_.of_weights[idx(v.producer)])
      return value_[idx(x)][idx(j * size(s) / size(p))];
    if (maker.phase == step_phase::backward && steps_.of_weights[idx(any().graph.node(reader).origin)])
      return share_of_sum(x, p, s, j);
    return rebatched(x, p, s, j);
  }
  /// A gradient of what is the same for all samples, as stage s of another micro-batch size reads it from
  /// stage p. Several micro-batches of p are added up. Of several micro-batches of s, the first takes all and
  /// the others zero.
  int share_of_sum(int x, int p, int s, int j) {
    auto const [it, fresh] = view_.insert({{x, s, size(s), j}, 0});
    if (!fresh) return it->second;
    require_divides(p, s);
    i64 const first = j * size(s) / size(p), end = first + std::max<i64>(1, size(s) / size(p));
    if (size(p) > size(s) && j * size(s) % size(p) != 0) {
      shape const& type = of(s).graph.type(x);
      constant zero{0, type.rank, {}};
      for (int d = 0; d < type.rank; ++d) zero.d[d] = type.d[d].n;
      int const y = added_view(zero, {}, "none", s, j);
      out().value(y).type.type = type.type;
      return it->second = y;
    }
    int sum = value_[idx(x)][idx(first)];
    for (i64 i = first + 1; i < end; ++i) sum = added_view(add{}, {sum, value_[idx(x)][idx(i)]}, "sum", s, j);
    return it->second = sum;
  }
  int added_view(op::any_op op, std::vector<value_id> const& in, char const* name, int s, int j) {
    int const id = out().add(std::move(op), in, name + ("#" + std::to_string(j)));
    place_view(id, s, j);
    return out().node(id).out.front();
  }
  /// New node `id` belongs to a stage's backward pass, and all devices of an operator do the same.
  void place_view(int id, int s, int j) {
    graph_node& n = out().node(id);
    n.micro_batch = j;
    n.phase = step_phase::backward;
    n.origin = node_[idx(stage(s).nodes.front())][idx(j)];
    n.letters.assign(ir::space_of(out(), id).loops.size(), '\0');
    belongs(id, {s, pass::backward, j});
  }
  void require_divides(int p, int s) const {
    if (size(p) % size(s) != 0 && size(s) % size(p) != 0)
      tensorpar::detail::bad_pipeline(
          "micro-batches of " + std::to_string(size(p)) + " and " + std::to_string(size(s)) + " samples",
          "stages " + std::to_string(p) + " and " + std::to_string(s),
          "sizes of which one divides the other");
  }
  int rebatched(int x, int p, int s, int j) {
    shape const &a = of(p).graph.type(x), &b = of(s).graph.type(x);
    int axis = -1, differ = 0;
    for (int d = 0; d < a.rank; ++d) if (a.d[d].n != b.d[d].n) { axis = d; ++differ; }
    if (differ != 1)
      tensorpar::detail::bad_pipeline("value " + std::to_string(x) + (v_name(x)) + " of shape "
                                      + op::spell(a) +
                       " goes from micro-batches of " + std::to_string(size(p)) + " to " +
                       std::to_string(size(s)) + " samples but has no batch axis",
                   "stages " + std::to_string(p) + " and " + std::to_string(s),
                   "equal micro-batches in both stages");
    require_divides(p, s);
    bool const joins = size(p) < size(s);
    i64 const times = joins ? size(s) / size(p) : size(p) / size(s);
    auto const [it, fresh] = view_.insert({{x, joins ? s : -2, size(s), j}, 0});
    if (!fresh) return it->second;
    int const where = joins ? s : p, part = joins ? j : static_cast<int>(j / times);
    std::vector<value_id> from;
    if (joins) for (i64 i = 0; i < times; ++i) from.push_back(value_[idx(x)][idx(j * times + i)]);
    else from.push_back(value_[idx(x)][idx(part)]);
    i64 const length = b.d[axis].n;
    op::any_op const op = joins ? op::any_op(concat{axis})
        : op::any_op(slice_axis{axis, j % times * length, length});
    int const id =
        out().add(op, std::move(from), std::string(joins ? "join" : "cut") + "#" + std::to_string(j));
    if (phase_ == step_phase::forward) {
      out().node(id).micro_batch = part;
      r_.plan.nodes.resize(idx(id) + 1);
      // on one device of the group
      r_.plan.nodes[idx(id)].sharding = {pipe_.groups[idx(stage(where).group)].first, {}};
      belongs(id, {where, pass::forward, part});
    } else place_view(id, where, part);
    return it->second = out().node(id).out.front();
  }
  std::string v_name(int x) const {
    std::string const& s = any().graph.value(x).name;
    return s.empty() ? s : " '" + s + "'";
  }

  /// Every micro-batch of node v.
  void copies_of(int v) {
    int const s = steps_.stage[idx(v)], origin = any().graph.node(v).origin;
    if (phase_ == step_phase::backward)
      for (int x : any().graph.node(v).in)
        if (read_again(x, s) && again_[idx(x)].empty()) compute_again(any().graph.value(x).producer);
    for (int j = 0; j < count(s); ++j) {
      std::vector<value_id> in;
      for (int x : any().graph.node(v).in) in.push_back(need(x, v, s, j, phase_ != step_phase::forward));
      int const id = copy_node(v, s, j, std::move(in), value_);
      if (phase_ == step_phase::forward) {
        node_[idx(v)].push_back(id);
        r_.plan.nodes.resize(idx(id) + 1);
        r_.plan.nodes[idx(id)] = {plan_.nodes[idx(v)].sharding};
      } else out().node(id).refetch_operands = plan_.nodes[idx(origin)].recompute;
      belongs(id, pass_of(v, s, j));
    }
  }
  /// Does stage s read old value x in its backward pass as it is computed anew there?
  bool read_again(int x, int s) const {
    int const p = any().graph.value(x).producer;
    return p >= 0 && steps_.stage[idx(p)] == s && recomputed(p);
  }
  /// Forward operator v once more, on every micro-batch, and before it those that it reads and that are not
  /// kept.
  void compute_again(int v) {
    computation_graph const& g = any().graph;
    int const s = steps_.stage[idx(v)];
    for (int u : behind(v, g, [&](int x) { return read_again(x, s) && again_[idx(x)].empty(); }))
      for (int j = 0; j < count(s); ++j) {
        std::vector<value_id> in;
        for (int x : g.node(u).in) in.push_back(need(x, u, s, j, true));
        int const id = copy_node(u, s, j, std::move(in), again_);
        out().node(id).origin = node_[idx(u)][idx(j)];
        out().node(id).recomputed = true;
        out().node(id).refetch_operands = plan_.nodes[idx(u)].recompute;
        belongs(id, {s, pass::backward, j});
      }
  }
  /// Gradient x added over all micro-batches, each addition in the pass that brings the next summand.
  int total(int x) {
    int const v = any().graph.value(x).producer, s = steps_.stage[idx(v)];
    if (auto const it = sum_.find({x, s}); it != sum_.end()) return it->second;
    // after all passes: each stage adds its own up, and sends the sum once
    if (steps_.joins[idx(v)]) {
      graph_node const& old = any().graph.node(v);
      int const a = total(old.in[0]), b = total(old.in[1]), id = out().add(add{}, {a, b}, old.name);
      graph_node& n = out().node(id);
      n.phase = step_phase::backward;
      n.origin = node_[idx(old.origin)][0];
      n.letters = old.letters;
      belongs(id, {-1, pass::weights, 0});
      return sum_[{x, s}] = n.out.front();
    }
    int sum = value_[idx(x)][0];
    for (int j = 1; j < count(s); ++j) {
      int const id = out().add(add{}, {sum, value_[idx(x)][idx(j)]}, any().graph.node(v).name);
      graph_node& n = out().node(id);
      n.phase = step_phase::backward;
      n.origin = out().node(out().value(value_[idx(x)][idx(j)]).producer).origin;
      n.letters.assign(ir::space_of(out(), id).loops.size(), '\0');
      n.micro_batch = j;
      n.in_place = true;
      belongs(id, pass_of(v, s, j));
      sum = n.out.front();
    }
    return sum_[{x, s}] = sum;
  }
  void updates() {
    training_graph const& t = any();
    for (std::size_t x = 0; x < t.graph.values.size(); ++x)
      if (t.graph.values[x].role == value_role::state) value_[x] = {new_value(t.graph.values[x])};
    for (int v = t.forward_nodes; v < t.graph.node_count(); ++v) {
      graph_node const& n = t.graph.node(v);
      if (n.phase != step_phase::update) continue;
      std::vector<value_id> in;
      for (int x : n.in) {
        int const p = t.graph.value(x).producer;
        in.push_back(p >= 0 && t.graph.node(p).phase == step_phase::backward ? total(x) : value_[idx(x)][0]);
      }
      int const id =
          copy_node(v, steps_.stage[idx(v)] < 0 ? 0 : steps_.stage[idx(v)], 0, std::move(in), value_);
      if (n.origin < 0) out().node(id).origin = -1;
      else shard_update(r_.graph, id, r_.plan.nodes[idx(out().node(id).origin)].sharding, zero_of(v));
      belongs(id, {-1, pass::weights, 0});
    }
  }

 public:
  pipeline_expander(computation_graph const& f, plan const& p, std::string const& loss)
      : forward_(f), plan_(p), pipe_(p.pipeline), steps_(f, p, loss) {}

  planned_step run() {
    r_.graph.reduction = steps_.reduction;
    for (auto const& [size, made] : steps_.made)
      tensorpar::detail::require_one_mask(made.graph, static_cast<int>(pipe_.mini_batch / size));
    training_graph const& t = any();
    value_.resize(t.graph.values.size());
    again_.resize(t.graph.values.size());
    node_.resize(idx(t.forward_nodes));
    for (std::size_t x = 0; x < t.gradient.size(); ++x)
      if (t.graph.values[x].role == value_role::parameter) value_[x] = {new_value(t.graph.values[x])};
    for (int v = 0; v < t.forward_nodes; ++v) copies_of(v);
    r_.graph.forward_nodes = out().node_count();
    std::size_t const forward_values = out().values.size();
    phase_ = step_phase::backward;
    for (int v = t.forward_nodes; v < t.graph.node_count(); ++v)
      if (t.graph.node(v).phase == step_phase::backward && !steps_.joins[idx(v)]) copies_of(v);
    phase_ = step_phase::update;
    r_.graph.home.assign(forward_values, -1);
    for (std::size_t x = 0; x < t.home.size(); ++x)
      if (t.home[x] >= 0) r_.graph.home[idx(value_[x][0])] = node_[idx(t.home[x])][0];
    updates();
    r_.graph.gradient.assign(forward_values, -1);
    for (std::size_t x = 0; x < t.gradient.size(); ++x)
      if (t.graph.values[x].role == value_role::parameter && t.gradient[x] >= 0)
        r_.graph.gradient[idx(value_[x][0])] = total(t.gradient[x]);
    r_.graph.expanded_from = ir::training_hash(t);
    r_.graph.losses.assign(value_[idx(t.loss)].begin(), value_[idx(t.loss)].end());
    r_.graph.loss = r_.graph.losses.front();
    for (graph_port const& o : forward_.outputs)
      for (int y : value_[idx(o.value)]) out().append_output(o.name, y);
    r_.order = merge_orders(out(), r_.passes, pipe_);
    return std::move(r_);
  }
};
}  // namespace detail

/// The training step of a plan with a pipeline. `forward` is the graph that the plan was made for, bound to
/// `pipeline.unit` samples; every stage works on multiples of that. A value that passes between stages of
/// different micro-batch size is joined or cut along its batch axis. Gradients of parameters are added in
/// place. Stages that recompute run their forward operators once more before they go back.
/// A parameter that several stages read is updated by one sum of all its gradients. Each stage adds up its
/// own over its micro-batches, and the sums are added after all passes.
/// Throws `error` where the plan names another graph or batch size, and where an operator cuts, joins or
/// merges samples (`rebatch`). Also where C1 to C5 do not hold (plan/pipeline.hpp): stages, groups, sizes and
/// orders. Each error names stage, pass and micro-batch. O(operators * micro-batches * log). Law: the step
/// computes what `differentiate(forward)` over mini_batch / unit micro-batches computes, exactly over exact
/// scalars (tests/exec/pipeline.test.cpp), unless an operator mixes samples.
template <class = void>
planned_step pipeline_pass(computation_graph const& forward, plan const& p,
                           std::string const& loss = "loss") {
  require_feasible(p);
  if (p.pipeline.empty()) throw error("the plan has no pipeline", "pipeline_pass", "a plan with stages");
  require_graph(p, forward);
  planned_step r = detail::pipeline_expander(forward, p, loss).run();
  r.plan = detail::plan_of_step(p, std::move(r.plan.nodes), r.graph);
  return r;
}

}  // namespace tensorpar::passes
