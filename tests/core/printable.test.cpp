// tests/core/printable.test.cpp - what is shown is UTF-8 without control characters, whatever came in
#include <doctest/doctest.h>
#include <random>
#include <support/effort.hpp>
#include <tensorpar/core/error.hpp>
#include <tensorpar/core/printable.hpp>

using namespace tensorpar;

TEST_CASE("well-formed text stays, all else is spelled out") {
  for (std::string s : {"", "plain, with \"quotes\"", "line\nand\ttab",
                        "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 \xed\x9f\xbf \xf4\x8f\xbf\xbf"})
    CHECK(core::printable(s) == s);
  CHECK(core::printable("a\xff" "b") == "a\\xffb");
  CHECK(core::printable("\x1b[31m\r\x7f") == "\\x1b[31m\\x0d\\x7f");
  CHECK(core::printable(std::string_view("\0", 1)) == "\\x00");
  CHECK(core::printable("\xc2\x9b") == "\\xc2\\x9b");                              // a control character of the second set
  CHECK(core::printable("\xc0\xaf") == "\\xc0\\xaf");                              // longer than need be
  CHECK(core::printable("\xe0\x9f\xbf") == "\\xe0\\x9f\\xbf");
  CHECK(core::printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");                     // half of a pair
  CHECK(core::printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");            // beyond the last character
  CHECK(core::printable("\xe2\x82") == "\\xe2\\x82");                              // cut off
  CHECK(core::printable("\xe2\x82" "a") == "\\xe2\\x82" "a");
  CHECK(core::printable(std::string(100, 'x'), 10) == "xxxxx ... xxxxx");
  CHECK(core::printable("\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", 6) == "\xc3\xa4 ... \xc3\xa4");  // no character is cut
}

TEST_CASE("law: what comes out is printable, and is made so once") {
  std::mt19937 draw(7);
  for (int turn = 0; turn < test_effort::cases(3000); ++turn) {
    std::string s;
    for (auto n = draw() % 12; n > 0; --n) s += static_cast<char>(draw() % 3 ? draw() : 0xc0 + draw() % 64);
    std::string const once = core::printable(s);
    REQUIRE(core::printable(once) == once);
    for (std::size_t i = 0; i < once.size();) {
      std::size_t const n = core::detail::utf8_length(std::string_view(once).substr(i));
      REQUIRE(n > 0);
      i += n;
    }
  }
}

TEST_CASE("errors say what came in so that it can be shown") {
  error const e("found \"\xff\"", "file\x1b.json", "other");
  CHECK(std::string(e.what()) == "found \"\\xff\" (at file\\x1b.json); valid: other");
  CHECK(e.problem() == "found \"\xff\"");
}
