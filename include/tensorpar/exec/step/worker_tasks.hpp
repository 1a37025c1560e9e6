// tensorpar/exec/step/worker_tasks.hpp - the tasks of one process, made ready once and given to the workers
// of its devices
#pragma once
#include <algorithm>
#include <memory>
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/comm/traffic.hpp>
#include <tensorpar/exec/device/lanes.hpp>
#include <tensorpar/exec/step/captured_graphs.hpp>
#include <tensorpar/exec/step/prepared_task.hpp>
#include <tensorpar/exec/step/queue_lanes.hpp>
#include <tensorpar/ir/differentiate.hpp>

namespace tensorpar::exec::detail {

/// What follows from the two policies of an executor alone: how its devices work, and in what types.
template <class Compute, class Comm> struct executor_types {
  using scalar = typename Compute::scalar_type;
  using prepared = prepared_task<typename Comm::group>;
  using memory_type = memory_of<Compute>;
  static constexpr bool queued = requires { requires Comm::queued; };
  static constexpr std::size_t workers_each = requires { requires Comm::overlaps; } ? 2 : 1;
  static constexpr bool orders_messages = requires(Comm& c, traffic const& t) { c.messages(t); };
  static constexpr bool two_lanes = queued || workers_each > 1;
  static constexpr bool replays = recording_memory<memory_type> && replayable_policy<Compute>;
  using runs_type = typename runs_of<replays, memory_type>::type;
  using numbers_type = typename numbers_kept<replays, Compute, memory_type>::type;
  using progress_type = typename lanes_of<queued, memory_type>::type;
  using endpoints = std::vector<std::optional<Comm>>;
};

/// Which worker runs which tasks, what each must wait for, and all that is found out about them before the
/// first step.
template <class Compute, class Comm> struct worker_tasks : executor_types<Compute, Comm> {
  using types = executor_types<Compute, Comm>;
  using typename types::memory_type, typename types::numbers_type, typename types::prepared,
      typename types::progress_type, typename types::runs_type, typename types::scalar;
  using types::queued, types::replays, types::two_lanes, types::workers_each;

  std::vector<std::unique_ptr<progress_type>> progress;   // by device of this process
  // by worker: its tasks; the workers of a device follow one another
  std::vector<std::vector<std::size_t>> order;
  // parallel, where there are two lanes: see lane_waits
  std::vector<std::vector<int>> waits;
  std::vector<runs_type> runs;                            // by worker
  // by device of this process, where steps are replayed
  std::vector<numbers_type> numbers;
  std::vector<bool> used_input;                           // by value: read by some task

  prepared& ready_of(std::size_t task, int device) {
    auto const d = idx(device);
    return ready_[d][slot_[task][d]];
  }

  /// Before the first step. `local`: the devices of this process; `ends`: the endpoints of all, by device.
  /// O(tasks * devices + lanes).
  void make(training_graph const& t, program const& q, std::vector<int> const& local,
            device_memory<scalar, memory_type> const& memory, typename types::endpoints& ends) {
    prepare(t, q, memory, ends);
    assign(q, local, memory, ends);
  }

 private:
  std::vector<std::vector<std::size_t>> mine_;      // by device: its tasks
  std::vector<std::vector<prepared>> ready_;        // by device, parallel to mine_
  // by task: position in mine_ of each device (by device number)
  std::vector<std::vector<std::size_t>> slot_;

  void prepare(training_graph const& t, program const& q, device_memory<scalar, memory_type> const& memory,
               typename types::endpoints& ends) {
    std::size_t const n = ends.size();
    mine_.resize(n);
    ready_.resize(n);
    used_input.assign(t.gradient.size(), false);
    for (std::size_t i = 0; i < q.tasks.size(); ++i)
      for (int d : q.tasks[i].devices) {
        if (!memory.here(d)) continue;
        auto& ready = ready_[idx(d)];
        ready.push_back(prepare_task<prepared>(t.graph, q, i, d, memory, *ends[idx(d)]));
        for (auto const& f : ready.back().feeds) used_input[idx(f.second)] = true;
        mine_[idx(d)].push_back(i);
      }
    slot_.assign(q.tasks.size(), std::vector<std::size_t>(n, 0));
    for (std::size_t d = 0; d < n; ++d)
      for (std::size_t k = 0; k < mine_[d].size(); ++k) slot_[mine_[d][k]][d] = k;
  }

  void assign(program const& q, std::vector<int> const& local,
              device_memory<scalar, memory_type> const& memory, typename types::endpoints& ends) {
    order.resize(local.size() * workers_each);
    waits.resize(order.size());
    for (std::size_t l = 0; l < local.size(); ++l) {
      auto const d = idx(local[l]);
      if constexpr (queued)
        progress.push_back(std::make_unique<progress_type>(memory.memory(local[l]), ends[d]->queue()));
      else progress.push_back(std::make_unique<progress_type>());
      std::vector<lane_task> touches;
      for (std::size_t i : mine_[d])
        touches.push_back(touched_by(q, i, local[l], ready_of(i, local[l]).feeds, memory));
      std::vector<int> const waited = two_lanes ? lane_waits(touches) : std::vector<int>(touches.size());
      std::vector<run_task> all;
      int followed = 0;
      for (std::size_t k = 0; k < touches.size(); ++k) {
        bool const computes = !touches[k].communicates;
        all.push_back({computes, !ready_of(mine_[d][k], local[l]).feeds.empty(),
                       computes && waited[k] > followed, false});
        if (computes) followed = std::max(followed, waited[k]);
        std::size_t const w = l * workers_each + (workers_each > 1 && touches[k].communicates ? 1 : 0);
        if constexpr (queued) progress.back()->plan(touches[k].communicates, waited[k]);
        order[w].push_back(mine_[d][k]);
        waits[w].push_back(waited[k]);
      }
      int computing = 0;
      if constexpr (queued)
        for (run_task& t : all) if (t.computes) t.awaited = progress.back()->awaited(0, computing++);
      for (std::size_t w = 0; w < workers_each; ++w) runs.emplace_back(memory.memory(local[l]), all);
      if constexpr (replays) number(q, local[l], memory);
    }
  }
  /// What changes from step to step has a place of its own in the memory of device d.
  void number(program const& q, int d, device_memory<scalar, memory_type> const& memory) {
    std::vector<op::any_op> ops;
    auto const& mine = mine_[idx(d)];
    for (std::size_t i : mine) if (q.tasks[i].kind == task_kind::compute) ops.push_back(q.tasks[i].op);
    numbers.emplace_back(ops, memory.memory(d));
    for (std::size_t i : mine)
      if (q.tasks[i].kind == task_kind::compute)
        ready_of(i, d).arguments = numbers.back().place(q.tasks[i].op);
  }
};

}  // namespace tensorpar::exec::detail
