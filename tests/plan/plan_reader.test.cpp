// tests/plan/plan_reader.test.cpp - strict reading of JSON: file, path and what is valid in every complaint
#include <tensorpar/plan/plan_reader.hpp>
#include <doctest/doctest.h>

#include <functional>
#include <vector>

using namespace tensorpar;
using tensorpar::detail::plan_reader;

TEST_CASE("what is right is read") {
  core::json const j = core::parse_json(R"({"a": {"list": [1, 2.5, "x"]}, "hash": "00ff00ff00ff00ff"})", "f");
  plan_reader const r{j, "f", ""};
  r.object({"a", "hash", "other"});
  plan_reader const list = r["a"]["list"];
  CHECK(list.array(0, 3) == 3);
  CHECK(list[std::size_t{0}].integer(0, 1) == 1);
  CHECK(list[std::size_t{0}].bounded(1, 1) == 1);
  CHECK(list[std::size_t{1}].real(0) == 2.5);
  CHECK(list[2].text() == "x");
  CHECK(plan_reader{core::json(true), "f", ""}.boolean());
  core::json const wholes = core::parse_json("[1e9, -2.0, 9.2e18]", "f");
  CHECK(plan_reader{wholes, "f", ""}[std::size_t{0}].integer(0, INT64_MAX) == 1'000'000'000);
  CHECK(plan_reader{wholes, "f", ""}[std::size_t{1}].integer() == -2);
  CHECK(plan_reader{wholes, "f", ""}[std::size_t{2}].integer() == 9'200'000'000'000'000'000);
  CHECK(r["hash"].hex() == 0x00ff00ff00ff00ff);
  CHECK(list[2].path.text() == "a.list[2]");
}

TEST_CASE("what is wrong is named") {
  struct wrong { char const *text, *what, *where, *valid; std::function<void(plan_reader const&)> read; };
  for (wrong const& w : {
           wrong{"{}", "the key \"a\" is missing", "f", "an object that has it", [](plan_reader const& r) { r["a"]; }},
           wrong{"{\"b\": {\"c\": 1}}", "unknown key", "f: b.\"c\"", "x, y", [](plan_reader const& r) { r["b"].object({"x", "y"}); }},
           wrong{"[1]", "not an object", "f", "an object", [](plan_reader const& r) { r.object({}); }},
           wrong{"3", "not a list", "f", "a list", [](plan_reader const& r) { r.array(0, 9); }},
           wrong{"[1, 2]", "a list of 2", "f", "from 3 to 9 entries", [](plan_reader const& r) { r.array(3, 9); }},
           wrong{"[1]", "not a text", "f: [0]", "a text", [](plan_reader const& r) { r[std::size_t{0}].text(); }},
           wrong{"\"00FF00ff00ff00ff\"", "not a hash", "f", "16 lower-case hexadecimal digits", [](plan_reader const& r) { r.hex(); }},
           wrong{"\"00ff\"", "not a hash", "f", "16 lower-case", [](plan_reader const& r) { r.hex(); }},
           wrong{"1.5", "not a whole number", "f", "from 0 to 3", [](plan_reader const& r) { r.integer(0, 3); }},
           wrong{"4", "4 is out of range", "f", "from 0 to 3", [](plan_reader const& r) { r.integer(0, 3); }},
           wrong{"18446744073709551615", "is out of range", "f", "", [](plan_reader const& r) { r.integer(INT64_MIN, INT64_MAX); }},
           wrong{"1e19", "1e+19 is out of range", "f", "a whole number", [](plan_reader const& r) { r.integer(); }},
           wrong{"-1e300", "is out of range", "f", "from 0 to 3", [](plan_reader const& r) { r.integer(0, 3); }},
           wrong{"\"1\"", "not a whole number", "f", "a whole number", [](plan_reader const& r) { r.integer(); }},
           wrong{"1", "not a truth value", "f", "true or false", [](plan_reader const& r) { r.boolean(); }},
           wrong{"null", "not a number", "f", "a number", [](plan_reader const& r) { r.real(); }},
           wrong{"\"1\"", "not a number", "f", "from 0.0", [](plan_reader const& r) { r.real(0); }},
           wrong{"-1e-3", "is out of range", "f", "from 0.0", [](plan_reader const& r) { r.real(0); }}}) {
    CAPTURE(std::string(w.text));
    core::json const j = core::parse_json(w.text, "f");
    try {
      w.read(plan_reader{j, "f", ""});
      FAIL_CHECK("accepted");
    } catch (error const& e) {
      CHECK(e.problem().find(w.what) != std::string::npos);
      CHECK(e.where() == w.where);
      CHECK(e.valid().find(w.valid) != std::string::npos);
    }
  }
}
