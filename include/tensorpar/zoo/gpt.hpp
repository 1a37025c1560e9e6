// tensorpar/zoo/gpt.hpp - GPT-3: decoder layers over embedded tokens
#pragma once
#include <tensorpar/typed/typed.hpp>
#include <tensorpar/zoo/axes.hpp>

namespace tensorpar::zoo {

/// Sizes of a GPT; the defaults are those of PredTOP's GPT-3 of 1.3e9 parameters (table IV).
/// packed: queries, keys and values are made by one linear layer, head by head (op/attention/packed.hpp), as
/// GPT-2 has one (whose published weights have all queries first). Attention then splits by samples and
/// heads, not by queries.
struct gpt_sizes {
  i64 layers = 24, hidden = 2048, heads = 32, seq = 1024, vocab = 51200, wide = 8192;
  bool packed = false;
};

/// Layer norm, causal attention with its four projections (packed: two), added to x: [batch, tokens, hidden].
constexpr auto attention_block(i64 hidden, i64 heads, bool packed = false) {
  return [hidden, heads, packed](ref x) {
    ref const y = x | layernorm{};
    if (packed)
      return x + (y | linear{3 * hidden} | packed_attention{.heads = heads, .causal = true} | linear{hidden});
    ref const q = y | linear{hidden}, k = y | linear{hidden}, v = y | linear{hidden};
    return x + (all(q, k, v) | attention{.heads = heads, .causal = true} | linear{hidden});
  };
}
/// Layer norm, two linear layers with a GELU between, added to x.
constexpr auto feed_forward_block(i64 hidden, i64 wide) {
  return residual(seq(layernorm{}, linear{wide}, gelu{}, linear{hidden}));
}

/// "tokens" and "positions" [batch, seq], embedded and added; decoder layers (Radford et al. 2019: layer norm
/// before each part, one more at the end); the product with the embedding of tokens; "labels" [batch, seq],
/// the token that follows each. As GPT-2 and GPT-3 it shares the table between first and last layer. Not
/// modelled: dropout, and that every second layer of GPT-3 attends to a band of tokens.
template <gpt_sizes S = gpt_sizes{}> struct gpt {
  static constexpr void define(auto& g, gpt_sizes s = S) {
    shape const ids{batch, zoo::tokens(s.seq)};
    ref const table = g.weight("token_table", {s.vocab, s.hidden});
    ref const t = all(g.input("tokens", ids, dtype::i32), table) | embedding{s.vocab, s.hidden};
    ref const p = g.input("positions", ids, dtype::i32) | embedding{s.seq, s.hidden};
    auto const layer = attention_block(s.hidden, s.heads, s.packed) | feed_forward_block(s.hidden, s.wide);
    ref const x = (t + p) | repeat(s.layers, layer) | layernorm{};
    ref const logits = all(x, table) | linear{.out = s.vocab, .bias = false};
    g.output("loss", all(logits, g.input("labels", ids, dtype::i32)) | cross_entropy{});
  }
};
/// Brown et al. 2020, table 2.1, with the vocabulary of GPT-2.
inline constexpr gpt_sizes gpt3_175b{
    .layers = 96, .hidden = 12288, .heads = 96, .seq = 2048, .vocab = 50257, .wide = 49152};
/// Radford et al. 2019, table 2, by their number of parameters.
inline constexpr gpt_sizes gpt2_124m{
    .layers = 12, .hidden = 768, .heads = 12, .seq = 1024, .vocab = 50257, .wide = 3072, .packed = true};
inline constexpr gpt_sizes gpt2_774m{
    .layers = 36, .hidden = 1280, .heads = 20, .seq = 1024, .vocab = 50257, .wide = 5120, .packed = true};
inline constexpr gpt_sizes gpt2_1b5{
    .layers = 48, .hidden = 1600, .heads = 25, .seq = 1024, .vocab = 50257, .wide = 6400, .packed = true};
inline constexpr gpt_sizes gpt_reduced{
    .layers = 2, .hidden = 12, .heads = 2, .seq = 12, .vocab = 24, .wide = 48};

}  // namespace tensorpar::zoo
