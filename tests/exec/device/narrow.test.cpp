// tests/exec/device/narrow.test.cpp - training with bf16 weights and activations, kernels and reshards, against double
#include <tensorpar/exec/device/narrow.hpp>
#include <tensorpar/exec/step/initial_values.hpp>

#include <doctest/doctest.h>

#include <tensorpar/check/check.hpp>
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/comm/virtual_ranks.hpp>
#include <tensorpar/exec/files/checkpoint.hpp>
#include <tensorpar/exec/forward_pass.hpp>
#include <tensorpar/exec/teams/teams.hpp>
#include <tensorpar/ir/mixed_precision.hpp>
#include <tensorpar/program/passes/memory_pass.hpp>
#include <tensorpar/program/passes/pipeline_pass.hpp>

#include "support/dense.hpp"
#include "support/effort.hpp"
#include "support/laws/non_finite.hpp"
#include "support/random_pipeline.hpp"
#include "support/spine.hpp"
#include "each_call.hpp"
#include "support/scratch_folder.hpp"
#include "support/teams_once.hpp"

using namespace tests;

namespace {

using narrow_teams = compute::teams<float, exec::host_teams<>, op::op_set<>, bfloat16>;
static_assert(exec::compute_policy<narrow_teams>);
using narrow_executor = executor<narrow_teams, comm::threads>;

training_options options(optimizer_kind kind, double clip = 0, int micro_batches = 1) {
  training_options o;
  o.optimizer.kind = kind;
  o.optimizer.clip_norm = clip;
  o.micro_batches = micro_batches;
  return o;
}
/// Moments, gradients and masters in bf16, by the bits of k.
training_options in_bf16(training_options o, int k) {
  if (k & 1) o.optimizer.moments = dtype::bf16;
  if (k & 2) o.optimizer.gradients = dtype::bf16;
  if (k & 4) o.optimizer.masters = dtype::bf16;
  return o;
}
plan with(plan p, training_options const& o) {
  p.optimizer = o.optimizer;
  p.micro_batches = o.micro_batches;
  return p;
}
template <class E> std::vector<std::vector<double>> doubles(std::vector<std::vector<E>> const& all) {
  std::vector<std::vector<double>> r;
  for (auto const& x : all) r.emplace_back(x.begin(), x.end());
  return r;
}

/// A tensor's numbers in double, all of them bf16 numbers, and the same as the narrow policy stores them.
struct both {
  dense<double> exact;
  std::vector<float> single;
  std::vector<bfloat16> half;
  explicit both(dense<double> x) : exact(std::move(x)) {
    for (double& e : exact.real) {
      half.push_back(bfloat16(static_cast<float>(e)));
      single.push_back(half.back());
      e = single.back();
    }
  }
  void* at() {
    if (exact.integer()) return exact.index.data();
    return is_narrow(exact.block.type) ? static_cast<void*>(half.data()) : static_cast<void*>(single.data());
  }
  double operator[](std::size_t i) const {
    return is_narrow(exact.block.type) ? static_cast<double>(half[i]) : static_cast<double>(single[i]);
  }
};

struct operands_and_results {
  std::vector<both> in, out;
};
/// Random numbers for one operator of a training step.
operands_and_results drawn_for(computation_graph const& g, graph_node const& n, std::mt19937_64& r, int end) {
  std::vector<both> in, out;
  for (int x : n.in) in.emplace_back(random_dense<double>(g.type(x), end, r));
  if (is_update(n.op)) for (double& e : in[n.out.size() - (has_master(n.op) ? 1 : 0)].exact.real) e = std::abs(e);   // second moments
  for (both& x : in) x = both(std::move(x.exact));
  for (int x : n.out) out.emplace_back(make_dense<double>(whole(g.type(x))));
  return {std::move(in), std::move(out)};
}
/// Runs the operator, by double and by the narrow policy.
void run_by_both(graph_node const& n, std::vector<both>& in, std::vector<both>& out) {
  std::vector<shape> in_shapes, out_shapes;
  for (both const& x : in) in_shapes.push_back(x.exact.block.local_shape());
  for (both const& x : out) out_shapes.push_back(x.exact.block.local_shape());
  shapes const is{in_shapes.data(), static_cast<int>(in_shapes.size())}, os{out_shapes.data(), static_cast<int>(out_shapes.size())};
  tensorpar::exec::step_state state;
  state.step = 7;
  state.seed = 11;
  state.learning_rate = 0.25;
  auto const run = [&](auto const& policy, auto place, std::size_t scalar) {
    using policy_type = std::remove_cvref_t<decltype(policy)>;
    std::vector<void const*> in_at;
    std::vector<void*> out_at;
    std::vector<op::tensor_block> in_block, out_block;
    for (both& x : in) { in_at.push_back(place(x)); in_block.push_back(x.exact.block); }
    for (both& x : out) { out_at.push_back(place(x)); out_block.push_back(x.exact.block); }
    std::vector<std::byte> room(static_cast<std::size_t>(policy_type::workspace(n.op, is, os)) * scalar + 64);
    tensorpar::exec::kernel_call c;
    c.op = &n.op;
    c.inputs = static_cast<int>(in.size());
    c.outputs = static_cast<int>(out.size());
    c.in = in_at.data();
    c.in_block = in_block.data();
    c.out = out_at.data();
    c.out_block = out_block.data();
    c.workspace = room.data();
    c.state = state;
    policy.run(c);
  };
  run(compute::eigen<double>{}, [](both& x) { return x.exact.data(); }, sizeof(double));
  run(narrow_teams{}, [](both& x) { return x.at(); }, sizeof(float));
}
/// The largest difference of the two, relative to the largest number of the result.
double kernel_difference(computation_graph const& g, graph_node const& n, std::mt19937_64& r, int end = 12) {
  auto [in, out] = drawn_for(g, n, r, end);
  run_by_both(n, in, out);
  double worst = 0;
  for (both const& y : out) {
    double most = 1e-30, diff = 0;
    for (std::size_t i = 0; i < y.exact.real.size(); ++i) {
      most = std::max(most, std::abs(y.exact.real[i]));
      double const d = std::abs(y[i] - y.exact.real[i]);
      diff = d <= 1e300 ? std::max(diff, d) : 1e300;
    }
    worst = std::max(worst, diff / most);
  }
  return worst;
}
/// Results that are NaN or infinite by one of the two and not by the other, where an operand has a number that is.
std::string hidden_numbers(computation_graph const& g, graph_node const& n, std::mt19937_64& r, int end) {
  for (std::size_t k = 0; k < n.in.size(); ++k)
    for (double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY), -static_cast<double>(INFINITY)}) {
      auto [in, out] = drawn_for(g, n, r, end);
      if (in[k].exact.integer()) break;
      in[k].exact.real[r() % in[k].exact.real.size()] = bad;
      in[k] = both(std::move(in[k].exact));
      run_by_both(n, in, out);
      for (both const& y : out)
        for (std::size_t i = 0; i < y.exact.real.size(); ++i)
          if (kind_of(y[i]) != kind_of(y.exact.real[i]))
            return std::to_string(bad) + " in operand " + std::to_string(k) + ": " + std::to_string(y[i]) + " instead of " +
                   std::to_string(y.exact.real[i]);
    }
  return {};
}

}  // namespace

