// tensorpar/tool/console.hpp - where the tool prints, and what its exit codes mean
#pragma once
#include <optional>
#include <ostream>
#include <string>
#include <tensorpar/core/error.hpp>
#include <tensorpar/ir/computation_graph.hpp>

namespace tensorpar::tools {

/// What a run ends with.
enum class exit_code : int { fine, error, usage, no_plan, found_something };

/// The command line itself is at fault: exit code 2. Everything else that is thrown ends with 1.
struct usage_error : error {
  using error::error;
};

/// Results go to `out`, errors and progress to `err`. A terminal's line may be written again and again.
struct console {
  std::ostream& out;
  std::ostream& err;
  bool terminal = false;
};

/// A graph that the caller brings, instead of a model of the zoo: of as few samples as make sense.
struct own_model {
  computation_graph graph;
  std::string name = {};
};

}  // namespace tensorpar::tools
