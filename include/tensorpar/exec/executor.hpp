// tensorpar/exec/executor.hpp - a plan's program, run: one worker per device, one arena per device, any scalar
#pragma once
#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <optional>
#include <tensorpar/exec/arena_memory.hpp>
#include <tensorpar/exec/concepts.hpp>
#include <tensorpar/exec/host.hpp>
#include <tensorpar/exec/kernel.hpp>
#include <tensorpar/exec/move.hpp>
#include <tensorpar/exec/random.hpp>
#include <tensorpar/exec/scalar.hpp>
#include <tensorpar/exec/workers.hpp>
#include <tensorpar/plan/program_hash.hpp>
#include <tensorpar/plan/tasks.hpp>
#include <tensorpar/plan/timeline.hpp>

namespace tensorpar {

struct step_result {
  double loss = 0;             // mean over the batch
  double seconds = 0;
};

/// Runs a plan's program in this process. Compute: a compute policy (exec/concepts.hpp) with its scalar; Comm: a communicator whose `hub`
/// joins one endpoint per device. Every device's memory is one arena of exactly program().arena[d] bytes, allocated here and never again.
/// A failing task stops every device; `step` throws that task's error, and the executor refuses further steps.
template <compute_policy Compute, class Comm>
  requires(require_communicator<Comm, typename Compute::scalar_type>())   // full_communicator, or the name of what is missing
class executor {
 public:
  using scalar = typename Compute::scalar_type;

  /// Throws `error` if the plan does not fit the graph or was sealed with another program (plan/certificate.hpp). The plan's scalar size is
  /// replaced by the policy's. Where the plan saves memory (plan/memory_saving.hpp), graph and plan are those of its step.
  executor(training_graph graph, plan p)
      : executor(p.saves_memory() ? save_memory(graph, p) : saving_step{std::move(graph), std::move(p)}) {}
  /// The same with a program that was unrolled before (and maybe transformed since) for this graph, this plan and this scalar's size.
  executor(training_graph graph, plan p, tensorpar::program const& made) : executor(std::move(graph), std::move(p), &made) {}
  /// A pipeline's step (plan/expand.hpp). A batch is one mini-batch.
  explicit executor(pipelined_step const& s) : executor(s.graph, s.plan, as_sealed(unroll(resized(s), &Compute::workspace), s.plan)) {}
  /// A step that saves memory (plan/memory_saving.hpp).
  explicit executor(saving_step s) : executor(std::move(s.graph), std::move(s.plan), nullptr) {}

  tensorpar::program const& program() const { return program_; }
  training_graph const& graph() const { return graph_; }
  tensorpar::plan const& plan_value() const { return plan_; }
  int devices() const { return plan_.cluster.size(); }
  std::vector<i64> allocated_bytes() const {
    std::vector<i64> r;
    for (auto const& a : arenas_) r.push_back(a.size());
    return r;
  }

  /// Parameters from their `init` and zero optimizer state, by seed and logical index alone: the same under every plan.
  void initialise(u64 seed) {
    seed_ = seed;
    u64 stream = 0;
    for (std::size_t x = 0; x < graph_.gradient.size(); ++x) {
      graph_value const& v = graph_.graph.values[x];
      if (v.role != value_role::parameter) continue;
      std::vector<scalar> all(static_cast<std::size_t>(v.type.elements()));
      for (std::size_t i = 0; i < all.size(); ++i)
        all[i] = scalar_traits<scalar>::from_double(initial_value(v.start, v.type, i, seed, stream));
      store(static_cast<int>(x), all);
      ++stream;
    }
    for (std::size_t x = 0; x < graph_.graph.values.size(); ++x)
      if (graph_.graph.values[x].role == value_role::state)
        store(static_cast<int>(x), std::vector<scalar>(static_cast<std::size_t>(graph_.graph.values[x].type.elements()), scalar(0)));
    steps_ = 0;
  }

