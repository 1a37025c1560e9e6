// tests/report/dot.test.cpp - Graphviz text: every operator, every edge, nothing that breaks a quote
#include <doctest/doctest.h>

#include <report/found_in.hpp>
#include <report/report_subject.hpp>
#include <sstream>
#include <tensorpar/report/dot.hpp>

using namespace tensorpar;
using tests::count;

namespace {
// Outside of quotes: braces and brackets balance; every quote closes on its line.
bool well_formed(std::string const& s) {
  int braces = 0, brackets = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (quoted && s[i] == '\\') { ++i; continue; }
    if (s[i] == '"') quoted = !quoted;
    if (s[i] == '\n' && quoted) return false;
    if (quoted) continue;
    braces += (s[i] == '{') - (s[i] == '}');
    brackets += (s[i] == '[') - (s[i] == ']');
    if (braces < 0 || brackets < 0) return false;
  }
  return !quoted && braces == 0 && brackets == 0;
}
}  // namespace

TEST_CASE("nodes and edges of a graph") {
  for (int k = 0; k < 3; ++k) {
    auto const s = tests::report_of(k == 0   ? tests::hostile_names(20)
                                    : k == 1 ? tests::small_cnn()
                                             : tests::small_transformer(),
                                    4, static_cast<unsigned>(k));
    computation_graph const& g = s.t.graph;
    for (plan const* p : {static_cast<plan const*>(nullptr), &s.p}) {
      std::string const dot = report::to_dot(g, p);
      CHECK(well_formed(dot));
      std::size_t edges = 0;
      for (graph_node const& n : g.nodes)
        for (int x : n.in) edges += g.value(x).role != value_role::parameter && g.value(x).role != value_role::state;
      CHECK(count(dot, " -> n") == edges);
      for (int v = 0; v < g.node_count(); ++v) CHECK(count(dot, "\n  n" + std::to_string(v) + " [") == 1);
      CHECK(count(dot, "fillcolor=\"#") == (p ? static_cast<std::size_t>(s.t.forward_nodes) : 0));
    }
  }
}

TEST_CASE("no node, one node, and the same text every time") {
  CHECK(well_formed(report::to_dot(computation_graph{})));
  CHECK(count(report::to_dot(computation_graph{}), "->") == 0);
  auto const s = tests::report_of(tests::one_operator(), 2, 1);
  std::string const dot = report::to_dot(tests::one_operator(), &s.p);
  CHECK(count(dot, "\n  n0 [") == 1);
  CHECK(count(dot, " -> n0") == 1);
  auto const a = tests::report_of(tests::hostile_names(9), 3, 2), b = tests::report_of(tests::hostile_names(9), 3, 2);
  CHECK(report::to_dot(a.t.graph, &a.p) == report::to_dot(b.t.graph, &b.p));
}
