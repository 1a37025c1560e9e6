// tensorpar/exec/executor.hpp - a plan's program, run: one worker and one arena per device, any scalar
#pragma once
#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/thread_pool.hpp>
#include <tensorpar/exec/comm/processes.hpp>
#include <tensorpar/exec/comm/traffic.hpp>
#include <tensorpar/exec/comm/world_maker.hpp>
#include <tensorpar/exec/device/concepts.hpp>
#include <tensorpar/exec/device/host.hpp>
#include <tensorpar/exec/device/kernel.hpp>
#include <tensorpar/exec/device/narrow.hpp>
#include <tensorpar/exec/device/scalar.hpp>
#include <tensorpar/exec/evaluation.hpp>
#include <tensorpar/exec/step/initial_values.hpp>
#include <tensorpar/exec/step/joined_run.hpp>
#include <tensorpar/exec/step/program_check.hpp>
#include <tensorpar/exec/step/step_check.hpp>
#include <tensorpar/exec/step/step_for.hpp>
#include <tensorpar/exec/step/step_result.hpp>
#include <tensorpar/exec/step/worker_run.hpp>
#include <tensorpar/plan/step_fit.hpp>
#include <tensorpar/program/core/timeline.hpp>
#include <tensorpar/program/program_hash.hpp>
#include <tensorpar/program/unroll.hpp>

namespace tensorpar {

/// Runs a plan's program. Compute: a compute policy (exec/device/concepts.hpp) with its scalar. Comm: a
/// communicator whose `world` joins one endpoint per device. Every device's memory is one arena of exactly
/// program().arena[d] bytes, allocated here and never again. It lies in the policy's memory
/// (exec/device/memory.hpp), which the host need not be able to read.
/// Where Comm::overlaps is true, a device has a thread that communicates beside the one that computes
/// (exec/device/lanes.hpp). Where Comm::queued is, one thread fills the device's queues
/// (exec/step/queue_lanes.hpp). A cluster whose links have lanes of their own (`machine::lane_per_link`) gets
/// a thread or queue for each where Comm::lanes is true, else one for all.
/// Where memory and policy can, the second step captures each run of consecutive compute tasks
/// (exec/step/captured_graphs.hpp). Later steps replay it as one graph, except when a timeline is recorded.
/// `evaluate` runs the forward operators of the same program, in the same memory (exec/evaluation.hpp).
/// The program is checked before anything is made for it (check/check.hpp). A program that is no correct step
/// of the graph is an error that says why; `already_checked{step}` says that the caller has checked it.
/// A failing task stops every device, and `step` and `evaluate` throw its error. After a failed step the
/// executor refuses both from then on. So it does after a failed evaluation whose world cannot `recover`;
/// comm::threads_world can.
/// Where the world joins several processes (exec/comm/processes.hpp), each makes an executor of the same
/// graph and plan. It has the arenas and runs the tasks of its own devices. All call `step`, `evaluate`,
/// `fetch` and `copies_agree` together and get the same answers. Another graph or plan on one of them is an
/// error on all when they are made.
template <class Compute, class Comm>
  // compute_policy, or the name of what is missing
  requires(exec::require_compute_policy<Compute>() &&             // full_communicator, likewise
           exec::require_communicator<Comm, typename Compute::scalar_type>() &&
           exec::require_communicator<Comm, exec::detail::narrow_of<Compute>>() &&
           exec::require_same_memory<Compute, Comm>())
class executor {
 public:
  using scalar = typename Compute::scalar_type;

