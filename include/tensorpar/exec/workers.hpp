// tensorpar/exec/workers.hpp - threads that wait for work, one per device
#pragma once
#include <condition_variable>
#include <mutex>
#include <tensorpar/core/config.hpp>
#include <thread>
#include <vector>

namespace tensorpar::detail {

/// Long-lived threads, one per device, that run one function at a time.
class worker_pool {
  std::mutex m_;
  std::condition_variable start_, done_;
  void (*call_)(void*, int) = nullptr;
  void* self_ = nullptr;
  u64 round_ = 0;
  int left_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;

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

 public:
  explicit worker_pool(int n) { for (int i = 0; i < n; ++i) threads_.emplace_back([this, i] { loop(i); }); }
  worker_pool(worker_pool const&) = delete;
  worker_pool& operator=(worker_pool const&) = delete;
  ~worker_pool() {
    { std::lock_guard lock(m_); stop_ = true; }
    start_.notify_all();
    for (std::thread& t : threads_) t.join();
  }
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

}  // namespace tensorpar::detail
