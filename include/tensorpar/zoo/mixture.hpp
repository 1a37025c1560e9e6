// tensorpar/zoo/mixture.hpp - a mixture of experts in GShard's shapes
#pragma once
#include <tensorpar/typed/typed.hpp>
#include <tensorpar/zoo/axes.hpp>
#include <tensorpar/zoo/gpt.hpp>

namespace tensorpar::zoo {

/// Sizes of a language model with experts; the defaults are those of PredTOP's MoE of 2.6e9 parameters (table
/// IV). `group` tokens choose among `capacity` slots of every expert; it divides seq.
/// The table does not say which layers have experts, nor how wide they are. As in GShard (Lepikhin et al.
/// 2020) every second one has, and the feed-forward layers are eight times as wide as the rest (8192 to 1024
/// there): 2.69e9 parameters. (Experts in every layer, four times as wide, would be 2.5e9.) Its groups have
/// 2048 tokens, two sequences; here a group is one sequence at most, or the number of samples would not be
/// free. Slots are 2 group / experts, as for two experts per token.
struct mixture_sizes {
  i64 layers = 32, hidden = 768, heads = 16, seq = 1024, vocab = 32000, wide = 6144, experts = 16,
      group = 1024, capacity = 128;
};

/// Layer norm, experts, added to x [batch, tokens, hidden]. With groups g, tokens s, experts e, slots c
/// (GShard, algorithm 2): tokens are dispatched, gsec,gsm->egcm, go through their expert's two linear layers
/// with a ReLU between, egcm,emh->egch and egch,ehm->egcm, and are combined, gsec,egcm->gsm. There is no
/// operator that picks the best two experts, so the gate is soft: a softmax of each token over all slots of
/// all experts, which weighs dispatching and combining alike. The auxiliary loss that balances a hard gate is
/// left out.
constexpr auto expert_block(mixture_sizes s) {
  return [s](ref x) {
    auto& g = *x.g;
    bool const cut = s.group != s.seq;
    ref y = x | layernorm{};
    if (cut) y = y | split_axis{1, s.group} | merge_axes{0};
    ref const gate =
        y | linear{.out = s.experts * s.capacity, .bias = false} | softmax{} | split_axis{-1, s.capacity};
    ref const in = g.weight("expert_in", {s.experts, s.hidden, s.wide}),
              out = g.weight("expert_out", {s.experts, s.wide, s.hidden});
    ref const sent = all(gate, y) | contraction("gsec,gsm->egcm");
    ref const made =
        all(all(sent, in) | contraction("egcm,emh->egch") | relu{}, out) | contraction("egch,ehm->egcm");
    y = all(gate, made) | contraction("gsec,egcm->gsm");
    if (cut) y = y | split_axis{0, s.seq / s.group, batch} | merge_axes{1, zoo::tokens};
    return x + y;
  };
}

/// A GPT (see `gpt`) with experts in every second layer; an odd last layer has none.
template <mixture_sizes S = mixture_sizes{}> struct mixture {
  static constexpr void define(auto& g, mixture_sizes s = S) {
    shape const ids{batch, zoo::tokens(s.seq)};
    ref const table = g.weight("token_table", {s.vocab, s.hidden});
    ref const t = all(g.input("tokens", ids, dtype::i32), table) | embedding{s.vocab, s.hidden};
    ref const p = g.input("positions", ids, dtype::i32) | embedding{s.seq, s.hidden};
    auto const dense = attention_block(s.hidden, s.heads) | feed_forward_block(s.hidden, s.wide);
    ref x = (t + p) | repeat(s.layers / 2, dense | attention_block(s.hidden, s.heads) | expert_block(s));
    if (s.layers % 2) x = x | dense;
    ref const logits = all(x | layernorm{}, table) | linear{.out = s.vocab, .bias = false};
    g.output("loss", all(logits, g.input("labels", ids, dtype::i32)) | cross_entropy{});
  }
};
/// Groups of half a sequence.
inline constexpr mixture_sizes mixture_reduced{.layers = 4,
                                               .hidden = 12,
                                               .heads = 2,
                                               .seq = 24,
                                               .vocab = 24,
                                               .wide = 24,
                                               .experts = 4,
                                               .group = 12,
                                               .capacity = 6};

}  // namespace tensorpar::zoo
