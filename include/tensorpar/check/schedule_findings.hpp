// tensorpar/check/schedule_findings.hpp - what is wrong with a pipeline: which condition, where, in words
#pragma once
#include <string>
#include <string_view>
#include <tensorpar/plan/pipeline.hpp>
#include <vector>

namespace tensorpar {

/// What a finding violates. `form`: the value does not say a pipeline at all. `deadlock`: the groups' orders
/// and C5 together form a cycle.
enum class schedule_fault : int { form, c1, c2, c3, c4, c5, deadlock };
constexpr std::string_view name_of(schedule_fault f) {
  constexpr std::string_view names[] = {"form", "C1", "C2", "C3", "C4", "C5", "deadlock"};
  return names[static_cast<int>(f)];
}

/// One violation. Fields that do not apply are -1.
struct schedule_finding {
  schedule_fault fault = schedule_fault::form;
  int stage = -1;
  pass what = pass::forward;
  int micro_batch = -1;
  std::string text;        // a sentence that names all of it
  friend bool operator==(schedule_finding const&, schedule_finding const&) = default;
};
using schedule_findings = std::vector<schedule_finding>;

}  // namespace tensorpar
