// tests/support/typed_models.hpp - declared models that several tests use
#pragma once
#include <tensorpar/typed/typed.hpp>

namespace models {

using namespace tensorpar;
inline constexpr axis batch{"batch"}, features{"features"}, classes{"classes"}, seq_{"seq"}, hidden{"hidden"}, vocab{"vocab"},
    channels{"channels"}, height{"height"}, width{"width"}, tok{"tok"}, feature{"feature"};

struct mlp {
  static constexpr void define(auto& g) {
    auto x = g.input("image", {batch, features(784)});
    auto y = x | linear{512} | relu{} | linear{256} | relu{} | named("head", linear{.out = 10, .to = classes});
    g.output("logits", y);
  }
};

/// Two equal dropouts of one input, multiplied by ones and compared: 0 where nothing is dropped or both masks are the same.
struct two_dropouts {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {64, 32});
    auto w = g.weight("w", {64, 32}, op::init::ones);
    g.output("loss", all(all(x | dropout{0.5, 1}, w) | mul{}, x | dropout{0.5, 1}) | mean_squared_error{});
  }
};

template <i64 Heads, i64 Width>
inline constexpr auto self_attention = [](ref x) {
  auto [q, k, v] = x | linear{3 * Width} | split<3>();
  return all(q, k, v) | attention{.heads = Heads, .causal = true} | linear{Width};
};
template <i64 Heads, i64 Width>
inline constexpr auto transformer_block = seq(residual(seq(layernorm{}, self_attention<Heads, Width>)),
                                              residual(seq(layernorm{}, linear{4 * Width}, gelu{}, linear{Width})));

template <int Layers, i64 Heads, i64 Width> struct gpt {
  static constexpr void define(auto& g, i64 layers = Layers) {
    auto tokens = g.input("tokens", {batch, seq_(1024)}, dtype::i32);
    auto labels = g.input("labels", {batch, seq_(1024)}, dtype::i32);
    auto logits = tokens | embedding{.rows = 50304, .width = Width, .to = hidden} | repeat(layers, transformer_block<Heads, Width>) |
                  layernorm{} | linear{.out = 50304, .bias = false, .to = vocab};
    g.output("logits", logits);
    g.output("loss", all(logits, labels) | cross_entropy{});
  }
};

/// Two inputs to every cell: not series-parallel. Unrolled by a plain loop, or as a repeated block that carries both.
inline constexpr auto sep = [](i64 k) {
  return [=](ref x) {
    i64 const ch = x.type()[1].n;
    return x | relu{} | conv2d{.out = ch, .kernel = k, .groups = ch} | conv2d{.out = ch, .kernel = 1} | batch_norm();
  };
};
inline constexpr auto fit = [](i64 ch) { return [=](ref x) { return x | relu{} | conv2d{.out = ch, .kernel = 1} | batch_norm(); }; };
constexpr ref nasnet_cell(ref prev, ref cur, i64 ch) {
  auto p = prev | fit(ch), x = cur | fit(ch);
  // named one by one: the order in which the two sides of a + are evaluated is the compiler's
  auto x3 = x | sep(3), p3 = p | sep(3), x5 = x | sep(5), xa = x | avg_pool(3, 1, 1), pa = p | avg_pool(3, 1, 1),
       pb = p | avg_pool(3, 1, 1), p5 = p | sep(5), q3 = p | sep(3);
  auto b1 = x3 + x, b2 = p3 + x5, b3 = xa + p, b4 = pa + pb, b5 = p5 + q3;
  return all(p, b1, b2, b3, b4, b5) | concat{1} | fit(ch);
}
template <int Cells, bool Repeated = false> struct nasnet {
  static constexpr void define(auto& g) {
    auto x = g.input("image", {batch, channels(3), height(32), width(32)});
    auto prev = x | conv2d{32} | batch_norm();
    auto cur = prev | conv2d{32};
    if constexpr (Repeated) {
      auto const last = all(prev, cur) | repeat<Cells>([](bundle b) { return all(b[1], nasnet_cell(b[0], b[1], 32)); });
      prev = last[0];
      cur = last[1];
    } else {
      for (int i = 0; i < Cells; ++i) {
        auto next = nasnet_cell(prev, cur, 32);
        prev = cur;
        cur = next;
      }
    }
    g.output("logits", all(prev, cur) | add{} | global_average{} | linear{10});
  }
};

struct spelled_attention {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, tok(128), hidden(768)});
    g.output("y", x + (x | multi_head_attention(12)));
  }
};

