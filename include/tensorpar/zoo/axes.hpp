// tensorpar/zoo/axes.hpp - the axes that models of the zoo name
#pragma once
#include <tensorpar/op/core/shape.hpp>

namespace tensorpar::zoo {

/// Axes with a size that is bound when a model is lowered: `lower(g, {zoo::batch = 32})`.
inline constexpr axis batch{"batch"};
inline constexpr axis tokens{"tokens"};

}  // namespace tensorpar::zoo
