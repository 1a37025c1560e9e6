// tensorpar/op/core/inference.hpp - what an operator's shape rule answers: results or a complaint
#pragma once
#include <initializer_list>
#include <tensorpar/op/core/shape.hpp>

namespace tensorpar::op {

/// Why a shape rule refuses; keeps both shapes. rule == nullptr: no complaint.
struct complaint {
  char const* rule = nullptr;
  shape lhs, rhs;
};
[[gnu::noinline, gnu::cold]] constexpr complaint mismatch(char const* rule, shape const& a, shape const& b) {
  return {rule, a, b};
}

/// The answer of a shape rule: result shapes, or a complaint.
struct inference {
  static constexpr int max_out = 8;
  int n = 0;
  char const* rule = nullptr;    // no complaint
  shape out[max_out];            // [0, n), or the two shapes that clash
  constexpr inference(shape const& s) : n(1), out{s} {}
  [[gnu::noinline, gnu::cold]] constexpr inference(complaint const& c) : rule(c.rule), out{c.lhs, c.rhs} {}
  constexpr inference(int k, shape const& s) : n(k) { for (int i = 0; i < k; ++i) out[i] = s; }
  constexpr inference(std::initializer_list<shape> l) { for (shape const& s : l) out[n++] = s; }
  constexpr bool ok() const { return rule == nullptr; }
};

/// How a parameter starts. fan_in: normal with variance 2 / (product of all extents but the first) (He et al.
/// 2015).
enum class init : int { zeros, ones, fan_in, normal_02 };

/// A parameter that an operator brings along.
struct weight {
  shape type;
  op::init start = init::zeros;
};
struct weight_list {
  static constexpr int max = 4;
  int n = 0;
  weight w[max];
  weight_list() = default;   // empty
  constexpr weight_list(std::initializer_list<weight> l) {
    n = static_cast<int>(l.size());
    weight const* const from = l.begin();
    for (int i = 0; i < n; ++i) w[i] = from[i];
  }
  /// One more of these axes. Costs constant evaluation a fourth of what a list of lists does.
  constexpr void add(init start, dim const& a) {
    weight& x = w[n++];
    x.start = start;
    x.type.rank = 1;
    x.type.d[0] = a;
  }
  constexpr void add(init start, dim const& a, dim const& b) {
    add(start, a);
    w[n - 1].type.rank = 2;
    w[n - 1].type.d[1] = b;
  }
};

}  // namespace tensorpar::op
