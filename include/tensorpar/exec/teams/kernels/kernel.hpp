// tensorpar/exec/teams/kernels/kernel.hpp - how an operator gets its kernel for teams of lanes, and functors
// that several share
#pragma once
#include <bit>
#include <tensorpar/exec/cpu/common/kernels.hpp>
#include <tensorpar/exec/teams/kernels/device.hpp>

namespace tensorpar::exec {

/// The kernel of one operator for a `team_device`: `run(device, call, op)`, and where scratch is needed
/// `workspace(op, in, out)` in scalars, from local shapes. Your own operator brings
/// `template <class Scalar> static void compute_teams(auto const& device, kernel_call const&, Op const&)`,
/// and maybe a member `i64 workspace(shapes in, shapes out) const`.
/// A kernel that takes something that changes from step to step has `static step_arguments words(Op const&,
/// step_state const&)` and reads the numbers by detail::step_numbers_at, wherever they are.
/// A kernel whose work is in products says `static constexpr bool multiplies = true`: it is then run by a
/// device with scratch for them.
template <class Scalar, class Op> struct team_kernel {
  static constexpr bool given = requires(kernel_call const& c, Op const& op) {
    Op::template compute_teams<Scalar>(0, c, op);
  };
  static_assert(
      given,
      "tensorpar: this operator has no kernel for teams: give it `template <class Scalar> static void "
      "compute_teams("
      "auto const& device, kernel_call const&, Op const&)`");
  template <class Device> static void run(Device const& d, kernel_call const& c, Op const& op) {
    if constexpr (given) Op::template compute_teams<Scalar>(d, c, op);
  }
  static i64 workspace(Op const& op, shapes in, shapes out) {
    if constexpr (requires { op.workspace(in, out); }) return op.workspace(in, out);
    else return 0;
  }
};

namespace detail {
template <class Scalar, class Op>
inline constexpr bool multiplies = [] {
  if constexpr (requires { team_kernel<Scalar, Op>::multiplies; }) return team_kernel<Scalar, Op>::multiplies;
  else return false;
}();

/// Does the device's library do the whole operator, at least for some operands?
template <class Device, class Scalar, class Op>
concept does_whole = requires(Device const& d, Op const& op, kernel_call const& c) {
  { d.template whole<Scalar>(op, c) } -> std::same_as<bool>;
};
/// By the device's library where it takes these operands, else by the kernel.
template <class Scalar, class Device, class Op>
void run_operator(Device const& d, kernel_call const& c, Op const& op) {
  if constexpr (does_whole<Device, Scalar, Op>)
    if (d.template whole<Scalar>(op, c)) return;
  team_kernel<Scalar, Op>::run(d, c, op);
}

/// Neighbours that are read or written in one go: 16 bytes, or less. May alias what it is made of.
template <class T, int N> struct [[gnu::may_alias]] alignas(sizeof(T) * N) pack {
  T v[std::size_t{N}];
};
template <int N, class T> constexpr pack<T, N> take(T const* p, i64 i) {
  return *reinterpret_cast<pack<T, N> const*>(p + i);
}
template <class T, int N> constexpr void put(T* p, i64 i, pack<T, N> const& x) {
  *reinterpret_cast<pack<T, N>*>(p + i) = x;
}
/// Neighbours that have been read, as they are computed with.
template <class T, int N> struct numbers {
  T v[std::size_t{N}];
};
/// Do all of these begin at a multiple of 16 bytes? Null does.
template <class... T> constexpr bool at_16(T const*... p) {
  return ((reinterpret_cast<std::uintptr_t>(p) % 16 == 0) && ...);
}

template <class Element> struct fill_at {
  Element* y;
  Element value;
  constexpr void operator()(i64 i) const { y[i] = value; }
};
template <class Element> struct copy_at {
  Element const* x;
  Element* y;
  constexpr void operator()(i64 i) const { y[i] = x[i]; }
};
/// Adds the i / inner % n th number to element i.
template <class Scalar> struct add_vector_at {
  Scalar const* v;
  Scalar* y;
  i64 n, inner;
  constexpr void operator()(i64 i) const { y[i] += v[i / inner % n]; }
};

/// Numbers of a step: those in the device's memory, or these.
struct step_numbers_at {
  step_arguments const* there;
  step_arguments here;
  constexpr u64 word(int k) const { return there ? there->w[k] : here.w[k]; }
  template <class Number> constexpr Number number(int k) const { return unpacked<Number>(word(k)); }

