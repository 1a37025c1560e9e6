// tensorpar/exec/step/captured_graphs.hpp - runs of a device's tasks that are written down once and asked for
// at once from then on
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <optional>
#include <tensorpar/exec/device/arena_memory.hpp>
#include <tensorpar/exec/device/kernel.hpp>
#include <tensorpar/exec/device/memory.hpp>
#include <vector>

namespace tensorpar::exec {

/// A queue whose work can be written down.
///
/// Valid expressions (m is a constant value; r a recording):
///  - `m.begin_recording()`  what this queue is asked for from now on is not done but written down; no write,
///    read, wait or mark among it
///  - `m.end_recording()`    `M::recording`, movable: all of that
///  - `m.replay(r)`          asks for all of it again
/// Law (tests/support/laws/queues.hpp): a replay does what the calls would do now, with the numbers that lie
/// at their addresses then. Minimal definition: all three, beside a `queued_memory`. Models: cuda_memory
/// (CUDA graphs).
template <class M>
concept recording_memory = queued_memory<M> && std::movable<typename M::recording> &&
    requires(M const& m, typename M::recording& r) {
  m.begin_recording();
  { m.end_recording() } -> std::same_as<typename M::recording>;
  m.replay(r);
};

/// Kernels that take what changes from step to step from the device's memory, so that they can be replayed.
template <class Policy>
concept replayable_policy = requires(op::any_op const& o, step_state const& s) {
  { Policy::changes_by_step(o) } -> std::same_as<bool>;
  { Policy::arguments_of(o, s) } -> std::same_as<step_arguments>;
};

namespace detail {

/// What f() asks of m. Where f throws, nothing is being written down any more.
template <recording_memory Memory, class F> typename Memory::recording recorded(Memory const& m, F const& f) {
  m.begin_recording();
  try {
    f();
  } catch (...) {
    try {
      m.end_recording();
    } catch (error const&) {                   // the first error says why
    }
    throw;
  }
  return m.end_recording();
}

/// What one worker knows of one of its tasks.
struct run_task {
  bool computes = false;
  bool feeds = false;        // the host writes something before it
  bool waits = false;        // for the other lane, which the tasks before it have not waited for
  bool awaited = false;      // by the other lane
};
/// Maximal runs of at least two neighbours that compute, with nothing to wait for and nobody waiting in
/// between: {first, count}.
inline std::vector<std::pair<std::size_t, std::size_t>> runs_among(std::vector<run_task> const& tasks) {
  std::vector<std::pair<std::size_t, std::size_t>> r;
  for (std::size_t k = 0; k < tasks.size();) {
    std::size_t n = 0;
    while (k + n < tasks.size() && tasks[k + n].computes && !tasks[k + n].feeds) {
      if (n > 0 && (tasks[k + n].waits || tasks[k + n - 1].awaited)) break;
      ++n;
    }
    if (n > 1) r.push_back({k, n});
    k += n > 0 ? n : 1;
  }
  return r;
}

/// The runs of one worker. The first step is done as it is: libraries choose algorithms then. The second one
/// is written down.
template <recording_memory Memory> class captured_graphs {
  struct run {
    std::size_t first, count;
    std::optional<typename Memory::recording> all;
  };
  Memory queue_;
  std::vector<run> runs_;
  // the run that comes next; where the one that is being written down ends
  std::size_t next_ = 0, ends_ = 0;
  bool writing_ = false, warm_ = false;

 public:
  captured_graphs(Memory queue, std::vector<run_task> const& tasks) : queue_(std::move(queue)) {
    for (auto const& [first, count] : runs_among(tasks)) runs_.push_back({first, count, {}});
  }
  std::size_t size() const { return runs_.size(); }
  void restart() { next_ = 0; }
  /// Before task k is asked for: how many tasks, from it on, have now been asked for at once; 0: the caller
  /// does it.
  std::size_t before(std::size_t k) {
    if (writing_) return 0;
    while (next_ < runs_.size() && runs_[next_].first < k) ++next_;
    if (!warm_ || next_ == runs_.size() || runs_[next_].first != k) return 0;
    run& r = runs_[next_];
    if (!r.all) {
      queue_.begin_recording();
      writing_ = true;
      ends_ = k + r.count;
      return 0;
    }
    queue_.replay(*r.all);
    return r.count;
  }
  /// After task k was asked for.
  void after(std::size_t k) {
    if (!writing_ || k + 1 != ends_) return;
    writing_ = false;
    run& r = runs_[next_];
    r.all.emplace(queue_.end_recording());
    queue_.replay(*r.all);
  }
  /// A whole step was done.
  void done() { warm_ = true; }
  /// Something was thrown.
  void give_up() noexcept {
    if (!writing_) return;
    writing_ = false;
    try {
      queue_.end_recording();
    } catch (...) {
    }
  }
};
/// Where nothing is recorded.
struct no_runs {
  template <class... T> explicit no_runs(T const&...) {}
  std::size_t size() const { return 0; }
  void restart() {}
  std::size_t before(std::size_t) { return 0; }
  void after(std::size_t) {}
  void done() {}
  void give_up() noexcept {}
};
template <bool Records, class Memory> struct runs_of { using type = no_runs; };
template <class Memory> struct runs_of<true, Memory> { using type = captured_graphs<Memory>; };

/// One device's numbers that change from step to step, in its memory: a place for every operator that takes
/// some.
template <class Policy, class Memory> class numbers_of_step {
  std::vector<op::any_op> ops_;
  arena_memory<Memory> at_;

 public:
  /// Of these operators those that do, each once.
  numbers_of_step(std::vector<op::any_op> const& ops, Memory m)
      : ops_(changing(ops)), at_(bytes(), std::move(m)) {}
  /// Null: o takes none.
  step_arguments const* place(op::any_op const& o) const {
    auto const i = std::find(ops_.begin(), ops_.end(), o);
    return i == ops_.end() ? nullptr
                           : reinterpret_cast<step_arguments const*>(at_.data()) + (i - ops_.begin());
  }
  void write(step_state const& s) const {
    if (ops_.empty()) return;
    std::vector<step_arguments> all;
    for (op::any_op const& o : ops_) all.push_back(Policy::arguments_of(o, s));
    at_.memory().write(at_.data(), all.data(), bytes());
  }

 private:
  i64 bytes() const { return static_cast<i64>(ops_.size() * sizeof(step_arguments)); }
  static std::vector<op::any_op> changing(std::vector<op::any_op> const& ops) {
    std::vector<op::any_op> r;
    for (op::any_op const& o : ops)
      if (Policy::changes_by_step(o) && std::find(r.begin(), r.end(), o) == r.end()) r.push_back(o);
    return r;
  }
};
template <bool Replays, class Policy, class Memory> struct numbers_kept { using type = int; };
template <class Policy, class Memory> struct numbers_kept<true, Policy, Memory> {
  using type = numbers_of_step<Policy, Memory>;
};

}  // namespace detail

}  // namespace tensorpar::exec
