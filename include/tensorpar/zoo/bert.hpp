// tensorpar/zoo/bert.hpp - BERT-Large: the network, and the stack of Unity's artifact
#pragma once
#include <tensorpar/typed/typed.hpp>
#include <tensorpar/zoo/axes.hpp>

namespace tensorpar::zoo {

/// Sizes of BERT-Large (Devlin et al. 2019, section 3); types: kinds of segments.
struct bert_sizes {
  i64 layers = 24, hidden = 1024, heads = 16, wide = 4096, seq = 512, vocab = 30522, types = 2;
};

/// Inputs are [batch, seq] indices, "tokens", "positions" and "segments", and "labels" [batch, seq]:
///  - three embeddings, added and normalised;
///  - encoder layers: attention with its four projections, two linear layers with a GELU between, residual
///    and layer norm behind each;
///  - the head of masked language modelling: linear, GELU, layer norm, product with the embedding of tokens.
/// Differs from the paper: every position counts in the loss, where a batch of BERT has 15 % of them masked
/// and scored. There is no dropout and no next-sentence head.
template <bert_sizes S = bert_sizes{}> struct bert {
  static constexpr void define(auto& g, bert_sizes s = S) {
    shape const ids{batch, zoo::tokens(s.seq)};
    ref const table = g.weight("token_table", {s.vocab, s.hidden});
    ref const t = all(g.input("tokens", ids, dtype::i32), table) | embedding{s.vocab, s.hidden};
    ref const p = g.input("positions", ids, dtype::i32) | embedding{s.seq, s.hidden};
    ref const k = g.input("segments", ids, dtype::i32) | embedding{s.types, s.hidden};
    ref const x = ((t + p) + k) | layernorm{1e-12} | repeat(s.layers, [s](ref y) {
      ref const q = y | linear{s.hidden}, key = y | linear{s.hidden}, v = y | linear{s.hidden};
      ref const z =
          (y + (all(q, key, v) | attention{.heads = s.heads} | linear{s.hidden})) | layernorm{1e-12};
      return (z + (z | linear{s.wide} | gelu{} | linear{s.hidden})) | layernorm{1e-12};
    });
    ref const logits = all(x | linear{s.hidden} | gelu{} | layernorm{1e-12}, table,
                           g.weight("vocab_bias", {s.vocab}, op::init::zeros)) |
                       linear{.out = s.vocab};
    g.output("loss", all(logits, g.input("labels", ids, dtype::i32)) | cross_entropy{});
  }
};
inline constexpr bert_sizes bert_reduced{
    .layers = 2, .hidden = 12, .heads = 2, .wide = 24, .seq = 12, .vocab = 24, .types = 12};

/// Sizes of what Unity's artifact runs as BERT; its option for more layers makes 24 of them.
struct bert_artifact_sizes {
  i64 layers = 12, hidden = 1024, heads = 16, seq = 512;
};

/// Layers of attention and two linear layers with a ReLU between, all as wide as "x" [batch, seq, hidden],
/// then a linear layer to one number per token, compared with "target" [batch, seq, 1] (OSDI 2022,
/// examples/cpp/Transformer). No embeddings, residuals, layer norms or biases. There attention is one
/// operator that holds its four projections: 37 operators with 12 layers, 73 with 24.
template <bert_artifact_sizes S = bert_artifact_sizes{}> struct bert_artifact {
  static constexpr void define(auto& g, bert_artifact_sizes s = S) {
    linear const square{.out = s.hidden, .bias = false};
    ref const x = g.input("x", {batch, zoo::tokens(s.seq), s.hidden}) | repeat(s.layers, [s, square](ref y) {
      ref const q = y | square, k = y | square, v = y | square;
      return all(q, k, v) | attention{.heads = s.heads} | square | square | relu{} | square;
    });
    g.output("loss",
             all(x | linear{.out = 1, .bias = false}, g.input("target", {batch, zoo::tokens(s.seq), 1})) |
                 mean_squared_error{});
  }
};
inline constexpr bert_artifact_sizes bert_artifact_reduced{.layers = 2, .hidden = 12, .heads = 2, .seq = 12};

}  // namespace tensorpar::zoo
