// tensorpar/ir/layout.hpp - how a node's loops and a tensor's axes lie over devices
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/axis_list.hpp>
#include <tensorpar/ir/iteration_space.hpp>
#include <tensorpar/op/core/block.hpp>
#include <vector>

namespace tensorpar::ir {

/// One axis of a node's device mesh: the loop it splits ('\0': nothing, every device does the same work), in
/// how many parts, and how far apart in device numbers neighbouring parts stand.
struct mesh_axis {
  char letter = 0;
  i64 degree = 1;
  i64 stride = 1;
  friend bool operator==(mesh_axis const&, mesh_axis const&) = default;
};

/// A planner's choice for one node: an n-dimensional machine mapping of its loops. Part (c0, c1, ...) runs on
/// device start + sum ci * stride_i. Several axes may split one loop; the earlier one is the major digit.
struct sharding {
  int start = 0;
  axis_list<mesh_axis> axes;
  i64 size() const { i64 n = 1; for (mesh_axis const& a : axes) n *= a.degree; return n; }
  friend bool operator==(sharding const&, sharding const&) = default;
};

enum class part_kind : int { shard, replicate, partial };

/// One axis of a tensor's device mesh: parts of axis `dim` (shard), identical copies, or partial sums.
struct layout_axis {
  part_kind kind = part_kind::replicate;
  int dim = -1;
  i64 degree = 1;
  i64 stride = 1;
  friend bool operator==(layout_axis const&, layout_axis const&) = default;
};

/// Where the parts of a tensor are. Two replica counts are kept apart: `partial` (partial sums, which a
/// reduce removes) and `replicate` (identical copies). Among shard axes of one dim the earlier is the major
/// digit.
struct layout {
  int start = 0;
  axis_list<layout_axis> axes;
  friend bool operator==(layout const&, layout const&) = default;

  i64 size() const { i64 n = 1; for (layout_axis const& a : axes) n *= a.degree; return n; }
  i64 degree(part_kind k, int dim = -1) const {
    i64 n = 1;
    for (layout_axis const& a : axes)
      if (a.kind == k && (k != part_kind::shard || a.dim == dim)) n *= a.degree;
    return n;
  }
  /// The device of part i, i counting the mesh row-major (last axis fastest).
  int device(i64 i) const {
    i64 d = start;
    for (std::size_t k = axes.size(); k-- > 0;) {
      d += (i % axes[k].degree) * axes[k].stride;
      i /= axes[k].degree;
    }
    return static_cast<int>(d);
  }
  std::vector<int> devices() const {
    std::vector<int> r;
    for (i64 i = 0, n = size(); i < n; ++i) r.push_back(device(i));
    return r;
  }
  /// Mesh coordinates of a device and a closing 0, so that a device with a part never gets an empty answer;
  /// empty: it has none. O(axes^2).
  std::vector<i64> coordinates(int dev) const {
    std::vector<i64> c(axes.size() + 1, 0);
    if (!read_digits(dev, [&](std::size_t k, i64 digit) { c[k] = digit; })) return {};
    return c;
  }
  /// Has the device a part? Takes no memory: unrolling asks for every buffer.
  bool holds(int dev) const { return read_digits(dev, [](std::size_t, i64) {}); }

