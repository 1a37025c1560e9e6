// tests/program/rewritten.test.cpp - a plan's rewrites lead to the graph that it was made for, and nothing else that is written there does
#include <tensorpar/program/rewritten.hpp>
#include <doctest/doctest.h>

#include <program/rewritten_plan.hpp>
#include <set>
#include <tensorpar/plan/codec.hpp>

using namespace tensorpar;
using tests::declared;
using tests::planned;

namespace {

std::string refusal_of(computation_graph const& g, plan const& p) {
  try {
    passes::rewritten(g, p);
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
    CHECK(passes::rewritten(g, p).hash() == p.graph);
  }
  plan const plain = tests::serial_plan(g);
  CHECK(passes::rewritten(g, plain).hash() == g.hash());
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
  core::json half = encode(p);
  half.erase("rewrites");
  CHECK_THROWS_WITH(decode(half, "test"), doctest::Contains("belong together"));
  core::json j = encode(p);
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
      rewrite::rewrite_record& s = q.rewrites[i];
      std::string kind;
      switch (k % 9) {
        case 0: q.rewrites.erase(q.rewrites.begin() + static_cast<std::ptrdiff_t>(i)); kind = "step left out"; break;
        case 1: q.rewrites.insert(q.rewrites.begin() + static_cast<std::ptrdiff_t>(i), s); kind = "step twice"; break;
        case 2: s.rule = rewrite::rules_both_ways()[draw() % rewrite::rules_both_ways().size()].name; kind = "another rule"; break;
        case 3: s.nodes[draw() % s.nodes.size()] += draw() % 2 ? 1 : -1; kind = "another node"; break;
        case 4: s.tensors[draw() % s.tensors.size()] += draw() % 2 ? 1 : -1; kind = "another tensor"; break;
        case 5: if (!s.parameters.empty()) s.parameters[draw() % s.parameters.size()] += draw() % 2 ? 1
            : -1; kind = "another number"; break;
        case 6: if (!s.functions.empty()) s.functions[draw() % s.functions.size()] = "gelu"; kind = "another function"; break;
        case 7: if (i) std::swap(q.rewrites[i], q.rewrites[i - 1]); kind = "steps in another order"; break;
        case 8: draw() % 2 ? q.graph ^= 1 : q.serial ^= 1; kind = "another graph"; break;
      }
      if (q == p) continue;
      std::string const why = refusal_of(g, q);
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
  CHECK(refusal_of(g, q).find("rewrite 2 (" + q.rewrites[2].rule + "): node 99999 is not there") != std::string::npos);
  q = p;
  q.rewrites[1].rule = "nothing";
  CHECK(refusal_of(g, q).find("rewrite 1 (nothing): there is no rule \"nothing\"") != std::string::npos);
  computation_graph other = g;
  other.add_input("more", {1});
  CHECK(refusal_of(other, p).find("another graph") != std::string::npos);
}