TEST_CASE("over double and in the prime field a graph in bf16 is the graph, under random plans and savings") {
  std::mt19937 draw(5);
  for (computation_graph const& g : {residual_mlp(), small_cnn(), small_transformer()})
    for (int trial = 0; trial < test_effort::cases(9); ++trial) {
      training_options const o = in_bf16(options(static_cast<optimizer_kind>(trial % 3), trial % 2 ? 0.5 : 0, trial % 3 == 1 ? 2 : 1),
                                         static_cast<int>(draw() % 8));
      plan p = with(random_plan(mixed_precision(g), 1 + trial % 6, draw), o);
      for (op_strategy& c : p.nodes) {
        c.zero = static_cast<ir::zero_stage>(draw() % 4);
        c.recompute = draw() % 2;
      }
      CAPTURE(trial);
      training_graph const plain = differentiate(g, o), narrow = differentiate(mixed_precision(g), o);
      planned_step const step = passes::memory_pass(narrow, p);
      auto const found = check(step.graph, step.plan, unroll(step.graph, step.plan));
      CHECK_MESSAGE(found.empty(), (found.empty() ? "" : found.front().text));
      executor_of<prime_field> a(step.graph, step.plan), b(plain, with(serial_plan(g), o));
      bool const exact = train(a, 2) == train(b, 2);
      CHECK(exact);
      CHECK(a.copies_agree());
    }
}

