// examples/own_cost_model.cpp - a cost model of your own: two functions, and the simulator runs your program by it
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/ir/machine_presets.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/simulate/engine.hpp>

#include <cstdio>

using namespace tensorpar;

/// A device with a systolic array: products in tiles of 128 x 128 x 128, whatever the extents; all else as the analytical model says.
struct tiled {
  analytical rest{};
  static double tiles(double n) { return static_cast<double>((static_cast<i64>(n) + 127) / 128); }
  double seconds(compute_query const& q) const {
    if (!q.op.is<linear>()) return rest.seconds(q);
    double const columns = static_cast<double>(q.out[0].last().n), rows = static_cast<double>(q.out[0].elements()) / columns;
    return q.device.launch +
           tiles(rows) * tiles(columns) * tiles(static_cast<double>(q.in[0].last().n)) * 128.0 * 128 * 128 * 2 / q.device.flops;
  }
  double seconds(move_query const& q) const { return rest.seconds(q); }
};
static_assert(cost_model<tiled>);

int main() {
  device_kind const device = kinds::h100();
  double last = 0;
  for (i64 width : {100, 128, 129}) {
    shape const in[] = {{dim(64), dim(256)}, {dim(width), dim(256)}, {dim(width)}}, out{dim(64), dim(width)};
    any_op const op = linear{width};
    compute_query const q{op, {in, 3}, {&out, 1}, 2, device};
    std::printf("linear to %lld: tiled %.3f us, analytical %.3f us\n", static_cast<long long>(width), 1e6 * tiled{}.seconds(q),
                1e6 * analytical{}.seconds(q));
    if (width == 128 && tiled{}.seconds(q) != last) return 1;      // 100 and 128 columns fill the same tiles
    if (width == 129 && tiled{}.seconds(q) <= last) return 1;      // one more column, one more tile
    last = tiled{}.seconds(q);
  }
}
