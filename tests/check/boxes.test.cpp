// tests/check/boxes.test.cpp - the checker's geometry against element-by-element counts, and what sharding operators leave
#include <tensorpar/check/boxes.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <support/effort.hpp>
#include <support/small_graphs.hpp>
#include <tensorpar/op/operators.hpp>
#include <vector>

using namespace tensorpar;
using namespace tensorpar::detail::check;

namespace {

/// Every index of a tensor with at most three axes that lies in the box.
std::vector<i64> elements(box const& b, shape const& s) {
  std::vector<i64> r;
  for (i64 i = 0; i < s.d[0].n; ++i)
    for (i64 j = 0; j < s.d[1].n; ++j)
      for (i64 k = 0; k < s.d[2].n; ++k)
        if (i >= b.lo[0] && i < b.lo[0] + b.n[0] && j >= b.lo[1] && j < b.lo[1] + b.n[1] && k >= b.lo[2] && k < b.lo[2] + b.n[2])
          r.push_back((i * s.d[1].n + j) * s.d[2].n + k);
  return r;
}

}  // namespace

TEST_CASE("common parts and volumes are those of the sets of elements") {
  std::mt19937 draw(3);
  shape const s{4, 5, 3};
  auto random_box = [&] {
    box b;
    for (int d = 0; d < 3; ++d) {
      b.lo[d] = static_cast<i64>(draw() % static_cast<unsigned>(s.d[d].n));
      b.n[d] = 1 + static_cast<i64>(draw() % static_cast<unsigned>(s.d[d].n - b.lo[d]));
    }
    return b;
  };
  for (int i = 0; i < test_effort::cases(500); ++i) {
    box const a = random_box(), b = random_box(), c = common(a, b);
    std::vector<i64> const x = elements(a, s), y = elements(b, s);
    std::vector<i64> both;
    std::set_intersection(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(both));
    REQUIRE(a.volume() == static_cast<i64>(x.size()));
    REQUIRE(c.volume() == static_cast<i64>(both.size()));
    if (c.volume()) REQUIRE(elements(c, s) == both);
  }
  CHECK(elements(whole(s), s).size() == 60);
  std::vector<i64> all;
  for (int i = 0; i < 2; ++i)
    for (i64 e : elements(part(whole(s), 0, i, 2), s)) all.push_back(e);
  CHECK(all == elements(whole(s), s));
  CHECK(spell(part(whole(s), 0, 1, 2), 3) == "[2..4, 0..5, 0..3]");
}

TEST_CASE("a mesh's devices are those that coordinates and strides say, each once") {
  using axes = ir::axis_list<ir::mesh_axis>;
  auto devices = [](i64 start, axes const& a, int n) { return devices_of(walk(start, a, n).all); };
  CHECK(devices(1, {{'a', 2, 3}, {'b', 3, 1}}, 8) == std::vector<int>{1, 2, 3, 4, 5, 6});
  CHECK(devices(3, {{'a', 4, -1}}, 4) == std::vector<int>{0, 1, 2, 3});
  CHECK(devices(5, {}, 8) == std::vector<int>{5});
  CHECK(walk(3, axes{{'a', 4, -1}}, 4).all[0].index == 3);
  CHECK(walk(0, axes{{'a', 0, 1}}, 4).why == "degree 0 on 4 devices");
  CHECK(walk(0, axes{{'a', 3, 1}, {'b', 2, 3}}, 4).why == "degree 2 on 4 devices");
  CHECK(walk(0, axes{{'a', 2, 5}}, 4).why == "stride 5");
  CHECK(walk(3, axes{{'a', 2, 1}}, 4).why == "it reaches device 4 of 4");
  CHECK(walk(-1, axes{}, 4).why == "it reaches device -1 of 4");
  CHECK(walk(0, axes{{'a', 2, 1}, {'b', 2, 1}}, 4).why == "two parts lie on device 1");
  auto const all = walk(2, axes{{'a', 2, 3}}, 8).all;
  CHECK(on(all, 5)->index == 1);
  CHECK(on(all, 3) == nullptr);
  CHECK(on(all, 6) == nullptr);
}

