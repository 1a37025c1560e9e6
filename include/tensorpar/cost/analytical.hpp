// tensorpar/cost/analytical.hpp - the model that needs no measurement: roofline for operators, alpha-beta for
// reshards
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/cost/collectives.hpp>
#include <tensorpar/cost/concepts.hpp>
#include <tensorpar/op/kinds/embedding.hpp>

namespace tensorpar::cost {

/// What share of a machine's peak rates is reached, and how the links are used. Shares of compute and memory
/// are for kinds that say none of their own (`device_kind::efficiency`); the defaults are those of PyTorch's
/// AutoParallel (0.7 of both peaks). NCCL's ring reaches 0.8 of an NVLink direction on 8 H100 (nccl-tests
/// #212).
struct analytical_options {
  double compute_efficiency = 0.7;
  double memory_efficiency = 0.7;
  double link_efficiency = 0.8;
  /// Contention. `link_level::bandwidth` is the share that each device has while all its neighbours talk, so
  /// by default (0) devices of one block do not disturb each other. k > 0: the devices of one block share k
  /// links of that bandwidth to each outer level, so n of them that send over it at once get min(1, k / n)
  /// each.
  double uplinks = 0;
  collective_algorithm algorithm = collective_algorithm::best;
  bool by_kind = true;                   // false: the shares above for every kind
  friend bool operator==(analytical_options const&, analytical_options const&) = default;
};
/// For machines whose rates were measured: they are what is reached.
inline constexpr analytical_options measured_rates{1, 1, 1, 0, collective_algorithm::best, false};

/// Bytes that an operator reads and writes: all of its parts once, but of an embedding's table only the rows
/// that are looked up.
inline double bytes_touched(op::any_op const& op, shapes in, shapes out, i64 scalar_bytes) {
  double sum = 0;
  for (shape const& s : in) sum += bytes_of(s, scalar_bytes);
  for (shape const& s : out) sum += bytes_of(s, scalar_bytes);
  bool const one = op.is<embedding>(), bag = op.is<embedding_bag>();
  if ((one || bag) && in.n > 1) {
    double const table = bytes_of(in[1], scalar_bytes);
    double const rows = static_cast<double>(in[0].elements()) *
                        static_cast<double>(in[1].last().n * tensorpar::bytes_of(in[1].type, scalar_bytes));
    if (rows < table) sum -= table - rows;
  }
  return sum;
}

/// FLOP/s of this device for this operator: `flops`, but in fp8 (ir/machine/precision.hpp) attention keeps
/// the rate of bf16, for only products with weights are made in eight bits.
inline double rate_of(op::any_op const& op, device_kind const& device) {
  format_rates const& r = device.rates;
  bool const in_fp8 = r.fp8 > 0 && device.flops == r.fp8;
  return in_fp8 && op.op->work == op::work_kind::attention ? r.bf16 : device.flops;
}
/// FLOPs of a product with those that its size wastes: per result those of `half_terms` more terms, and once
/// those of `half_results` more results. Sums of more terms than `longest_sum` are shared out, and waste no
/// more. Law: twice the results, or twice the terms up to `longest_sum`, cost less than twice.
inline double flops_with_waste(double flops, double results, kernel_efficiency const& e) {
  constexpr double longest_sum = 4096;
  double const terms = flops / (2 * results);
  return flops + 2 * results * e.half_terms + 2 * e.half_results * std::min(terms, longest_sum);
}

/// A model of `cost_model`.
/// Operators: launch + max(FLOPs / (efficiency * peak), bytes / (efficiency * memory bandwidth)) (Williams et
/// al. 2009, "Roofline"); small products take longer (`flops_with_waste`) on kinds that say by how much.
/// Collectives: the cheapest of ring, tree and hierarchical (cost/collectives.hpp) over the levels of links
/// that the group crosses; of groups that lie differently, the slowest counts. Flat algorithms leave a block
/// of devices once per group, hierarchical ones on every device; `uplinks` prices that difference. An
/// exchange: the most that one device sends or receives, over the link that joins all of its devices. O(axes
/// * levels) and without allocation where meshes and link levels nest. Stateless: safe to share.
struct analytical {
  analytical_options use{};

  double seconds(compute_query const& q) const {
    kernel_efficiency const& own = q.device.efficiency;
    op::work_kind const work = q.op.op->work;
    double share = use.compute_efficiency, done = q.op.op->flops(q.op.attr, q.in, q.out);
    if (use.by_kind && own.products > 0) share = own.products;
    if (use.by_kind && own.attention > 0 && work == op::work_kind::attention) share = own.attention;
    if (double const results = q.out.n ? static_cast<double>(q.out[0].elements()) : 0;
        use.by_kind && work == op::work_kind::product && q.in.n > 1 && done > 2 * results)
      done = flops_with_waste(done, results, own);
    double const flops = done / (share * rate_of(q.op, q.device));
    double const bytes = bytes_touched(q.op, q.in, q.out, q.scalar_bytes) / reached_bandwidth(q.device);
    double const kept = use.by_kind && own.sustained > 0 ? own.sustained : 1;
    return q.device.launch + (flops > bytes ? flops : bytes) / kept;
  }

