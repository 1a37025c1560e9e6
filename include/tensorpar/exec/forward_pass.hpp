// tensorpar/exec/forward_pass.hpp - the forward operators alone, on one device of this process
#pragma once
#include <tensorpar/check/check.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/exec/step/batch_check.hpp>
#include <tensorpar/program/training.hpp>

namespace tensorpar {

/// Runs a forward graph on the caller's thread: for accuracies, samples, comparisons. Nothing is dropped out.
/// Its parameters come from a trained executor, by name, from a file (exec/files/parameters_file.hpp) or one
/// by one.
template <exec::compute_policy Compute> class forward_pass {
 public:
  using scalar = typename Compute::scalar_type;

  /// `forward` has its symbols bound; its batch need not be that of the training graph. The program is
  /// checked before it is kept (check/check.hpp). Throws `error` for operators without kernels.
  explicit forward_pass(computation_graph const& forward) {
    graph_.graph = forward;
    graph_.forward_nodes = forward.node_count();
    graph_.gradient.assign(forward.values.size(), -1);
    graph_.home.assign(forward.values.size(), -1);
    for (int v = 0; v < forward.node_count(); ++v) {
      graph_.graph.node(v).origin = v;
      graph_.graph.node(v).op = detail::evaluated(forward.node(v).op);
      for (int x : forward.node(v).in)
        if (forward.value(x).role == value_role::parameter && graph_.home[idx(x)] < 0)
          graph_.home[idx(x)] = v;
    }
    exec::detail::require_kernels<Compute>(forward, "forward_pass");
    plan p = one_device_plan(graph_.graph);
    p.graph = ir::forward_part_hash(graph_);
    p.scalar_bytes = sizeof(scalar);
    program_ = unroll(graph_, p, {.workspace = &Compute::workspace, .forward_only = true});
    require_correct(graph_, p, program_, "forward_pass", false);
    memory_ = memory(program_.arena[0], exec::detail::memory_in(compute_));
    given_.assign(forward.values.size(), false);
    used_.assign(forward.values.size(), false);
    batches_ = exec::detail::batch_check(graph_.graph);
    prepare();
  }

  /// With forward operators alone.
  training_graph const& graph() const { return graph_; }
  tensorpar::program const& program() const { return program_; }

  /// Copies every parameter of a trained executor (or another forward pass), by name. Statistics of batch
  /// norm that the trained model does not have (ir/running_statistics.hpp) keep the values that they were
  /// given. Throws `error` if they were given none, where any other parameter is missing or one has another
  /// size, and for an executor whose parameters have no values yet.
  template <class Executor> void take_parameters(Executor const& trained) {
    if constexpr (requires { trained.has_values(); })
      if (!trained.has_values())
        throw error("the executor's parameters have no values yet", "forward_pass",
                    "an executor that has them");
    for (buffer const& b : program_.buffers) {
      if (!b.persistent) continue;
      std::string const& name = graph_.graph.value(b.value).name;
      int from = -1;
      computation_graph const& g = trained.graph().graph;
      for (std::size_t x = 0; x < g.values.size(); ++x)
        if (g.values[x].role == value_role::parameter && g.values[x].name == name) from = static_cast<int>(x);
      if (from < 0) {
        bool statistics = false;
        for (graph_node const& n : graph_.graph.nodes)
          statistics = statistics || ir::detail::running_statistics_of(graph_.graph, n) == b.value;
        if (statistics && given_[idx(b.value)]) continue;
        throw error("the trained model has no parameter '" + name + "'", "forward_pass",
                    statistics ? "statistics that were stored here before: batch_moments or load_parameters"
                               : op::spell(b.type) + " there");
      }
      std::vector<scalar> const all = trained.fetch(from);
      if (static_cast<i64>(all.size()) != b.type.elements())
        throw error("the trained model has no parameter '" + name + "' of this size", "forward_pass",
                    op::spell(b.type));
      store(b.value, all);
    }
  }
  /// No parameter has values any more, until each is stored again.
  void forget() { given_.assign(given_.size(), false); }
  bool has_values() const {
    for (buffer const& b : program_.buffers)
      if (b.persistent && !given_[idx(b.value)]) return false;
    return true;
  }
  /// Writes a whole parameter, and reads it; as those of an executor.
  void store(int value, std::vector<scalar> const& all) {
    buffer const* b = parameter(value);
    if (!b) return;
    if (static_cast<i64>(all.size()) != b->type.elements())
      throw error("value '" + graph_.graph.value(value).name + "' is given " + std::to_string(all.size()) +
                      " elements",
                  "forward_pass", std::to_string(b->type.elements()));
    exec::detail::write_reals(memory_.memory(), at(*b), all, b->type.type);
    given_[idx(value)] = true;
  }
  std::vector<scalar> fetch(int value) const {
    buffer const* b = parameter(value);
    return b ? read(*b) : std::vector<scalar>{};
  }

  /// One forward pass. The result stays valid until the next. Throws `error` where a parameter has no values
  /// yet, and for a batch that is not what the model takes (exec/step/batch_check.hpp); the next one is run
  /// as if nothing had happened.
  void run(host_batch const& batch) {
    ran_ = false;
    batches_.require(graph_.graph, used_, batch, 1, "forward_pass");
    for (buffer const& b : program_.buffers)
      if (b.persistent && !given_[idx(b.value)])
        throw error("parameter '" + graph_.graph.value(b.value).name + "' has no values yet", "forward_pass",
                    "take_parameters, load_parameters or store before a pass");
    for (std::size_t i = 0; i < program_.tasks.size(); ++i) {
      for (auto const& [k, value] : ready_[i].feeds)
        exec::detail::feed_box<scalar>(
            batch.find(graph_.graph.value(value).name)->second, 0, ready_[i].in[idx(k)],
            const_cast<void*>(ready_[i].in_at[idx(k)]), memory_.memory());
      compute_.run(exec::detail::call_of(program_.tasks[i], ready_[i]));
    }
    memory_.memory().wait();
    ran_ = true;
  }
  /// An output of the last pass. Throws `error` if the model has none of this name, or no pass has come to
  /// its end.
  std::vector<scalar> output(std::string_view name) const {
    int const x = graph_.graph.output(name);
    if (x >= 0 && is_integer(graph_.graph.type(x).type))
      throw error("output '" + std::string(name) + "' holds indices", "forward_pass",
                  "an output of real numbers");
    for (buffer const& b : program_.buffers)
      if (x >= 0 && b.value == x) {
        if (!ran_)
          throw error("output '" + std::string(name) + "' has no values yet", "forward_pass",
                      "a pass that came to its end");
        return read(b);
      }
    throw error("the model has no output '" + std::string(name) + "'", "forward_pass",
                "an output of the model");
  }

 private:
  using memory = exec::detail::arena_memory<exec::detail::memory_of<Compute>>;
  training_graph graph_;
  tensorpar::program program_;
  struct alone {};                                          // no group: nothing is communicated
  std::vector<exec::detail::prepared_task<alone>> ready_;         // by task
  // by value: stored at least once; an input that is read
  std::vector<bool> given_, used_;
  exec::detail::batch_check batches_;
  bool ran_ = false;
  Compute compute_ = exec::detail::made_for<Compute>({});
  memory memory_{0, exec::detail::memory_in(compute_)};

  buffer const& buffer_of(int b) const { return program_.buffers[idx(b)]; }
  void prepare() {
    ready_.resize(program_.tasks.size());
    for (std::size_t i = 0; i < program_.tasks.size(); ++i) {
      task const& t = program_.tasks[i];
      exec::detail::prepared_task<alone>& r = ready_[i];
      for (std::size_t k = 0; k < t.in.size(); ++k) {
        buffer const& q = buffer_of(t.in[k]);
        r.in.push_back(ir::block_of(q.where, q.type, 0));
        r.in_at.push_back(at(q));
        bool again = false;
        for (std::size_t j = 0; j < k; ++j) again = again || t.in[j] == t.in[k];
        if (!again && graph_.graph.value(q.value).role == value_role::input && q.first == static_cast<int>(i))
          r.feeds.push_back({static_cast<int>(k), q.value}), used_[idx(q.value)] = true;
      }
      for (int b : t.out) {
        r.out.push_back(ir::block_of(buffer_of(b).where, buffer_of(b).type, 0));
        r.out_at.push_back(at(buffer_of(b)));
      }
      if (t.workspace >= 0) r.workspace = at(buffer_of(t.workspace));
    }
  }
  /// Its buffer; null for one that no operator reads. Throws `error` for a value that is no parameter.
  buffer const* parameter(int value) const {
    bool const known = value >= 0 && idx(value) < graph_.graph.values.size();
    if (!known || graph_.graph.value(value).role != value_role::parameter)
      throw error("value " + std::to_string(value) + " is no parameter", "forward_pass",
                  "a parameter of the model");
    for (buffer const& b : program_.buffers) if (b.persistent && b.value == value) return &b;
    return nullptr;
  }
  std::vector<scalar> read(buffer const& b) const {
    std::vector<scalar> all(idx(b.type.elements()));
    exec::detail::read_reals(memory_.memory(), all, at(b), b.type.type);
    return all;
  }
  std::byte* at(buffer const& b) const { return memory_.data() + b.offset[0]; }
};

}  // namespace tensorpar
