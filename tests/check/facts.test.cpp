// tests/check/facts.test.cpp - equal layouts, operators and reshards have one number and one answer; different ones have not
#include <tensorpar/check/facts.hpp>
#include <doctest/doctest.h>

#include <check/check_subject.hpp>
#include <tensorpar/check/geometry.hpp>
#include <tensorpar/op/operators.hpp>

using namespace tensorpar;
using namespace tensorpar::detail::check;

TEST_CASE("what is asked twice is the same as when it is worked out alone") {
  std::mt19937 draw(1);
  for (int turn = 0; turn < 12; ++turn) {
    tests::subject const s = tests::checked_step(turn, draw);
    computation_graph const& g = s.t.graph;
    int const n = s.p.cluster.size();
    facts all(n);
    auto number = [&](facts& f, int b) { buffer const& x = s.q.buffers[idx(b)]; return f.layout_number(x.where, x.type); };
    for (std::size_t b = 0; b < s.q.buffers.size(); ++b) {
      buffer const& x = s.q.buffers[b];
      if (x.value < 0) continue;
      placement const& p = all.placed(number(all, static_cast<int>(b)));
      CHECK(p.devices == x.devices);
      CHECK(p.elements == ir::part_of(x.where, x.type).elements());
      CHECK(p.shares == x.where.degree(ir::part_kind::partial));
    }
    for (task const& t : s.q.tasks) {
      facts alone(n);
      if (t.kind == task_kind::reshard) {
        moving const& a = all.moves(t.step, number(all, t.in[0]), number(all, t.out[0]));
        moving const& b = alone.moves(t.step, number(alone, t.in[0]), number(alone, t.out[0]));
        CHECK(!a.wrong);
        CHECK(!b.wrong);
        CHECK(a.from == b.from);
        CHECK(a.elements == b.elements);
        continue;
      }
      if (!(t.op == g.node(t.node).op) || t.op.is<add>()) continue;
      auto run = [&](facts& f) {
        std::vector<shape> in, out;
        for (int x : g.node(t.node).in) in.push_back(g.type(x));
        for (int x : g.node(t.node).out) out.push_back(g.type(x));
        return f.run_number(f.operator_number(g.node(t.node), in, out), t.mesh);
      };
      int const a = run(all), b = run(alone);
      CHECK(all.runs(a).devices == alone.runs(b).devices);
      CHECK(all.runs(a).devices == t.devices);
      for (std::size_t k = 0; k < t.in.size(); ++k) {
        reading const &x = all.reads(a, static_cast<int>(k), number(all, t.in[k])),
            &y = alone.reads(b, static_cast<int>(k), number(alone, t.in[k]));
        CHECK(!x.wrong);
        CHECK(x.shares == y.shares);
      }
      for (std::size_t k = 0; k < t.out.size(); ++k)
        CHECK(all.writes(a, static_cast<int>(k), number(all, t.out[k])).share
              == alone.writes(b, static_cast<int>(k), number(alone, t.out[k])).share);
    }
  }
}

TEST_CASE("different layouts, shapes, operators and meshes have different numbers; names and labels make none") {
  facts f(8);
  ir::layout const a{0, {{ir::part_kind::shard, 0, 4, 1}}}, b{0, {{ir::part_kind::shard, 0, 4, 2}}},
      c{1, {{ir::part_kind::shard, 0, 4, 1}}};
  int const na = f.layout_number(a, {8, 8});
  CHECK(f.layout_number(a, {8, 8}) == na);
  for (int other : {f.layout_number(b, {8, 8}), f.layout_number(c, {8, 8}), f.layout_number(a, {8, 4}), f.layout_number(a, {8})})
    CHECK(other != na);
  CHECK(f.placed(f.layout_number(a, {6, 8})).devices.empty());                      // four parts of six
  CHECK(f.placed(f.layout_number({6, {{ir::part_kind::replicate, -1, 4, 1}}}, {8})).devices.empty());      // beyond the machine
  graph_node n;
  n.op = linear{8, false};
  graph_node named = n;
  named.name = "fc";
  std::vector<shape> const in{{4, 8}, {8, 8}}, out{{4, 8}};
  int const op = f.operator_number(n, in, out);
  CHECK(f.operator_number(named, in, out) == op);
  graph_node backward = n, letters = n, wide = n;
  backward.phase = step_phase::backward;
  letters.letters = "oib";
  wide.op = linear{16, false};
  for (int other : {f.operator_number(backward, in, out), f.operator_number(letters, in, out), f.operator_number(wide, in, {{4, 16}}),
                    f.operator_number(n, {{2, 8}, {8, 8}}, {{2, 8}})})
    CHECK(other != op);
  int const run = f.run_number(op, {0, {{'o', 2, 1}}});
  CHECK(f.run_number(op, {0, {{'o', 2, 1}}}) == run);
  CHECK(f.run_number(op, {0, {{'o', 2, 2}}}) != run);
  CHECK(f.run_number(op, {1, {{'o', 2, 1}}}) != run);
  CHECK(f.runs(f.run_number(op, {0, {{'o', 3, 1}}})).why.find("cannot be split in 3") != std::string::npos);
  CHECK(f.devices_of_mesh({1, {{'\0', 2, 3}}}) == std::vector<int>{1, 4});
  CHECK(f.devices_of_mesh({1, {{'\0', 2, 9}}}).empty());
}

TEST_CASE("a program of one device lists it alone, and only where it takes part") {
  facts all(4), one(4, 2);
  CHECK(all.lists({0, 2}, {0, 2}));
  CHECK(!all.lists({2}, {0, 2}));
  CHECK(one.lists({2}, {0, 2}));
  CHECK(one.lists({}, {0, 1}));
  CHECK(!one.lists({}, {0, 2}));
  CHECK(!one.lists({0, 2}, {0, 2}));
  CHECK(!one.lists({2}, {0, 1}));
}