  /// A number in a word, and back: by its bits.
  template <class Number> static constexpr u64 packed(Number x) {
    if constexpr (sizeof(Number) == 4) return std::bit_cast<std::uint32_t>(x);
    else return std::bit_cast<u64>(x);
  }
  template <class Number> static constexpr Number unpacked(u64 w) {
    if constexpr (sizeof(Number) == 4) return std::bit_cast<Number>(static_cast<std::uint32_t>(w));
    else return std::bit_cast<Number>(w);
  }
};
/// The number, in the logical tensor, of element i of a block.
constexpr i64 logical_element(op::tensor_block const& b, i64 i) {
  i64 logical = 0, scale = 1;
  for (int a = b.rank - 1; a >= 0; --a) {
    logical += (i % b.local[a] + b.offset[a]) * scale;
    i /= b.local[a];
    scale *= b.global[a];
  }
  return logical;
}
template <class Scalar, class Op> step_numbers_at numbers_of(kernel_call const& c, Op const& op) {
  return {c.arguments, c.arguments ? step_arguments{} : team_kernel<Scalar, Op>::arguments(op, c.state)};
}

/// Calls visit(where the first result begins): bf16 operands may leave their sums in f32, which their shapes
/// say.
template <class Scalar, class Visit> void by_result(kernel_call const& c, Visit&& visit) {
  if constexpr (!std::same_as<Scalar, computed<Scalar>>) {
    if (!is_narrow(c.out_block[0].type)) return visit(result<computed<Scalar>>(c));
  }
  visit(result<Scalar>(c));
}

/// y = f (x[0] + ... + x[n - 1]).
template <class Scalar> struct sum_up {
  Scalar const* x;
  Scalar* y;
  i64 n;
  Scalar f;
  template <class Team> constexpr void operator()(i64, Team const& team) const {
    Scalar const s = team.template sum<Scalar>(n, [&](i64 i) { return x[i]; });
    team.alone([&] { *y = s * f; });
  }
};
/// How many teams add up n numbers before one team adds up what they have.
constexpr i64 parts_of_sum(i64 n) {
  i64 const want = (n + 4095) / 4096;
  return want > 1024 ? 1024 : want < 1 ? 1 : want;
}
/// Term: terms of a sum of n numbers, by a constexpr call operator. Each team has a stretch of them.
template <class Scalar, class Term> struct partial_sums {
  Term term;
  Scalar* y;
  i64 n, parts;
  template <class Team> constexpr void operator()(i64 p, Team const& team) const {
    i64 const from = n * p / parts, to = n * (p + 1) / parts;
    Scalar const s = team.template sum<Scalar>(to - from, [&](i64 i) { return term(from + i); });
    team.alone([&] { y[p] = s; });
  }
};
/// *y = f * (term(0) + ... + term(n - 1)), with parts_of_sum(n) scalars of scratch.
template <class Scalar, class Device, class Term>
void sum_all(Device const& d, i64 n, Term const& term, Scalar* scratch, Scalar* y, Scalar f) {
  i64 const parts = parts_of_sum(n);
  d.teams(parts, partial_sums<Scalar, Term>{term, scratch, n, parts});
  d.teams(1, sum_up<Scalar>{scratch, y, parts, f});
}

/// An index that a user's data must keep within [0, end): where it does not, it is noted, and 0 is taken.
struct index_check {
  index_fault* fault;
  op::op_info const* op;
  i64 end;
  constexpr i64 operator()(std::int32_t i) const {
    if (i >= 0 && i < end) return i;
    // words are whole, and lanes that meet one at the same time differ in the index alone
    index_fault volatile& f = *fault;
    f.op = op;
    f.index = i;
    f.end = end;
    return 0;
  }
};
}  // namespace detail

}  // namespace tensorpar::exec
