// tests/program/step_meshes.test.cpp - where operators stand, and whether a device has something to do in between
#include <tensorpar/program/step_meshes.hpp>

#include <doctest/doctest.h>
#include <tensorpar/check/check.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/program/unroll.hpp>

using namespace tensorpar;

namespace {
/// A fork to two towers of two layers each, and their sum.
struct forked {
  computation_graph g;
  training_graph t;
  plan p;
  explicit forked(std::vector<ir::sharding> const& s) {
    auto apply = [&](op::any_op const& o, std::vector<value_id> in) { return g.node(g.add_with_weights(o, std::move(in), {})).out[0]; };
    int const x = g.add_input("x", shape{dim(8), dim(8)}), a = apply(relu{}, {x});
    int const left = apply(relu{}, {apply(linear{8}, {a})}), right = apply(relu{}, {apply(linear{8}, {a})});
    g.add_output("loss", apply(mean_squared_error{}, {apply(add{}, {left, right}), x}));
    t = differentiate(g);
    p.cluster = preset("logical:4");
    for (ir::sharding const& k : s) p.nodes.push_back({k});
  }
};
ir::sharding at(int start, i64 n) { return n > 1 ? ir::sharding{start, {{'\0', n, 1}}} : ir::sharding{start, {}}; }
ir::layout lies(ir::sharding const& s) { return passes::mesh_layout(s); }
int exchanges_before(program const& q, int node) {
  int n = 0;
  for (task const& x : q.tasks) {
    if (x.kind == task_kind::compute && x.node == node) break;
    n += x.kind == task_kind::reshard && x.step.kind == ir::reshard_kind::exchange;
  }
  return n;
}
}  // namespace

TEST_CASE("meshes of a step: who is idle between two operators") {
  forked const f({at(0, 2), at(0, 2), at(0, 2), at(2, 2), at(2, 2), at(0, 2), at(0, 2)});
  passes::detail::step_meshes const meshes(f.t, f.p);
  CHECK(meshes.mesh_of(3) == at(2, 2));
  CHECK(meshes.nothing_between(0, 3, lies(at(0, 2)), lies(at(2, 2))));          // 2 and 3 wait for the fork alone
  CHECK_FALSE(meshes.nothing_between(0, 5, lies(at(0, 2)), lies(at(2, 2))));
  CHECK(meshes.nothing_between(0, 5, lies(at(0, 4)), lies(at(2, 2))));          // they have it
  CHECK(meshes.nothing_between(2, 3, lies(at(2, 2)), lies(at(0, 2))));
  ir::sharding back{3, {{'\0', 2, -1}}};                                             // from device 3 down to 2
  CHECK_FALSE(passes::detail::step_meshes(f.t, forked({at(0, 2), back, back, at(2, 1), at(2, 1), at(0, 2), at(0, 2)}).p)
                  .nothing_between(0, 3, lies(at(0, 2)), lies(at(2, 1))));
}

TEST_CASE("meshes of a step: a branch elsewhere gets what it starts from before the other branch runs, and not if it is busy") {
  forked const idle({at(0, 2), at(0, 2), at(0, 2), at(2, 2), at(2, 2), at(0, 2), at(0, 2)});
  CHECK(exchanges_before(unroll(idle.t, idle.p), 1) == 1);
  forked const busy({at(0, 2), at(1, 2), at(1, 2), at(2, 2), at(2, 2), at(0, 2), at(0, 2)});
  CHECK(exchanges_before(unroll(busy.t, busy.p), 1) == 1);                     // to the first branch: the second's devices are among its
  for (int d = 0; d < 4; ++d) CHECK(arena_on(d, idle.t, idle.p) == unroll(idle.t, idle.p).arena[static_cast<std::size_t>(d)]);
}

TEST_CASE("meshes of a step: what belongs to no operator, such as the norm, stands on the devices in use, and idle ones do nothing") {
  training_options o;
  o.optimizer.clip_norm = 0.5;
  auto const step_on = [&](int devices, int start) {
    forked f(std::vector<ir::sharding>(7, at(start, 2)));
    f.p.cluster = preset("logical:" + std::to_string(devices));
    f.p.optimizer = o.optimizer;
    training_graph const t = differentiate(f.g, o);
    f.p.graph = ir::forward_part_hash(t);
    program const q = unroll(t, f.p);
    CHECK(check(t, f.p, q).empty());
    std::vector<std::string> names;
    for (task const& k : q.tasks) {
      names.push_back(k.name);
      for (int d : k.devices) { CHECK(d >= start); CHECK(d < start + 2); }
    }
    return names;
  };
  std::vector<std::string> const two = step_on(2, 0);
  CHECK(step_on(4, 0) == two);
  CHECK(step_on(8, 5) == two);
  plan p;
  p.cluster = preset("logical:8");
  CHECK(mesh_in_use(p) == at(0, 8));                                           // a graph without operators
  p.nodes = {{at(4, 1)}, {{6, {{'\0', 2, -1}}}}, {{3, {{'\0', 2, 2}}}}};
  CHECK(mesh_in_use(p) == at(3, 4));                                           // 4; 6 and 5; 3 and 5
  p.nodes = {{at(4, 1)}};
  CHECK(mesh_in_use(p) == ir::sharding{4, {{'\0', 1, 1}}});
}

TEST_CASE("meshes of a step: shardings that cannot be are refused with what would be valid") {
  auto const refused = [](ir::sharding const& s, char const* why) {
    forked const f({at(0, 1), s, at(0, 1), at(0, 1), at(0, 1), at(0, 1), at(0, 1)});
    CHECK_THROWS_WITH_AS(unroll(f.t, f.p), doctest::Contains(why), error);
  };
  refused({0, {{'o', 3, 1}}}, "loop 'o' cannot be split in 3");
  refused({0, {{'o', 2, 0}}}, "two parts lie on one device");
  refused({3, {{'o', 2, 1}}}, "device 4 does not exist");
}