  /// Writes a whole parameter or state into every device's part. Values that no task reads have no buffer and are skipped.
  void store(int value, std::vector<scalar> const& all) {
    int const b = persistent_of(value);
    if (b < 0) return;
    buffer const& q = program_.buffers[static_cast<std::size_t>(b)];
    if (static_cast<i64>(all.size()) != q.type.elements())
      throw error("value '" + graph_.graph.value(value).name + "' is given " + std::to_string(all.size()) + " elements", "executor",
                  std::to_string(q.type.elements()));
    tensor_block const whole = block_of(layout{}, q.type, std::vector<i64>{});
    for (int d : q.devices) {
      tensor_block const mine = block_of(q.where, q.type, d);
      copy_box(mine, whole, all.data(), mine, reinterpret_cast<scalar*>(address(b, d)));
    }
  }
  /// The whole of a parameter or state. Empty if it has no buffer.
  std::vector<scalar> fetch(int value) const {
    int const b = persistent_of(value);
    if (b < 0) return {};
    buffer const& q = program_.buffers[static_cast<std::size_t>(b)];
    std::vector<scalar> all(static_cast<std::size_t>(q.type.elements()));
    tensor_block const whole = block_of(layout{}, q.type, std::vector<i64>{});
    for (int d : q.devices) {
      tensor_block const mine = block_of(q.where, q.type, d);
      copy_box(mine, mine, reinterpret_cast<scalar const*>(address(b, d)), whole, all.data());
    }
    return all;
  }
  /// Do all copies of every parameter and state agree in every bit?
  bool copies_agree() const {
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      buffer const& q = program_.buffers[b];
      if (!q.persistent || q.where.degree(part_kind::copy) == 1) continue;
      for (int d : q.devices)
        for (int e : q.devices) {
          if (e <= d) continue;
          tensor_block const x = block_of(q.where, q.type, d), y = block_of(q.where, q.type, e);
          if (std::equal(x.offset, x.offset + x.rank, y.offset) &&
              std::memcmp(address(static_cast<int>(b), d), address(static_cast<int>(b), e), static_cast<std::size_t>(q.bytes)) != 0)
            return false;
        }
    }
    return true;
  }

  /// Has a step failed? Parameters may then be half updated.
  bool failed() const { return failed_; }
  u64 steps() const { return steps_; }
  void set_steps(u64 n) { steps_ = n; }
  u64 seed() const { return seed_; }
  void set_seed(u64 s) { seed_ = s; }

  /// One training step on a batch of micro_batches * the graph's own batch. `record`, if given, receives what happened when.
  step_result step(host_batch const& batch, double learning_rate, timeline* record = nullptr) {
    if (failed_) throw error("this executor has failed before", "executor", "a new executor");
    for (std::size_t x = 0; x < graph_.gradient.size(); ++x) {
      graph_value const& v = graph_.graph.values[x];
      if (v.role != value_role::input || !used_input_[x]) continue;
      auto const it = batch.find(v.name);
      if (it == batch.end()) throw error("the batch lacks input '" + v.name + "'", "batch", "every input of the model");
      check_input(v.name, it->second, v.type, plan_.micro_batches * v.parts);
    }
    std::vector<std::vector<span>> spans(static_cast<std::size_t>(devices()));
    std::vector<std::exception_ptr> errors(static_cast<std::size_t>(devices()));
    std::vector<std::size_t> at(static_cast<std::size_t>(devices()), 0);           // the task that each device is at
    step_state const state{.step = steps_, .seed = seed_, .learning_rate = learning_rate};
    auto const t0 = std::chrono::steady_clock::now();
    auto work = [&](int d) {
      try {
        Comm& comm = endpoints_[static_cast<std::size_t>(d)];
        for (std::size_t i : mine_[static_cast<std::size_t>(d)]) {
          auto const a = std::chrono::steady_clock::now();
          at[static_cast<std::size_t>(d)] = i;
          run(d, i, batch, state, comm);
          if (record) {
            task const& t = program_.tasks[i];
            std::chrono::duration<double> const s = a - t0, e = std::chrono::steady_clock::now() - t0;
            spans[static_cast<std::size_t>(d)].push_back(
                {d, t.kind == task_kind::compute ? lane::compute : lane::communication, static_cast<int>(i), t.name, s.count(), e.count()});
          }
        }
        at[static_cast<std::size_t>(d)] = program_.tasks.size();
      } catch (...) {
        errors[static_cast<std::size_t>(d)] = std::current_exception();
        hub_.fail(std::current_exception(), d);
      }
    };
    workers_.run(work);
    for (auto const& e : errors) if (e) failed_ = true;
    if (failed_) rethrow_with_tasks(at);
    step_result r;
    r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count();
    r.loss = loss();
    if (record) {
      record->spans.clear();
      record->seconds = 0;
      for (auto& s : spans) for (span& x : s) { record->seconds = std::max(record->seconds, x.end); record->spans.push_back(std::move(x)); }
      std::stable_sort(record->spans.begin(), record->spans.end(), [](span const& a, span const& b) {
        return a.device != b.device ? a.device < b.device : a.where != b.where ? a.where < b.where : a.start < b.start;
      });
    }
    ++steps_;
    return r;
  }

