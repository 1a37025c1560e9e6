// tests/report/page/script.test.cpp - the script fits the page: elements and data that it asks for are there; names cannot become markup
#include <tensorpar/report/page/script.hpp>
#include <tensorpar/report/page/timelines.hpp>
#include <doctest/doctest.h>

#include <report/page/page_subject.hpp>
#include <set>
#include <tensorpar/report/page/html.hpp>

using namespace tensorpar;

namespace {
std::set<std::string> after(std::string const& text, std::string const& before, char const* letters) {
  std::set<std::string> all;
  for (std::size_t at = text.find(before); at != text.npos; at = text.find(before, at + 1)) {
    std::size_t const from = at + before.size();
    if (std::size_t const end = text.find_first_not_of(letters, from); end > from) all.insert(text.substr(from, end - from));
  }
  return all;
}
char const* const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-";
}  // namespace

TEST_CASE("elements that the script looks for are in the page, values that it reads are in the data") {
  tests::report_subject const s = tests::report_of(tests::small_transformer(), 4, 1);
  std::string const script = std::string(report::detail::html_script) + report::detail::html_timelines,
      page = report::html_report(s.t, s.p, s.q, s.predicted);
  auto const ids = after(script, "$('", letters);
  CHECK(ids.size() > 10);
  for (std::string const& id : ids) CHECK_MESSAGE(page.find("id=\"" + id + "\"") != page.npos, id);
  tests::page_subject const x(s);
  core::json const data = report::detail::report_data(s.t, x.parts(), s.q, s.predicted, {});
  auto const keys = after(script, " data.", letters);
  CHECK(keys.size() > 3);
  for (std::string const& key : keys) CHECK_MESSAGE(data.contains(key), key);
}

TEST_CASE("nothing makes markup of text, runs text, fetches or ends the element") {
  std::string const s = std::string(report::detail::html_script) + report::detail::html_timelines;
  for (char const* bad : {"innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function(", "fetch(", "http:",
                          "</script"})
    CHECK_MESSAGE(s.find(bad) == s.npos, bad);
  CHECK(s.find("textContent") != s.npos);
}
