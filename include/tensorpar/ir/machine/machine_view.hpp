// tensorpar/ir/machine/machine_view.hpp - n-dimensional machine mappings: start, strides, and whether an axis
// runs between nodes or inside them
#pragma once
#include <tensorpar/ir/layout.hpp>
#include <tensorpar/ir/machine/machine.hpp>

namespace tensorpar {

/// A machine as a rectangle of equal nodes.
struct node_mesh {
  int nodes = 1, per_node = 1;
  int size() const { return nodes * per_node; }
  friend bool operator==(node_mesh const&, node_mesh const&) = default;
};

/// Which coordinate of a device an axis of a view moves along: to other nodes, or to other devices of the
/// same node.
enum class projection : int { inter, intra };
struct view_axis {
  i64 stride = 1;
  projection where = projection::intra;
  friend bool operator==(view_axis const&, view_axis const&) = default;
};

/// A machine mapping (Unity, section 5): the task with coordinates (c0, c1, ...) runs on the device that lies
/// sum over the axes of ci * (size of the earlier axes of the same projection) * stride_i from the start,
/// along the axis' projection. The size of an axis is degree * stride, so axes of one projection nest and
/// never collide.
struct machine_view {
  int node = 0, device = 0;                  // the device of task (0, 0, ...)
  std::vector<view_axis> axes;
  friend bool operator==(machine_view const&, machine_view const&) = default;
};

namespace detail {
inline std::string spelled(std::vector<i64> const& v) {
  std::string s = "(";
  for (std::size_t i = 0; i < v.size(); ++i) s += (i ? ", " : "") + std::to_string(v[i]);
  return s + ")";
}
/// How far one step along each axis goes in its projection.
inline std::vector<i64> reach(machine_view const& v, std::vector<i64> const& degrees) {
  if (v.axes.size() != degrees.size())
    throw error("a view of " + std::to_string(v.axes.size()) + " axes for " + std::to_string(degrees.size()) +
                    " degrees",
                "machine view", "one axis per degree");
  std::vector<i64> r;
  i64 inter = 1, intra = 1;
  for (std::size_t i = 0; i < degrees.size(); ++i) {
    if (degrees[i] < 1 || v.axes[i].stride < 1)
      throw error("degree " + std::to_string(degrees[i]) + ", stride " + std::to_string(v.axes[i].stride),
                  "machine view", "positive numbers");
    i64& size = v.axes[i].where == projection::inter ? inter : intra;
    r.push_back(size * v.axes[i].stride);
    size *= v.axes[i].stride * degrees[i];
  }
  return r;
}
/// Node and device of the last task.
inline std::pair<i64, i64> last_of(machine_view const& v, std::vector<i64> const& degrees) {
  auto const step = reach(v, degrees);
  i64 node = v.node, device = v.device;
  for (std::size_t i = 0; i < degrees.size(); ++i)
    (v.axes[i].where == projection::inter ? node : device) += (degrees[i] - 1) * step[i];
  return {node, device};
}
}  // namespace detail

/// Do all tasks find a device? O(axes).
inline bool fits(machine_view const& v, std::vector<i64> const& degrees, node_mesh const& on) {
  auto const [node, device] = detail::last_of(v, degrees);
  return v.node >= 0 && v.device >= 0 && node < on.nodes && device < on.per_node;
}

/// The number of the device that runs the task with these coordinates: node * per_node + device in the node.
/// Throws `error` for coordinates beyond the degrees and for a view that leaves the machine. O(axes).
inline int device_of(machine_view const& v, std::vector<i64> const& degrees, std::vector<i64> const& task,
                     node_mesh const& on) {
  auto const step = detail::reach(v, degrees);
  if (!fits(v, degrees, on))
    throw error("the view leaves the machine", "machine view",
                std::to_string(on.nodes) + " nodes of " + std::to_string(on.per_node) + " devices");
  bool known = task.size() == degrees.size();
  for (std::size_t i = 0; known && i < task.size(); ++i) known = task[i] >= 0 && task[i] < degrees[i];
  if (!known)
    throw error("no task has the coordinates " + detail::spelled(task), "machine view",
                "coordinates below " + detail::spelled(degrees));
  i64 node = v.node, device = v.device;
  for (std::size_t i = 0; i < task.size(); ++i)
    (v.axes[i].where == projection::inter ? node : device) += task[i] * step[i];
  return static_cast<int>(node * on.per_node + device);
}

/// Every view under which tasks of these degrees fit: each axis inter or intra, every stride, every start.
/// Axes of degree 1 keep stride 1 and run intra. Order: projections (inter before intra), strides, then
/// starts, ascending. No restriction to powers of two.
inline std::vector<machine_view> allowed_views(node_mesh const& on, std::vector<i64> const& degrees) {
  std::vector<machine_view> r;
  machine_view v;
  v.axes.resize(degrees.size());
  auto starts = [&] {
    auto const [node, device] = detail::last_of(v, degrees);
    for (int n = 0; n + node < on.nodes; ++n)
      for (int d = 0; d + device < on.per_node; ++d) {
        machine_view w = v;
        w.node = n;
        w.device = d;
        r.push_back(std::move(w));
      }
  };
  auto strides = [&](auto& self, std::size_t i) -> void {
    if (i == degrees.size()) { starts(); return; }
    for (v.axes[i].stride = 1;; ++v.axes[i].stride) {
      machine_view part = v;
      part.axes.resize(i + 1);
      if (!fits(part, {degrees.begin(), degrees.begin() + static_cast<std::ptrdiff_t>(i) + 1}, on)) break;
      self(self, i + 1);
      if (degrees[i] == 1) break;
    }
    v.axes[i].stride = 1;
  };
  auto projections = [&](auto& self, std::size_t i) -> void {
    if (i == degrees.size()) { strides(strides, 0); return; }
    if (degrees[i] > 1) {
      v.axes[i].where = projection::inter;
      self(self, i + 1);
    }
    v.axes[i].where = projection::intra;
    self(self, i + 1);
  };
  projections(projections, 0);
  return r;
}

/// The same mapping moved by so many nodes and devices.
inline machine_view shifted(machine_view v, int nodes, int devices) {
  v.node += nodes;
  v.device += devices;
  return v;
}

/// Where a machine is cut in two, as an offset in nodes or in devices of a node (the other is 0).
struct resource_split {
  int nodes = 0, devices = 0;
  friend bool operator==(resource_split const&, resource_split const&) = default;
};
/// The cuts that Unity tries: after a power of two from either end, along nodes, then along devices. O(log).
inline std::vector<resource_split> power_splits(node_mesh const& on) {
  auto offsets = [](int n) {
    std::vector<bool> at(static_cast<std::size_t>(n) + 1, false);
    for (int p = 1; p < n; p *= 2)
      at[static_cast<std::size_t>(p)] = at[static_cast<std::size_t>(n - p)] = true;
    return at;
  };
  std::vector<resource_split> r;
  auto const nodes = offsets(on.nodes), devices = offsets(on.per_node);
  for (int i = 1; i < on.nodes; ++i) if (nodes[static_cast<std::size_t>(i)]) r.push_back({i, 0});
  for (int i = 1; i < on.per_node; ++i) if (devices[static_cast<std::size_t>(i)]) r.push_back({0, i});
  return r;
}
/// Every cut.
inline std::vector<resource_split> all_splits(node_mesh const& on) {
  std::vector<resource_split> r;
  for (int i = 1; i < on.nodes; ++i) r.push_back({i, 0});
  for (int i = 1; i < on.per_node; ++i) r.push_back({0, i});
  return r;
}

/// The view as a node's sharding: axis i splits loop letters[i] in degrees[i] parts ('\0': replicas).
/// Law: the sharding puts every part on device_of(v, degrees, coordinates, on). Throws `error` as `device_of`
/// does. O(axes).
inline sharding to_sharding(machine_view const& v, std::vector<i64> const& degrees,
                            std::string const& letters, node_mesh const& on) {
  if (letters.size() != degrees.size())
    throw error(std::to_string(letters.size()) + " loops for " + std::to_string(degrees.size()) + " degrees",
                "machine view", "one loop per degree");
  auto const step = detail::reach(v, degrees);
  sharding s;
  s.start = device_of(v, degrees, std::vector<i64>(degrees.size(), 0), on);
  for (std::size_t i = 0; i < degrees.size(); ++i)
    s.axes.push_back(
        {letters[i], degrees[i], step[i] * (v.axes[i].where == projection::inter ? on.per_node : 1)});
  return s;
}

/// The rectangle that a machine is, by its innermost link level. Throws `error` where nodes differ in size.
inline node_mesh mesh_of(machine const& m) {
  int const per = m.links.empty() || m.links.front().group >= m.size()
                      ? m.size()
                      : static_cast<int>(m.links.front().group);
  if (per < 1 || m.size() % per)
    throw error("nodes of unequal size", "machine " + m.name,
                "a multiple of " + std::to_string(per) + " devices");
  return {m.size() / per, per};
}

}  // namespace tensorpar
