// tensorpar/zoo/llama.hpp - LLaMA-3: decoder layers with RMS norm, grouped queries and gated linear layers
#pragma once
#include <tensorpar/typed/typed.hpp>
#include <tensorpar/zoo/axes.hpp>

namespace tensorpar::zoo {

/// Sizes of LLaMA-3 (Grattafiori et al. 2024, table 3); the defaults are those of 8B. kv_heads: heads of keys
/// and of values.
struct llama_sizes {
  i64 layers = 32, hidden = 4096, heads = 32, kv_heads = 8, wide = 14336, seq = 8192, vocab = 128256;
};

/// Every head of keys or values once for each of the query heads that read it: [batch, tokens, kv_heads *
/// head] to [batch, tokens, hidden].
constexpr auto to_every_head(llama_sizes s) {
  return [s](ref x) {
    return s.heads == s.kv_heads ? x : x | op::repeat_heads{s.kv_heads, s.heads / s.kv_heads};
  };
}

/// "tokens" [batch, seq], embedded; decoder layers; RMS norm, one linear layer, not shared with the
/// embedding; "labels" [batch, seq]. A layer: RMS norm, causal attention of grouped queries (Ainslie et al.
/// 2023), added; RMS norm, silu(gate) * up (Shazeer 2020) through one linear layer, added. No biases. Rotary
/// positions have no parameters and are not modelled.
template <llama_sizes S = llama_sizes{}> struct llama {
  static constexpr void define(auto& g, llama_sizes s = S) {
    shape const ids{batch, zoo::tokens(s.seq)};
    auto plain = [](i64 out) { return linear{.out = out, .bias = false}; };
    ref const x =
        g.input("tokens", ids, dtype::i32) | embedding{s.vocab, s.hidden} |
        repeat(s.layers, [s, plain](ref y) {
          i64 const narrow = s.hidden / s.heads * s.kv_heads;
          ref const n = y | rmsnorm{}, q = n | plain(s.hidden), k = n | plain(narrow) | to_every_head(s);
          ref const v = n | plain(narrow) | to_every_head(s);
          ref const z = y + (all(q, k, v) | attention{.heads = s.heads, .causal = true} | plain(s.hidden));
          ref const m = z | rmsnorm{}, gate = m | plain(s.wide), up = m | plain(s.wide);
          return z + (all(gate, up) | op::swiglu{} | plain(s.hidden));
        });
    ref const logits = x | rmsnorm{} | plain(s.vocab);
    g.output("loss", all(logits, g.input("labels", ids, dtype::i32)) | cross_entropy{});
  }
};
inline constexpr llama_sizes llama3_70b{.layers = 80, .hidden = 8192, .heads = 64, .wide = 28672};
inline constexpr llama_sizes llama3_405b{.layers = 126, .hidden = 16384, .heads = 128, .wide = 53248};
inline constexpr llama_sizes llama_reduced{
    .layers = 2, .hidden = 24, .heads = 6, .kv_heads = 2, .wide = 36, .seq = 12, .vocab = 24};

}  // namespace tensorpar::zoo
