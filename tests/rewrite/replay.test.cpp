// tests/rewrite/replay.test.cpp - what was applied is applied again; a record with anything changed is refused or leads elsewhere
#include <tensorpar/rewrite/replay.hpp>
#include <doctest/doctest.h>

#include <random>
#include <support/small_graphs.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/rewrite/rules/standard_rules.hpp>

using namespace tensorpar;

namespace {

computation_graph subject() {
  computation_graph g;
  auto put = [&](op::any_op const& o, std::vector<value_id> in) { return g.node(g.add(o, std::move(in))).out[0]; };
  int const x = g.add_input("x", {4, 8}), v = g.add_parameter("v", {8, 8}, op::init::fan_in),
      w = g.add_parameter("w", {8, 8}, op::init::fan_in), u = g.add_parameter("u", {4, 16}, op::init::fan_in);
  int const a = put(linear{8, false}, {x, v}), b = put(linear{8, false}, {x, w});
  int const c = put(concat{-1}, {put(relu{}, {a}), put(relu{}, {b})});
  int const d = put(add{}, {put(mul{}, {c, u}), put(mul{}, {c, put(scale{2}, {u})})});
  int const e = put(linear{8, false}, {put(linear{16, false}, {d, g.add_parameter("p", {16, 16}, op::init::fan_in)}),
                                       g.add_parameter("q", {8, 16}, op::init::fan_in)});
  g.add_output("loss", put(mean_squared_error{}, {e, g.add_input("y", {4, 8})}));
  return g;
}
rewrite::rule const* find_rule(std::string_view name) {
  for (rewrite::rule const& r : rewrite::rules_both_ways()) if (r.name == name) return &r;
  return nullptr;
}
/// A random walk: the records, and where they lead.
struct walk {
  std::vector<rewrite::rewrite_record> records;
  computation_graph end;
};
walk drawn(computation_graph const& g, int steps, std::mt19937& draw) {
  walk r;
  rewrite::open_graph open(rewrite::unsharded(g));
  auto const& rules = rewrite::rules_both_ways();
  for (int tries = 0; static_cast<int>(r.records.size()) < steps && tries < 3000; ++tries) {
    rewrite::rule const& what = rules[draw() % rules.size()];
    auto const found = rewrite::find_matches(what, open);
    if (found.empty()) continue;
    rewrite::rule_match const& m = found[draw() % found.size()];
    if (std::find(m.bound.begin(), m.bound.end(), false) != m.bound.end()) continue;
    CHECK(rewrite::match_fault(what, m, open) == "");
    rewrite::rewrite_record const s = rewrite::record_of(what, m);
    CHECK(rewrite::match_of(what, s) == m);
    if (rewrite::apply_rule(what, m, open).done()) r.records.push_back(s);
  }
  r.end = open.close().graph;
  return r;
}

}  // namespace

TEST_CASE("records lead where the rules did") {
  std::mt19937 draw(1);
  computation_graph const g = subject();
  int steps = 0;
  for (int turn = 0; turn < 30; ++turn) {
    walk const w = drawn(g, 6, draw);
    rewrite::replayed const r = rewrite::replay(g, w.records, find_rule);
    CHECK(r.fault == "");
    CHECK(r.graph.hash() == w.end.hash());
    steps += static_cast<int>(w.records.size());
  }
  CHECK(steps > 120);
}

