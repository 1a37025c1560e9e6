// tensorpar/exec/device/workers.hpp - threads that wait for work, one per device
#pragma once
#include <condition_variable>
#include <mutex>
#include <string>
#include <system_error>
#include <tensorpar/core/config.hpp>
#include <tensorpar/core/error.hpp>
#include <thread>
#include <vector>

namespace tensorpar::detail {

/// Long-lived threads, one per device, that run one function at a time. Thread: std::thread, in tests one
/// that does not always start.
template <class Thread> class basic_worker_pool {
  std::mutex m_;
  std::condition_variable start_, done_;
  void (*call_)(void*, int) = nullptr;
  void* self_ = nullptr;
  u64 round_ = 0;
  int left_ = 0;
  bool stop_ = false;
  std::vector<Thread> threads_;

  void loop(int i) {
    u64 seen = 0;
    for (;;) {
      std::unique_lock lock(m_);
      start_.wait(lock, [&] { return stop_ || round_ != seen; });
      if (stop_) return;
      seen = round_;
      auto* call = call_;
      void* self = self_;
      lock.unlock();
      call(self, i);
      lock.lock();
      if (--left_ == 0) done_.notify_one();
    }
  }
  void end() {
    { std::lock_guard lock(m_); stop_ = true; }
    start_.notify_all();
    for (Thread& t : threads_) t.join();
  }

 public:
  /// Throws `error` where the system starts no more threads.
  explicit basic_worker_pool(int n) {
    threads_.reserve(static_cast<std::size_t>(n));
    try {
      for (int i = 0; i < n; ++i) threads_.emplace_back([this, i] { loop(i); });
    } catch (std::system_error const& e) {
      std::size_t const started = threads_.size();
      end();                                       // threads that nobody joins would end the program
      throw error("the system started " + std::to_string(started) + " of " + std::to_string(n) +
                      " threads (" + e.what() + ")",
                  "executor", "fewer devices in one process, or higher limits of threads and memory");
    }
  }
  basic_worker_pool(basic_worker_pool const&) = delete;
  basic_worker_pool& operator=(basic_worker_pool const&) = delete;
  ~basic_worker_pool() { end(); }
  /// Runs f(i) on every worker and waits. f must not throw.
  template <class F> void run(F& f) {
    std::unique_lock lock(m_);
    call_ = [](void* self, int i) { (*static_cast<F*>(self))(i); };
    self_ = &f;
    left_ = static_cast<int>(threads_.size());
    ++round_;
    start_.notify_all();
    done_.wait(lock, [&] { return left_ == 0; });
  }
};
using worker_pool = basic_worker_pool<std::thread>;

}  // namespace tensorpar::detail
