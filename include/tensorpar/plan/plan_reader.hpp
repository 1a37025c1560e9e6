// tensorpar/plan/plan_reader.hpp - reading JSON strictly: every complaint names file, key and what is valid
#pragma once
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <tensorpar/core/config.hpp>
#include <tensorpar/core/error.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/json.hpp>

namespace tensorpar {

namespace detail {

/// Limits of what a file may say; far above any real cluster, far below what could exhaust the reader.
inline constexpr int plan_max_devices = 1 << 20;
inline constexpr int plan_max_micro_batches = 1 << 20;

/// The way from a file's value to one within: "links[0].bandwidth". Made text only where an error says it:
/// files hold millions of values.
class json_path {
  struct step { char const* key; std::size_t index; };
  static constexpr int most = 8;         // deeper than any format of ours
  step steps_[most]{};
  int length_ = 0;

  json_path with(step s) const {
    json_path r = *this;
    r.steps_[r.length_ < most ? r.length_++ : most - 1] = s;
    return r;
  }

 public:
  json_path(char const* key = "") {
    if (*key) *this = with({key, 0});
  }
  /// Precondition: the key lives as long as the path.
  json_path operator/(char const* key) const { return with({key, 0}); }
  json_path operator/(std::size_t index) const { return with({nullptr, index}); }
  bool empty() const { return length_ == 0; }
  std::string text() const {
    std::string r;
    for (step const& s : std::span(steps_, idx(length_)))
      if (s.key) r.append(r.empty() ? "" : ".").append(s.key);
      else r += "[" + std::to_string(s.index) + "]";
    return r;
  }
};

/// A JSON value and the path that leads to it, read with errors that say file, key and what is valid. Refers
/// to the file's name.
struct plan_reader {
  core::json const& at;
  std::string_view file;
  json_path path;
  static constexpr i64 any_integer = INT64_MIN;
  static constexpr double any_real = std::numeric_limits<double>::lowest();

  [[noreturn]] void fail(std::string const& what, std::string const& valid) const {
    throw error(what, std::string(file) + (path.empty() ? "" : ": " + path.text()), valid);
  }
  std::string child(std::string const& key) const { return path.empty() ? key : path.text() + "." + key; }
  plan_reader operator[](char const* key) const {
    auto const it = at.find(key);
    if (it == at.end()) fail("the key \"" + std::string(key) + "\" is missing", "an object that has it");
    return {*it, file, path / key};
  }
  plan_reader operator[](std::size_t i) const { return {at[i], file, path / i}; }
  void object(std::initializer_list<char const*> keys) const {
    if (!at.is_object()) fail("not an object", "an object");
    for (auto const& [key, value] : at.items()) {
      bool known = false;
      for (char const* k : keys) known = known || key == k;
      if (known) continue;
      std::string valid;
      for (char const* k : keys) valid += (valid.empty() ? "" : ", ") + std::string(k);
      throw error(
          "unknown key",
          std::string(file) + ": " + child(core::json(key).dump(-1, ' ', true,
                                                                core::json::error_handler_t::replace)),
          valid);
    }
  }
  std::size_t array(std::size_t least, std::size_t most) const {
    if (!at.is_array()) fail("not a list", "a list");
    if (at.size() < least || at.size() > most)
      fail("a list of " + std::to_string(at.size()),
           "from " + std::to_string(least) + " to " + std::to_string(most) + " entries");
    return at.size();
  }
  std::string text() const {
    if (!at.is_string()) fail("not a text", "a text");
    return at.get<std::string>();
  }
  /// Which of these texts it is.
  template <std::size_t N> int one_of(char const* const (&names)[N]) const {
    std::string const s = text();
    std::string valid;
    for (std::size_t i = 0; i < N; ++i) {
      if (s == names[i]) return static_cast<int>(i);
      valid += (i ? ", " : "") + std::string(names[i]);
    }
    fail(at.dump(-1, ' ', true, core::json::error_handler_t::replace) + " is none of them", valid);
  }
  bool boolean() const {
    if (!at.is_boolean()) fail("not a truth value", "true or false");
    return at.get<bool>();
  }
  u64 hex() const {
    std::string const s = at.is_string() ? at.get<std::string>() : std::string();
    u64 r = 0;
    bool good = s.size() == 16;
    for (char c : s) {
      good = good && ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'));
      r = r << 4 | static_cast<u64>(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    if (!good) fail("not a hash", "16 lower-case hexadecimal digits");
    return r;
  }
  /// A whole number, which may be written as 1e9.
  i64 integer(i64 least = any_integer, i64 most = INT64_MAX) const {
    auto const valid = [&] {
      return least == any_integer
                 ? "a whole number"
                 : "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
    };
    double const real = at.is_number_float() ? at.get<double>() : 0;
    if (!at.is_number() || real != std::trunc(real)) fail("not a whole number", valid());
    bool const huge =
        at.is_number_unsigned() ? at.get<u64>() > static_cast<u64>(INT64_MAX) : !(std::abs(real) < 0x1p63);
    if (huge || at.get<i64>() < least || at.get<i64>() > most) fail(at.dump() + " is out of range", valid());
    return at.get<i64>();
  }
  int bounded(i64 least, i64 most) const { return static_cast<int>(integer(least, most)); }
  double real(double least = any_real, double most = -any_real) const {
    auto const valid = [&] {
      return least == any_real ? "a number"
                               : "a number from " + core::json(least).dump() + " to "
                                   + core::json(most).dump();
    };
    if (!at.is_number()) fail("not a number", valid());
    double const x = at.get<double>();
    if (!(x >= least && x <= most)) fail(at.dump() + " is out of range", valid());
    return x;
  }
};

}  // namespace detail

}  // namespace tensorpar
