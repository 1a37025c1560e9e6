// tensorpar/exec/step/step_check.hpp - what a step must be given before anything is changed, and what may be
// given between steps
#pragma once
#include <concepts>
#include <exception>
#include <limits>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/comm/agreement.hpp>
#include <tensorpar/exec/step/batch_check.hpp>
#include <tensorpar/exec/step/device_memory.hpp>
#include <tensorpar/exec/step/learning_rate.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/plan/plan.hpp>

namespace tensorpar::exec::detail {

/// Throws `error`, with the first failure's words, if there was one.
inline void require_alive(std::exception_ptr const& failure) {
  if (!failure) return;
  told_failure const first(failure);
  std::string const at = first.where.empty() ? "" : " (at " + first.where + ")";
  throw error("this executor has failed before: " + first.problem + at, "executor",
              "a new executor, from the last checkpoint");
}

/// The buffer of a parameter or state; -1 if no task reads it. Throws `error` for a value that lives in the
/// middle of a step only.
template <class Scalar, class Memory>
int kept_buffer(training_graph const& t, device_memory<Scalar, Memory> const& memory, int value) {
  bool const known = value >= 0 && idx(value) < t.graph.values.size();
  value_role const role = known ? t.graph.value(value).role : value_role::input;
  if (role == value_role::parameter || role == value_role::state) return memory.persistent_of(value);
  std::string const name =
      known && !t.graph.value(value).name.empty() ? " '" + t.graph.value(value).name + "'" : "";
  throw error("value " + std::to_string(value) + name + " is not kept between steps", "executor",
              "a parameter or a state of the optimizer");
}

/// The first parameter that a task reads and that was never stored, or -1.
template <class Scalar, class Memory>
int without_values(training_graph const& t, device_memory<Scalar, Memory> const& memory,
                   std::vector<bool> const& given) {
  for (std::size_t x = 0; x < t.gradient.size(); ++x)
    if (t.graph.values[x].role == value_role::parameter && !given[x] &&
        memory.persistent_of(static_cast<int>(x)) >= 0)
      return static_cast<int>(x);
  return -1;
}

/// Throws `error` for a rate that is no finite number from 0 in this scalar, a parameter without values, and
/// a batch that is not what the graph takes (exec/step/batch_check.hpp). `given`, `used`: by value, whether
/// it has been stored and whether a task reads it. O(elements).
template <class Scalar, class Memory>
void check_step(training_graph const& t, plan const& p, device_memory<Scalar, Memory> const& memory,
                std::vector<bool> const& given, std::vector<bool> const& used, batch_check const& batches,
                host_batch const& batch, double learning_rate) {
  double most = std::numeric_limits<double>::max();
  if constexpr (std::floating_point<Scalar>) most = static_cast<double>(std::numeric_limits<Scalar>::max());
  tensorpar::detail::check_rate(learning_rate, "step", most);
  if (int const x = without_values(t, memory, given); x >= 0)
    throw error("parameter '" + t.graph.value(x).name + "' has no values yet", "executor",
                "initialise(seed), load_checkpoint or store before a step");
  batches.require(t.graph, used, batch, p.micro_batches);
}

}  // namespace tensorpar::exec::detail
