// tensorpar/search/pipeline/graph_model.hpp - stages of a computation graph, priced by a cost model
#pragma once
#include <bit>
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/cost/ask.hpp>
#include <tensorpar/cost/concepts.hpp>
#include <tensorpar/ir/machine/machine_check.hpp>
#include <tensorpar/program/node_spaces.hpp>
#include <tensorpar/search/pipeline/batch_axes.hpp>
#include <tensorpar/search/pipeline/shared_weights.hpp>
#include <tensorpar/search/pipeline/split_loops.hpp>
#include <tensorpar/search/pipeline/stage_tensors.hpp>
#include <tensorpar/search/pipeline/stages/device_places.hpp>
#include <tensorpar/search/pipeline/stages/graph_stage_options.hpp>
#include <tensorpar/search/pipeline/stages/stage_model.hpp>
#include <tensorpar/search/problem/flows.hpp>
#include <tuple>
#include <utility>
#include <vector>

namespace tensorpar::search {

/// A model of `stage_model`: the operators of a forward graph with all that is derived from them
/// (ir/differentiate), priced by a cost model.
/// - Operators: `seconds` of every operator on the part of the micro-batch that one copy has; every axis that
///   follows the inputs' first axis is scaled. Backward operators count as `weights` if all they serve is a
///   gradient of a parameter, else as `backward`.
/// - Gradients: every micro-batch but the first adds its own to those before it, which counts as `weights`
///   where the parameter lives.
/// - Synchronisation: one all-reduce per parameter and mini-batch among the copies, then the update (ZeRO 1:
///   a part of it).
/// - Tensor parallel, by a rule per operator: one with parameters is split along a loop that they share with
///   the result, the result is gathered, the gradient of what it reads is reduced; other operators work on
///   every device. An upper bound of what a mapping finds.
/// - Memory: parameters, gradients, optimizer state; per sample in flight every result that the backward pass
///   reads, and what is received; the most that one operator needs besides while it runs. How buffers lie
///   beside each other is not known here (see `fit_stages`). A parameter that several operators read counts
///   where it is read first.
/// - Transfers: the cost model's exchange between the first and the last device, copies at once.
/// - Shared weights: what programs move where operators of several stages read a parameter
///   (`shared_weights`), between their devices.
/// Groups of equal devices lie aligned (see `uniform`). Where nodes are no power of two some of those lie in
/// two nodes, so collectives are priced where they reach over most levels of links. On machines of several
/// kinds the slowest device of a group counts.
/// Not safe to share between threads: remembers prices.
template <class C> class graph_stages {
  static_assert(cost::cost_model_lack<C>::value);
  training_graph t_;
  std::vector<ir::iteration_space> spaces_;  // by node
  machine on_;
  C cost_;
  graph_stage_options o_;
  detail::batch_axes batch_;
  detail::shared_weights shared_;
  std::vector<stage_tensor> tensors_;
  std::vector<stage_choice> degrees_;
  std::vector<int> kind_;
  std::vector<std::vector<int>> nodes_;  // by operator: what is derived from it, itself first
  std::vector<char> for_weights_;        // by node
  std::vector<char> split_;              // by operator: the loop that tensor parallelism splits, or 0
  std::vector<double> kept_;             // by operator: bytes per sample
  detail::transfer_line line_;           // between the first and the last device
  bool uniform_ = true;
  // of equal devices, by log2 of a group's devices: the aligned place where it reaches over most levels of
  // links
  std::vector<int> worst_;
  struct base {
    double forward, backward, weights, update, least;
    // bytes: of what it reads; the largest of a weight; of what it makes, gathered
    double gradients, fresh, result;
  };
  mutable std::map<std::pair<int, std::pair<i64, std::pair<int, int>>>, base> known_;
  auto key_of(int v, stage_choice const& c, int first) const {
    int const device = uniform_ ? on_.device.front() : detail::slowest_kind(on_, first, c.devices());
    return std::pair{kind(v), std::pair{c.micro_batch / c.data, std::pair{c.tensor, device}}};
  }

  graph_node const& node(int u) const { return t_.graph.node(u); }

  /// A value's part: so many samples, tensor-parallel part 1/t where node u runs over the operator's split
  /// loop.
  shape part(int u, std::size_t port, bool result, i64 samples, int t) const {
    ir::iteration_space const& space = spaces_[idx(u)];
    int const x = result ? node(u).out[port] : node(u).in[port];
    shape s = t_.graph.type(x);
    for (int d = 0; d < s.rank; ++d)
      if (batch_.is_batch(x, d)) s.d[d].n = std::max<i64>(1, s.d[d].n * samples / batch_.own());
    char const letter = node(u).origin >= 0 ? split_[idx(node(u).origin)] : '\0';
    if (t > 1 && letter)
      for (std::size_t i = 0; i < space.loops.size(); ++i) {
        char const c = node(u).letters.empty() ? space.loops[i].letter : node(u).letters[i];
        int const d = result ? space.loops[i].out[port] : space.loops[i].in[port];
        if (c == letter && d >= 0 && s.d[d].n % t == 0) s.d[d].n /= t;
      }
    return s;
  }
  double seconds(int u, i64 samples, int t, device_kind const& on) const {
    core::pool<shape> in, out;
    for (std::size_t k = 0; k < node(u).in.size(); ++k) in.push(part(u, k, false, samples, t));
    for (std::size_t k = 0; k < node(u).out.size(); ++k) out.push(part(u, k, true, samples, t));
    cost::compute_query const q{node(u).op, {in.begin(), in.size()}, {out.begin(), out.size()},
                                o_.scalar_bytes, on};
    return cost::detail::ask(cost_, q);
  }
  double seconds_to_add(shape const& s, device_kind const& on) const {
    shape const both[2] = {s, s};
    return cost::detail::ask(
        cost_, cost::compute_query{op::any_op(add{}), {both, 2}, {both, 1}, o_.scalar_bytes, on});
  }
  double collective(ir::reshard_kind kind, shape const& s, int first, int n, int stride, int dim) const {
    if (n < 2) return 0;
    auto lay = [&](ir::part_kind k) {
      return ir::layout{first, {{k, k == ir::part_kind::shard ? dim : -1, n, stride}}};
    };
    ir::reshard_step step;
    step.kind = kind;
    step.from_dim = kind == ir::reshard_kind::all_gather ? dim : -1;
    step.group = {{n, stride}};
    step.before = lay(kind == ir::reshard_kind::all_reduce ? ir::part_kind::partial : ir::part_kind::shard);
    step.after = lay(ir::part_kind::replicate);
    return cost::detail::ask(cost_, cost::reshard_query{step, s, o_.scalar_bytes, on_});
  }
  /// Where collectives among n devices, a power of two, are priced in a stage on devices from `first` on.
  int place(int n, int first) const {
    return uniform_ ? worst_[idx(std::bit_width(static_cast<unsigned>(n)) - 1)] : first;
  }
  bool is_parameter(int x) const { return t_.graph.value(x).role == value_role::parameter; }
  double bytes_of(shape const& s) const { return cost::bytes_of(s, o_.scalar_bytes); }
  double bytes(int x) const { return bytes_of(t_.graph.type(x)); }

  i64 split_units(int v) const {
    ir::node_loop const* const l = spaces_[idx(v)].find(split_[idx(v)]);
    return l ? l->units : 1;
  }

 public:
  /// Throws `error` as `differentiate` and `require_machine` do, where inputs differ in their first axis, and
  /// where the mini-batch is no multiple of it.
  graph_stages(computation_graph const& forward, machine on, C cost, graph_stage_options o)
      : t_(differentiate(forward, training_options{o.loss, o.optimizer, 1})),
        spaces_(passes::spaces_of(t_.graph)),
        on_(std::move(on)),
        cost_(std::move(cost)),
        o_(std::move(o)),
        batch_(t_.graph),
        shared_(t_) {
    require_machine(on_);
    if (o_.mini_batch < 1 || o_.mini_batch % batch_.own())
      throw error("a mini-batch of " + std::to_string(o_.mini_batch) + " samples for a graph of " +
                      std::to_string(batch_.own()),
                  "graph_stages", "a multiple of the graph's batch");
    uniform_ = on_.uniform();
    std::size_t const n = idx(t_.forward_nodes);
    nodes_.resize(n);
    for (int u = 0; u < t_.graph.node_count(); ++u)
      if (int const f = node(u).origin; f >= 0) nodes_[idx(f)].push_back(u);
    for_weights_ = detail::serving_weights(t_);
    std::tie(tensors_, kept_) = detail::stage_tensors_of(t_, batch_, o_.scalar_bytes);
    split_.assign(n, '\0');
    if (o_.max_tensor > 1)
      for (int v = 0; v < t_.forward_nodes; ++v)
        split_[idx(v)] = detail::tensor_parallel_loop(t_.graph, v, batch_);
    number_kinds();
    for (int t = 1; t <= o_.max_tensor && t <= devices(); t *= 2)
      for (int d = 1; d <= o_.max_data && d * t <= devices(); d *= 2)
        for (int r = 0; r <= (o_.recompute ? 1 : 0); ++r)
          for (int z = 0; z <= (o_.shard_optimizer && d > 1 ? 1 : 0); ++z)
            degrees_.push_back({1, 1, d, t, r == 1, z == 1});
    worst_ = detail::farthest_places(on_);
    line_ = detail::transfer_line_to(devices() - 1, cost_, on_, o_.scalar_bytes);
  }

  int operators() const { return t_.forward_nodes; }
  int devices() const { return on_.size(); }
  std::vector<stage_tensor> const& tensors() const { return tensors_; }
  std::vector<stage_choice> const& degrees() const { return degrees_; }
  bool admits(stage_choice const& c) const {
    return c.micro_batch % c.data == 0 && c.micro_batch % batch_.own() == 0 &&
           o_.mini_batch % (c.micro_batch * c.k) == 0;
  }
  int kind(int v) const { return kind_[idx(v)]; }
  bool uniform() const { return uniform_; }
  i64 mini_batch() const { return o_.mini_batch; }
  i64 own_batch() const { return batch_.own(); }
  double capacity(int first, int n) const {
    i64 least = on_.kind_of(first).memory;
    if (!uniform_)
      for (int i = first; i < first + n; ++i) least = std::min(least, on_.kind_of(i).memory);
    return static_cast<double>(least);
  }
  training_graph const& training() const { return t_; }
  graph_stage_options const& options() const { return o_; }
  C const& prices() const { return cost_; }
  /// For each level of links within which less than all devices lie, innermost first: this model with
  /// transfers priced as if none went further. Too low where stages are further apart, as this model's are
  /// too high where they are not. O(levels * model).
  std::vector<graph_stages> nearer() const {
    std::vector<graph_stages> r;
    for (link_level const& l : on_.links)
      if (l.group > 1 && l.group < devices()) {
        r.push_back(*this);
        r.back().line_ = detail::transfer_line_to(static_cast<int>(l.group) - 1, cost_, on_, o_.scalar_bytes);
      }
    return r;
  }
  /// The loop of operator v that tensor parallelism in so many parts splits; '\0': none, every device does
  /// the same.
  char split_loop(int v, int parts) const {
    return parts > 1 && split_[idx(v)] && split_units(v) % parts == 0
               ? split_[idx(v)]
               : '\0';
  }
  /// The loop of operator v along which samples run, or '\0'.
  char batch_loop(int v) const {
    graph_node const& n = node(v);
    for (ir::node_loop const& l : spaces_[idx(v)].loops)
      for (std::size_t k = 0; k < n.in.size(); ++k)
        if (l.in[k] >= 0 && batch_.is_batch(n.in[k], l.in[k])) return l.letter;
    return '\0';
  }

  stage_work work(int v, stage_choice const& c, int first) const {
    i64 const samples = c.micro_batch / c.data;
    int const f = uniform_ ? 0 : first, t = c.tensor,
              device = uniform_ ? on_.device.front() : detail::slowest_kind(on_, f, c.devices());
    auto const [it, fresh] = known_.try_emplace(key_of(v, c, first), base{});
    base& b = it->second;
    auto const& group = nodes_[idx(v)];
    if (fresh) {
      device_kind const& k = on_.kinds[idx(device)];
      b = {};
      for (int u : group) {
        double const s = seconds(u, samples, t, k);
        bool const adds = node(u).phase == step_phase::backward && node(u).op.template is<add>();
        if (node(u).phase != step_phase::update && !adds) b.least += s;
        (u == v                                ? b.forward
         : node(u).phase == step_phase::update ? b.update
         : for_weights_[idx(u)]                ? b.weights : b.backward) += s;
        for (std::size_t slot = 0; slot < node(u).out.size(); ++slot) {
          double const made = bytes_of(part(u, slot, true, samples, u == v ? 1 : t));
          if (u == v) b.result += made;
          else if (node(u).phase == step_phase::backward && for_weights_[idx(u)])
            b.fresh = std::max(b.fresh, made);
          else if (node(u).phase == step_phase::backward && !detail::takes_place(t_, u))
            b.gradients += made;
        }
      }
    }
    bool const split = t > 1 && split_[idx(v)] && split_units(v) % t == 0;
    stage_work w{.forward = b.forward, .backward = b.backward, .weights = b.weights};
    if (split) {
      ir::node_loop const& l = *spaces_[idx(v)].find(split_[idx(v)]);
      auto const moved = [&](ir::reshard_kind kind, bool result, int dim) {
        return collective(kind, part(v, 0, result, samples, 1), place(t, f), t, 1, dim);
      };
      w.forward += moved(ir::reshard_kind::all_gather, true, l.out.front());
      if (!is_parameter(node(v).in.front()) && !is_integer(t_.graph.type(node(v).in.front()).type))
        w.backward += moved(ir::reshard_kind::all_reduce, false, -1);
    }
    // every micro-batch but the first adds its gradients to those before it
    double const sums = 1 - static_cast<double>(c.micro_batch) / static_cast<double>(o_.mini_batch);
    double own = 0, states = 0;
    for (int u : group)
      for (int x : node(u).in)
        if (t_.graph.value(x).role == value_role::state) states += bytes(x);
    for (std::size_t k = 0; k < node(v).in.size(); ++k) {
      int const x = node(v).in[k];
      if (!is_parameter(x) || t_.home[idx(x)] != v) continue;
      own += bytes(x);
      int const gradient = t_.gradient[idx(x)];
      if (gradient < 0) continue;                           // the loss does not reach it
      shape s = t_.graph.type(x);
      if (split) s = part(v, k, false, samples, t);
      s.type = t_.graph.type(gradient).type;
      w.once += collective(ir::reshard_kind::all_reduce, s, place(c.devices(), f), c.data, t, -1);
      w.weights += sums * seconds_to_add(s, on_.kinds[idx(device)]);
    }
    w.once += b.update / (c.shard_optimizer ? c.data : 1);
    double const share = split ? t : 1;
    w.fixed = (2 * own + states / (c.shard_optimizer ? c.data : 1)) / share;
    double const kept = kept_[idx(v)];
    if (c.recompute) {
      w.backward += w.forward;
      w.fixed += kept * static_cast<double>(samples);
    } else {
      w.kept = kept / c.data;
    }
    // backward: the gradients that it makes, that of its result where that does not take the result's place,
    // and a gradient of a weight until it is added to those of earlier micro-batches; forward: parts of the
    // result and room to put them together
    bool const adds = c.micro_batch < o_.mini_batch;
    w.scratch =
        b.gradients + std::max(0.0, b.result - kept * static_cast<double>(samples)) + (adds ? b.fresh : 0);
    if (split) w.scratch = std::max(w.scratch, b.result + b.result / t);
    return w;
  }
  /// What operator v takes at least in seconds per micro-batch, and what with its derivatives, whatever their
  /// stage's neighbours do: additions of gradients may be done where others are.
  std::pair<double, double> min_seconds(int v, stage_choice const& c, int first) const {
    work(v, c, first);
    return {known_.at(key_of(v, c, first)).forward, known_.at(key_of(v, c, first)).least};
  }
  /// The sharding of operator v in a stage that runs so.
  ir::sharding sharding_of(int v, stage_choice const& c, int first) const {
    ir::sharding x{first, {}};
    if (c.data > 1) x.axes.push_back({batch_loop(v), c.data, c.tensor});
    if (c.tensor > 1) x.axes.push_back({split_loop(v, c.tensor), c.tensor, 1});
    return x;
  }
  std::vector<std::vector<int>> const& sharers() const { return shared_.readers(); }
  stage_sharing sharing(std::vector<int> const& of, std::vector<stage_place> const& places) const {
    return shared_.price(
        t_, of, static_cast<int>(places.size()), o_.scalar_bytes,
        [&](int v) {
          stage_place const& p = places[idx(of[idx(v)])];
          return sharding_of(v, p.choice, p.first);
        },
        [&](int s) { return places[idx(s)].choice.micro_batch < o_.mini_batch; },
        [&](ir::reshard_step const& step, shape const& s) {
          return cost::detail::ask(cost_, cost::reshard_query{step, s, o_.scalar_bytes, on_});
        });
  }
  stage_work transfer(stage_border const& b, stage_choice const& c, int) const {
    stage_work w;
    w.forward = w.backward = (b.tensors_in + b.tensors_out) * line_.alpha +
                             (b.in + b.out) * static_cast<double>(c.micro_batch) / c.data * line_.beta;
    w.kept = b.in / c.data;
    return w;
  }

 private:
  void number_kinds() {
    training_flows const flows(t_, 1);
    std::map<std::vector<i64>, int> first;
    for (int v = 0; v < t_.forward_nodes; ++v) {
      std::vector<i64> key = flows.key_of(v);
      for (int u : nodes_[idx(v)]) {
        key.push_back(for_weights_[idx(u)]);
        for (int x : node(u).in) key.push_back(batch_.mask(x));
        for (int x : node(u).out) key.push_back(batch_.mask(x));
      }
      key.push_back(static_cast<i64>(kept_[idx(v)] * 8));
      kind_.push_back(first.try_emplace(std::move(key), v).first->second);
    }
  }
};

}  // namespace tensorpar::search
