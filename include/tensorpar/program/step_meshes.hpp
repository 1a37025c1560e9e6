// tensorpar/program/step_meshes.hpp - the device mesh of each operator of a training step under a plan
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/plan/plan.hpp>
#include <tensorpar/program/lockstep_devices.hpp>

namespace tensorpar::passes::detail {

/// Nodes in the order in which they run; by number where none is given.
class node_order {
  std::vector<int> nodes_, place_;

 public:
  node_order() = default;
  explicit node_order(std::vector<int> nodes) : nodes_(std::move(nodes)), place_(nodes_.size()) {
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      place_[idx(nodes_[i])] = static_cast<int>(i);
  }
  int node(int place) const { return nodes_.empty() ? place : nodes_[idx(place)]; }
  int place(int node) const { return place_.empty() ? node : place_[idx(node)]; }
};

/// Precondition: graph and plan outlive it, and the plan decides about as many operators as the graph has.
class step_meshes {
  computation_graph const& g_;
  plan const& plan_;
  ir::sharding of_all_;                                               // of operators that belong to no other
  std::vector<int> some_;                                             // devices that are listed; empty: all

 public:
  step_meshes(training_graph const& t, plan const& p) : g_(t.graph), plan_(p) {}

  static ir::layout mesh_like(ir::layout l) {
    for (ir::layout_axis& a : l.axes) { a.kind = ir::part_kind::replicate; a.dim = -1; }
    return l;
  }
  /// Scratch space of an exchange lies on both sides' devices; its layout names the first and the count,
  /// `devices` has them all.
  static ir::layout union_layout(std::vector<int> const& d) {
    return {d.front(), {{ir::part_kind::replicate, -1, static_cast<i64>(d.size()), 1}}};
  }
  static std::vector<int> joined(std::vector<int> a, std::vector<int> const& b) {
    a.insert(a.end(), b.begin(), b.end());
    std::sort(a.begin(), a.end());
    a.erase(std::unique(a.begin(), a.end()), a.end());
    return a;
  }

  /// Operators that belong to no other stand on all devices that are in use. Precondition: `require` has been
  /// called.
  ir::sharding mesh_of(int v) const {
    int const o = g_.node(v).origin;
    return o >= 0 ? ir::in_shares(plan_.nodes[idx(o)].sharding, g_.node(v).share) : of_all_;
  }

  /// Throws `error` unless every operator up to `operators` can be sharded so, and on devices that there are.
  void require(int operators, std::vector<ir::iteration_space> const& spaces) {
    std::vector<ir::sharding> good;                                   // whose devices are known to be
    for (int v = 0; v < operators; ++v) {
      ir::sharding const& s = plan_.nodes[idx(v)].sharding;
      ir::iteration_space const& space = spaces[idx(v)];
      std::string const where = "operator " + std::to_string(v) + " (" + op::spell(g_.node(v).op) + ")";
      if (int const i = ir::misfit(space, s); i >= 0) {
        ir::mesh_axis const& a = s.axes[idx(i)];
        ir::node_loop const* l = space.find(a.letter);
        throw error("loop '" + std::string(1, a.letter ? a.letter : '-') + "' cannot be split in " +
                        std::to_string(a.degree),
                    where, l ? "a divisor of " + std::to_string(l->units) : "a loop of the operator");
      }
      if (std::find(good.begin(), good.end(), s) != good.end()) continue;
      good.push_back(s);
      std::vector<int> d = mesh_layout(s).devices();
      std::sort(d.begin(), d.end());
      if (std::adjacent_find(d.begin(), d.end()) != d.end())
        throw error("two parts lie on one device", where, "strides that keep parts apart");
      if (d.front() < 0 || d.back() >= plan_.cluster.size())
        throw error("device " + std::to_string(d.front() < 0 ? d.front() : d.back()) + " does not exist",
                    where, "devices 0 to " + std::to_string(plan_.cluster.size() - 1));
    }
    of_all_ = mesh_in_use(plan_);
  }

  /// From now on `devices` has these alone. Returns who is listed for whom, empty for each for itself.
  std::vector<int> list(listed_devices listed) {
    if (listed.only >= 0) some_ = {listed.only};
    if (!listed.lockstep) return {};
    std::vector<ir::sharding> all;
    for (int v = 0; v < g_.node_count(); ++v) all.push_back(mesh_of(v));
    std::vector<int> r = lockstep_devices(all, plan_.cluster);
    for (int d = 0; d < plan_.cluster.size(); ++d) if (r[idx(d)] == d) some_.push_back(d);
    return r;
  }
  /// The devices of a layout that are listed, ascending.
  std::vector<int> devices(ir::layout const& l) const {
    std::vector<int> d;
    for (int x : some_) if (l.holds(x)) d.push_back(x);
    if (!some_.empty()) return d;
    d = l.devices();
    std::sort(d.begin(), d.end());
    return d;
  }

  /// Of those who read in layout `there` what lies in layout `here`: have the ones that do not hold it
  /// nothing to do between operators v and c in this order? Devices between the first and the last of an
  /// operator count as its own. O(operators between * devices).
  bool nothing_between(int v, int c, ir::layout const& here, ir::layout const& there,
                       node_order const& order = {}) const {
    std::vector<int> others;
    for (int d : there.devices()) if (!here.holds(d)) others.push_back(d);
    for (int i = order.place(v) + 1; i < order.place(c) && !others.empty(); ++i) {
      ir::sharding const s = mesh_of(order.node(i));
      i64 first = s.start, last = s.start;
      for (ir::mesh_axis const& a : s.axes) (a.stride < 0 ? first : last) += (a.degree - 1) * a.stride;
      for (int d : others) if (first <= d && d <= last) return false;
    }
    return true;
  }
};

}  // namespace tensorpar::passes::detail
