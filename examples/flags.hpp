// examples/flags.hpp - flags that a program's mode does not look at are refused, never ignored
#pragma once
#include <CLI/CLI.hpp>
#include <initializer_list>
#include <string>
#include <tensorpar/core/error.hpp>

namespace flags {

/// Throws `error` for the first of these that was given: in this mode it would mean nothing.
inline void refuse(CLI::App const& app, std::string const& mode, std::initializer_list<char const*> ignored) {
  for (char const* name : ignored)
    if (app.count(name) > 0) throw tensorpar::error(std::string(name) + " means nothing with " + mode, "the flags", "one of the two");
}
/// The same for all flags but these.
inline void refuse_all_but(CLI::App const& app, std::string const& mode, std::initializer_list<char const*> used) {
  for (CLI::Option const* o : app.get_options()) {
    bool known = o == app.get_help_ptr();
    for (char const* name : used) known = known || o->check_name(name);
    if (!known) refuse(app, mode, {o->get_name().c_str()});
  }
}
/// Throws `error` where some of these were given without what they go with.
inline void require(CLI::App const& app, char const* needed, std::initializer_list<char const*> some) {
  for (char const* name : some)
    if (app.count(name) > 0 && app.count(needed) == 0)
      throw tensorpar::error(std::string(name) + " without " + needed, "the flags", "both, or neither");
}

/// An argument as one types it in a shell.
inline std::string quoted(std::string const& s) {
  if (!s.empty() && s.find_first_of(" \t\n\"'\\$`!*?[](){}<>|&;~#") == s.npos) return s;
  std::string r = "'";
  for (char c : s) r += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return r + "'";
}

}  // namespace flags
