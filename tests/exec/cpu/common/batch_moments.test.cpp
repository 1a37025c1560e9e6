// tests/exec/cpu/common/batch_moments.test.cpp - batch norm evaluated with statistics of many batches, exactly and against a serial oracle
#include <tensorpar/exec/cpu/common/batch_moments.hpp>

#include <cmath>
#include <doctest/doctest.h>
#include <tensorpar/exec/files/parameters_file.hpp>
#include <tensorpar/exec/forward_pass.hpp>
#include <tensorpar/exec/teams/teams.hpp>
#include <tensorpar/ir/mixed_precision.hpp>
#include <tensorpar/program/passes/pipeline_pass.hpp>

#include "support/effort.hpp"
#include "support/normalised.hpp"
#include "support/random_pipeline.hpp"
#include "support/scratch_folder.hpp"
#include "support/spine.hpp"
#include "support/teams_once.hpp"

using namespace tests;

namespace {

template <class S> using pass_of = forward_pass<compute::eigen<S>>;

/// Samples first, first + 1, ... of a batch.
host_batch cut(host_batch const& all, i64 first, i64 n) {
  host_batch r;
  for (auto const& [name, t] : all) {
    host_tensor u;
    u.shape = t.shape;
    u.shape.d[0].n = n;
    i64 const each = t.shape.elements() / t.shape.d[0].n;
    if (is_integer(t.shape.type)) u.index.assign(t.index.begin() + first * each, t.index.begin() + (first + n) * each);
    else u.real.assign(t.real.begin() + first * each, t.real.begin() + (first + n) * each);
    r[name] = std::move(u);
  }
  return r;
}
/// Sizes that add up to n.
std::vector<i64> random_sizes(i64 n, std::mt19937& draw) {
  std::vector<i64> r;
  for (; n > 0; n -= r.back()) r.push_back(1 + static_cast<i64>(draw() % static_cast<u64>(std::min<i64>(n, 5))));
  return r;
}
/// All parameters but statistics, drawn by name: the same at every batch size.
template <class Run> void give_weights(Run& run, unsigned seed) {
  computation_graph const& g = run.graph().graph;
  for (std::size_t x = 0; x < g.values.size(); ++x) {
    graph_value const& v = g.values[x];
    if (v.role != value_role::parameter || v.name.ends_with(".moments")) continue;
    std::mt19937_64 draw(tensorpar::core::hasher().add(std::string_view(v.name)).add(seed).value());
    std::vector<typename Run::scalar> all;
    for (i64 i = 0; i < v.type.elements(); ++i)
      all.push_back(tensorpar::exec::scalar_traits<typename Run::scalar>::from_double((static_cast<double>(draw() % 33) - 16) / 16));
    run.store(static_cast<int>(x), all);
  }
}
/// The pass of this network whose statistics are those of the batch, cut into these sizes.
template <class S> pass_of<S> kept_pass(unsigned seed, bool first_only, i64 batch, host_batch const& all, std::vector<i64> const& sizes) {
  tensorpar::exec::batch_moments<S> moments;
  i64 first = 0;
  for (i64 n : sizes) {
    pass_of<S> pass(tensorpar::ir::with_moments_as_outputs(normalised_net(n, seed, first_only)));
    give_weights(pass, seed);
    pass.run(cut(all, first, n));
    moments.add(pass);
    first += n;
  }
  pass_of<S> kept(tensorpar::ir::with_running_statistics(normalised_net(batch, seed, first_only)));
  give_weights(kept, seed);
  moments.store(kept);
  return kept;
}
bool near(std::vector<double> const& a, std::vector<double> const& b, double bound) {
  double most = 1e-300, diff = a.size() == b.size() ? 0 : 1e300;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    most = std::max(most, std::fabs(b[i]));
    diff = std::fabs(a[i] - b[i]) <= 1e300 ? std::max(diff, std::fabs(a[i] - b[i])) : 1e300;
  }
  return diff <= bound * most;
}
template <class S> std::vector<double> doubles(std::vector<S> const& x) { return {x.begin(), x.end()}; }
std::string refusal(auto const& call) {
  try { call(); } catch (error const& e) { return e.what(); }
  return {};
}
bool has(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("with the statistics of one batch it computes on that batch what the plain pass does, exactly") {
  int norms = 0;
  for (unsigned seed = 0; seed < static_cast<unsigned>(test_effort::cases(40)); ++seed) {
    CAPTURE(seed);
    i64 const n = 1 + seed % 6;
    computation_graph const g = normalised_net(n, seed);
    host_batch const all = random_batch(g, 1, seed);
    pass_of<prime_field> plain(g), kept = kept_pass<prime_field>(seed, false, n, all, {n});
    give_weights(plain, seed);
    plain.run(all);
    kept.run(all);
    bool const exact = kept.output("y") == plain.output("y") && kept.output("loss") == plain.output("loss");
    CHECK(exact);
    norms += static_cast<int>(tensorpar::ir::detail::moments_taken(g).size());
  }
  CHECK(norms > test_effort::cases(40));
}

TEST_CASE("statistics of what no other sample changes are those of all samples, however they are cut, exactly") {
  std::mt19937 draw(31);
  for (unsigned seed = 0; seed < static_cast<unsigned>(test_effort::cases(30)); ++seed) {
    CAPTURE(seed);
    i64 const n = 2 + seed % 12;
    computation_graph const g = normalised_net(n, seed, true);
    host_batch const all = random_batch(g, 1, seed);
    pass_of<prime_field> plain(g), kept = kept_pass<prime_field>(seed, true, n, all, random_sizes(n, draw));
    give_weights(plain, seed);
    plain.run(all);
    kept.run(all);
    bool const exact = kept.output("y") == plain.output("y") && kept.output("loss") == plain.output("loss");
    CHECK(exact);
  }
}

TEST_CASE("a sample's result depends on no other sample, and on no batch size, exactly") {
  std::mt19937 draw(32);
  for (unsigned seed = 0; seed < static_cast<unsigned>(test_effort::cases(30)); ++seed) {
    CAPTURE(seed);
    i64 const n = 2 + seed % 7;
    host_batch const all = random_batch(normalised_net(n, seed), 1, seed);
    std::vector<i64> const sizes = random_sizes(n, draw);
    pass_of<prime_field> whole = kept_pass<prime_field>(seed, false, n, all, sizes);
    whole.run(all);
    std::vector<prime_field> pieces;
    i64 first = 0;
    for (i64 k : random_sizes(n, draw)) {
      pass_of<prime_field> part = kept_pass<prime_field>(seed, false, k, all, sizes);
      part.run(cut(all, first, k));
      auto const y = part.output("y");
      pieces.insert(pieces.end(), y.begin(), y.end());
      first += k;
    }
    bool const exact = pieces == whole.output("y");
    CHECK(exact);
  }
}

namespace {

/// Two batch norms with a function between them; in double by hand, sample by sample. Statistics are those of every batch while they are
/// gathered, and the means of all while they are used.
struct two_norms {
  i64 c, h, w;
  double eps1 = 1e-5, eps2 = 1e-3;
  std::vector<double> gamma1, beta1, gamma2, beta2;

  computation_graph graph(i64 n) const {
    computation_graph g;
    int const x = g.add_input("x", {n, c, h, w}), m1 = out(g, g.add(tensorpar::op::channel_moments{}, {x}));
    int const a = out(g, g.add_with_weights(tensorpar::op::normalize{eps1}, {x, m1}, "first")), t = out(g, g.add(tanh_{}, {a}, "between"));
    int const m2 = out(g, g.add(tensorpar::op::channel_moments{}, {t}));
    g.add_output("y", out(g, g.add_with_weights(tensorpar::op::normalize{eps2}, {t, m2}, "second")));
    return g;
  }
  template <class Run> void give(Run& run) const {
    computation_graph const& g = run.graph().graph;
    for (std::size_t x = 0; x < g.values.size(); ++x)
      for (auto const& [name, all] : {std::pair("first.0", &gamma1), {"first.1", &beta1}, {"second.0", &gamma2}, {"second.1", &beta2}})
        if (g.values[x].name == name) run.store(static_cast<int>(x), std::vector<typename Run::scalar>(all->begin(), all->end()));
  }
  std::size_t channel(std::size_t i) const { return i / static_cast<std::size_t>(h * w) % static_cast<std::size_t>(c); }
  /// Mean and variance of every channel, in two passes over all numbers.
  std::vector<std::pair<double, double>> statistics(std::vector<double> const& x) const {
    std::vector<std::pair<double, double>> r(static_cast<std::size_t>(c));
    double const count = static_cast<double>(x.size()) / static_cast<double>(c);
    for (std::size_t i = 0; i < x.size(); ++i) r[channel(i)].first += x[i] / count;
    for (std::size_t i = 0; i < x.size(); ++i) r[channel(i)].second += std::pow(x[i] - r[channel(i)].first, 2) / count;
    return r;
  }
  std::vector<double> normalised(std::vector<double> x, std::vector<std::pair<double, double>> const& s, double eps,
                                 std::vector<double> const& gamma, std::vector<double> const& beta) const {
    for (std::size_t i = 0; i < x.size(); ++i) {
      auto const [mean, variance] = s[channel(i)];
      x[i] = (x[i] - mean) / std::sqrt(variance + eps) * gamma[channel(i)] + beta[channel(i)];
    }
    return x;
  }
  std::vector<double> between(std::vector<double> const& x, std::vector<std::pair<double, double>> const& s) const {
    std::vector<double> y = normalised(x, s, eps1, gamma1, beta1);
    for (double& e : y) e = std::tanh(e);
    return y;
  }
  /// What `x` gives with the statistics of the batches.
  std::vector<double> evaluated(std::vector<double> const& x, std::vector<std::vector<double>> const& batches) const {
    std::vector<double> first, second;
    for (std::vector<double> const& b : batches) {
      std::vector<double> const t = between(b, statistics(b));
      first.insert(first.end(), b.begin(), b.end());
      second.insert(second.end(), t.begin(), t.end());
    }
    return normalised(between(x, statistics(first)), statistics(second), eps2, gamma2, beta2);
  }
};

two_norms random_norms(std::mt19937& draw) {
  auto const size = [&] { return 1 + static_cast<i64>(draw() % 4); };
  two_norms r{size(), size(), size(), 1e-5, 1e-3, {}, {}, {}, {}};
  auto const real = [&] { return (static_cast<double>(draw() % 33) - 16) / 16; };
  for (i64 i = 0; i < r.c; ++i)
    for (auto* all : {&r.gamma1, &r.beta1, &r.gamma2, &r.beta2}) all->push_back(real());
  return r;
}
template <class S, class Pass> void against_oracle(int trials, double bound) {
  std::mt19937 draw(33);
  for (int trial = 0; trial < trials; ++trial) {
    CAPTURE(trial);
    two_norms const net = random_norms(draw);
    tensorpar::exec::batch_moments<S> moments;
    std::vector<std::vector<double>> batches;
    for (int k = 0, n = 1 + static_cast<int>(draw() % 4); k < n; ++k) {
      i64 const size = 2 + static_cast<i64>(draw() % 5);
      Pass pass(tensorpar::ir::with_moments_as_outputs(net.graph(size)));
      net.give(pass);
      host_batch const batch = random_batch(net.graph(size), 1, draw());
      pass.run(batch);
      moments.add(pass);
      batches.push_back(doubles(batch.at("x").real));
    }
    i64 const size = 1 + static_cast<i64>(draw() % 5);
    Pass kept(tensorpar::ir::with_running_statistics(net.graph(size)));
    net.give(kept);
    moments.store(kept);
    host_batch const batch = random_batch(net.graph(size), 1, draw());
    kept.run(batch);
    CHECK(near(doubles(kept.output("y")), net.evaluated(doubles(batch.at("x").real), batches), bound));
  }
}

}  // namespace

TEST_CASE("a serial oracle: mean and variance over all samples, normalised by hand, batches of different sizes") {
  against_oracle<double, pass_of<double>>(test_effort::cases(60), 1e-9);
  against_oracle<float, pass_of<float>>(test_effort::cases(60), 1e-3);
}

TEST_CASE("a graph in bf16 keeps its statistics in float") {
  using narrow_pass = forward_pass<compute::teams<float, tensorpar::exec::host_teams<>, tensorpar::op::op_set<>, bfloat16>>;
  for (unsigned seed : {1u, 2u, 3u}) {
    CAPTURE(seed);
    computation_graph const g = normalised_net(6, seed, true);
    host_batch const all = random_batch(g, 1, seed);
    narrow_pass pass(tensorpar::ir::with_moments_as_outputs(mixed_precision(g))),
        kept(tensorpar::ir::with_running_statistics(mixed_precision(g)));
    give_weights(pass, seed);
    tensorpar::exec::batch_moments<float> moments;
    pass.run(all);
    moments.add(pass);
    moments.store(kept);
    kept.take_parameters(pass);
    kept.run(all);
    CHECK(near(doubles(kept.output("y")), doubles(pass.output("y")), 0.02));
  }
}

TEST_CASE("under a plan: micro-batches and shardings give what one device gathers of each micro-batch, exactly") {
  std::mt19937 draw(34);
  for (unsigned seed = 0; seed < static_cast<unsigned>(test_effort::cases(16)); ++seed) {
    CAPTURE(seed);
    i64 const n = i64{1} << (1 + seed % 3);
    computation_graph const g = tensorpar::ir::with_moments_as_outputs(normalised_net(n, seed));
    training_options o;
    o.micro_batches = 1 + static_cast<int>(seed % 3);
    plan p = random_plan(g, 1 + static_cast<int>(seed % 4), draw);
    p.micro_batches = o.micro_batches;
    if (seed % 2) for (op_strategy& c : p.nodes) c = {c.sharding, static_cast<tensorpar::ir::zero_stage>(draw() % 4), draw() % 2 == 0};
    executor_of<prime_field> run(differentiate(g, o), p);
    give_weights(run, seed);
    pass_of<prime_field> pass(g);
    pass.take_parameters(run);
    tensorpar::exec::batch_moments<prime_field> planned, serial;
    for (u64 k = 0; k < 2; ++k) {
      host_batch const batch = random_batch(g, o.micro_batches, k);
      planned.add(run, run.evaluate(batch, tensorpar::ir::moments_in(run.graph().graph)));
      for (int m = 0; m < o.micro_batches; ++m) {
        pass.run(cut(batch, m * n, n));
        serial.add(pass);
      }
    }
    bool const exact = planned.means() == serial.means();
    CHECK(exact);
    pass_of<prime_field> kept(tensorpar::ir::with_running_statistics(normalised_net(n, seed)));
    planned.store(kept);
    kept.take_parameters(run);
    CHECK(kept.has_values());
  }
}

TEST_CASE("pipelines, whose stages have micro-batches of their own sizes") {
  std::mt19937 draw(35);
  for (unsigned seed = 0; seed < static_cast<unsigned>(test_effort::cases(10)); ++seed) {
    CAPTURE(seed);
    computation_graph const g = tensorpar::ir::with_moments_as_outputs(normalised_net(4, seed, true));
    plan const p = random_pipeline(g, {.devices = 2 + static_cast<int>(seed % 3)}, 1, 4, draw);
    executor_of<prime_field> run(tensorpar::passes::pipeline_pass(g, p));
    give_weights(run, seed);
    host_batch const batch = random_batch(g, 4, seed);
    pass_of<prime_field> pass(tensorpar::ir::with_moments_as_outputs(normalised_net(16, seed, true)));
    pass.take_parameters(run);
    pass.run(batch);
    tensorpar::exec::batch_moments<prime_field> planned, serial;
    planned.add(run, run.evaluate(batch, tensorpar::ir::moments_in(run.graph().graph)));
    serial.add(pass);
    bool const exact = planned.means() == serial.means();
    CHECK(exact);
  }
}

TEST_CASE("weights and statistics in one file, for a pass of any batch size, and the weights of it for a plain one") {
  scratch_folder const folder;
  std::string const path = folder / "both.safetensors";
  unsigned const seed = 5;
  host_batch const all = random_batch(normalised_net(9, seed), 1, seed);
  pass_of<float> kept = kept_pass<float>(seed, false, 9, all, {4, 3, 2});
  save_parameters(kept, path);
  kept.run(all);
  pass_of<float> served(tensorpar::ir::with_running_statistics(normalised_net(9, seed))),
      single(tensorpar::ir::with_running_statistics(normalised_net(1, seed)));
  load_parameters(served, path);
  served.run(all);
  CHECK(served.output("y") == kept.output("y"));
  load_parameters(single, path);
  single.run(cut(all, 3, 1));
  std::size_t const each = single.output("y").size();
  std::vector<float> const y = kept.output("y");
  CHECK(near(doubles(single.output("y")),
             doubles(std::vector<float>(y.begin() + 3 * static_cast<i64>(each), y.begin() + 4 * static_cast<i64>(each))),
             1e-5));
  pass_of<float> plain(normalised_net(9, seed)), given(normalised_net(9, seed));
  CHECK(has(refusal([&] { load_parameters(plain, path); }), "a tensor that the model does not have"));
  load_parameters(plain, path, [](std::string const& parameter) { return parameter; });
  give_weights(given, seed);
  plain.run(all);
  given.run(all);
  CHECK(plain.output("y") == given.output("y"));
}

TEST_CASE("a model without batch norm has no statistics, and is evaluated as it was") {
  computation_graph const g = residual_mlp();
  executor_of<double> run(differentiate(g), serial_plan(g));
  run.initialise(1);
  pass_of<double> pass(tensorpar::ir::with_moments_as_outputs(g)), kept(tensorpar::ir::with_running_statistics(g));
  pass.take_parameters(run);
  kept.take_parameters(run);
  host_batch const batch = random_batch(g, 1, 1);
  pass.run(batch);
  tensorpar::exec::batch_moments<double> moments;
  moments.add(pass);
  CHECK(moments.means().empty());
  moments.store(kept);
  kept.run(batch);
  CHECK(kept.output("loss") == pass.output("loss"));
}

TEST_CASE("parameters are taken from the trained model; statistics are kept, once they are there") {
  computation_graph const g = small_cnn();
  executor_of<double> run(differentiate(g), serial_plan(g));
  run.initialise(1);
  pass_of<double> kept(tensorpar::ir::with_running_statistics(g)), pass(tensorpar::ir::with_moments_as_outputs(g));
  CHECK(refusal([&] { kept.take_parameters(run); }) ==
        "the trained model has no parameter 'norm.moments' (at forward_pass); valid: statistics that were stored here before: "
        "batch_moments or load_parameters");
  CHECK(has(refusal([&] { kept.run(random_batch(g, 1, 1)); }), "'norm.moments' has no values yet"));
  pass.take_parameters(run);
  pass.run(random_batch(g, 1, 1));
  tensorpar::exec::batch_moments<double> moments;
  moments.add(pass);
  moments.store(kept);
  kept.take_parameters(run);
  kept.run(random_batch(g, 1, 1));
  CHECK(near(kept.output("loss"), pass.output("loss"), 1e-12));
  auto const first = moments.means();
  run.step(random_batch(g, 1, 2), 0.1);
  kept.take_parameters(run);                               // new weights, the same statistics
  int const x = tensorpar::ir::detail::running_statistics_of(kept.graph().graph, kept.graph().graph.node(2));
  REQUIRE(x >= 0);
  CHECK(kept.fetch(x) == first.at("norm.moments"));
  pass_of<double> other(tensorpar::ir::with_running_statistics(g));
  other.take_parameters(kept);                             // of a pass that has them
  CHECK(other.fetch(x) == first.at("norm.moments"));
}

TEST_CASE("weights that the trained model lacks are an error, also where others were there before") {
  computation_graph const g = residual_mlp();
  computation_graph renamed = g;
  for (graph_value& v : renamed.values) if (v.role == value_role::parameter) v.name += ".new";
  executor_of<double> run(differentiate(g), serial_plan(g)), other(differentiate(renamed), serial_plan(renamed));
  run.initialise(1);
  other.initialise(2);
  pass_of<double> pass(g);
  pass.take_parameters(run);
  CHECK(has(refusal([&] { pass.take_parameters(other); }), "the trained model has no parameter"));
}

TEST_CASE("what does not fit is named, and nothing is added or stored") {
  computation_graph const g = small_cnn();
  pass_of<double> plain(g), pass(tensorpar::ir::with_moments_as_outputs(g)), kept(tensorpar::ir::with_running_statistics(g));
  give_weights(plain, 1);
  give_weights(pass, 1);
  host_batch const batch = random_batch(g, 1, 1);
  plain.run(batch);
  tensorpar::exec::batch_moments<double> moments;
  CHECK(refusal([&] { moments.store(kept); }) ==
        "no batch has been added (at batch_moments); valid: add, after a pass, for one batch or more");
  CHECK(has(refusal([&] { moments.add(pass); }), "has no values yet"));
  CHECK(refusal([&] { moments.add(plain); }) ==
        "a batch norm's statistics, 'norm.moments', are no output (at batch_moments); valid: a graph made by with_moments_as_outputs");
  CHECK(has(refusal([&] { moments.store(kept); }), "no batch has been added"));
  pass.run(batch);
  moments.add(pass);
  auto const before = moments.means();
  CHECK(has(refusal([&] { moments.add(pass, {}); }),
            "output 'norm.moments' has 0 elements (at batch_moments); valid: 16, or as many for each"));
  CHECK(has(refusal([&] { moments.add(pass, {{"norm.moments", std::vector<double>(17)}}); }), "output 'norm.moments' has 17 elements"));
  two_norms net{2, 2, 2, 1e-5, 1e-3, {1, 1}, {0, 0}, {1, 1}, {0, 0}};
  pass_of<double> other(tensorpar::ir::with_moments_as_outputs(net.graph(2))),
      other_kept(tensorpar::ir::with_running_statistics(net.graph(2)));
  net.give(other);
  other.run(random_batch(net.graph(2), 1, 1));
  CHECK(has(refusal([&] { moments.add(other); }), "batch norms that differ from those before"));
  CHECK(moments.means() == before);
  CHECK(has(refusal([&] { moments.store(plain); }),
            "the model keeps no 'norm.moments' (at batch_moments); valid: a graph made by with_running_statistics"));
  CHECK(has(refusal([&] { moments.store(other_kept); }), "the model keeps no 'norm.moments'"));
  tensorpar::exec::batch_moments<double> none;                              // a batch of a model without batch norm
  pass_of<double> mlp(residual_mlp());
  give_weights(mlp, 1);
  mlp.run(random_batch(residual_mlp(), 1, 1));
  none.add(mlp);
  CHECK(has(refusal([&] { none.store(kept); }), "there is no 'norm.moments' of this size (at batch_moments); valid: [2,8]"));
  CHECK(has(refusal([&] { kept.run(batch); }), "has no values yet"));
  moments.store(kept);
}

TEST_CASE("sums of many batches are added up in double: float would stop counting") {
  two_norms const net{1, 1, 1, 1e-5, 1e-3, {1}, {0}, {1}, {0}};
  pass_of<float> pass(tensorpar::ir::with_moments_as_outputs(net.graph(2)));
  net.give(pass);
  tensorpar::exec::batch_moments<float> moments;
  std::map<std::string, std::vector<float>> found{{"first.moments", {16777216.0f, 16777216.0f}}, {"second.moments", {2, 2}}};
  moments.add(pass, found);
  found["first.moments"] = {1, 3};
  for (int k = 0; k < 1023; ++k) moments.add(pass, found);
  CHECK(moments.means().at("first.moments") == std::vector<double>{(16777216.0 + 1023) / 2048, (16777216.0 + 3069) / 2048});
  CHECK(moments.means().at("second.moments") == std::vector<double>{1, 1});
}
