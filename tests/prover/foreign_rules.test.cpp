// tests/prover/foreign_rules.test.cpp - readers of other systems' rules: what they read, and what they refuse with its place
#include <tensorpar/prover/foreign_rules.hpp>
#include <doctest/doctest.h>

#include <random>
#include <support/effort.hpp>

using namespace tensorpar;
using namespace tensorpar::prover;

namespace {
constexpr char const* good = R"({"rule": [{"_t": "Rule", "name": "r",
  "srcOp": [{"type": "OP_LINEAR", "input": [{"opId": -1, "tsId": 0}, {"opId": -4, "tsId": 0}], "para": [{"key": "PM_ACTI", "value": 2}]}],
  "dstOp": [{"type": "OP_LINEAR", "input": [{"opId": -1, "tsId": 0}, {"opId": -4, "tsId": 0}], "para": [{"key": "PM_ACTI", "value": 0}]},
            {"type": "OP_RELU", "input": [{"opId": 0, "tsId": 0}], "para": []}],
  "mappedOutput": [{"srcOpId": 0, "srcTsId": 0, "dstOpId": 1, "dstTsId": 0}]}]})";

void put_number(std::string& s, i64 n) {
  auto u = static_cast<u64>(n);
  do {
    s += static_cast<char>((u & 127) | (u > 127 ? 128 : 0));
    u >>= 7;
  } while (u);
}
void put_field(std::string& s, int field, i64 n) { s += static_cast<char>(field << 3); put_number(s, n); }
void put_piece(std::string& s, int field, std::string const& t) { s += static_cast<char>(field << 3 | 2); put_number(s,
    static_cast<i64>(t.size())); s += t; }
std::string message(foreign_rule const& r) {
  std::string rule;
  auto op = [](int type, std::vector<foreign_value> const& in, std::vector<std::pair<int, int>> const& parameters) {
    std::string o;
    put_field(o, 1, type);
    for (foreign_value v : in) { std::string t; put_field(t, 1, v.op); put_field(t, 2, v.slot); put_piece(o, 2, t); }
    for (auto const& [k, x] : parameters) { std::string p; put_field(p, 1, k); put_field(p, 2, x); put_piece(o, 3, p); }
    return o;
  };
  put_piece(rule, 1, op(5, r.source[0].input, {{9, 2}}));
  put_piece(rule, 2, op(5, r.target[0].input, {{9, 0}}));
  put_piece(rule, 2, op(8, r.target[1].input, {}));
  std::string out;
  put_field(out, 1, 0);
  put_field(out, 2, 1);
  put_field(out, 3, 0);
  put_field(out, 4, 0);
  put_piece(rule, 3, out);
  std::string all;
  put_piece(all, 1, rule);
  return all;
}
}  // namespace

TEST_CASE("the same rule from JSON and from protobuf") {
  auto const a = read_flexflow_rules(core::parse_json(good, "text"), "text");
  REQUIRE(a.size() == 1);
  auto const b = read_taso_rules(message(a[0]), "bytes");
  REQUIRE(b.size() == 1);
  for (foreign_rule const* r : {&a[0], &b[0]}) {
    REQUIRE(r->source.size() == 1);
    REQUIRE(r->target.size() == 2);
    CHECK(r->source[0].type == "OP_LINEAR");
    CHECK(r->source[0].parameter.at("PM_ACTI") == 2);
    CHECK(r->source[0].input[1].op == -4);
    CHECK(r->target[1].type == "OP_RELU");
    CHECK(r->outputs[0].target.op == 1);
  }
  CHECK(read_taso_rules("", "nothing").empty());
}

TEST_CASE("what is missing, of another type or out of range is named with its place") {
  auto refuse = [](std::string from, std::string to, std::string_view why) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    CAPTURE(text);
    try {
      read_flexflow_rules(core::parse_json(text, "file"), "file");
      FAIL_CHECK("accepted");
    } catch (error const& e) {
      CHECK(std::string(e.what()).find(why) != std::string::npos);
      CHECK(e.where().starts_with("file"));
    }
  };
  refuse("\"srcOp\"", "\"source\"", "no array \"srcOp\"");
  refuse("\"OP_LINEAR\"", "7", "is no text");
  refuse("\"opId\": -1", "\"opId\": 1e30", "no value \"opId\"");
  refuse("\"opId\": -1", "\"opId\": 12345678901", "no small integer");
  refuse("\"opId\": -1", "\"opId\": 0", "reads operator 0");
  refuse("\"srcOpId\": 0", "\"srcOpId\": 3", "an output names an operator that is not there");
  refuse("\"mappedOutput\": [{\"srcOpId\": 0, \"srcTsId\": 0, \"dstOpId\": 1, \"dstTsId\": 0}]", "\"mappedOutput\": []", "without outputs");
  CHECK_THROWS_AS(read_flexflow_rules(core::json(3), "file"), error);
  CHECK_THROWS_WITH_AS(read_foreign_rules("/nowhere/rules.pb"), doctest::Contains("cannot read the file"), error);
  CHECK_THROWS_WITH_AS(read_taso_rules("root:x:0:0", "file"), doctest::Contains("at file: byte"), error);
}

TEST_CASE("no bytes make the reader crash") {
  std::mt19937 draw(1);
  auto const rules = read_flexflow_rules(core::parse_json(good, "text"), "text");
  std::string const whole = message(rules[0]);
  int accepted = 0;
  for (std::size_t n = 0; n < whole.size(); ++n)
    if (n > 0) CHECK_THROWS_AS(read_taso_rules(whole.substr(0, n), "cut"), error);
  for (int turn = 0; turn < test_effort::cases(20000); ++turn) {
    std::string s = whole;
    for (int k = 1 + static_cast<int>(draw() % 4); k > 0; --k) s[draw() % s.size()] = static_cast<char>(draw());
    try {
      read_taso_rules(s, "spoilt");
      ++accepted;
    } catch (error const&) {
    }
  }
  CHECK(accepted > 0);
}
