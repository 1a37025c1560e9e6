// tensorpar/ir/axis_share.hpp - a part of a mesh axis that an operator's loop follows
#pragma once
#include <tensorpar/core/config.hpp>

namespace tensorpar::ir {

/// Of the mesh axis that splits this loop of the origin, a node's own loop follows so many neighbours alone;
/// the other groups of as many have copies. 0: all of the axis.
struct axis_share {
  char letter = '\0';
  i64 degree = 0;
  friend bool operator==(axis_share const&, axis_share const&) = default;
};

}  // namespace tensorpar::ir
