// tests/exec/device/scratch_of.test.cpp - "fits" is to the byte: what searches say with a policy's scratch is what its executors allocate
#include <tensorpar/exec/device/scratch_of.hpp>

#include <doctest/doctest.h>

#include <support/effort.hpp>
#include <support/executors_once.hpp>
#include <support/search_once.hpp>
#include <support/small_graphs.hpp>
#include <tensorpar/exec/step/fuse.hpp>
#include <tensorpar/exec/step/step_for.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/peers/strategies.hpp>
#include <tensorpar/plan/codec.hpp>
#include <tensorpar/program/core/scratch.hpp>
#include <tensorpar/program/evidence/certificate.hpp>
#include <tensorpar/report/summary.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tensorpar::peers;

namespace {

using policy = compute::eigen<float>;
using executor_type = executor<policy, comm::threads>;

i64 largest(std::vector<i64> const& x) { return *std::max_element(x.begin(), x.end()); }
machine cores(int n, i64 memory) { return make_cluster("cores", {"core", 2e10, 1e10, memory, 2e-6}, n, n, {"l", n, 2e-6, 5e9}, {}); }

computation_graph convolutions(i64 samples, int layers, i64 kernel, i64 channels) {
  computation_graph g;
  int h = g.add_input("x", {samples, 3, 10, 10});
  int const label = g.add_input("label", shape({samples}, dtype::i32));
  for (int k = 0; k < layers; ++k) {
    h = g.node(g.add_with_weights(conv2d{.out = channels, .kernel = kernel}, {h}, "c" + std::to_string(k))).out[0];
    h = g.node(g.add(relu{}, {h})).out[0];
  }
  h = g.node(g.add(global_average{}, {h})).out[0];
  h = g.node(g.add_with_weights(linear{3}, {h}, "head")).out[0];
  g.add_output("loss", g.node(g.add(cross_entropy{}, {h, label})).out[0]);
  return g;
}
computation_graph attentive(i64 samples, i64 length, int layers) {
  computation_graph g;
  int const x = g.add_input("x", {samples, length, 8}), y = g.add_input("y", {samples, length, 8});
  int h = x;
  for (int k = 0; k < layers; ++k) {
    std::string const n = std::to_string(k);
    int const all = g.node(g.add_with_weights(linear{24}, {h}, "qkv" + n)).out[0];
    h = g.node(g.add(packed_attention{.heads = 2, .causal = k % 2 == 1}, {all})).out[0];
    h = g.node(g.add_with_weights(linear{8}, {h}, "o" + n)).out[0];
  }
  g.add_output("loss", g.node(g.add(mean_squared_error{}, {h, y})).out[0]);
  return g;
}
computation_graph drawn(std::mt19937& draw) {
  auto const below = [&](unsigned n) { return static_cast<i64>(draw() % n); };
  if (draw() % 2) return convolutions(2 + 2 * below(3), 1 + static_cast<int>(below(2)), 3 + 2 * below(2), 4 + 2 * below(2));
  return attentive(2 + 2 * below(2), 6 + 2 * below(4), 1 + static_cast<int>(below(2)));
}

/// What holds of a plan that was said to fit. `declared`: what rewrites begin with.
void check_fits(computation_graph const& declared, computation_graph const& graph, plan p, machine const& on) {
  scratch_space const scratch = exec::scratch_of<policy>();
  CHECK(p.scratch == "eigen<float>");
  planned_step const s = exec::step_for<policy>(graph, p);
  CHECK(s.program.scratch);
  CHECK(step_of(graph, p, "loss", scratch).program.arena == s.program.arena);
  require_accepted(check(s.graph, s.plan, s.program), "plan");                   // says what devices lack, too
  executor_type const run(s);
  CHECK(run.allocated_bytes() == s.program.arena);
  for (int d = 0; d < on.size(); ++d) CHECK(run.allocated_bytes()[static_cast<std::size_t>(d)] <= on.kind_of(d).memory);
  CHECK(largest(exec::fused<policy>(s.program, on).arena) <= on.kind_of(0).memory);
  seal(graph, p, "loss", scratch);
  CHECK(p.peak_bytes == s.program.arena);
  CHECK(decode(encode(p), "plan") == p);
  require_accepted(check_certificate(declared, p, scratch), "certificate");
  auto const other = check_certificate(declared, p);
  REQUIRE(other.size() == 1);
  CHECK(other[0].text == "the plan counts the scratch space of eigen<float>, given is that of no policy");
}

}  // namespace

