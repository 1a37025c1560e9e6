// tensorpar/core/name_index.hpp - which names may be taken: a set of hashes
#pragma once
#include <tensorpar/core/hash.hpp>
#include <tensorpar/core/index.hpp>
#include <vector>

namespace tensorpar::core::detail {

/// A set of 64-bit hashes that is cheap to copy. What is not in it is new; what is in it may be another of
/// the same hash, or gone, so that the caller looks. Amortised O(1).
class name_index {
  std::vector<u64> slots_;                 // a power of two of them; 0: empty
  std::size_t used_ = 0;

  static u64 key(u64 hash) { return hash ? hash : 1; }
  std::size_t place(u64 k) const {
    std::size_t at = idx(mix(k)) & (slots_.size() - 1);
    while (slots_[at] && slots_[at] != k) at = (at + 1) & (slots_.size() - 1);
    return at;
  }

 public:
  bool contains(u64 hash) const { return !slots_.empty() && slots_[place(key(hash))] != 0; }
  void insert(u64 hash) {
    if (2 * (used_ + 1) > slots_.size()) {
      std::vector<u64> old(slots_.empty() ? 16 : 2 * slots_.size(), 0);
      old.swap(slots_);
      for (u64 k : old) if (k) slots_[place(k)] = k;
    }
    u64& slot = slots_[place(key(hash))];
    if (!slot) ++used_;
    slot = key(hash);
  }
};

}  // namespace tensorpar::core::detail
