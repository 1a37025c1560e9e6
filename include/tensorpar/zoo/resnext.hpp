// tensorpar/zoo/resnext.hpp - ResNeXt-50: the network, and the chain that the artifact of Unity runs under
// its name
#pragma once
#include <tensorpar/typed/typed.hpp>
#include <tensorpar/zoo/axes.hpp>

namespace tensorpar::zoo {

/// Which blocks add their input to their result. changing: those alone whose stride or channels change.
enum class shortcuts : int { none, changing, all };

/// Sizes of ResNeXt-50 (32x4d) (Xie et al. 2017, table 1); blocks 0: a stage that is left out.
struct resnext_sizes {
  i64 image = 224, stem = 64, width = 128, groups = 32, classes = 1000;
  i64 blocks[4] = {3, 4, 6, 3};
  shortcuts add = shortcuts::all;
};

/// Images "image" [batch, 3, image, image] with classes "label" [batch]:
///  - a 7x7 convolution and a maximum;
///  - blocks in four stages of c = width, 2 width, 4 width, 8 width: 1x1 to c channels, 3x3 in `groups`
///    groups, 1x1 to 2c;
///  - an average over the whole map and one linear layer.
/// As in Unity's artifact (OSDI 2022, examples/cpp/resnext50) convolutions have biases and there is no batch
/// normalisation, and one more ReLU stands before the average. There no block adds its input, so its graph is
/// a chain: `resnext50_artifact`. `changing` is what that code does with its option for residuals, a ReLU
/// behind the shortcut's convolution included. The softmax belongs to the loss.
template <resnext_sizes S = resnext_sizes{}> struct resnext {
  static constexpr void define(auto& g, resnext_sizes s = S) {
    ref x = g.input("image", {batch, 3, s.image, s.image}) |
            conv2d{.out = s.stem, .kernel = 7, .stride = 2, .pad = 3, .bias = true} | relu{} |
            max_pool(3, 2, 1);
    i64 c = s.width;
    for (int stage = 0; stage < 4; ++stage, c *= 2)
      for (i64 b = 0; b < s.blocks[stage]; ++b) {
        i64 const stride = stage > 0 && b == 0 ? 2 : 1;
        bool const same = stride == 1 && x.type()[1].n == 2 * c;
        ref const y = x | conv2d{.out = c, .kernel = 1, .bias = true} | relu{} |
                      conv2d{.out = c, .stride = stride, .groups = s.groups, .bias = true} | relu{} |
                      conv2d{.out = 2 * c, .kernel = 1, .bias = true};
        if (s.add == shortcuts::none || (s.add == shortcuts::changing && same)) {
          x = y;
          continue;
        }
        if (!same) x = x | conv2d{.out = 2 * c, .kernel = 1, .stride = stride, .bias = true};
        if (s.add == shortcuts::changing) x = x | relu{};
        x = (x + y) | relu{};
      }
    ref const features = x | named("last_relu", relu{}) | avg_pool(x.type()[2].n, 1) | flatten{};
    g.output("loss",
             all(features | linear{s.classes}, g.input("label", {batch}, dtype::i32)) | cross_entropy{});
  }
};
/// The artifact's graph: 55 operators in a chain, activations and softmax counted with what they follow.
inline constexpr resnext_sizes resnext50_artifact{.add = shortcuts::none};
/// Two stages, the first of two blocks.
inline constexpr resnext_sizes resnext_reduced{
    .image = 24, .stem = 6, .width = 6, .groups = 6, .classes = 12, .blocks = {2, 1, 0, 0}};
inline constexpr resnext_sizes resnext_artifact_reduced{.image = 24,
                                                        .stem = 6,
                                                        .width = 6,
                                                        .groups = 6,
                                                        .classes = 12,
                                                        .blocks = {2, 1, 0, 0},
                                                        .add = shortcuts::none};

}  // namespace tensorpar::zoo
