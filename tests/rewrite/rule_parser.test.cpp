// tests/rewrite/rule_parser.test.cpp - every rule survives text; what is no rule is refused with its place
#include <tensorpar/rewrite/rule_parser.hpp>
#include <doctest/doctest.h>

#include <support/effort.hpp>

#include "random_rule.hpp"

using namespace tests;

TEST_CASE("any rule can be written and read back") {
  std::mt19937 draw(1);
  int shared = 0, conditions = 0;
  for (int turn = 0; turn < test_effort::cases(600); ++turn) {
    rewrite::rule const r = good_random_rule(draw);
    std::string const text = spell(r);
    CAPTURE(text);
    rewrite::rule const again = rewrite::parse_rule(text);
    REQUIRE(spell(again) == text);
    REQUIRE(spell(rewrite::parse_rule(spell(again))) == text);
    CHECK(again.name == r.name);
    CHECK(again.source.nodes.size() == r.source.nodes.size());
    CHECK(again.conditions.size() == r.conditions.size());
    shared += text.find("t0 = ") != text.npos;
    conditions += !r.conditions.empty();
  }
  CHECK(shared > test_effort::cases(40));
  CHECK(conditions > test_effort::cases(200));
}

TEST_CASE("what is no rule is refused, with the column and what would be valid") {
  struct wrong { char const* text; int column; char const* what; };
  for (wrong const& w : {wrong{"relu(x)", 8, "'=>' here"}, wrong{"rellu(x) => x", 6, "there is no operator rellu"},
                         wrong{"relu{k}(x) => relu(x)", 6, "too many attributes"},
                         wrong{"partition{dim=0,deg=2}(x) => x", 21, "has no attribute deg"},
                         wrong{"partition{0,2,3}(x) => x", 15, "too many attributes"},
                         wrong{"partition{dim=0,dim=1}(x) => x", 21, "stands twice"},
                         wrong{"linear{out=5}(x, w) => x", 12, "follows from the operands"},
                         wrong{"partition{k,k}(x) => x", 14, "two kinds"}, wrong{"relu(x) => x junk", 14, "text after"},
                         wrong{"relu(x => x", 8, "')' here"}, wrong{"slice{0,0,size(x,0)}(x) => x", 15, "no property size"},
                         wrong{"relu(x) => x where 3", 21, "malformed condition"},
                         wrong{"scale{1e999}(x) => x", 7, "a number here"},
                         wrong{"scale{factor=2*s}(x) => scale{factor=s}(x)", 16, "one number, or a product of parameters"},
                         wrong{"scale{factor=s*2}(x) => scale{factor=s}(x)", 16, "one number, or a product of parameters"},
                         wrong{"scale{factor=0.5*0.5}(x) => x", 18, "one number, or a product of parameters"},
                         wrong{"scale{factor=extent(x,0)}(x) => x", 20, "one number, or a product of parameters"},
                         wrong{"slice{0,0,4294967296*4294967296}(x) => x", 32, "64 bits"},
                         wrong{"slice{0,0,extent(x,4294967296)}(x) => x", 30, "32 bits"},
                         wrong{"slice{0,0,99999999999999999999}(x) => x", 11, "64 bits"}}) {
    CAPTURE(std::string(w.text));
    try {
      parse_rule(w.text, rewrite::standard_vocabulary(), "file:3");
      FAIL_CHECK("accepted");
    } catch (error const& e) {
      CHECK(std::string(e.what()).find(w.what) != std::string::npos);
      CHECK(e.where() == "file:3:" + std::to_string(w.column));
    }
  }
  CHECK_THROWS_WITH_AS(rewrite::parse_rule("relu(x) => relu(y)"), doctest::Contains("tensor y is not in the source"), error);
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "relu(";
  CHECK_THROWS_WITH_AS(rewrite::parse_rule(deep), doctest::Contains("nested too deeply"), error);
}

TEST_CASE("no text makes it crash") {
  std::mt19937 draw(3);
  int accepted = 0;
  for (int turn = 0; turn < test_effort::cases(5000); ++turn) {
    std::string text = spell(good_random_rule(draw));
    for (int n = 1 + static_cast<int>(draw() % 3); n > 0; --n) {
      std::size_t const at = draw() % text.size();
      static constexpr char odd[] = "(){}=>,;.?*-:| x0k";
      if (draw() % 2) text[at] = odd[draw() % (sizeof odd - 1)];
      else text.erase(at, 1 + draw() % 4);
      if (text.empty()) text = "x";
    }
    try {
      rewrite::rule const r = rewrite::parse_rule(text);
      CHECK(problems(r).empty());
      ++accepted;
    } catch (error const&) {
    }
  }
  CHECK(accepted > 10);
}

namespace {
struct swish {
  static constexpr auto name = "swish";
  static constexpr auto notation = "... -> ...";
  constexpr op::inference infer(shapes in) const { return in[0]; }
};
}  // namespace

TEST_CASE("a user's own operators") {
  CHECK_THROWS_AS(rewrite::parse_rule("swish(x) => x"), error);
  rewrite::vocabulary const words = rewrite::standard_vocabulary().with<swish>();
  CHECK(parse_rule("swish(relu(x)) => relu(swish(x))", words).source.nodes[1].op == &op::info<swish>);
  CHECK(tensorpar::rewrite::is_function(op::info<swish>));
  CHECK(!tensorpar::rewrite::is_function(op::info<softmax>));
  CHECK(!tensorpar::rewrite::is_function(op::info<parallel::replicate>));
  CHECK(words.names().find("swish") != std::string::npos);
}
