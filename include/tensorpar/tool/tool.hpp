// tensorpar/tool/tool.hpp - the program `tensorpar` as one function, for the models of the zoo or for a graph
// of your own
#pragma once
#include <optional>
#include <string>
#include <tensorpar/core/printable.hpp>
#include <tensorpar/tool/command_line.hpp>
#include <tensorpar/tool/compare_command.hpp>
#include <tensorpar/tool/demo_command.hpp>
#include <tensorpar/tool/diff_command.hpp>
#include <tensorpar/tool/file_commands.hpp>
#include <tensorpar/tool/plan_command.hpp>
#include <tensorpar/tool/rules_command.hpp>
#include <tensorpar/tool/standard_output.hpp>
#include <utility>
#include <vector>

namespace tensorpar {

namespace tools {

/// Runs one command line, without the program's name. Prints results to `io.out`, errors and progress to
/// `io.err`, and throws nothing that standard exceptions are made of. `own`: the caller's graph instead of a
/// model of the zoo. Cost: that of the subcommand; of `plan` and `compare` nearly all is the search.
inline exit_code run(std::vector<std::string> const& args, console const& io,
                     std::optional<own_model> const& own = std::nullopt) {
  try {
    std::optional<settings> const s = read_command_line(args, io, own.has_value());
    if (!s) return exit_code::fine;
    if (s->command == "plan") return plan_command(*s, io, own);
    if (s->command == "compare") return compare_command(*s, io, own);
    if (s->command == "show") return show_command(*s, io, own);
    if (s->command == "diff") return diff_command(*s, io, own);
    if (s->command == "check") return check_command(*s, io, own);
    if (s->command == "simulate") return simulate_command(*s, io, own);
    if (s->command == "run-demo") return demo_command(*s, io);
    return rules_command(*s, io);
  } catch (usage_error const& e) {
    io.err << "tensorpar: " << core::printable(e.what()) << "\n";
    return exit_code::usage;
  } catch (std::exception const& e) {
    io.err << "tensorpar: " << core::printable(e.what()) << "\n";
    return exit_code::error;
  }
}

namespace detail {
inline int main_of(int argc, char** argv, std::optional<own_model> const& own) {
  if (!hold_standard_streams()) return static_cast<int>(exit_code::error);
  std::vector<std::string> const args(argv + (argc > 0 ? 1 : 0), argv + argc);
  exit_code const code = run(args, {std::cout, std::cerr, on_terminal()}, own);
  if (!printed_all()) return static_cast<int>(exit_code::error);
  return static_cast<int>(code);
}
}  // namespace detail

}  // namespace tools

/// The program `tensorpar` for the models of the zoo: plans, compares, shows, diffs, checks, simulates
/// and runs a demo.
/// Returns its exit code: 0 fine, 1 error, 2 wrong command line, 3 no plan fits, 4 check found something.
/// Throws nothing. Precondition: what `main` was given.
inline int tool(int argc, char** argv) { return tools::detail::main_of(argc, argv, std::nullopt); }
/// The same for a graph of your own, of as few samples as make sense: no subcommand takes --model then.
/// `name`: a label for its plans. `return tensorpar::tool(argc, argv, lower(typed<net>, {batch = 1}))` is a
/// whole `main`.
inline int tool(int argc, char** argv, computation_graph my_graph, std::string name = "") {
  return tools::detail::main_of(argc, argv, tools::own_model{std::move(my_graph), std::move(name)});
}

}  // namespace tensorpar