  /// Runs a step (program/core/planned_step.hpp). Its program, if it has one, was made for this scalar's size
  /// and this policy's scratch, and maybe transformed since (exec/step/fuse.hpp); else it is unrolled here.
  /// `already_checked{step}` leaves the check out. Throws `error` for a plan that does not fit the graph
  /// (plan/step_fit.hpp) or was sealed with another program (program/evidence/certificate.hpp), and for a
  /// program of something else (exec/step/program_check.hpp). `make`, here and below: makes the world
  /// (exec/comm/world_maker.hpp), with another deadline, say, or from the survivors of an earlier run; and
  /// policies, if it can, in streams and memory of the caller's.
  template <exec::world_maker<Comm> Make = exec::detail::own_world<Comm>>
  explicit executor(exec::detail::step_to_run s, Make const& make = {})
      : executor(ready_to_run{}, exec::detail::ready<Compute>(std::move(s)), make) {}
  /// The step of any plan that was made for this graph: the forward graph, whose loss is "loss" (else see
  /// exec/step/step_for.hpp), of a plan with stages or without; or a training graph.
  template <class Graph, exec::world_maker<Comm> Make = exec::detail::own_world<Comm>>
    requires(std::same_as<Graph, computation_graph> || std::same_as<Graph, training_graph>)
  executor(Graph graph, plan p, Make const& make = {})
      : executor(exec::detail::step_from<Compute>(std::move(graph), std::move(p)), make) {}

  tensorpar::program const& program() const { return program_; }
  training_graph const& graph() const { return graph_; }
  tensorpar::plan const& plan_value() const { return plan_; }
  int devices() const { return plan_.cluster.size(); }
  /// The devices of this process.
  std::vector<int> const& local_devices() const { return run_.local; }
  /// Where the ranks meet: to stop a step from outside (`fail`), or for what outlives a failure.
  typename Comm::world& world() { return run_.world; }
  /// Is device 0 one of them? Of several processes exactly one says so.
  bool leads() const { return memory_.here(0); }
  /// Calls f() on every process: all come here together. Throws `error` on all of them where f throws on one,
  /// where the facts that it returns differ, and, unless `anew`, where steps, seeds or values that they were
  /// given do (exec/comm/agreement.hpp).
  template <class F> void together(std::string const& where, F const& f, bool anew = false) const {
    run_.together(graph_.graph, where, f, anew);
  }
  /// The bytes of the process that leads replace everybody's. All processes call it together.
  void hear_leader(void* p, std::size_t bytes) const { run_.hear_leader(p, bytes); }
  /// By device; 0 for those of other processes.
  std::vector<i64> allocated_bytes() const { return memory_.bytes(); }

  /// Parameters from their `init` and zero optimizer state, by seed and logical index alone: the same under
  /// every plan.
  void initialise(u64 seed) {
    run_.seed = seed;
    exec::detail::each_initial_value<scalar>(graph_, seed,
                                       [&](int value, std::vector<scalar> const& all) { store(value, all); });
    run_.steps = 0;
  }

  /// Writes a whole parameter or state into every device's part, and a parameter that is kept in full beside
  /// (ir/mixed_precision.hpp) into its master, whose elements stay where they round to those given.
  /// Parameters that no task reads have no buffer and are skipped.
  void store(int value, std::vector<scalar> const& all) {
    int const b = exec::detail::kept_buffer(graph_, memory_, value);
    if (b < 0) return;
    if (i64 const n = program_.buffers[idx(b)].type.elements();
        static_cast<i64>(all.size()) != n)
      throw error("value '" + graph_.graph.value(value).name + "' is given " + std::to_string(all.size()) +
                      " elements",
                  "executor", std::to_string(n));
    memory_.scatter(b, all);
    if (int const m = master_[idx(value)]; m >= 0)
      memory_.scatter_master(memory_.persistent_of(m), all, graph_.graph.type(value).type);
    given_[idx(value)] = true;
    if (!run_.alone())
      run_.content.take(value, all.data(), all.size() * sizeof(scalar));
  }
  /// The whole of a parameter or state. Empty if it has no buffer. Throws `error`, as `store` does, for a
  /// value that is neither.
  std::vector<scalar> fetch(int value) const {
    int const b = exec::detail::kept_buffer(graph_, memory_, value);
    return b < 0 ? std::vector<scalar>{} : memory_.gather(b, run_.world);
  }
  /// Do all copies of every parameter and state agree in every bit?
  bool copies_agree() const { return memory_.copies_agree(run_.world); }

