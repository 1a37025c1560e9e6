// tensorpar/peers/profiles/text.hpp - profiles that are lines of text: a cursor that knows its line and
// column
#pragma once
#include <charconv>
#include <string>
#include <string_view>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/numbers.hpp>
#include <tensorpar/core/read_file.hpp>
#include <vector>

namespace tensorpar::peers::detail {

/// The file as text. Throws `error` if it cannot be read.
inline std::string profile_file(std::string const& path) {
  return core::read_file(path, "a readable text file");
}

/// One line and how far it has been read.
struct profile_line {
  std::string_view text;
  std::string const* file;
  int line = 1;
  std::size_t at = 0;

  [[noreturn]] void fail(std::string const& what, std::string const& valid) const {
    throw error(what, *file + ":" + std::to_string(line) + ":" + std::to_string(at + 1), valid);
  }
  bool done() const { return at >= text.size(); }
  std::string_view rest() const { return text.substr(at); }
  std::string shown() const { return "\"" + std::string(rest().substr(0, 40)) + "\""; }
  void blanks() {
    while (!done() && (text[at] == ' ' || text[at] == '\t')) ++at;
  }
  bool take(std::string_view word) {
    if (!rest().starts_with(word)) return false;
    at += word.size();
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word))
      fail(done() ? "the line ends early" : "found " + shown(), "\"" + std::string(word) + "\"");
  }
  void end() {
    blanks();
    if (!done()) fail("found " + shown() + " where the line should end", "nothing more in this line");
  }
  /// A decimal number from 0 to `most`; "nan" and "inf" are none.
  double number(double most = core::profile_max_number) {
    double x = 0;
    char const *const first = text.data() + at, *const last = text.data() + text.size();
    bool const digit = first != last && ((*first >= '0' && *first <= '9') || *first == '.');
    auto const [stop, problem] = std::from_chars(first, last, x);
    if (!digit || problem != std::errc() || !(x >= 0 && x <= most))
      fail(done() ? "a number is missing" : "no such number: " + shown(),
           "a number from 0 to " + std::to_string(most));
    at += idx(stop - first);
    return x;
  }
  i64 integer(i64 least, i64 most) {
    i64 x = 0;
    char const *const first = text.data() + at, *const last = text.data() + text.size();
    auto const [stop, problem] = std::from_chars(first, last, x);
    if (problem != std::errc() || x < least || x > most)
      fail(done() ? "a number is missing" : "no such number: " + shown(),
           "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    at += idx(stop - first);
    return x;
  }
};

/// The lines of a text, without what ends them. Throws `error` for a zero byte.
inline std::vector<profile_line> profile_lines(std::string_view text, std::string const& file) {
  core::require_text(text, file);
  std::vector<profile_line> r;
  for (std::size_t start = 0; start < text.size();) {
    std::size_t const stop = std::min(text.find('\n', start), text.size());
    std::string_view one = text.substr(start, stop - start);
    if (one.ends_with('\r')) one.remove_suffix(1);
    r.push_back({one, &file, static_cast<int>(r.size()) + 1, 0});
    start = stop + 1;
  }
  return r;
}

}  // namespace tensorpar::peers::detail
