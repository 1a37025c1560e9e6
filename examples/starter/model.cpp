// model.cpp - change the network here: this source alone is compiled again
#include "model.hpp"

#include <random>
#include <tensorpar/tensorpar.hpp>
#include <tensorpar/typed/lower.hpp>

using namespace tensorpar;

namespace {

constexpr axis batch{"batch"}, features{"features"}, classes{"classes"};
constexpr int samples_of_a_step = 64, inputs = 16, kinds = 4;

struct classifier {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, features(inputs)});
    auto label = g.input("label", {batch}, dtype::i32);
    auto logits = x | linear{128} | relu{} | linear{.out = kinds, .to = classes};
    g.output("loss", all(logits, label) | cross_entropy{});
  }
};

}  // namespace

training_problem problem() {
  return {.graph = lower(typed<classifier>, {batch = 1}),
          .samples = samples_of_a_step,
          .optimizer = {optimizer_kind::momentum},
          .name = "classifier"};
}

host_batch samples(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> x;
  std::vector<std::int32_t> label;
  for (int i = 0; i < samples_of_a_step; ++i) {
    label.push_back(static_cast<std::int32_t>(random() % kinds));
    for (int k = 0; k < inputs; ++k)      // a point near the corner of its kind
      x.push_back(static_cast<float>(random() % 1000) / 1000 + (k % kinds == label.back() ? 1.0f : 0.0f));
  }
  return {{"x", host_tensor::reals({samples_of_a_step, inputs}, x)},
          {"label", host_tensor::integers({samples_of_a_step}, label)}};
}
