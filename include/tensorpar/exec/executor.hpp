// tensorpar/exec/executor.hpp - a plan's program, run: one worker per device, one arena per device, any scalar
#pragma once
#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <tensorpar/exec/concepts.hpp>
#include <tensorpar/exec/device_memory.hpp>
#include <tensorpar/exec/evaluation.hpp>
#include <tensorpar/exec/host.hpp>
#include <tensorpar/exec/hub_maker.hpp>
#include <tensorpar/exec/initial_values.hpp>
#include <tensorpar/exec/kernel.hpp>
#include <tensorpar/exec/lanes.hpp>
#include <tensorpar/exec/narrow.hpp>
#include <tensorpar/exec/prepared_task.hpp>
#include <tensorpar/exec/processes.hpp>
#include <tensorpar/exec/program_check.hpp>
#include <tensorpar/exec/queue_lanes.hpp>
#include <tensorpar/exec/recorded_runs.hpp>
#include <tensorpar/exec/scalar.hpp>
#include <tensorpar/exec/step_check.hpp>
#include <tensorpar/exec/step_for.hpp>
#include <tensorpar/exec/step_result.hpp>
#include <tensorpar/exec/task_errors.hpp>
#include <tensorpar/exec/task_times.hpp>
#include <tensorpar/exec/traffic.hpp>
#include <tensorpar/exec/workers.hpp>
#include <tensorpar/plan/program_hash.hpp>
#include <tensorpar/plan/step_fit.hpp>
#include <tensorpar/plan/tasks.hpp>
#include <tensorpar/plan/timeline.hpp>

namespace tensorpar {

/// Runs a plan's program. Compute: a compute policy (exec/concepts.hpp) with its scalar; Comm: a communicator whose `hub` joins one
/// endpoint per device. Every device's memory is one arena of exactly program().arena[d] bytes, allocated here and never again.
/// All of them lie in the policy's memory (exec/memory.hpp), which the host need not be able to read.
/// Where Comm::overlaps is true, a device has a thread that communicates beside the one that computes (exec/lanes.hpp); where Comm::queued
/// is, one thread fills the device's two queues (exec/queue_lanes.hpp).
/// Where memory and policy can (exec/recorded_runs.hpp), runs of tasks that compute are written down in the second step and asked for at
/// once from then on; not in steps that are recorded.
/// `evaluate` runs of the same program, in the same memory, the forward operators alone (exec/evaluation.hpp).
/// A failing task stops every device; `step` and `evaluate` throw that task's error, and the executor refuses both from then on.
/// Where the hub joins several processes (exec/processes.hpp) each makes an executor of the same graph and plan, which has the arenas and
/// runs the tasks of its own devices; all call `step`, `evaluate`, `fetch` and `copies_agree` together and get the same answers. Another
/// graph or plan on one of them is an error on all when they are made.
template <class Compute, class Comm>
  requires(require_compute_policy<Compute>() &&                             // compute_policy, or the name of what is missing
           require_communicator<Comm, typename Compute::scalar_type>() &&   // full_communicator, likewise
           require_communicator<Comm, detail::narrow_of<Compute>>() && require_same_memory<Compute, Comm>())
class executor {
 public:
  using scalar = typename Compute::scalar_type;

