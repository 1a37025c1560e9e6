// tests/report/page/style.test.cpp - the style is whole, and every colour it names is defined in light and in dark
#include <tensorpar/report/page/style.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

namespace {
/// Names "--x" that follow `before` in a text, up to what cannot be in a name.
std::set<std::string> names(std::string const& text, std::string const& before) {
  std::set<std::string> all;
  for (std::size_t at = text.find(before); at != text.npos; at = text.find(before, at + 1)) {
    std::size_t const from = at + before.size();
    all.insert(text.substr(from, text.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", from) - from));
  }
  return all;
}
}  // namespace

TEST_CASE("braces balance, nothing is fetched, nothing ends the element") {
  std::string const s = tensorpar::report::detail::html_style;
  int depth = 0;
  for (char c : s) {
    depth += (c == '{') - (c == '}');
    CHECK(depth >= 0);
  }
  CHECK(depth == 0);
  for (char const* bad : {"</", "url(", "@import", "http"}) CHECK(s.find(bad) == s.npos);
}

TEST_CASE("colours that are used are defined, dark ones redefine light ones") {
  std::string const s = tensorpar::report::detail::html_style;
  std::size_t const dark = s.find(":root.dark");
  REQUIRE(dark != s.npos);
  auto defined = [&](std::size_t from) {
    std::string const block = s.substr(from, s.find('}', from) - from);
    std::set<std::string> all;
    for (std::string const& n : names(block, " --")) all.insert(n);
    return all;
  };
  std::set<std::string> const light = defined(s.find(":root")), night = defined(dark), used = names(s, "var(--");
  CHECK(light.size() > 10);
  CHECK(night == light);
  for (std::string const& n : used) CHECK_MESSAGE(light.count(n), n);
}
