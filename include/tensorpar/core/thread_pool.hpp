// tensorpar/core/thread_pool.hpp - threads that wait between one piece of work and the next
#pragma once
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <tensorpar/core/config.hpp>
#include <tensorpar/core/error.hpp>
#include <tensorpar/core/index.hpp>
#include <thread>
#include <utility>
#include <vector>

namespace tensorpar::core {

/// When the threads of a pool are started: `run` needs them with the first work of more than one unit,
/// `run_each` from the beginning.
enum class pool_start : int { when_needed, now };

/// Long-lived threads for two kinds of work:
/// - `run` shares units among the caller and size() - 1 threads. A unit writes only its own results, so these
///   are the same for every number of threads.
/// - `run_each` runs one function on each of size() threads at the same time, so that they may wait for one
///   another.
/// For one calling thread at a time. Thread: std::thread, or in tests one that does not always start.
template <class Thread> class basic_thread_pool {
  int const size_;
  std::mutex m_;
  std::condition_variable start_, done_;
  void (*call_)(void const*, int, int) = nullptr;
  void const* self_ = nullptr;
  u64 round_ = 0;
  int units_ = 0, busy_ = 0;                           // busy: threads that are in this round
  int left_ = 0;                                       // of run_each: threads that have not ended yet
  bool open_ = false, each_ = false, stop_ = false;
  std::atomic<int> next_{0};
  std::atomic<int> failed_{0};                         // the first unit that threw; units_ if none did
  std::exception_ptr error_;                           // that it threw
  std::vector<Thread> threads_;

  static int processors() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }
  static int number(int threads, pool_start when) {
    return threads > 0 || when == pool_start::now ? threads : processors();
  }

  void share(int member) {
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
  /// Thread k is member k + 1 of those that share, where the caller is member 0.
  void wait_for_work(int k) {
    u64 seen = 0;
    std::unique_lock lock(m_);
    for (;;) {
      start_.wait(lock, [&] { return stop_ || (open_ && round_ != seen && (each_ || k + 1 < size_)); });
      if (stop_) return;
      seen = round_;
      ++busy_;
      bool const each = each_;
      lock.unlock();
      if (each) call_(self_, k, k);
      else share(k + 1);
      lock.lock();
      left_ -= each;
      if (--busy_ == 0) done_.notify_one();
    }
  }
  void end() {
    {
      std::lock_guard lock(m_);
      stop_ = true;
    }
    start_.notify_all();
    for (Thread& t : threads_) t.join();
    threads_.clear();
  }
  void start_threads(int n) {
    try {
      while (static_cast<int>(threads_.size()) < n)
        threads_.emplace_back([this, k = static_cast<int>(threads_.size())] { wait_for_work(k); });
    } catch (std::system_error const& e) {
      std::size_t const started = threads_.size();
      end();                                           // threads that nobody joins would end the program
      throw error("the system started " + std::to_string(started) + " of " + std::to_string(n) +
                      " threads (" + e.what() + ")",
                  "threads", "fewer devices in one process, or higher limits of threads and memory");
    }
  }
  template <class F> void open(F const& f, int units, bool each) {
    {
      std::lock_guard lock(m_);
      call_ = [](void const* self, int unit, int member) { (*static_cast<F const*>(self))(unit, member); };
      self_ = &f;
      units_ = failed_ = units;
      next_ = 0;
      left_ = each ? units : 0;
      each_ = each;
      open_ = true;
      ++round_;
    }
    start_.notify_all();
  }

 public:
  /// 0 threads: with `when_needed` one per processor, with `now` none. Throws `error` where the system starts
  /// no more threads.
  explicit basic_thread_pool(int threads, pool_start when = pool_start::when_needed)
      : size_(number(threads, when)) {
    threads_.reserve(idx(size_));
    if (when == pool_start::now) start_threads(size_);
  }
  basic_thread_pool(basic_thread_pool const&) = delete;
  basic_thread_pool& operator=(basic_thread_pool const&) = delete;
  ~basic_thread_pool() { end(); }
  int size() const { return size_; }

  /// Calls f(unit, member) for all units and waits. Units start in ascending order; each of size() members
  /// does one at a time, the caller is member 0. Where units throw, the exception of the first of them
  /// reaches the caller, and units after it may be left out.
  template <class F> void run(int units, F const& f) {
    if (size_ <= 1 || units <= 1) {
      for (int i = 0; i < units; ++i) f(i, 0);
      return;
    }
    start_threads(size_ - 1);
    open(f, units, false);
    share(0);
    std::unique_lock lock(m_);
    open_ = false;                                     // a thread that did not come in time is not waited for
    done_.wait(lock, [&] { return busy_ == 0; });
    if (!error_) return;
    std::exception_ptr const e = std::exchange(error_, nullptr);
    lock.unlock();
    std::rethrow_exception(e);
  }
  /// f(first, last, member) for blocks of at most `block` of `count` things.
  template <class F> void run_blocks(std::size_t count, std::size_t block, F const& f) {
    run(static_cast<int>((count + block - 1) / block), [&](int unit, int member) {
      std::size_t const first = idx(unit) * block;
      f(first, first + block < count ? first + block : count, member);
    });
  }
  /// Calls f(k) on thread k, for all size() threads at the same time, and waits. f must not throw. The same k
  /// is always the same thread.
  template <class F> void run_each(F const& f) {
    start_threads(size_);
    auto const one = [&f](int k, int) { f(k); };
    open(one, size_, true);
    std::unique_lock lock(m_);
    done_.wait(lock, [&] { return left_ == 0 && busy_ == 0; });
    open_ = false;
  }
};
using thread_pool = basic_thread_pool<std::thread>;

}  // namespace tensorpar::core
