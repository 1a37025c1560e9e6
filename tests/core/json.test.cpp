// tests/core/json.test.cpp - values survive, order is kept, and bad text is refused with its place
#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <support/cpu_seconds.hpp>
#include <tensorpar/core/config.hpp>
#include <tensorpar/core/json.hpp>

using namespace tensorpar;

namespace {

struct refusal {
  std::string problem, where;
};

refusal refused(std::string const& text) {
  try {
    core::parse_json(text, "plan.json");
  } catch (error const& e) {
    return {e.problem(), e.where()};
  }
  return {"", ""};
}

core::json random_value(std::mt19937& random, int depth) {
  switch (random() % (depth > 0 ? 7 : 5)) {
    case 0: return nullptr;
    case 1: return random() % 2 == 0;
    case 2: return static_cast<std::int64_t>((std::uint64_t{random()} << 32) | random());
    case 3: return std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 200) - 100);
    case 4: {
      std::string s;
      for (auto n = random() % 6; n > 0; --n) s += static_cast<char>(random() % 128);
      return s;
    }
    case 5: {
      core::json a = core::json::array();
      for (auto n = random() % 5; n > 0; --n) a.push_back(random_value(random, depth - 1));
      return a;
    }
    default: {
      core::json o = core::json::object();
      for (auto n = random() % 5; n > 0; --n) o["k" + std::to_string(random() % 100)] = random_value(random, depth - 1);
      return o;
    }
  }
}

}  // namespace

TEST_CASE("keys keep the order in which they were written") {
  std::string const text = R"({"z":1,"a":{"y":2,"b":3},"m":[]})";
  CHECK(core::parse_json(text, "t").dump() == text);
}

TEST_CASE("law: parse(dump(v)) == v for random values, indented or not") {
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    core::json const v = random_value(random, 4);
    CAPTURE(v.dump());
    REQUIRE(core::parse_json(v.dump(), "t") == v);
    REQUIRE(core::parse_json(v.dump(2), "t") == v);
  }
}

TEST_CASE("64-bit integers and doubles come back exactly") {
  for (u64 x : {u64{0}, u64{1} << 53, (u64{1} << 53) + 1, std::numeric_limits<u64>::max()})
    CHECK(core::parse_json(core::json(x).dump(), "t").get<u64>() == x);
  CHECK(core::parse_json("-9223372036854775808", "t").get<i64>() == std::numeric_limits<i64>::min());
  for (double x : {0.1, 5e-324, 1.7976931348623157e308, 1.0 / 3}) CHECK(core::parse_json(core::json(x).dump(), "t").get<double>() == x);
}

TEST_CASE("malformed text is refused with name, line and column") {
  CHECK(refused("{\"a\": 1,\n \"b\": ?}").where == "plan.json:2:7");
  CHECK(refused("[1, 2").where == "plan.json:1:6");  // just behind the end
  CHECK(refused("").where == "plan.json:1:1");
  CHECK(refused("\n\n  tru").where == "plan.json:3:6");
  CHECK(refused("[1] 2").where == "plan.json:1:5");
  CHECK(refused("[1] // note").where == "plan.json:1:5");
  CHECK(refused("[NaN]").where == "plan.json:1:2");
  CHECK(refused("\"\xff\"").where == "plan.json:1:2");
  std::string const problem = refused("[1, 2").problem;
  CHECK(problem.starts_with("malformed JSON: "));
  CHECK(problem.find("unexpected end of input") != problem.npos);
  CHECK(problem.find("json.exception") == problem.npos);
}

TEST_CASE("every truncation of a document is refused") {
  std::string const text = R"({"version": 1, "list": [1, -2.5e3, "a\"b"], "flag": true})";
  REQUIRE(core::parse_json(text, "t").size() == 3);
  for (std::size_t n = 0; n < text.size(); ++n) {
    CAPTURE(n);
    CHECK(!refused(text.substr(0, n)).problem.empty());
  }
}

TEST_CASE("a key that stands twice in one object is refused; in two objects it may") {
  CHECK(refused(R"({"a": 1, "b": {"c": 1, "c": 2}})").problem == "JSON key \"c\" stands twice in one object");
  CHECK(refused(R"({"a": {"a": {"a": 1}}, "b": [{"a": 1}, {"a": 2}]})").problem.empty());
  CHECK(refused(R"({"a": {"b": 1}, "b": 2, "a": 3})").problem == "JSON key \"a\" stands twice in one object");
}

