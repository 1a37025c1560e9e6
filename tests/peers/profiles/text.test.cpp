// tests/peers/profiles/text.test.cpp - a cursor over lines of text: what it takes, and where it says that something is wrong
#include <tensorpar/peers/profiles/text.hpp>
#include <doctest/doctest.h>

#include "refusal.hpp"
#include <support/random_graph.hpp>
#include <support/scratch_folder.hpp>

using namespace tensorpar;
using namespace tensorpar::peers;
using tests::refusal;
using tensorpar::peers::detail::profile_line;
using tensorpar::peers::detail::profile_lines;

TEST_CASE("lines are what stands between line ends, of either kind, numbered from 1") {
  tests::random_source r{1};
  std::string const file = "f";
  for (int turn = 0; turn < 200; ++turn) {
    std::vector<std::string> want;
    std::string text;
    for (int k = 0, n = 1 + r.below(6); k < n; ++k) {
      want.emplace_back();
      for (int i = r.below(4); i > 0; --i) want.back() += static_cast<char>('a' + r.below(3));
      text += want.back() + (r.chance(30) ? "\r\n" : "\n");
    }
    if (r.chance(50) && !want.back().empty()) {  // the last line may be open
      text.pop_back();
      if (text.back() == '\r') text.pop_back();
    }
    auto const got = profile_lines(text, file);
    REQUIRE(got.size() == want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(got[i].text == want[i]);
      CHECK(got[i].line == static_cast<int>(i) + 1);
    }
  }
  CHECK(profile_lines("", file).empty());
}

TEST_CASE("numbers as they were written, and not one more") {
  std::string const file = "f";
  auto const at = [&](std::string_view text) { return profile_line{text, &file, 7, 0}; };
  profile_line l = at("a=12.5e1 \t b 3,-4");
  l.expect("a=");
  CHECK(l.number() == 125);
  l.blanks();
  CHECK_FALSE(l.take("c"));
  CHECK(l.take("b"));
  l.blanks();
  CHECK(l.integer(0, 3) == 3);
  l.expect(",");
  CHECK(l.integer(-9, 9) == -4);
  CHECK(l.done());
  l.end();
  for (char const* bad : {"", "nan", "inf", "-1", "-0", "+1", "x", "1e19", "1e999"}) {
    CAPTURE(bad);
    profile_line x = at(bad);
    CHECK(refusal([&] { x.number(); }).where() == "f:7:1");
    CHECK(x.at == 0);
  }
  for (char const* bad : {"", "1e1x", "11", "-1", "99999999999999999999", "x"}) {
    CAPTURE(bad);
    profile_line x = at(bad);
    bool const part = bad[0] == '1' && bad[1] == 'e';  // the number 1, and then what end() refuses
    CHECK((refusal([&] { x.integer(0, 10); }).problem() == "accepted") == part);
    if (part) CHECK(refusal([&] { x.end(); }).where() == "f:7:2");
  }
  profile_line y = at("abc");
  CHECK(refusal([&] { y.expect("abd"); }).problem() == "found \"abc\"");
  profile_line z = at("");
  CHECK(refusal([&] { z.expect("x"); }).problem() == "the line ends early");
}

TEST_CASE("files are read whole; what is no file is refused") {
  tests::scratch_folder const folder;
  std::string const path = folder / "some.txt", text("a\0b\r\n\n", 6);
  std::ofstream(path, std::ios::binary) << text;
  CHECK(peers::detail::profile_file(path) == text);
  CHECK(refusal([&] { peers::detail::profile_file(folder / "none.txt"); }).where() == folder / "none.txt");
  CHECK(refusal([&] { peers::detail::profile_file(folder / "."); }).problem() == "cannot read the file: it is a folder");
}