  /// No parameter has values any more, until each is stored again: what is about to be read from a file may
  /// break off in the middle.
  void forget() { given_.assign(given_.size(), false); }
  /// Has every parameter that a task reads been given values?
  bool has_values() const { return exec::detail::without_values(graph_, memory_, given_) < 0; }
  /// Has a step failed in the middle, where parameters may be half updated, or the world? An evaluation on
  /// threads of one process that fails changes nothing, and the executor goes on.
  bool failed() const { return run_.failure != nullptr; }
  u64 steps() const { return run_.steps; }
  void set_steps(u64 n) { run_.steps = n; }
  u64 seed() const { return run_.seed; }
  void set_seed(u64 s) { run_.seed = s; }

  /// One training step on micro_batches * the graph's own batch. `record`, if given, receives what happened
  /// when on this process's devices.
  /// Throws `error` for a batch that is not what the model takes, a rate that is negative or not finite, and
  /// parameters without values (exec/step/step_check.hpp). Nothing has changed then on any process, even if
  /// only one process had a wrong batch. The same holds where processes would go on from different steps,
  /// seeds, rates or values.
  /// Also throws, on every process, for a loss or norm that is not finite; see `on_non_finite`. Parameters
  /// are updated then, the step is not counted, and the executor goes on.
  step_result step(host_batch const& batch, double learning_rate, timeline* record = nullptr) {
    run_.begin(graph_.graph, "step", [&] {
      exec::detail::check_step(graph_, plan_, memory_, given_, tasks_.used_input, batches_, batch,
                               learning_rate);
      return std::vector<exec::shared_fact>{
          {"learning rate", exec::detail::fact_of(learning_rate), exec::shared_fact::kind::real}};
    });
    auto const t0 = std::chrono::steady_clock::now();
    run_all(batch, {.step = run_.steps, .seed = run_.seed, .learning_rate = learning_rate}, record, nullptr);
    run_.content.ran();
    step_result r;
    r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count();
    run_.departure.together(true);                      // all throw what is not finite
    run_.attempt([&] { detail::read_step(r, program_, told_, memory_, run_.world); });
    run_.steps += detail::counts(r, plan_.optimizer, run_.steps);
    run_.departure.together(false);
    return r;
  }

  /// Outputs of the model on a batch like a step's, by name: the forward operators that they need run under
  /// the plan, nothing is dropped out, and nothing that is kept changes. Each has its micro-batches one after
  /// the other, which is the whole batch where samples are the first axis; a scalar, such as the loss, has
  /// one number per micro-batch. Only inputs that those operators read have to be there. All processes call
  /// it together. Throws `error` as `step` does, and for an output that there is not or that a fused program
  /// leaves nowhere.
  std::map<std::string, std::vector<scalar>> evaluate(host_batch const& batch,
                                                      std::vector<std::string> outputs) {
    std::optional<evaluation> pass;
    run_.begin(graph_.graph, "evaluate", [&] {
      core::hasher names;
      for (std::string const& name : outputs) names.add(std::string_view(name));
      pass.emplace(graph_, program_, memory_, std::move(outputs));
      exec::detail::check_step(graph_, plan_, memory_, given_, pass->used(), batches_, batch, 0);
      return std::vector<exec::shared_fact>{{"outputs with hash", names.value(),
                                             exec::shared_fact::kind::hash}};
    });
    run_all(batch, {.step = run_.steps, .seed = run_.seed}, nullptr, &*pass);
    std::map<std::string, std::vector<scalar>> r;
    run_.attempt([&] { r = pass->outputs(run_.world); });
    return r;
  }
  /// The loss of a batch: what a step would say that dropped nothing out, and that changed nothing.
  double evaluate(host_batch const& batch) {
    return detail::mean(evaluate(batch, {detail::name_of_loss(graph_)}).begin()->second);
  }

 private:
  using tasks_type = exec::detail::worker_tasks<Compute, Comm>;
  using memory_type = typename tasks_type::memory_type;
  using evaluation = detail::evaluation<scalar, memory_type>;
  static constexpr bool queued = tasks_type::queued, orders_messages = tasks_type::orders_messages;
  training_graph graph_;
  tensorpar::plan plan_;
  tensorpar::program program_;
  mutable exec::detail::joined_run<typename Comm::world> run_;   // also reading may take the other processes
  std::vector<std::optional<Comm>> endpoints_;      // by lane and device: see worker_tasks
  std::vector<std::optional<Compute>> compute_;     // by device
  core::thread_pool workers_;
  exec::detail::device_memory<scalar, memory_type> memory_;
  tasks_type tasks_;                                // of this process, ready to run
  std::vector<bool> given_;                         // by value: stored at least once
  std::vector<int> master_;                         // by value: see masters_of
  exec::traffic traffic_;                                 // of a step, where devices are queues
  detail::step_numbers told_;                       // the buffers that a step's result is read from
  exec::detail::batch_check batches_;

