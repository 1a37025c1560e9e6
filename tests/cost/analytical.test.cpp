// tests/cost/analytical.test.cpp - roofline and alpha-beta: laws, values worked out by hand, contention, speed
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/ir/machine/precision.hpp>

#include <ctime>

#include "support/laws/cost_model.hpp"

using namespace tensorpar;

namespace {
device_kind const round_numbers{"round", 1e12, 1e11, i64{1} << 34, 1e-5};
machine cluster(int n, int per) { return make_cluster("c", round_numbers, n, per, {"inner", 1, 1e-6, 1e10}, {"outer", 1, 1e-5, 1e9}); }
cost::analytical const exact{cost::measured_rates};
double seconds(ir::reshard_step const& s, machine const& m, cost::analytical const& a = exact) {
  shape const t{dim(1024), dim(1024)};
  return a.seconds(cost::reshard_query{s, t, 4, m});
}
ir::layout_axis parts_of(ir::part_kind k, i64 degree, i64 stride, int dim = -1) { return {k, dim, degree, stride}; }
}  // namespace

TEST_CASE("laws of a cost model, on machines of every shape") {
  for (char const* name :
       {"logical:4", "logical-2x2", "logical:6", "summit:2", "dgx-h100:2", "autodist-b12", "autodist-b10", "predtop-2", "titan-x:5"}) {
    CAPTURE(name);
    laws::check_cost_model(cost::analytical{}, preset(name));
    laws::check_cost_model(cost::analytical{{.uplinks = 2}}, preset(name));
  }
}

TEST_CASE("in fp8 products with weights run at its rate, attention at that of bf16") {
  machine const m = preset("dgx-b200");
  auto const at = [&](precision p) { return at_precision(m, p).kinds[0]; };
  for (precision p : {precision::f32, precision::tf32, precision::bf16, precision::fp8}) {
    CAPTURE(static_cast<int>(p));
    device_kind const k = at(p);
    double const attends = k.rates.in(p == precision::fp8 ? precision::bf16 : p);
    CHECK(cost::rate_of(linear{64}, k) == k.rates.in(p));
    CHECK(cost::rate_of(linear{64}, k) == k.flops);
    for (op::any_op const& a : std::vector<op::any_op>{attention{4}, packed_attention{4}, op::attention_with_lse{4}})
      CHECK(cost::rate_of(a, k) == attends);
  }
  device_kind const own{"mine", 1e12, 1e11, i64{1} << 34, 1e-6, {}};
  CHECK(cost::rate_of(attention{4}, own) == 1e12);
}

TEST_CASE("small products waste a part of the device, where its kind says how much; attention has a share of its own") {
  kernel_efficiency const e{0.8, 0.5, 0.9, 1000, 50};
  device_kind kind = round_numbers;
  kind.efficiency = e;
  auto const seconds = [&](op::any_op const& op, std::vector<shape> const& in, shape const& out, cost::analytical const& m) {
    return m.seconds(cost::compute_query{op, {in.data(), static_cast<int>(in.size())}, {&out, 1}, 4, kind}) - kind.launch;
  };
  cost::analytical const by_kind, flat{{.by_kind = false}};
  op::any_op const product = contraction("mk,nk->mn");
  auto const of = [&](i64 m, i64 n, i64 k, cost::analytical const& model) {
    return seconds(product, {{dim(m), dim(k)}, {dim(n), dim(k)}}, {dim(m), dim(n)}, model);
  };
  CHECK(of(1024, 1024, 1024, by_kind) == doctest::Approx(2.0 * (1024. * 1024 * (1024 + 50) + 1000. * 1024) / 0.8e12));
  CHECK(of(64, 64, 1 << 20, by_kind) ==              // sums are shared out beyond 4096 terms
        doctest::Approx(2.0 * (64. * 64 * ((1 << 20) + 50) + 1000. * 4096) / 0.8e12));
  CHECK(of(1024, 1024, 1024, flat) == doctest::Approx(2.0 * 1024 * 1024 * 1024 / 0.7e12));
  for (i64 n : {16, 64, 256, 1024, 4096}) {          // parts of a product together take longer than the whole
    CAPTURE(n);
    CHECK(of(2 * n, 512, 512, by_kind) < 2 * of(n, 512, 512, by_kind));
    CHECK(of(2 * n, 512, 512, by_kind) > of(n, 512, 512, by_kind));
    CHECK(of(512, 512, 2 * n, by_kind) < 2 * of(512, 512, n, by_kind));
    CHECK(of(512, 512, 2 * n, by_kind) > of(512, 512, n, by_kind));
  }
  shape const x{dim(8), dim(512), dim(512)};
  CHECK(seconds(attention{4}, {x, x, x}, x, by_kind) == doctest::Approx(4.0 * 8 * 512 * 512 * 512 / 0.5e12));
  CHECK(seconds(attention{4}, {x, x, x}, x, flat) == doctest::Approx(4.0 * 8 * 512 * 512 * 512 / 0.7e12));
  // what only moves numbers, or sums one tensor up, has the memory's share and no waste
  CHECK(seconds(relu{}, {x}, x, by_kind) == doctest::Approx(2.0 * 8 * 512 * 512 * 4 / 0.9e11));
  CHECK(seconds(contraction("mk->k"), {{dim(4096), dim(512)}}, {dim(512)}, by_kind) ==
        doctest::Approx((4096. * 512 + 512) * 4 / 0.9e11));
  kind.efficiency.sustained = 0.5;                   // all of it takes twice as long, but not to launch it
  CHECK(of(1024, 1024, 1024, by_kind) == doctest::Approx(4.0 * (1024. * 1024 * (1024 + 50) + 1000. * 1024) / 0.8e12));
  CHECK(seconds(relu{}, {x}, x, by_kind) == doctest::Approx(4.0 * 8 * 512 * 512 * 4 / 0.9e11));
  CHECK(of(1024, 1024, 1024, flat) == doctest::Approx(2.0 * 1024 * 1024 * 1024 / 0.7e12));
  kind.efficiency = {};
  CHECK(of(1024, 1024, 1024, by_kind) == of(1024, 1024, 1024, flat));
}

