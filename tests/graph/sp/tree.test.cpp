// tests/graph/sp/tree.test.cpp - the normal form, its types, its text
#include <doctest/doctest.h>
#include "support/random_graph.hpp"
#include <tensorpar/graph/sp/tree.hpp>

using namespace tensorpar;

namespace {
std::string normal(char const* s) { return graph::to_string(graph::sp_tree::parse(s)); }

/// Walks the typed view. That this compiles says that a series holds no series and a parallel composition no parallel one.
std::string spell(graph::sp_series s);
std::string spell(graph::sp_parallel p) {
  std::string r = "P(";
  for (int k = 0; k < p.size(); ++k) {
    if (k > 0) r += ',';
    r += p[k].visit([](int v) { return std::to_string(v); }, [](graph::sp_series s) { return spell(s); });
  }
  return r + ")";
}
std::string spell(graph::sp_series s) {
  std::string r = "S(";
  for (int k = 0; k < s.size(); ++k) {
    if (k > 0) r += ',';
    r += s[k].visit([](int v) { return std::to_string(v); }, [](graph::sp_parallel p) { return spell(p); });
  }
  return r + ")";
}
}  // namespace

TEST_CASE("normalisation") {
  CHECK(normal("S(7)") == "7");
  CHECK(normal("P(7)") == "7");
  CHECK(normal("S(P(1),2)") == "S(1,2)");
  CHECK(normal("P(S(P(1,2)),3,S())") == "P(1,2,3)");
  CHECK(normal("S(P(S(1,2)),3)") == "S(1,2,3)");
  CHECK(normal("S(0,S(1,S(2,P(4,P(3)))))") == "S(0,1,2,P(3,4))");
  CHECK_THROWS_AS(graph::sp_tree::parse("S(P(),P())"), error);
  CHECK_THROWS_AS(graph::sp_tree::parse("S()"), error);
}

TEST_CASE("parallel parts have no order, series parts do") {
  CHECK(graph::sp_tree::parse("P(3,S(1,2),0)") == graph::sp_tree::parse("P(0,3,S(1,2))"));
  CHECK(normal("P(3,S(2,1),0)") == "P(0,S(2,1),3)");
  CHECK(graph::sp_tree::parse("S(1,2)") != graph::sp_tree::parse("S(2,1)"));
  CHECK(normal("P(S(1,3),S(1,2),1,S(1,2))") == normal("P(S(1,2),1,S(1,2),S(1,3))"));  // repeated leaves are told apart by shape
}

TEST_CASE("text that is no expression") {
  for (char const* bad : {"", " ", "S", "S(", "S(1", "S(1,", "S(1,)", "S(,1)", "1)", "1 2", "1,2", "Q(1)", "S(1)(2)", "S(1 2)", "-1",
                          "S(1)x", "9999999999", "(1)", "P()S()"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(graph::sp_tree::parse(bad), error);
  }
  CHECK(normal(" S( 0 , P(1,2) , 3 ) ") == "S(0,P(1,2),3)");
  try {
    (void)graph::sp_tree::parse("S(0,x)");
  } catch (error const& e) {
    CHECK(e.where() == "column 5");
  }
}

TEST_CASE("parse reads what to_string writes; normal forms are fixed points") {
  tests::random_source r{51};
  for (int i = 0; i < 300; ++i) {
    graph::sp_tree const t = tests::random_sp_tree(r, 1 + r.below(20));
    CHECK(graph::sp_tree::parse(graph::to_string(t)) == t);
    graph::sp_expr e;
    int const root = graph::append(e, t);
    CHECK(graph::normalise(e, root) == t);
    auto const leaf = [](int v) { return std::to_string(v); };
    CHECK(t.visit(leaf, [](graph::sp_series s) { return spell(s); }, [](graph::sp_parallel p) { return spell(p); }) == graph::to_string(t));
    for (int k = 0; k < t.size(); ++k) {  // parts before their whole, at least two, kinds in turn
      if (t.kind(k) == graph::sp_kind::leaf) continue;
      CHECK(t.parts(k).size() >= 2);
      for (int p : t.parts(k)) {
        CHECK(p < k);
        CHECK(t.kind(p) != t.kind(k));
      }
    }
  }
}

TEST_CASE("equality is up to the order of parallel parts, however nested") {
  tests::random_source r{53};
  int same = 0;
  for (int i = 0; i < 200; ++i) {
    graph::sp_tree const t = tests::random_sp_tree(r, 2 + r.below(10));
    auto const shuffled = [&](bool series_too) {
      graph::sp_expr e;
      std::vector<int> handle;
      for (int k = 0; k < t.size(); ++k) {
        if (t.kind(k) == graph::sp_kind::leaf) {
          handle.push_back(e.leaf(t.node(k)));
          continue;
        }
        std::vector<int> parts;
        auto const p = t.parts(k);
        auto const order = r.permutation(p.size());
        bool const any_order = t.kind(k) == graph::sp_kind::parallel || series_too;
        for (int j = 0; j < p.size(); ++j) parts.push_back(handle[tests::at(p[any_order ? order[tests::at(j)] : j])]);
        handle.push_back(e.compose(t.kind(k), parts));
      }
      return graph::normalise(e, handle.back());
    };
    CHECK(shuffled(false) == t);
    same += shuffled(true) == t;
  }
  CHECK(same < 150);
}

TEST_CASE("very deep expressions are no danger to the stack") {
  std::string s;
  for (int i = 99'999; i > 0; --i) s += i % 2 ? "S(" : "P(";
  s += "0";
  for (int i = 1; i < 100'000; ++i) s += "," + std::to_string(i) + ")";
  graph::sp_tree const t = graph::sp_tree::parse(s);
  CHECK(t.size() == 199'999);
  CHECK(graph::sp_tree::parse(graph::to_string(t)) == t);
}
