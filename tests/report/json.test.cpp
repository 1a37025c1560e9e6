// tests/report/json.test.cpp - event lines are one valid object each, whatever is in them
#include <doctest/doctest.h>

#include <limits>
#include <report/report_subject.hpp>
#include <tensorpar/report/json.hpp>

using namespace tensorpar;

TEST_CASE("one object per line, event first, fields kept") {
  std::mt19937 draw(1);
  for (int turn = 0; turn < 200; ++turn) {
    core::json fields = core::json::object();
    for (auto n = draw() % 6; n > 0; --n) {
      std::string key, value;
      for (auto k = draw() % 5; k > 0; --k) key += static_cast<char>('a' + draw() % 26);
      for (auto k = draw() % 9; k > 0; --k) value += static_cast<char>(draw() % 128);
      fields[key + std::to_string(n)] = draw() % 2 ? core::json(value) : core::json(static_cast<double>(draw()) / 7);
    }
    std::string const line = report::event_line("turn", fields);
    REQUIRE(line.back() == '\n');
    REQUIRE(line.find('\n') == line.size() - 1);
    core::json const back = core::parse_json(line, "line");
    REQUIRE(back.begin().key() == "event");
    REQUIRE(back["event"] == "turn");
    for (auto const& [key, value] : fields.items()) REQUIRE(back[key] == value);
    REQUIRE(back.size() == fields.size() + 1);
  }
}

TEST_CASE("what JSON cannot hold does not break a line") {
  core::json const back =
      core::parse_json(report::event_line("e", {{"x", std::numeric_limits<double>::quiet_NaN()}, {"s", "\xff\xfe"}, {"event", "other"}}),
                       "line");
  CHECK(back["x"].is_null());
  CHECK(back["s"].is_string());
  CHECK(back["event"] == "e");
}

TEST_CASE("a summary as JSON") {
  auto const s = tests::report_of(tests::small_cnn(), 4, 2);
  report::plan_summary const sum = report::summary_of("chosen", s.t, s.p, s.q, s.predicted);
  core::json const j = core::parse_json(report::event_line("plan", report::to_json(sum)), "line");
  CHECK(j["devices"] == 4);
  CHECK(j["predicted_peak_bytes"] == core::json(s.q.arena));
  CHECK(j["operators"].size() == sum.operators.size());
  CHECK(j["settings"] == report::settings_text(sum));
  CHECK(j["operators"][0]["saves"] == core::json(report::choice_words(sum.operators[0].choice)));
  CHECK(j["predicted_step_s"] == s.predicted.seconds);
  CHECK(j["exposed_communication_s"] == sum.communication.exposed);
  double bytes = 0;
  for (auto const& [kind, b] : j["bytes"].items()) bytes += b.get<double>();
  CHECK(bytes == doctest::Approx(sum.sent()));
  CHECK(report::to_json(report::progress{1, 2, 3, 0.5, 4, 5, 6})["accuracy"] == 0.5);
  CHECK(!report::to_json(report::progress{}).contains("accuracy"));
}
