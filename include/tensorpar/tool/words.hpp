// tensorpar/tool/words.hpp - words of command lines that stand for one of several things
#pragma once
#include <iterator>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/machine/precision.hpp>
#include <tensorpar/op/kinds/update.hpp>
#include <tensorpar/search/effort.hpp>
#include <tensorpar/tool/console.hpp>
#include <tensorpar/tool/nearest.hpp>
#include <vector>

namespace tensorpar::tools {

/// Names of number formats, by their values.
inline std::vector<std::string> format_names() {
  return {std::begin(precision_names), std::end(precision_names)};
}
/// Names of optimizers, as `optimizer_named` reads them.
inline std::vector<std::string> optimizer_names() { return {"sgd", "momentum", "adamw"}; }
/// Names of efforts, by their values.
inline std::vector<std::string> effort_names() { return {"quick", "normal", "thorough"}; }

/// Which of the known words it is. Throws `usage_error` with the nearest one and all others. O(known).
inline std::size_t one_of(std::string const& where, std::string const& given,
                          std::vector<std::string> const& known) {
  for (std::size_t k = 0; k < known.size(); ++k)
    if (given == known[k]) return k;
  throw usage_error("\"" + given + "\"" + did_you_mean(given, known), where, listed(known));
}
/// The optimizer of this name. Throws `usage_error` for other words.
inline optimizer_kind optimizer_named(std::string const& name, std::string const& where = "--optimizer") {
  constexpr optimizer_kind all[] = {optimizer_kind::sgd, optimizer_kind::momentum, optimizer_kind::adamw};
  return all[one_of(where, name, optimizer_names())];
}
/// What moments, gradients or masters may be kept in. Throws `usage_error` for other words.
inline dtype state_format_named(std::string const& name, std::string const& where) {
  return one_of(where, name, {"f32", "bf16"}) ? dtype::bf16 : dtype::f32;
}
/// The effort of this name. Throws `usage_error` for other words.
inline effort effort_named(std::string const& name, std::string const& where = "--effort") {
  return static_cast<effort>(one_of(where, name, effort_names()));
}

}  // namespace tensorpar::tools
