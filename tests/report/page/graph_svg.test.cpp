// tests/report/page/graph_svg.test.cpp - a graph as SVG: well formed, every operator and input once, names escaped
#include <tensorpar/report/page/graph_svg.hpp>
#include <doctest/doctest.h>

#include <report/found_in.hpp>
#include <report/page/page_subject.hpp>
#include <stack>
#include <support/small_graphs.hpp>
#include <tensorpar/op/operators.hpp>

using namespace tensorpar;
using tests::count;

namespace {
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

TEST_CASE("titles do not say the kind twice") {
  CHECK(report::detail::box_title("relu3", "relu") == "relu3");
  CHECK(report::detail::box_title("", "relu") == "relu");
  CHECK(report::detail::box_title("act", "relu") == "act  \xc2\xb7  relu");
  CHECK(report::detail::box_title("relu_a", "relu") == "relu_a  \xc2\xb7  relu");
}

TEST_CASE("whole graphs") {
  for (computation_graph const& g : {tests::residual_mlp(), tests::small_cnn(), tests::hostile_names(12)}) {
    tests::report_subject const s = tests::report_of(g, 4, 1);
    tests::page_subject const of(s);
    auto const drawn = [&](int open) { return report::graph_svg(s.t.graph, s.t.forward_nodes, of.summary, of.groups, of.folds, open); };
    std::string const svg = drawn(report::folding::all_folds);
    CHECK(balanced(svg));
    CHECK(count(svg, "<g class=\"op\"") == static_cast<std::size_t>(s.t.forward_nodes));
    std::set<int> inputs;
    for (int v = 0; v < s.t.forward_nodes; ++v)
      for (int x : s.t.graph.node(v).in)
        if (s.t.graph.value(x).role == value_role::input) inputs.insert(x);
    CHECK(count(svg, "<g class=\"input\"") == inputs.size());
    for (int v = 0; v < s.t.forward_nodes; ++v) CHECK(count(svg, "data-node=\"" + std::to_string(v) + "\"") == 1);
    CHECK(svg == drawn(report::folding::all_folds));
  }
}

TEST_CASE("a fold is drawn once with its number, opened as a whole, and joined to its neighbours") {
  computation_graph g;
  int v = g.add_input("x", {8, 16});
  for (int r = 0; r < 32; ++r) {
    int const from = v;
    v = tests::out(g, g.add(relu{}, {v}, "a" + std::to_string(r)));
    v = tests::out(g, g.add(add{}, {v, from}, "b" + std::to_string(r)));
  }
  int const w = g.add_parameter("w", {16, 16}, tensorpar::op::init::normal_02), y = g.add_input("y", {8, 16});
  v = tests::out(g, g.add(contraction("bi,io->bo"), {v, w}, "head"));
  g.add_output("loss", tests::out(g, g.add(mean_squared_error{}, {v, y}, "loss")));
  tests::report_subject const s = tests::report_of(g, 1, 1);
  tests::page_subject const x(s);
  REQUIRE(x.folds.folds == std::vector<report::fold>{{0, 2, 32}});
  auto const drawn = [&](int open) { return report::graph_svg(s.t.graph, s.t.forward_nodes, x.summary, x.groups, x.folds, open); };
  std::string const closed = drawn(-1), open = drawn(0);
  CHECK(balanced(closed));
  CHECK(balanced(open));
  CHECK(count(closed, "<g class=\"op\"") == 4);
  CHECK(count(closed, "\xc3\x97 32<") == 2);
  CHECK(count(closed, "aria-expanded=\"false\"") == 2);
  CHECK(count(closed, "<path ") == 6);               // x to a and b, a to b, b to head, head to loss, y
  CHECK(count(open, "<g class=\"op\"") == 66);
  CHECK(count(open, "aria-expanded=\"true\"") == 1);  // at the first of its operators
  CHECK(count(open, "\xe2\x88\x92 fold<") == 1);
  CHECK(open == drawn(report::folding::all_folds));
}