  /// Throws `error` if the plan does not fit the graph (plan/step_fit.hpp) or was sealed with another program (plan/certificate.hpp). The
  /// plan's scalar size is replaced by the policy's. Where it saves memory (plan/memory_saving.hpp), graph and plan are those of its step.
  /// `make`, here and below: makes the hub (exec/hub_maker.hpp), with another deadline, say, or from the survivors of an earlier run; and
  /// policies, if it can, in streams and memory of the caller's.
  template <hub_maker<Comm> Make = detail::own_hub<Comm>>
  executor(training_graph graph, plan p, Make const& make = {})
      : executor(p.saves_memory() ? save_memory(graph, p) : saving_step{std::move(graph), std::move(p)}, make) {}
  /// The same with a program that was unrolled before (and maybe transformed since) for this graph, this plan, this scalar's size and
  /// this policy's scratch. Throws `error` for another one (exec/program_check.hpp).
  template <hub_maker<Comm> Make = detail::own_hub<Comm>>
  executor(training_graph graph, plan p, tensorpar::program const& made, Make const& make = {})
      : executor(std::move(graph), std::move(p), &made, make) {}
  /// The step of any plan that was made for this forward graph, with stages or without; "loss" is the loss (else see exec/step_for.hpp).
  template <hub_maker<Comm> Make = detail::own_hub<Comm>>
  executor(computation_graph const& forward, plan const& p, Make const& make = {}) : executor(step_for<Compute>(forward, p), make) {}
  template <hub_maker<Comm> Make = detail::own_hub<Comm>>
  explicit executor(planned_step s, Make const& make = {}) : executor(std::move(s.graph), std::move(s.plan), &s.program, make) {}
  /// A pipeline's step (plan/expand.hpp). A batch is one mini-batch.
  template <hub_maker<Comm> Make = detail::own_hub<Comm>>
  explicit executor(pipelined_step const& s, Make const& make = {})
      : executor(s.graph, s.plan, detail::unrolled_pipeline<Compute>(s), make) {}
  /// A step that saves memory (plan/memory_saving.hpp).
  template <hub_maker<Comm> Make = detail::own_hub<Comm>>
  explicit executor(saving_step s, Make const& make = {}) : executor(std::move(s.graph), std::move(s.plan), nullptr, make) {}

  tensorpar::program const& program() const { return program_; }
  training_graph const& graph() const { return graph_; }
  tensorpar::plan const& plan_value() const { return plan_; }
  int devices() const { return plan_.cluster.size(); }
  /// The devices of this process.
  std::vector<int> const& local_devices() const { return local_; }
  /// Where the ranks meet: to stop a step from outside (`fail`), or for what outlives a failure.
  typename Comm::hub& hub() { return hub_; }
  /// Is device 0 one of them? Of several processes exactly one says so.
  bool leads() const { return memory_.here(0); }
  /// The bytes of the process that leads replace everybody's. All processes call it together.
  void hear_leader(void* p, std::size_t bytes) const { detail::share(hub_, 0, p, bytes); }
  /// By device; 0 for those of other processes.
  std::vector<i64> allocated_bytes() const { return memory_.bytes(); }

  /// Parameters from their `init` and zero optimizer state, by seed and logical index alone: the same under every plan.
  void initialise(u64 seed) {
    seed_ = seed;
    detail::each_initial_value<scalar>(graph_, seed, [&](int value, std::vector<scalar> const& all) { store(value, all); });
    steps_ = 0;
  }

  /// Writes a whole parameter or state into every device's part, and a parameter that is kept in full beside (ir/in_bf16.hpp) into its
  /// master, whose elements stay where they round to those given. Parameters that no task reads have no buffer and are skipped.
  void store(int value, std::vector<scalar> const& all) {
    int const b = detail::kept_buffer(graph_, memory_, value);
    if (b < 0) return;
    if (i64 const n = program_.buffers[static_cast<std::size_t>(b)].type.elements(); static_cast<i64>(all.size()) != n)
      throw error("value '" + graph_.graph.value(value).name + "' is given " + std::to_string(all.size()) + " elements", "executor",
                  std::to_string(n));
    memory_.scatter(b, all);
    if (int const m = master_[static_cast<std::size_t>(value)]; m >= 0)
      memory_.scatter_master(memory_.persistent_of(m), all, graph_.graph.type(value).type);
    given_[static_cast<std::size_t>(value)] = true;
  }
  /// The whole of a parameter or state. Empty if it has no buffer. Throws `error`, as `store` does, for a value that is neither.
  std::vector<scalar> fetch(int value) const {
    int const b = detail::kept_buffer(graph_, memory_, value);
    return b < 0 ? std::vector<scalar>{} : memory_.gather(b, hub_);
  }
  /// Do all copies of every parameter and state agree in every bit?
  bool copies_agree() const { return memory_.copies_agree(hub_); }

