// tensorpar/core/thread_pool.hpp - threads that share work whose result does not depend on how many they are
#pragma once
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <tensorpar/core/config.hpp>
#include <thread>
#include <utility>
#include <vector>

namespace tensorpar {

/// The caller and some threads, which wait between one piece of work and the next. Work is divided into units
/// by whoever gives it, never by the number of threads; a unit writes only what is its own, so the result is
/// the same for every number. Threads start with the first work that has more than one unit. To be used by
/// one thread at a time.
class team {
  int const size_;
  std::mutex m_;
  std::condition_variable start_, done_;
  void (*call_)(void const*, int, int) = nullptr;
  void const* self_ = nullptr;
  u64 round_ = 0;
  int units_ = 0, busy_ = 0;                           // busy: threads that are in this round
  bool open_ = false, stop_ = false;
  std::atomic<int> next_{0};
  std::atomic<int> failed_{0};                         // the first unit that threw, or how many there are
  std::exception_ptr error_;                           // what it threw
  std::vector<std::thread> threads_;

  static int processors() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

  void work(int member) {
    for (int i = next_++; i < units_ && i < failed_.load(); i = next_++) {
      try {
        call_(self_, i, member);
      } catch (...) {
        std::lock_guard lock(m_);
        if (i >= failed_.load()) continue;
        failed_ = i;
        error_ = std::current_exception();
      }
    }
  }
  void wait_for_work(int member) {
    u64 seen = 0;
    for (;;) {
      {
        std::unique_lock lock(m_);
        start_.wait(lock, [&] { return stop_ || (open_ && round_ != seen); });
        if (stop_) return;
        seen = round_;
        ++busy_;
      }
      work(member);
      std::lock_guard lock(m_);
      if (--busy_ == 0) done_.notify_one();
    }
  }

 public:
  /// 0: one per processor.
  explicit team(int threads) : size_(threads > 0 ? threads : processors()) {}
  team(team const&) = delete;
  team& operator=(team const&) = delete;
  ~team() {
    {
      std::lock_guard lock(m_);
      stop_ = true;
    }
    start_.notify_all();
    for (std::thread& t : threads_) t.join();
  }
  /// With the caller, who is member 0.
  int size() const { return size_; }
  /// Calls f(unit, member) for all units and waits. Units start in ascending order, each member does one at a
  /// time. Where units throw, the exception of the first of them reaches the caller, and units after it may
  /// be left out.
  template <class F> void run(int units, F const& f) {
    if (size_ == 1 || units <= 1) {
      for (int i = 0; i < units; ++i) f(i, 0);
      return;
    }
    while (static_cast<int>(threads_.size()) + 1 < size_) {
      int const member = static_cast<int>(threads_.size()) + 1;
      threads_.emplace_back([this, member] { wait_for_work(member); });
    }
    {
      std::lock_guard lock(m_);
      call_ = [](void const* self, int unit, int member) { (*static_cast<F const*>(self))(unit, member); };
      self_ = &f;
      units_ = units;
      next_ = 0;
      failed_ = units;
      open_ = true;
      ++round_;
    }
    start_.notify_all();
    work(0);
    std::unique_lock lock(m_);
    // nothing is left to begin: who did not come in time is not waited for
    open_ = false;
    done_.wait(lock, [&] { return busy_ == 0; });
    if (!error_) return;
    std::exception_ptr const e = std::exchange(error_, nullptr);
    lock.unlock();
    std::rethrow_exception(e);
  }
  /// f(first, last, member) for blocks of at most `block` of `count` things.
  template <class F> void run_blocks(std::size_t count, std::size_t block, F const& f) {
    run(static_cast<int>((count + block - 1) / block), [&](int unit, int member) {
      std::size_t const first = static_cast<std::size_t>(unit) * block;
      f(first, first + block < count ? first + block : count, member);
    });
  }
};

}  // namespace tensorpar