TEST_CASE("nesting is refused beyond the limit, and brackets in strings do not count") {
  auto const nested = [](int n) { return std::string(static_cast<std::size_t>(n), '[') + std::string(static_cast<std::size_t>(n), ']'); };
  CHECK(refused(nested(core::json_max_depth)).problem.empty());
  CHECK(refused(nested(core::json_max_depth + 1)).problem == "JSON is nested too deeply");
  CHECK(refused(nested(core::json_max_depth + 1)).where == "plan.json:1:" + std::to_string(core::json_max_depth + 1));
  CHECK(!refused(std::string(1000000, '[')).problem.empty());
  CHECK(refused("\"" + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + "\"").problem.empty());
}

TEST_CASE("a number that no double can hold is refused with its place and key") {
  CHECK(refused("[1e999]").where == "plan.json:1:6: [0]");
  CHECK(refused("-1e400").where == "plan.json:1:6");
  refusal const r = refused("{\"cluster\": {\"links\": [{\"a\": [1, {}]},\n {\"b\": [], \"bandwidth\": 1e400}]}}");
  CHECK(r.where == "plan.json:2:29: cluster.links[1].bandwidth");
  CHECK(r.problem.find("1e400") != r.problem.npos);
  CHECK(refused("[" + std::string(100000, '9') + "]").problem.size() < 600);
}

TEST_CASE("a zero byte is refused wherever it stands") {
  std::string const text = R"({"version": 1, "list": [1, -2.5e3, "a\"b"], "flag": true})";
  for (std::size_t n = 0; n <= text.size(); ++n) {
    std::string with = text;
    with.insert(n, 1, '\0');
    CAPTURE(n);
    CHECK(refused(with).problem == "a zero byte in a text");
    CHECK(refused(with).where == "plan.json:1:" + std::to_string(n + 1));
  }
  CHECK(refused(std::string("{\"preset\": \"logical:4\"}\n\0 and {anything: that is no JSON", 56)).where == "plan.json:2:1");
}

TEST_CASE("what is no UTF-8 is not echoed") {
  for (char const* text : {"\"\xff\"", "[\"a\xc3\x28\"]", "\xfe\xff", "{\"a\": \xc3\xa4}", "{\"\x1b[31m\": 1}", "[\"\xed\xa0\x80\"]"}) {
    std::string const problem = refused(text).problem;
    CAPTURE(problem);
    CHECK(problem.starts_with("malformed JSON: "));
    CHECK(core::printable(problem) == problem);
  }
  CHECK(refused("{\"\\u001b\": 1, \"\\u001b\": 2}").problem == "JSON key \"\\\\x1b\" stands twice in one object");
}

TEST_CASE("time grows with the text, not with its square: lists, objects, keys, depths") {
  auto seconds = [](std::string const& text) { return tests::cpu_seconds([&] { core::parse_json(text, "text"); }); };
  auto list = [](int n, auto const& entry, char const* open, char const* shut) {
    std::string s = open;
    for (int i = 0; i < n; ++i) s += (i ? "," : "") + entry(i);
    return s + shut;
  };
  auto objects = [&](int n) { return list(n, [](int) { return std::string(R"({"a":1})"); }, "[", "]"); };
  auto keys = [&](int n) { return list(n, [](int i) { return "\"layers." + std::to_string(i) + "\":{\"a\":1}"; }, "{", "}"); };
  auto lists = [&](int n) { return list(n, [](int) { return std::string("[[],{}]"); }, "{\"a\":{\"b\":[", "]}}"); };
  for (auto const& make : std::initializer_list<std::function<std::string(int)>>{objects, keys, lists}) {
    std::string const text = make(16000);
    CHECK(core::parse_json(text, "text").dump() == text);
    CHECK(seconds(text) < 12 * seconds(make(4000)) + 0.01);                  // four times as long: 4 to 5 times; quadratic: 16
  }
  std::string doubled = keys(20000);
  doubled.insert(doubled.size() - 1, ",\"layers.7\":1");
  CHECK(refused(doubled).problem == "JSON key \"layers.7\" stands twice in one object");
}

TEST_CASE("files: read, missing, a folder, empty") {
  std::string const path = "json_test_file.json";
  std::ofstream(path) << "{\"a\":\n [1,]}";
  CHECK_THROWS_WITH_AS(core::read_json(path), doctest::Contains("(at json_test_file.json:2:5)"), error);
  std::ofstream(path) << "{\"a\": [1]}";
  CHECK(core::read_json(path)["a"][0] == 1);
  std::ofstream(path, std::ios::trunc).close();
  CHECK_THROWS_WITH_AS(core::read_json(path), doctest::Contains("(at json_test_file.json:1:1)"), error);
  std::remove(path.c_str());
  CHECK_THROWS_WITH_AS(core::read_json(path), doctest::Contains("cannot read the file: No such file or directory (at json_test_file.json)"),
                       error);
  CHECK_THROWS_WITH_AS(core::read_json("."), doctest::Contains("cannot read the file: it is a folder (at .)"), error);
}
