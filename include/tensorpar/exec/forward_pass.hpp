// tensorpar/exec/forward_pass.hpp - the forward operators alone, on one device of this process
#pragma once
#include <algorithm>
#include <tensorpar/exec/executor.hpp>

namespace tensorpar {

/// Runs a forward graph on the caller's thread: for accuracies, samples, comparisons. Nothing is dropped out. Its parameters are stored by
/// name.
template <compute_policy Compute> class forward_pass {
 public:
  using scalar = typename Compute::scalar_type;

  /// `forward` has its symbols bound; its batch need not be that of the training graph.
  explicit forward_pass(computation_graph const& forward) {
    graph_.graph = forward;
    graph_.forward_nodes = forward.node_count();
    graph_.gradient.assign(forward.values.size(), -1);
    graph_.home.assign(forward.values.size(), -1);
    for (int v = 0; v < forward.node_count(); ++v) {
      graph_.graph.node(v).origin = v;
      if (forward.node(v).op.is<dropout>()) graph_.graph.node(v).op = dropout{0, 0};
      for (int x : forward.node(v).in)
        if (forward.value(x).role == value_role::parameter && graph_.home[static_cast<std::size_t>(x)] < 0)
          graph_.home[static_cast<std::size_t>(x)] = v;
    }
    detail::require_kernels<Compute>(forward, "forward_pass");
    plan p;
    p.cluster = make_cluster("one device", {}, 1, 1, {}, {});
    p.nodes.resize(forward.nodes.size());
    p.scalar_bytes = sizeof(scalar);
    program_ = unroll_forward(graph_, p, &Compute::workspace);
    memory_ = memory(program_.arena[0], detail::memory_in(compute_));
    taken_ = std::none_of(program_.buffers.begin(), program_.buffers.end(), [](buffer const& b) { return b.persistent; });
  }

  /// Copies every parameter of a trained executor, by name. Throws `error` if one is missing or has another size.
  template <class Executor> void take_parameters(Executor const& trained) {
    taken_ = ended_ = false;
    for (buffer const& b : program_.buffers) {
      if (!b.persistent) continue;
      std::string const& name = graph_.graph.value(b.value).name;
      int from = -1;
      computation_graph const& g = trained.graph().graph;
      for (std::size_t x = 0; x < g.values.size(); ++x)
        if (g.values[x].role == value_role::parameter && g.values[x].name == name) from = static_cast<int>(x);
      std::vector<scalar> const all = from < 0 ? std::vector<scalar>{} : trained.fetch(from);
      if (static_cast<i64>(all.size()) != b.type.elements())
        throw error("the trained model has no parameter '" + name + "' of this size", "forward_pass", spell(b.type));
      detail::write_reals(memory_.memory(), at(b), all, b.type.type);
    }
    taken_ = true;
  }

  /// One forward pass. The result stays valid until the next. Throws `error` before parameters have values.
  void run(host_batch const& batch) {
    ended_ = false;
    if (!taken_) throw error("the parameters have no values yet", "forward_pass", "take_parameters(a trained executor) before a pass");
    for (std::size_t i = 0; i < program_.tasks.size(); ++i) {
      task const& t = program_.tasks[i];
      std::vector<tensor_block> in, out;
      std::vector<void const*> in_at;
      std::vector<void*> out_at;
      for (int b : t.in) {
        buffer const& q = program_.buffers[static_cast<std::size_t>(b)];
        if (graph_.graph.value(q.value).role == value_role::input && q.first == static_cast<int>(i)) feed(q, batch);
        in.push_back(block_of(q.where, q.type, 0));
        in_at.push_back(at(q));
      }
      for (int b : t.out) {
        buffer const& q = program_.buffers[static_cast<std::size_t>(b)];
        out.push_back(block_of(q.where, q.type, 0));
        out_at.push_back(at(q));
      }
      kernel_call c;
      c.op = &t.op;
      c.inputs = static_cast<int>(in.size());
      c.outputs = static_cast<int>(out.size());
      c.in = in_at.data();
      c.in_block = in.data();
      c.out = out_at.data();
      c.out_block = out.data();
      if (t.workspace >= 0) c.workspace = at(program_.buffers[static_cast<std::size_t>(t.workspace)]);
      compute_.run(c);
    }
    ended_ = true;
  }
  /// An output of the last pass. Throws `error` if the model has none of this name, or that pass did not end.
  std::vector<scalar> output(std::string_view name) const {
    int const x = graph_.graph.output(name);
    if (x >= 0 && !ended_) throw error("no pass has ended well", "forward_pass", "run(batch) before its outputs are read");
    for (buffer const& b : program_.buffers)
      if (x >= 0 && b.value == x) {
        std::vector<scalar> all(static_cast<std::size_t>(b.type.elements()));
        detail::read_reals(memory_.memory(), all, at(b), b.type.type);
        return all;
      }
    throw error("the model has no output '" + std::string(name) + "'", "forward_pass", "an output of the model");
  }

 private:
  using memory = detail::arena_memory<detail::memory_of<Compute>>;
  training_graph graph_;
  program program_;
  Compute compute_ = detail::made_for<Compute>({});
  memory memory_{0, detail::memory_in(compute_)};
  bool taken_ = false, ended_ = false;               // have parameters values; has the last pass

  std::byte* at(buffer const& b) const { return memory_.data() + b.offset[0]; }
  void feed(buffer const& b, host_batch const& batch) const {
    std::string const& name = graph_.graph.value(b.value).name;
    auto const it = batch.find(name);
    if (it == batch.end()) throw error("the batch lacks input '" + name + "'", "forward_pass", "every input of the model");
    check_input(name, it->second, b.type, 1);
    detail::feed_box<scalar>(it->second, 0, block_of(b.where, b.type, 0), at(b), memory_.memory());
  }
};

}  // namespace tensorpar