TEST_CASE("every operator of a step in bf16 computes what double does, but for rounding") {
  std::mt19937_64 r(9);
  std::set<std::string> seen;
  for (computation_graph const& g : {residual_mlp(), small_cnn(), small_transformer()})
    for (int k = 0; k < 24; ++k) {
      auto const kind = static_cast<optimizer_kind>(k / 8);
      training_graph const t = differentiate(mixed_precision(g), in_bf16(options(kind, 0.5), k % 8));
      for (graph_node const& n : t.graph.nodes) {
        if (k % 8 && !is_update(n.op) && !n.op.is<square_sum>()) continue;      // the others have been run
        CAPTURE(k);
        bool narrow = false;
        for (auto const* side : {&n.in, &n.out}) for (int x : *side) narrow = narrow || is_narrow(t.graph.type(x).type);
        if (!narrow) continue;
        seen.insert(std::string(n.op.op->name));
        CAPTURE(spell(n.op));
        CHECK(kernel_difference(t.graph, n, r) < 0.02);
      }
    }
  CHECK(seen.size() >= 30);
  for (char const* name : {"linear", "contraction", "conv2d", "conv2d_grad_w", "attention", "attention_grad", "layernorm", "embedding",
                           "embedding_grad", "cross_entropy", "cross_entropy_grad", "channel_moments", "normalize", "pool2d",
                           "master_adamw_update", "gelu", "dropout"})
    CHECK_MESSAGE(seen.contains(name), name);
}

TEST_CASE("every operator of the library but attention in parts, and what its derivative emits") {
  std::mt19937_64 r(10);
  std::set<std::string> left = names_of(op::forward_operators{});
  for (sample const& s : forward_samples()) {
    if (!narrow_teams::supports_narrow(s.op)) continue;
    computation_graph g;
    std::vector<value_id> operands;
    auto const own = [&](char const* name) { return name + std::to_string(g.values.size()); };
    for (shape const& x : s.in)
      operands.push_back(is_integer(x.type) ? g.add_input(own("i"), x) : g.add_parameter(own("p"), x, op::init::normal_02));
    CAPTURE(spell(s.op));
    int loss = -1;
    for (int y : g.node(g.add(s.op, operands)).out) {
      if (is_integer(g.type(y).type)) continue;
      bool const is_loss = s.op.is<cross_entropy>() || s.op.is<mean_squared_error>(), sums = s.op.is<op::channel_moments>();
      // what stays in f32 goes on through f32 alone
      int const l = is_loss ? y
                    : sums  ? out(g, g.add(contraction("ab,ab->"), {y, y}))
                            : out(g, g.add(mean_squared_error{}, {y, g.add_input(own("t"), g.type(y))}));
      loss = loss < 0 ? l : out(g, g.add(add{}, {loss, l}));
    }
    left.erase(std::string(s.op.op->name));
    if (loss < 0 || s.op.is<constant>()) continue;
    g.add_output("loss", loss);
    computation_graph const half = mixed_precision(g);
    computation_graph const whole_step = s.differentiable() ? differentiate(half, {}).graph : half;
    for (graph_node const& n : whole_step.nodes) {
      bool narrow = false;
      for (auto const* side : {&n.in, &n.out}) for (int x : *side) narrow = narrow || is_narrow(whole_step.type(x).type);
      if (!narrow) continue;
      CAPTURE(spell(n.op));
      CHECK(kernel_difference(whole_step, n, r, s.end) < 0.02);
      CHECK(hidden_numbers(whole_step, n, r, s.end) == "");
    }
  }
  CHECK(left == std::set<std::string>{"attention_finish", "attention_parts", "softmax_merge"});
}