 private:
  /// What a device prepares once for a task.
  struct prepared {
    std::vector<tensor_block> in, out;
    std::vector<void const*> in_at;
    std::vector<void*> out_at;
    std::vector<std::pair<int, int>> feeds;        // (operand, value): inputs that the host writes before this task
    void* workspace = nullptr;
    bool first_share = true;
    prepared_move move;
    std::optional<typename Comm::group> group;
  };

  training_graph graph_;
  tensorpar::plan plan_;
  tensorpar::program program_;
  typename Comm::hub hub_;
  std::vector<Comm> endpoints_;
  Compute compute_;
  detail::worker_pool workers_;
  std::vector<detail::arena_memory> arenas_;
  std::vector<std::vector<std::size_t>> mine_;      // by device: its tasks
  std::vector<std::vector<prepared>> ready_;        // by device, parallel to mine_
  std::vector<std::vector<std::size_t>> slot_;      // by task: position in mine_ of each device (by device number)
  std::vector<bool> used_input_;
  std::vector<int> losses_;                         // buffers that forward operators write the loss to, its shares one by one
  u64 steps_ = 0, seed_ = 0;
  bool failed_ = false;

  executor(training_graph graph, plan p, tensorpar::program const* made)
      : graph_(std::move(graph)),
        plan_(sized(std::move(p))),
        program_(made ? *made : as_sealed(unroll(graph_, plan_, &Compute::workspace), plan_)),
        hub_(plan_.cluster.size()),
        workers_(plan_.cluster.size()) {
    for (graph_node const& n : graph_.graph.nodes)
      if (!Compute::supports(n.op))
        throw error("operator " + spell(n.op) + " has no kernel in this compute policy", "executor", "an operator of the policy");
    for (i64 bytes : program_.arena) arenas_.emplace_back(bytes);
    for (int d = 0; d < devices(); ++d) endpoints_.emplace_back(hub_, d);
    prepare();
  }

  /// The program, if it is the one that the plan was sealed with (or it was not).
  static tensorpar::program as_sealed(tensorpar::program q, tensorpar::plan const& p) {
    if (p.tasks && task_hash(q) != p.tasks)
      throw error("the plan's program has other tasks than those it was sealed with", "executor",
                  "the plan and the graph as they were sealed");
    return q;
  }
  static tensorpar::plan sized(tensorpar::plan p) { p.scalar_bytes = sizeof(scalar); return p; }
  static pipelined_step resized(pipelined_step s) { s.plan.scalar_bytes = sizeof(scalar); return s; }

  /// The first failure, with the tasks that devices were at: first the one that failed, then some of those that had not come to the end.
  [[noreturn]] void rethrow_with_tasks(std::vector<std::size_t> const& at) const {
    try {
      std::rethrow_exception(hub_.failure());
    } catch (error const& e) {
      int first = -1, told = 0;
      if constexpr (requires { hub_.failed_rank(); }) first = hub_.failed_rank();
      std::string where = e.where();
      auto tell = [&](int d) {
        std::size_t const i = at[static_cast<std::size_t>(d)];
        if (i >= program_.tasks.size() || ++told > 8) return;
        where.append(where.empty() ? "device " : ", device ").append(std::to_string(d)).append(" in task ").append(std::to_string(i));
        where.append(" (").append(program_.tasks[i].name).append(")");
      };
      if (first >= 0 && first < devices()) tell(first);
      for (int d = 0; d < devices(); ++d) if (d != first) tell(d);
      throw error(e.problem(), where, e.valid());
    }
  }