  struct ready_to_run {};
  template <class Make>
  executor(ready_to_run, planned_step s, Make const& make)
      : graph_(std::move(s.graph)),
        plan_(std::move(s.plan)),
        program_(std::move(s.program)),
        run_(plan_.cluster.size(), make),
        endpoints_(idx(plan_.cluster.size()) * tasks_type::endpoints_on(plan_.cluster)),
        compute_(exec::detail::policies_for<Compute>(run_.local, exec::detail::seats(run_.world, run_.local),
                                               plan_.cluster.size(), make)),
        workers_(static_cast<int>(run_.local.size() * tasks_type::workers_on(plan_.cluster)),
                 core::pool_start::now),
        memory_(program_, run_.local, exec::detail::memories_of(compute_, run_.local)) {
    get_ready();
  }
  /// Joins the world, and prepares what every step needs.
  void get_ready() {
    int const lanes = tasks_type::lanes_on(plan_.cluster);
    if constexpr (tasks_type::overlaps && tasks_type::several_lanes) run_.world.open_lanes(lanes);
    for (int d : run_.local)
      for (std::size_t l = 0; l < tasks_type::endpoints_on(plan_.cluster); ++l)
        exec::detail::join(endpoints_[l * idx(devices()) + idx(d)], run_.world, d, static_cast<int>(l),
                           memory_.memory(d));
    if constexpr (queued && tasks_type::several_lanes)
      for (int d : run_.local) endpoints_[idx(d)]->open_lanes(lanes);
    run_.departure.together(true);
    if constexpr (queued)
      exec::detail::connect(run_.world, endpoints_, run_.local,
                      traffic_ = exec::detail::announced(graph_, plan_, program_), workers_);
    else if constexpr (exec::spans_processes<typename Comm::world>)
      exec::detail::require_one_program(run_.world, run_.local, devices(),
                                  exec::detail::whole_hash(graph_, plan_, program_));
    run_.departure.together(false);
    given_.assign(graph_.graph.values.size(), false);
    master_ = exec::detail::masters_of(graph_.graph);
    told_ = detail::told_by_step(graph_, program_);
    batches_ = exec::detail::batch_check(graph_.graph);
    tasks_.make(graph_, program_, plan_.cluster, run_.local, memory_, endpoints_);
  }

  /// Runs the whole program, or what `only` needs of it. Throws a failing task's error.
  void run_all(host_batch const& batch, exec::step_state const& state, timeline* record, evaluation* only) {
    std::size_t const workers = tasks_.order.size();
    std::vector<std::vector<span>> spans(workers);
    std::vector<std::exception_ptr> errors(workers);
    exec::traffic const messages = only && orders_messages ? only->messages() : exec::traffic{};
    std::vector<exec::detail::worker_place> at;
    for (std::size_t w = 0; w < workers; ++w)
      at.push_back({run_.local[w / tasks_.workers_each], program_.tasks.size()});
    bool const sound = !run_.world.failure();
    for (auto& p : tasks_.progress) p->restart();
    auto const t0 = std::chrono::steady_clock::now();
    exec::detail::worker_run<Compute, Comm, evaluation> work{
        graph_.graph, program_, tasks_, memory_, endpoints_, compute_, run_.local, run_.world, traffic_,
        messages, batch, state, record != nullptr, only, t0, at, errors, spans};
    workers_.run_each(work);
    if (std::any_of(errors.begin(), errors.end(), [](auto const& e) { return e != nullptr; }))
      run_.throw_failure(program_, at, only && sound);     // an evaluation changes nothing that is kept
    if (record) *record = exec::detail::timeline_of(std::move(spans));
  }
};

}  // namespace tensorpar
