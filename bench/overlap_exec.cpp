// bench/overlap_exec.cpp - plans for steps in which computing and communicating overlap, against plans for steps in which they do not:
// predicted, and measured on paced devices and links; and a plan over links of two levels, in one lane or a lane for each
#include "../examples/standard_output.hpp"
#include "paced_models.hpp"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/exec/comm/paced.hpp>
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/cpu/eigen.hpp>
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/ir/rebatch.hpp>
#include <tensorpar/search/degrees/configured.hpp>
#include <tensorpar/search/intra/optimize.hpp>
#include <tensorpar/search/overlapped.hpp>
#include <tensorpar/search/phase_options.hpp>
#include <tensorpar/search/plan_training.hpp>
#include <tensorpar/zoo/classic.hpp>
#include <tensorpar/zoo/gpt.hpp>
#include <utility>

using namespace tensorpar;

namespace {

// Devices are so slow that two cores do the work of four of them in less time than it takes these, which sleep the rest.
device_kind const kind{"paced", 1e8, 1e12, i64{1} << 40, 2e-4};
cost::link_cost link{2e-4, 2.5e6};
/// How many times as long everything takes: the longer, the less does it matter how late a thread wakes up.
double slowness = 2;

double pace(op::any_op const& o, shapes in, shapes out) {
  return slowness * cost::analytical{cost::measured_rates}.seconds(cost::compute_query{o, in, out, 4, kind});
}
double link_seconds(ir::reshard_kind k, i64 members, double bytes) {
  using enum ir::reshard_kind;
  auto const best = cost::collective_algorithm::best;
  switch (k) {
    case all_reduce: return cost::flat::all_reduce(members, bytes, link, best);
    case reduce_scatter:
    case all_gather: return cost::flat::reduce_scatter(members, bytes, link, best);
    case all_to_all:
      return cost::flat::least(cost::flat::all_to_all_pairs(members, bytes, link), cost::flat::all_to_all_tree(members, bytes, link));
    case exchange: return link.seconds(1, bytes);
    case slice: return 0;
  }
  return 0;
}
double link_pace(ir::reshard_kind k, i64 members, double bytes) { return slowness * link_seconds(k, members, bytes); }
/// What planner and simulator are told: the same. What a device cuts out of its own memory is not paced.
struct paced_prices {
  cost::analytical all{cost::measured_rates};
  double seconds(cost::compute_query const& q) const { return pace(q.op, q.in, q.out); }
  double seconds(cost::reshard_query const& q) const { return q.step.kind == ir::reshard_kind::slice ? 0 : slowness * all.seconds(q); }
};

struct chain_sizes {
  i64 layers, hidden;
};
struct chain_of_layers {
  static constexpr void define(auto& g, chain_sizes s) {
    ref x = g.input("x", {zoo::batch, s.hidden});
    for (i64 l = 0; l < s.layers; ++l) x = x | linear{.out = s.hidden, .bias = false} | relu{};
    g.output("loss", all(x, g.input("label", {zoo::batch}, dtype::i32)) | cross_entropy{});
  }
};

using on_paced = executor<compute::paced<compute::eigen<float>, pace>, comm::paced<comm::threads, link_pace>>;
using in_field = executor<compute::eigen<prime_field>, comm::threads>;

template <class E> std::map<std::string, std::vector<typename E::scalar>> parameters_of(E const& e) {
  std::map<std::string, std::vector<typename E::scalar>> r;
  for (std::size_t v = 0; v < e.graph().gradient.size(); ++v)
    if (graph_value const& x = e.graph().graph.values[v]; x.role == value_role::parameter) r[x.name] = e.fetch(static_cast<int>(v));
  return r;
}
/// The largest difference of two parameters, as a share of the largest parameter.
double distance(std::map<std::string, std::vector<float>> const& a, std::map<std::string, std::vector<float>> const& b) {
  double most = 0, apart = 0;
  for (auto const& [name, x] : a)
    for (std::size_t i = 0; i < x.size(); ++i) {
      double const p = static_cast<double>(x[i]), q = static_cast<double>(b.at(name)[i]);
      most = std::max({most, std::abs(p), std::abs(q)});
      apart = std::max(apart, std::abs(p - q));
    }
  return apart / most;
}
auto trained_in_field(computation_graph const& graph, plan const& p, host_batch const& batch, int steps) {
  in_field e(graph, p);
  e.initialise(1);
  for (int i = 0; i < steps; ++i) e.step(batch, 0.01);
  return parameters_of(e);
}

/// A plan, what its step should take, and the steps that it took.
struct contender {
  char const* what;
  computation_graph graph;
  plan chosen;
  std::unique_ptr<on_paced> run;
  double predicted;
  std::vector<double> times = {};
  double measured() {
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }
};

struct options {
  int repeat = 5;
  double within = 0.1;
  bool quick = false;
};

void say(std::string const& name, std::string const& metric, double value, char const* unit, double reference) {
  std::printf("{\"bench\":\"overlap_exec\",\"case\":\"%s\",\"metric\":\"%s\",\"value\":%.6g,\"unit\":\"%s\",\"reference\":%.6g,\"ratio\":%.4f}\n",
              name.c_str(), metric.c_str(), value, unit, reference, value / reference);
  std::fflush(stdout);
}
bool wrong(std::string const& name, std::string const& why) {
  std::fprintf(stderr, "%s: %s\n", name.c_str(), why.c_str());
  return false;
}

/// The plan whose computing and communicating have the least sum, as it is and, if asked for, with the prefetch that suits it best; last the
/// plan whose simulated step is shortest. None where a search finds nothing. All have one micro-batch.
std::vector<contender> contenders(training_problem const& asked, machine const& on, bool prefetched) {
  paced_prices const prices;
  cost::model_ref const model(prices);
  planning_options o;
  o.micro_batches = {1};
  o.schedules.emplace();
  computation_graph const whole = ir::rebatch(asked.graph, asked.samples);
  search::search_result const least_sum = search::optimize(whole, on, model, detail::search_of(asked, o));
  planned const shortest = plan_training(asked, on, model, o);
  if (!least_sum.feasible() || !shortest.feasible()) return {};
  std::vector<contender> r;
  auto const add = [&](char const* what, computation_graph const& g, plan const& p) {
    auto run = std::make_unique<on_paced>(g, p);
    double const predicted = simulate(run->program(), on, model, {true, false}).seconds;
    r.push_back({what, g, p, std::move(run), predicted});
  };
  plan p = least_sum.plan;
  add("least sum", whole, p);
  if (prefetched) {
    search::overlapped(whole, p, asked, model, infinity);
    add("least sum, prefetched", whole, p);
  }
  add("overlapped", shortest.graph, shortest.plan);
  return r;
}

/// Do the plans differ in more than how far ahead collectives start, do all train alike, and is the overlapped one as much faster as
/// predicted?
bool compare(std::string const& name, computation_graph graph, i64 samples, int devices, options const& o) {
  training_problem asked;
  asked.graph = std::move(graph);
  asked.samples = samples;
  machine const on = make_cluster("paced", kind, devices, devices, {"paced link", devices, link.latency, link.bandwidth}, {});
  std::vector<contender> all = contenders(asked, on, !o.quick);
  if (all.empty()) return wrong(name, "no plan");
  if (all.front().chosen.nodes == all.back().chosen.nodes) return wrong(name, "both objectives choose the same shardings");
  host_batch const batch = paced_models::batch_of(asked.graph, samples);
  constexpr int warm = 1, field_steps = 2;
  for (contender& c : all) {
    c.run->initialise(1);
    for (int i = 0; i < warm; ++i) c.run->step(batch, 0.01);
  }
  for (int i = 0; i < o.repeat; ++i)
    for (contender& c : all) c.times.push_back(c.run->step(batch, 0.01).seconds);
  bool good = true;
  contender& best = all.back();
  auto const reals = parameters_of(*best.run);
  auto const exact = trained_in_field(best.graph, best.chosen, batch, field_steps);
  for (contender& c : all) {
    say(name, std::string("measured step, ") + c.what, c.measured(), "s", c.predicted);
    if (distance(parameters_of(*c.run), reals) > 1e-3) good = wrong(name, std::string(c.what) + " trains otherwise than overlapped");
    if (&c == &best) continue;
    if (trained_in_field(c.graph, c.chosen, batch, field_steps) != exact) good = wrong(name, std::string(c.what) + " trains otherwise in the field");
    double const gain = c.measured() / best.measured(), foretold = c.predicted / best.predicted;
    say(name, std::string("speedup over ") + c.what, gain, "x", foretold);
    if (gain <= 1) good = wrong(name, std::string("not faster than ") + c.what);
    if (std::abs(gain / foretold - 1) > o.within) good = wrong(name, std::string("not as much faster as predicted than ") + c.what);
  }
  return good;
}

/// The same plan, tensor parallelism in pairs and data parallelism with ZeRO-3 among them, with one lane of communication and with a lane
/// for each of the two levels of links: does it train alike, and as much faster as predicted?
bool compare_lanes(std::string const& name, computation_graph graph, i64 samples, options const& o) {
  struct slower_links {
    slower_links() { link.bandwidth /= 2; }
    ~slower_links() { link.bandwidth *= 2; }
  } const meanwhile;
  training_problem asked;
  asked.graph = std::move(graph);
  asked.samples = samples;
  machine on = make_cluster("paced", kind, 4, 2, {"pairs", 2, link.latency, link.bandwidth}, {"all", 4, link.latency, link.bandwidth});
  paced_prices const prices;
  search::parallel_config c;
  c.tensor = c.data = 2;
  c.micro_batch = samples / 2;
  c.sharding = ir::zero_stage::weights;
  c.prefetch = 4;
  std::vector<contender> all;
  for (bool const lanes : {false, true}) {
    on.lane_per_link = lanes;
    search::configured_plan x = search::configured(asked, on, prices, c);
    auto run = std::make_unique<on_paced>(x.graph, x.plan);
    double const predicted = simulate(run->program(), on, prices, {true, false}).seconds;
    all.push_back({lanes ? "a lane for each level" : "one lane", std::move(x.graph), std::move(x.plan), std::move(run), predicted});
  }
  host_batch const batch = paced_models::batch_of(asked.graph, samples);
  for (contender& x : all) {
    x.run->initialise(1);
    x.run->step(batch, 0.01);
  }
  for (int i = 0; i < o.repeat; ++i)
    for (contender& x : all) x.times.push_back(x.run->step(batch, 0.01).seconds);
  for (contender& x : all) say(name, std::string("measured step, ") + x.what, x.measured(), "s", x.predicted);
  double const gain = all[0].measured() / all[1].measured(), foretold = all[0].predicted / all[1].predicted;
  say(name, "speedup over one lane", gain, "x", foretold);
  if (parameters_of(*all[0].run) != parameters_of(*all[1].run)) return wrong(name, "lanes train otherwise than one lane");
  if (gain <= 1) return wrong(name, "not faster than one lane");
  return std::abs(gain / foretold - 1) <= o.within || wrong(name, "not as much faster as predicted");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Measured steps of plans by the sum of computing and communicating, and by their overlapped step, on paced devices and links"};
  options o;
  app.add_option("--repeat", o.repeat, "steps of each plan, in turns; the medians count")->check(CLI::PositiveNumber);
  app.add_option("--slowness", slowness, "how many times as long everything takes")->check(CLI::PositiveNumber);
  app.add_option("--within", o.within, "how far a speedup may be from the predicted one, as a share of that");
  app.add_flag("--quick", o.quick, "two models, three short steps, a wide tolerance");
  CLI11_PARSE(app, argc, argv);
  if (o.quick) {
    o = {3, 0.3, true};
    slowness = 1;
  }
  using paced_models::made;
  bool good = compare("linear layers, 256 samples, 4 devices", made<chain_of_layers>(chain_sizes{8, 128}), 256, 4, o);
  zoo::gpt_sizes const small{.layers = 2, .hidden = 64, .heads = 4, .seq = 16, .vocab = 64, .wide = 256};
  good = compare("gpt, 8 samples, 2 devices", made<zoo::gpt<>>(small), 8, 2, o) && good;
  zoo::gpt_sizes const wider{.layers = 2, .hidden = 128, .heads = 4, .seq = 16, .vocab = 64, .wide = 512};
  good = compare_lanes("gpt, 8 samples, 2 x 2 devices, slower links", made<zoo::gpt<>>(wider), 8, o) && good;
  if (o.quick) return good ? 0 : 1;
  good = compare("gpt, 16 samples, 4 devices", made<zoo::gpt<>>(small), 16, 4, o) && good;
  zoo::vgg_sizes const narrow{.image = 32, .width = 4, .hidden = 128, .classes = 10};
  good = compare("vgg-19, 16 samples, 4 devices", made<zoo::vgg<>>(narrow), 16, 4, o) && good;
  return good ? 0 : 1;
}
