// tensorpar/exec/teams/kernels/device.hpp - what a machine of many lanes offers to kernels: indices at once,
// teams of lanes, matrix products
#pragma once
#include <concepts>
#include <tensorpar/exec/cpu/common/kernels_gemm.hpp>
#include <tensorpar/exec/device/kernel.hpp>
#include <tensorpar/exec/device/memory.hpp>
#include <tensorpar/exec/device/scalar.hpp>

namespace tensorpar::exec {

/// Products c (+)= a b of matrices [m, k] and [k, n], all of them `batch` apart; views are those of the
/// first. Sums are computed<Scalar>. bias, if there is one: n numbers that are added to every row.
template <class Scalar, class Result = Scalar> struct matrix_products {
  i64 m = 0, n = 0, k = 0;
  matrix_view<Scalar const> a{};
  matrix_view<Scalar const> b{};
  matrix_view<Result> c{};
  bool accumulate = false;
  Scalar const* bias = nullptr;
  /// Two loops around the product: their extents, and how far a turn moves in each matrix.
  struct turn {
    i64 extent = 1, a = 0, b = 0, c = 0;
  } batch[2]{};
};

/// What may be done with the results of one product (batch extents 1) while they are at hand, and with a.
/// `plus`, `before` and `slope` lie as c does, and one of the three at most is there.
template <class Scalar, class Result = Scalar> struct product_epilogue {
  Result const* plus = nullptr;       // c = a b + bias + plus
  Result* before = nullptr;           // gets a b + bias, and c is gelu of it
  Result const* slope = nullptr;      // c = a b gelu'(slope)
  Result* sums = nullptr;             // gets m numbers: the sums of a's rows
};

/// An index in the user's data that was out of range. Kernels leave it in the device's memory, where the host
/// finds it.
struct index_fault {
  op::op_info const* op = nullptr;        // null: none
  i64 index = 0, end = 0;
};

/// Runs functors over indices on one device, in the order of the calls. Functors are structs (device
/// compilers do not take a host function's lambdas), copied by value, whose call operator is constexpr, so
/// that it may be compiled for the device as well.
///
/// Valid expressions (d is a constant value; n a number, perhaps 0; f, g functors; p a
/// matrix_products<Scalar>):
///  - `D::memory`, `d.device_memory()`  a `memory_policy`, and that of this device
///  - `d.each(n, f)`       f(i) once for every 0 <= i < n, in any order and at the same time
///  - `d.teams(n, g)`      g(i, team) for every 0 <= i < n by a team of lanes, teams in any order and at the
///    same time
///  - `d.product(p)`     as its comment says; the matrices c overlap neither a nor b nor each other
///  - `d.fault()`          index_fault*: where kernels leave a fault, in the device's memory
///  - `d.settle()`         throws `error` for a fault of calls that are done by now, and forgets it; need not
///    wait for any
/// Optional:
///  - `D::product_scratch`, bytes of the device's memory that make products faster, and `d.with_scratch(p)`,
///    the device with that many at p.
///  - `at_once` of functors: how many neighbours they take together. `f.template several<N>(i)` does what
///    f(i) to f(i + N - 1) do, where `f.aligned()` and N divides i (see detail::pack). A device may use that
///    in `each`.
///  - `f.length()` of teams' functors: how many numbers a team goes over at a time. A device may choose by
///    that how many lanes teams have.
///  - `d.product_with(p, e, apart)` for a product_epilogue e: does both at once, or calls apart(), which does
///    one after the other.
///  - `d.template whole<Scalar>(op, call)` for operators that a library of the device does as a whole, of
///    exactly this type: done or false (then the kernel runs).
///  - `D::template whole_scratch<Scalar>(op, in, out)`: the bytes that it may use at call.workspace, from
///    local shapes; see cudnn_teams. A device that implements `whole` for attention_grad_from_lse or
///    packed_attention_grad_from_lse gets programs that keep the forward pass's log-sum-exps
///    (program/keep_lse.hpp).
/// A team offers, to be called by all its lanes alike (bodies are run by every lane; each call ends with all
/// lanes in step):
///  - `team.each(n, f)`    f(i) once for every i, by some lane
///  - `team.template sum<Scalar>(n, f)`   the sum of f(i), to every lane; in an order that n and what `teams`
///    was given alone say
///  - `team.template top<Scalar>(n, f)`   the largest f(i) by `scalar_traits::greater`, n > 0, to every lane
///  - `team.alone(f)`      f() by one lane
/// Optional, for rows that lanes keep in their registers between passes:
///  - `T::lanes`, and an array of `T::template slots<K>` elements, each lane's own, with room for all k.
///  - `team.template turns<K>(n, f)`: f(i, k) once for every i < n <= K lanes, by some lane. k numbers its
///    turns; where one thread plays all lanes, it numbers what they do together. Lanes need not end in step.
///  - `team.template sum_turns<K, Scalar>(n, f)`: the sum of f(i, k), to every lane, lanes in step.
///  - of the device, `d.teams_holding(n, f)`: teams(n, detail::in_turns<F, K>{f}) with f.stretches() <= K
///    T::lanes, or K = 0. K > F::holds is not worth the registers.
///  - `F::blocks`: teams that should be at work at the same time in every multiprocessor. `F::by_warps`:
///    turns in which a warp alone may hold a row where rows are many.
/// Laws (tests/support/laws/teams.hpp): equal calls give equal bits; what a call wrote, later calls read.
/// Minimal definition: all. Models: host_teams, cuda_teams, cudnn_teams.
template <class D, class Scalar>
concept team_device = std::copyable<D> && memory_policy<typename D::memory> &&
    requires(D const& d, matrix_products<Scalar> const& p) {
  { d.device_memory() } -> std::same_as<typename D::memory>;
  d.product(p);
  { d.fault() } -> std::same_as<index_fault*>;
  d.settle();
};

namespace detail {
/// One matrix's element, for devices without a better product: f of `each`, one for every element of every c.
template <class Scalar, class Result = Scalar> struct product_at {
  matrix_products<Scalar, Result> p;
  constexpr i64 count() const { return p.m * p.n * p.batch[0].extent * p.batch[1].extent; }
  constexpr void operator()(i64 at) const {
    i64 const j = at % p.n, i = at / p.n % p.m, rest = at / p.n / p.m, u = rest % p.batch[1].extent,
              t = rest / p.batch[1].extent;
    Scalar const* a = p.a.p + t * p.batch[0].a + u * p.batch[1].a + i * p.a.row;
    Scalar const* b = p.b.p + t * p.batch[0].b + u * p.batch[1].b + j * p.b.col;
    Result& c = p.c.p[t * p.batch[0].c + u * p.batch[1].c + i * p.c.row + j * p.c.col];
    computed<Scalar> s = p.accumulate ? computed<Scalar>(c) : computed<Scalar>(0);
    for (i64 l = 0; l < p.k; ++l) s += a[l * p.a.col] * b[l * p.b.row];
    c = p.bias ? s + p.bias[j] : s;
  }
};

/// The same for the bias alone, where the products are there.
template <class Scalar, class Result = Scalar> struct add_bias_at {
  matrix_products<Scalar, Result> p;
  constexpr i64 count() const { return p.m * p.n * p.batch[0].extent * p.batch[1].extent; }
  constexpr void operator()(i64 at) const {
    i64 const j = at % p.n, i = at / p.n % p.m, rest = at / p.n / p.m, u = rest % p.batch[1].extent,
              t = rest / p.batch[1].extent;
    Result& c = p.c.p[t * p.batch[0].c + u * p.batch[1].c + i * p.c.row + j * p.c.col];
    c = c + p.bias[j];
  }
};

inline void throw_if_fault(index_fault& f) {
  if (!f.op) return;
  index_fault const seen = f;
  f = {};
  throw error("index " + std::to_string(seen.index) + " is out of range", std::string(seen.op->name),
              "0 to " + std::to_string(seen.end - 1));
}
}  // namespace detail

}  // namespace tensorpar::exec