TEST_CASE("roofline: compute-bound, memory-bound, launch-bound") {
  shape const x{dim(1024), dim(1024)}, w{dim(1024), dim(1024)}, tiny{dim(4)};
  shape const in[] = {x, w};
  op::any_op const product = contraction("mk,nk->mn"), pointwise = relu{};
  CHECK(exact.seconds(cost::compute_query{product, {in, 2}, {&x, 1}, 4, round_numbers}) ==
        doctest::Approx(1e-5 + 2.0 * 1024 * 1024 * 1024 / 1e12));
  CHECK(exact.seconds(cost::compute_query{pointwise, {&x, 1}, {&x, 1}, 4, round_numbers}) ==
        doctest::Approx(1e-5 + 2.0 * 1024 * 1024 * 4 / 1e11));
  CHECK(exact.seconds(cost::compute_query{pointwise, {&tiny, 1}, {&tiny, 1}, 4, round_numbers}) == doctest::Approx(1e-5).epsilon(1e-3));
  // efficiencies divide the rates, not the launch
  CHECK(cost::analytical{}.seconds(cost::compute_query{product, {in, 2}, {&x, 1}, 4, round_numbers}) ==
        doctest::Approx(1e-5 + 2.0 * 1024 * 1024 * 1024 / 0.7e12));
}

TEST_CASE("an embedding reads the rows it looks up, not its table; integers keep their size") {
  shape const ids = shape{dim(8)}.of(dtype::i64), y{dim(8), dim(16)}, in[] = {ids, {dim(1000), dim(16)}};
  CHECK(cost::bytes_touched(embedding{1000, 16}, {in, 2}, {&y, 1}, 4) == 8 * 8 + 8 * 16 * 4 + 8 * 16 * 4);
  shape const few[] = {ids, {dim(2), dim(16)}};                // more look-ups than rows: the table is read once
  CHECK(cost::bytes_touched(embedding{2, 16}, {few, 2}, {&y, 1}, 4) == 8 * 8 + 2 * 16 * 4 + 8 * 16 * 4);
}

TEST_CASE("collectives: bytes of the parts and levels that are crossed") {
  machine const m = cluster(8, 4);
  double const whole = 1024 * 1024 * 4;
  ir::layout const sums{0, {parts_of(ir::part_kind::partial, 4, 1)}}, copies{0, {parts_of(ir::part_kind::replicate, 4, 1)}},
      parts{0, {parts_of(ir::part_kind::shard, 4, 1, 0)}};
  cost::link_cost const inner{1e-6, 1e10}, outer{1e-5, 1e9};
  CHECK(seconds({ir::reshard_kind::all_reduce, -1, -1, {{4, 1}}, sums, copies}, m)
        == doctest::Approx(cost::flat::all_reduce_ring(4, whole, inner)));
  CHECK(seconds({ir::reshard_kind::reduce_scatter, -1, 0, {{4, 1}}, sums, parts}, m) ==
        doctest::Approx(cost::flat::reduce_scatter_tree(4, whole, inner)));
  // an all-gather of quarters is priced by what everybody has at the end
  CHECK(seconds({ir::reshard_kind::all_gather, 0, -1, {{4, 1}}, parts, copies}, m)
        == doctest::Approx(cost::flat::reduce_scatter_tree(4, whole, inner)));
  ir::layout const across{0, {parts_of(ir::part_kind::shard, 4, 1, 0), parts_of(ir::part_kind::partial, 2, 4)}},
      done{0, {parts_of(ir::part_kind::shard, 4, 1, 0), parts_of(ir::part_kind::replicate, 2, 4)}};
  CHECK(seconds({ir::reshard_kind::all_reduce, -1, -1, {{2, 4}}, across, done}, m)
        == doctest::Approx(cost::flat::all_reduce_ring(2, whole / 4, outer)));
}

