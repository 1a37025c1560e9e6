// examples/own_cost_model.cpp - a cost model of your own: seconds of operators, seconds of reshards
#include "standard_output.hpp"
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/cost/combinators.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/search/plan_training.hpp>
#include <tensorpar/typed/typed.hpp>

#include <cstdio>

using namespace tensorpar;

// [quoted: operators]
/// A device with a systolic array: products in tiles of 128 x 128 x 128, whatever the extents; all else as the analytical model says.
struct tiled {
  cost::analytical rest{};
  static double tiles(double n) { return static_cast<double>((static_cast<i64>(n) + 127) / 128); }
  double seconds(cost::compute_query const& q) const {
    if (!q.op.is<linear>()) return rest.seconds(q);
    double const columns = static_cast<double>(q.out[0].last().n), rows = static_cast<double>(q.out[0].elements()) / columns;
    return q.device.launch +
           tiles(rows) * tiles(columns) * tiles(static_cast<double>(q.in[0].last().n)) * 128.0 * 128 * 128 * 2 / q.device.flops;
  }
  double seconds(cost::reshard_query const& q) const { return rest.seconds(q); }
};
static_assert(cost::cost_model<tiled>);
// [end]

// [quoted: reshards]
/// A network that knows rings alone: the members of a group pass parts on to their neighbours, as fast as the slowest link between them.
struct rings {
  tiled rest{};
  double seconds(cost::compute_query const& q) const { return rest.seconds(q); }
  double seconds(cost::reshard_query const& q) const {
    ir::reshard_step const& s = q.step;
    if (s.kind == ir::reshard_kind::slice || s.kind == ir::reshard_kind::exchange)
      return rest.seconds(q);   // a local cut; boxes sent to other devices
    // Bytes that one device has of the tensor, before and after this step.
    double const before = cost::part_bytes(s.before, q.logical, q.scalar_bytes),
        after = cost::part_bytes(s.after, q.logical, q.scalar_bytes);
    // All groups do this at once: the one with the slowest link counts.
    double latency = 0, per_byte = 0;
    for (int device : s.before.devices())
      for (int member : s.members(device)) {
        if (member == device) continue;
        link_level const& l = q.on.between(device, member);
        latency = std::max(latency, l.latency);
        per_byte = std::max(per_byte, 1 / l.bandwidth);
      }
    double const n = static_cast<double>(s.group_size()), turns = n - 1;
    switch (s.kind) {
      case ir::reshard_kind::all_reduce: return 2 * turns
          * (latency + before / n * per_byte);   // partial sums of all, the whole sum on all
      case ir::reshard_kind::reduce_scatter:                                                     // partial sums of all, a part of the sum on each
      case ir::reshard_kind::all_to_all: return turns
          * (latency + before / n * per_byte);       // a part along one axis, then along another
      default: return turns * (latency + after / n * per_byte);                           // all_gather: a part, then all of it
    }
  }
};
static_assert(cost::cost_model<rings>);
// [end]

struct mlp {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {32, 256});
    g.output("loss", all(x | linear{128} | relu{} | linear{10}, g.input("label", {32}, dtype::i32)) | cross_entropy{});
  }
};

int main() {
  device_kind const device = kinds::h100();
  double last = 0;
  for (i64 width : {100, 128, 129}) {
    shape const in[] = {{dim(64), dim(256)}, {dim(width), dim(256)}, {dim(width)}}, out{dim(64), dim(width)};
    op::any_op const op = linear{width};
    cost::compute_query const q{op, {in, 3}, {&out, 1}, 2, device};
    std::printf("linear to %lld: tiled %.3f us, analytical %.3f us\n", static_cast<long long>(width), 1e6 * tiled{}.seconds(q),
                1e6 * cost::analytical{}.seconds(q));
    if (width == 128 && tiled{}.seconds(q) != last) return 1;      // 100 and 128 columns fill the same tiles
    if (width == 129 && tiled{}.seconds(q) <= last) return 1;      // one more column, one more tile
    last = tiled{}.seconds(q);
  }

  // [quoted: step]
  // A gradient of [64, 256] whose partial sums lie on devices 0 to 3 of two nodes with two devices each, wanted complete on all of them.
  machine const cluster = logical_nodes(2, 2);
  shape const gradient{64, 256};
  ir::layout const sums{0, {{ir::part_kind::partial, -1, 4, 1}}}, copies{0, {{ir::part_kind::replicate, -1, 4, 1}}};
  for (ir::reshard_step const& step : ir::reshard(sums, copies, gradient))
    std::printf("%s of groups of %lld: rings %.3f ms, analytical %.3f ms\n", ir::name_of(step.kind),
                static_cast<long long>(step.group_size()), 1e3 * rings{}.seconds(cost::reshard_query{step, gradient, 4, cluster}),
                    1e3 * cost::analytical{}.seconds({step, gradient, 4, cluster}));
  // [end]
  double const expected = 2 * 3 * (50e-6 + 64 * 256 * 4 / 4 / 0.25e9);
  ir::reshard_step const all = ir::reshard(sums, copies, gradient).front();
  if (std::abs(rings{}.seconds(cost::reshard_query{all, gradient, 4, cluster}) / expected - 1) > 1e-12) return 1;

  // [quoted: search]
  planned const found = plan_training({.graph = lower(typed<mlp>)}, cluster, cost::cached(rings{}));
  std::printf("a step takes %.3f ms\n", 1e3 * found.seconds());
  // [end]
  return found.feasible() ? 0 : 1;
}
