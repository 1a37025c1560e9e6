#include "support/training.hpp"

#include <random>

namespace tests {

host_batch random_batch(computation_graph const& g, int micro_batches, u64 seed) {
  host_batch b;
  std::mt19937_64 draw(seed);
  for (graph_value const& v : g.values) {
    if (v.role != value_role::input) continue;
    host_tensor t;
    t.shape = v.type;
    t.shape.d[0].n *= micro_batches;
    for (i64 i = 0; i < t.shape.elements(); ++i) {
      if (is_integer(v.type.type)) t.index.push_back(static_cast<std::int32_t>(draw() % 12));
      else t.real.push_back(static_cast<float>(draw() % 17) / 16);
    }
    b[v.name] = std::move(t);
  }
  return b;
}

}  // namespace tests
