// tensorpar/core/error.hpp - how bad input is reported at run time
#pragma once
#include <stdexcept>
#include <string>
#include <tensorpar/core/printable.hpp>

namespace tensorpar {

/// One clear message for bad input: what is wrong, where it stands, and what would be valid.
/// Thrown for files, plans, clusters, shapes and environment; never for a programming error inside the
/// library.
/// what() is fit to be shown (core/printable.hpp), whatever was in the files; the three parts are as they
/// were given.
class error : public std::runtime_error {
 public:
  [[gnu::noinline, gnu::cold]] error(std::string what, std::string where, std::string valid)
      : std::runtime_error(sentence(what, where, valid)),
        what_(static_cast<std::string&&>(what)),
        where_(static_cast<std::string&&>(where)),
        valid_(static_cast<std::string&&>(valid)) {}
  std::string const& problem() const { return what_; }
  std::string const& where() const { return where_; }
  std::string const& valid() const { return valid_; }

 private:
  std::string what_, where_, valid_;
  // one append, not a chain of +: this is compiled wherever anything can fail
  [[gnu::noinline, gnu::cold]] static void put(std::string& s, std::string const& before,
                                               std::string const& text, std::string const& after) {
    if (!text.empty()) s.append(before).append(text).append(after);
  }
  [[gnu::noinline, gnu::cold]] static std::string sentence(std::string const& what, std::string const& where,
                                                           std::string const& valid) {
    std::string s = what;
    put(s, " (at ", where, ")");
    put(s, "; valid: ", valid, "");
    return core::printable(s);
  }
};

namespace detail {
/// What a constexpr function refuses: an `error` at run time; and no constant expression, so that a compiler
/// shows the line of the call.
[[noreturn, gnu::noinline, gnu::cold]] inline void refuse(char const* what, char const* where,
                                                          char const* valid) {
  throw error(what, where, valid);
}
}  // namespace detail

}  // namespace tensorpar
