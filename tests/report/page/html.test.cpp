// tests/report/page/html.test.cpp - the page stands alone: tags balance, text is escaped, nothing outside is referred to, all data are there
#include <doctest/doctest.h>

#include <map>
#include <report/found_in.hpp>
#include <report/page/page_subject.hpp>
#include <set>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/report/page/html.hpp>

using namespace tensorpar;
using tests::count;

namespace {

// Opens and closes every element in order; scripts and styles are raw text. Returns what is wrong, or "".
std::string unbalanced(std::string const& page) {
  std::set<std::string> const empty{"meta", "input", "br", "rect", "path", "!DOCTYPE"};
  std::vector<std::string> open;
  for (std::size_t at = 0; at < page.size();) {
    if (page[at] != '<') {
      if (page[at] == '>') return "a bare > at " + std::to_string(at);
      ++at;
      continue;
    }
    std::size_t end = at + 1;
    for (bool quoted = false; end < page.size() && (quoted || page[end] != '>'); ++end) if (page[end] == '"') quoted = !quoted;
    if (end >= page.size()) return "a tag without an end";
    bool const closing = page[at + 1] == '/';
    std::size_t const from = at + 1 + closing;
    std::size_t to = from;
    while (to < end && page[to] != ' ' && page[to] != '/') ++to;
    std::string const name = page.substr(from, to - from);
    if (name.empty()) return "a bare < at " + std::to_string(at);
    if (closing) {
      if (open.empty() || open.back() != name) return "</" + name + "> closes " + (open.empty() ? "nothing" : open.back());
      open.pop_back();
    } else if (!empty.count(name)) {
      open.push_back(name);
      if (name == "script" || name == "style") {
        std::size_t const stop = page.find("</" + name + ">", end);
        if (stop == page.npos) return name + " never ends";
        end = stop - 1;
      }
    }
    at = end + 1;
  }
  return open.empty() ? "" : open.back() + " is never closed";
}
core::json data_of(std::string const& page) {
  std::string const start = "<script type=\"application/json\" id=\"data\">";
  std::size_t const at = page.find(start) + start.size();
  return core::parse_json(page.substr(at, page.find("</script>", at) - at), "data");
}

}  // namespace

TEST_CASE("pages are well formed and stand alone") {
  for (unsigned k = 0; k < 6; ++k) {
    computation_graph const g = k < 2    ? tests::hostile_names(k ? 200 : 7)
                                : k == 2 ? tests::residual_mlp()
                                : k == 3 ? tests::small_cnn()
                                         : tests::small_transformer();
    static constexpr int devices[] = {4, 2, 6, 12, 1, 64};
    auto s = tests::report_of(g, devices[k], k, 1 + static_cast<int>(k % 2));
    s.p.model = "<i>\"model\" & co</i>";
    s.p.cluster.name = "</script><script>alert(1)</script>";
    std::string const page = k % 2 ? report::html_report(s.t, s.p, s.q, s.predicted, {{"measured", s.measured}})
                                   : report::html_report(s.t, s.p, s.q, s.predicted);
    CHECK(unbalanced(page) == "");
    for (char const* outside : {"http:", "https:", "//cdn", "src=", "href=", "@import", "url("})
      CHECK_MESSAGE(page.find(outside) == page.npos, outside);
    CHECK(page.find("<i>\"model\"") == page.npos);
    CHECK(page.find("alert(1)</script>") == page.npos);
    CHECK(page.find("&lt;i&gt;&quot;model&quot; &amp; co&lt;/i&gt;") != page.npos);
    std::vector<int> const times = tests::page_subject(s).folds.times;
    CHECK(count(page.substr(0, page.find("<template")), "class=\"op\"") ==
          static_cast<std::size_t>(s.t.forward_nodes - std::count(times.begin(), times.end(), 0)));
  }
}

TEST_CASE("a page about 4,000 operators that read one tensor stays below 10 MB, whatever adds them up") {
  for (bool chain : {false, true})
    for (int devices : {1, 12}) {
      computation_graph g;
      auto const out = [&](int node) { return g.node(node).out[0]; };
      int const x = g.add_input("x", {24, 24}), labels = g.add_input("labels", shape({24}, dtype::i32));
      std::vector<int> all;
      for (int i = 0; i < 2000; ++i) all.push_back(out(g.add(relu{}, {x})));
      if (chain)
        for (std::size_t i = 1; i < all.size(); ++i) all[0] = out(g.add(add{}, {all[0], all[i]}));
      else
        for (std::size_t left = all.size(); left > 1; left = (left + 1) / 2)
          for (std::size_t i = 0; i + 1 < left; i += 2) {
            all[i / 2] = out(g.add(add{}, {all[i], all[i + 1]}));
            if (i + 3 == left) all[i / 2 + 1] = all[left - 1];
          }
      int const y = out(g.add_with_weights(linear{24}, {all[0]}, "fc"));
      g.add_output("loss", out(g.add_with_weights(cross_entropy{}, {y, labels}, "loss")));
      auto const s = tests::report_of(g, devices, 3);
      CHECK(s.t.forward_nodes > 4000);
      std::string const page = report::html_report(s.t, s.p, s.q, s.predicted);
      CAPTURE(chain);
      CAPTURE(devices);
      CHECK(page.size() < 10'000'000u);
    }
}

