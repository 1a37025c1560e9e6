// examples/standard_output.hpp - a program that could not print all that it had to say ends with an error. Including it is enough.
#pragma once
#include <cstdlib>
#include <tensorpar/tool/standard_output.hpp>

/// Lives as long as the program.
struct standard_output {
  standard_output() {
    if (!tensorpar::tools::hold_standard_streams()) std::_Exit(1);
  }
  standard_output(standard_output const&) = delete;
  standard_output& operator=(standard_output const&) = delete;
  /// What was not printed is an error of the program, whatever it returned.
  ~standard_output() {
    if (!tensorpar::tools::printed_all()) std::_Exit(1);
  }
};
inline standard_output const checked_standard_output;
