// tensorpar/search/degrees/configured.hpp - the plan that users of Megatron, FSDP or DDP run: from the
// degrees that they write down
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/machine/precision.hpp>
#include <tensorpar/ir/rebatch.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>
#include <tensorpar/plan/step_fit.hpp>
#include <tensorpar/program/schedule.hpp>
#include <tensorpar/program/training_problem.hpp>
#include <tensorpar/search/degrees/kept_choices.hpp>
#include <tensorpar/search/intra/machine_parts.hpp>
#include <tensorpar/search/pipeline/schedules/interleaved.hpp>
#include <tensorpar/search/problem/choice_book.hpp>
#include <tensorpar/search/solve/baselines.hpp>
#include <tensorpar/search/solve/objective.hpp>
#include <tuple>
#include <utility>
#include <vector>

namespace tensorpar::search {

/// What the backward pass computes again. full: repeated layers but for their results. selective: of these
/// what is neither a matrix product nor attention (Korthikanti et al. 2022, section 5, with fused attention,
/// which keeps no scores anyway), nor a sum. Residual paths are kept, for what they add was communicated.
enum class recomputation : int { none, selective, full };

/// Degrees and sizes as trainers' configurations have them.
struct parallel_config {
  int data = 1, tensor = 1, pipeline = 1;    // devices; their product is the machine's
  int virtual_stages = 1;                    // chunks of layers on each group of devices (Megatron: vp)
  i64 micro_batch = 1;                       // samples of one replica at a time
  bool sequence_parallel = true;             // may what is not split by weights be split by tokens?
  // DDP: none; Megatron's distributed optimizer, ZeRO-1: updates; ZeRO-2: gradients; FSDP, ZeRO-3: weights
  ir::zero_stage sharding = ir::zero_stage::none;
  recomputation recompute = recomputation::none;
  // of the repeated layers on each group of devices, or in each chunk of them: the first so many recompute
  // (Megatron: recompute-num-layers); 0: all
  int recompute_layers = 0;
  int prefetch = 2;                          // operators ahead of which collectives start (plan::prefetch)
  friend bool operator==(parallel_config const&, parallel_config const&) = default;
};

/// "tensor 8, pipeline 16 x 2, data 64, micro-batches of 1, ZeRO-1, full recomputation, prefetch 2".
inline std::string text_of(parallel_config const& c) {
  constexpr char const *zero[] = {"", ", ZeRO-1", ", ZeRO-3", ", ZeRO-2"},
                       *again[] = {"", ", selective recomputation", ", full recomputation"};
  return "tensor " + std::to_string(c.tensor) + ", pipeline " + std::to_string(c.pipeline) +
         (c.virtual_stages > 1 ? " x " + std::to_string(c.virtual_stages) : "") + ", data " +
         std::to_string(c.data) + ", micro-batches of " + std::to_string(c.micro_batch) +
         zero[static_cast<int>(c.sharding)] + again[static_cast<int>(c.recompute)] +
         (c.recompute_layers ? " of " + std::to_string(c.recompute_layers) + " layers a chunk" : "") +
         (c.prefetch ? ", prefetch " + std::to_string(c.prefetch) : "");
}

/// The plan of a configuration, and the graph that it runs. `step_of(graph, plan)` is its step.
struct configured_plan {
  computation_graph graph;
  tensorpar::plan plan;
};

namespace detail {

/// The block of operators that is repeated most often, -1 without any; and how often.
inline std::pair<int, int> layers_of(computation_graph const& g) {
  std::pair<int, int> r{-1, 0};
  for (graph_node const& n : g.nodes)
    if (n.block >= 0 && n.repetition + 1 > r.second) r = {n.block, n.repetition + 1};
  return r;
}

/// Which choices of an operator tensor parallelism in Megatron's way has (Narayanan et al. 2021, section 2.3;
/// Korthikanti et al. 2022, section 4.2). Products split along their weights and attention by heads, or all
/// do the same. The rest splits any one loop but the samples', the tokens' if that is allowed.
inline bool megatron_splits(char letter, op::work_kind work, char samples, bool tokens) {
  bool const leading = letter >= '0' && letter <= '9';
  if (letter == '\0') return true;
  if (letter == samples) return false;
  if (work == op::work_kind::attention) return letter == 'e';
  if (work == op::work_kind::product) return !leading;
  return tokens || letter != samples + 1;
}

/// Has any parameter an extent that so many devices can share?
inline bool splits_weights(computation_graph const& g, int devices) {
  for (graph_value const& x : g.values)
    for (int i = 0; x.role == value_role::parameter && i < x.type.rank; ++i)
      if (x.type.d[i].n % devices == 0) return true;
  return false;
}

/// By operator the loop that one replica's devices split, '\0': all do the same. What moves least time by the
/// search's objective. Nothing where an operator cannot be shared so.
template <cost::cost_model M>
std::optional<std::string> tensor_loops(computation_graph const& one, machine const& on, M const& model,
                         training_problem const& asked, parallel_config const& c) {
  std::string r(one.nodes.size(), '\0');
  if (c.tensor == 1) return r;
  if (!splits_weights(one, c.tensor)) return std::nullopt;
  training_graph const t = differentiate(one, {asked.loss, asked.optimizer, 1, asked.reduction});
  machine const part = detail::part_of(on, {0, c.tensor});
  choice_book<M> book(part, model, objective_options{c.tensor, asked.scalar_bytes(), 1});
  detail::objective_builder<M> build(t, book);
  sharding_limits limits;
  limits.max_axes = 1;
  limits.any_size_up_to = 0;
  limits.min_part = 1;
  mapping_problem const p = build.make(limits, infinity, true);
  std::vector<char> const samples = batch_by_set(p, batch_loops(t.graph, t.forward_nodes));
  std::vector<op::work_kind> work(p.sets.size());
  for (int v = 0; v < t.forward_nodes; ++v) work[idx(p.set_of[idx(v)])] = t.graph.node(v).op.op->work;
  std::optional<assignment> const a = min_among(p, [&](int set, int i) {
    ir::sharding const& s = p.sets[idx(set)].shardings[idx(i)];
    return s.start == 0 && s.size() == c.tensor && s.axes.size() == 1 &&
           megatron_splits(s.axes[0].letter, work[idx(set)], samples[idx(set)], c.sequence_parallel);
  }, {});
  if (!a) return std::nullopt;
  for (int v = 0; v < t.forward_nodes; ++v)
    r[idx(v)] = p.choices(v).shardings[idx((*a)[idx(v)])].axes[0].letter;
  return r;
}

/// Layers in equal runs, one for each chunk; what stands before them with the first, what follows with the
/// last. Where that does not divide, these two count as a layer each (Llama 3, section 3.3.2).
inline std::vector<int> chunk_of_each(computation_graph const& g, int chunks) {
  auto const [block, layers] = layers_of(g);
  int const ends = layers % chunks ? 1 : 0;
  if (chunks > 1 && (block < 0 || layers + 2 * ends < chunks))
    throw error(std::to_string(layers) + " repeated layers for " + std::to_string(chunks) +
                    " stages of a pipeline",
                "configured", "as many stages as layers at most, and two for what stands at the ends");
  std::vector<int> r(g.nodes.size(), 0);
  bool begun = false;
  for (std::size_t v = 0; v < g.nodes.size(); ++v) {
    graph_node const& n = g.nodes[v];
    begun = begun || n.block == block;
    r[v] = n.block == block ? (n.repetition + ends) * chunks / std::max(1, layers + 2 * ends)
           : begun          ? chunks - 1
                            : 0;
  }
  return r;
}

/// What the configuration recomputes, and which operators' weights it shares out.
inline void save_memory(computation_graph const& g, parallel_config const& c, std::vector<int> const& chunk,
                        std::vector<op_strategy>& nodes) {
  int const block = layers_of(g).first;
  std::vector<int> first(g.nodes.size(), -1);                        // by chunk its first layer
  for (std::size_t v = 0; v < g.nodes.size(); ++v) {
    graph_node const& n = g.nodes[v];
    bool weighs = false;
    for (value_id x : n.in) weighs = weighs || g.value(x).role == value_role::parameter;
    if (weighs) nodes[v].zero = c.sharding;
    graph_node const* const next = v + 1 < g.nodes.size() ? &g.nodes[v + 1] : nullptr;
    bool const last = !next || next->block != n.block || next->repetition != n.repetition;
    if (n.block < 0 || last) continue;                               // a layer's result is kept
    int& from = first[idx(chunk[v])];
    if (from < 0 && n.block == block) from = n.repetition;
    if (c.recompute_layers > 0 && n.block == block && n.repetition - from >= c.recompute_layers) continue;
    bool const cheap = n.op.op->work == op::work_kind::other && !n.op.is<add>();
    nodes[v].recompute = c.recompute == recomputation::full ||
                         (c.recompute == recomputation::selective && cheap);
  }
}

}  // namespace detail

/// The plans of a problem's configurations on a machine. Devices are numbered as Megatron numbers ranks:
/// those of a replica's tensor parallelism side by side, then replicas, then the groups of a pipeline. Which
/// loop an operator splits over a replica's devices follows from the cost model (`detail::megatron_splits`
/// says among which). Pipelines run by 1F1B, with several chunks on a group interleaved. The problem's
/// precision decides as in `plan_training`.
template <cost::cost_model M> class configurations {
  training_problem const& asked_;
  M const& model_;
  precision format_;
  machine on_;
  computation_graph few_;
  std::string batch_;                                  // by operator the loop of its samples
  // by samples, devices and sequence parallelism
  std::map<std::tuple<i64, int, bool>, std::optional<std::string>> loops_;

  void require_sizes(parallel_config const& c, machine const& on, i64 samples) const {
    for (int degree : {c.data, c.tensor, c.pipeline, c.virtual_stages})
      if (degree < 1) throw error("a degree of " + std::to_string(degree), "configured", "1 or more");
    if (i64{c.data} * c.tensor * c.pipeline != on.size())
      throw error(text_of(c) + " on " + std::to_string(on.size()) + " devices", "configured",
                  "degrees whose product is the number of devices");
    if (c.micro_batch < 1 || c.micro_batch % own() || samples % (c.micro_batch * c.data))
      throw error(std::to_string(samples) + " samples in micro-batches of " + std::to_string(c.micro_batch) +
                      " on " + std::to_string(c.data) + " replicas",
                  "configured",
                  "a multiple of both, and micro-batches that are multiples of the graph's batch");
  }
  ir::sharding sharding_of(parallel_config const& c, std::string const& split, int v, int group) const {
    i64 const together = i64{c.data} * c.tensor;
    char const outer = batch_[idx(v)], inner = split[idx(v)];
    ir::sharding s{static_cast<int>(group * together), {}};
    if (outer == inner && together > 1) s.axes = {{outer, together, 1}};
    else {
      if (c.data > 1) s.axes.push_back({outer, c.data, c.tensor});
      if (c.tensor > 1) s.axes.push_back({inner, c.tensor, 1});
    }
    return s;
  }
  pipeline pipeline_of(parallel_config const& c, std::vector<int> const& chunk, i64 samples) const {
    int const group = c.data * c.tensor, chunks = c.pipeline * c.virtual_stages;
    pipeline line;
    line.mini_batch = samples;
    line.unit = own();
    for (int g = 0; g < c.pipeline; ++g) line.groups.push_back({g * group, group});
    for (int s = 0; s < chunks; ++s) {
      line.stages.emplace_back();
      line.stages.back().group = s % c.pipeline;
      line.stages.back().micro_batch = c.micro_batch * c.data;
    }
    for (int v = 0; v < few_.node_count(); ++v) line.stages[idx(chunk[idx(v)])].nodes.push_back(v);
    passes::stage_edges const edges = passes::chain_of_stages(chunks);
    return c.virtual_stages > 1 ? interleaved_1f1b(std::move(line), edges)
                                : one_f_one_b(std::move(line), edges);
  }

 public:
  configurations(training_problem const& asked, machine const& given, M const& model)
      : asked_(asked),
        model_(model),
        format_(asked.format()),
        on_(at_precision(given, format_)),
        few_(at_precision(asked.graph, format_)),
        batch_(batch_loops(few_, few_.node_count())) {}

  machine const& on() const { return on_; }
  i64 own() const { return samples_of(few_); }
  i64 samples() const { return asked_.samples ? asked_.samples : own(); }
  int layers() const { return detail::layers_of(few_).second; }

  /// By operator the loop that tensor parallelism splits, or nothing where one cannot be. Found once for each
  /// size of micro-batch and degree.
  std::optional<std::string> const& tensor_loops(parallel_config const& c) {
    std::tuple const key{c.micro_batch, c.tensor, c.sequence_parallel};
    auto const known = loops_.find(key);             // plan_of may be called by several threads from then on
    if (known != loops_.end()) return known->second;
    computation_graph const one = ir::rebatch(few_, c.micro_batch / own());
    return loops_[key] = detail::tensor_loops(one, on_, model_, asked_, c);
  }
  /// The plan of a configuration for so many samples, on a machine of the same kind. Throws `error` where
  /// degrees do not multiply to the machine's devices, or samples, layers or operators do not divide so.
  /// O(nodes), and for `tensor_loops` a problem of one sharding axis on `tensor` devices.
  configured_plan plan_of(parallel_config const& c, machine const& on, i64 samples) {
    require_sizes(c, on, samples);
    i64 const together = c.micro_batch * c.data;
    std::optional<std::string> const& split = tensor_loops(c);
    if (!split)
      throw error("operators that " + std::to_string(c.tensor) + " devices cannot share", "configured",
                  "another degree of tensor parallelism");
    bool const staged = c.pipeline > 1;
    std::vector<int> const chunk = detail::chunk_of_each(few_, staged ? c.pipeline * c.virtual_stages : 1);
    configured_plan r{staged ? few_ : ir::rebatch(few_, together / own()), {}};
    plan& p = r.plan;
    p.model = asked_.name;
    p.graph = r.graph.hash();
    p.cluster = on;
    p.precision = format_;
    p.optimizer = asked_.optimizer;
    p.scalar_bytes = asked_.scalar_bytes();
    p.prefetch = c.prefetch;
    p.batch = samples;
    p.micro_batches = staged ? 1 : static_cast<int>(samples / together);
    if (int const loss = few_.output(asked_.loss); loss >= 0)
      p.reduction = ir::reduction_of(few_, loss, asked_.reduction, samples > together, true);
    for (int v = 0; v < few_.node_count(); ++v)
      p.nodes.push_back({sharding_of(c, *split, v, chunk[idx(v)] % c.pipeline)});
    detail::save_memory(few_, c, chunk, p.nodes);
    if (staged) p.pipeline = pipeline_of(c, chunk, samples);
    return r;
  }
  configured_plan plan_of(parallel_config const& c) { return plan_of(c, on_, samples()); }
};

/// The plan of one configuration: `configurations::plan_of`.
template <cost::cost_model M>
configured_plan configured(training_problem const& asked, machine const& given, M const& model,
                           parallel_config const& c) {
  return configurations<M>(asked, given, model).plan_of(c);
}

}  // namespace tensorpar::search
