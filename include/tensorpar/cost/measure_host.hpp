// tensorpar/cost/measure_host.hpp - "this machine": what its cores, memory and threads really do, measured in
// less than half a second
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/ir/machine/machine.hpp>
#include <thread>
#include <vector>

namespace tensorpar::cost {

/// What one core reaches, and what two threads need to hand something over.
struct host_rates {
  double flops = 0;                // FLOP/s of a matrix product in float, one core
  double memory_bandwidth = 0;     // bytes/s read and written by a copy larger than the caches, one core
  double handover = 0;             // seconds from one thread's store to another's load
  int cores = 1;                   // that the process may use
  friend bool operator==(host_rates const&, host_rates const&) = default;
};

namespace detail {

inline double host_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The best of repeated runs within a time budget; at least two.
template <class F> double best_time(double budget, F&& run) {
  double best = infinity;
  double const end = host_now() + budget;
  for (int i = 0; i < 2 || host_now() < end; ++i) {
    double const t = host_now();
    run();
    best = std::min(best, host_now() - t);
  }
  return best;
}

/// c += a * b, n x n, rows of c in registers as the compiler sees fit.
inline void small_matmul(float const* a, float const* b, float* c, int n) {
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < n; ++k) {
      float const x = a[i * n + k];
      float const* const row = b + k * n;
      float* const to = c + i * n;
      for (int j = 0; j < n; ++j) to[j] += x * row[j];
    }
}

}  // namespace detail

/// Measures for about 0.3 s. Rates depend on the compiler's flags: they are what code compiled like the
/// caller's reaches.
inline host_rates measure_host() {
  host_rates r;
  r.cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  float volatile keep = 0;
  {
    constexpr int n = 96;
    std::vector<float> a(n * n, 0.5f), b(n * n, 0.25f), c(n * n, 0);
    double const t = detail::best_time(0.1, [&] {
      detail::small_matmul(a.data(), b.data(), c.data(), n);
      keep = c[7];
    });
    r.flops = 2.0 * n * n * n / std::max(t, 1e-9);
  }
  {
    std::vector<char> from(std::size_t{24} << 20, 1), to(from.size(), 2);
    double const t = detail::best_time(0.1, [&] {
      std::memcpy(to.data(), from.data(), from.size());
      keep = static_cast<float>(to[from.size() / 2]);
    });
    r.memory_bandwidth = 2.0 * static_cast<double>(from.size()) / std::max(t, 1e-9);
  }
  {
    constexpr int stop = -1;
    std::atomic<int> ball{0};
    std::thread other([&] {
      for (int turn = 1;; turn += 2) {
        int seen = ball.load(std::memory_order_acquire);
        for (; seen != turn && seen != stop; seen = ball.load(std::memory_order_acquire))
          std::this_thread::yield();
        if (seen == stop) return;
        ball.store(turn + 1, std::memory_order_release);
      }
    });
    double const start = detail::host_now();
    double passed = 0;
    int turn = 0;
    // on a busy machine a turn may take milliseconds
    while (turn < 400 && (passed < 0.05 || turn < 2)) {
      ball.store(++turn, std::memory_order_release);
      ++turn;
      while (ball.load(std::memory_order_acquire) != turn) std::this_thread::yield();
      passed = detail::host_now() - start;
    }
    ball.store(stop, std::memory_order_release);
    other.join();
    r.handover = passed / turn;
  }
  return r;
}

/// This machine as `devices` logical devices that are threads. If there are more devices than cores they take
/// turns, so each has cores / devices of a core's rates; memory bandwidth is one memory's, shared by the
/// cores that run. `memory` bytes in all are shared out. Price it with `analytical{measured_rates}`. Throws
/// `error` for no device.
inline machine host_machine(int devices, host_rates const& h, i64 memory = i64{8} << 30) {
  if (devices < 1) throw error(std::to_string(devices) + " devices", "this machine", "at least one");
  double const share = std::min(1.0, static_cast<double>(h.cores) / devices);
  double const at_once = std::min(devices, h.cores);
  device_kind const k{"host core", h.flops * share, h.memory_bandwidth / at_once * share, memory / devices,
                      1e-6};
  // a part handed over is read by its new owner: half of what a copy reads and writes, at the device's own
  // share
  link_level const l{"shared memory", devices, h.handover / share, k.memory_bandwidth / 2};
  return {"this machine", {k}, std::vector<int>(idx(devices), 0), {l}};
}

}  // namespace tensorpar::cost
