// tensorpar/exec/evaluation.hpp - forward operators alone: the tasks that some outputs need, and outputs read
// where they are made
#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/comm/traffic.hpp>
#include <tensorpar/exec/device/kernel.hpp>
#include <tensorpar/exec/step/device_memory.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>
#include <utility>
#include <vector>

namespace tensorpar::detail {

/// An operator when nothing is trained: dropout drops nothing.
inline op::any_op evaluated(op::any_op const& o) { return o.is<dropout>() ? op::any_op(dropout{0, 0}) : o; }

/// By task: is it needed to make these buffers from inputs and from what is kept between steps? So are the
/// tasks before which the host feeds an input that they read, and the other halves of exchanges. Law: in
/// program order they make of those buffers what the whole program makes, as each buffer lives no longer than
/// it did. O(operands).
inline std::vector<char> tasks_behind(program const& p, computation_graph const& g,
                                      std::vector<int> const& buffers) {
  std::vector<char> task(p.tasks.size(), 0), made(p.buffers.size(), 0);
  for (int b : buffers) made[idx(b)] = 1;
  // from the end: updates of what is read here have been passed by then
  for (std::size_t i = p.tasks.size(); i-- > 0;) {
    tensorpar::task const& t = p.tasks[i];
    for (int b : t.out) task[i] = task[i] || made[idx(b)];
    if (!task[i]) continue;
    if (t.kind == task_kind::receive) task[idx(t.other_half)] = 1;
    for (int b : t.in) {
      buffer const& q = p.buffers[idx(b)];
      made[idx(b)] = 1;
      if (q.value >= 0 && g.value(q.value).role == value_role::input)
        task[idx(q.first)] = 1;
    }
  }
  return task;
}

/// Outputs of one pass, taken from the devices' memory right after the tasks that make them: later ones may
/// have their place. Outlived by program, graph and memory.
template <class Scalar, class Memory> class evaluation {
  struct piece {                                   // of an output: one micro-batch
    std::size_t name;
    int buffer;
    // by device of the buffer; empty: a copy of another one's, or of another process
    std::vector<std::vector<Scalar>> part;
  };
  program const& program_;
  exec::detail::device_memory<Scalar, Memory> const& memory_;
  std::vector<std::string> names_;
  std::vector<piece> pieces_;                      // by name, then by sample
  std::map<std::size_t, std::vector<std::size_t>> made_at_;          // by task: pieces
  std::vector<char> needed_;                       // by task
  std::vector<bool> used_;                         // by value: is it an input that this process feeds?
  op::any_op const all_kept_ = dropout{0, 0};

  buffer const& buffer_of(piece const& p) const {
    return program_.buffers[idx(p.buffer)];
  }
  /// By value of the graph: the buffers that operators make it in, by micro-batch, each with its task.
  using makers = std::map<int, std::map<int, std::pair<int, std::size_t>>>;
  makers made(computation_graph const& g) const {
    makers r;
    for (graph_port const& o : g.outputs) r[o.value];
    for (std::size_t i = 0; i < program_.tasks.size(); ++i)
      if (task const& t = program_.tasks[i]; t.kind == task_kind::compute)
        for (int b : t.out)
          if (auto const v = r.find(program_.buffers[idx(b)].value); v != r.end())
            v->second.emplace(t.micro_batch, std::pair(b, i));
    return r;
  }
  [[noreturn, gnu::cold]] void refuse(std::string const& name, computation_graph const& g,
                                      makers const& all) const {
    std::string valid;
    bool known = false;
    for (graph_port const& o : g.outputs) {
      if (o.name == name && g.value(o.value).producer < 0)
        throw error("output '" + name + "' is handed over, not made", "evaluate",
                    "the batch, or fetch of a parameter");
      known = known || o.name == name;
      bool const there = !all.at(o.value).empty() && valid.find("'" + o.name + "'") == valid.npos;
      if (there) valid += (valid.empty() ? "'" : ", '") + o.name + "'";
    }
    throw error(
        known ? "no task of the program leaves output '" + name + "'"
              : "the model has no output '" + name + "'",
        "evaluate",
        (valid.empty() ? std::string("none") : valid) + (known ? ", or a program without fused tasks" : ""));
  }

 public:
  /// Throws `error` for a name that is no output of the model, and for an output that no task leaves in
  /// memory.
  evaluation(training_graph const& t, program const& p,
             exec::detail::device_memory<Scalar, Memory> const& memory, std::vector<std::string> names)
      : program_(p), memory_(memory), used_(t.graph.values.size(), false) {
    for (std::string& n : names)
      if (std::find(names_.begin(), names_.end(), n) == names_.end()) names_.push_back(std::move(n));
    auto const all = made(t.graph);
    std::vector<int> buffers;
    for (std::size_t k = 0; k < names_.size(); ++k) {
      std::size_t const before = pieces_.size();
      for (int m = 0; m < p.micro_batches; ++m)
        for (graph_port const& o : t.graph.outputs) {
          if (o.name != names_[k]) continue;
          auto const b = all.at(o.value).find(m);
          if (b == all.at(o.value).end()) refuse(names_[k], t.graph, all);
          if (is_integer(t.graph.type(o.value).type))
            throw error("output '" + o.name + "' holds indices", "evaluate", "an output of real numbers");
          made_at_[b->second.second].push_back(pieces_.size());
          pieces_.push_back({k, b->second.first, {}});
          pieces_.back().part.resize(buffer_of(pieces_.back()).devices.size());
          buffers.push_back(b->second.first);
        }
      if (pieces_.size() == before) refuse(names_[k], t.graph, all);
    }
    needed_ = tasks_behind(p, t.graph, buffers);
    for (std::size_t i = 0; i < p.tasks.size(); ++i) {
      bool here = false;
      for (int d : p.tasks[i].devices) here = here || memory.here(d);
      if (!here || !needed_[i] || p.tasks[i].kind != task_kind::compute) continue;
      for (int b : p.tasks[i].in)
        if (int const x = p.buffers[idx(b)].value; x >= 0)
          used_[idx(x)] = true;
    }
  }
  bool needs(std::size_t task) const { return needed_[task]; }
  /// Who talks to whom in this pass.
  exec::traffic messages() const { return exec::traffic_of(program_, &needed_); }
  /// By value: does a task read it here?
  std::vector<bool> const& used() const { return used_; }
  /// The call as it is when nothing is trained.
  void adapt(exec::kernel_call& c) const {
    if (!c.op->is<dropout>()) return;
    c.op = &all_kept_;
    c.arguments = nullptr;
  }
  /// After `task`, before anything else, on each of its devices; those at the same time. `arrive`: returns
  /// when the device has done the task, or throws: a read that waited itself would wait for ever behind what
  /// never ends.
  template <class Arrive> void take(std::size_t task, int device, Arrive const& arrive) {
    auto const at = made_at_.find(task);
    if (at == made_at_.end()) return;
    arrive();
    for (std::size_t k : at->second) {
      piece& p = pieces_[k];
      buffer const& q = buffer_of(p);
      if (!memory_.has(p.buffer, device) || !exec::detail::is_first_copy(q.where, device)) continue;
      auto const i = idx(std::lower_bound(q.devices.begin(), q.devices.end(), device) -
                                              q.devices.begin());
      p.part[i].resize(idx(ir::part_of(q.where, q.type).elements()));
      exec::detail::read_reals(memory_.memory(device), p.part[i], memory_.address(p.buffer, device),
                               q.type.type);
    }
  }
  /// After the pass: whole outputs by name, one micro-batch after the other, on every process. Parts of a sum
  /// are added up.
  template <class World> std::map<std::string, std::vector<Scalar>> outputs(World& world) const {
    std::map<std::string, std::vector<Scalar>> r;
    for (piece const& p : pieces_) {
      buffer const& q = buffer_of(p);
      op::tensor_block const whole = ir::block_of(ir::layout{}, q.type, std::vector<i64>{});
      std::vector<Scalar> all(idx(q.type.elements())), part;
      for (std::size_t k = 0; k < q.devices.size(); ++k) {
        int const d = q.devices[k];
        if (!exec::detail::is_first_copy(q.where, d)) continue;
        op::tensor_block const mine = ir::block_of(q.where, q.type, d);
        part = p.part[k];
        part.resize(idx(mine.elements()));
        exec::detail::share(world, d, part.data(), part.size() * sizeof(Scalar));
        exec::add_box(mine, mine, part.data(), whole, all.data());
      }
      std::vector<Scalar>& to = r[names_[p.name]];
      to.insert(to.end(), all.begin(), all.end());
    }
    return r;
  }
};

}  // namespace tensorpar::detail
