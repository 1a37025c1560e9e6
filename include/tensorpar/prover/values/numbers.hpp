// tensorpar/prover/values/numbers.hpp - what operators are computed with, element by element: any kind of
// number, and tensors of them
#pragma once
#include <concepts>
#include <tensorpar/core/index.hpp>
#include <tensorpar/op/core/shape.hpp>
#include <vector>

namespace tensorpar::prover {

/// Numbers to compute operators with. `apply` is an unknown function by name hash (relu, exp, ...): all that
/// rules may use of it is that equal arguments give equal results. `maximum` must be associative, commutative
/// and idempotent.
/// Models: `field_numbers` (prover/values/field_numbers.hpp), `symbolic_numbers` (prover/symbolic.hpp).
template <class A>
concept number_algebra = requires(A& a, typename A::value const& x, u64 f, i64 n, double c) {
  { a.integer(n) } -> std::same_as<typename A::value>;
  { a.real(c) } -> std::same_as<typename A::value>;
  { a.plus(x, x) } -> std::same_as<typename A::value>;
  { a.times(x, x) } -> std::same_as<typename A::value>;
  { a.over(x, x) } -> std::same_as<typename A::value>;
  { a.maximum(x, x) } -> std::same_as<typename A::value>;
  { a.apply(f, x) } -> std::same_as<typename A::value>;
};

/// A tensor's elements in row-major order; integer tensors hold indices instead. `origin`: where the first
/// element stands in the whole tensor of which this is a block.
template <class T> struct elements {
  shape type{};
  std::vector<T> data;
  std::vector<i64> index;
  i64 origin[shape::max_rank] = {};
};

namespace detail {

/// Calls visit(coordinates) for every element of a tensor of this shape, in row-major order.
inline void each_element(shape const& s, auto&& visit) {
  i64 c[shape::max_rank] = {};
  for (i64 i = 0, n = s.elements(); i < n; ++i) {
    visit(static_cast<i64 const*>(c), idx(i));
    for (int d = s.rank; d-- > 0;) {
      if (++c[d] < s.d[d].n) break;
      c[d] = 0;
    }
  }
}
inline std::size_t offset_of(shape const& s, i64 const* c) {
  i64 r = 0;
  for (int d = 0; d < s.rank; ++d) r = r * s.d[d].n + c[d];
  return idx(r);
}

}  // namespace detail
}  // namespace tensorpar::prover
