// tensorpar/zoo/classic.hpp - VGG-19 and ResNet-50
#pragma once
#include <tensorpar/typed/typed.hpp>
#include <tensorpar/zoo/axes.hpp>

namespace tensorpar::zoo {

/// Sizes of VGG-19 (Simonyan and Zisserman 2015, table 1, column E); blocks: convolutions of a stage, 0: a
/// stage that is left out.
struct vgg_sizes {
  i64 image = 224, width = 64, hidden = 4096, classes = 1000;
  i64 blocks[5] = {2, 2, 4, 4, 4};
};

/// Images "image" [batch, 3, image, image] with classes "label" [batch]. 3x3 convolutions with ReLU in stages
/// of width, 2, 4, 8 and again 8 times width channels, a maximum of 2x2 behind each. Two linear layers with
/// ReLU and dropout, one to the classes. A chain.
template <vgg_sizes S = vgg_sizes{}> struct vgg {
  static constexpr void define(auto& g, vgg_sizes s = S) {
    ref x = g.input("image", {batch, 3, s.image, s.image});
    for (int stage = 0; stage < 5; ++stage) {
      i64 const out = s.width << (stage < 3 ? stage : 3);
      for (i64 k = 0; k < s.blocks[stage]; ++k) x = x | conv2d{.out = out, .bias = true} | relu{};
      if (s.blocks[stage]) x = x | max_pool();
    }
    x = x | flatten{};
    for (int l = 0; l < 2; ++l) x = x | linear{s.hidden} | relu{} | dropout{.rate = 0.5};
    g.output("loss", all(x | linear{s.classes}, g.input("label", {batch}, dtype::i32)) | cross_entropy{});
  }
};
inline constexpr vgg_sizes vgg_reduced{
    .image = 24, .width = 4, .hidden = 12, .classes = 12, .blocks = {2, 1, 1, 0, 0}};

/// Sizes of ResNet-50 (He et al. 2016, table 1); blocks 0: a stage that is left out.
struct resnet_sizes {
  i64 image = 224, width = 64, classes = 1000;
  i64 blocks[4] = {3, 4, 6, 3};
};

/// Images "image" [batch, 3, image, image] with classes "label" [batch]:
///  - a 7x7 convolution and a maximum;
///  - blocks in four stages of c = width, 2, 4, 8 times width: 1x1 to c channels, 3x3, 1x1 to 4c, each with
///    batch normalisation, added to the block's input, ReLU;
///  - an average over the whole map and one linear layer.
/// A stage's stride is on its first 3x3 convolution, as in the models trained today. The paper has it on the
/// 1x1 before (as many parameters).
template <resnet_sizes S = resnet_sizes{}> struct resnet {
  static constexpr void define(auto& g, resnet_sizes s = S) {
    auto conv = [](ref x, conv2d const& o) { return x | o | batch_norm(); };
    ref x = g.input("image", {batch, 3, s.image, s.image});
    x = conv(x, {.out = s.width, .kernel = 7, .stride = 2, .pad = 3}) | relu{} | max_pool(3, 2, 1);
    i64 c = s.width;
    for (int stage = 0; stage < 4; ++stage, c *= 2)
      for (i64 b = 0; b < s.blocks[stage]; ++b) {
        i64 const stride = stage > 0 && b == 0 ? 2 : 1;
        ref y = conv(x, {.out = c, .kernel = 1}) | relu{};
        y = conv(conv(y, {.out = c, .stride = stride}) | relu{}, {.out = 4 * c, .kernel = 1});
        if (stride != 1 || x.type()[1].n != 4 * c) x = conv(x, {.out = 4 * c, .kernel = 1, .stride = stride});
        x = (x + y) | relu{};
      }
    g.output("loss", all(x | global_average{} | linear{s.classes}, g.input("label", {batch}, dtype::i32)) |
                         cross_entropy{});
  }
};
inline constexpr resnet_sizes resnet_reduced{.image = 24, .width = 6, .classes = 12, .blocks = {2, 1, 0, 0}};

}  // namespace tensorpar::zoo
