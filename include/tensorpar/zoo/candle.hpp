// tensorpar/zoo/candle.hpp - CANDLE-Uno as Unity evaluates it: towers for what is known of a cell and of two
// drugs
#pragma once
#include <tensorpar/typed/typed.hpp>
#include <tensorpar/zoo/axes.hpp>

namespace tensorpar::zoo {

/// Sizes of CANDLE-Uno; the defaults are those of Unity's artifact (OSDI 2022, examples/cpp/candle_uno).
struct candle_uno_sizes {
  i64 cell = 942, descriptors = 5270, fingerprints = 2048, layers = 8, top = 4, hidden = 4192;
};

/// Five inputs go through a tower of linear layers with ReLU each; the two drugs share no weights. Two doses
/// [batch, 1] stay as they are. All stand side by side in the alphabetical order of names. Then come linear
/// layers with ReLU and one number, compared with "growth" [batch, 1]. No biases.
template <candle_uno_sizes S = candle_uno_sizes{}> struct candle_uno {
  static constexpr void define(auto& g, candle_uno_sizes s = S) {
    auto tower = [&s](ref x, i64 layers) {
      for (i64 l = 0; l < layers; ++l) x = x | linear{.out = s.hidden, .bias = false} | relu{};
      return x;
    };
    bundle parts = all(tower(g.input("cell.rnaseq", {batch, s.cell}), s.layers));
    for (char const* dose : {"dose1", "dose2"}) parts.push(g.input(dose, {batch, 1}));
    parts.push(tower(g.input("drug1.descriptors", {batch, s.descriptors}), s.layers));
    parts.push(tower(g.input("drug1.fingerprints", {batch, s.fingerprints}), s.layers));
    parts.push(tower(g.input("drug2.descriptors", {batch, s.descriptors}), s.layers));
    parts.push(tower(g.input("drug2.fingerprints", {batch, s.fingerprints}), s.layers));
    ref const response = tower(parts | concat{}, s.top) | linear{.out = 1, .bias = false};
    g.output("loss", all(response, g.input("growth", {batch, 1})) | mean_squared_error{});
  }
};
inline constexpr candle_uno_sizes candle_uno_reduced{
    .cell = 12, .descriptors = 24, .fingerprints = 16, .layers = 2, .top = 2, .hidden = 12};

}  // namespace tensorpar::zoo
