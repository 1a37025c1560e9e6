// tests/support/small_gpt.hpp - a GPT of four tiny layers, and what training makes of its parameters
#pragma once
#include <tensorpar/op/operators.hpp>
#include <tensorpar/program/training_problem.hpp>
#include <tensorpar/zoo/registry.hpp>

#include "spine.hpp"

namespace tests {

inline training_problem small_gpt(i64 samples) {
  return {.graph = zoo::make("gpt3_1b3:layers=4,hidden=16,heads=4,wide=32,seq=12,vocab=32", 1),
          .samples = samples,
          .optimizer = {optimizer_kind::momentum},
          .name = "gpt"};
}
/// After two steps, by name.
template <class E> auto trained(E&& run, host_batch const& data) {
  run.initialise(3);
  for (int step = 0; step < 2; ++step) run.step(data, 0.125);
  return parameters_by_name(run);
}

}  // namespace tests
