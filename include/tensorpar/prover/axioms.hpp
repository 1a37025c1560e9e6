// tensorpar/prover/axioms.hpp - the properties of operators that proofs of rules use
#pragma once
#include <string_view>

namespace tensorpar::prover {

/// An equation between two patterns, in the text form of rules. Operators are total: an ill-typed term has
/// the value "undefined", and every operator of something undefined is undefined.
///  - both: the two sides are equal, hence defined together;
///  - forward: where the left side is defined, so is the right side, and they are equal;
///  - guarded: where both are defined they are equal.
/// Axes are counted from the last one (-1), so that an axiom holds for every rank. Requirements of values on
/// shardings are no axioms: they are worked out from the operators (prover/cases/sharding_system.hpp).
enum class axiom_kind : int { both, forward, guarded };
struct axiom {
  std::string_view name;
  axiom_kind kind;
  std::string_view text;
  /// Terms that must be there before a proof uses the axiom, separated by commas; empty: Z3 chooses. For
  /// equations one side of which would bring in new terms for ever.
  std::string_view trigger = {};
};

/// The set. Each is tried on random shapes in the prime field (prover/try_axiom.hpp) and over symbols at
/// small sizes (prover/symbolic.hpp). TASO's properties (SOSP'19, table 2) are among those of element-wise
/// operators, transpose, concat, matmul, conv2d and pool2d.
inline constexpr axiom axioms[] = {
    // Parallel operators move data and compute nothing: on values they are the identity. Where the values
    // then lie is a matter of shardings.
    {"partition", axiom_kind::forward, "partition{d,k}(x) => x"},
    {"combine", axiom_kind::forward, "combine{d,k}(x) => x"},
    {"replicate", axiom_kind::both, "replicate{k}(x) => x"},
    {"reduce", axiom_kind::both, "reduce{k}(x) => x"},
    // element by element
    {"add associates", axiom_kind::both, "add(add(x, y), z) => add(x, add(y, z))"},
    {"add commutes", axiom_kind::both, "add(x, y) => add(y, x)"},
    {"mul associates", axiom_kind::both, "mul(mul(x, y), z) => mul(x, mul(y, z))"},
    {"mul commutes", axiom_kind::both, "mul(x, y) => mul(y, x)"},
    {"mul of add", axiom_kind::both, "mul(add(x, y), z) => add(mul(x, z), mul(y, z))"},
    {"scale of scale", axiom_kind::both, "scale{s}(scale{t}(x)) => scale{s*t}(x)"},
    {"scale of add", axiom_kind::both, "scale{s}(add(x, y)) => add(scale{s}(x), scale{s}(y))"},
    {"scale of mul", axiom_kind::both, "scale{s}(mul(x, y)) => mul(scale{s}(x), y)"},
    // transpose
    {"transpose of transpose", axiom_kind::forward, "transpose{a,b}(transpose{a,b}(x)) => x"},
    {"transpose of function", axiom_kind::both, "transpose{a,b}(?f(x)) => ?f(transpose{a,b}(x))"},
    {"transpose of add", axiom_kind::both,
     "transpose{a,b}(add(x, y)) => add(transpose{a,b}(x), transpose{a,b}(y))"},
    {"transpose of mul", axiom_kind::both,
     "transpose{a,b}(mul(x, y)) => mul(transpose{a,b}(x), transpose{a,b}(y))"},
    {"transpose of scale", axiom_kind::both, "transpose{a,b}(scale{s}(x)) => scale{s}(transpose{a,b}(x))"},
    {"transpose of concat", axiom_kind::both,
     "transpose{a,b}(concat{a}(x, y)) => concat{b}(transpose{a,b}(x), transpose{a,b}(y))"},
    {"transpose of concat, second axis", axiom_kind::both,
     "transpose{a,b}(concat{b}(x, y)) => concat{a}(transpose{a,b}(x), transpose{a,b}(y))"},
    {"transpose of concat, other axis", axiom_kind::both,
     "transpose{a,b}(concat{d}(x, y)) => concat{d}(transpose{a,b}(x), transpose{a,b}(y)) where d != a, d != "
     "b"},
    // concat, slice
    {"concat associates", axiom_kind::both, "concat{d}(concat{d}(x, y), z) => concat{d}(x, concat{d}(y, z))"},
    {"function of concat", axiom_kind::both, "?f(concat{d}(x, y)) => concat{d}(?f(x), ?f(y))"},
    {"scale of concat", axiom_kind::both, "scale{s}(concat{d}(x, y)) => concat{d}(scale{s}(x), scale{s}(y))"},
    {"concat of add", axiom_kind::forward,
     "concat{d}(add(x, y), add(z, w)) => add(concat{d}(x, z), concat{d}(y, w))"},
    {"concat of mul", axiom_kind::forward,
     "concat{d}(mul(x, y), mul(z, w)) => mul(concat{d}(x, z), concat{d}(y, w))"},
    {"concat of concat", axiom_kind::guarded,
     "concat{d}(concat{e}(x, y), concat{e}(z, w)) => concat{e}(concat{d}(x, z), concat{d}(y, w)) where d != "
     "e"},
    {"slice of concat, first", axiom_kind::forward, "slice{d,0,extent(x,d)}(concat{d}(x, y)) => x"},
    {"slice of concat, second", axiom_kind::forward,
     "slice{d,extent(x,d),extent(y,d)}(concat{d}(x, y)) => y"},
    {"function of split axis", axiom_kind::both, "?f(split_axis{d,n}(x)) => split_axis{d,n}(?f(x))"},
    {"function of merged axes", axiom_kind::both, "?f(merge_axes{d}(x)) => merge_axes{d}(?f(x))"},
    {"merge of split", axiom_kind::forward, "merge_axes{-2}(split_axis{-1,n}(x)) => x"},
    {"split of merged", axiom_kind::forward, "split_axis{-1,extent(x,-1)}(merge_axes{-2}(x)) => x",
     "split_axis{-1,extent(x,-1)}(merge_axes{-2}(x))"},
    // sums along an axis
    {"sum of add", axiom_kind::forward, "sum{d}(add(x, y)) => add(sum{d}(x), sum{d}(y))"},
    {"sum of scale", axiom_kind::both, "sum{d}(scale{s}(x)) => scale{s}(sum{d}(x))"},
    {"sum of joined", axiom_kind::forward, "sum{d}(concat{d}(x, y)) => add(sum{d}(x), sum{d}(y))"},
    {"sum of one", axiom_kind::forward, "sum{-2}(split_axis{-1,extent(x,-1)}(x)) => x",
     "sum{-2}(split_axis{-1,extent(x,-1)}(x))"},
    {"add is a sum", axiom_kind::forward,
     "sum{-2}(concat{-2}(split_axis{-1,extent(x,-1)}(x), split_axis{-1,extent(y,-1)}(y))) => add(x, y)",
     "sum{-2}(concat{-2}(split_axis{-1,extent(x,-1)}(x), split_axis{-1,extent(y,-1)}(y)))"},
    {"concat of split", axiom_kind::forward, "t = split{parts=2,axis=d}(x); concat{d}(t, t.1) => x",
     "concat{d}(split{parts=2,axis=d}(x), split{parts=2,axis=d}(x).1)"},
    {"split of doubled, first", axiom_kind::forward, "split{parts=2,axis=d}(concat{d}(x, x)) => x",
     "split{parts=2,axis=d}(concat{d}(x, x))"},
    {"split of doubled, second", axiom_kind::forward, "split{parts=2,axis=d}(concat{d}(x, x)).1 => x",
     "split{parts=2,axis=d}(concat{d}(x, x))"},
    {"function of split, first", axiom_kind::both, "?f(split{n,d}(x)) => split{n,d}(?f(x))"},
    {"function of split, second", axiom_kind::both, "?f(split{n,d}(x).1) => split{n,d}(?f(x)).1"},
    {"scale of split, first", axiom_kind::both, "scale{s}(split{n,d}(x)) => split{n,d}(scale{s}(x))"},
    {"scale of split, second", axiom_kind::both, "scale{s}(split{n,d}(x).1) => split{n,d}(scale{s}(x)).1"},
    {"split of add, first", axiom_kind::both, "split{n,d}(add(x, y)) => add(split{n,d}(x), split{n,d}(y))"},
    {"split of add, second", axiom_kind::both,
     "split{n,d}(add(x, y)).1 => add(split{n,d}(x).1, split{n,d}(y).1)"},
    {"slice of everything", axiom_kind::forward, "slice{d,0,extent(x,d)}(x) => x",
     "slice{d,0,extent(x,d)}(x)"},
    // matrix products
    {"matmul associates", axiom_kind::both,
     "matmul{0,0}(matmul{0,0}(x, y), z) => matmul{0,0}(x, matmul{0,0}(y, z))"},
    {"matmul of add, left", axiom_kind::both,
     "matmul{0,0}(add(x, y), z) => add(matmul{0,0}(x, z), matmul{0,0}(y, z))"},
    {"matmul of add, right", axiom_kind::both,
     "matmul{0,0}(x, add(y, z)) => add(matmul{0,0}(x, y), matmul{0,0}(x, z))"},
    {"matmul of scale, left", axiom_kind::both, "matmul{0,0}(scale{s}(x), y) => scale{s}(matmul{0,0}(x, y))"},
    {"matmul of scale, right", axiom_kind::both,
     "matmul{0,0}(x, scale{s}(y)) => scale{s}(matmul{0,0}(x, y))"},
    {"matmul of transposed, left", axiom_kind::both,
     "matmul{1,0}(x, y) => matmul{0,0}(transpose{-2,-1}(x), y)"},
    {"matmul of transposed, right", axiom_kind::both,
     "matmul{0,1}(x, y) => matmul{0,0}(x, transpose{-2,-1}(y))"},
    {"transpose of matmul", axiom_kind::both,
     "transpose{-2,-1}(matmul{0,0}(x, y)) => matmul{0,0}(transpose{-2,-1}(y), transpose{-2,-1}(x))"},
    {"matmul of concat, rows", axiom_kind::both,
     "matmul{0,0}(concat{-2}(x, y), z) => concat{-2}(matmul{0,0}(x, z), matmul{0,0}(y, z))"},
    {"matmul of concat, columns", axiom_kind::both,
     "matmul{0,0}(x, concat{-1}(y, z)) => concat{-1}(matmul{0,0}(x, y), matmul{0,0}(x, z))"},
    {"sum of matmuls", axiom_kind::forward,
     "add(matmul{0,0}(x, y), matmul{0,0}(z, w)) => matmul{0,0}(concat{-1}(x, z), concat{-2}(y, w))"},
    {"concat of matmuls", axiom_kind::guarded,
     "concat{d}(matmul{0,0}(x, y), matmul{0,0}(z, w)) => matmul{0,0}(concat{d}(x, z), concat{d}(y, w)) "
     "where d inside x by 2"},
    {"matmul of transposed batch", axiom_kind::both,
     "transpose{a,b}(matmul{0,0}(x, y)) => matmul{0,0}(transpose{a,b}(x), transpose{a,b}(y)) where a inside "
     "x by 2, b inside x by 2"},
    // linear: x [..., i], w [o, i]
    {"linear of add", axiom_kind::both, "linear(add(x, y), w) => add(linear(x, w), linear(y, w))"},
    {"linear of added weights", axiom_kind::both, "linear(x, add(v, w)) => add(linear(x, v), linear(x, w))"},
    {"linear of scale", axiom_kind::both, "linear(scale{s}(x), w) => scale{s}(linear(x, w))"},
    {"linear of scaled weight", axiom_kind::both, "linear(x, scale{s}(w)) => scale{s}(linear(x, w))"},
    {"linear of concat", axiom_kind::both,
     "linear(concat{d}(x, y), w) => concat{d}(linear(x, w), linear(y, w)) where d inside x"},
    {"linear of joined weights", axiom_kind::both,
     "linear(x, concat{-2}(v, w)) => concat{-1}(linear(x, v), linear(x, w))"},
    {"sum of linears", axiom_kind::forward,
     "add(linear(x, v), linear(y, w)) => linear(concat{-1}(x, y), concat{-1}(v, w))"},
    {"weight of a joined operand", axiom_kind::forward,
     "linear(concat{-1}(x, y), w) => linear(concat{-1}(x, y), concat{-1}(slice{-1,0,extent(x,-1)}(w), "
     "slice{-1,extent(x,-1),extent(y,-1)}(w)))",
     "linear(concat{-1}(x, y), w), slice{-1,0,extent(x,-1)}(w)"},
    {"linear of linear", axiom_kind::both, "linear(linear(x, v), w) => linear(x, matmul{0,0}(w, v))"},
    {"linear of transposed lead", axiom_kind::both,
     "linear(transpose{a,b}(x), w) => transpose{a,b}(linear(x, w)) where a inside x, b inside x"},
    // functions of results (op/kinds/activated.hpp)
    {"linear and relu", axiom_kind::both, "relu(linear(x, w)) => linear_relu(x, w)"},
    {"linear and relu, biased", axiom_kind::both, "relu(linear(x, w, b)) => linear_relu(x, w, b)"},
    {"linear and sigmoid", axiom_kind::both, "sigmoid(linear(x, w)) => linear_sigmoid(x, w)"},
    {"linear and sigmoid, biased", axiom_kind::both, "sigmoid(linear(x, w, b)) => linear_sigmoid(x, w, b)"},
    {"linear and tanh", axiom_kind::both, "tanh(linear(x, w)) => linear_tanh(x, w)"},
    {"linear and tanh, biased", axiom_kind::both, "tanh(linear(x, w, b)) => linear_tanh(x, w, b)"},
    {"conv2d and relu", axiom_kind::both, "relu(conv2d(x, w)) => conv2d_relu(x, w)"},
    {"conv2d and relu, biased", axiom_kind::both, "relu(conv2d(x, w, b)) => conv2d_relu(x, w, b)"},
    // attention in parts (op/attention/parts.hpp): the monoid of states is associative, and attention is its
    // value on all keys
    {"attention in parts", axiom_kind::forward,
     "attention_finish{heads}(attention_parts{heads}(x, split_axis{-2,n}(y), split_axis{-2,n}(z))) => "
     "attention{heads,0}(x, y, z)",
     "attention_finish{heads}(attention_parts{heads}(x, split_axis{-2,n}(y), split_axis{-2,n}(z)))"},
    {"merge of merged", axiom_kind::forward,
     "softmax_merge{heads,parts=n}(softmax_merge{heads,parts=m}(x)) => softmax_merge{heads,parts=n}(x)"},
    {"finish of merged", axiom_kind::forward,
     "attention_finish{heads}(softmax_merge{heads,parts=n}(x)) => attention_finish{heads}(x)"},
    // convolution (ungrouped), pooling
    {"conv2d of add", axiom_kind::forward,
     "conv2d{groups=1}(add(x, y), w) => add(conv2d{groups=1}(x, w), conv2d{groups=1}(y, w))"},
    {"conv2d of added weights", axiom_kind::forward,
     "conv2d{groups=1}(x, add(v, w)) => add(conv2d{groups=1}(x, v), conv2d{groups=1}(x, w))"},
    {"conv2d of scale", axiom_kind::both,
     "conv2d{groups=1}(scale{s}(x), w) => scale{s}(conv2d{groups=1}(x, w))"},
    {"conv2d of scaled weight", axiom_kind::both,
     "conv2d{groups=1}(x, scale{s}(w)) => scale{s}(conv2d{groups=1}(x, w))"},
    {"conv2d of joined images", axiom_kind::forward,
     "conv2d{groups=1}(concat{-4}(x, y), w) => concat{-4}(conv2d{groups=1}(x, w), conv2d{groups=1}(y, w))"},
    {"conv2d of joined weights", axiom_kind::forward,
     "conv2d{groups=1}(x, concat{-4}(v, w)) => concat{-3}(conv2d{groups=1}(x, v), conv2d{groups=1}(x, w))"},
    {"sum of conv2ds", axiom_kind::guarded,
     "add(conv2d{groups=1}(x, v), conv2d{groups=1}(y, w)) => conv2d{groups=1}(concat{-3}(x, y), "
     "concat{-3}(v, w))"},
    {"pool2d of joined images", axiom_kind::forward,
     "pool2d(concat{-4}(x, y)) => concat{-4}(pool2d(x), pool2d(y))"},
    {"pool2d of joined channels", axiom_kind::forward,
     "pool2d(concat{-3}(x, y)) => concat{-3}(pool2d(x), pool2d(y))"},
    {"average of add", axiom_kind::forward,
     "pool2d{average=1}(add(x, y)) => add(pool2d{average=1}(x), pool2d{average=1}(y))"},
    {"average of scale", axiom_kind::both,
     "pool2d{average=1}(scale{s}(x)) => scale{s}(pool2d{average=1}(x))"},
    // embedding: x holds indices, w [rows, width]
    {"embedding of joined indices", axiom_kind::both,
     "embedding(concat{-1}(x, y), w) => concat{-2}(embedding(x, w), embedding(y, w))"},
    {"embedding of added tables", axiom_kind::forward,
     "embedding(x, add(v, w)) => add(embedding(x, v), embedding(x, w))"},
    {"embedding of a scaled table", axiom_kind::both,
     "embedding(x, scale{s}(w)) => scale{s}(embedding(x, w))"},
    {"embedding of joined tables", axiom_kind::forward,
     "embedding(x, concat{-1}(v, w)) => concat{-1}(embedding(x, v), embedding(x, w))"},
    {"bag is a sum", axiom_kind::forward, "sum{-2}(embedding(x, w)) => embedding_bag(x, w)"},
    {"bag of joined indices", axiom_kind::both,
     "embedding_bag(concat{-1}(x, y), w) => add(embedding_bag(x, w), embedding_bag(y, w))"},
    {"bag of joined bags", axiom_kind::forward,
     "embedding_bag(concat{-2}(x, y), w) => concat{-2}(embedding_bag(x, w), embedding_bag(y, w))"},
    {"bag of added tables", axiom_kind::forward,
     "embedding_bag(x, add(v, w)) => add(embedding_bag(x, v), embedding_bag(x, w))"},
    {"bag of a scaled table", axiom_kind::both,
     "embedding_bag(x, scale{s}(w)) => scale{s}(embedding_bag(x, w))"},
    {"bag of joined tables", axiom_kind::forward,
     "embedding_bag(x, concat{-1}(v, w)) => concat{-1}(embedding_bag(x, v), embedding_bag(x, w))"},
};

}  // namespace tensorpar::prover
