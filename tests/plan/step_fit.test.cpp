// tests/plan/step_fit.test.cpp - a plan and the graph of a step that were not made for each other are told apart, in words
#include <tensorpar/plan/step_fit.hpp>
#include <doctest/doctest.h>

#include <random>
#include <support/random_pipeline.hpp>
#include <support/small_graphs.hpp>
#include <tensorpar/check/check.hpp>
#include <tensorpar/ir/mixed_precision.hpp>
#include <tensorpar/program/unroll.hpp>

using namespace tests;

namespace {

training_options options_of(plan const& p) {
  training_options o;
  o.optimizer = p.optimizer;
  o.micro_batches = p.micro_batches;
  return o;
}
plan with(computation_graph const& g, optimizer_kind kind, double clip, int micro_batches) {
  plan p = serial_plan(g);
  p.optimizer.kind = kind;
  p.optimizer.clip_norm = clip;
  p.micro_batches = micro_batches;
  return p;
}
/// The executor's words and the checker's, which are the same.
std::string said(training_graph const& t, plan const& p) {
  std::string const text = disagreement(t, p);
  std::vector<finding> const found = check(t, p), all = check(t, p, unroll(t, p));
  CHECK(found.empty() == text.empty());
  CHECK(all.empty() == text.empty());
  if (!found.empty()) {
    CHECK(found[0].code == fault::wrong_graph);
    CHECK(found[0].text == text);
  }
  try { fitting(t, p); } catch (error const& e) {
    CHECK(e.problem() == text);
    return text;
  }
  CHECK(text.empty());
  return text;
}

}  // namespace

TEST_CASE("a graph agrees with the plan that it was differentiated for, and with no plan of other micro-batches or another optimizer") {
  computation_graph const plain = residual_mlp(), narrow = mixed_precision(plain);
  int refused = 0;
  for (computation_graph const* g : {&plain, &narrow})
    for (optimizer_kind a : {optimizer_kind::sgd, optimizer_kind::momentum, optimizer_kind::adamw})
      for (double clip : {0.0, 0.5})
        for (int n : {1, 3, 4}) {
          plan const own = with(*g, a, clip, n);
          training_graph const t = differentiate(*g, options_of(own));
          CHECK(said(t, own).empty());
          for (optimizer_kind b : {optimizer_kind::sgd, optimizer_kind::momentum, optimizer_kind::adamw})
            for (double other : {0.0, 0.5, 1.0})
              for (int m : {1, 2, 4})
                if (a != b || clip != other || n != m) {
                  CHECK(!disagreement(t, with(*g, b, other, m)).empty());
                  ++refused;
                }
        }
  CHECK(refused > 800);
}

TEST_CASE("a plan priced with products in fp8 fits no step that is run") {
  computation_graph const half = mixed_precision(residual_mlp());
  plan p = with(half, optimizer_kind::sgd, 0, 1);
  training_graph const t = differentiate(half, options_of(p));
  CHECK(fitting(t, p) == p);
  p.precision = precision::fp8;
  CHECK_THROWS_WITH_AS(fitting(t, p), doctest::Contains("fp8, which no executor makes"), error);
}

TEST_CASE("what disagrees is said in words") {
  computation_graph const g = residual_mlp();
  plan p = with(g, optimizer_kind::sgd, 0, 1);
  training_graph const four = differentiate(g, options_of(with(g, optimizer_kind::sgd, 0, 4)));
  CHECK(said(four, p) == "the graph was differentiated for micro_batches = 4, the plan has 1");
  training_graph const adam = differentiate(g, options_of(with(g, optimizer_kind::adamw, 0, 1)));
  CHECK(said(adam, p) == "the graph updates by adamw_update{beta1=0.900000,beta2=0.999000,eps=0.000000,weight_decay=0.000000}, "
                         "the plan's optimizer by sgd_update{weight_decay=0.000000}");
  training_graph const clipped = differentiate(g, options_of(with(g, optimizer_kind::sgd, 0.5, 1)));
  CHECK(said(clipped, p) == "the graph clips by clip_factor{max_norm=0.500000,skip=0}, the plan's optimizer none");
  p.optimizer.clip_norm = 2;
  CHECK(said(differentiate(g), p) == "the graph clips no gradients, the plan's optimizer to a norm of 2.000000");
  p.optimizer.on_non_finite = non_finite::skip;
  CHECK(said(clipped, p) == "the graph clips by clip_factor{max_norm=0.500000,skip=0}, the plan's optimizer to a norm of 2.000000 and "
                            "skips updates of what is not finite");
  p.optimizer.clip_norm = 0.5;
  CHECK(said(clipped, p) != "");
  CHECK(said(differentiate(g, options_of(p)), p).empty());
  p = with(g, optimizer_kind::sgd, 0, 1);
  p.optimizer.on_non_finite = non_finite::go_on;                       // changes no graph
  CHECK(said(differentiate(g), p).empty());
  p.optimizer.beta1 = 0.5;                                             // of no use to it
  CHECK(said(differentiate(g), p).empty());
}

