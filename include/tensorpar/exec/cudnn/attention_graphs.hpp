// tensorpar/exec/cudnn/attention_graphs.hpp - attention and its gradient in the operations that cuDNN does as
// one (flash attention)
#pragma once
#include <limits>
#include <tensorpar/exec/cudnn/graph.hpp>

namespace tensorpar::detail {

/// Local sizes of a block of attention. Tensors are [batch, seq, heads * head] in bf16; statistics [batch,
/// head, query] in f32. packed: queries, keys and values of a head lie side by side, in one [batch, seq,
/// heads * 3 head]; so do their gradients.
struct attention_sizes {
  i64 batches, heads, queries, keys, head;
  float factor;                      // of the scores
  bool causal;                       // query i sees keys up to i
  bool packed = false;
  // from a head's queries to the next one's
  constexpr i64 pitch() const { return packed ? 3 * head : head; }
  friend bool operator==(attention_sizes const&, attention_sizes const&) = default;
};

/// Tensors of the graph, by number; -1: not in it. stats: the logarithm of each query's sum of weights.
/// Scratch: sum, as stats; part, a float for every element of q.
struct attention_tensors {
  int q = -1, k = -1, v = -1, y = -1, stats = -1, dy = -1, dq = -1, dk = -1, dv = -1, sum = -1, part = -1;
};
struct attention_graph : fused_graph {
  attention_tensors at;
};

/// The pieces that both directions are made of. Matrix products of cuDNN take keys as columns.
class attention_builder {
  attention_sizes s_;
  i64 width_ = s_.heads * s_.pitch(), scores_ = s_.queries * s_.keys;

 public:
  attention_graph g;
  explicit attention_builder(attention_sizes const& s) : s_(s) {}

  /// Of queries, keys, values or their gradients.
  int rows(i64 n) { return g.given(extent(n), apart(n), fused_type::bf16); }
  int columns(i64 n) {
    return g.given({s_.batches, s_.heads, s_.head, n}, {n * width_, s_.pitch(), 1, width_}, fused_type::bf16);
  }
  fused_sizes extent(i64 n) const { return {s_.batches, s_.heads, n, s_.head}; }
  fused_sizes apart(i64 n) const { return {n * width_, s_.pitch(), width_, 1}; }
  /// Of results or theirs.
  int results() {
    i64 const w = s_.heads * s_.head;
    return g.given(extent(s_.queries), {s_.queries * w, s_.head, w, 1}, fused_type::bf16);
  }
  int scores(fused_type type = fused_type::f32) {
    return g.hidden({s_.batches, s_.heads, s_.queries, s_.keys}, {s_.heads * scores_, scores_, s_.keys, 1},
                    type);
  }
  int line() {
    return g.hidden({s_.batches, s_.heads, s_.queries, 1}, {s_.heads * s_.queries, s_.queries, 1, 1});
  }
  int given_line() {
    return g.given({s_.batches, s_.heads, s_.queries, 1}, {s_.heads * s_.queries, s_.queries, 1, 1},
                   fused_type::f32);
  }
  /// Dense [batch, head, query, head width].
  fused_sizes dense_apart() const {
    return {s_.heads * s_.queries * s_.head, s_.queries * s_.head, s_.head, 1};
  }

  int multiply(int x, int y) {
    int const to = scores();
    g.put(fused_op::multiply, to, x, y);
    return to;
  }
  /// to = x^T y, with x rounded to bf16.
  void multiply_transposed(int x, int y, int to) {
    int const t = g.hidden({s_.batches, s_.heads, s_.keys, s_.queries},
                           {s_.heads * scores_, scores_, 1, s_.keys}, fused_type::bf16);
    g.put(fused_op::view, t, x);
    g.put(fused_op::multiply, to, t, y);
  }
  /// Scores of keys that come after their query become -infinity.
  int masked(int x) {
    if (!s_.causal) return x;
    int const row = scores(fused_type::i32), column = scores(fused_type::i32),
              seen = scores(fused_type::truth);
    g.put(fused_op::index, row, x);
    g.steps.back().axis = 2;
    g.put(fused_op::index, column, x);
    g.steps.back().axis = 3;
    g.put(fused_op::at_least, seen, row, column);
    return g.map(fused_op::select, x, g.number(-std::numeric_limits<float>::infinity()), seen);
  }
};

/// y = softmax(q k^T factor) v for every head, and stats.
inline attention_graph attention_forward(attention_sizes const& s) {
  attention_builder b(s);
  attention_tensors at;
  at.q = b.rows(s.queries);
  at.k = b.columns(s.keys);
  at.v = b.rows(s.keys);
  at.y = b.results();
  at.stats = b.given_line();
  int const x = b.masked(b.g.map(fused_op::product, b.multiply(at.q, at.k), b.g.number(s.factor)));
  int const top = b.line(), sum = b.line();
  b.g.put(fused_op::top, top, x);
  int const weight = b.g.map(fused_op::exp_, b.g.map(fused_op::minus, x, top));
  b.g.put(fused_op::sum, sum, weight);
  b.g.put(fused_op::plus, at.stats, top, b.g.map(fused_op::log_, sum));
  int const p = b.scores(fused_type::bf16);
  b.g.put(fused_op::quotient, p, weight, sum);
  b.g.put(fused_op::multiply, at.y, p, at.v);
  b.g.at = at;
  return std::move(b.g);
}

/// With P the weights: dv = P^T dy, dS = P (dy v^T - sum(dy y)) factor, dk = dS^T q, dq = dS k. in_order:
/// sums of dq have one order, which takes room for dS; else they are added up by whoever comes first, in
/// `part`.
inline attention_graph attention_backward(attention_sizes const& s, bool in_order) {
  attention_builder b(s);
  attention_tensors at;
  at.q = b.rows(s.queries);
  at.k = b.columns(s.keys);
  at.v = b.columns(s.keys);
  at.y = b.results();
  at.dy = b.results();
  at.dq = b.rows(s.queries);
  at.dk = b.rows(s.keys);
  at.dv = b.rows(s.keys);
  at.stats = b.given_line();
  at.sum = b.given_line();
  int const both = b.g.hidden(b.extent(s.queries), b.dense_apart()), total = b.line(),
            factor = b.g.number(s.factor);
  b.g.put(fused_op::product, both, at.dy, at.y);
  b.g.put(fused_op::sum, total, both);
  // a tensor with an address is no sum's result
  b.g.put(fused_op::product, at.sum, total, b.g.number(1));
  int const x = b.g.map(fused_op::product, b.multiply(at.q, at.k), factor);
  int const p = b.g.map(fused_op::exp_, b.masked(b.g.map(fused_op::minus, x, at.stats)));
  b.multiply_transposed(p, at.dy, at.dv);
  int const off = b.g.map(fused_op::minus, b.multiply(at.dy, at.v), at.sum);
  int const ds = b.g.map(fused_op::product, b.g.map(fused_op::product, off, p), factor);
  b.multiply_transposed(ds, at.q, at.dk);
  int const k = b.g.hidden(b.extent(s.keys), b.apart(s.keys), fused_type::bf16);
  b.g.put(fused_op::view, k, at.k);
  if (!in_order) at.part = b.g.given(b.extent(s.queries), b.dense_apart(), fused_type::f32);
  b.g.put(fused_op::multiply, in_order ? at.dq : at.part, ds, k);
  if (!in_order) b.g.put(fused_op::copy, at.dq, at.part);
  b.g.at = at;
  return std::move(b.g);
}

}  // namespace tensorpar::detail
