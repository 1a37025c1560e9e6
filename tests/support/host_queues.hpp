// tests/support/host_queues.hpp - a device that works by itself, played by threads of this processor: one for each queue
#pragma once
#include "hook.hpp"
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <tensorpar/exec/teams/kernels/host.hpp>
#include <thread>

namespace tests {

using namespace tensorpar;

/// One queue: a thread that does what it was asked for, in order.
class work_queue {
  std::mutex m_;
  std::condition_variable moved_;
  std::deque<std::function<void()>> work_;
  u64 asked_ = 0, done_ = 0;
  bool stop_ = false;
  std::exception_ptr failure_;
  std::shared_ptr<std::vector<std::function<void()>>> written_;       // while it is written down what is asked for
  std::jthread thread_{[this] { loop(); }};

  void loop() {
    for (;;) {
      std::function<void()> next;
      {
        std::unique_lock lock(m_);
        moved_.wait(lock, [&] { return stop_ || !work_.empty(); });
        if (work_.empty()) return;
        next = std::move(work_.front());
        work_.pop_front();
      }
      try {
        next();
      } catch (...) {
        std::lock_guard lock(m_);
        if (!failure_) failure_ = std::current_exception();
      }
      next = nullptr;
      { std::lock_guard lock(m_); ++done_; }
      moved_.notify_all();
    }
  }

 public:
  work_queue() = default;
  ~work_queue() {
    { std::lock_guard lock(m_); stop_ = true; }
    moved_.notify_all();
  }
  using notes = std::shared_ptr<std::vector<std::function<void()>>>;
  void ask(std::function<void()> f, bool may_be_written_down = true) {
    {
      std::lock_guard lock(m_);
      if (written_) {
        if (!may_be_written_down) throw error("a write, read, wait or mark", "a queue that is recorded", "kernels alone");
        return written_->push_back(std::move(f));
      }
      work_.push_back(std::move(f));
      ++asked_;
    }
    moved_.notify_all();
  }
  void begin_recording() { std::lock_guard lock(m_); written_ = std::make_shared<std::vector<std::function<void()>>>(); }
  notes end_recording() { std::lock_guard lock(m_); return std::exchange(written_, nullptr); }
  bool recording() { std::lock_guard lock(m_); return written_ != nullptr; }
  u64 asked() { std::lock_guard lock(m_); return asked_; }
  bool reached(u64 n) { std::lock_guard lock(m_); return done_ >= n; }
  void await(u64 n) {
    std::unique_lock lock(m_);
    moved_.wait(lock, [&] { return done_ >= n; });
  }
  void wait() {
    std::unique_lock lock(m_);
    u64 const n = asked_;
    moved_.wait(lock, [&] { return done_ >= n; });
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }
};

/// Memory of this process, as a device's that has queues. Models `queued_memory`.
class queued_host {
  /// All queues of one device.
  struct device {
    std::mutex m;
    std::vector<std::weak_ptr<work_queue>> queues;
    std::shared_ptr<work_queue> another() {
      auto q = std::make_shared<work_queue>();
      std::lock_guard lock(m);
      queues.push_back(q);
      return q;
    }
    void wait_for_all() {
      std::vector<std::shared_ptr<work_queue>> all;
      { std::lock_guard lock(m); for (auto const& w : queues) if (auto q = w.lock()) all.push_back(q); }
      for (auto const& q : all) q->await(q->asked());
    }
  };
  std::shared_ptr<device> device_ = std::make_shared<device>();
  std::shared_ptr<work_queue> queue_ = device_->another();
  std::shared_ptr<exec::index_fault> fault_ = std::make_shared<exec::index_fault>();

