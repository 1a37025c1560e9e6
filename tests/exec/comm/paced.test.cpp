// tests/exec/comm/paced.test.cpp - paced operators and links take their time, and results stay the same
#include <tensorpar/exec/comm/paced.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <utility>
#include "support/laws/communicator.hpp"
#include "support/random_pipeline.hpp"
#include "support/spine.hpp"
#include <tensorpar/simulate/engine.hpp>

using namespace tests;

namespace {
double one_millisecond(tensorpar::op::any_op const& o, shapes, shapes) { return o.is<linear>() || o.is<contraction>() ? 1e-3 : 0; }
struct same_price {
  double seconds(tensorpar::cost::compute_query const& q) const { return one_millisecond(q.op, q.in, q.out); }
  double seconds(tensorpar::cost::reshard_query const&) const { return 0; }
};
/// Collectives take a millisecond and a microsecond per byte, messages no time.
double slow_link(tensorpar::ir::reshard_kind k, i64 members, double bytes) {
  bool const free = k == tensorpar::ir::reshard_kind::exchange || k == tensorpar::ir::reshard_kind::slice || members < 2;
  return free ? 0 : 1e-3 + 1e-6 * bytes;
}
/// The same for a simulation: of the bytes on the larger side.
struct slow_prices : same_price {
  using same_price::seconds;
  double seconds(tensorpar::cost::reshard_query const& q) const {
    double const before = tensorpar::cost::part_bytes(q.step.before, q.logical, q.scalar_bytes);
    double const after = tensorpar::cost::part_bytes(q.step.after, q.logical, q.scalar_bytes);
    return slow_link(q.step.kind, q.step.group_size(), std::max(before, after));
  }
};
/// A tenth of a millisecond per byte.
double dear_link(tensorpar::ir::reshard_kind, i64, double bytes) { return 1e-4 * bytes; }
template <class S> using over_slow_links =
    executor<compute::paced<compute::eigen<S>, one_millisecond>, comm::paced<comm::threads, slow_link>>;
}  // namespace

TEST_CASE("no step is faster than the simulation of its prices, and results do not change") {
  computation_graph const g = residual_mlp();
  std::mt19937 draw(6);
  for (int i = 0; i < 4; ++i) {
    plan const p = random_pipeline(g, {.devices = 2 + i}, 1, 4, draw);
    planned_step const s = tensorpar::passes::pipeline_pass(g, p);
    executor<compute::paced<compute::eigen<double>, one_millisecond>, comm::threads> slow(s);
    executor_of<double> fast(s);
    slow.initialise(1);
    fast.initialise(1);
    host_batch const b = random_batch(g, 4, 3);
    double const measured = slow.step(b, 0.125).seconds;
    fast.step(b, 0.125);
    CHECK(measured >= simulate(slow.program(), p.cluster, same_price{}, {.overlap = true, .memory = false}).seconds);
    CHECK(parameters_of(slow) == parameters_of(fast));
  }
}

TEST_CASE("over paced links no step is faster than its simulation either, and results do not change") {
  computation_graph const g[] = {residual_mlp(), small_transformer()};
  std::mt19937 draw(7);
  int compared = 0;
  for (int i = 0; i < 6; ++i) {
    computation_graph const& x = g[i == 0];
    plan p = random_plan(x, 4, draw);
    if (i >= 2) {                                          // data parallel: gradients are all-reduced
      plan const random = std::exchange(p, serial_plan(x));
      p.cluster = random.cluster;
      for (op_strategy& n : p.nodes) n.sharding = {0, {{'0', 2, 1}}};
    }
    p.prefetch = i % 3;
    over_slow_links<prime_field> slow(differentiate(x), p);
    executor_of<prime_field> fast(differentiate(x), p);
    slow.initialise(1);
    fast.initialise(1);
    host_batch const b = random_batch(x, p.micro_batches, 3);
    double const measured = slow.step(b, 0.125).seconds;
    fast.step(b, 0.125);
    bool exchanges = false;                                // simulated ones hold their senders up
    for (task const& t : slow.program().tasks)
      exchanges = exchanges || (t.communicates() && t.step.kind == tensorpar::ir::reshard_kind::exchange);
    CAPTURE(i);
    if (!exchanges) CHECK(measured >= simulate(slow.program(), p.cluster, slow_prices{}, {true, false}).seconds);
    compared += !exchanges;
    CHECK(parameters_of(slow) == parameters_of(fast));
  }
  CHECK(compared > 0);
}

TEST_CASE("paced links keep the laws of communicators, and every operation takes as long as its bytes say") {
  using paced = comm::paced<comm::threads, dear_link>;
  static_assert(paced::overlaps && tensorpar::exec::full_communicator<paced, float>);
  comm::threads_world h(3);
  std::vector<std::string> found(3);
  comm::run_ranks<paced>(h, [&](paced& c) {
    std::string& mine = found[static_cast<std::size_t>(c.rank())];
    std::vector<int> const all{0, 1, 2};
    auto const g = c.make_group({all.data(), 3});
    mine += tests::broken_collective_laws<float>(c, g, 2, 1);
    mine += tests::broken_message_laws<float>(c, 2, 1);
    std::vector<float> small(4, 1), large(12, 1), other(12, 1);
    auto const takes = [&](char const* what, double least, auto const& work) {
      auto const start = std::chrono::steady_clock::now();
      work();
      if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < least) mine += what;
    };
    takes("all_reduce", 16e-4, [&] { c.all_reduce(g, small.data(), small.data(), 4); });
    takes("reduce_scatter", 48e-4, [&] { c.reduce_scatter(g, large.data(), small.data(), 4); });
    takes("all_gather", 48e-4, [&] { c.all_gather(g, small.data(), large.data(), 4); });
    takes("all_to_all", 48e-4, [&] { c.all_to_all(g, large.data(), other.data(), 4); });
    takes("message", 16e-4, [&] {
      c.send((c.rank() + 1) % 3, 0, small.data(), 4);
      c.receive((c.rank() + 2) % 3, 0, small.data(), 4);
    });
  });
  for (std::string const& s : found) CHECK(s == "");
  CHECK(h.undelivered() == 0);
}