TEST_CASE("the slowest group counts where groups lie differently") {
  machine const m = cluster(6, 3);                              // pairs {0,1} {2,3} {4,5}: only the middle one crosses
  ir::layout const from{0, {parts_of(ir::part_kind::shard, 3, 2, 0), parts_of(ir::part_kind::partial, 2, 1)}},
      to{0, {parts_of(ir::part_kind::shard, 3, 2, 0), parts_of(ir::part_kind::replicate, 2, 1)}};
  shape const t{dim(3), dim(1 << 20)};
  ir::reshard_step const s{ir::reshard_kind::all_reduce, -1, -1, {{2, 1}}, from, to};
  CHECK(exact.seconds(cost::reshard_query{s, t, 4, m}) ==
        doctest::Approx(cost::flat::all_reduce(2, 4.0 * (1 << 20), {1e-5, 1e9}, cost::collective_algorithm::best)));
}

TEST_CASE("contention: with one uplink per node, four groups that leave it share it; one group does not") {
  machine const m = cluster(8, 4);
  cost::analytical one = exact;
  one.use.uplinks = 1;
  ir::layout const four{0, {parts_of(ir::part_kind::shard, 4, 1, 0), parts_of(ir::part_kind::partial, 2, 4)}},
      four_to{0, {parts_of(ir::part_kind::shard, 4, 1, 0), parts_of(ir::part_kind::replicate, 2, 4)}};
  ir::layout const lone{0, {parts_of(ir::part_kind::partial, 2, 4)}}, lone_to{0, {parts_of(ir::part_kind::replicate, 2, 4)}};
  ir::reshard_step const crowded{ir::reshard_kind::all_reduce, -1, -1, {{2, 4}}, four, four_to},
      quiet{ir::reshard_kind::all_reduce, -1, -1, {{2, 4}}, lone, lone_to};
  CHECK(seconds(crowded, m, one) == doctest::Approx(cost::flat::all_reduce(2, 1024 * 1024, {1e-5, 1e9 / 4},
                                                                           cost::collective_algorithm::best)));
  CHECK(seconds(quiet, m, one) == doctest::Approx(seconds(quiet, m)));
  // a ring over both nodes leaves each once, so it has the uplink to itself
  ir::layout const all{0, {parts_of(ir::part_kind::partial, 8, 1)}}, all_to{0, {parts_of(ir::part_kind::replicate, 8, 1)}};
  cost::analytical ring = one;
  ring.use.algorithm = cost::collective_algorithm::ring;
  ir::reshard_step const both{ir::reshard_kind::all_reduce, -1, -1, {{8, 1}}, all, all_to};
  CHECK(seconds(both, m, ring) == doctest::Approx(cost::flat::all_reduce_ring(8, 1024 * 1024 * 4, {1e-5, 1e9})));
  CHECK(seconds(both, m, one) >= seconds(both, m));
}

TEST_CASE("keep copies the part that stays; exchange pays for what one device sends or receives over the widest link") {
  machine const m = cluster(8, 4);
  ir::layout const copies{0, {parts_of(ir::part_kind::replicate, 4, 1)}}, parts{0, {parts_of(ir::part_kind::shard, 4, 1, 0)}},
      there{4, {parts_of(ir::part_kind::shard, 4, 1, 0)}}, one{4, {}};
  double const whole = 1024 * 1024 * 4;
  CHECK(seconds({ir::reshard_kind::slice, -1, 0, {{4, 1}}, copies, parts}, m) == doctest::Approx(1e-5 + 2 * whole / 4 / 1e11));
  CHECK(seconds({ir::reshard_kind::exchange, -1, -1, {}, parts, there}, m) ==
        doctest::Approx(1e-5 + whole / 4 / 1e9));                                                               // quarter each, one message
  CHECK(seconds({ir::reshard_kind::exchange, -1, -1, {}, parts, one}, m) == doctest::Approx(4 * 1e-5 + whole / 1e9));  // one receiver
  CHECK(seconds({ir::reshard_kind::exchange, -1, -1, {}, one, there}, m)
        == doctest::Approx(1e-6 + whole / 1e10));     // one sender, inside a node
}

TEST_CASE("the pace that a search needs") {
  machine const m = preset("dgx-h100:8");
  auto const steps = laws::some_steps(m, 500, 3);
  auto const ops = laws::some_operators(64);
  shape const t{dim(256), dim(128)};
  auto const start = std::clock();
  double sum = 0;
  int asked = 0;
  for (int i = 0; i < 100; ++i) {
    for (ir::reshard_step const& s : steps) { sum += cost::analytical{}.seconds(cost::reshard_query{s, t, 4, m}); ++asked; }
    for (auto const& o : ops) { sum += cost::analytical{}.seconds(o.query(4, m.kinds[0])); ++asked; }
  }
  double const each = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC / asked;
  MESSAGE("nanoseconds per query: " << each * 1e9);
  CHECK(sum > 0);
  CHECK(each < 20e-6);                  // some 0.2 us in a release build; room for sanitizers
}
