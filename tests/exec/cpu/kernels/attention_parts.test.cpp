// tests/exec/cpu/kernels/attention_parts.test.cpp - states of parts, merged in any groups and finished, are attention over all keys
#include <doctest/doctest.h>

#include <cmath>
#include <support/dense.hpp>
#include <tensorpar/exec/cpu/eigen.hpp>
#include <tensorpar/exec/cpu/kernels/attention_parts.hpp>

using namespace tensorpar;

namespace {

struct sizes { i64 batch, queries, parts, keys, heads, head; };

// The tensor with other axes, row-major as before.
template <class Scalar> tests::dense<Scalar> as(tests::dense<Scalar> x, shape const& s) {
  x.block = tests::whole(s);
  return x;
}
template <class Scalar> struct inputs {
  tests::dense<Scalar> q, k, v;
  inputs(sizes const& z, std::mt19937_64& draw)
      : q(tests::random_dense<Scalar>({dim(z.batch), dim(z.queries), dim(z.heads * z.head)}, 1, draw)),
        k(tests::random_dense<Scalar>({dim(z.batch), dim(z.parts), dim(z.keys), dim(z.heads * z.head)}, 1, draw)),
        v(tests::random_dense<Scalar>(tests::types_of<Scalar>({k})[0], 1, draw)) {}
};
template <class Scalar> std::vector<Scalar> whole_attention(inputs<Scalar> const& x, sizes const& z) {
  shape const all{dim(z.batch), dim(z.parts * z.keys), dim(z.heads * z.head)};
  return tests::run_whole<compute::eigen<Scalar>>(attention{z.heads, false}, {x.q, as(x.k, all), as(x.v, all)})[0].real;
}
template <class Scalar> tests::dense<Scalar> states(inputs<Scalar> const& x, sizes const& z) {
  return tests::run_whole<compute::eigen<Scalar>>(op::attention_parts{z.heads}, {x.q, x.k, x.v})[0];
}
template <class Scalar> tests::dense<Scalar> merged(tests::dense<Scalar> const& s, i64 heads, i64 groups) {
  return tests::run_whole<compute::eigen<Scalar>>(op::softmax_merge{heads, groups}, {s})[0];
}
template <class Scalar> std::vector<Scalar> finished(tests::dense<Scalar> const& s, i64 heads) {
  return tests::run_whole<compute::eigen<Scalar>>(op::attention_finish{heads}, {s})[0].real;
}
double distance(std::vector<double> const& a, std::vector<double> const& b) {
  REQUIRE(a.size() == b.size());
  double r = 0;
  for (std::size_t i = 0; i < a.size(); ++i) r = std::max(r, std::isfinite(a[i]) ? std::abs(a[i] - b[i]) : 1e300);
  return r;
}
sizes drawn(std::mt19937_64& draw) {
  auto one_to = [&](int n) { return static_cast<i64>(1 + draw() % static_cast<u64>(n)); };
  return {one_to(2), one_to(3), i64{1} << (draw() % 4), one_to(4), one_to(3), one_to(3)};
}

}  // namespace

TEST_CASE("parts merged in groups of any size and finished are attention over all keys, in double and in the field") {
  std::mt19937_64 draw(1);
  for (int turn = 0; turn < 60; ++turn) {
    sizes const z = drawn(draw);
    CAPTURE(z.parts);
    CAPTURE(z.heads);
    inputs<double> const x(z, draw);
    inputs<prime_field> const f(z, draw);
    for (i64 groups = 1; groups <= z.parts; groups *= 2) {
      CHECK(distance(finished(merged(states(x, z), z.heads, groups), z.heads), whole_attention(x, z)) < 1e-14);
      CHECK(finished(merged(states(f, z), z.heads, groups), z.heads) == whole_attention(f, z));
    }
  }
}

TEST_CASE("merging is associative: to four groups, then to two, then to one, is to one at once") {
  std::mt19937_64 draw(2);
  sizes const z{2, 3, 8, 2, 2, 3};
  auto const x = states(inputs<double>(z, draw), z);
  auto const f = states(inputs<prime_field>(z, draw), z);
  CHECK(distance(merged(merged(merged(x, 2, 4), 2, 2), 2, 1).real, merged(x, 2, 1).real) < 1e-14);
  CHECK(merged(merged(merged(f, 2, 4), 2, 2), 2, 1) == merged(f, 2, 1));
}

TEST_CASE("scores of thousands neither overflow nor vanish: the largest one is taken out of every exponential") {
  std::mt19937_64 draw(3);
  for (int turn = 0; turn < 20; ++turn) {
    sizes const z = drawn(draw);
    inputs<double> x(z, draw);
    for (double& e : x.q.real) e *= 3000;
    auto const all = states(x, z);
    for (double e : all.real) CHECK(std::isfinite(e));
    CHECK(distance(finished(all, z.heads), whole_attention(x, z)) < 1e-9);   // scores in the thousands keep 12 digits
    CHECK(distance(finished(merged(all, z.heads, 1), z.heads), whole_attention(x, z)) < 1e-9);
  }
}

TEST_CASE("a part without weight changes nothing, and a lone part is its own merger") {
  std::mt19937_64 draw(4);
  sizes const z{1, 2, 2, 3, 1, 2};
  inputs<double> const x(z, draw);
  auto s = states(x, z);
  sizes lone = z;
  lone.parts = 1;
  inputs<double> first = x;
  for (auto* t : {&first.k, &first.v}) {
    t->real.resize(static_cast<std::size_t>(z.keys * z.head));
    *t = as(*t, {1, 1, dim(z.keys), dim(z.head)});
  }
  auto const one = states(first, lone);
  CHECK(merged(one, 1, 1) == one);
  // (0, 0, -huge) is the monoid's neutral element
  for (std::size_t i = one.size(); i < s.size(); ++i) s.real[i] = i % 4 == 3 ? -1e300 : 0;
  CHECK(merged(s, 1, 1).real == one.real);
}