  /// Has every parameter that a task reads been given values?
  bool has_values() const { return detail::without_values(graph_, memory_, given_) < 0; }
  /// Has a step or an evaluation failed? After a step parameters may be half updated.
  bool failed() const { return failed_; }
  u64 steps() const { return steps_; }
  void set_steps(u64 n) { steps_ = n; }
  u64 seed() const { return seed_; }
  void set_seed(u64 s) { seed_ = s; }

  /// One training step on micro_batches * the graph's own batch. `record`, if given, receives what happened when on this process's devices.
  /// Throws `error` for a batch that lacks something, a rate that is negative or not finite, and parameters without values
  /// (exec/step_check.hpp): all is as it was then. Also, on every process, for a loss or norm that is not finite, see `on_non_finite`.
  step_result step(host_batch const& batch, double learning_rate, timeline* record = nullptr) {
    require_alive();
    detail::check_step(graph_, plan_, memory_, given_, used_input_, batch, learning_rate);
    auto const t0 = std::chrono::steady_clock::now();
    run_all(batch, {.step = steps_, .seed = seed_, .learning_rate = learning_rate}, record, nullptr);
    step_result r;
    r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count();
    attempt([&] { detail::read_step(r, program_, told_, memory_, hub_); });
    steps_ += detail::counts(r, plan_.optimizer, steps_);
    return r;
  }

  /// Outputs of the model on a batch like a step's, by name: the forward operators that they need run under the plan, nothing is dropped
  /// out, and nothing that is kept changes. Each has its micro-batches one after the other, which is the whole batch where samples are the
  /// first axis; a scalar, such as the loss, has one number per micro-batch. Only inputs that those operators read have to be there. All
  /// processes call it together. Throws `error` as `step` does, and for an output that there is not or that a fused program leaves nowhere.
  std::map<std::string, std::vector<scalar>> evaluate(host_batch const& batch, std::vector<std::string> outputs) {
    require_alive();
    evaluation pass(graph_, program_, memory_, std::move(outputs));
    detail::check_step(graph_, plan_, memory_, given_, pass.used(), batch, 0);
    run_all(batch, {.step = steps_, .seed = seed_}, nullptr, &pass);
    std::map<std::string, std::vector<scalar>> r;
    attempt([&] { r = pass.outputs(hub_); });
    return r;
  }
  /// The loss of a batch: what a step would say that dropped nothing out, and that changed nothing.
  double evaluate(host_batch const& batch) {
    return detail::mean(evaluate(batch, {detail::name_of_loss(graph_)}).begin()->second);
  }

 private:
  using prepared = detail::prepared_task<typename Comm::group>;
  using memory_type = detail::memory_of<Compute>;
  using evaluation = detail::evaluation<scalar, memory_type>;
  static constexpr bool queued = requires { requires Comm::queued; };
  static constexpr std::size_t workers_each = requires { requires Comm::overlaps; } ? 2 : 1;
  static constexpr bool orders_messages = requires(Comm& c, traffic const& t) { c.messages(t); };
  static constexpr bool two_lanes = queued || workers_each > 1;
  static constexpr bool replays = recording_memory<memory_type> && replayable_policy<Compute>;
  using runs_type = typename detail::runs_of<replays, memory_type>::type;
  using numbers_type = typename detail::numbers_kept<replays, Compute, memory_type>::type;
  using progress_type = typename detail::lanes_of<queued, memory_type>::type;

