// tensorpar/search/pipeline/batch_axes.hpp - which axes of a graph's values grow with the number of samples
#pragma once
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/iteration_space.hpp>
#include <vector>

namespace tensorpar::search::detail {

/// Follows the first axis of the inputs through the loops of all operators: axes over which one loop runs
/// belong together. O(nodes * loops).
class batch_axes {
  std::vector<int> start_, up_;
  std::vector<i64> mask_;
  i64 own_ = 1;

  int root(int i) {
    while (up_[idx(i)] != i)
      i = up_[idx(i)] = up_[idx(up_[idx(i)])];
    return i;
  }
  int id(int value, int axis) const { return start_[idx(value)] + axis; }
  void join(int a, int b) { up_[idx(root(b))] = root(a); }

 public:
  /// Throws `error` where inputs differ in their first axis, or where it is an axis of a parameter too.
  explicit batch_axes(computation_graph const& g) {
    int n = 0;
    for (graph_value const& v : g.values) {
      start_.push_back(n);
      n += v.type.rank;
    }
    for (int i = 0; i < n; ++i) up_.push_back(i);
    for (int v = 0; v < g.node_count(); ++v) {
      graph_node const& x = g.node(v);
      for (ir::node_loop const& l : ir::space_of(g, v).loops) {
        int first = -1;
        auto meet = [&](int value, int axis) {
          if (axis < 0) return;
          if (first < 0)
            first = id(value, axis);
          else
            join(first, id(value, axis));
        };
        for (std::size_t k = 0; k < x.in.size(); ++k) meet(x.in[k], l.in[k]);
        for (std::size_t k = 0; k < x.out.size(); ++k) meet(x.out[k], l.out[k]);
      }
    }
    int batch = -1;
    for (std::size_t x = 0; x < g.values.size(); ++x) {
      graph_value const& v = g.values[x];
      if (v.role != value_role::input || v.type.rank == 0) continue;
      if (batch >= 0 && v.type.d[0].n != own_)
        throw error("input '" + v.name + "' has " + std::to_string(v.type.d[0].n) + " samples", "batch axes",
                    std::to_string(own_) + " as the inputs before it");
      own_ = v.type.d[0].n;
      if (own_ < 1)
        throw error("input '" + v.name + "' of shape " + op::spell(v.type) + " has no samples", "batch axes",
                    "1 or more along its first axis");
      if (batch < 0)
        batch = id(static_cast<int>(x), 0);
      else
        join(batch, id(static_cast<int>(x), 0));
    }
    for (std::size_t x = 0; x < g.values.size(); ++x) {
      mask_.push_back(0);
      for (int d = 0; d < g.values[x].type.rank; ++d)
        if (batch >= 0 && root(id(static_cast<int>(x), d)) == root(batch)) mask_.back() |= i64{1} << d;
      if (mask_.back() && g.values[x].role == value_role::parameter)
        throw error("parameter '" + g.values[x].name + "' has an axis of samples", "batch axes",
                    "parameters that all samples share");
    }
  }
  i64 own() const { return own_; }
  i64 mask(int value) const { return mask_[idx(value)]; }
  bool is_batch(int value, int axis) const { return mask(value) >> axis & 1; }
  bool has_batch(int value) const { return mask(value) != 0; }
};

}  // namespace tensorpar::search::detail
