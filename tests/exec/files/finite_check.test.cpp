// tests/exec/files/finite_check.test.cpp - NaN and infinity are not saved over a good checkpoint unless that is asked for
#include <tensorpar/exec/files/finite_check.hpp>

#include <cmath>
#include <doctest/doctest.h>
#include <filesystem>
#include <limits>

#include <tensorpar/exec/files/parameters_file.hpp>
#include <tensorpar/program/training.hpp>

#include "support/scratch_folder.hpp"
#include "support/spine.hpp"

using namespace tests;

namespace {
std::string refusal(auto const& call) {
  try { call(); } catch (error const& e) { return e.what(); }
  return {};
}
}  // namespace

TEST_CASE("the first number that is not finite is named, wherever it stands") {
  std::vector<float> all(24, 1);
  shape const type{2, 3, 4};
  CHECK_NOTHROW(tensorpar::exec::detail::require_finite(all, "parameter", "w", type, "here"));
  CHECK_NOTHROW(tensorpar::exec::detail::require_finite(std::vector<prime_field>(24), "parameter", "w", type, "here"));
  all[23] = std::numeric_limits<float>::infinity();
  CHECK(refusal([&] { tensorpar::exec::detail::require_finite(all, "parameter", "w", type, "here"); }) ==
        "parameter 'w' is inf at element [1,2,3] (at here); valid: finite numbers, or saved_numbers::any to save it nevertheless");
  all[5] = std::numeric_limits<float>::quiet_NaN();
  CHECK(refusal([&] { tensorpar::exec::detail::require_finite(all, "parameter", "w", type,
                                                              "here"); }).starts_with("parameter 'w' is nan at element [0,1,1]"));
  CHECK(refusal([&] { tensorpar::exec::detail::require_finite(std::vector<double>{-INFINITY}, "state", "s", scalar, "here"); })
            .starts_with("state 's' is -inf at element []"));
}

TEST_CASE("every parameter and state that is not finite is refused by name, and what was saved before stays") {
  scratch_folder const folder;
  std::string const run_folder = folder.path() + "/run", weights = folder.path() + "/weights.safetensors";
  computation_graph const g = residual_mlp();
  plan p = one_device_plan(g);
  p.optimizer.kind = optimizer_kind::adamw;
  executor_of<float> run(g, p);
  run.initialise(3);
  std::string const good = save_checkpoint(run, run_folder);
  save_parameters(run, weights);
  auto const size = std::filesystem::file_size(weights);
  run.step(random_batch(g, 1, 1), 0.125);
  for (int kind : {0, 1})
    for (int x : detail::saved_values(run, kind)) {
      auto const before = run.fetch(x);
      for (float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
        auto odd = before;
        odd[odd.size() / 2] = bad;
        run.store(x, odd);
        std::string const name = "'" + run.graph().graph.value(x).name + "' is " + (std::isnan(bad) ? "nan" : "-inf") + " at element [";
        CHECK(refusal([&] { save_checkpoint(run, run_folder); }).find(name) != std::string::npos);
        CHECK((refusal([&] { save_parameters(run, weights); }).find(name) != std::string::npos) == (kind == 0));
      }
      run.store(x, before);
      if (kind == 0) CHECK(std::filesystem::file_size(weights) == size);
    }
  CHECK(latest_checkpoint(run_folder).path == good);
  int const x = detail::saved_values(run, 0).front();
  auto odd = run.fetch(x);
  odd.front() = std::numeric_limits<float>::quiet_NaN();
  run.store(x, odd);
  std::string const kept = save_checkpoint(run, run_folder, 2, tensorpar::exec::saved_numbers::any);
  save_parameters(run, weights, tensorpar::exec::saved_numbers::any);
  executor_of<float> other(g, p);
  CHECK(load_checkpoint(other, run_folder).path == kept);
  CHECK(std::isnan(other.fetch(x).front()));
  executor_of<float> third(g, p);
  load_parameters(third, weights);
  CHECK(std::isnan(third.fetch(x).front()));
}