template <int Tables, i64 Rows, i64 Width> struct dlrm {
  static constexpr void define(auto& g) {
    bundle all_features{};
    all_features.push(g.input("dense", {batch, 13}) | linear{512} | relu{} | linear{256} | relu{} | linear{.out = Width, .to = feature});
    for (int t = 0; t < Tables; ++t)
      all_features.push(g.input({"sparse", t}, {batch, 1}, dtype::i64) | embedding_bag{.rows = Rows, .width = Width, .to = feature});
    g.output("click", all_features | concat{} | linear{1024} | relu{} | linear{512} | relu{} | linear{1} | sigmoid{});
  }
};

/// A shared table, an operator of the user, a depth from anywhere, several outputs.
struct rotary {
  i64 base = 10000;
  static constexpr auto name = "rotary";
  static constexpr auto notation = "bsE -> bsE";
  static constexpr void describe(auto& s, auto&& visit) { visit("base", s.base); }
  constexpr op::inference infer(shapes in) const {
    return in[0].last().n % 2 ? op::inference(op::mismatch("width must be even", in[0], scalar)) : op::inference(in[0]);
  }
};
struct language {
  using operators = op::op_set<rotary>;
  static constexpr void define(auto& g, i64 depth = 4) {
    auto x = g.input("tokens", {batch, tok(16)}, dtype::i32);
    auto table = g.weight("table", {1000, hidden(64)});
    auto h = all(x, table) | embedding{1000, 64, hidden} | rotary{.base = 5000} |
             repeat(depth, residual(seq(layernorm{}, named("up", linear{256}), gelu{}, linear{64})));
    auto [a, b] = h | split<2>();
    g.output("left", a);
    g.output("right", b);
    g.output("logits", all(h, table) | linear{.out = 1000, .bias = false, .to = vocab});
  }
};

struct encoder {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, hidden(64)});
    g.output("y", x | repeat<3>(residual(seq(layernorm{}, linear{64}))) | relu{});
  }
};
struct two_encoders {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, 32});
    auto h = x | linear{.out = 64, .to = hidden};
    auto a = h | part<encoder>();
    auto b = h | linear{64} | part<encoder>();
    auto sum = a + b;
    g.output("y", sum | linear{2});
  }
};
struct two_encoders_inline {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, 32});
    auto h = x | linear{.out = 64, .to = hidden};
    auto enc = [](ref y) { return y | repeat<3>(residual(seq(layernorm{}, linear{64}))) | relu{}; };
    auto a = enc(h);
    auto b = enc(h | linear{64});
    auto sum = a + b;
    g.output("y", sum | linear{2});
  }
};

inline constexpr auto body = linear{32} | relu{} | linear{4};
inline constexpr shape body_input{batch, features(8)};
inline constexpr auto chained = typed<chain<body, body_input>>;

/// VGG-16 (Simonyan and Zisserman 2015, configuration D) as it is commonly built: 138,357,544 parameters.
struct vgg16 {
  static constexpr void define(auto& g) {
    auto x = g.input("image", {batch, 3, 224, 224});
    constexpr i64 convolutions[] = {2, 2, 3, 3, 3}, outs[] = {64, 128, 256, 512, 512};
    for (int stage = 0; stage < 5; ++stage) {
      for (i64 i = 0; i < convolutions[stage]; ++i) x = x | conv2d{.out = outs[stage], .pad = 1, .bias = true} | relu{};
      x = x | pool2d{};
    }
    g.output("classes", x | flatten{} | linear{4096} | relu{} | linear{4096} | relu{} | linear{1000});
  }
};

/// ResNet-50 (He et al. 2016) with the stride in the 3x3 convolution: 25,557,032 parameters.
struct resnet50 {
  static constexpr ref convolve(ref x, i64 out, i64 kernel, i64 stride) {
    return x | conv2d{.out = out, .kernel = kernel, .stride = stride, .pad = kernel / 2} | batch_norm();
  }
  static constexpr void define(auto& g) {
    auto x = convolve(g.input("image", {batch, 3, 224, 224}), 64, 7, 2) | relu{} | pool2d{.kernel = 3, .stride = 2, .pad = 1};
    constexpr i64 blocks[] = {3, 4, 6, 3};
    for (int stage = 0; stage < 4; ++stage)
      for (i64 b = 0; b < blocks[stage]; ++b) {
        i64 const inner = i64{64} << stage, stride = stage > 0 && b == 0 ? 2 : 1;
        auto y = convolve(convolve(convolve(x, inner, 1, 1) | relu{}, inner, 3, stride) | relu{}, 4 * inner, 1, 1);
        x = (y + (b == 0 ? convolve(x, 4 * inner, 1, stride) : x)) | relu{};
      }
    g.output("classes", x | global_average{} | linear{1000});
  }
};

}  // namespace models
