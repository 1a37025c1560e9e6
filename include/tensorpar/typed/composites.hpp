// tensorpar/typed/composites.hpp - layers that are several operators
#pragma once
#include <tensorpar/op/operators.hpp>
#include <tensorpar/typed/compose.hpp>

namespace tensorpar {

// Templates, though of one type each: who does not use them does not compile the operators that they are made
// of.

/// Batch normalisation of [n,c,h,w] (Ioffe and Szegedy 2015): sums per channel over the whole batch, then x
/// normalised by them. Two operators, so that a split batch still has the statistics of the whole batch.
constexpr auto batch_norm(double eps = 1e-5, std::source_location l = std::source_location::current()) {
  return [eps, at = detail::place_of(l)](std::same_as<ref> auto x) {
    return detail::put(op::normalize{eps}, at, x, detail::put(op::channel_moments{}, at, x));
  };
}

/// Multi-head attention (Vaswani et al. 2017) spelled with primitives: projections, heads split off as an
/// axis, softmax(q k^T / sqrt(d)) v, projection back. On a tensor [batch, seq, width] it is self-attention;
/// on all(q, k, v) it attends to keys and values of another tensor. Every axis keeps its name. `attention`
/// (op/attention/attention.hpp) is the same without the projections, as one operator, with an optional causal
/// mask.
struct multi_head_attention_t {
  i64 heads;
  op::place at;
  constexpr ref operator()(std::same_as<ref> auto x) const { return (*this)(all(x, x, x)); }
  constexpr ref operator()(std::same_as<bundle> auto const& x) const {
    model_builder& g = *x.r[0].g;
    if (x.n != 3)
      return g.fail(detail::at(attention{heads}, at),
                    op::mismatch("attention takes query, key and value", shape{dim(x.n)}, scalar));
    for (ref const& t : {x.r[0], x.r[1], x.r[2]}) {
      if (t.v < 0) return t;
      shape const& s = t.type();
      if (s.rank != 3)
        return g.fail(detail::at(attention{heads}, at),
                      op::mismatch("attention takes [batch,seq,hidden]", s, scalar));
      if (heads < 1 || s.last().n % heads)
        return g.fail(detail::at(attention{heads}, at),
                      op::mismatch("width not divisible by heads", s, shape{dim(heads)}));
    }
    dim const width = x.r[0].type().last();
    i64 const each = width.n / heads;
    constexpr axis head{"heads"}, inner{"head_dim"};
    auto put = [this](op::any_op const& o, ref t) { return detail::put(o, at, t); };
    auto project = [&](ref t) {
      return put(transpose{1, 2},
                 put(split_axis{-1, each, head, inner}, put(linear{.out = width.n, .to = width.name}, t)));
    };
    // [batch, heads, seq, head_dim]
    ref const q = project(x.r[0]), k = project(x.r[1]), v = project(x.r[2]);
    // a square root that is constant-evaluated: <cmath> is not constexpr
    double root = static_cast<double>(each);
    for (int i = 0; i < 64; ++i) root = (root + static_cast<double>(each) / root) / 2;
    ref const scores = put(scale{1 / root}, detail::put(matmul{.transpose_b = true}, at, q, k));
    ref const y = detail::put(matmul{}, at, put(softmax{}, scores), v);
    return put(linear{.out = width.n, .to = width.name},
               put(merge_axes{2, width.name}, put(transpose{1, 2}, y)));
  }
};
constexpr multi_head_attention_t multi_head_attention(
    i64 heads, std::source_location l = std::source_location::current()) {
  return {heads, detail::place_of(l)};
}

}  // namespace tensorpar
