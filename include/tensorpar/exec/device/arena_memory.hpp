// tensorpar/exec/device/arena_memory.hpp - a device's memory: one allocation of the planned size
#pragma once
#include <tensorpar/exec/device/memory.hpp>
#include <utility>

namespace tensorpar::exec::detail {

/// One allocation of exactly the planned size, zero at first.
template <memory_policy Memory = host_memory> class arena_memory {
  Memory memory_;
  std::byte* p_ = nullptr;
  i64 bytes_ = 0;

 public:
  explicit arena_memory(i64 bytes, Memory memory = {}) : memory_(std::move(memory)), bytes_(bytes) {
    if (bytes_) p_ = memory_.allocate(bytes_);
  }
  arena_memory(arena_memory&& o) noexcept
      : memory_(o.memory_), p_(std::exchange(o.p_, nullptr)), bytes_(std::exchange(o.bytes_, 0)) {}
  arena_memory& operator=(arena_memory&& o) noexcept {
    std::swap(memory_, o.memory_);
    std::swap(p_, o.p_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }
  ~arena_memory() { if (p_) memory_.release(p_, bytes_); }
  std::byte* data() const { return p_; }
  i64 size() const { return bytes_; }
  Memory const& memory() const { return memory_; }
};

}  // namespace tensorpar::exec::detail
