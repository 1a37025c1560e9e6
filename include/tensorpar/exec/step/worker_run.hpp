// tensorpar/exec/step/worker_run.hpp - what one worker does in one run of a program
#pragma once
#include <chrono>
#include <exception>
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/comm/processes.hpp>
#include <tensorpar/exec/device/host.hpp>
#include <tensorpar/exec/device/kernel.hpp>
#include <tensorpar/exec/step/device_memory.hpp>
#include <tensorpar/exec/step/execute_task.hpp>
#include <tensorpar/exec/step/task_errors.hpp>
#include <tensorpar/exec/step/task_times.hpp>
#include <tensorpar/exec/step/worker_tasks.hpp>
#include <tensorpar/program/core/timeline.hpp>
#include <vector>

namespace tensorpar::exec::detail {

/// One run, as all workers of a process share it. Each calls it with its number, and writes to its own place
/// of `at`, `errors` and `spans` alone. `only`: the evaluation that this is, or null; `record`: are times
/// asked for? An error stops all devices.
template <class Compute, class Comm, class Evaluation> struct worker_run {
  using tasks_type = worker_tasks<Compute, Comm>;
  using memory_type = typename tasks_type::memory_type;
  static constexpr bool queued = tasks_type::queued, orders_messages = tasks_type::orders_messages;
  static constexpr bool has_lanes = tasks_type::has_lanes, replays = tasks_type::replays;

  computation_graph const& graph;
  tensorpar::program const& program;
  tasks_type& tasks;
  device_memory<typename Compute::scalar_type, memory_type>& memory;
  std::vector<std::optional<Comm>>& endpoints;
  std::vector<std::optional<Compute>>& compute;
  std::vector<int> const& local;                    // the devices of this process
  typename Comm::world& world;
  traffic const &of_step, &of_evaluation;           // messages, where devices are queues
  host_batch const& batch;
  step_state const& state;
  bool record;
  Evaluation* only;
  std::chrono::steady_clock::time_point start;
  std::vector<worker_place>& at;
  std::vector<std::exception_ptr>& errors;
  std::vector<std::vector<span>>& spans;

  void operator()(int worker) const {
    auto const w = idx(worker);
    int const d = local[w / tasks.workers_each];
    try {
      run(w, d);
    } catch (...) {
      errors[w] = std::current_exception();
      tasks.runs[w].give_up();
      if constexpr (queued)
        if (comm(d).stuck_at() >= 0) at[w].task = idx(comm(d).stuck_at());
      world.fail(spans_processes<typename Comm::world> ? with_task(program, at[w]) : std::current_exception(),
                 d);
      if constexpr (queued) comm(d).abandon();
      progress(w).stop();
    }
  }

 private:
  Comm& comm(int d) const { return *endpoints[idx(d)]; }
  auto& progress(std::size_t w) const { return *tasks.progress[w / tasks.workers_each]; }
  /// The queue in which a lane of a device works.
  memory_type const& queue_of(int d, int own) const {
    if constexpr (queued) return own ? lane_queue(comm(d), own) : memory.memory(d);
    else return memory.memory(d);
  }
  /// Waits for all that a device was asked for. Where the communicator has a queue, what fails there is found
  /// first.
  void finish(int d) const {
    if constexpr (queued) comm(d).drain();
    memory.memory(d).wait();
  }

  void run(std::size_t w, int d) const {
    std::optional<task_times<memory_type, queued>> times;
    if constexpr (orders_messages) if (only) comm(d).messages(of_evaluation);
    // what was stored between steps is there for both queues
    if (queued) memory.memory(d).wait();
    if constexpr (replays) tasks.numbers[w / tasks.workers_each].write(state);
    tasks.runs[w].restart();
    if (record) times.emplace(memory.memory(d), start);
    for (std::size_t k = 0; k < tasks.order[w].size(); ++k) {
      std::size_t const i = tasks.order[w][k];
      int const own = tasks.lane[w][k];
      if (only && !only->needs(i)) {
        if (has_lanes) progress(w).ended(own);
        continue;
      }
      if (has_lanes && !progress(w).await(own, tasks.waits_of(w, k))) return;
      at[w].task = i;
      if (std::size_t const n = record || only ? 0 : tasks.runs[w].before(k)) {   // a captured run of n tasks
        for (std::size_t j = 0; has_lanes && j < n; ++j) progress(w).ended(own);
        k += n - 1;
        continue;
      }
      run_task(i, d, own, record ? &*times : nullptr);
      at[w].task = program.tasks.size();
      if (!only) tasks.runs[w].after(k);
      if (has_lanes) progress(w).ended(own);
    }
    finish(d);
    if (!only) tasks.runs[w].done();
    if constexpr (orders_messages) if (only) comm(d).messages(of_step);
    if (record) spans[w] = times->spans();
  }
  void run_task(std::size_t i, int d, int own, task_times<memory_type, queued>* times) const {
    task const& t = program.tasks[i];
    if constexpr (queued) comm(d).at_task(static_cast<int>(i));
    if constexpr (queued && tasks_type::several_lanes) comm(d).in_lane(own > 0 ? own - 1 : 0);
    if (times) times->begin(queue_of(d, own));
    {
      [[maybe_unused]] auto const range = range_in(memory.memory(d), t.name.c_str());
      execute_task(graph, program, i, tasks.ready_of(i, d), batch, state,
                   tasks.endpoint(endpoints, d, own), queue_of(d, own), *compute[idx(d)], memory.memory(d),
                   only);
    }
    if (only) only->take(i, d, [&] { if constexpr (queued) comm(d).wait_for(memory.memory(d)); });
    if (times)
      times->end(queue_of(d, own),
                 {d, own ? lane::communication : lane::compute, static_cast<int>(i), t.name, 0, 0,
                  own > 0 ? own - 1 : 0},
                 [&] { finish(d); });
  }
};

}  // namespace tensorpar::exec::detail
