// tensorpar/exec/arena_memory.hpp - a device's memory: one allocation of the planned size
#pragma once
#include <cstddef>
#include <cstring>
#include <new>
#include <tensorpar/core/config.hpp>
#include <utility>

namespace tensorpar::detail {

/// One allocation, aligned to 64 bytes, of exactly the planned size.
class arena_memory {
  std::byte* p_ = nullptr;
  std::size_t bytes_ = 0;

 public:
  arena_memory() = default;
  explicit arena_memory(i64 bytes) : bytes_(static_cast<std::size_t>(bytes)) {
    if (bytes_) { p_ = static_cast<std::byte*>(::operator new(bytes_, std::align_val_t{64})); std::memset(p_, 0, bytes_); }
  }
  arena_memory(arena_memory&& o) noexcept : p_(o.p_), bytes_(o.bytes_) { o.p_ = nullptr; o.bytes_ = 0; }
  arena_memory& operator=(arena_memory&& o) noexcept { std::swap(p_, o.p_); std::swap(bytes_, o.bytes_); return *this; }
  ~arena_memory() { if (p_) ::operator delete(p_, std::align_val_t{64}); }
  std::byte* data() const { return p_; }
  i64 size() const { return static_cast<i64>(bytes_); }
};

}  // namespace tensorpar::detail