  training_graph graph_;
  tensorpar::plan plan_;
  tensorpar::program program_;
  mutable typename Comm::hub hub_;                  // also reading may take the other processes
  std::vector<int> local_;                          // the devices of this process
  std::vector<std::optional<Comm>> endpoints_;      // by device
  std::vector<std::optional<Compute>> compute_;     // by device
  detail::worker_pool workers_;
  detail::device_memory<scalar, memory_type> memory_;
  std::vector<std::unique_ptr<progress_type>> progress_;   // by device of this process
  std::vector<std::vector<std::size_t>> order_;     // by worker: its tasks; the workers of a device follow one another
  std::vector<std::vector<int>> waits_;             // parallel, where there are two lanes: see lane_waits
  std::vector<runs_type> runs_;                     // by worker
  std::vector<numbers_type> numbers_;               // by device of this process, where steps are replayed
  std::vector<std::vector<std::size_t>> mine_;      // by device: its tasks
  std::vector<std::vector<prepared>> ready_;        // by device, parallel to mine_
  std::vector<std::vector<std::size_t>> slot_;      // by task: position in mine_ of each device (by device number)
  std::vector<bool> used_input_, given_;            // by value: read by some task; stored at least once
  std::vector<int> master_;                         // by value: see masters_of
  traffic traffic_;                                 // of a step, where devices are queues
  detail::step_numbers told_;                       // the buffers that a step's result is read from
  u64 steps_ = 0, seed_ = 0;
  bool failed_ = false;

  int device_of(std::size_t worker) const { return local_[worker / workers_each]; }
  /// Waits for all that a device was asked for. Where the communicator has a queue, what fails there is found first.
  void finish(int d) {
    if constexpr (queued) endpoints_[static_cast<std::size_t>(d)]->drain();
    memory_.memory(d).wait();
  }
  memory_type const& queue_of(int d, bool communicates) const {
    if constexpr (queued) return communicates ? endpoints_[static_cast<std::size_t>(d)]->queue() : memory_.memory(d);
    else return memory_.memory(d);
  }
  prepared& ready_of(std::size_t task, int device) {
    auto const d = static_cast<std::size_t>(device);
    return ready_[d][slot_[task][d]];
  }

  template <class Make>
  executor(training_graph graph, plan p, tensorpar::program const* made, Make const& make)
      : graph_(std::move(graph)),
        plan_(sized(fitting(detail::with_kernels<Compute>(graph_), std::move(p)))),
        program_(made ? require_program<Compute>(graph_, plan_, *made)
                      : detail::as_sealed(unroll(graph_, plan_, &Compute::workspace), plan_)),
        hub_(make(plan_.cluster.size())),
        local_(detail::local_ranks(hub_, plan_.cluster.size())),
        endpoints_(static_cast<std::size_t>(plan_.cluster.size())),
        compute_(detail::policies_for<Compute>(local_, detail::seats(hub_, local_), plan_.cluster.size(), make)),
        workers_(static_cast<int>(local_.size() * workers_each)),
        memory_(program_, local_, detail::memories_of(compute_, local_)) {
    for (int d : local_) detail::join(endpoints_[static_cast<std::size_t>(d)], hub_, d, memory_.memory(d));
    if constexpr (queued) detail::connect(hub_, endpoints_, local_, traffic_ = detail::announced(graph_, program_), workers_);
    else if constexpr (spans_processes<typename Comm::hub>)
      detail::require_one_program(hub_, local_, devices(), detail::whole_hash(graph_, program_));
    prepare();
    assign();
  }

  static tensorpar::plan sized(tensorpar::plan p) { p.scalar_bytes = sizeof(scalar); return p; }
  void prepare() {
    auto const n = static_cast<std::size_t>(devices());
    mine_.resize(n);
    ready_.resize(n);
    used_input_.assign(graph_.gradient.size(), false);
    given_.assign(graph_.graph.values.size(), false);
    master_ = detail::masters_of(graph_.graph);
    told_ = detail::told_by_step(graph_, program_);
    for (std::size_t i = 0; i < program_.tasks.size(); ++i)
      for (int d : program_.tasks[i].devices) {
        if (!memory_.here(d)) continue;
        ready_[static_cast<std::size_t>(d)].push_back(
            detail::prepare_task<prepared>(graph_.graph, program_, i, d, memory_, *endpoints_[static_cast<std::size_t>(d)]));
        for (auto const& f : ready_[static_cast<std::size_t>(d)].back().feeds) used_input_[static_cast<std::size_t>(f.second)] = true;
        mine_[static_cast<std::size_t>(d)].push_back(i);
      }
    slot_.assign(program_.tasks.size(), std::vector<std::size_t>(n, 0));
    for (std::size_t d = 0; d < n; ++d) for (std::size_t k = 0; k < mine_[d].size(); ++k) slot_[mine_[d][k]][d] = k;
  }

