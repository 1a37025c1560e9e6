// tensorpar/typed/check.hpp - the first complaint about a model, lifted into a type that is never defined:
// its name is the message
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/typed/text.hpp>
#include <type_traits>
#include <utility>

namespace tensorpar {

/// Error types. Aggregates of one char array: g++ and clang print them as text, and nvcc can hand them to its
/// host compiler.
namespace refused {
#define TENSORPAR_TEXT(NAME) \
  template <std::size_t N> struct NAME { \
    char s[N]; \
    friend constexpr bool operator==(NAME const&, NAME const&) = default; \
  };
TENSORPAR_TEXT(in_operator)
TENSORPAR_TEXT(left)
TENSORPAR_TEXT(right) TENSORPAR_TEXT(because) TENSORPAR_TEXT(at) TENSORPAR_TEXT(tensor) TENSORPAR_TEXT(name)
#undef TENSORPAR_TEXT

    /// Shapes, ranks, element types or counts of operands that an operator refuses.
    template <in_operator, left, right, because, at, class Model>
    struct SHAPE_MISMATCH;
/// A result, input or weight that is never used and is no output.
template <in_operator, tensor, because, at, class Model> struct DANGLING_TENSOR;
/// Two inputs, outputs, operators or operator types of one name.
template <name, because, at, class Model> struct NAME_CLASH;

/// Counts: of operands without weights and, where there are two, with all of them; of axes.
template <i64> struct given {};
template <i64...> struct wanted {};
template <i64> struct at_most {};
template <in_operator, class Given, class Wanted, at, class Model> struct WRONG_NUMBER_OF_OPERANDS;
template <tensor, class Given, class Most, at, class Model> struct TOO_MANY_AXES;

/// The same for nvcc, which prints char arrays letter by letter: operator, extents (of a symbol negative) and
/// line as pointers and numbers.
template <i64...> struct left_extents {};
template <i64...> struct right_extents {};
template <op::op_info const*, class Left, class Right, int Line, class Model> struct SHAPE_MISMATCH_IN;
template <op::op_info const*, class Extents, int Line, class Model> struct DANGLING_TENSOR_IN;
template <int Line, class Model> struct NAME_CLASH_IN;
template <op::op_info const*, class Given, class Wanted, int Line, class Model>
struct WRONG_NUMBER_OF_OPERANDS_IN;
template <class Given, class Most, int Line, class Model> struct TOO_MANY_AXES_IN;
}  // namespace refused

namespace detail {

template <template <std::size_t> class L, text const& T> consteval auto lift() {
  L<idx(T.n) + 1> r{};
  for (int i = 0; i < T.n; ++i) r.s[i] = T.s[i];
  r.s[T.n] = 0;   // written, not only zero by default: else clang prints numbers
  return r;
}

template <class M, model_complaint const& C> struct complaint_of {
  template <bool Left, int Index> static constexpr i64 count = (Left ? C.why.lhs : C.why.rhs).d[Index].n;
  using given = refused::given<count<true, 0>>;
  using most = refused::at_most<count<false, 0>>;
  static auto counts() {
    if constexpr (C.why.rhs.rank > 1) return refused::wanted<count<false, 0>, count<false, 1>>{};
    else return refused::wanted<count<false, 0>>{};
  }
  using wanted = decltype(counts());
#if defined(__CUDACC__) || defined(__EDG__)
  template <template <i64...> class T, bool Left, int... Index>
  static auto extents(std::integer_sequence<int, Index...>) -> T<
      (Left ? C.why.lhs : C.why.rhs).d[Index].n*((Left ? C.why.lhs : C.why.rhs).d[Index].sym ? -1 : 1)...>;
  using left =
      decltype(extents<refused::left_extents, true>(std::make_integer_sequence<int, C.why.lhs.rank>{}));
  using right =
      decltype(extents<refused::right_extents, false>(std::make_integer_sequence<int, C.why.rhs.rank>{}));
  static auto pick() {
    if constexpr (C.kind == complaint_kind::shape_mismatch)
      return std::type_identity<refused::SHAPE_MISMATCH_IN<C.op, left, right, C.at.line, M>>{};
    else if constexpr (C.kind == complaint_kind::dangling_tensor)
      return std::type_identity<refused::DANGLING_TENSOR_IN<C.op, left, C.at.line, M>>{};
    else if constexpr (C.kind == complaint_kind::operand_count)
      return std::type_identity<refused::WRONG_NUMBER_OF_OPERANDS_IN<C.op, given, wanted, C.at.line, M>>{};
    else if constexpr (C.kind == complaint_kind::too_many_axes)
      return std::type_identity<refused::TOO_MANY_AXES_IN<given, most, C.at.line, M>>{};
    else return std::type_identity<refused::NAME_CLASH_IN<C.at.line, M>>{};
  }
#else
  static constexpr text op = subject(C,
                                     C.kind == complaint_kind::shape_mismatch ? "output" : "input or weight"),
                        l = text{}.put(C.why.lhs), r = text{}.put(C.why.rhs), why = text{}.put(C.why.rule),
                        where = text{}.put(C.at),
                        who = C.name.text ? text{}.put(C.name) : text{}.put(C.op->name);
  static auto pick() {
    using refused::at, refused::because, refused::in_operator, refused::left, refused::name, refused::right,
        refused::tensor;
    using refused::DANGLING_TENSOR, refused::NAME_CLASH, refused::SHAPE_MISMATCH, refused::TOO_MANY_AXES,
        refused::WRONG_NUMBER_OF_OPERANDS;
    if constexpr (C.kind == complaint_kind::shape_mismatch)
      return std::type_identity<SHAPE_MISMATCH<lift<in_operator, op>(), lift<left, l>(), lift<right, r>(),
                                               lift<because, why>(), lift<at, where>(), M>>{};
    else if constexpr (C.kind == complaint_kind::dangling_tensor)
      return std::type_identity<DANGLING_TENSOR<lift<in_operator, op>(), lift<tensor, l>(),
                                                lift<because, why>(), lift<at, where>(), M>>{};
    else if constexpr (C.kind == complaint_kind::operand_count)
      return std::type_identity<
          WRONG_NUMBER_OF_OPERANDS<lift<in_operator, op>(), given, wanted, lift<at, where>(), M>>{};
    else if constexpr (C.kind == complaint_kind::too_many_axes)
      return std::type_identity<TOO_MANY_AXES<lift<tensor, op>(), given, most, lift<at, where>(), M>>{};
    else
      return std::type_identity<NAME_CLASH<lift<name, who>(), lift<because, why>(), lift<at, where>(), M>>{};
  }
#endif
  using type = typename decltype(pick())::type;
};

/// A complete type exactly if there is no complaint.
template <class M, model_complaint const& C, bool Ok = C.ok()> struct verdict_type { using type = M; };
template <class M, model_complaint const& C> struct verdict_type<M, C, false> {
  using type = typename complaint_of<M, C>::type;
};

}  // namespace detail
}  // namespace tensorpar