TEST_CASE("a limit that the arenas fill without scratch: a plan whose executor stays within it, or none") {
  int fit = 0, none = 0, short_of = 0;
  computation_graph const g = convolutions(6, 3, 5, 6);
  for (int n : {1, 2, 3}) {
    search_result const free = optimize(g, cores(n, i64{1} << 30), cost::analytical{});
    CHECK(free.plan.scratch.empty());
    i64 const most = largest(step_of(g, free.plan).program.arena);
    machine const on = cores(n, most);
    search_result const plain = optimize(g, on, cost::analytical{});
    REQUIRE(plain.feasible());
    short_of += largest(exec::step_for<policy>(g, plain.plan).program.arena) > most;   // as it says: scratch is not counted
    search_options o;
    o.scratch = exec::scratch_of<policy>();
    search_result const r = optimize(g, on, cost::analytical{}, o);
    for (i64 times : {1, 2, 4}) {
      machine const larger = cores(n, most * times);
      search_result const x = optimize(g, larger, cost::analytical{}, o);
      CHECK(x.feasible() >= r.feasible());
      ++(x.feasible() ? fit : none);
      if (x.feasible()) {
        check_fits(g, g, x.plan, larger);
        CHECK(largest(x.cost.bytes) == largest(exec::step_for<policy>(g, x.plan).program.arena));
      } else {
        CHECK(x.infeasible->missing > 0);
      }
    }
  }
  CHECK(short_of == 3);
  CHECK(fit > 0);
  CHECK(none > 0);
}

TEST_CASE("random networks of convolutions and attention under random limits: arenas are what executors allocate") {
  std::mt19937 draw(7);
  int fit = 0, none = 0, saving = 0, piped = 0;
  for (int trial = 0; trial < test_effort::cases(24); ++trial) {
    CAPTURE(trial);
    computation_graph const g = drawn(draw);
    int const n = 1 + static_cast<int>(draw() % 4);
    search_options o;
    o.scratch = exec::scratch_of<policy>();
    o.optimizer.kind = draw() % 2 ? optimizer_kind::adamw : optimizer_kind::sgd;
    o.micro_batches = 1 + static_cast<int>(draw() % 2);
    i64 const most = largest(optimize(g, cores(n, i64{1} << 30), cost::analytical{}, o).cost.bytes);
    machine const on = cores(n, most * static_cast<i64>(30 + draw() % 80) / 100);
    search_result const r = optimize(g, on, cost::analytical{}, o);
    ++(r.feasible() ? fit : none);
    if (!r.feasible()) continue;
    saving += r.plan.saves_memory();
    check_fits(g, g, r.plan, on);
    for (int d = 0; d < n; ++d) {                                                // devices that idle are said to take what others do
      std::size_t const k = static_cast<std::size_t>(d);
      CHECK(r.cost.bytes[k] >= exec::step_for<policy>(g, r.plan).program.arena[k]);
    }
    for (baseline const& b : strategies(g, on, cost::analytical{}, o)) {
      plan p = r.plan;
      p.nodes = b.nodes;
      p.node_order.clear();
      CHECK(largest(b.cost.bytes) == largest(exec::step_for<policy>(g, p).program.arena));
    }
  }
  for (int trial = 0; trial < test_effort::cases(5); ++trial) {
    CAPTURE(trial);
    computation_graph const g = trial % 2 ? attentive(1, 8, 3) : convolutions(1, 3, 5, 6);
    training_problem const asked{.graph = g, .samples = 8, .scratch = exec::scratch_of<policy>()};
    planning_options o;
    o.knobs.max_placed = 1 << 12;
    machine on = cores(2, i64{1} << 30);
    on.links[0].bandwidth = 5e6;
    i64 const most = largest(plan_training(asked, on, cost::analytical{}, o).arena());
    on.kinds[0].memory = most * static_cast<i64>(50 + draw() % 60) / 100;
    o.effort = effort::thorough;
    planned const r = plan_training(asked, on, cost::analytical{}, o);
    ++(r.feasible() ? fit : none);
    if (!r.feasible()) continue;
    CHECK(r.arena() == exec::step_for<policy>(r.graph, r.plan).program.arena);
    CHECK(r.plan.batch == 8);
    piped += !r.plan.pipeline.empty();
    saving += r.plan.saves_memory();
    check_fits(graph_of(g, r.plan, 8), r.graph, r.plan, on);
  }
  MESSAGE(fit << " fit, " << saving << " of them save memory and " << piped << " are pipelines; " << none << " do not");
  CHECK(fit >= test_effort::cases(10));
  CHECK(none > 0);
  CHECK((saving > 0 || test_effort::slow));
  CHECK((piped > 0 || test_effort::slow));
}

