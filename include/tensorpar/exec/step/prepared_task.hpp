// tensorpar/exec/step/prepared_task.hpp - what a device finds out once about a task, so that a step only
// computes and moves
#pragma once
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/comm/move.hpp>
#include <tensorpar/exec/device/host.hpp>
#include <tensorpar/exec/device/kernel.hpp>
#include <tensorpar/exec/device/lanes.hpp>
#include <tensorpar/exec/device/narrow.hpp>
#include <tensorpar/exec/device/scalar.hpp>
#include <tensorpar/exec/step/device_memory.hpp>
#include <type_traits>
#include <utility>
#include <vector>

namespace tensorpar::exec::detail {

template <class Group> struct prepared_task {
  std::vector<op::tensor_block> in, out;
  std::vector<void const*> in_at;
  std::vector<void*> out_at;
  // (operand, value): inputs that the host writes before this task
  std::vector<std::pair<int, int>> feeds;
  void* workspace = nullptr;
  step_arguments const* arguments = nullptr;             // see kernel_call
  bool first_share = true;
  bool narrow = false;                           // moves numbers of two bytes
  prepared_move move;
  std::optional<Group> group;
};

/// What the kernel of a task that computes is handed, but for the step's numbers. Outlived by both.
template <class Group> kernel_call call_of(task const& t, prepared_task<Group> const& p) {
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
  c.arguments = p.arguments;
  return c;
}

/// Which micro-batch of the whole batch the call works on: the program's, or that of the graph, where it
/// holds several.
inline void place_in_batch(kernel_call& c, graph_node const& n, int micro_batch, int micro_batches) {
  c.state.micro_batch = static_cast<u64>(micro_batch + n.micro_batch);
  c.state.micro_batches = static_cast<u64>(micro_batches) * static_cast<u64>(n.micro_batches);
  c.sample_run = n.sample_run;
}

/// Of the devices among which a task splits a sum, exactly one has all digits over reduced loops zero: it
/// adds what is added once (a bias).
inline bool is_first_share(computation_graph const& g, task const& t, int d) {
  graph_node const& n = g.node(t.node);
  ir::iteration_space const space = ir::space_of(g, t.node);
  ir::layout mesh{t.mesh.start, {}};
  for (ir::mesh_axis const& a : t.mesh.axes)
    mesh.axes.push_back({ir::part_kind::replicate, -1, a.degree, a.stride});
  auto const c = mesh.coordinates(d);
  for (std::size_t k = 0; k < t.mesh.axes.size(); ++k) {
    ir::node_loop const* l = ir::followed(space, n.letters, t.mesh.axes[k].letter);
    if (l && l->reduced && c[k] != 0) return false;
  }
  return true;
}

/// Task number i as device d does it. Prepared: a prepared_task. `end`: the device's endpoint.
template <class Prepared, class Scalar, class Memory, class Endpoint>
Prepared prepare_task(computation_graph const& g, program const& q, std::size_t i, int d,
                      device_memory<Scalar, Memory> const& memory, Endpoint& end) {
  task const& t = q.tasks[i];
  Prepared p;
  auto put = [&](std::vector<int> const& side, std::vector<op::tensor_block>& blocks, auto& at) {
    for (int b : side) {
      buffer const& x = q.buffers[idx(b)];
      bool const here = memory.has(b, d);
      blocks.push_back(here ? ir::block_of(x.where, x.type, d) : op::tensor_block{});
      at.push_back(here ? memory.address(b, d) : nullptr);
    }
  };
  put(t.in, p.in, p.in_at);
  put(t.out, p.out, p.out_at);
  if (t.workspace >= 0) p.workspace = memory.address(t.workspace, d);
  if (t.kind != task_kind::compute) {
    shape const& type = q.buffers[idx((t.in.empty() ? t.out : t.in)[0])].type;
    p.move = prepare_move(t.step, type, d);
    p.narrow = stored_narrow<Scalar>(type.type);
    std::vector<int> const& m = p.move.group.devices;
    if (!m.empty()) p.group.emplace(end.make_group({m.data(), static_cast<int>(m.size())}));
    return p;
  }
  p.first_share = is_first_share(g, t, d);
  for (std::size_t k = 0; k < t.in.size(); ++k) {
    buffer const& x = q.buffers[idx(t.in[k])];
    if (x.value < 0 || g.value(x.value).role != value_role::input || x.first != static_cast<int>(i)) continue;
    bool again = false;
    for (auto const& f : p.feeds) again = again || t.in[idx(f.first)] == t.in[k];
    if (!again) p.feeds.push_back({static_cast<int>(k), x.value});
  }
  return p;
}

/// The memory of device d that task number i touches there; its lane is left open.
template <class Scalar, class Memory>
lane_task touched_by(program const& q, std::size_t i, int d, std::vector<std::pair<int, int>> const& feeds,
                     device_memory<Scalar, Memory> const& memory) {
  task const& t = q.tasks[i];
  lane_task r;
  auto put = [&](std::vector<byte_range>& side, int b) {
    if (b < 0 || !memory.has(b, d)) return;
    i64 const at = memory.offset(b, d);
    side.push_back({at, at + q.buffers[idx(b)].bytes});
  };
  for (int b : t.in) put(r.reads, b);
  for (int b : t.out) put(r.writes, b);
  put(r.writes, t.workspace);
  for (auto const& f : feeds) put(r.writes, t.in[idx(f.first)]);
  return r;
}

/// The host writes a device's box of one micro-batch of an input. Scalars are given once for all
/// micro-batches.
template <class Scalar, class Memory>
void feed_box(host_tensor const& h, int micro, op::tensor_block const& box, void* to, Memory const& memory) {
  i64 const skip = box.rank ? micro * box.logical_elements() : 0;
  op::tensor_block whole = box;
  for (int k = 0; k < box.rank; ++k) { whole.local[k] = box.global[k]; whole.offset[k] = 0; }
  i64 inner = 1;                                           // elements of one index of axis 0
  // the box is one run of them, as it is of a batch whose samples are split
  bool runs = box.rank > 0;
  for (int k = 1; k < box.rank; ++k) { inner *= box.global[k]; runs = runs && box.local[k] == box.global[k]; }
  auto put = [&]<class Element, class From>(Element*, From const* from, auto convert) {
    if constexpr (std::is_same_v<Element, From>)
      if (runs)
        return memory.write(to, from + box.offset[0] * inner,
                            box.elements() * static_cast<i64>(sizeof(Element)));
    std::vector<Element> part(idx(box.elements()));
    rows_of(box, whole, box, [&](i64 a, i64 b, i64 n) {
      for (i64 i = 0; i < n; ++i) part[idx(b + i)] = convert(from[a + i]);
    });
    memory.write(to, part.data(), static_cast<i64>(part.size() * sizeof(Element)));
  };
  auto const number = [](float x) { return scalar_traits<Scalar>::from_double(static_cast<double>(x)); };
  if (is_integer(box.type))
    put(static_cast<std::int32_t*>(nullptr), h.index.data() + skip, [](std::int32_t x) { return x; });
  else if (stored_narrow<Scalar>(box.type))
    put(static_cast<bfloat16*>(nullptr), h.real.data() + skip, [](float x) { return bfloat16(x); });
  else put(static_cast<Scalar*>(nullptr), h.real.data() + skip, number);
}

}  // namespace tensorpar::exec::detail