TEST_CASE("pipelines in bf16 are the pipelines, and train") {
  std::mt19937 draw(14);
  for (computation_graph const& g : {residual_mlp(), small_transformer()})
    for (int trial = 0; trial < test_effort::cases(6); ++trial) {
      computation_graph const half = mixed_precision(g);
      plan p = random_pipeline(half, {.devices = 2 + trial % 4, .sizes = false}, 1, i64{1} << (trial % 3), draw);
      p.optimizer = in_bf16(options(static_cast<optimizer_kind>(trial % 3)), trial / 2).optimizer;
      if (trial % 2)
        for (op_strategy& n : p.nodes) n = {n.sharding, static_cast<ir::zero_stage>(draw() % 4), draw() % 2 == 0};
      CAPTURE(trial);
      planned_step const s = passes::pipeline_pass(half, p);
      auto const found = check(s.graph, s.plan, unroll(s));
      CHECK_MESSAGE(found.empty(), (found.empty() ? "" : found.front().text));
      int const parts = static_cast<int>(p.pipeline.mini_batch / p.pipeline.unit);
      training_options o = options(p.optimizer.kind, 0, parts);
      o.optimizer = p.optimizer;
      auto const run = [&](auto&& e) {
        e.initialise(7);
        for (u64 k = 0; k < 2; ++k) CHECK(std::isfinite(e.step(random_batch(g, parts, k), 0.05).loss));
        CHECK(e.copies_agree());
        return parameters_of(e);
      };
      bool const exact = run(executor_of<prime_field>(s)) == run(executor_of<prime_field>(differentiate(g, o), with(serial_plan(g), o)));
      CHECK(exact);
      if (o.optimizer.kind == optimizer_kind::adamw) continue;              // it makes steps of noise
      CHECK(distance(doubles(run(narrow_executor(s))), run(executor_of<double>(differentiate(g, o), with(serial_plan(g), o)))) < 0.03);
    }
}

TEST_CASE("sums over many numbers are kept in full: a gradient of 4096 equal terms, a loss of 4096 rows") {
  computation_graph g;
  int const x = g.add_input("x", {4096, 2});
  int const y = g.add_input("y", {4096, 1});
  int const v = g.add_with_weights(linear{1}, {x}, "head");
  int const l = g.add(mean_squared_error{}, {out(g, v), y});
  g.add_output("loss", out(g, l));
  training_options const o = options(optimizer_kind::sgd);
  narrow_executor a(differentiate(mixed_precision(g), o), with(serial_plan(mixed_precision(g)), o));
  executor_of<double> b(differentiate(g, o), with(serial_plan(g), o));
  host_batch batch{{"x", {shape{4096, 2}, std::vector<float>(8192, 1), {}}}, {"y", {shape{4096, 1}, std::vector<float>(4096, 0.5f), {}}}};
  for (auto* e : {&a}) e->initialise(1);
  b.initialise(1);
  for (std::size_t k = 0; k < a.graph().gradient.size(); ++k)            // the same weights, to the bit
    if (a.graph().graph.values[k].role == value_role::parameter) {
      auto const w = a.fetch(static_cast<int>(k));
      b.store(static_cast<int>(k), std::vector<double>(w.begin(), w.end()));
    }
  std::vector<std::vector<double>> before;
  for (std::size_t k = 0; k < b.graph().gradient.size(); ++k)
    before.push_back(b.graph().graph.values[k].role == value_role::parameter ? b.fetch(static_cast<int>(k)) : std::vector<double>{});
  double const la = a.step(batch, 0.25).loss, lb = b.step(batch, 0.25).loss;
  CHECK(std::abs(la - lb) < 0.01 * lb);
  int compared = 0;
  for (graph_node const& n : a.graph().graph.nodes) {
    if (!has_master(n.op)) continue;
    int const w = n.in[0];
    auto const master = a.fetch(n.in[n.out.size()]);
    auto const want = b.fetch(w), old = before[static_cast<std::size_t>(w)];
    for (std::size_t i = 0; i < want.size(); ++i, ++compared)              // how far it went is the gradient
      CHECK(static_cast<double>(master[i]) - old[i] == doctest::Approx(want[i] - old[i]).epsilon(0.01));
  }
  CHECK(compared == 3);
}