TEST_CASE("a match that is claimed where none is, is found out: all claims near a real one, against the search for matches") {
  std::mt19937 draw(2);
  computation_graph const g = subject();
  int claims = 0, wrong = 0, alike = 0;
  for (int turn = 0; turn < 12; ++turn) {
    rewrite::open_graph open(rewrite::unsharded(g));
    for (rewrite::rewrite_record const& s : drawn(g, turn % 4, draw).records) {
      rewrite::rule const& r = *find_rule(s.rule);
      REQUIRE(rewrite::apply_rule(r, rewrite::match_of(r, s), open).done());
    }
    for (rewrite::rule const& r : rewrite::rules_both_ways()) {
      auto const all = rewrite::find_matches(r, open);
      if (all.empty()) continue;
      for (int k = 0; k < 40; ++k) {
        rewrite::rule_match m = all[draw() % all.size()];
        if (std::find(m.bound.begin(), m.bound.end(), false) != m.bound.end()) continue;
        int const what = static_cast<int>(draw() % 3);
        auto any = [&](int n) { return static_cast<int>(draw() % static_cast<unsigned>(n + 2)) - 1; };
        if (what == 0) m.node[draw() % m.node.size()] = any(open.node_count());
        if (what == 1 && !m.tensor.empty()) m.tensor[draw() % m.tensor.size()] = any(open.value_count());
        if (what == 2 && !m.parameter.empty()) {
          std::size_t const p = draw() % m.parameter.size();
          if (r.parameters[p].kind == rewrite::parameter_kind::function)
            m.function[p] = rewrite::standard_vocabulary().find(draw() % 2 ? "tanh" : "linear");
          else m.parameter[p] += static_cast<i64>(draw() % 5) - 2;
        }
        ++claims;
        bool const real = std::find(all.begin(), all.end(), m) != all.end();
        wrong += !real;
        CAPTURE(rewrite::spell(r));
        if (real) CHECK(rewrite::match_fault(r, m, open) == "");
        else if (rewrite::match_fault(r, m, open).empty()) {
          // a sum's operands may be read in either order, and what makes up no attribute may have any value: then it leads to what a real
          // match leads to
          rewrite::open_graph claimed = open;
          if (!rewrite::apply_rule(r, m, claimed).done()) continue;
          bool same = false;
          for (rewrite::rule_match const& x : all) {
            rewrite::open_graph found = open;
            same = same || (rewrite::apply_rule(r, x, found).done() && found.close().graph.hash() == claimed.close().graph.hash());
          }
          CHECK(same);
          ++alike;
        }
      }
    }
  }
  CHECK(claims > 1000);
  CHECK(wrong > 500);
  CHECK(alike < wrong / 20);
}

TEST_CASE("an axis counted from the right does not pass for another one than the same axis counted from the left") {
  computation_graph c;
  int const x = c.add_input("x", {4, 8}), y = c.add_input("y", {4, 8});
  int const a = c.node(c.add(concat{1}, {x, y})).out[0];
  c.add_output("z", c.node(c.add(concat{1}, {a, a})).out[0]);
  rewrite::open_graph g(rewrite::unsharded(c));
  rewrite::rule const r =
      rewrite::parse_rule("t = concat{d}(x, y); concat{e}(t, t) => concat{d}(concat{e}(x, x), concat{e}(y, y)) where d != e",
                            rewrite::standard_vocabulary(), "test");
  auto all = rewrite::find_matches(r, g);
  REQUIRE(all.size() == 1);
  CHECK(!rewrite::apply_rule(r, all[0], g).done());               // one axis: the two sides are not equal
  CHECK(rewrite::match_fault(r, all[0], g) == "");
  all[0].parameter[0] = -1;
  CHECK(rewrite::match_fault(r, all[0], g) == "axis d counts from the left");
}

TEST_CASE("unknown rules, and records of another shape than the rule's, are refused by name") {
  computation_graph const g = subject();
  std::mt19937 draw(3);
  walk const w = drawn(g, 3, draw);
  REQUIRE(!w.records.empty());
  auto const fault = [&](auto const& change) {
    auto records = w.records;
    change(records[0]);
    rewrite::replayed const r = rewrite::replay(g, records, find_rule);
    CHECK(r.step == 0);
    return r.fault;
  };
  CHECK(fault([](rewrite::rewrite_record& s) { s.rule = "no such rule"; }) == "there is no rule \"no such rule\"");
  CHECK(fault([](rewrite::rewrite_record& s) { s.nodes.push_back(0); }).find("another number of nodes") == 0);
  CHECK(fault([](rewrite::rewrite_record& s) { s.tensors.clear(); }).find("another number of") == 0);
  CHECK(fault([](rewrite::rewrite_record& s) { s.parameters.push_back(1); }).find("another number of parameters") == 0);
  CHECK(fault([](rewrite::rewrite_record& s) { s.nodes[0] = 1000000; }) == "node 1000000 is not there");
  CHECK(fault([](rewrite::rewrite_record& s) { s.nodes[0] = -5; }) == "node -5 is not there");
}
