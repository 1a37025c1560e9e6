// tests/report/page/graph_svg.test.cpp - a graph as SVG: well formed, every operator and input once, names escaped
#include <tensorpar/report/page/graph_svg.hpp>
#include <doctest/doctest.h>

#include <report/report_subject.hpp>
#include <stack>

using namespace tensorpar;

namespace {
std::size_t count(std::string const& s, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = s.find(what); at != s.npos; at = s.find(what, at + 1)) ++n;
  return n;
}
/// Every element that opens closes, in turn.
bool balanced(std::string const& s) {
  std::stack<std::string> open;
  for (std::size_t at = s.find('<'); at != s.npos; at = s.find('<', at + 1)) {
    std::size_t const end = s.find('>', at);
    if (end == s.npos) return false;
    bool const closes = s[at + 1] == '/';
    std::string const name = s.substr(at + 1 + closes, s.find_first_of(" >/", at + 1 + closes) - at - 1 - closes);
    if (closes) {
      if (open.empty() || open.top() != name) return false;
      open.pop();
    } else if (s[end - 1] != '/') {
      open.push(name);
    }
  }
  return open.empty();
}
}  // namespace

TEST_CASE("text that may stand in elements and attributes") {
  CHECK(report::html_text("a<b>&\"c'\n") == "a&lt;b&gt;&amp;&quot;c&#39; ");
  CHECK(report::html_text("\xc2\xb7") == "\xc2\xb7");
}

TEST_CASE("stripes show the devices that are used") {
  using report::detail::device_stripe;
  CHECK(count(report::detail::device_stripe({0, 2}, 4, 0, 0, 100), "class=\"seg d") == 2);
  CHECK(count(report::detail::device_stripe({0, 2}, 4, 0, 0, 100), "seg off") == 2);
  CHECK(count(report::detail::device_stripe({0, 7}, 12, 0, 0, 100), "seg off") == 2);           // the six between are one
  CHECK(count(report::detail::device_stripe({}, 12, 0, 0, 100), "<rect") == 1);
  std::string const many = report::detail::device_stripe({0, 1, 2, 7, 9, 10}, 32, 0, 0, 100);   // three runs on a bar
  CHECK(count(many, "seg many") == 3);
  CHECK(count(many, "seg off") == 1);
  std::set<std::string> colours;
  for (int d = 0; d < 8; ++d) colours.insert(report::detail::palette(d, 8));
  CHECK(colours.size() == 8);
  for (int devices : {1, 8, 16}) {                                                  // every segment has a colour
    std::string const said = report::detail::device_colours(devices);
    CHECK(count(said, "{fill:") == static_cast<std::size_t>(devices));
    for (int d = 0; d < devices; ++d)
      CHECK(said.find(".d" + std::to_string(d) + "{fill:" + report::detail::palette(d, devices) + "}") != said.npos);
  }
  CHECK(report::detail::box_title("linear2", "linear") == "linear2");
  CHECK(report::detail::box_title("", "linear") == "linear");
  CHECK(report::detail::box_title("head", "linear").ends_with("linear"));
}

TEST_CASE("whole graphs") {
  for (computation_graph const& g : {tests::residual_mlp(), tests::small_cnn(), tests::hostile_names(12)}) {
    tests::report_subject const s = tests::report_of(g, 4, 1);
    report::plan_summary const sum = report::summary_of("plan", s.t, s.p, s.q, s.predicted);
    std::string const svg = report::graph_svg(s.t.graph, s.t.forward_nodes, sum);
    CHECK(balanced(svg));
    CHECK(count(svg, "<g class=\"op\"") == static_cast<std::size_t>(s.t.forward_nodes));
    std::set<int> inputs;
    for (int v = 0; v < s.t.forward_nodes; ++v)
      for (int x : s.t.graph.node(v).in)
        if (s.t.graph.value(x).role == value_role::input) inputs.insert(x);
    CHECK(count(svg, "<g class=\"input\"") == inputs.size());
    for (int v = 0; v < s.t.forward_nodes; ++v) CHECK(count(svg, "data-node=\"" + std::to_string(v) + "\"") == 1);
    CHECK(svg == report::graph_svg(s.t.graph, s.t.forward_nodes, sum));
  }
}