TEST_CASE("training in bf16 follows double, serial and under random plans, whose copies agree") {
  std::mt19937 draw(6);
  for (computation_graph const& g : {residual_mlp(), small_transformer()})
    for (int trial = 0; trial < test_effort::cases(6); ++trial) {
      training_options const o = in_bf16(options(static_cast<optimizer_kind>(trial % 2), 0, trial % 3 == 2 ? 2 : 1), trial / 2);
      plan const p = with(trial ? random_plan(mixed_precision(g), 1 + trial % 6, draw) : serial_plan(mixed_precision(g)), o);
      CAPTURE(trial);
      narrow_executor a(differentiate(mixed_precision(g), o), p);
      executor_of<double> b(differentiate(g, o), with(serial_plan(g), o));
      double const apart = distance(doubles(train(a, 4, 0.05)), train(b, 4, 0.05));
      CHECK(apart < 0.02);
      CHECK(apart > 0);
      CHECK(a.copies_agree());
      CHECK(a.allocated_bytes() == a.program().arena);
    }
}

TEST_CASE("many ranks in one memory move and add bf16 numbers too") {
  std::mt19937 draw(8);
  computation_graph const g = small_transformer();
  for (int trial = 0; trial < test_effort::cases(4); ++trial) {
    training_options const o = in_bf16(options(optimizer_kind::adamw, 0.5), trial);
    plan const p = with(random_plan(mixed_precision(g), 2 + trial, draw), o);
    executor<narrow_teams, comm::virtual_ranks<exec::host_memory>> a(differentiate(mixed_precision(g), o), p);
    narrow_executor b(differentiate(mixed_precision(g), o), p);
    CHECK(train(a, 2) == train(b, 2));
  }
}

TEST_CASE("updates too small for a bf16 weight add up in its master") {
  computation_graph g;
  int const x = g.add_input("x", {1, 1});
  int const y = g.add_input("y", {1, 1});
  int const w = g.add_parameter("w", {1, 1}, tensorpar::op::init::ones);
  int const v = g.add(contraction("bi,oi->bo"), {x, w});
  int const l = g.add(mean_squared_error{}, {out(g, v), y});
  g.add_output("loss", out(g, l));
  training_options const o = options(optimizer_kind::sgd);
  narrow_executor e(differentiate(mixed_precision(g), o), with(serial_plan(mixed_precision(g)), o));
  e.initialise(1);
  host_batch const batch{{"x", {shape{1, 1}, {1.0f}, {}}}, {"y", {shape{1, 1}, {2.0f}, {}}}};
  int const master = e.graph().graph.node(e.graph().graph.node_count() - 1).in[1 + 1];
  REQUIRE(e.graph().graph.value(master).name == "w.master");
  CHECK(e.fetch(master) == std::vector<float>{1});                       // starts as the weight does
  for (int k = 0; k < 3; ++k) {
    e.step(batch, 0.0005);           // the gradient is -2: a step of 0.001, where 2^-7 is the next number
    CHECK(e.fetch(w) == std::vector<float>{1});
  }
  CHECK(e.fetch(master)[0] == doctest::Approx(1.003));
  for (int k = 0; k < 3; ++k) e.step(batch, 0.0005);
  CHECK(e.fetch(w) == std::vector<float>{1.0078125f});
}