  /// Runs the whole program, or what `only` needs of it. Throws a failing task's error.
  void run_all(host_batch const& batch, step_state const& state, timeline* record, evaluation* only) {
    std::size_t const workers = order_.size();
    std::vector<std::vector<span>> spans(workers);
    std::vector<std::exception_ptr> errors(workers);
    traffic const messages = only && orders_messages ? only->messages() : traffic{};
    std::vector<detail::worker_place> at;
    for (std::size_t w = 0; w < workers; ++w) at.push_back({device_of(w), program_.tasks.size()});
    for (auto& p : progress_) p->restart();
    auto const t0 = std::chrono::steady_clock::now();
    auto work = [&](int worker) {
      auto const w = static_cast<std::size_t>(worker);
      int const d = device_of(w);
      progress_type& progress = *progress_[w / workers_each];
      Comm& comm = *endpoints_[static_cast<std::size_t>(d)];
      try {
        std::optional<detail::task_times<memory_type, queued>> times;
        if constexpr (orders_messages) if (only) comm.messages(messages);
        if (queued) memory_.memory(d).wait();              // what was stored between steps is there for both queues
        if constexpr (replays) numbers_[w / workers_each].write(state);
        runs_[w].restart();
        if (record) times.emplace(memory_.memory(d), t0);
        for (std::size_t k = 0; k < order_[w].size(); ++k) {
          std::size_t const i = order_[w][k];
          task const& t = program_.tasks[i];
          int const own = t.kind != task_kind::compute;
          if (only && !only->needs(i)) {
            if (two_lanes) progress.ended(own);
            continue;
          }
          if (two_lanes && !progress.await(own, waits_[w][k])) return;
          at[w].task = i;
          if (std::size_t const n = record || only ? 0 : runs_[w].before(k)) {
            for (std::size_t j = 0; two_lanes && j < n; ++j) progress.ended(own);
            k += n - 1;
            continue;
          }
          if constexpr (queued) comm.at_task(static_cast<int>(i));
          if (record) times->begin(queue_of(d, own));
          {
            [[maybe_unused]] auto const range = detail::range_in(memory_.memory(d), t.name.c_str());
            run(d, i, batch, state, comm, only);
          }
          if (only) only->take(i, d, [&] { if constexpr (queued) comm.wait_for(memory_.memory(d)); });
          if (record)
            times->end(queue_of(d, own), {d, own ? lane::communication : lane::compute, static_cast<int>(i), t.name}, [&] { finish(d); });
          at[w].task = program_.tasks.size();
          if (!only) runs_[w].after(k);
          if (two_lanes) progress.ended(own);
        }
        finish(d);
        if (!only) runs_[w].done();
        if constexpr (orders_messages) if (only) comm.messages(traffic_);
        if (record) spans[w] = times->spans();
      } catch (...) {
        errors[w] = std::current_exception();
        runs_[w].give_up();
        if constexpr (queued) if (comm.stuck_at() >= 0) at[w].task = static_cast<std::size_t>(comm.stuck_at());
        hub_.fail(spans_processes<typename Comm::hub> ? detail::with_task(program_, at[w]) : std::current_exception(), d);
        if constexpr (queued) comm.abandon();
        progress.stop();
      }
    };
    workers_.run(work);
    for (auto const& e : errors) if (e) failed_ = true;
    if (failed_) {
      int first = -1;
      if constexpr (requires { hub_.failed_rank(); }) first = hub_.failed_rank();
      detail::rethrow_with_tasks(program_, hub_.failure(), first, at);
    }
    if (record) *record = detail::timeline_of(std::move(spans));
  }

