// tensorpar/tool/demo/network.hpp - a network whose halves want different parallelism, and images to train it
// on
#pragma once
#include <cstdint>
#include <random>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/device/host.hpp>
#include <tensorpar/typed/lower.hpp>
#include <tensorpar/typed/typed.hpp>
#include <vector>

namespace tensorpar::tools {

inline constexpr i64 demo_side = 64;   // of its images, in pixels
inline constexpr i64 demo_batch = 32;  // samples of a step that suit it
inline constexpr i64 demo_classes = 10;
inline constexpr axis demo_samples{"batch"};

/// A convolution with many activations and few weights, then layers with few activations and many weights
/// (Krizhevsky 2014, "One weird trick"). Data parallelism reads, adds up and updates all weights of the
/// second half on every device. Tensor parallelism unrolls all images of the first half on every device:
/// there is one channel, and splitting the few filters saves little.
struct demo_network {
  static constexpr void define(auto& g) {
    constexpr axis channels{"channels"}, height{"height"}, width{"width"}, pixels{"pixels"},
        classes{"classes"};
    auto image = g.input("image", {demo_samples, channels(1), height(demo_side), width(demo_side)});
    auto label = g.input("label", {demo_samples}, dtype::i32);
    auto features = image | conv2d{.out = 4, .kernel = 9, .bias = true} | relu{} | max_pool();
    auto logits = features | flatten{.to = pixels} | linear{1536} | relu{} |
                  named("head", linear{.out = demo_classes, .to = classes});
    g.output("logits", logits);
    g.output("loss", all(logits, label) | cross_entropy{});
  }
};

/// Its forward graph on so many samples.
inline computation_graph demo_graph(i64 samples) {
  return lower(typed<demo_network>, {demo_samples = samples});
}

/// Images of ten classes, drawn: a random pattern of blocks for each class, and noise. The same for the same
/// seeds: `pattern` decides the classes, `seed` the samples. O(samples * pixels).
inline host_batch demo_images(i64 samples, unsigned seed, unsigned pattern = 1) {
  constexpr i64 block = 4, across = demo_side / block;
  std::mt19937 draw_class(pattern), draw(seed);
  auto const unit = [](std::mt19937& d) {
    return static_cast<float>(d() >> 8) / static_cast<float>(1 << 24);
  };
  std::vector<float> of_class(idx(demo_classes * across * across));
  for (float& x : of_class) x = unit(draw_class) < 0.5f ? 0.0f : 1.0f;
  std::vector<float> pixels;
  std::vector<std::int32_t> label;
  for (i64 i = 0; i < samples; ++i) {
    i64 const c = static_cast<i64>(draw() % demo_classes);
    label.push_back(static_cast<std::int32_t>(c));
    for (i64 y = 0; y < demo_side; ++y)
      for (i64 x = 0; x < demo_side; ++x)
        pixels.push_back(0.7f * of_class[idx((c * across + y / block) * across + x / block)] +
                         0.3f * unit(draw));
  }
  return {{"image", host_tensor::reals({samples, 1, demo_side, demo_side}, pixels)},
          {"label", host_tensor::integers({samples}, label)}};
}

}  // namespace tensorpar::tools