TEST_CASE("updates too small for a weight without a master add up on average, by draws that no sharding changes") {
  constexpr int wide = 512;
  computation_graph g;
  int const x = g.add_input("x", {4, wide});
  int const y = g.add_input("y", {4, wide});
  int const w = g.add_parameter("w", {wide}, tensorpar::op::init::ones);
  int const l = g.add(mean_squared_error{}, {out(g, g.add(contraction("bi,i->bi"), {x, w})), y});
  g.add_output("loss", out(g, l));
  computation_graph const half = mixed_precision(g);
  training_options const o = in_bf16(options(optimizer_kind::sgd), 4);
  host_batch const batch{{"x", {shape{4, wide}, std::vector<float>(4 * wide, 1.0f), {}}}, {"y", {shape{4, wide}, std::vector<float>(4 * wide, 2.0f), {}}}};
  auto const trained = [&](plan const& p, u64 seed) {
    narrow_executor e(differentiate(half, o), with(p, o));
    for (graph_value const& v : e.graph().graph.values) CHECK(v.role != value_role::state);
    e.initialise(seed);
    for (int k = 0; k < 3; ++k) e.step(batch, 0.0005 * wide);              // a gradient of -2 / wide: a step of 0.001
    CHECK(e.copies_agree());
    return e.fetch(w);
  };
  std::vector<float> const once = trained(serial_plan(half), 1);
  double sum = 0;
  for (float v : once) {
    CHECK((v == 1 || v == 1.0078125f || v == 1.015625f || v == 1.0234375f));     // at most three times up
    sum += static_cast<double>(v);
  }
  CHECK(sum / wide == doctest::Approx(1.003).epsilon(0.0006));             // 1.003 +- 0.0002 by chance
  CHECK(std::set<float>(once.begin(), once.end()).size() > 1);
  CHECK(trained(serial_plan(half), 2) != once);
  std::mt19937 draw(8);
  for (int trial = 0; trial < test_effort::cases(6); ++trial) {
    plan p = random_plan(half, 2 + trial % 3, draw);
    for (op_strategy& c : p.nodes) c.zero = static_cast<ir::zero_stage>(draw() % 2);
    planned_step const s = passes::memory_pass(differentiate(half, o), with(p, o));
    narrow_executor e(s);
    e.initialise(1);
    for (int k = 0; k < 3; ++k) e.step(batch, 0.0005 * wide);
    CHECK(e.fetch(w) == once);
    CHECK(e.copies_agree());
  }
}

TEST_CASE("a skipped update leaves weights without masters as they are, to the bit") {
  computation_graph const g = mixed_precision(residual_mlp());
  training_options o = in_bf16(options(optimizer_kind::adamw), 7);
  o.optimizer.on_non_finite = non_finite::skip;
  narrow_executor e(differentiate(g, o), with(serial_plan(g), o));
  e.initialise(3);
  e.step(random_batch(g, 1, 1), 0.01);
  auto const before = parameters_of(e);
  host_batch bad = random_batch(g, 1, 2);
  for (auto& [name, t] : bad) if (!t.real.empty()) t.real[0] = NAN;
  CHECK(!std::isfinite(e.step(bad, 0.01).loss));
  CHECK(parameters_of(e) == before);
}

TEST_CASE("training without masters follows double in steps that bf16 can make") {
  for (computation_graph const& g : {residual_mlp(), small_transformer()})
    for (int k : {4, 5, 7}) {
      CAPTURE(k);
      training_options const o = in_bf16(options(optimizer_kind::momentum), k), full = options(optimizer_kind::momentum);
      narrow_executor a(differentiate(mixed_precision(g), o), with(serial_plan(mixed_precision(g)), o));
      executor_of<double> b(differentiate(g, full), with(serial_plan(g), full));
      CHECK(distance(doubles(train(a, 4, 0.05)), train(b, 4, 0.05)) < 0.05);
      CHECK(a.allocated_bytes() == a.program().arena);
    }
}

TEST_CASE("a checkpoint keeps weights and masters, to the bit, for another plan too") {
  std::mt19937 draw(4);
  computation_graph const g = mixed_precision(residual_mlp());
  for (int k = 0; k < 8; ++k) {
    training_options const o = in_bf16(options(optimizer_kind::adamw), k);
    training_graph const t = differentiate(g, o);
    narrow_executor a(t, with(random_plan(g, 3, draw), o)), b(t, with(random_plan(g, 2, draw), o));
    train(a, 3);
    scratch_folder const folder;
    save_checkpoint(a, folder.path());
    b.initialise(99);
    load_checkpoint(b, folder.path());
    for (std::size_t x = 0; x < t.graph.values.size(); ++x)
      if (auto const r = t.graph.values[x].role; r == value_role::parameter || r == value_role::state)
        CHECK(a.fetch(static_cast<int>(x)) == b.fetch(static_cast<int>(x)));
  }
}

