// tensorpar/ir/sharded_update.hpp - which part of a weight each of its copies updates
#pragma once
#include <tensorpar/ir/computation_graph.hpp>
#include <tensorpar/ir/layout.hpp>

namespace tensorpar::ir {

/// What becomes of a weight where a mesh axis holds copies of it (ZeRO: Rajbhandari et al. 2020, section 5).
enum class zero_stage : int {
  none,      // every copy is kept and updated whole
  // each copy keeps and updates a part of the weight and of the optimizer's state. The weight is gathered
  // once a step, where it is read first (ZeRO-1: gradients are added up before they are scattered; with one
  // micro-batch that is ZeRO-2, too)
  updates,
  // and keeps nothing but that part of the weight: gathered anew for every forward and backward pass, and the
  // gradient scattered for every micro-batch (ZeRO-3, FSDP)
  weights,
  // as updates, but every micro-batch's gradient is scattered and added to the part that is kept (ZeRO-2)
  gradients,
};

/// How an update operator follows the mesh of its origin.
struct update_sharding {
  std::string letters;
  axis_share share;
};

/// The sharding of an update operator whose copies share its work. For every axis of its origin's mesh that
/// none of its loops follows, the first loop follows that axis which no axis splits and whose extent the axis
/// divides. Where no extent is such a multiple, one loop follows the largest part of an axis that it can; the
/// others hold copies. Layouts and reshards (reduce-scatter before, all-gather after) follow from that.
/// Unchanged where no loop fits. O(axes * (sqrt(degree) + divisors * loops * axes)).
inline update_sharding sharded_update(iteration_space const& update, std::string letters,
                                      sharding const& mesh) {
  update_sharding r{std::move(letters), {}};
  if (r.letters.empty()) return r;
  auto const splits = [&](std::size_t i, i64 parts) {
    bool free = update.loops[i].units % parts == 0;
    for (mesh_axis const& b : mesh.axes) free = free && !(b.letter && b.letter == r.letters[i]);
    return free;
  };
  for (mesh_axis const& a : mesh.axes) {
    if (!a.letter || r.letters.find(a.letter) != std::string::npos) continue;
    i64 parts = 1;                                               // several axes may split one loop
    for (mesh_axis const& b : mesh.axes) if (b.letter == a.letter) parts *= b.degree;
    if (parts < 2) continue;                                     // what means nothing is for others to refuse
    auto const follows = [&](i64 some) {
      if (parts % some) return false;
      std::size_t i = 0;
      while (i < update.loops.size() && !splits(i, some)) ++i;
      if (i == update.loops.size()) return false;
      r.letters[i] = a.letter;
      if (some < parts) r.share = {a.letter, some};
      return true;
    };
    bool done = follows(parts) || parts != a.degree || r.share.degree;       // may not be shared otherwise
    i64 q = 2;                                                               // divisors, largest first
    for (; !done && q * q < parts; ++q) done = parts % q == 0 && follows(parts / q);
    for (i64 some = q; !done && some > 1; --some) done = some < parts && follows(some);
  }
  return r;
}

/// The mesh of a node with such a share: the axis in two, the major one without a loop. O(axes).
inline sharding in_shares(sharding mesh, axis_share const& s) {
  if (!s.degree) return mesh;
  for (std::size_t i = 0; i < mesh.axes.size(); ++i) {
    mesh_axis& a = mesh.axes[i];
    if (a.letter != s.letter || a.degree <= s.degree || a.degree % s.degree) continue;
    mesh_axis const copies{'\0', a.degree / s.degree, a.stride * s.degree};
    a.degree = s.degree;
    mesh.axes.insert(mesh.axes.begin() + static_cast<std::ptrdiff_t>(i), copies);
    break;
  }
  return mesh;
}

}  // namespace tensorpar::ir
