// tensorpar/exec/cuda/choices.cuh - by which of cuBLASLt's algorithms products are computed, and what follows
// them
#pragma once
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <tensorpar/core/config.hpp>
#include <tensorpar/exec/cuda/door.cuh>

namespace tensorpar {

/// How products are computed, by their shapes: as cuBLASLt's heuristic says, with gelu beside them on compute
/// capability 9 and 10 and sums of operands after them, unless it was measured. Policies of equal GPUs may
/// share one.
/// Equal choices give equal bits, but what was measured may be chosen otherwise the next time, or in another
/// process: where several compute the same, their copies then differ in the last bits.
class cuda_product_choices {
 public:
  using key = std::array<i64, 18>;
  // a name: nvcc 13 dies of vectors of the library's, which has none
  struct algorithm {
    cublasLtMatmulAlgo_t data{};
  };
  struct choice {
    std::optional<algorithm> by;                               // nothing: the library has none
    // kernels do what follows the product, in passes of their own
    bool apart = false;
  };
  static constexpr int candidates = 8;

  /// While this is on, every product that has not been met is computed in all ways that there are, several
  /// times, and the fastest is kept: results are wrong, and take long. For measure_operators
  /// (exec/profile.hpp), which so prices what will be run.
  void measure(bool on) { measuring_ = on; }
  bool measuring() const { return measuring_; }
  std::size_t size() const {
    std::lock_guard const held(lock_);
    return all_.size();
  }
  std::optional<choice> find(key const& k) const {
    std::lock_guard const held(lock_);
    auto const i = all_.find(k);
    return i == all_.end() ? std::nullopt : std::optional(i->second);
  }
  void keep(key const& k, choice const& c) {
    std::lock_guard const held(lock_);
    all_[k] = c;
  }

 private:
  mutable std::mutex lock_;
  std::map<key, choice> all_;
  std::atomic<bool> measuring_ = false;
};

}  // namespace tensorpar