 private:
  /// Digits are read from the largest stride down, which is right for every injective placement of nested
  /// strides. False: something is left over.
  template <class Put> bool read_digits(int dev, Put const& put) const {
    i64 rest = static_cast<i64>(dev) - start;
    if (rest < 0) return false;
    std::size_t const n = axes.size();
    for (std::size_t turn = 0, last = n; turn < n; ++turn) {
      std::size_t k = n;                                         // the next: of equal strides the first
      for (std::size_t i = 0; i < n; ++i) {
        bool const left = last == n || axes[i].stride < axes[last].stride ||
                          (axes[i].stride == axes[last].stride && i > last);
        if (left && (k == n || axes[i].stride > axes[k].stride)) k = i;
      }
      i64 digit = axes[k].stride > 0 ? rest / axes[k].stride : 0;
      if (digit >= axes[k].degree) digit = axes[k].degree - 1;
      rest -= digit * axes[k].stride;
      put(k, digit);
      last = k;
    }
    return rest == 0;
  }
};

/// The same placement in one way of writing: axes of degree 1 dropped, neighbouring digits joined, copies and
/// sums sorted by stride. Law: canonical(l) describes the same block and replica set on every device as l;
/// equal placements written with the same digits compare equal.
inline layout canonical(layout l) {
  axis_list<layout_axis>& a = l.axes;
  std::size_t n = 0;
  for (std::size_t i = 0; i < a.size(); ++i) if (a[i].degree > 1) a[n++] = a[i];
  a.resize(n);
  for (layout_axis& x : a) if (x.kind != part_kind::shard) x.dim = -1;
  auto before = [](layout_axis const& x, layout_axis const& y) {
    if (x.kind != y.kind) return x.kind < y.kind;
    if (x.kind == part_kind::shard) return x.dim < y.dim;
    return x.stride > y.stride;
  };
  for (std::size_t i = 1; i < n; ++i)  // stable insertion sort: digits of one dim keep their order
    for (std::size_t j = i; j > 0 && before(a[j], a[j - 1]); --j) std::swap(a[j], a[j - 1]);
  n = 0;
  for (layout_axis const x : a) {
    if (n > 0 && a[n - 1].kind == x.kind && a[n - 1].dim == x.dim && a[n - 1].stride == x.stride * x.degree) {
      a[n - 1].degree *= x.degree;
      a[n - 1].stride = x.stride;
    } else {
      a[n++] = x;
    }
  }
  a.resize(n);
  return l;
}

/// The box of the logical tensor that a device holds. Precondition: l holds dev; every shard degree divides
/// its extent.
inline op::tensor_block block_of(layout const& l, shape const& s, std::vector<i64> const& c) {
  op::tensor_block b;
  b.rank = s.rank;
  b.type = s.type;
  for (int d = 0; d < s.rank; ++d) {
    i64 parts = 1, index = 0;
    for (std::size_t k = 0; k < l.axes.size(); ++k)
      if (l.axes[k].kind == part_kind::shard && l.axes[k].dim == d) {
        parts *= l.axes[k].degree;
        index = index * l.axes[k].degree + c[k];
      }
    b.global[d] = s.d[d].n;
    b.local[d] = s.d[d].n / parts;
    b.offset[d] = b.local[d] * index;
  }
  return b;
}
inline op::tensor_block block_of(layout const& l, shape const& s, int dev) {
  return block_of(l, s, l.coordinates(dev));
}
/// Extents of every part of a tensor under l.
inline shape part_of(layout const& l, shape s) {
  for (layout_axis const& a : l.axes) if (a.kind == part_kind::shard) s.d[a.dim].n /= a.degree;
  return s;
}

/// Which loop of its own each mesh axis of the origin's sharding splits for a derived node: the loop whose
/// origin letter it is.
inline node_loop const* followed(iteration_space const& own, std::string const& letters, char letter) {
  if (!letter) return nullptr;
  for (std::size_t i = 0; i < own.loops.size(); ++i)
    if ((letters.empty() ? own.loops[i].letter : letters[i]) == letter) return &own.loops[i];
  return nullptr;
}

/// The layout that operand k of a node must have under a sharding. A mesh axis whose loop the operand lacks
/// means copies.
inline layout operand_layout(iteration_space const& own, std::string const& letters, sharding const& s,
                             int k) {
  layout l{s.start, {}};
  for (mesh_axis const& a : s.axes) {
    node_loop const* p = followed(own, letters, a.letter);
    int const d = p ? p->in[idx(k)] : -1;
    l.axes.push_back({d >= 0 ? part_kind::shard : part_kind::replicate, d, a.degree, a.stride});
  }
  return canonical(std::move(l));
}
/// The layout that result k of a node has under a sharding. A mesh axis over a reduced loop leaves partial
/// sums; one the node lacks, copies.
inline layout result_layout(iteration_space const& own, std::string const& letters, sharding const& s,
                            int k) {
  layout l{s.start, {}};
  for (mesh_axis const& a : s.axes) {
    node_loop const* p = followed(own, letters, a.letter);
    int const d = p ? p->out[idx(k)] : -1;
    l.axes.push_back({d >= 0 ? part_kind::shard
                      : p    ? part_kind::partial
                             : part_kind::replicate,
                      d, a.degree, a.stride});
  }
  return canonical(std::move(l));
}

/// Does every mesh axis split a splittable loop into a divisor of its units? Returns the offending axis'
/// index, or -1.
inline int misfit(iteration_space const& own, sharding const& s) {
  for (std::size_t i = 0; i < s.axes.size(); ++i) if (s.axes[i].degree < 1) return static_cast<int>(i);
  for (std::size_t i = 0; i < s.axes.size(); ++i) {
    mesh_axis const& a = s.axes[i];
    if (!a.letter) continue;
    node_loop const* p = own.find(a.letter);
    i64 all = 1;
    for (mesh_axis const& b : s.axes) if (b.letter == a.letter) all *= b.degree;
    if (!p || p->units % all) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace tensorpar::ir
