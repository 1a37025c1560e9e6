// examples/train_gpt.cu - a GPT on GPUs: one rank each, by NCCL (see train_gpt.hpp)
#include <cstdlib>
#include <tensorpar/exec/cudnn/cudnn.cuh>
#include <tensorpar/exec/device/arena_memory.hpp>
#include <tensorpar/exec/nccl/nccl.cuh>

#include "train_gpt.hpp"

using namespace tensorpar;

namespace {

/// Seconds of a call in a GPU's stream, the best of some, by the GPU's clock. Recorded, so that the host has no part in it.
template <class Call> double best_of(cuda_memory const& m, Call const& call) {
  auto begun = m.make_timed_mark(), ended = m.make_timed_mark();
  double best = 1e30;
  call();                                      // libraries choose, kernels are loaded
  m.wait();
  auto const all = exec::detail::recorded(m, call);
  for (int trial = 0; trial < 5; ++trial) {
    m.set(begun);
    m.replay(all);
    m.set(ended);
    m.wait();
    best = std::min(best, m.seconds(begun, ended));
  }
  return best;
}

template <class Number> exec::matrix_products<Number> square(i64 side, float const* from, float* to) {
  auto const* const a = reinterpret_cast<Number const*>(from);
  exec::matrix_products<Number> p;
  p.m = p.n = p.k = side;
  p.a = {a, side, 1};
  p.b = {a + side * side, side, 1};
  p.c = {reinterpret_cast<Number*>(to), side, 1};
  return p;
}

struct gpus {
  // computes graphs in f32 too; <true>: gradients are added up in one order, equal runs give equal bits, and attention takes longer
  using compute = tensorpar::compute::cudnn_bf16<false>;
  using comm = tensorpar::comm::nccl;
  static constexpr int devices = 1;
  static constexpr char const *what = "GPUs", *precision = "bf16";

  machine cluster;
  double peak = 0;
  std::shared_ptr<cuda_product_choices> products = std::make_shared<cuda_product_choices>();

  // [quoted: choices]
  /// Ranks of NCCL, whose products are computed by the same choices.
  struct ranks {
    std::shared_ptr<cuda_product_choices> products;
    comm::world operator()(int n) const { return comm::world(n); }
    compute policy(exec::device_place at) const {
      return compute(basic_cudnn_teams<float_products::full, false>(cuda_memory(at), products));
    }
  };
  ranks maker() const { return {products}; }
  /// Prices of operators, and for every product the way that took least time.
  cost::profile_table measure(program const& q) const {
    products->measure(true);
    cost::profile_table const prices = measure_operators(maker().policy({}), q, cluster);
    products->measure(false);
    return prices;
  }
  // [end]
  gpus(int n, bool bf16) {
    // one process with several GPUs: kernels are loaded before one of them may wait for another, and streams do not wait for one another
    if (n > 1) {
      setenv("CUDA_MODULE_LOADING", "EAGER", 0);
      setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    }
    int const there = cuda_devices();
    if (there == 0) throw error("there is no GPU, or no driver for it", "train_gpt", "a machine with an NVIDIA GPU");
    if (read_launch().size > 1) throw error("several processes", "train_gpt", "one process, which drives all GPUs");
    if (n > there)
      throw error(std::to_string(n) + " devices", "--devices", "at most the " + std::to_string(there) + " GPUs of this machine");
    // what the first GPU does: a product of floats, and a copy that no cache holds
    constexpr i64 side = 4096, line = i64{1} << 26;
    cuda_memory const m(0);
    exec::detail::arena_memory<cuda_memory> room(2 * line * 4, m), scratch(cuda_teams::product_scratch, m);
    cuda_teams const first = cuda_teams(m).with_scratch(scratch.data());
    auto* const a = reinterpret_cast<float*>(room.data());
    auto* const b = a + line;
    std::vector<bfloat16> some(std::size_t{1} << 20);         // pairs of them are floats; products of zeros would take less time
    for (std::size_t i = 0; i < some.size(); ++i) some[i] = static_cast<float>(i * 2654435761u % 2001) / 1000 - 1;
    for (i64 at = 0; at < line; at += static_cast<i64>(some.size()) / 2) m.write(a + at, some.data(), static_cast<i64>(some.size()) * 2);
    double const copied = best_of(m,
                                  [&] { m.move_box(exec::line_block(line), exec::line_block(line), a, exec::line_block(line), b, false); });
    double const multiplied = bf16 ? best_of(m, [&] { first.product(square<bfloat16>(side, a, b)); })
                                   : best_of(m, [&] { first.product(square<float>(side, a, b)); });
    std::size_t unused = 0, all = 0;
    cuda_check(cudaMemGetInfo(&unused, &all), "cudaMemGetInfo");
    double const flops = 2.0 * side * side * side / multiplied;
    device_kind const kind{"GPU", flops, 2.0 * line * 4 / copied, static_cast<i64>(static_cast<double>(unused) * 0.95), 4e-6};
    cluster = make_cluster("GPUs", kind, n, n, {"NVLink", n, 1e-5, 2e11}, {});
    peak = flops * n;
  }
};

}  // namespace

int main(int argc, char** argv) { return gpt::train_gpt<gpus>(argc, argv); }
