// tensorpar/search/degrees/estimates.hpp - about how long a step of a configuration takes, and how many bytes
#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/cost/ask.hpp>
#include <tensorpar/program/memory_by_kind.hpp>
#include <tensorpar/program/step_of.hpp>
#include <tensorpar/search/degrees/configured.hpp>
#include <tensorpar/search/degrees/hops.hpp>
#include <tensorpar/search/intra/machine_parts.hpp>
#include <tensorpar/simulate/engine.hpp>
#include <tuple>
#include <utility>
#include <vector>

namespace tensorpar::search {

/// Which configurations are looked at.
struct degree_limits {
  // devices of tensor parallelism: 0, as many as the innermost links join; of pipelines: 0, as many as there
  // are repeated layers
  int max_tensor = 0, max_pipeline = 0;
  int max_virtual_stages = 8;
  i64 max_micro_batch = 0;               // times the graph's own batch; 0: as memory allows
  std::vector<int> micro_batches = {};   // without a pipeline: numbers that are allowed; empty: any
  std::vector<ir::zero_stage> sharding = {ir::zero_stage::none, ir::zero_stage::updates,
                                          ir::zero_stage::gradients, ir::zero_stage::weights};
  std::vector<recomputation> recompute = {recomputation::none, recomputation::selective, recomputation::full};
  int simulated = 32;                    // configurations, those expected to be fastest
  // operators times micro-batches of a pipeline that is simulated; two such programs take some 2 GB
  i64 max_placed = i64{1} << 17;
  int threads = 0;                       // 0: one per processor. The result is the same for any number
};

namespace detail {

/// One replica's devices with one micro-batch after another, without a pipeline: what estimates are made of.
struct replica_step {
  double first = 0, seconds = 0;         // of the first micro-batch, and of each that adds to its gradients
  passes::memory_by_kind memory;         // of the fullest device
  std::vector<crossing> crossings;
  std::map<i64, int> weights;            // elements of a parameter on a device, and how many have as many
};
struct estimated_config {
  parallel_config config;
  double seconds = 0, bytes = 0;         // at least, but for what prefetch hides
  double exposed = 0;                    // seconds of sums over replicas that no computing covers
};

/// Estimates of a problem's configurations, from one replica of each kind.
template <cost::cost_model M> class degree_estimates {
  configurations<M>& all_;
  training_problem const& asked_;
  M const& model_;
  std::map<std::tuple<int, i64, recomputation>, std::optional<replica_step>> replicas_;
  std::map<std::tuple<int, int, i64>, double> sums_;           // by replicas, devices of one, and elements
  std::map<std::tuple<int, int, int, int, i64>, hop_seconds> hops_;  // by degrees and size of micro-batches

  static std::map<i64, int> weights_of(planned_step const& x) {
    std::map<i64, int> r;
    computation_graph const& g = x.graph.graph;
    std::vector<char> seen(g.values.size(), 0);
    for (int v = 0; v < x.graph.forward_nodes; ++v)
      for (std::size_t k = 0; k < g.node(v).in.size(); ++k) {
        value_id const w = g.node(v).in[k];
        if (g.value(w).role != value_role::parameter || std::exchange(seen[idx(w)], 1)) continue;
        ir::layout const l = ir::operand_layout(ir::space_of(g, v), g.node(v).letters,
                                                x.plan.nodes[idx(v)].sharding, static_cast<int>(k));
        ++r[ir::part_of(l, g.value(w).type).elements()];
      }
    return r;
  }
  /// Nothing where there is no such step.
  std::optional<replica_step> const& replica(parallel_config c) {
    auto const [at, made] = replicas_.insert({{c.tensor, c.micro_batch, c.recompute}, std::nullopt});
    if (!made) return at->second;
    c.data = c.pipeline = c.virtual_stages = 1;
    c.sharding = ir::zero_stage::none;
    c.prefetch = 0;
    machine const on = part_of(all_.on(), {0, c.tensor});
    std::optional<planned_step> const x = step(c, on, 3 * c.micro_batch);
    if (!x) return at->second;
    replica_step r;
    // when each is through both passes; updates run among the operators of the last
    std::array<double, 3> passed{};
    for (span const& s : simulate(x->program, on, model_, {true, false}).spans) {
      task const& t = x->program.tasks[idx(s.task)];
      double& end = passed[idx(t.micro_batch)];
      if (x->graph.graph.node(t.node).phase != step_phase::update) end = std::max(end, s.end);
    }
    r.first = passed[0];
    r.seconds = passed[1] - passed[0];
    for (passes::memory_by_kind const& m : passes::memory_of(*x))
      if (m.together() > r.memory.together()) r.memory = m;
    r.crossings = crossings_of(x->graph, x->plan.nodes);
    r.weights = weights_of(*x);
    at->second = r;
    return at->second;
  }
  /// Seconds in which the replicas sum a gradient of so many elements on each device: a scatter and a gather.
  double summed(parallel_config const& c, i64 elements) {
    auto const [at, made] = sums_.insert({{c.data, c.tensor, elements}, 0.0});
    if (!made || c.data == 1) return at->second;
    shape const part{dim(elements)};
    auto const over = [&](ir::part_kind k) {
      return ir::canonical({0, {{k, -1, c.data, c.tensor}, {ir::part_kind::replicate, -1, c.tensor, 1}}});
    };
    ir::layout const own = over(ir::part_kind::partial), all = over(ir::part_kind::replicate);
    for (ir::reshard_step const& x : ir::reshard(own, all, part))
      at->second += cost::detail::ask(model_, cost::reshard_query{x, part, asked_.scalar_bytes(), all_.on()});
    return at->second;
  }
  double summed(parallel_config const& c, std::map<i64, int> const& weights) {
    double r = 0;
    for (auto const& [elements, times] : weights) r += times * summed(c, elements);
    return r;
  }
  hop_seconds const& hops(parallel_config const& c, replica_step const& one) {
    auto const [at, made] =
        hops_.insert({{c.data, c.tensor, c.pipeline, c.virtual_stages, c.micro_batch}, hop_seconds()});
    if (made) at->second = hops_of(one.crossings, c, all_.on(), model_, asked_.scalar_bytes());
    return at->second;
  }
  /// A device's computing alone, without recomputation. Precondition: the configuration was estimated.
  double computed(parallel_config c) {
    c.recompute = recomputation::none;
    std::optional<replica_step> const& one = replica(c);
    return one ? (one->first + static_cast<double>(micro_batches(c) - 1) * one->seconds) / c.pipeline : 0;
  }
  /// Computing and what no other micro-batch hides, in equal stages, with the pipeline's fill. Weights,
  /// gradients and optimizer's state in equal parts, and the activations of as many micro-batches as a group
  /// has in flight.
  std::optional<estimated_config> estimate(parallel_config const& c) {
    std::optional<replica_step> const& one = replica(c);
    if (!one) return std::nullopt;
    using enum passes::memory_kind;
    double const m = static_cast<double>(micro_batches(c)), stages = c.pipeline, chunks = c.virtual_stages,
                 part = 1 / stages, copies = c.data;
    auto const bytes = [&](passes::memory_kind k) { return static_cast<double>(one->memory[k]); };
    bool const gathers = c.sharding == ir::zero_stage::weights,
               scatters = gathers || c.sharding == ir::zero_stage::gradients;
    double const stepped = c.sharding == ir::zero_stage::none ? 1 : 1 / copies,
                 kept = gathers ? stepped : c.sharding == ir::zero_stage::none ? 1 : 1 + stepped,
                 // of one micro-batch, a gradient goes as it comes
                 sums = m == 1 ? 0 : scatters ? stepped : 1;
    double in_flight = std::min(m, stages) * part;
    if (chunks > 1) in_flight *= 1 + (stages - 1) / (stages * chunks);
    // interleaved, chunks end one after another, each with as many micro-batches as there are stages
    double const last = 1 + (chunks - 1) / chunks * (stages - 1);
    // gradients are summed while the backward passes that follow run, two thirds of so much; ZeRO-2 scatters
    // every micro-batch's, ZeRO-3 gathers weights for both passes of each, too
    double const times = gathers ? 1.5 * m : scatters ? (m + 1) / 2 : 1,
                 talking = part * summed(c, one->weights) * times,
                 covering = part * one->seconds * (gathers ? m : (scatters ? m : last) * 2 / 3);
    hop_seconds const& hops = this->hops(c, *one);
    double const each = part * one->seconds,
                 // of each group one chunk: as many micro-batches as groups are on their way together
                 slot = chunks > 1 ? each : each + hops.way / stages,
                 seconds = part * one->first + (m - 1) * std::max(slot, hops.busy) +
                           (stages - 1) / chunks * each + hops.way;
    return estimated_config{c, seconds,
                            part * (kept * bytes(weights) + sums * bytes(gradients) +
                                    stepped * bytes(optimizer)) +
                                in_flight * bytes(activations) + bytes(workspace),
                            std::max(0.0, talking - covering)};
  }
  /// Of a pipeline: as many as `simulated` unrolls.
  bool too_large(parallel_config const& c, degree_limits const& o) const {
    i64 const unrolled = std::min(micro_batches(c), i64{2} * std::max(2, c.pipeline));
    return c.pipeline > 1 && unrolled * asked_.graph.node_count() > o.max_placed;
  }
  static bool allowed(i64 number, std::vector<int> const& some) {
    return some.empty() || std::find(some.begin(), some.end(), number) != some.end();
  }
  /// Powers of two that divide a replica's samples, and what powers of two divide them into; ascending.
  static std::vector<i64> sizes_of_micro_batches(i64 samples) {
    std::vector<i64> r;
    for (i64 m = 1; m <= samples && samples % m == 0; m *= 2) {
      r.push_back(m);
      r.push_back(samples / m);
    }
    std::sort(r.begin(), r.end());
    r.erase(std::unique(r.begin(), r.end()), r.end());
    return r;
  }

 public:
  static constexpr double margin = 0.95;                       // prefetch hides some of what estimates count

  degree_estimates(configurations<M>& all, training_problem const& asked, M const& model)
      : all_(all), asked_(asked), model_(model) {}

  /// Nothing where operators cannot be split so, or samples not cut so. What a cost model throws goes on:
  /// `tensor_loops` asks it before.
  std::optional<planned_step> step(parallel_config const& c, machine const& on, i64 samples) {
    if (!all_.tensor_loops(c)) return std::nullopt;
    try {
      configured_plan const x = all_.plan_of(c, on, samples);
      return step_to_simulate(x.graph, x.plan, asked_.loss, asked_.scratch);
    } catch (error const&) { return std::nullopt; }
  }
  double memory() const {
    double most = 0;
    for (i64 b : all_.on().memories()) most = std::max(most, static_cast<double>(b));
    return most > 0 ? most : infinity;
  }
  /// Bytes that estimates may reach: they are within a tenth of what is.
  double room() const { return 1.1 * memory(); }
  i64 micro_batches(parallel_config const& c) const { return all_.samples() / c.data / c.micro_batch; }

  /// All within the limits that divide and may be faster than `bar`, by estimated seconds.
  std::vector<estimated_config> faster_than(double bar, degree_limits const& o) {
    std::vector<estimated_config> r;
    int const devices = all_.on().size();
    i64 const parts = all_.samples() / all_.own(), most = o.max_micro_batch > 0 ? o.max_micro_batch : parts;
    int const inner = all_.on().links.empty() ? 1 : static_cast<int>(all_.on().links.front().group),
              max_tensor = o.max_tensor > 0 ? o.max_tensor : inner,
              max_stages = o.max_pipeline > 0 ? o.max_pipeline : std::max(1, all_.layers());
    auto const each = [](int n, int limit, auto const& f) {
      for (int k = 1; k <= std::min(n, limit); ++k) if (n % k == 0) f(k);
    };
    parallel_config c;
    auto const savings = [&](double& fewest) {
      c.recompute = recomputation::none;
      c.sharding = ir::zero_stage::none;
      c.prefetch = 2;
      auto const kept = estimate(c);
      if (!kept) return;
      bool const slow = margin * kept->seconds >= bar;         // what recomputes is slower
      fewest = std::min(fewest, slow ? kept->bytes / 20 : infinity);
      for (recomputation const again : o.recompute)
        for (ir::zero_stage const shared : o.sharding) {
          if (slow || (shared != ir::zero_stage::none && c.data == 1)) continue;
          if (shared == ir::zero_stage::weights && c.pipeline > 1) continue;
          if (shared == ir::zero_stage::gradients && micro_batches(c) == 1) continue;    // as with updates
          c.recompute = again;
          c.sharding = shared;
          auto const e = estimate(c);
          if (!e) continue;
          fewest = std::min(fewest, e->bytes);
          if (margin * e->seconds < bar) r.push_back(*e);
        }
    };
    auto const sizes = [&] {
      double fewest = 0;                                       // bytes of the size before, at least
      double computing = 0;                                    // seconds, times a micro-batch's size
      for (i64 m : sizes_of_micro_batches(parts / c.data)) {
        if (m > most || parts % c.data || fewest >= 2 * room()) break;
        c.micro_batch = m * all_.own();
        // of larger micro-batches none takes less time
        if (margin * computing / static_cast<double>(m) >= bar) continue;
        fewest = 0;
        if (c.pipeline == 1 && !allowed(micro_batches(c), o.micro_batches)) continue;
        fewest = infinity;
        for (c.virtual_stages = 1; c.virtual_stages <= o.max_virtual_stages; ++c.virtual_stages) {
          int const chunks = c.pipeline * c.virtual_stages;
          bool const whole = all_.layers() % chunks == 0 || (all_.layers() + 2) % chunks == 0;
          if (c.pipeline > 1 ? !whole || chunks > all_.layers() + 2 : c.virtual_stages > 1) continue;
          if (too_large(c, o) || (c.virtual_stages > 1 && micro_batches(c) % c.pipeline)) continue;
          savings(fewest);
        }
        if (fewest < infinity) computing = std::max(computing, static_cast<double>(m) * computed(c));
      }
    };
    each(devices, max_tensor, [&](int tensor) {
      each(devices / tensor, max_stages, [&](int stages) {
        c.tensor = tensor;
        c.pipeline = stages;
        c.data = devices / tensor / stages;
        sizes();
      });
    });
    return r;
  }
};

}  // namespace detail

}  // namespace tensorpar::search
