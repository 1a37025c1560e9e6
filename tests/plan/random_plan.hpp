// tests/plan/random_plan.hpp - seeded plans that a file may hold, whatever graph they would belong to
#pragma once
#include <cmath>
#include <random>
#include <tensorpar/plan/plan.hpp>
#include <utility>

namespace tensorpar::test {

inline plan random_plan(std::mt19937& r) {
  auto below = [&](int n) { return static_cast<int>(r() % static_cast<unsigned>(n)); };
  auto real = [&] { return std::ldexp(static_cast<double>(r()) + 1, below(60) - 60); };
  auto name = [&] {
    static std::string const letters[] = {"a", "Z", " ", "\"", "\\", "\n", "\t", "é", "λ", "🙂", "<", "&", "0"};
    std::string s;
    for (int n = below(8); n > 0; --n) s += letters[below(13)];
    return s;
  };
  plan p;
  p.model = name();
  p.graph = (u64{r()} << 32) | r();
  p.cluster.name = name();
  int const devices = 1 + below(12);
  for (int n = 1 + below(3); n > 0; --n) p.cluster.kinds.push_back({name(), 1e9 + real(), 1e9 + real(), 1 + static_cast<i64>(r()), real(), {}});
  for (device_kind& k : p.cluster.kinds)
    if (below(2)) k.rates = {below(2) ? 1e9 + real() : 0, below(2) ? 1e9 + real() : 0, below(2) ? 1e9 + real() : 0, below(2) ? 1e9 + real() : 0};
  for (device_kind& k : p.cluster.kinds)
    if (below(2)) k.efficiency = {real() < 1 ? 0.5 : 0.25, below(2) ? 1.0 : 0.0, 0.75, real(), real()};
  for (int d = 0; d < devices; ++d) p.cluster.device.push_back(below(static_cast<int>(p.cluster.kinds.size())));
  p.cluster.links.push_back({name(), 1 + below(devices), real(), 1 + real()});
  p.cluster.links.push_back({name(), devices, real(), 1 + real()});
  p.cluster.lane_per_link = below(3) == 0;
  p.micro_batches = 1 + below(16);
  p.precision = static_cast<precision>(below(precisions));
  p.scalar_bytes = below(2) ? 4 : 8;
  p.reduction = below(2) ? loss_reduction::mean : loss_reduction::sum;
  auto& o = p.optimizer;
  o.kind = static_cast<optimizer_kind>(below(3));
  o.momentum = below(2) ? 0.9 : static_cast<double>(r()) / 4294967296.0;
  o.eps = real();
  o.clip_norm = below(2) ? 0 : real();
  o.on_non_finite = static_cast<non_finite>(below(3));
  o.moments = below(3) ? dtype::f32 : dtype::bf16;
  o.gradients = below(3) ? dtype::f32 : dtype::bf16;
  o.masters = below(3) ? dtype::f32 : dtype::bf16;
  for (int n = below(6); n > 0; --n) {
    op_strategy c;
    i64 stride = 1;
    while (below(3) && stride < devices) {
      i64 const degree = 1 + below(3);
      if (stride * degree > devices) break;
      c.sharding.axes.push_back({"bcZ0\0"[below(5)], degree, stride});
      stride *= degree;
    }
    c.sharding.start = below(static_cast<int>(devices - stride + 1));
    if (below(2)) c.zero = static_cast<ir::zero_stage>(below(4));
    c.recompute = below(4) == 0;
    p.nodes.push_back(c);
  }
  if (below(2)) {
    for (int v = 0; v < static_cast<int>(p.nodes.size()); ++v) p.node_order.push_back(v);
    for (std::size_t i = p.node_order.size(); i > 1; --i)
      std::swap(p.node_order[i - 1], p.node_order[static_cast<std::size_t>(below(static_cast<int>(i)))]);
  }
  p.cost = real();
  p.bound = real();
  p.step_seconds = real();
  if (below(4)) for (int d = 0; d < devices; ++d) p.peak_bytes.push_back(static_cast<i64>((u64{r()} << 20) + r()));
  if (below(2)) {
    p.tasks = 1 + r();
    p.offsets = (u64{r()} << 32) | r();
  }
  return p;
}

}  // namespace tensorpar::test
