// tensorpar/zoo/nasnet.hpp - NASNet-A: cells that take the outputs of the two cells before
#pragma once
#include <tensorpar/typed/typed.hpp>
#include <tensorpar/zoo/axes.hpp>

namespace tensorpar::zoo {

/// Sizes of NASNet-A (Zoph et al. 2018). The defaults are those of NASNet-A (4 @ 1056): 4 cells in each of
/// three stages, and 1056 = 6 * 4 * 44 channels at the end. `filters` are those of the first stage, twice as
/// many in each that follows.
struct nasnet_sizes {
  i64 image = 224, classes = 1000, stem = 32, filters = 44, cells = 4, stages = 3;
};

namespace detail {

/// ReLU, convolution, batch normalisation.
constexpr ref fit_channels(ref x, i64 out, i64 stride) {
  return x | relu{} | conv2d{.out = out, .kernel = 1, .stride = stride} | batch_norm(1e-3);
}
/// A separable convolution, applied twice: each time ReLU, one filter per channel, a 1x1 convolution, batch
/// normalisation.
constexpr ref separable(ref x, i64 out, i64 kernel, i64 stride = 1) {
  for (int turn = 0; turn < 2; ++turn) {
    i64 const channels = x.type()[1].n;
    x = x | relu{} |
        conv2d{.out = channels, .kernel = kernel, .stride = turn == 0 ? stride : 1, .groups = channels} |
        conv2d{.out = out, .kernel = 1} | batch_norm(1e-3);
  }
  return x;
}
/// What a cell sees of the cell before the last: as large as the last one's output, and of `out` channels.
constexpr ref fit_previous(ref p, ref h, i64 out) {
  bool const larger = p.type()[2].n != h.type()[2].n;
  return larger || p.type()[1].n != out ? fit_channels(p, out, larger ? 2 : 1) : p;
}
/// The normal cell (figure 4, left): h, p are the outputs of the last cell and of the one before.
constexpr ref normal_cell(ref before, ref last, i64 out) {
  ref const p = fit_previous(before, last, out), h = fit_channels(last, out, 1);
  ref const h5 = separable(h, out, 5), p3 = separable(p, out, 3), p5 = separable(p, out, 5),
            q3 = separable(p, out, 3);
  ref const h_mean = h | avg_pool(3, 1, 1), p_mean = p | avg_pool(3, 1, 1), q_mean = p | avg_pool(3, 1, 1),
            h3 = separable(h, out, 3);
  return all(p, h5 + p3, p5 + q3, h_mean + p, p_mean + q_mean, h3 + h) | concat{1};
}
/// The reduction cell (figure 4, right), which halves height and width.
constexpr ref reduction_cell(ref before, ref last, i64 out, bool first) {
  ref const p = first ? before : fit_previous(before, last, out), h = fit_channels(last, out, 1);
  ref const h5 = separable(h, out, 5, 2), p7 = separable(p, out, 7, 2), a = h5 + p7;
  ref const top = h | max_pool(3, 2, 1), q7 = separable(p, out, 7, 2), b = top + q7;
  ref const mean = h | avg_pool(3, 2, 1), p5 = separable(p, out, 5, 2), c = mean + p5;
  ref const a_mean = a | avg_pool(3, 1, 1), d = a_mean + b, a3 = separable(a, out, 3),
            again = h | max_pool(3, 2, 1);
  return all(b, c, d, a3 + again) | concat{1};
}

}  // namespace detail

/// Images "image" [batch, 3, image, image] with classes "label" [batch]: a 3x3 convolution, two reduction
/// cells, stages of normal cells with a reduction cell between, ReLU, an average over the whole map, one
/// linear layer. Not series-parallel: a cell's output goes into the two cells that follow. A normal cell is 5
/// separable convolutions, 3 averages, 2 tensors taken as they are, 5 additions; its concatenation takes the
/// adjusted p as well, or 4 @ 1056 would not be six parts. Differs from the paper: where p is larger than h
/// it is read at every second pixel, not at two interleaved sets of pixels, one for each half of the channels
/// (as many parameters); no drop path, no auxiliary classifier.
template <nasnet_sizes S = nasnet_sizes{}> struct nasnet {
  static constexpr void define(auto& g, nasnet_sizes s = S) {
    ref h = g.input("image", {batch, 3, s.image, s.image}) | conv2d{.out = s.stem, .stride = 2, .pad = 0} |
            batch_norm(1e-3),
        p = h;
    bool first = true;
    auto cell = [&](bool reduces, i64 out) {
      ref const y = reduces ? detail::reduction_cell(p, h, out, first) : detail::normal_cell(p, h, out);
      p = h;
      h = y;
      first = false;
    };
    cell(true, s.filters / 4);
    cell(true, s.filters / 2);
    i64 out = s.filters;
    for (i64 stage = 0; stage < s.stages; ++stage, out *= 2) {
      if (stage > 0) cell(true, out);
      for (i64 k = 0; k < s.cells; ++k) cell(false, out);
    }
    ref const logits = h | relu{} | global_average{} | linear{s.classes};
    g.output("loss", all(logits, g.input("label", {batch}, dtype::i32)) | cross_entropy{});
  }
};
inline constexpr nasnet_sizes nasnet_reduced{
    .image = 50, .classes = 12, .stem = 4, .filters = 4, .cells = 2, .stages = 2};

}  // namespace tensorpar::zoo
