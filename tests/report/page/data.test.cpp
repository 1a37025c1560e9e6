// tests/report/page/data.test.cpp - the numbers of the page: rows shared by devices that do the same, memory from lifetimes
#include <tensorpar/report/page/data.hpp>
#include <doctest/doctest.h>

#include <report/page/page_subject.hpp>
#include <tensorpar/program/send_early.hpp>

using namespace tensorpar;

TEST_CASE("devices on which the same happens share a row, everyone is in one") {
  timeline t;
  t.seconds = 3e-6;
  for (int d = 0; d < 4; ++d) t.spans.push_back({d, lane::compute, 0, "", 0, 1e-6});
  t.spans.push_back({3, lane::communication, 1, "", 1e-6, 3e-6});
  core::json const j = report::detail::timeline_json("name", t);
  CHECK(j["name"] == "name");
  CHECK(j["seconds"] == 3000);
  REQUIRE(j["rows"].size() == 2);
  CHECK(j["rows"][0][0] == core::json({0, 1, 2}));
  CHECK(j["rows"][0][2] == core::json({0, 0, 1000}));
  CHECK(j["rows"][1][0] == core::json(std::vector<int>{3}));
  CHECK(j["rows"][1][3] == core::json({1, 1000, 2000}));
}

TEST_CASE("a row has a lane for each level of links, alike for all devices") {
  timeline t;
  t.spans = {{0, lane::compute, 0, "", 0, 1e-6}, {1, lane::communication, 1, "", 0, 1e-6, 0}, {1, lane::communication, 2, "", 0, 2e-6, 1}};
  core::json const j = report::detail::timeline_json("name", t);
  REQUIRE(j["rows"].size() == 2);
  for (core::json const& row : j["rows"]) CHECK(row.size() == 5);
  CHECK(j["rows"][0][2] == core::json({0, 0, 1000}));
  CHECK(j["rows"][1][3] == core::json({1, 0, 1000}));
  CHECK(j["rows"][1][4] == core::json({2, 0, 2000}));
}

TEST_CASE("curves are shared too, samples of devices that are not there are left out") {
  core::json const j = report::detail::memory_json({{0, 0, 5}, {1, 0, 5}, {2, 1e-9, 7}, {9, 0, 1}}, 3);
  REQUIRE(j.size() == 2);
  CHECK(j[0][0] == core::json({0, 1}));
  CHECK(j[0][2] == core::json({0, 5}));
  CHECK(j[1][2] == core::json({1, 7}));
}

TEST_CASE("memory from lifetimes ends with what persists and never exceeds the arena") {
  for (unsigned seed = 0; seed < 15; ++seed) {
    tests::report_subject const s = tests::report_of(seed % 3 ? tests::residual_mlp() : tests::small_transformer(), 4, seed);
    std::map<int, i64> last, most;
    std::map<int, double> before;
    for (memory_sample const& m : report::memory_over_time(s.q, seed % 2 ? s.measured : s.predicted)) {
      CHECK(m.time >= before[m.device]);
      before[m.device] = m.time;
      last[m.device] = m.bytes;
      most[m.device] = std::max(most[m.device], m.bytes);
      CHECK(m.bytes >= 0);
    }
    for (auto const& [device, bytes] : last) {
      i64 persistent = 0;
      for (buffer const& b : s.q.buffers)
        if (b.persistent && std::binary_search(b.devices.begin(), b.devices.end(), device)) persistent += b.bytes;
      CHECK(bytes == persistent);
      CHECK(most[device] <= s.q.arena[static_cast<std::size_t>(device)]);
      CHECK(most[device] > persistent);
    }
  }
}

TEST_CASE("all of it, and nothing that could end the script element") {
  tests::report_subject const s = tests::report_of(tests::hostile_names(9), 2, 1);
  tests::page_subject const x(s);
  core::json const j = report::detail::report_data(s.t, x.parts(), s.q, s.predicted, {{"measured </script>", s.measured}});
  CHECK(j["tasks"].size() == s.q.tasks.size());
  CHECK(j["operators"].size() == x.summary.operators.size());
  CHECK(j["timelines"].size() == 2);
  CHECK(j["groupOf"].size() == x.summary.devices.size());
  CHECK(j["chain"].size() == 2 * x.chain.size());
  CHECK(j["peaks"].size() == x.summary.devices.size());
  std::string const text = report::detail::script_json(j);
  CHECK(text.find('<') == text.npos);
  CHECK(core::parse_json(text, "page") == j);
}

TEST_CASE("both halves of an exchange are drawn as moves") {
  computation_graph const g = tests::residual_mlp();
  training_graph const t = differentiate(g, {});
  plan p = tests::serial_plan(g);
  p.cluster = tests::devices(2);
  for (int v = g.node_count() / 2; v < g.node_count(); ++v) p.nodes[static_cast<std::size_t>(v)].sharding = {1, {}};
  program q = unroll(t, p);
  passes::send_early(q);
  tests::page_subject const x(t, p, q, {});
  core::json const data = report::detail::report_data(t, x.parts(), q, {}, {});
  int split = 0, moves = 0;
  for (task const& k : q.tasks) split += k.kind == task_kind::send || k.kind == task_kind::receive;
  for (core::json const& k : data["tasks"]) moves += k[1] == 3;
  CHECK(split >= 4);                                       // there and back
  CHECK(moves >= split);
}