 public:
  using clock = std::chrono::steady_clock;
  struct mark {
    std::shared_ptr<work_queue> queue;
    u64 at = 0;
    std::shared_ptr<clock::time_point> time;           // null: it is not timed
  };
  std::byte* allocate(i64 n) const {
    std::byte* const p = exec::host_memory{}.allocate(n);
    std::memset(p, 0x5a, static_cast<std::size_t>(n));                 // zeroes come when the queue has come there
    ask([=] { std::memset(p, 0, static_cast<std::size_t>(n)); });
    return p;
  }
  void release(std::byte* p, i64 n) const {
    device_->wait_for_all();
    exec::host_memory{}.release(p, n);
  }
  void write(void* p, void const* h, i64 n) const {
    auto const* from = static_cast<std::byte const*>(h);
    queue_->ask([p, bytes = std::vector<std::byte>(from, from + n)] {
      std::this_thread::sleep_for(std::chrono::microseconds(slow_writes.load()));
      exec::host_memory{}.write(p, bytes.data(), static_cast<i64>(bytes.size()));
    }, false);
  }
  void read(void* h, void const* p, i64 n) const {
    queue_->ask([=] { exec::host_memory{}.read(h, p, n); }, false);
    queue_->wait();
  }
  template <class S>
  void move_box(op::tensor_block const& box, op::tensor_block const& from, S const* src, op::tensor_block const& to, S* dst,
                bool adds) const {
    ask([=] { exec::host_memory{}.move_box(box, from, src, to, dst, adds); });
  }
  void wait() const {
    queue_->wait();
    tensorpar::exec::detail::throw_if_fault(*fault_);
  }
  queued_host beside() const {
    queued_host r = *this;
    r.queue_ = device_->another();
    r.fault_ =
        std::make_shared<exec::index_fault>();           // who waits for one queue does not look at what another one's kernels still write
    return r;
  }
  mark make_mark() const { return {queue_, 0, nullptr}; }
  mark make_timed_mark() const { return {queue_, 0, std::make_shared<clock::time_point>()}; }
  double seconds(mark const& a, mark const& b) const { return std::chrono::duration<double>(*b.time - *a.time).count(); }
  using recording = work_queue::notes;
  void begin_recording() const { queue_->begin_recording(); }
  recording end_recording() const { ++recordings; return queue_->end_recording(); }
  void replay(recording const& r) const {
    ++replays;
    ask([r] { for (auto const& f : *r) f(); });
  }
  void set(mark& k) const {
    if (queue_->recording()) throw error("a mark", "a queue that is recorded", "kernels alone");
    if (k.time) ask([t = k.time] { *t = clock::now(); });
    k.queue = queue_;
    k.at = queue_->asked();
  }
  void follow(mark const& k) const { queue_->ask([k] { k.queue->await(k.at); }, false); }
  bool reached(mark const& k) const { return k.queue->reached(k.at); }

  void ask(std::function<void()> f) const { queue_->ask(std::move(f)); }
  /// How long a write takes in the queue.
  static inline std::atomic<int> slow_writes = 0;
  /// Counts.
  static inline std::atomic<int> ranges = 0, recordings = 0, replays = 0;
  int range(char const*) const { return ++ranges; }
  work_queue const* identity() const { return queue_.get(); }
  exec::index_fault* fault() const { return fault_.get(); }
};

/// Teams of lanes that work in a queue. Models `team_device`.
class queued_teams {
  queued_host memory_;

 public:
  using memory = queued_host;
  static inline hook<int(exec::device_place)> on_make;                    // a test may note where devices are made; its answer is not used
  explicit queued_teams(exec::device_place at) { on_make(at); }
  memory device_memory() const { return memory_; }
  template <class F> void each(i64 n, F const& f) const { memory_.ask([=] { exec::host_teams<>{}.each(n, f); }); }
  template <class F> void teams(i64 n, F const& f) const { memory_.ask([=] { exec::host_teams<>{}.teams(n, f); }); }
  template <class Scalar, class Result> void product(exec::matrix_products<Scalar, Result> const& p) const {
    memory_.ask([=] { exec::host_teams<>{}.product(p); });
  }
  exec::index_fault* fault() const { return memory_.fault(); }
  void settle() const {}
};

}  // namespace tests
