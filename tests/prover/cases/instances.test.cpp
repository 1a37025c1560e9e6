// tests/prover/cases/instances.test.cpp - cases and instances of rules
#include <tensorpar/prover/cases/drawn_numbers.hpp>
#include <tensorpar/prover/cases/instances.hpp>
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <support/effort.hpp>
#include <tensorpar/rewrite/rule_parser.hpp>
#include <tensorpar/rewrite/rule_text.hpp>

#include "rules_that_hold.hpp"

using namespace tensorpar;
using namespace tensorpar::prover;

TEST_CASE("the cases of a rule are its ranks, axes, deciding numbers and partial sums") {
  // ranks 1 to 4 and every axis of each; x may come in partial sums, but not into a function
  CHECK(cases_of(tensorpar::rewrite::parse_rule("?f(partition{d,k}(x)) => partition{d,k}(?f(x))")).size() == 1 + 2 + 3 + 4);
  CHECK(cases_of(tensorpar::rewrite::parse_rule("scale{s}(partition{d,k}(x)) => partition{d,k}(scale{s}(x))")).size() == 2
        * (1 + 2 + 3 + 4));
  case_limits few;
  few.max_rank = 2;
  CHECK(cases_of(tensorpar::rewrite::parse_rule("?f(partition{d,k}(x)) => partition{d,k}(?f(x))"),
                 tensorpar::rewrite::standard_vocabulary(), few).size() == 1 + 2);
  few.most = 2;
  CHECK(cases_of(tensorpar::rewrite::parse_rule("?f(partition{d,k}(x)) => partition{d,k}(?f(x))"),
                 tensorpar::rewrite::standard_vocabulary(), few).size() == 2);
  CHECK(cases_of(tensorpar::rewrite::parse_rule("partition{d,k}(partition{e,m}(x)) => partition{e,m}(partition{d,k}(x)) where d != e")).size() ==
        2 * (0 + 2 + 6 + 12));
  CHECK(cases_of(tensorpar::rewrite::parse_rule("?f(partition{d,k}(x)) => partition{d,k}(?f(x)) where d inside x by 2")).size() == 1 + 2);
  // an embedding's indices are no sums, its table has two axes
  for (rule_case const& c
       : cases_of(tensorpar::rewrite::parse_rule("embedding(x, w) => combine{0,k}(embedding(partition{0,k}(x), replicate{k}(w)))"))) {
    CHECK(c.at.integer == std::vector<bool>{true, false});
    CHECK(c.at.rank[1] == 2);
    CHECK(c.tensors[0].type == dtype::i64);
  }
  // extents that add up are found too
  CHECK(!cases_of(tensorpar::rewrite::parse_rule("add(concat{d}(x, y), z) => add(z, concat{d}(x, y))")).empty());
}

TEST_CASE("real numbers are drawn of either sign, whole and not, near zero and far") {
  std::mt19937 draw(1);
  rewrite::rule const r = tensorpar::rewrite::parse_rule("scale{s}(x) => scale{s}(x)");
  auto const cases = cases_of(r);
  std::map<std::string, int> met;
  int const wanted = test_effort::cases(400);
  for (int n = 0, made = 0; made < wanted; ++n) {
    REQUIRE(n < 10 * wanted);
    auto const g = random_instance(r, cases[draw() % cases.size()], draw);
    if (!g) continue;
    ++made;
    double const x = std::bit_cast<double>(g->at.parameter[0]);
    CHECK(std::abs(x) <= 125);
    ++met[x < 0 ? "below zero" : x > 0 ? "above" : "zero"];
    ++met[x == std::floor(x) ? "whole" : "not whole"];
    ++met[std::abs(x) <= 1 ? "at most one" : std::abs(x) > 4 ? "above four" : "between"];
  }
  for (char const* kind : {"below zero", "above", "whole", "not whole", "at most one", "above four", "between"}) {
    CAPTURE(std::string(kind));
    CHECK(met[kind] > wanted / 12);
  }
  CHECK(met["zero"] > 0);
}

TEST_CASE("instances have degrees of 1, 2, 3, 4 and 6, mostly above one, and both sides typed") {
  std::mt19937 draw(1);
  std::set<i64> degrees;
  int made = 0, sharding = 0;
  for (char const* text : tests::rules_that_hold) {
    rewrite::rule const r = tensorpar::rewrite::parse_rule(text);
    CAPTURE(std::string(text));
    auto const cases = cases_of(r);
    REQUIRE(!cases.empty());
    int here = 0;
    for (int turn = 0; turn < test_effort::cases(200); ++turn) {
      auto const g = random_instance(r, cases[draw() % cases.size()], draw);
      if (!g) continue;
      ++made;
      ++here;
      bool split = false;
      for (std::size_t p = 0; p < r.parameters.size(); ++p)
        if (r.parameters[p].kind == tensorpar::rewrite::parameter_kind::degree) {
          degrees.insert(g->at.parameter[p]); split = split || g->at.parameter[p] > 1;
        }
      for (ir::parallel_shape const& s : g->tensors) {
        degrees.insert({s.sum, s.copy});
        for (int d = 0; d < s.type.rank; ++d) {
          degrees.insert(s.degree[d]);
          CHECK(s.type.d[d].n % s.degree[d] == 0);
        }
        split = split || s.parts() > 1;
      }
      sharding += split;
      CHECK(g->source.op.size() == r.source.nodes.size());
      CHECK(g->target.op.size() == r.target.nodes.size());
    }
    CHECK(here > test_effort::cases(200) / 10);
  }
  CHECK(degrees == std::set<i64>{1, 2, 3, 4, 6});
  CHECK(sharding > made * 3 / 4);
}