TEST_CASE("a checkpoint's moments go to a run that keeps them in another format, rounded or as they are") {
  computation_graph const g = mixed_precision(residual_mlp());
  for (int k : {0, 1}) {
    training_options const from = in_bf16(options(optimizer_kind::adamw), k), to = in_bf16(options(optimizer_kind::adamw), 1 - k);
    narrow_executor a(differentiate(g, from), with(serial_plan(g), from)), b(differentiate(g, to), with(serial_plan(g), to));
    train(a, 3);
    scratch_folder const folder;
    save_checkpoint(a, folder.path());
    load_checkpoint(b, folder.path());
    int compared = 0;
    for (graph_value const& v : a.graph().graph.values) {
      if (v.role != value_role::state) continue;
      int const x = static_cast<int>(&v - a.graph().graph.values.data());
      std::vector<float> want = a.fetch(x);
      if (b.graph().graph.type(x).type == dtype::bf16) for (float& e : want) e = bfloat16(e);
      CHECK(b.fetch(x) == want);
      ++compared;
    }
    CHECK(compared > 9);
  }
}

TEST_CASE("moments in bf16 follow those in f32, but stand still where a number changes by less than 1/512") {
  computation_graph g;
  int const x = g.add_input("x", {1, 1});
  int const y = g.add_input("y", {1, 1});
  int const w = g.add_parameter("w", {1, 1}, tensorpar::op::init::ones);
  int const l = g.add(mean_squared_error{}, {out(g, g.add(contraction("bi,oi->bo"), {x, w})), y});
  g.add_output("loss", out(g, l));
  computation_graph const half = mixed_precision(g);
  host_batch const batch{{"x", {shape{1, 1}, {1.0f}, {}}}, {"y", {shape{1, 1}, {2.0f}, {}}}};        // a gradient of -2
  auto const second = [&](double beta2, int k) {
    training_options o = in_bf16(options(optimizer_kind::adamw), k);
    o.optimizer.beta2 = beta2;
    narrow_executor e(differentiate(half, o), with(serial_plan(half), o));
    e.initialise(1);
    for (int n = 0; n < 2000; ++n) e.step(batch, 0);
    int state = -1;
    for (std::size_t v = 0; v < half.values.size() + 20 && state < 0; ++v)
      if (e.graph().graph.values[v].name == "w.v") state = static_cast<int>(v);
    CHECK(e.graph().graph.type(state).type == (k & 1 ? dtype::bf16 : dtype::f32));
    return static_cast<double>(e.fetch(state)[0]);
  };
  CHECK(second(0.95, 0) == doctest::Approx(4).epsilon(0.001));
  CHECK(second(0.95, 1) == doctest::Approx(4).epsilon(0.05));
  CHECK(second(0.999, 0) == doctest::Approx(4 * (1 - std::pow(0.999, 2000))).epsilon(0.001));
  CHECK(second(0.999, 1) < 0.5 * second(0.999, 0));
}

TEST_CASE("weights from elsewhere reach their masters, and what was fetched changes nothing when it is stored") {
  std::mt19937 draw(6);
  computation_graph const plain = residual_mlp(), g = mixed_precision(plain);
  training_options const o = options(optimizer_kind::adamw);
  host_batch const batch = random_batch(g, 1, 1);
  executor_of<float> trained(differentiate(plain, o), with(serial_plan(plain), o));
  train(trained, 4, 0.01);
  auto const check = [&](auto&& run) {
    using scalar = typename std::remove_cvref_t<decltype(run)>::scalar;
    training_graph const& t = run.graph();
    std::vector<int> const master = exec::detail::masters_of(t.graph);
    auto const of_role = [&](value_role r) {
      std::vector<std::vector<scalar>> all;
      for (int x = 0; x < static_cast<int>(t.graph.values.size()); ++x) if (t.graph.value(x).role == r) all.push_back(run.fetch(x));
      return all;
    };
    run.initialise(7);
    run.step(batch, 0.01);
    auto const weights = parameters_of(run), states = of_role(value_role::state);
    for (int x = 0, k = 0; x < static_cast<int>(t.gradient.size()); ++x)
      if (t.graph.value(x).role == value_role::parameter) run.store(x, weights[static_cast<std::size_t>(k++)]);
    CHECK(parameters_of(run) == weights);
    CHECK(of_role(value_role::state) == states);                            // masters are finer than what was fetched
    for (int x = 0; x < static_cast<int>(t.gradient.size()); ++x)
      if (t.graph.value(x).role == value_role::parameter) {
        auto const w = trained.fetch(x);
        run.store(x, std::vector<scalar>(w.begin(), w.end()));
        CHECK(run.fetch(master[static_cast<std::size_t>(x)]) == std::vector<scalar>(w.begin(), w.end()));
      }
    auto const stored = parameters_of(run);
    run.step(batch, 0);
    CHECK(parameters_of(run) == stored);                                    // an update writes masters, rounded: the same
  };
  check(narrow_executor(differentiate(g, o), with(random_plan(g, 4, draw), o)));
  check(executor_of<double>(differentiate(g, o), with(random_plan(g, 3, draw), o)));
  plan saving = with(random_plan(g, 4, draw), o);
  for (op_strategy& c : saving.nodes) c.zero = ir::zero_stage::updates;
  check(narrow_executor(differentiate(g, o), saving));
}

