// tensorpar/exec/device/has_parameters.hpp - whose parameters can be fetched and stored
#pragma once
#include <concepts>
#include <tensorpar/exec/device/stored_type.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/program/core/program.hpp>
#include <vector>

namespace tensorpar::exec {

/// Whose parameters can be fetched and stored by value id, as whole row-major tensors. Models: `executor`,
/// `forward_pass`. Optional: `run.forget()`: no parameter has values until each is stored again. Without it a
/// file that cannot be read to its end leaves what came before.
template <class Run>
concept has_parameters = requires(Run& run, Run const& from, int value,
                                  std::vector<typename Run::scalar> const& all) {
  { stored_as<typename Run::scalar>::type } -> std::convertible_to<stored_type>;
  { from.graph() } -> std::convertible_to<training_graph const&>;
  { from.program() } -> std::convertible_to<program const&>;
  { from.fetch(value) } -> std::same_as<std::vector<typename Run::scalar>>;
  run.store(value, all);
};

namespace detail {
/// All parameters are about to be replaced.
template <class Run> void forget_values(Run& run) {
  if constexpr (requires { run.forget(); }) run.forget();
}
}  // namespace detail

}  // namespace tensorpar::exec
