// examples/train_gpt.cpp - a GPT on this machine's cores: threads as devices (see train_gpt.hpp)
#include <chrono>
#include <tensorpar/cost/measure_host.hpp>
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/cpu/common/eigen_gemm.hpp>
#include <tensorpar/exec/cpu/eigen.hpp>

#include "train_gpt.hpp"

using namespace tensorpar;

namespace {

/// What one core can do at best: operations per second of a matrix product that fits its caches.
double peak_of_core() {
  constexpr i64 n = 384;
  std::vector<float> a(n * n, 0.5f), b(n * n, 0.25f), c(n * n);
  double best = 1e30;
  for (int trial = 0; trial < 20; ++trial) {
    auto const t = std::chrono::steady_clock::now();
    exec::multiply<float>(n, n, n, {a.data(), n, 1}, {b.data(), n, 1}, {c.data(), n, 1});
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count());
  }
  return 2.0 * n * n * n / best;
}

// [quoted: cores]
struct cores {
  using compute = tensorpar::compute::eigen<float>;
  using comm = tensorpar::comm::threads;
  static constexpr int devices = 2;
  static constexpr char const *what = "logical devices (threads)", *precision = "f32";

  cost::host_rates rates = cost::measure_host();
  machine cluster;
  double peak;
  cores(int n, bool bf16) : cluster(cost::host_machine(n, rates)), peak(peak_of_core() * std::min(n, rates.cores)) {
    if (bf16) throw error("bf16 on this machine's cores", "--precision", "f32; bf16 on GPUs");
    for (device_kind& k : cluster.kinds) k.memory = i64{4} << 30;
  }
  auto maker() const { return [](int ranks) { return comm::world(ranks); }; }
  cost::profile_table measure(program const& q) const { return measure_operators<compute>(q, cluster); }
};
// [end]

}  // namespace

int main(int argc, char** argv) { return gpt::train_gpt<cores>(argc, argv); }