TEST_CASE("the number formats of moments and gradients are compared, where the graph has any") {
  computation_graph const plain = residual_mlp(), narrow = mixed_precision(plain);
  auto const choice = [](optimizer_kind kind, int bits) {
    optimizer_choice o{.kind = kind};
    if (bits & 1) o.moments = dtype::bf16;
    if (bits & 2) o.gradients = dtype::bf16;
    if (bits & 4) o.masters = dtype::bf16;
    return o;
  };
  int refused = 0;
  for (computation_graph const* g : {&plain, &narrow})
    for (optimizer_kind kind : {optimizer_kind::sgd, optimizer_kind::momentum, optimizer_kind::adamw})
      for (int own = 0; own < 8; ++own)
        for (int other = 0; other < 8; ++other) {
          plan p = with(*g, kind, 0, 1);
          p.optimizer = choice(kind, own);
          training_graph const t = differentiate(*g, options_of(p));
          p.optimizer = choice(kind, other);
          bool const moments = kind != optimizer_kind::sgd && ((own ^ other) & 1);
          bool const sums = g == &narrow && (other & 2) && !(own & 2);      // bf16 may be all that an operator makes
          bool const masters = g == &narrow && ((own ^ other) & 4);
          std::string const text = said(t, p);
          CHECK((text.find("keeps moments") != text.npos) == moments);
          CHECK((text.find("keeps masters") != text.npos) == (masters && !moments));
          CHECK((text.find("keeps gradients") != text.npos) == (sums && !moments && !masters));
          refused += !text.empty();
        }
  CHECK(refused > 150);
  plan p = with(narrow, optimizer_kind::adamw, 0, 1);
  training_graph const t = differentiate(narrow, options_of(p));
  p.optimizer.moments = dtype::bf16;
  CHECK(said(t, p) == "the graph keeps moments in f32, the plan's optimizer in bf16");
  p.optimizer = {.kind = optimizer_kind::adamw, .gradients = dtype::bf16};
  CHECK(said(t, p) == "the graph keeps gradients in f32, the plan's optimizer in bf16");
  p.optimizer = {.kind = optimizer_kind::adamw, .masters = dtype::bf16};
  CHECK(said(t, p) == "the graph keeps masters in f32, the plan's optimizer in bf16");
}

TEST_CASE("steps that save memory, and those of pipelines, agree with their plans") {
  computation_graph const g = residual_mlp();
  std::mt19937 draw(3);
  for (int turn = 0; turn < 12; ++turn) {
    plan p = random_plan(g, 4, draw);
    p.optimizer.kind = static_cast<optimizer_kind>(turn % 3);
    p.optimizer.clip_norm = turn % 2;
    p.micro_batches = 1 + turn % 4;
    for (op_strategy& c : p.nodes) c = {c.sharding, static_cast<tensorpar::ir::zero_stage>(draw() % 4), draw() % 2 == 0};
    planned_step const s = tensorpar::passes::memory_pass(differentiate(g, options_of(p)), p);
    CHECK(said(s.graph, s.plan).empty());
    plan q = random_pipeline(g, {.devices = 4}, 1, 4, draw);
    q.optimizer = p.optimizer;
    planned_step const e = tensorpar::passes::pipeline_pass(g, q);
    CHECK(disagreement(e.graph, e.plan).empty());
    CHECK_THROWS_WITH_AS(tensorpar::passes::pipeline_pass(tensorpar::ir::rebatch(g, 2), q), doctest::Contains("for another batch size"),
                         error);
    CHECK_NOTHROW(fitting(e.graph, e.plan));
    plan other = e.plan;
    other.micro_batches = 2;
    CHECK(!disagreement(e.graph, other).empty());
  }
}

TEST_CASE("clusters and micro-batches that mean nothing, and plans for other graphs or batches, are refused") {
  computation_graph const g = residual_mlp();
  training_graph const t = differentiate(g);
  auto refusal = [&](auto const& change) -> std::string {
    plan p = serial_plan(g);
    change(p);
    try { fitting(t, p); } catch (error const& e) { return e.what(); }
    return "accepted";
  };
  CHECK(refusal([](plan&) {}) == "accepted");
  CHECK(refusal([](plan& p) { p.graph = 0; }) == "accepted");              // it names none
  CHECK(refusal([](plan& p) { p.cluster.device.clear(); }) == "no devices (at plan: cluster.device); valid: at least one");
  CHECK(refusal([](plan& p) { p.cluster.kinds[0].flops = 0; }).find("0 is out of range (at plan: cluster.kinds[0].flops)") == 0);
  for (int n : {0, -1})
    CHECK(refusal([&](plan& p) { p.micro_batches = n; }) == "micro_batches is " + std::to_string(n) + " (at plan); valid: 1 or more");
  CHECK(refusal([](plan& p) { ++p.graph; }).find("the plan was made for another graph, or for another batch size") == 0);
  CHECK(refusal([](plan& p) { p.graph = 0; p.tasks = 1; }).find("the plan was made for another graph") == 0);
}
