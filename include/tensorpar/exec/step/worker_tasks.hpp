// tensorpar/exec/step/worker_tasks.hpp - the tasks of one process, made ready once and given to the workers
// of its devices
#pragma once
#include <algorithm>
#include <concepts>
#include <memory>
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/comm/traffic.hpp>
#include <tensorpar/exec/device/lanes.hpp>
#include <tensorpar/exec/step/captured_graphs.hpp>
#include <tensorpar/exec/step/prepared_task.hpp>
#include <tensorpar/exec/step/queue_lanes.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/program/core/task_lane.hpp>

namespace tensorpar::exec::detail {

/// What follows from the two policies of an executor alone: how its devices work, and in what types.
template <class Compute, class Comm> struct executor_types {
  using scalar = typename Compute::scalar_type;
  using prepared = prepared_task<typename Comm::group>;
  using memory_type = memory_of<Compute>;
  static constexpr bool queued = requires { requires Comm::queued; };
  static constexpr bool overlaps = requires { requires Comm::overlaps; };
  // of communication
  static constexpr bool several_lanes =
      requires { requires Comm::lanes; } &&
      (queued || std::constructible_from<Comm, typename Comm::world&, int, int>);
  static constexpr bool orders_messages = requires(Comm& c, traffic const& t) { c.messages(t); };
  static constexpr bool has_lanes = queued || overlaps;
  static constexpr bool replays = recording_memory<memory_type> && replayable_policy<Compute>;
  using runs_type = typename runs_of<replays, memory_type>::type;
  using numbers_type = typename numbers_kept<replays, Compute, memory_type>::type;
  using progress_type = typename lanes_of<queued, memory_type>::type;
  using endpoints = std::vector<std::optional<Comm>>;         // by lane of communication, by device

  /// Lanes of communication that a device uses on this machine.
  static int lanes_on(machine const& on) { return several_lanes && has_lanes ? on.communication_lanes() : 1; }
  /// Threads of a device.
  static std::size_t workers_on(machine const& on) { return overlaps ? 1 + idx(lanes_on(on)) : 1; }
  /// Endpoints of a device.
  static std::size_t endpoints_on(machine const& on) { return overlaps ? idx(lanes_on(on)) : 1; }
};

/// Which worker runs which tasks, what each must wait for, and all that is found out about them before the
/// first step.
template <class Compute, class Comm> struct worker_tasks : executor_types<Compute, Comm> {
  using types = executor_types<Compute, Comm>;
  using typename types::memory_type, typename types::numbers_type, typename types::prepared,
      typename types::progress_type, typename types::runs_type, typename types::scalar;
  using types::queued, types::replays, types::has_lanes, types::overlaps;

  int lanes = 2;                                          // of a device, of communication all but one
  std::size_t workers_each = 1;                           // of a device
  std::vector<std::unique_ptr<progress_type>> progress;   // by device of this process
  // by worker: its tasks; the workers of a device follow one another
  std::vector<std::vector<std::size_t>> order;
  // parallel: the lane of each task; and, by lane, what it must wait for (lane_waits)
  std::vector<std::vector<int>> lane, waits;
  std::vector<runs_type> runs;                            // by worker
  // by device of this process, where steps are replayed
  std::vector<numbers_type> numbers;
  std::vector<bool> used_input;                           // by value: read by some task

  prepared& ready_of(std::size_t task, int device) {
    auto const d = idx(device);
    return ready_[d][slot_[task][d]];
  }

  /// Before the first step. `local`: the devices of this process; `ends`: the endpoints of all.
  /// O(tasks * devices * lanes).
  void make(training_graph const& t, program const& q, machine const& on, std::vector<int> const& local,
            device_memory<scalar, memory_type> const& memory, typename types::endpoints& ends) {
    lanes = 1 + types::lanes_on(on);
    workers_each = types::workers_on(on);
    prepare(t, q, on, memory, ends);
    assign(q, on, local, memory, ends);
  }
  /// What task number i of a device talks through.
  Comm& endpoint(typename types::endpoints& ends, int device, int lane_of_task) const {
    std::size_t const nth = overlaps && lane_of_task > 0 ? idx(lane_of_task) - 1 : 0;
    return *ends[nth * slot_devices_ + idx(device)];
  }
  int lane_of(task const& t, int device, machine const& on) const {
    return std::min(passes::lane_of(t, device, on), lanes - 1);
  }
  core::slice<int> waits_of(std::size_t worker, std::size_t k) const {
    return {waits[worker].data() + k * idx(lanes), lanes};
  }

 private:
  std::size_t slot_devices_ = 0;                    // of all processes
  std::vector<std::vector<std::size_t>> mine_;      // by device: its tasks
  std::vector<std::vector<prepared>> ready_;        // by device, parallel to mine_
  // by task: position in mine_ of each device (by device number)
  std::vector<std::vector<std::size_t>> slot_;

  void prepare(training_graph const& t, program const& q, machine const& on,
               device_memory<scalar, memory_type> const& memory, typename types::endpoints& ends) {
    std::size_t const n = slot_devices_ = on.device.size();
    mine_.resize(n);
    ready_.resize(n);
    used_input.assign(t.gradient.size(), false);
    for (std::size_t i = 0; i < q.tasks.size(); ++i)
      for (int d : q.tasks[i].devices) {
        if (!memory.here(d)) continue;
        auto& ready = ready_[idx(d)];
        ready.push_back(prepare_task<prepared>(t.graph, q, i, d, memory,
                                               endpoint(ends, d, lane_of(q.tasks[i], d, on))));
        for (auto const& f : ready.back().feeds) used_input[idx(f.second)] = true;
        mine_[idx(d)].push_back(i);
      }
    slot_.assign(q.tasks.size(), std::vector<std::size_t>(n, 0));
    for (std::size_t d = 0; d < n; ++d)
      for (std::size_t k = 0; k < mine_[d].size(); ++k) slot_[mine_[d][k]][d] = k;
  }

  /// How the lanes of a device stay in order.
  std::unique_ptr<progress_type> lanes_in_order(memory_type const& memory, Comm const& end) const {
    if constexpr (queued) {
      std::vector<memory_type> queues{memory};
      for (int l = 1; l < lanes; ++l) queues.push_back(lane_queue(end, l));
      return std::make_unique<progress_type>(queues);
    } else {
      return std::make_unique<progress_type>(lanes);
    }
  }
  void assign(program const& q, machine const& on, std::vector<int> const& local,
              device_memory<scalar, memory_type> const& memory, typename types::endpoints& ends) {
    std::size_t const each = idx(lanes);
    order.resize(local.size() * workers_each);
    lane.resize(order.size());
    waits.resize(order.size());
    for (std::size_t l = 0; l < local.size(); ++l) {
      auto const d = idx(local[l]);
      progress.push_back(lanes_in_order(memory.memory(local[l]), *ends[d]));
      std::vector<lane_task> touches;
      for (std::size_t i : mine_[d]) {
        touches.push_back(touched_by(q, i, local[l], ready_of(i, local[l]).feeds, memory));
        touches.back().lane = lane_of(q.tasks[i], local[l], on);
      }
      std::vector<int> const waited =
          has_lanes ? lane_waits(touches, lanes) : std::vector<int>(touches.size() * each);
      std::vector<run_task> all;
      std::vector<int> followed(each, 0);                     // by those that compute
      for (std::size_t k = 0; k < touches.size(); ++k) {
        int const own = touches[k].lane;
        core::slice<int> const needs{waited.data() + k * each, lanes};
        bool longer = false;
        for (int x = 0; own == 0 && x < lanes; ++x) {
          longer = longer || needs[x] > followed[idx(x)];
          followed[idx(x)] = std::max(followed[idx(x)], needs[x]);
        }
        all.push_back({own == 0, !ready_of(mine_[d][k], local[l]).feeds.empty(), longer, false});
        std::size_t const w = l * workers_each + (overlaps ? idx(own) : 0);
        if constexpr (queued) progress.back()->plan(needs);
        order[w].push_back(mine_[d][k]);
        lane[w].push_back(own);
        waits[w].insert(waits[w].end(), needs.begin(), needs.end());
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
