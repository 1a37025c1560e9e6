// tests/ir/sharded_update.test.cpp - which loop of an update follows an axis that holds copies
#include <tensorpar/ir/sharded_update.hpp>

#include <doctest/doctest.h>
#include <tensorpar/ir/axis_share.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/op/operators.hpp>

using namespace tensorpar;

namespace {

/// The update of a linear operator's weight of these extents, over 24 samples.
struct weight_update {
  training_graph t;
  int node = -1;
  explicit weight_update(i64 out, i64 in) {
    computation_graph g;
    int const x = g.add_input("x", shape{dim(24), dim(in)});
    int const y = g.node(g.add_with_weights(linear{out, false}, {x}, "w")).out[0];
    g.add_output("loss", g.node(g.add(mean_squared_error{}, {y, g.add_input("y", shape{dim(24), dim(out)})})).out[0]);
    t = differentiate(g);
    for (int v = 0; v < t.graph.node_count(); ++v) if (is_update(t.graph.node(v).op)) node = v;
  }
  ir::layout kept(ir::sharding const& s) const {
    ir::iteration_space const space = ir::space_of(t.graph, node);
    ir::update_sharding const u = ir::sharded_update(space, t.graph.node(node).letters, s);
    return ir::result_layout(space, u.letters, ir::in_shares(s, u.share), 0);
  }
};

}  // namespace

TEST_CASE("copies over samples become parts of the first axis that they divide") {
  CHECK(weight_update(16, 9).kept({0, {{'0', 8, 1}}}) == ir::layout{0, {{ir::part_kind::shard, 0, 8, 1}}});
  CHECK(weight_update(9, 16).kept({0, {{'0', 8, 1}}}) == ir::layout{0, {{ir::part_kind::shard, 1, 8, 1}}});
  CHECK(weight_update(9, 9).kept({0, {{'0', 8, 1}}}) == ir::layout{0, {{ir::part_kind::replicate, -1, 8, 1}}});
}

TEST_CASE("an axis that is split already stays, and replicas are no copies to share") {
  CHECK(weight_update(16, 16).kept({0, {{'0', 4, 2}, {'o', 2, 1}}}) ==
        ir::canonical(ir::layout{0, {{ir::part_kind::shard, 1, 4, 2}, {ir::part_kind::shard, 0, 2, 1}}}));
  CHECK(weight_update(16, 16).kept({0, {{'\0', 4, 1}}}) == ir::layout{0, {{ir::part_kind::replicate, -1, 4, 1}}});
  CHECK(weight_update(16, 16).kept({0, {{'o', 4, 1}}}) == ir::layout{0, {{ir::part_kind::shard, 0, 4, 1}}});
}

TEST_CASE("where no axis divides an extent, as much of it as does; the rest are copies") {
  CHECK(weight_update(16, 9).kept({0, {{'0', 24, 1}}}) ==
        ir::canonical(ir::layout{0, {{ir::part_kind::replicate, -1, 3, 8}, {ir::part_kind::shard, 0, 8, 1}}}));
  CHECK(weight_update(10, 9).kept({0, {{'0', 12, 2}}}) ==
        ir::canonical(ir::layout{0, {{ir::part_kind::replicate, -1, 4, 6}, {ir::part_kind::shard, 1, 3, 2}}}));
  CHECK(weight_update(7, 5).kept({0, {{'0', 12, 1}}}) == ir::layout{0, {{ir::part_kind::replicate, -1, 12, 1}}});
  // beside an axis that is split already
  ir::layout const l = weight_update(16, 8).kept({0, {{'0', 12, 2}, {'o', 2, 1}}});
  CHECK(l.degree(ir::part_kind::shard, 0) == 2);
  CHECK(l.degree(ir::part_kind::shard, 1) == 4);
  CHECK(l.degree(ir::part_kind::replicate) == 3);
  // of two axes over one loop both or none
  CHECK(weight_update(16, 9).kept({0, {{'0', 3, 4}, {'0', 4, 1}}}).degree(ir::part_kind::shard, 0) == 1);
}

TEST_CASE("of all numbers of copies the largest part that divides an extent is followed") {
  for (i64 const out : {1, 7, 36, 60})
    for (i64 const in : {5, 48}) {
      weight_update const w(out, in);
      for (i64 copies = 2; copies <= 240; ++copies) {
        i64 most = copies;
        while (copies % most || (out % most && in % most)) --most;
        ir::layout const l = w.kept({0, {{'0', copies, 1}}});
        CHECK(l.degree(ir::part_kind::shard, out % most ? 1 : 0) == most);
        CHECK(l.degree(ir::part_kind::replicate) == copies / most);
      }
    }
}

TEST_CASE("one loop split by two axes is followed as a whole") {
  ir::layout const l = weight_update(24, 5).kept({0, {{'0', 2, 4}, {'0', 4, 1}}});
  CHECK(l.degree(ir::part_kind::shard, 0) == 8);
  CHECK(l.degree(ir::part_kind::replicate) == 1);
}
