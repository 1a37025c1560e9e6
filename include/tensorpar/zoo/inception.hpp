// tensorpar/zoo/inception.hpp - Inception-v3: the network with batch normalisation, and the one of Unity's
// artifact
#pragma once
#include <tensorpar/typed/typed.hpp>
#include <tensorpar/zoo/axes.hpp>

namespace tensorpar::zoo {

/// Sizes of Inception-v3 (Szegedy et al. 2016). thin: what every number of channels is divided by, at least
/// one being left. modules: how many of the three A, four C and two E modules there are. plain: as in Unity's
/// artifact, see `inception_v3_artifact`.
struct inception_sizes {
  i64 image = 299, classes = 1000, thin = 1;
  i64 modules[3] = {3, 4, 2};
  bool plain = false, auxiliary = false;
};

/// Images "image" [batch, 3, image, image] with classes "label" [batch]. A stem, modules A A A B C C C C D E
/// E, each of branches that end side by side, an average over the whole map, dropout, one linear layer. Every
/// convolution is followed by batch normalisation and ReLU and has no bias; windows without padding as in
/// torchvision, hence a mesh of 35 x 35, 17 x 17, 8 x 8. With `auxiliary` a second classifier follows the
/// last C module, its loss weighted by 0.3 (Szegedy et al. 2015, section 5; the paper of v3 gives no weight).
template <inception_sizes S = inception_sizes{}> struct inception {
  static constexpr void define(auto& g, inception_sizes s = S) {
    bool rectified = true;                  // in the plain network only stem and A modules have activations
    auto conv = [&](ref x, conv2d o) {
      o.out = o.out > s.thin ? o.out / s.thin : 1;
      o.bias = s.plain;
      ref y = x | o;
      if (!s.plain) y = y | batch_norm(1e-3);
      return rectified ? y | relu{} : y;
    };
    auto square = [&](ref x, i64 out, i64 kernel) { return conv(x, {.out = out, .kernel = kernel}); };
    auto valid = [&](ref x, i64 out, i64 stride) {
      return conv(x, {.out = out, .kernel = 3, .stride = stride, .pad = 0});
    };
    auto wide = [&](ref x, i64 out, i64 k) { return conv(x, {.out = out, .kernel = 1, .kernel_w = k}); };
    auto tall = [&](ref x, i64 out, i64 k) { return conv(x, {.out = out, .kernel = k, .kernel_w = 1}); };
    auto pooled = [&](ref x, i64 out) { return square(x | avg_pool(3, 1, 1), out, 1); };

    ref x = square(valid(valid(g.input("image", {batch, 3, s.image, s.image}), 32, 2), 32, 1), 64, 3) |
            max_pool(3, 2);
    x = square(x, 80, 1);
    x = (s.plain ? square(x, 192, 3) : valid(x, 192, 1)) | max_pool(3, 2);
    for (i64 k = 0; k < s.modules[0]; ++k) {        // A
      ref const a = square(x, 64, 1), b = square(square(x, 48, 1), 64, 5),
                c = square(square(square(x, 64, 1), 96, 3), 96, 3);
      x = all(a, b, c, pooled(x, k == 0 ? 32 : 64)) | concat{1};
    }
    rectified = !s.plain;
    {                                               // B
      ref const a = valid(x, 384, 2), b = valid(square(square(x, 64, 1), 96, 3), 96, 2);
      x = all(a, b, x | max_pool(3, 2)) | concat{1};
    }
    for (i64 k = 0; k < s.modules[1]; ++k) {        // C
      i64 const c = k == 0 ? 128 : k == 3 ? 192 : 160;
      ref const a = square(x, 192, 1), b = tall(wide(square(x, c, 1), c, 7), 192, 7);
      ref const d = wide(tall(wide(tall(square(x, c, 1), c, 7), c, 7), c, 7), 192, 7);
      x = all(a, b, d, pooled(x, 192)) | concat{1};
    }
    ref const middle = x;
    {                                               // D
      ref const a = valid(square(x, 192, 1), 320, 2),
                b = valid(tall(wide(square(x, 192, 1), 192, 7), 192, 7), 192, 2);
      x = all(a, b, x | max_pool(3, 2)) | concat{1};
    }
    for (i64 k = 0; k < s.modules[2]; ++k) {        // E
      ref const a = square(x, 320, 1), t = square(x, 384, 1), t1 = wide(t, 384, 3), t2 = tall(t, 384, 3);
      ref const u = square(square(x, 448, 1), 384, 3), u1 = wide(u, 384, 3), u2 = tall(u, 384, 3);
      x = all(a, t1, t2, u1, u2, pooled(x, 192)) | concat{1};
    }
    ref const label = g.input("label", {batch}, dtype::i32);
    ref const features =
        s.plain ? x | avg_pool(x.type()[2].n, 1) | flatten{} : x | global_average{} | dropout{.rate = 0.5};
    ref loss = all(features | linear{s.classes}, label) | cross_entropy{};
    if (s.auxiliary) {
      ref const y = square(middle | avg_pool(5, 3), 128, 1);
      ref const second =
          conv(y, {.out = 768, .kernel = y.type()[2].n, .pad = 0}) | flatten{} | linear{s.classes};
      loss = loss + (all(second, label) | cross_entropy{} | scale{.factor = 0.3});
    }
    g.output("loss", loss);
  }
};
/// The artifact's graph (OSDI 2022, examples/cpp/InceptionV3): convolutions with biases and no batch
/// normalisation, activations in stem and A modules alone, one padded convolution more in the stem, hence a
/// mesh of 36 x 36, ten classes.
inline constexpr inception_sizes inception_v3_artifact{.classes = 10, .plain = true};
/// One module of each kind on the smallest image that five strides leave something of.
inline constexpr inception_sizes inception_reduced{
    .image = 75, .classes = 12, .thin = 32, .modules = {1, 1, 1}};
inline constexpr inception_sizes inception_artifact_reduced{
    .image = 75, .classes = 12, .thin = 32, .modules = {1, 1, 1}, .plain = true};

}  // namespace tensorpar::zoo