TEST_CASE("evaluation takes the parameters of a trained executor, narrow ones and full ones") {
  computation_graph const g = residual_mlp();
  training_options const o = options(optimizer_kind::sgd);
  narrow_executor e(differentiate(mixed_precision(g), o), with(serial_plan(mixed_precision(g)), o));
  train(e, 2);
  forward_pass<narrow_teams> a(mixed_precision(g));
  forward_pass<compute::eigen<double>> b(g);
  a.take_parameters(e);
  executor_of<double> full(differentiate(g, o), with(serial_plan(g), o));
  for (std::size_t x = 0; x < g.values.size(); ++x)
    if (g.values[x].role == value_role::parameter) {
      auto const w = e.fetch(static_cast<int>(x));
      full.store(static_cast<int>(x), std::vector<double>(w.begin(), w.end()));
    }
  b.take_parameters(full);
  host_batch const batch = random_batch(g, 1, 3);
  a.run(batch);
  b.run(batch);
  CHECK(static_cast<double>(a.output("loss")[0]) == doctest::Approx(b.output("loss")[0]).epsilon(0.02));
}

TEST_CASE("who cannot compute with two bytes says so, and names the operator") {
  computation_graph const g = mixed_precision(residual_mlp());
  auto const refusal = [](auto&& call) -> std::string {
    try { call(); } catch (error const& e) { return e.what(); }
    return {};
  };
  training_graph const t = differentiate(g, {});
  std::string const eigen = refusal([&] { executor<compute::eigen<float>, comm::threads>(t, serial_plan(g)); });
  CHECK(eigen.find("linear") != std::string::npos);
  CHECK(eigen.find("bf16") != std::string::npos);
  CHECK(eigen.find("bfloat16") != std::string::npos);
  CHECK(refusal([&] { forward_pass<compute::eigen<float>>{g}; }).find("forward_pass") != std::string::npos);
  computation_graph h;
  int const q = h.add_input("q", {2, 3, 8}), k = h.add_input("k", {2, 2, 4, 8});
  h.add_output("y", out(h, h.add(tensorpar::op::attention_finish{2}, {out(h, h.add(tensorpar::op::attention_parts{2}, {q, k, k}))})));
  CHECK(refusal([&] { forward_pass<narrow_teams>{mixed_precision(h)}; }).find("attention_parts") != std::string::npos);
  computation_graph mixed;
  int const m = mixed.add_input("m", {4, 2});
  int const c = out(mixed, mixed.add(constant{1.5, 2, {4, 2}}, {}));
  mixed.add_output("loss", out(mixed, mixed.add(mean_squared_error{}, {m, c})));
  std::string const two = refusal([&] { mixed_precision(mixed); });
  CHECK(two.find("mean_squared_error") != std::string::npos);
  CHECK(two.find("operand 1") != std::string::npos);
  mixed.value(m).type.type = dtype::bf16;
  CHECK(refusal([&] { forward_pass<narrow_teams>{mixed}; }).find("operand 1") != std::string::npos);
  computation_graph f = residual_mlp();
  for (graph_value& v : f.values) if (v.type.type == dtype::f32) v.type.type = dtype::f16;
  CHECK(refusal([&] { forward_pass<narrow_teams>{f}; }).find("f16") != std::string::npos);
}
