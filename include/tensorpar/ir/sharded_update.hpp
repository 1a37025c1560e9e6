// tensorpar/ir/sharded_update.hpp - which part of a weight each of its copies updates
#pragma once
#include <tensorpar/ir/layout.hpp>

namespace tensorpar {

/// What becomes of a weight where a grid axis holds copies of it (ZeRO: Rajbhandari et al. 2020, section 5).
enum class weight_sharding : int {
  none,      // every copy is kept and updated whole
  update,    // each copy keeps and updates a part of the optimizer's state, then all gather the weight (ZeRO-2; with micro-batches ZeRO-1,
             // as gradients are added up before they are scattered)
  weights,   // and keeps nothing but that part of the weight: gathered anew for every forward and backward pass (ZeRO-3, FSDP)
};

/// The letters of an update operator whose copies share its work: for every axis of its origin's grid that none of its loops follows, the
/// first loop follows that axis which no axis splits and whose extent the axis divides. Layouts and movements (reduce-scatter before,
/// all-gather after) follow from that. Unchanged where no loop fits. O(axes * loops).
inline std::string sharded_letters(iteration_space const& update, std::string letters, spread const& grid) {
  if (letters.empty()) return letters;
  for (grid_axis const& a : grid.axes) {
    if (!a.letter || letters.find(a.letter) != std::string::npos) continue;
    i64 parts = 1;                                               // several axes may split one loop
    for (grid_axis const& b : grid.axes) if (b.letter == a.letter) parts *= b.degree;
    for (std::size_t i = 0; i < update.loops.size(); ++i) {
      bool taken = parts < 1 || update.loops[i].units % parts != 0;          // a spread that means nothing is for others to refuse
      for (grid_axis const& b : grid.axes) taken = taken || (b.letter && b.letter == letters[i]);
      if (taken) continue;
      letters[i] = a.letter;
      break;
    }
  }
  return letters;
}

}  // namespace tensorpar