  std::byte* address(int b, int device) const {
    buffer const& q = program_.buffers[static_cast<std::size_t>(b)];
    auto const i = std::lower_bound(q.devices.begin(), q.devices.end(), device) - q.devices.begin();
    return arenas_[static_cast<std::size_t>(device)].data() + q.offset[static_cast<std::size_t>(i)];
  }
  bool has(int b, int device) const {
    auto const& d = program_.buffers[static_cast<std::size_t>(b)].devices;
    return std::binary_search(d.begin(), d.end(), device);
  }
  int persistent_of(int value) const {
    for (std::size_t b = 0; b < program_.buffers.size(); ++b)
      if (program_.buffers[b].persistent && program_.buffers[b].value == value) return static_cast<int>(b);
    return -1;
  }

  void prepare() {
    auto const n = static_cast<std::size_t>(devices());
    mine_.resize(n);
    ready_.resize(n);
    used_input_.assign(graph_.gradient.size(), false);
    std::vector<char> is_share(graph_.graph.values.size(), 0);
    for (int x : graph_.losses) is_share[static_cast<std::size_t>(x)] = 1;
    for (task const& t : program_.tasks)
      if (t.kind == task_kind::compute && !t.out.empty() && t.node < graph_.forward_nodes)
        if (int const x = program_.buffers[static_cast<std::size_t>(t.out[0])].value; x >= 0 && is_share[static_cast<std::size_t>(x)])
          losses_.push_back(t.out[0]);
    for (std::size_t i = 0; i < program_.tasks.size(); ++i) {
      task const& t = program_.tasks[i];
      for (int d : t.devices) {
        prepared p;
        auto put = [&](std::vector<int> const& side, std::vector<tensor_block>& blocks, auto& at) {
          for (int b : side) {
            buffer const& q = program_.buffers[static_cast<std::size_t>(b)];
            bool const here = has(b, d);
            blocks.push_back(here ? block_of(q.where, q.type, d) : tensor_block{});
            at.push_back(here ? address(b, d) : nullptr);
          }
        };
        put(t.in, p.in, p.in_at);
        put(t.out, p.out, p.out_at);
        if (t.workspace >= 0) p.workspace = address(t.workspace, d);
        if (t.kind != task_kind::compute) {
          p.move = prepare_move(t.step, program_.buffers[static_cast<std::size_t>((t.in.empty() ? t.out : t.in)[0])].type, d);
          std::vector<int> const& m = p.move.group.devices;
          if (!m.empty()) p.group.emplace(endpoints_[static_cast<std::size_t>(d)].make_group({m.data(), static_cast<int>(m.size())}));
        } else {
          p.first_share = is_first_share(t, d);
          for (std::size_t k = 0; k < t.in.size(); ++k) {
            buffer const& q = program_.buffers[static_cast<std::size_t>(t.in[k])];
            if (q.value < 0 || graph_.graph.value(q.value).role != value_role::input || q.first != static_cast<int>(i)) continue;
            bool again = false;
            for (auto const& f : p.feeds) again = again || t.in[static_cast<std::size_t>(f.first)] == t.in[k];
            if (!again) p.feeds.push_back({static_cast<int>(k), q.value});
            used_input_[static_cast<std::size_t>(q.value)] = true;
          }
        }
        mine_[static_cast<std::size_t>(d)].push_back(i);
        ready_[static_cast<std::size_t>(d)].push_back(std::move(p));
      }
    }
    slot_.assign(program_.tasks.size(), std::vector<std::size_t>(n, 0));
    for (std::size_t d = 0; d < n; ++d) for (std::size_t k = 0; k < mine_[d].size(); ++k) slot_[mine_[d][k]][d] = k;
  }

