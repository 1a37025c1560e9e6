// tensorpar/ir/sharded_update.hpp - which part of a weight each of its copies updates
#pragma once
#include <tensorpar/ir/layout.hpp>

namespace tensorpar::ir {

/// What becomes of a weight where a mesh axis holds copies of it (ZeRO: Rajbhandari et al. 2020, section 5).
enum class zero_stage : int {
  none,      // every copy is kept and updated whole
  // each copy keeps and updates a part of the optimizer's state, then all gather the weight (ZeRO-2; with
  // micro-batches ZeRO-1, as gradients are added up before they are scattered)
  updates,
  // and keeps nothing but that part of the weight: gathered anew for every forward and backward pass, and the
  // gradient scattered for every micro-batch (ZeRO-3, FSDP)
  weights,
};

/// The letters of an update operator whose copies share its work: for every axis of its origin's mesh that
/// none of its loops follows, the first loop follows that axis which no axis splits and whose extent the axis
/// divides. Layouts and reshards (reduce-scatter before, all-gather after) follow from that. Unchanged where
/// no loop fits. O(axes * loops).
inline std::string sharded_letters(iteration_space const& update, std::string letters, sharding const& mesh) {
  if (letters.empty()) return letters;
  for (mesh_axis const& a : mesh.axes) {
    if (!a.letter || letters.find(a.letter) != std::string::npos) continue;
    i64 parts = 1;                                               // several axes may split one loop
    for (mesh_axis const& b : mesh.axes) if (b.letter == a.letter) parts *= b.degree;
    for (std::size_t i = 0; i < update.loops.size(); ++i) {
      // a sharding that means nothing is for others to refuse
      bool taken = parts < 1 || update.loops[i].units % parts != 0;
      for (mesh_axis const& b : mesh.axes) taken = taken || (b.letter && b.letter == letters[i]);
      if (taken) continue;
      letters[i] = a.letter;
      break;
    }
  }
  return letters;
}

}  // namespace tensorpar::ir
