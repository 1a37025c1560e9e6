// tensorpar/zoo/recommenders.hpp - DLRM and XDL as Unity evaluates them: tables of rows beside dense layers
#pragma once
#include <tensorpar/typed/typed.hpp>
#include <tensorpar/zoo/axes.hpp>

namespace tensorpar::zoo {

/// Sizes of DLRM (Naumov et al. 2019); the defaults are those of Unity's artifact (OSDI 2022,
/// examples/cpp/DLRM). At most 31 tables. Lists end with a zero: bottom[0] is the number of dense features,
/// then outputs of layers; own_rows: rows of tables that do not have `rows`.
struct dlrm_sizes {
  i64 tables = 4, rows = 1'000'000, width = 64, bag = 1;
  i64 bottom[10] = {4, 64, 64};
  i64 top[6] = {64, 2};
  i64 own_rows[31] = {};
};

/// Dense features "dense" [batch, bottom[0]] through linear layers with ReLU; sums of `bag` rows of every
/// table by "sparse.i" [batch, bag]; all side by side; linear layers with ReLU, a sigmoid behind the last,
/// compared with "clicked". No layer has a bias.
template <dlrm_sizes S = dlrm_sizes{}> struct dlrm {
  static constexpr void define(auto& g, dlrm_sizes s = S) {
    ref x = g.input("dense", {batch, s.bottom[0]});
    for (int l = 1; l < 10 && s.bottom[l]; ++l) x = x | linear{.out = s.bottom[l], .bias = false} | relu{};
    bundle parts = all(x);
    for (int t = 0; t < s.tables; ++t) {
      i64 const rows = t < 31 && s.own_rows[t] ? s.own_rows[t] : s.rows;
      parts.push(g.input({"sparse", t}, {batch, s.bag}, dtype::i32) | embedding_bag{rows, s.width});
    }
    x = parts | concat{};
    for (int l = 0; l < 6 && s.top[l]; ++l) {
      x = x | linear{.out = s.top[l], .bias = false};
      x = l == 5 || !s.top[l + 1] ? x | sigmoid{} : x | relu{};
    }
    g.output("loss", all(x, g.input("clicked", {batch, x.type().last()})) | mean_squared_error{});
  }
};
/// The run on Summit: eight wide tables, eight and four layers.
inline constexpr dlrm_sizes dlrm_summit{.tables = 8,
                                        .width = 256,
                                        .bottom = {1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024},
                                        .top = {1024, 1024, 1024, 1024}};
/// The Criteo display advertising challenge: its 13 dense and 26 categorical features.
inline constexpr dlrm_sizes dlrm_criteo{
    .tables = 26,
    .width = 16,
    .bottom = {13, 512, 256, 64, 16},
    .top = {512, 256, 1},
    .own_rows = {1396, 550,   1761917, 507795,  290, 21,   11948, 608, 3,       58176, 5237, 1497287, 3127,
                 26,   12153, 1068715, 10,      4836, 2085, 4,     1312273, 17, 15,    110946, 91,    72655}};
inline constexpr dlrm_sizes dlrm_reduced{
    .tables = 2, .rows = 24, .width = 12, .bag = 3, .bottom = {12, 24, 12}, .top = {24, 2}};
inline constexpr dlrm_sizes dlrm_summit_reduced{
    .tables = 4, .rows = 24, .width = 12, .bottom = {12, 12, 12, 12, 12}, .top = {24, 24, 12}};
inline constexpr dlrm_sizes dlrm_criteo_reduced{.tables = 6,
                                                .rows = 24,
                                                .width = 12,
                                                .bottom = {13, 24, 12},
                                                .top = {24, 12, 1},
                                                .own_rows = {12, 16, 0, 36, 13}};

/// Sizes of XDL (Jiang et al. 2019); the defaults are those of Unity's artifact (OSDI 2022,
/// examples/cpp/XDL). At most 32 tables.
struct xdl_sizes {
  i64 tables = 4, rows = 1'000'000, width = 64, bag = 1, layers = 2, hidden = 256;
};

/// Sums of `bag` rows of every table by "sparse.i" [batch, bag], side by side; linear layers with ReLU; two
/// numbers with a sigmoid, compared with "clicked" [batch, 2]. No layer has a bias.
template <xdl_sizes S = xdl_sizes{}> struct xdl {
  static constexpr void define(auto& g, xdl_sizes s = S) {
    bundle parts{};
    for (int t = 0; t < s.tables; ++t)
      parts.push(g.input({"sparse", t}, {batch, s.bag}, dtype::i32) | embedding_bag{s.rows, s.width});
    ref x = parts | concat{};
    for (i64 l = 0; l < s.layers; ++l) x = x | linear{.out = s.hidden, .bias = false} | relu{};
    g.output("loss", all(x | linear{.out = 2, .bias = false} | sigmoid{}, g.input("clicked", {batch, 2})) |
                         mean_squared_error{});
  }
};
inline constexpr xdl_sizes xdl_reduced{
    .tables = 3, .rows = 24, .width = 12, .bag = 2, .layers = 2, .hidden = 24};

}  // namespace tensorpar::zoo
