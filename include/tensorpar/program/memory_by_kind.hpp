// tensorpar/program/memory_by_kind.hpp - what fills a device's memory when most of it is in use
#pragma once
#include <algorithm>
#include <array>
#include <tensorpar/core/index.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>
#include <tensorpar/program/arena.hpp>
#include <tensorpar/program/core/planned_step.hpp>
#include <vector>

namespace tensorpar::passes {

/// - weights: also such as were gathered from their parts.
/// - gradients: of weights, in parts and in whole, one micro-batch's and sums.
/// - optimizer: what updates keep from step to step, master weights in f32, and running statistics.
/// - activations: everything else that operators read or make, gradients of activations among it.
/// - workspace: scratch space of kernels.
enum class memory_kind : int { weights, gradients, optimizer, activations, workspace };
inline constexpr int memory_kinds = 5;
inline constexpr char const* memory_kind_names[memory_kinds] = {"weights", "gradients", "optimizer",
                                                                "activations", "workspace"};

/// Bytes of a device by kind at the task at which most are in use.
struct memory_by_kind {
  std::array<i64, memory_kinds> bytes{};
  i64 operator[](memory_kind k) const { return bytes[idx(k)]; }
  i64 together() const {
    i64 sum = 0;
    for (i64 b : bytes) sum += b;
    return sum;
  }
  friend bool operator==(memory_by_kind const&, memory_by_kind const&) = default;
};

/// By value of a step's graph what kind of memory it takes. A gradient of a weight is what updates read and
/// no parameter or state is, and what is added up to become such. O(nodes + operands).
inline std::vector<memory_kind> kinds_of_values(training_graph const& t) {
  computation_graph const& g = t.graph;
  std::vector<memory_kind> r(g.values.size(), memory_kind::activations);
  for (std::size_t x = 0; x < g.values.size(); ++x) {
    if (g.values[x].role == value_role::parameter) r[x] = memory_kind::weights;
    if (g.values[x].role == value_role::state) r[x] = memory_kind::optimizer;
  }
  for (int v = g.node_count() - 1; v >= t.forward_nodes; --v) {
    graph_node const& n = g.node(v);
    bool const updates = n.phase == step_phase::update;
    if (!updates && !(n.op.is<add>() && r[idx(n.out[0])] == memory_kind::gradients)) continue;
    for (value_id x : n.in)
      if (r[idx(x)] == memory_kind::activations && g.type(x).elements() > 1)
        r[idx(x)] = memory_kind::gradients;
    if (!updates) continue;
    for (value_id y : n.out)                             // an update's results take their operands' places
      if (int const kept = g.value(y).stored_in; kept >= 0) r[idx(y)] = r[idx(kept)];
  }
  return r;
}

/// By device: what is in use at the first task at which most is. `together()` is at most the device's arena,
/// which besides holds what packing leaves free. A buffer in the place of another counts from the task on
/// with which that one ends. Devices that another is listed for get what that one has.
/// O(placements * log placements).
inline std::vector<memory_by_kind> memory_of(training_graph const& t, program const& p) {
  std::vector<memory_kind> const of = kinds_of_values(t);
  struct change { int task; i64 bytes; std::size_t kind; };
  std::vector<std::vector<change>> changes(p.arena.size());
  std::vector<int> ends(p.buffers.size());
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    ends[b] = p.buffers[b].last + 1;
    if (int const o = p.buffers[b].in_place_of; o >= 0) ends[idx(o)] = p.buffers[b].first;
  }
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    buffer const& x = p.buffers[b];
    bool const named = x.value >= 0 && idx(x.value) < of.size();
    auto const kind = idx(named ? of[idx(x.value)] : memory_kind::workspace);
    i64 const bytes = aligned(x.bytes);
    for (int d : x.devices) {
      changes[idx(d)].push_back({x.persistent ? -1 : x.first, bytes, kind});
      if (!x.persistent) changes[idx(d)].push_back({ends[b], -bytes, kind});
    }
  }
  std::vector<memory_by_kind> r(p.arena.size());
  for (std::size_t d = 0; d < r.size(); ++d) {
    std::vector<change>& all = changes[d];
    std::stable_sort(all.begin(), all.end(), [](change const& x, change const& y) {
      return x.task != y.task ? x.task < y.task : x.bytes < y.bytes;
    });
    memory_by_kind now;
    i64 sum = 0, most = 0;
    for (change const& c : all) {
      now.bytes[c.kind] += c.bytes;
      sum += c.bytes;
      if (sum > most) {
        most = sum;
        r[d] = now;
      }
    }
  }
  for (std::size_t d = 0; d < p.listed_for.size(); ++d) r[d] = r[idx(p.listed_for[d])];
  return r;
}

inline std::vector<memory_by_kind> memory_of(planned_step const& s) { return memory_of(s.graph, s.program); }

}  // namespace tensorpar::passes