TEST_CASE("all spans, operators, devices and samples are in the data") {
  auto const s = tests::report_of(tests::hostile_names(40), 6, 3);
  core::json const d = data_of(report::html_report(s.t, s.p, s.q, s.predicted, {{"measured", s.measured}}));
  REQUIRE(d["timelines"].size() == 2);
  for (int k = 0; k < 2; ++k) {
    timeline const& t = k ? s.measured : s.predicted;
    // unfold the rows: devices that share one have the same spans
    std::map<std::pair<int, int>, std::vector<std::array<i64, 3>>> told, real;
    for (core::json const& row : d["timelines"][static_cast<std::size_t>(k)]["rows"])
      for (int device : row[0])
        for (int w = 0; w < 2; ++w) {
          core::json const& flat = row[static_cast<std::size_t>(2 + w)];
          for (std::size_t i = 0; i < flat.size(); i += 3)
            told[{device, w}].push_back({flat[i].get<i64>(), flat[i + 1].get<i64>(), flat[i + 2].get<i64>()});
        }
    for (span const& x : t.spans) {
      i64 const from = std::llround(x.start * 1e9), to = std::llround(x.end * 1e9);
      real[{x.device, x.where == lane::communication}].push_back({x.task, from, to - from});
      CHECK(d["tasks"][static_cast<std::size_t>(x.task)][0] == s.q.tasks[static_cast<std::size_t>(x.task)].name);
    }
    CHECK(told == real);
  }
  CHECK(d["operators"].size() == static_cast<std::size_t>(s.t.forward_nodes));
  CHECK(d["peaks"] == core::json(s.q.arena));
  CHECK(d["groupOf"].size() == 6);
  std::map<int, std::vector<std::pair<i64, i64>>> told, real;
  for (core::json const& row : d["memory"])
    for (int device : row[0])
      for (std::size_t i = 0; i < row[2].size(); i += 2) told[device].push_back({row[2][i].get<i64>(), row[2][i + 1].get<i64>()});
  for (memory_sample const& m : s.predicted.memory) real[m.device].push_back({std::llround(m.time * 1e9), m.bytes});
  CHECK(told == real);
}

TEST_CASE("devices on which the same happens share a row") {
  timeline t;
  for (int d = 0; d < 40; ++d) {
    t.spans.push_back({d, lane::compute, 0, "a", 0, 1e-6 * (1 + d % 2)});
    t.spans.push_back({d, lane::communication, 1, "b", 2e-6, 3e-6});
  }
  core::json const rows = report::detail::timeline_json("t", t)["rows"];
  REQUIRE(rows.size() == 2);
  CHECK(rows[0][0].size() == 20);
  CHECK(rows[0][1] == rows[0][1].get<std::string>());
  CHECK(rows[0][2] == core::json({0, 0, 1000}));
  CHECK(rows[1][2] == core::json({0, 0, 2000}));
  CHECK(rows[1][3] == core::json({1, 2000, 1000}));
}

TEST_CASE("one operator, no operator, and the same page every time") {
  auto const one = tests::report_of(tests::one_operator(), 2, 5);
  CHECK(unbalanced(report::html_report(one.t, one.p, one.q, one.predicted)) == "");
  CHECK(unbalanced(report::html_report(one.t, one.p, one.q, timeline{})) == "");
  training_graph const none;
  plan empty;
  std::string const page = report::html_report(none, empty, program{}, timeline{});
  CHECK(unbalanced(page) == "");
  CHECK(data_of(page)["operators"].empty());
  auto const a = tests::report_of(tests::hostile_names(20), 4, 9), b = tests::report_of(tests::hostile_names(20), 4, 9);
  auto page_of = [](tests::report_subject const& s) {
    report::plan_summary const sum = report::summary_of("<chosen>", s.t, s.p, s.q, s.predicted);
    report::plan_summary other = sum;
    other.name = "<other> & co";
    for (report::operator_summary& o : other.operators) o.sharding = "<i>", o.compute *= 2;
    return report::html_report(s.t, s.p, s.q, s.predicted, {{"<measured>", s.measured}}, {sum, other});
  };
  CHECK(page_of(a) == page_of(b));
  CHECK(unbalanced(page_of(a)) == "");
  for (char const* raw : {"<chosen>", "<other>", "<measured>"}) CHECK_MESSAGE(page_of(a).find(raw) == std::string::npos, raw);
  CHECK(count(page_of(a), "&lt;i&gt;: ") == 3);  // three reasons
}

