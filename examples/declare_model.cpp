// examples/declare_model.cpp - what a model may be written with: names, shared weights, blocks, branches, parts, your own sizes
#include "standard_output.hpp"
#include <cstdio>
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;

// [quoted: axes]
constexpr axis batch{"batch"}, seq_len{"seq_len"}, width{"width"}, vocab{"vocab"}, pixels{"pixels"}, classes{"classes"};
// [end]

// [quoted: shared]
struct two_views {
  static constexpr void define(auto& g) {
    auto left = g.input("left", {batch, pixels(64)});
    auto right = g.input("right", {batch, pixels(64)});
    auto label = g.input("label", {batch}, dtype::i32);
    auto w = g.weight("tower.w", {width(32), pixels(64)});             // a linear's weights: [out, in], then the bias [out]
    auto b = g.weight("tower.b", {width(32)}, op::init::zeros);
    auto one = all(left, w, b) | linear{.out = 32, .to = width} | relu{};
    auto other = all(right, w, b) | linear{.out = 32, .to = width} | relu{};
    auto logits = all(one, other) | concat{} | named("head", linear{.out = 10, .to = classes});
    g.output("loss", all(logits, label) | cross_entropy{});
  }
};
static_assert(parameters(typed<two_views>) == 32 * 64 + 32 + 10 * 64 + 10);
// [end]

// [quoted: blocks]
constexpr auto feed_forward = seq(layernorm{}, linear{.out = 128}, gelu{}, linear{.out = 32});

struct encoder {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, seq_len(16), width(32)});
    auto block = [](ref h) {                                             // a function of tensors is a layer
      auto y = h | layernorm{};
      return h + (all(y, y, y) | multi_head_attention(4)) | residual(feed_forward);
    };
    g.output("y", x | repeat<6>(block) | rmsnorm{});                     // six turns, each with weights of its own
  }
};

struct language_model {
  static constexpr void define(auto& g) {
    auto tokens = g.input("tokens", {batch, seq_len(16)}, dtype::i32);
    auto next = g.input("next", {batch, seq_len(16)}, dtype::i32);
    auto table = g.weight("table", {vocab(100), width(32)});             // one weight: rows that are looked up, and the last layer
    auto h = all(tokens, table) | embedding{.rows = 100, .width = 32, .to = width} | part<encoder>();
    auto [gate, value] = h | linear{.out = 64, .to = width} | split<2>();
    auto logits = all((gate | sigmoid{}) * value, table) | linear{.out = 100, .bias = false, .to = vocab};
    g.output("logits", logits);
    g.output("loss", all(logits, next) | cross_entropy{});
  }
};
static_assert(is_series_parallel(typed<encoder>));
// [end]

// [quoted: sizes]
/// The same kind of declaration with sizes that are known at run time only.
void tower(auto& g, i64 inputs, i64 layers) {
  ref x = g.input("x", {batch, pixels(inputs)});
  for (int i = 0; i < layers; ++i) x = x | linear{.out = inputs} | relu{};
  g.output("y", x);
}
computation_graph make_tower(i64 inputs, i64 layers) {
  model_builder g;
  tower(g, inputs, layers);
  return lower(g, {batch = 32});                                         // throws `error` with the first complaint
}
// [end]

int main() {
  computation_graph const views = lower(typed<two_views>, {batch = 8}), language = lower(typed<language_model>, {batch = 2});
  computation_graph const deep = make_tower(16, 5);
  std::printf("%d, %d and %d operators; %lld parameters in the language model\n", views.node_count(), language.node_count(),
              deep.node_count(), static_cast<long long>(parameters(typed<language_model>)));
  return deep.node_count() == 10 ? 0 : 1;
}