TEST_CASE("rules of another size of numbers and without a name are refused; so is another policy's count") {
  computation_graph const g = convolutions(2, 1, 3, 4);
  search_options o;
  o.scratch = exec::scratch_of<compute::eigen<double>>();
  CHECK(o.scratch.policy == "eigen<double>");
  CHECK_THROWS_WITH_AS(optimize(g, cores(1, i64{1} << 30), cost::analytical{}, o),
                       "scratch space of eigen<double>, whose numbers have 8 bytes, for numbers of 4 (at optimize); valid: scalar_bytes = 8", error);
  o.scalar_bytes = 8;
  plan p = optimize(g, cores(1, i64{1} << 30), cost::analytical{}, o).plan;
  CHECK(exec::step_for<compute::eigen<double>>(g, p).program.arena == step_of(g, p, "loss", o.scratch).program.arena);
  scratch_space named = o.scratch;
  named.policy = "another";
  CHECK_THROWS_WITH_AS(seal(g, p, "loss", named),
                       doctest::Contains("the plan counts the scratch space of eigen<double>, given is that of another"), error);
  CHECK_THROWS_WITH_AS(seal(g, p), doctest::Contains("given is that of no policy"), error);
  named.policy.clear();
  o.scratch = named;
  CHECK_THROWS_WITH_AS(optimize(g, cores(1, i64{1} << 30), cost::analytical{}, o), doctest::Contains("without the name"), error);
  o.scratch = exec::scratch_of<compute::eigen<double>>();
  seal(g, p, "loss", o.scratch);
  named = {"eigen<double>", [](op::any_op const&, shapes, shapes) { return i64{64}; }, 8};   // as of another version
  auto const found = check_certificate(g, p, named);
  REQUIRE(!found.empty());
}

TEST_CASE("summaries say whose scratch is in the arenas") {
  computation_graph const g = convolutions(2, 1, 3, 4);
  search_options o;
  plan p = optimize(g, cores(1, i64{1} << 30), cost::analytical{}, o).plan;
  auto const said = [](planned_step const& s) { return report::summary_of("", s.graph, s.plan, s.program, {}).scratch; };
  CHECK(said(step_of(g, p)) == "kernels' scratch is not counted");
  CHECK(said(exec::step_for<policy>(g, p)) == "with kernels' scratch");
  p.scratch = "eigen<float>";
  CHECK(said(exec::step_for<policy>(g, p)) == "with the scratch of eigen<float>");
}
