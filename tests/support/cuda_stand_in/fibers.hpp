// tests/support/cuda_stand_in/fibers.hpp - several stacks for one thread: what a lane stands on while it waits for others
#pragma once
#include <cstddef>
#include <cstdint>
#include <sys/mman.h>

#include "sanitized.hpp"
#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#if defined(CUDA_STAND_IN_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(__x86_64__)
/// Keeps what a callee must preserve on this stack, whose top goes to *from, and goes on at `to`, which was kept in the same way. Swapping
/// by ucontext asks the kernel twice, which would take most of the tests' time.
extern "C" void cuda_stand_in_switch(void** from, void* to);
asm(R"(
  .text
  .weak cuda_stand_in_switch
  .type cuda_stand_in_switch, @function
cuda_stand_in_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size cuda_stand_in_switch, . - cuda_stand_in_switch
)");
#endif

namespace cuda_stand_in {

/// A stack, and where who runs on it has stopped. The first one that is left is the thread's own.
class fiber {
  static constexpr std::size_t bytes = std::size_t{128} << 10, guard = 4096;
#if defined(__x86_64__)
  void* top_ = nullptr;
#else
  ucontext_t at_{};
#endif
  std::byte* room_ = nullptr;                  // null: the thread's own stack
  void const* bottom_ = nullptr;
  std::size_t size_ = 0;
  [[maybe_unused]] void* fake_ = nullptr;

 public:
  fiber() = default;
  fiber(fiber const&) = delete;
  fiber& operator=(fiber const&) = delete;
  ~fiber() { if (room_) munmap(room_, bytes + guard); }

  /// From now on who switches here begins with `entry`, which never returns. What stood on the stack is forgotten.
  void begin(void (*entry)()) {
    if (!room_) {
      room_ = static_cast<std::byte*>(mmap(nullptr, bytes + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      mprotect(room_, guard, PROT_NONE);
      bottom_ = room_ + guard;
      size_ = bytes;
    }
#if defined(CUDA_STAND_IN_ASAN)
    __asan_unpoison_memory_region(room_ + guard, bytes);
    fake_ = nullptr;
#endif
#if defined(__x86_64__)
    auto** p = reinterpret_cast<void**>(room_ + guard + bytes) - 1;          // as a call leaves it: 8 off a multiple of 16
    *--p = reinterpret_cast<void*>(entry);
    for (int k = 0; k < 6; ++k) *--p = nullptr;
    top_ = p;
#else
    getcontext(&at_);
    at_.uc_stack.ss_sp = room_ + guard;
    at_.uc_stack.ss_size = bytes;
    at_.uc_link = nullptr;
    makecontext(&at_, entry, 0);
#endif
  }
  /// Leaves `from`, goes on in `to`; returns when somebody switches back.
  static void change(fiber& from, fiber& to) {
    left_ = &from;
#if defined(CUDA_STAND_IN_ASAN)
    __sanitizer_start_switch_fiber(&from.fake_, to.bottom_, to.size_);
#endif
#if defined(__x86_64__)
    cuda_stand_in_switch(&from.top_, to.top_);
#else
    swapcontext(&from.at_, &to.at_);
#endif
    arrived(from.fake_);
  }
  /// The first thing that an entry does.
  static void entered() { arrived(nullptr); }

 private:
  static inline fiber* left_ = nullptr;        // by whoever arrives; one thread at a time does
  static void arrived([[maybe_unused]] void* fake) {
#if defined(CUDA_STAND_IN_ASAN)
    __sanitizer_finish_switch_fiber(fake, &left_->bottom_, &left_->size_);     // each thread of the host has a stack of its own
#endif
  }
};

}  // namespace cuda_stand_in
