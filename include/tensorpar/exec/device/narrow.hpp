// tensorpar/exec/device/narrow.hpp - numbers of two bytes beside a policy's scalars: who computes with them,
// how the host writes and reads them
#pragma once
#include <algorithm>
#include <concepts>
#include <tensorpar/exec/device/memory.hpp>
#include <tensorpar/exec/device/scalar.hpp>
#include <tensorpar/ir/mixed_precision.hpp>
#include <vector>

namespace tensorpar::exec::detail {

template <class Policy> struct narrow_named { using type = typename Policy::scalar_type; };
template <class Policy>
  requires requires { typename Policy::narrow_type; }
struct narrow_named<Policy> { using type = typename Policy::narrow_type; };
/// What a policy stores bf16 as: its scalar, unless it says `narrow_type`.
template <class Policy> using narrow_of = typename narrow_named<Policy>::type;

/// Is a tensor of such elements stored in two bytes each beside these scalars? See bytes_of
/// (op/core/shape.hpp).
template <class Scalar> constexpr bool stored_narrow(dtype t) { return is_narrow(t) && sizeof(Scalar) == 4; }

/// Throws `error` for the first operator that the policy has no kernel for, or none on numbers as narrow as
/// its operands.
template <class Policy> void require_kernels(computation_graph const& g, char const* where) {
  using scalar = typename Policy::scalar_type;
  require_one_type(g, where);
  constexpr bool has_narrow = !std::same_as<narrow_of<Policy>, scalar>;
  for (graph_node const& n : g.nodes) {
    if (!Policy::supports(n.op))
      throw error("operator " + op::spell(n.op) + " has no kernel in this compute policy", where,
                  "an operator of the policy");
    for (auto const* side : {&n.in, &n.out})
      for (int x : *side) {
        dtype const t = g.type(x).type;
        if (!stored_narrow<scalar>(t)) continue;
        bool good = false;
        if constexpr (has_narrow) good = t == dtype::bf16 && Policy::supports_narrow(n.op);
        if (!good)
          throw error(
              "operator " + op::spell(n.op) + " has no kernel for " + tensorpar::name_of(t)
                  + " in this compute policy", where,
              has_narrow ? "another operator, or f32"
                         : "a policy with bfloat16 (compute::teams, compute::cuda), or f32");
      }
  }
}

/// A number as a tensor of such elements has it.
template <class Scalar> Scalar as_stored(Scalar x, dtype t) {
  if constexpr (std::same_as<Scalar, float>) return is_narrow(t) ? static_cast<float>(bfloat16(x)) : x;
  else return x;
}

/// The host's numbers are written as the tensor stores them.
template <class Scalar, class Memory>
void write_reals(Memory const& m, std::byte* to, std::vector<Scalar> const& from, dtype t) {
  if constexpr (std::same_as<Scalar, float>)
    if (is_narrow(t)) {
      std::vector<bfloat16> all(from.size());
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = from[i];
      return m.write(to, all.data(), static_cast<i64>(all.size() * sizeof(bfloat16)));
    }
  m.write(to, from.data(), static_cast<i64>(from.size() * sizeof(Scalar)));
}
/// And read.
template <class Scalar, class Memory>
void read_reals(Memory const& m, std::vector<Scalar>& to, std::byte const* from, dtype t) {
  if constexpr (std::same_as<Scalar, float>)
    if (is_narrow(t)) {
      std::vector<bfloat16> all(to.size());
      m.read(all.data(), from, static_cast<i64>(all.size() * sizeof(bfloat16)));
      std::copy(all.begin(), all.end(), to.begin());
      return;
    }
  m.read(to.data(), from, static_cast<i64>(to.size() * sizeof(Scalar)));
}

}  // namespace tensorpar::exec::detail
