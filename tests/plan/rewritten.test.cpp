// tests/plan/rewritten.test.cpp - a plan's rewrites lead to the graph that it was made for, and nothing else that is written there does
#include <tensorpar/plan/rewritten.hpp>
#include <doctest/doctest.h>

#include <random>
#include <set>
#include <support/small_graphs.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/plan/codec.hpp>

using namespace tensorpar;

namespace {

computation_graph declared() {
  computation_graph g;
  auto put = [&](any_op const& o, std::vector<int> in) { return g.node(g.add(o, std::move(in))).out[0]; };
  auto weight = [&](shape const& s) { return g.add_parameter("w" + std::to_string(g.values.size()), s, init::fan_in); };
  int x = g.add_input("x", {4, 8});
  for (int k = 0; k < 3; ++k) {
    int const a = put(linear{8, false}, {x, weight({8, 8})}), b = put(linear{8, false}, {x, weight({8, 8})});
    x = put(linear{8, false}, {put(relu{}, {put(concat{-1}, {a, b})}), weight({8, 16})});
    x = put(linear{8, false}, {x, weight({8, 8})});
  }
  g.add_output("loss", put(mean_squared_error{}, {x, g.add_input("y", {4, 8})}));
  return g;
}
/// A plan with some rules applied wherever they match.
plan planned(computation_graph const& g, std::mt19937& draw) {
  open_graph open(unspread(g));
  plan p;
  auto const& rules = rules_both_ways();
  for (int tries = 0; p.rewrites.size() < 5 && tries < 5000; ++tries) {
    rule const& r = rules[draw() % rules.size()];
    auto const found = find_matches(r, open);
    if (found.empty()) continue;
    rule_match const& m = found[draw() % found.size()];
    if (std::find(m.bound.begin(), m.bound.end(), false) != m.bound.end()) continue;
    rewrite_record s = record_of(r, m);
    if (apply_rule(r, m, open).done()) p.rewrites.push_back(std::move(s));
  }
  REQUIRE(p.rewrites.size() == 5);
  plan const serial = tests::serial_plan(open.close().graph);
  std::vector<rewrite_record> records = std::move(p.rewrites);
  p = serial;
  p.rewrites = std::move(records);
  p.serial = g.hash();
  p.graph = open.close().graph.hash();
  return p;
}
std::string refused(computation_graph const& g, plan const& p) {
  try {
    rewritten(g, p);
    return {};
  } catch (error const& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("the rewrites are replayed; without any, the declared graph is run") {
  std::mt19937 draw(1);
  computation_graph const g = declared();
  for (int turn = 0; turn < 10; ++turn) {
    plan const p = planned(g, draw);
    CHECK(rewritten(g, p).hash() == p.graph);
  }
  plan const plain = tests::serial_plan(g);
  CHECK(rewritten(g, plain).hash() == g.hash());
}

TEST_CASE("a plan with rewrites is the same after encoding and decoding, and they are in its hash") {
  std::mt19937 draw(2);
  plan const p = planned(declared(), draw);
  CHECK(decode(encode(p), "test") == p);
  plan q = p;
  q.rewrites.pop_back();
  CHECK(q.hash() != p.hash());
  q = p;
  q.rewrites[0].tensors[0] += 1;
  CHECK(q.hash() != p.hash());
  q = p;
  q.serial ^= 1;
  CHECK(q.hash() != p.hash());
  q = p;
  q.rewrites.clear();
  CHECK_THROWS_WITH(encode(q), doctest::Contains("no rewrites"));
  json half = encode(p);
  half.erase("rewrites");
  CHECK_THROWS_WITH(decode(half, "test"), doctest::Contains("belong together"));
  json j = encode(p);
  j["rewrites"][0]["nodes"][0] = "three";
  CHECK_THROWS_WITH(decode(j, "test"), doctest::Contains("rewrites[0].nodes[0]"));
}

TEST_CASE("two hundred and more mutations of rewrites are all refused") {
  std::mt19937 draw(3);
  computation_graph const g = declared();
  std::set<std::string> kinds;
  int different = 0;
  for (int turn = 0; turn < 60; ++turn) {
    plan const p = planned(g, draw);
    for (int k = 0; k < 12; ++k) {
      plan q = p;
      std::size_t const i = draw() % q.rewrites.size();
      rewrite_record& s = q.rewrites[i];
      std::string kind;
      switch (k % 9) {
        case 0: q.rewrites.erase(q.rewrites.begin() + static_cast<std::ptrdiff_t>(i)); kind = "step left out"; break;
        case 1: q.rewrites.insert(q.rewrites.begin() + static_cast<std::ptrdiff_t>(i), s); kind = "step twice"; break;
        case 2: s.rule = rules_both_ways()[draw() % rules_both_ways().size()].name; kind = "another rule"; break;
        case 3: s.nodes[draw() % s.nodes.size()] += draw() % 2 ? 1 : -1; kind = "another node"; break;
        case 4: s.tensors[draw() % s.tensors.size()] += draw() % 2 ? 1 : -1; kind = "another tensor"; break;
        case 5: if (!s.parameters.empty()) s.parameters[draw() % s.parameters.size()] += draw() % 2 ? 1 : -1; kind = "another number"; break;
        case 6: if (!s.functions.empty()) s.functions[draw() % s.functions.size()] = "gelu"; kind = "another function"; break;
        case 7: if (i) std::swap(q.rewrites[i], q.rewrites[i - 1]); kind = "steps in another order"; break;
        case 8: draw() % 2 ? q.graph ^= 1 : q.serial ^= 1; kind = "another graph"; break;
      }
      if (q == p) continue;
      std::string const why = refused(g, q);
      // what is not refused must be another way to the very same graph: steps that do not depend on each other change places
      if (why.empty()) { CHECK(kind == "steps in another order"); continue; }
      ++different;
      kinds.insert(kind);
    }
  }
  CHECK(different >= 200);
  CHECK(kinds.size() == 9);
}

TEST_CASE("errors name the record, its rule, and what is wrong there") {
  std::mt19937 draw(4);
  computation_graph const g = declared();
  plan p = planned(g, draw);
  p.model = "m";
  plan q = p;
  q.rewrites[2].nodes[0] = 99999;
  CHECK(refused(g, q).find("rewrite 2 (" + q.rewrites[2].rule + "): node 99999 is not there") != std::string::npos);
  q = p;
  q.rewrites[1].rule = "nothing";
  CHECK(refused(g, q).find("rewrite 1 (nothing): there is no rule \"nothing\"") != std::string::npos);
  computation_graph other = g;
  other.add_input("more", {1});
  CHECK(refused(other, p).find("another graph") != std::string::npos);
}