TEST_CASE("a layout's places cover the tensor as often as its copies and sums say") {
  shape const s{12, 6, 4};
  ir::layout const l{0, {{ir::part_kind::shard, 0, 2, 12}, {ir::part_kind::replicate, -1, 2, 6}, {ir::part_kind::shard, 0, 3, 2},
                         {ir::part_kind::partial, -1, 2, 1}}};
  auto const all = places(l, s, 24);
  REQUIRE(all.size() == 24);
  std::map<i64, int> often;
  std::map<i64, int> sums;
  for (auto const& p : all) {
    ++sums[p.sum];
    for (i64 e : elements(p.at, s)) ++often[e];
  }
  CHECK(often.size() == 288);
  for (auto const& [e, n] : often) CHECK(n == 4);  // two copies of two partial sums
  CHECK(sums == std::map<i64, int>{{0, 12}, {1, 12}});
  CHECK(on(all, 12)->at.lo[0] == 6);  // the earlier axis is the major digit
  CHECK(on(all, 2)->at.lo[0] == 2);
  CHECK(places({0, {{ir::part_kind::shard, 0, 5, 1}}}, s, 8).empty());
  CHECK(places({0, {{ir::part_kind::shard, 3, 2, 1}}}, s, 8).empty());
  CHECK(places({0, {{ir::part_kind::replicate, -1, 9, 1}}}, s, 8).empty());
}

TEST_CASE("under any sharding an operator's results are covered, each share by parts that do not overlap") {
  std::mt19937 draw(7);
  int sharding_results = 0, shared = 0;
  for (int turn = 0; turn < test_effort::cases(60); ++turn) {
    computation_graph const g = turn % 3 == 0 ? tests::residual_mlp() : turn % 3 == 1 ? tests::small_cnn() : tests::small_transformer();
    int const devices = 1 + static_cast<int>(draw() % 8);
    plan const p = tests::random_plan(g, devices, draw);
    for (int v = 0; v < g.node_count(); ++v) {
      graph_node const& n = g.node(v);
      std::vector<shape> in, out;
      for (int x : n.in) in.push_back(g.type(x));
      for (int x : n.out) out.push_back(g.type(x));
      ir::sharding const& mesh = p.nodes[idx(v)].sharding;
      sharding_work const w = works(n, ir::space_of(g, v), in, out, mesh, devices);
      REQUIRE(w.why == "");
      REQUIRE(static_cast<i64>(w.devices.size()) == mesh.size());
      for (std::size_t k = 0; k < out.size(); ++k) {
        std::map<i64, std::vector<box>> parts;  // by share, each part once (replicas compute the same)
        for (std::size_t d = 0; d < w.devices.size(); ++d) {
          auto& of = parts[w.share(d, k)];
          if (std::find(of.begin(), of.end(), w.out(d, k)) == of.end()) of.push_back(w.out(d, k));
        }
        REQUIRE(static_cast<i64>(parts.size()) == w.shares[k]);
        shared += w.shares[k] > 1;
        for (auto const& [share, boxes] : parts) {
          i64 volume = 0;
          for (std::size_t i = 0; i < boxes.size(); ++i) {
            volume += boxes[i].volume();
            for (std::size_t j = 0; j < i; ++j) REQUIRE(common(boxes[i], boxes[j]).volume() == 0);
          }
          REQUIRE(volume == out[k].elements());
          sharding_results += boxes.size() > 1;
        }
      }
    }
  }
  CHECK(sharding_results > test_effort::cases(100));
  CHECK(shared > test_effort::cases(20));
}

TEST_CASE("a sharding that does not fit says why") {
  computation_graph const g = tests::residual_mlp();
  graph_node const& n = g.node(0);  // linear, 24 x 48 -> 24 x 24
  std::vector<shape> in, out;
  for (int x : n.in) in.push_back(g.type(x));
  for (int x : n.out) out.push_back(g.type(x));
  auto why = [&](std::vector<ir::mesh_axis> axes) { return works(n, ir::space_of(g, 0), in, out, {0, std::move(axes)}, 16).why; };
  CHECK(why({{'0', 4, 1}}) == "");
  CHECK(why({{'0', 5, 1}}) == "loop '0' cannot be split in 5, only in divisors of 24");
  CHECK(why({{'0', 4, 1}, {'0', 4, 4}}) == "loop '0' cannot be split in 16, only in divisors of 24");
  CHECK(why({{'q', 2, 1}}) == "it has no loop 'q'");
  CHECK(why({{'0', 2, 0}}) == "two parts lie on device 0");
}