  double seconds(reshard_query const& q) const {
    if (q.step.kind == ir::reshard_kind::exchange)
      return q.before ? exchange(q, *q.before, *q.after)
                      : exchange(q, layout_extents(q.step.before), layout_extents(q.step.after));
    double const before = part_bytes(q.step.before, q.logical, q.scalar_bytes);
    auto const link = [&](int level, i64 senders) { return link_at(q.on, level, senders); };
    switch (q.step.kind) {
      case ir::reshard_kind::slice: return keep(q);
      case ir::reshard_kind::exchange: break;
      case ir::reshard_kind::all_reduce:
        return worst(
            q, [&](group_levels const& g) { return layered::all_reduce(g, before, link, use.algorithm); });
      case ir::reshard_kind::reduce_scatter:
        return worst(q, [&](group_levels const& g) {
          return layered::reduce_scatter(g, before, link, use.algorithm);
        });
      case ir::reshard_kind::all_gather:
        return worst(q, [&](group_levels const& g) {
          return layered::reduce_scatter(g, before * static_cast<double>(layered::size(g)), link,
                                         use.algorithm);
        });
      case ir::reshard_kind::all_to_all:
        return worst(
            q, [&](group_levels const& g) { return layered::all_to_all(g, before, link, use.algorithm); });
    }
    return 0;
  }

 private:
  double reached_bandwidth(device_kind const& k) const {
    double const own = use.by_kind ? k.efficiency.memory : 0;
    return (own > 0 ? own : use.memory_efficiency) * k.memory_bandwidth;
  }
  link_cost link_at(machine const& m, int level, i64 senders) const {
    link_level const& l =
        level + 1 >= group_levels::max_levels ? m.links.back() : m.links[idx(level)];
    double share = use.link_efficiency;
    if (use.uplinks > 0 && static_cast<double>(senders) > use.uplinks)
      share *= use.uplinks / static_cast<double>(senders);
    return {l.latency, share * l.bandwidth};
  }

  /// A local copy of the part that stays, on the slowest device of the mesh.
  double keep(reshard_query const& q) const {
    double const bytes = 2 * part_bytes(q.step.after, q.logical, q.scalar_bytes);
    auto on = [&](device_kind const& k) {
      return k.launch + bytes / reached_bandwidth(k);
    };
    if (q.on.kinds.size() == 1) return on(q.on.kinds.front());
    double worst = 0;
    for (i64 i = 0, n = q.step.after.size(); i < n; ++i) {
      double const s = on(q.on.kind_of(q.step.after.device(i)));
      worst = s > worst ? s : worst;
    }
    return worst;
  }

  template <class Visit> static double worst(reshard_query const& q, Visit const& visit) {
    if (!q.groups) return worst_group(q.step, q.on, visit);
    double most = 0;
    for (group_levels const& g : *q.groups) {
      double const s = visit(g);
      most = s > most ? s : most;
    }
    return most;
  }

  double exchange(reshard_query const& q, layout_extents const& a, layout_extents const& b) const {
    double const all = bytes_of(q.logical, q.scalar_bytes), before = all / static_cast<double>(a.parts);
    double const sums = static_cast<double>(a.sums);
    double const received = all / static_cast<double>(b.parts) * sums;
    double const sent = received * static_cast<double>(b.size) / static_cast<double>(a.size);
    double pieces = sums;                                       // messages that a receiver waits for
    for (int d = 0; d < q.logical.rank; ++d)
      if (a.degree[d] > b.degree[d])
        pieces *= static_cast<double>((a.degree[d] + b.degree[d] - 1) / b.degree[d]);
    int low = std::min(q.step.before.start, q.step.after.start), high = q.step.before.start;
    for (i64 last : {a.last, b.last}) high = static_cast<int>(last) > high ? static_cast<int>(last) : high;
    if (low == high) return before / reached_bandwidth(q.on.kind_of(low));
    int level = 0;
    while (level + 1 < static_cast<int>(q.on.links.size()) &&
           low / q.on.links[idx(level)].group !=
               high / q.on.links[idx(level)].group)
      ++level;
    i64 const talking = a.size > b.size ? a.size : b.size,
              block = level ? q.on.links[idx(level - 1)].group : 1;
    return link_at(q.on, level, talking < block ? talking : block)
        .seconds(pieces, received > sent ? received : sent);
  }
};
static_assert(cost_model<analytical>);

}  // namespace tensorpar::cost
