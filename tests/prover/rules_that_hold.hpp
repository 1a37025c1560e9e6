// tests/prover/rules_that_hold.hpp - rules of every kind that hold, and rules that do not and why
#pragma once

namespace tests {

inline constexpr char const* rules_that_hold[] = {
    "linear(x, w) => combine{d,k}(linear(partition{d,k}(x), replicate{k}(w)))",
    "linear(x, w) => combine{-1,k}(linear(replicate{k}(x), partition{0,k}(w)))",
    "linear(x, w) => reduce{k}(linear(partition{-1,k}(x), partition{1,k}(w)))",
    "linear(x, w, b) => combine{-1,k}(linear(replicate{k}(x), partition{0,k}(w), partition{0,k}(b)))",
    "linear(reduce{k}(x), w) => reduce{k}(linear(x, replicate{k}(w)))",
    "?f(partition{d,k}(x)) => partition{d,k}(?f(x))",
    "partition{d,k}(partition{e,m}(x)) => partition{e,m}(partition{d,k}(x))",
    "partition{d,k}(partition{d,m}(x)) => partition{d,k*m}(x)",
    "combine{d,k}(partition{d,k}(x)) => x",
    "partition{d,k}(combine{d,k}(x)) => x",
    "replicate{k}(replicate{m}(x)) => replicate{k*m}(x)",
    "mul(reduce{k}(x), y) => reduce{k}(mul(x, replicate{k}(y)))",
    "add(reduce{k}(x), reduce{k}(y)) => reduce{k}(add(x, y))",
    "matmul{0,0}(a, concat{-1}(b, c)) => concat{-1}(matmul{0,0}(a, b), matmul{0,0}(a, c))",
    ("matmul{0,0}(a, b), matmul{0,0}(a, c) => t = matmul{0,0}(a, concat{-1}(b, c)); "
     "slice{-1,0,extent(b,-1)}(t), slice{-1,extent(b,-1),extent(c,-1)}(t)"),
    "transpose{a,b}(?f(x)) => ?f(transpose{a,b}(x))",
    "embedding_bag(x, w) => reduce{k}(embedding_bag(partition{-1,k}(x), replicate{k}(w)))",
    "embedding(x, w) => reduce{k}(embedding(replicate{k}(x), partition{0,k}(w)))",
    "conv2d{groups=1}(x, w) => combine{0,k}(conv2d{groups=1}(partition{0,k}(x), replicate{k}(w)))",
    "conv2d{groups=1}(x, w) => reduce{k}(conv2d{groups=1}(partition{1,k}(x), partition{1,k}(w)))",
    "pool2d(x) => combine{1,k}(pool2d(partition{1,k}(x)))",
    "attention(q, k, v) => combine{2,n}(attention(partition{2,n}(q), partition{2,n}(k), partition{2,n}(v)))",
    "attention(q, k, v) => combine{1,n}(attention(partition{1,n}(q), replicate{n}(k), replicate{n}(v)))",
    "layernorm(x, g, b) => combine{d,k}(layernorm(partition{d,k}(x), replicate{k}(g), replicate{k}(b)))",
    "softmax(x) => combine{d,k}(softmax(partition{d,k}(x)))",
    "partition{d,k}(transpose{-2,-1}(x)) => transpose{-2,-1}(partition{d,k}(x)) where d inside x by 2",
};

struct false_rule {
  char const *text, *why;
};
inline constexpr false_rule rules_that_do_not_hold[] = {
    {"linear(x, w) => linear(partition{-1,k}(x), partition{1,k}(w))", "becomes"},
    {"partition{d,k}(transpose{-2,-1}(x)) => transpose{-2,-1}(partition{d,k}(x))", "becomes"},
    {"linear(x, concat{0}(v, w)) => concat{-1}(linear(x, w), linear(x, v))", "other values"},
    {"replicate{k}(reduce{k}(x)) => x", "becomes"},
    {"reduce{k}(replicate{k}(x)) => x", "becomes"},
    {"?f(reduce{k}(x)) => reduce{k}(?f(x))", "no ranks and axes"},
    {"?f(add(x, y)) => add(?f(x), ?f(y))", "other values"},
    {"add(reduce{k}(x), y) => reduce{k}(add(x, replicate{k}(y)))", "no ranks and axes"},
    {"partition{d,k}(combine{e,k}(x)) => combine{e,k}(partition{e,k}(x))", "becomes"},
    {"concat{d}(x, y) => concat{d}(y, x)", "other values"},
    {"matmul{0,0}(x, y) => matmul{0,0}(y, x)", "other values"},
    {"transpose{a,b}(x) => x", ""},
    {"conv2d{groups=1}(x, w) => combine{2,k}(conv2d{groups=1}(partition{2,k}(x), replicate{k}(w)))", "no ranks and axes"},
    {"pool2d{average=0}(reduce{k}(x)) => reduce{k}(pool2d{average=0}(x))", "no ranks and axes"},
};

}  // namespace tests
