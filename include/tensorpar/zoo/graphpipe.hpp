// tensorpar/zoo/graphpipe.hpp - the branched models of the GraphPipe evaluation, as typed models with their
// sizes as parameters
#pragma once
#include <tensorpar/typed/typed.hpp>
#include <tensorpar/zoo/axes.hpp>

namespace tensorpar::zoo {

/// Sizes of the multi-modal transformer; the defaults are those of the thesis (section 3.10.3). At most 32
/// branches.
struct mmt_sizes {
  int branches = 4, layers = 8;
  i64 tokens = 256, hidden = 1024, heads = 16, wide = 4096;
};

/// Branches of transformer layers (attention with its four projections, two linear layers with a ReLU
/// between) that end in one concatenation. Inputs "mode.i" [batch, tokens, hidden] are embedded already; the
/// loss is the mean squared distance to "target". As in figure 3.8, layers have no residual connections and
/// no normalisation.
template <mmt_sizes S = mmt_sizes{}> struct mmt {
  static constexpr void define(auto& g, mmt_sizes s = S) {
    bundle ends{};
    for (int b = 0; b < s.branches; ++b) {
      ref x = g.input({"mode", b}, {batch, zoo::tokens(s.tokens), s.hidden});
      for (int l = 0; l < s.layers; ++l) {
        ref const q = x | linear{s.hidden}, k = x | linear{s.hidden}, v = x | linear{s.hidden};
        x = all(q, k, v) | attention{.heads = s.heads} | linear{s.hidden} | linear{s.wide} | relu{} |
            linear{s.hidden};
      }
      ends.push(x);
    }
    ref const joined = ends | concat{};
    g.output("loss", all(joined, g.input("target", {batch, zoo::tokens(s.tokens), s.branches * s.hidden})) |
                         mean_squared_error{});
  }
};
/// Two small branches of two layers.
inline constexpr mmt_sizes mmt_reduced{
    .branches = 2, .layers = 2, .tokens = 12, .hidden = 12, .heads = 2, .wide = 24};
/// The case study of section 3.7.4: two branches of four layers.
using two_branches = mmt<mmt_sizes{.branches = 2, .layers = 4}>;

/// Sizes of DLRM as GraphPipe evaluates it (section 3.10.3). The thesis does not say how many layers follow
/// the interaction: two.
struct dlrm_graphpipe_sizes {
  int dense = 7, sparse = 7, layers = 4, top = 2;
  i64 hidden = 4096, rows = 1'000'000, width = 64, bag = 100;
};

/// Branches of linear layers for dense features, branches that look bags of rows up and put them side by
/// side, a concatenation, linear layers, one score. At most 32 branches together.
template <dlrm_graphpipe_sizes S = dlrm_graphpipe_sizes{}> struct dlrm_graphpipe {
  static constexpr void define(auto& g, dlrm_graphpipe_sizes s = S) {
    bundle ends{};
    for (int b = 0; b < s.dense; ++b) {
      ref x = g.input({"dense", b}, {batch, s.hidden});
      for (int l = 0; l < s.layers; ++l) x = x | linear{s.hidden} | relu{};
      ends.push(x);
    }
    for (int b = 0; b < s.sparse; ++b)
      ends.push(g.input({"sparse", b}, {batch, s.bag}, dtype::i32) | embedding{s.rows, s.width} | flatten{});
    ref x = ends | concat{};
    for (int l = 0; l < s.top; ++l) x = x | linear{s.hidden} | relu{};
    ref const score = x | linear{1};
    g.output("loss", all(score, g.input("clicked", {batch, 1})) | mean_squared_error{});
  }
};

/// Sizes of CANDLE-Uno as GraphPipe evaluates it (section 3.10.3). At most 32 branches.
struct candle_uno_graphpipe_sizes {
  int branches = 7, layers = 4;
  i64 hidden = 4096;
};

/// Branches of linear layers, a concatenation, one linear layer to the response.
template <candle_uno_graphpipe_sizes S = candle_uno_graphpipe_sizes{}> struct candle_uno_graphpipe {
  static constexpr void define(auto& g, candle_uno_graphpipe_sizes s = S) {
    bundle ends{};
    for (int b = 0; b < s.branches; ++b) {
      ref x = g.input({"feature", b}, {batch, s.hidden});
      for (int l = 0; l < s.layers; ++l) x = x | linear{s.hidden} | relu{};
      ends.push(x);
    }
    ref const response = ends | concat{} | linear{1};
    g.output("loss", all(response, g.input("growth", {batch, 1})) | mean_squared_error{});
  }
};

}  // namespace tensorpar::zoo