  /// Of the devices that hold partial sums of one result, exactly one has all digits over reduced loops zero.
  bool is_first_share(task const& t, int d) const {
    graph_node const& n = graph_.graph.node(t.node);
    iteration_space const space = space_of(graph_.graph, t.node);
    layout grid{t.grid.start, {}};
    for (grid_axis const& a : t.grid.axes) grid.axes.push_back({part_kind::copy, -1, a.degree, a.stride});
    auto const c = grid.coordinates(d);
    for (std::size_t k = 0; k < t.grid.axes.size(); ++k) {
      node_loop const* l = followed(space, n.letters, t.grid.axes[k].letter);
      if (l && l->reduced && c[k] != 0) return false;
    }
    return true;
  }

  void run(int d, std::size_t i, host_batch const& batch, step_state state, Comm& comm) {
    task const& t = program_.tasks[i];
    prepared& p = ready_[static_cast<std::size_t>(d)][slot_[i][static_cast<std::size_t>(d)]];
    if (t.kind != task_kind::compute) {
      scalar const* src = p.in_at.empty() ? nullptr : static_cast<scalar const*>(p.in_at[0]);
      scalar* dst = p.out_at.empty() ? nullptr : static_cast<scalar*>(p.out_at[0]);
      // halves of different exchanges may pass one another, so each has a tag of its own
      int const tag = t.kind == task_kind::move ? 0 : 1 + (t.kind == task_kind::send ? static_cast<int>(i) : t.other_half);
      run_move(t.step, p.move, src, dst, static_cast<scalar*>(p.workspace), comm, p.group, tag);
      return;
    }
    for (auto const& [k, value] : p.feeds)
      feed(value, t.micro_batch + graph_.graph.value(value).part, batch, p.in[static_cast<std::size_t>(k)],
           const_cast<void*>(p.in_at[static_cast<std::size_t>(k)]));
    kernel_call c;
    c.op = &t.op;
    c.inputs = static_cast<int>(p.in.size());
    c.outputs = static_cast<int>(p.out.size());
    c.in = p.in_at.data();
    c.in_block = p.in.data();
    c.out = p.out_at.data();
    c.out_block = p.out.data();
    c.workspace = p.workspace;
    c.first_share = p.first_share;
    c.state = state;
    c.state.micro_batch = static_cast<u64>(t.micro_batch + graph_.graph.node(t.node).part);
    compute_.run(c);
  }

  /// The host writes this device's box of a micro-batch of an input.
  void feed(int value, int micro, host_batch const& batch, tensor_block const& box, void* to) const {
    host_tensor const& h = batch.find(graph_.graph.value(value).name)->second;
    i64 const skip = micro * box.logical_elements();
    tensor_block whole = box;
    for (int k = 0; k < box.rank; ++k) { whole.local[k] = box.global[k]; whole.offset[k] = 0; }
    if (is_integer(box.type)) { copy_box(box, whole, h.index.data() + skip, box, static_cast<std::int32_t*>(to)); return; }
    float const* src = h.real.data() + skip;
    scalar* dst = static_cast<scalar*>(to);
    detail::rows_of(box, whole, box, [&](i64 a, i64 b, i64 n) {
      for (i64 i = 0; i < n; ++i) dst[b + i] = scalar_traits<scalar>::from_double(static_cast<double>(src[a + i]));
    });
  }

  /// The loss: its partial sums added, averaged over micro-batches.
  double loss() const {
    double total = 0;
    for (int made : losses_) {
      buffer const& q = program_.buffers[static_cast<std::size_t>(made)];
      for (i64 k = 0, n = q.where.size(); k < n; ++k) {
        int const d = q.where.device(k);
        auto const c = q.where.coordinates(d);
        bool counted = true;
        for (std::size_t a = 0; a < q.where.axes.size(); ++a) counted = counted && (q.where.axes[a].kind != part_kind::copy || c[a] == 0);
        if (counted) total += to_double(*reinterpret_cast<scalar const*>(address(made, d)));
      }
    }
    return total / (plan_.micro_batches * std::max<double>(1, static_cast<double>(graph_.losses.size())));
  }
  static double to_double(scalar x) {
    if constexpr (std::floating_point<scalar>) return static_cast<double>(x);
    else return 0;                                   // a field element has no size
  }
};

}  // namespace tensorpar