  void require_alive() const { if (failed_) throw error("this executor has failed before", "executor", "a new executor"); }
  /// Another process may fail in this.
  template <class F> void attempt(F const& f) {
    try { f(); } catch (...) { failed_ = true; throw; }
  }

  /// Gives the tasks of each device to its workers.
  void assign() {
    order_.resize(local_.size() * workers_each);
    waits_.resize(order_.size());
    for (std::size_t l = 0; l < local_.size(); ++l) {
      auto const d = static_cast<std::size_t>(local_[l]);
      if constexpr (queued) progress_.push_back(std::make_unique<progress_type>(memory_.memory(local_[l]), endpoints_[d]->queue()));
      else progress_.push_back(std::make_unique<progress_type>());
      std::vector<lane_task> touches;
      for (std::size_t i : mine_[d]) touches.push_back(detail::touched_by(program_, i, local_[l], ready_of(i, local_[l]).feeds, memory_));
      std::vector<int> const waits = two_lanes ? lane_waits(touches) : std::vector<int>(touches.size());
      std::vector<detail::run_task> all;
      int followed = 0;
      for (std::size_t k = 0; k < touches.size(); ++k) {
        bool const computes = !touches[k].communicates;
        all.push_back({computes, !ready_of(mine_[d][k], local_[l]).feeds.empty(), computes && waits[k] > followed, false});
        if (computes) followed = std::max(followed, waits[k]);
        std::size_t const w = l * workers_each + (workers_each > 1 && touches[k].communicates ? 1 : 0);
        if constexpr (queued) progress_.back()->plan(touches[k].communicates, waits[k]);
        order_[w].push_back(mine_[d][k]);
        waits_[w].push_back(waits[k]);
      }
      int computing = 0;
      if constexpr (queued)
        for (detail::run_task& t : all) if (t.computes) t.awaited = progress_.back()->awaited(0, computing++);
      for (std::size_t w = 0; w < workers_each; ++w) runs_.emplace_back(memory_.memory(local_[l]), all);
      if constexpr (replays) {
        std::vector<any_op> ops;
        for (std::size_t i : mine_[d]) if (program_.tasks[i].kind == task_kind::compute) ops.push_back(program_.tasks[i].op);
        numbers_.emplace_back(ops, memory_.memory(local_[l]));
        for (std::size_t i : mine_[d])
          if (program_.tasks[i].kind == task_kind::compute) ready_of(i, local_[l]).words = numbers_.back().place(program_.tasks[i].op);
      }
    }
  }

  void run(int d, std::size_t i, host_batch const& batch, step_state state, Comm& comm, evaluation const* only) {
    task const& t = program_.tasks[i];
    prepared& p = ready_of(i, d);
    if (t.kind != task_kind::compute) {
      auto const move = [&]<class Element>(Element*) {
        auto const* src = p.in_at.empty() ? nullptr : static_cast<Element const*>(p.in_at[0]);
        auto* dst = p.out_at.empty() ? nullptr : static_cast<Element*>(p.out_at[0]);
        run_move(t.step, p.move, src, dst, static_cast<Element*>(p.workspace), comm, p.group, message_tag(t, i), queue_of(d, true));
      };
      return p.narrow ? move(static_cast<detail::narrow_of<Compute>*>(nullptr)) : move(static_cast<scalar*>(nullptr));
    }
    for (auto const& [k, value] : p.feeds) {
      graph_value const& v = graph_.graph.value(value);
      auto const operand = static_cast<std::size_t>(k);
      detail::feed_box<scalar>(batch.find(v.name)->second, t.micro_batch + v.part, p.in[operand], const_cast<void*>(p.in_at[operand]),
                               memory_.memory(d));
    }
    kernel_call c = detail::call_of(t, p);
    c.state = state;
    c.state.micro_batch = static_cast<u64>(t.micro_batch + graph_.graph.node(t.node).part);
    if (only) only->adapt(c);
    compute_[static_cast<std::size_t>(d)]->run(c);
  }
};

}  // namespace tensorpar
