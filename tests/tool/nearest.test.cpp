// tests/tool/nearest.test.cpp - edits between words, and what a misspelt word meant
#include <tensorpar/tool/nearest.hpp>

#include <doctest/doctest.h>
#include <random>

using namespace tensorpar::tools;

namespace {

std::string word(std::mt19937& r) {
  std::string s(r() % 7, 'a');
  for (char& c : s) c = static_cast<char>('a' + r() % 3);
  return s;
}

}  // namespace

TEST_CASE("edits: none of the same word, one of each kind, letters' case and '_' aside") {
  CHECK(edits_between("", "") == 0);
  CHECK(edits_between("plan", "plan") == 0);
  CHECK(edits_between("PLAN_x", "plan-X") == 0);
  CHECK(edits_between("pln", "plan") == 1);
  CHECK(edits_between("plaan", "plan") == 1);
  CHECK(edits_between("plon", "plan") == 1);
  CHECK(edits_between("paln", "plan") == 1);
  CHECK(edits_between("", "plan") == 4);
  CHECK(edits_between("kitten", "sitting") == 3);
}

TEST_CASE("edits are the same both ways, no more than the longer word has letters and no fewer than lengths differ by") {
  std::mt19937 r(1);
  for (int k = 0; k < 500; ++k) {
    std::string const a = word(r), b = word(r);
    CAPTURE(a);
    CAPTURE(b);
    std::size_t const n = edits_between(a, b);
    CHECK(n == edits_between(b, a));
    CHECK(n <= std::max(a.size(), b.size()));
    CHECK(n >= std::max(a.size(), b.size()) - std::min(a.size(), b.size()));
    CHECK((n == 0) == (a == b));
  }
}

TEST_CASE("the nearest word, or one that begins so; none where nothing is like it") {
  std::vector<std::string> const all{"plan", "compare", "show", "diff", "check", "simulate", "rules"};
  CHECK(nearest("pln", all) == "plan");
  CHECK(nearest("comapre", all) == "compare");
  CHECK(nearest("sim", all) == "simulate");
  CHECK(nearest("chekc", all) == "check");
  CHECK(nearest("banana", all) == "");
  CHECK(nearest("", all) == "");
  CHECK(nearest("plan", {}) == "");
  CHECK(did_you_mean("shwo", all) == ", did you mean \"show\"?");
  CHECK(did_you_mean("banana", all) == "");
  CHECK(listed({"a", "b"}) == "a, b");
}
