// tensorpar/zoo/mlp.hpp - linear layers alone: two towers, and the smallest graph with branches
#pragma once
#include <tensorpar/typed/typed.hpp>
#include <tensorpar/zoo/axes.hpp>

namespace tensorpar::zoo {

/// Sizes of the two towers; the defaults are those of Unity's artifact (OSDI 2022, examples/cpp/MLP_Unify).
struct mlp_unify_sizes {
  i64 features = 1024, layers = 8, hidden = 8192;
};

/// "x.0" and "x.1" [batch, features], each through a tower of linear layers with ReLU behind all but the
/// last, added, a softmax over `hidden` classes that belongs to the loss, "label" [batch]. No biases.
template <mlp_unify_sizes S = mlp_unify_sizes{}> struct mlp_unify {
  static constexpr void define(auto& g, mlp_unify_sizes s = S) {
    ref end[2]{};
    for (int t = 0; t < 2; ++t) {
      ref x = g.input({"x", t}, {batch, s.features});
      for (i64 l = 0; l < s.layers; ++l) {
        x = x | linear{.out = s.hidden, .bias = false};
        if (l + 1 < s.layers) x = x | relu{};
      }
      end[t] = x;
    }
    g.output("loss", all(end[0] + end[1], g.input("label", {batch}, dtype::i32)) | cross_entropy{});
  }
};
inline constexpr mlp_unify_sizes mlp_unify_reduced{.features = 12, .layers = 3, .hidden = 24};

/// Sizes of the smallest graph with branches (OSDI 2022, examples/cpp/split_test): every step is half as wide
/// as the one before.
struct split_test_sizes {
  i64 features = 256;
};

/// "x" [batch, features]; linear to a half, ReLU; twice: two linear layers to half of that side by side,
/// added, ReLU; the last are the classes of a softmax that belongs to the loss, "label" [batch].
template <split_test_sizes S = split_test_sizes{}> struct split_test {
  static constexpr void define(auto& g, split_test_sizes s = S) {
    ref x = g.input("x", {batch, s.features}) | linear{s.features / 2} | relu{};
    for (i64 width : {s.features / 4, s.features / 8}) {
      ref const a = x | linear{width}, b = x | linear{width};
      x = (a + b) | relu{};
    }
    g.output("loss", all(x, g.input("label", {batch}, dtype::i32)) | cross_entropy{});
  }
};
inline constexpr split_test_sizes split_test_reduced{.features = 96};

}  // namespace tensorpar::zoo
