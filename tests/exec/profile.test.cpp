// tests/exec/profile.test.cpp - every operator of a step gets a measurement that the cost model finds
#include "support/spine.hpp"
#include <doctest/doctest.h>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/exec/profile.hpp>

using namespace tests;

namespace {

std::set<tensorpar::cost::profile_key> keys_of(tensorpar::cost::profile_table const& t) {
  std::set<tensorpar::cost::profile_key> r;
  for (auto const& [k, p] : t.all()) r.insert(k);
  return r;
}
/// The queries that whoever walks the program asks: every task, by the parts that its buffers hold.
template <class F> void each_query(program const& p, machine const& m, F&& f) {
  for (task const& t : p.tasks) {
    if (t.kind != task_kind::compute) continue;
    std::vector<shape> in, res;
    for (int b : t.in)
      in.push_back(tensorpar::ir::part_of(p.buffers[static_cast<std::size_t>(b)].where, p.buffers[static_cast<std::size_t>(b)].type));
    for (int b : t.out)
      res.push_back(tensorpar::ir::part_of(p.buffers[static_cast<std::size_t>(b)].where, p.buffers[static_cast<std::size_t>(b)].type));
    f(tensorpar::cost::compute_query{t.op,
                    {in.data(), static_cast<int>(in.size())},
                    {res.data(), static_cast<int>(res.size())},
                    p.scalar_bytes,
                    m.kind_of(t.devices[0])});
  }
}

profile_options const quick{.warm_ups = 1, .samples = 3, .min_seconds = 0};

}  // namespace

TEST_CASE_TEMPLATE("every operator of a sharding step is measured", S, float, prime_field) {
  std::mt19937 draw(2);
  for (computation_graph const& g : {residual_mlp(), small_cnn(), small_transformer()}) {
    training_options o;
    o.optimizer.kind = optimizer_kind::adamw;
    o.optimizer.clip_norm = 1;
    o.micro_batches = 2;  // adds accumulations
    plan p = random_plan(g, 4, draw);
    p.micro_batches = 2;
    p.scalar_bytes = sizeof(S);
    program const prog = unroll(differentiate(g, o), p, {&compute::eigen<S>::workspace});
    tensorpar::cost::profile_table const t = measure_operators<compute::eigen<S>>(prog, p.cluster, quick);
    std::set<tensorpar::cost::profile_key> asked;
    each_query(prog, p.cluster, [&](tensorpar::cost::compute_query const& q) { asked.insert(tensorpar::cost::profile_key_of(q)); });
    CHECK(keys_of(t) == asked);
    CHECK(t.size() > 20);
    CHECK(t.size() < prog.tasks.size());  // measured once, however often it runs
    for (auto const& [k, x] : t.all()) {
      CHECK(x.seconds > 0);
      CHECK(x.seconds < 1);
      CHECK(x.samples == 3);
      CHECK(x.key == k);
      CHECK(k.device == "device");
      CHECK(k.scalar_bytes == static_cast<i64>(sizeof(S)));
    }
    CHECK(keys_of(measure_operators<compute::eigen<S>>(prog, p.cluster, quick)) == keys_of(t));
    // what is known is not measured again
    tensorpar::cost::profile_table known = t;
    cost::operator_profile x = t.all().begin()->second;
    x.seconds = 123;
    known.add(x);
    CHECK(measure_operators<compute::eigen<S>>(prog, p.cluster, quick, known) == known);
    // and the cost model finds all of it
    tensorpar::cost::profiled<tensorpar::cost::analytical> const cost(t, {}, tensorpar::cost::when_missing::refuse);
    each_query(prog, p.cluster,
        [&](tensorpar::cost::compute_query const& q) { CHECK(cost.seconds(q) == t.find(tensorpar::cost::profile_key_of(q))->seconds); });
  }
}

TEST_CASE("a larger product takes longer, and every kind of device has its own entries") {
  auto const seconds = [](i64 width) {
    computation_graph g;
    int const x = g.add_input("x", {64, width});
    int v = g.add_with_weights(linear{width}, {x}, "fc");
    v = g.add_with_weights(mean_squared_error{}, {out(g, v), g.add_input("y", {64, width})}, "loss");
    g.add_output("loss", out(g, v));
    plan p = serial_plan(g);
    p.cluster.kinds.push_back(p.cluster.kinds[0]);
    p.cluster.kinds[1].name = "other";
    p.cluster = {"two kinds", p.cluster.kinds, {0, 1}, {{"link", 2, 0, 1e9}}};
    p.nodes[0].sharding.axes = {{'\0', 2, 1}};
    program const prog = unroll(differentiate(g), p, {&compute::eigen<float>::workspace});
    double fc[2] = {0, 0};
    tensorpar::cost::profile_table const measured = measure_operators<compute::eigen<float>>(prog, p.cluster);
    for (auto const& [k, t] : measured.all())
      if (k.op == "linear") fc[k.device == "other"] = t.seconds;
    CHECK(fc[0] > 0);
    CHECK(fc[1] > 0);
    return fc[0];
  };
  CHECK(seconds(256) > 2 * seconds(32));  // 64 times the work
}

TEST_CASE("indices are drawn as far as the data allow, refused options are named") {
  computation_graph g;
  int const words = g.add_input("words", shape({4, 6}, dtype::i32)), labels = g.add_input("labels", shape({4, 6}, dtype::i32));
  int v = g.add_with_weights(embedding{1000, 16}, {words}, "table");
  v = g.add_with_weights(cross_entropy{}, {out(g, v), labels}, "loss");  // labels stay below 16, words may reach 999
  g.add_output("loss", out(g, v));
  program const prog = unroll(differentiate(g), serial_plan(g), {&compute::eigen<float>::workspace});
  CHECK(measure_operators<compute::eigen<float>>(prog, devices(1), quick).size() >= 5);
  CHECK_THROWS_WITH_AS(measure_operators<compute::eigen<float>>(prog, devices(1), {.samples = 0}), doctest::Contains("at least 1 sample"),
                       error);
}

namespace {

/// Counts calls whose first result lies on their first operand.
struct watching : compute::eigen<float> {
  int* in_place;
  explicit watching(int* n) : in_place(n) {}
  void run(tensorpar::exec::kernel_call const& c) const {
    *in_place += c.in[0] == c.out[0];
    compute::eigen<float>::run(c);
  }
};

}  // namespace

TEST_CASE("what is in the place of an operand when it runs is so when it is measured") {
  for (bool placed : {false, true}) {
    program q;
    for (int i = 0; i < 3; ++i) {
      buffer b;
      b.value = i;
      b.type = {4, 8};
      b.devices = {0};
      if (placed && i == 2) b.in_place_of = 0;
      q.buffers.push_back(b);
    }
    task t;
    t.op = add{};
    t.in = {0, 1};
    t.out = {2};
    t.devices = {0};
    q.tasks = {t};
    int in_place = 0;
    CHECK(measure_operators(watching(&in_place), q, devices(1), {.warm_ups = 0, .samples = 1, .min_seconds = 0}).size() == 1);
    CHECK((in_place > 0) == placed);
  }
}
