// tensorpar/core/error.hpp - how bad input is reported at run time
#pragma once
#include <stdexcept>
#include <string>

namespace tensorpar {

/// One clear message for bad input: what is wrong, where it stands, and what would be valid.
/// Thrown for files, plans, clusters, shapes and environment; never for a programming error inside the library.
class error : public std::runtime_error {
 public:
  error(std::string what, std::string where, std::string valid)
      : std::runtime_error(what + (where.empty() ? "" : " (at " + where + ")") + (valid.empty() ? "" : "; valid: " + valid)),
        what_(static_cast<std::string&&>(what)), where_(static_cast<std::string&&>(where)), valid_(static_cast<std::string&&>(valid)) {}
  std::string const& problem() const { return what_; }
  std::string const& where() const { return where_; }
  std::string const& valid() const { return valid_; }

 private:
  std::string what_, where_, valid_;
};

}  // namespace tensorpar
