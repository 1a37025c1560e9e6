// examples/train_digits.cpp - declare, plan, train, check: two networks on real handwritten digits, on as many devices as you ask for
#include "standard_output.hpp"
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <tensorpar/core/json.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/cost/measure_host.hpp>
#include <tensorpar/cost/profiled.hpp>
#include <tensorpar/exec/cpu/eigen.hpp>
#include <tensorpar/exec/forward_pass.hpp>
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/exec/step/learning_rate.hpp>
#include <tensorpar/exec/profile.hpp>
#include <tensorpar/exec/device/scratch_of.hpp>
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/check/check.hpp>
#include <tensorpar/plan/cluster_file.hpp>
#include <tensorpar/plan/plan_file.hpp>
#include <tensorpar/program/training.hpp>
#include <tensorpar/report/chrome_trace.hpp>
#include <tensorpar/report/comparison.hpp>
#include <tensorpar/report/page/html.hpp>
#include <tensorpar/report/text.hpp>
#include <tensorpar/search/plan_training.hpp>
#include <tensorpar/simulate/engine.hpp>

#include "digits.hpp"
#include "flags.hpp"

using namespace tensorpar;

namespace {

struct settings {
  std::vector<std::string> models{"mlp", "cnn"};
  std::vector<int> devices{4};
  std::string cluster;
  std::string data = TENSORPAR_EXAMPLE_DATA "/digits.csv";
  std::string out;                       // empty: nothing is written
  std::string plan_file;
  i64 batch = 96;
  int micro_batches = 1;
  int epochs = 12;
  double rate = 0.1;
  double clip = 0;
  double min_accuracy = 0;
  u64 seed = 1;
  int check_steps = 100, field_steps = 20;
  bool json = false;
};

template <class S> using run_of = executor<compute::eigen<S>, comm::threads>;

void event(settings const& s, core::json const& j) {
  if (s.json) std::cout << j.dump() << std::endl;
}
void say(settings const& s, std::string const& text) {
  if (!s.json) std::cout << text << std::flush;
}
std::string number(char const* format, double x) {
  char b[64];
  std::snprintf(b, sizeof b, format, x);
  return b;
}

/// What people do without a search, unrolled and simulated like the chosen plan.
std::vector<report::plan_summary> without_search(training_problem const& problem, plan const& chosen, cost::cost_model auto const& cost) {
  search::search_options o;
  o.fewer_devices = false;                                             // what is wanted stands on all of them
  o.optimizer = problem.optimizer;
  o.micro_batches = chosen.micro_batches;
  o.scratch = problem.scratch;
  std::vector<report::plan_summary> r;
  for (search::baseline const& b : search::optimize(problem.graph, chosen.cluster, cost, o).baselines) {
    plan p = chosen;
    p.nodes = b.nodes;
    planned_step const step = step_of(problem.graph, p, problem.loss, problem.scratch);
    r.push_back(report::summary_of(b.name, step.graph, step.plan, step.program, simulate(step.program, p.cluster, cost)));
  }
  return r;
}

struct checks {
  double relative = 0;
  bool equal = false;
};

/// Trains the same model on the planned devices and on one, and compares all parameters.
template <class S> std::vector<std::vector<S>> train_for_check(training_graph const& graph, plan const& p,
                                                               std::vector<digits::sample> const& train, settings const& s, int steps) {
  run_of<S> e(graph, p);
  e.initialise(s.seed);
  i64 const rows = s.batch;
  shape const image = graph.graph.type(0);
  std::vector<std::size_t> const order = digits::shuffled(train.size(), s.seed);
  std::size_t const batches = train.size() / static_cast<std::size_t>(rows);
  for (int k = 0; k < steps; ++k)
    e.step(digits::make_batch(train, order, (static_cast<std::size_t>(k) % batches) * static_cast<std::size_t>(rows), rows, image), 0.0625);
  std::vector<std::vector<S>> r;
  for (std::size_t x = 0; x < graph.gradient.size(); ++x)
    if (graph.graph.values[x].role == value_role::parameter) r.push_back(e.fetch(static_cast<int>(x)));
  return r;
}
checks compare_with_serial(training_graph const& graph, plan const& p, plan const& serial, std::vector<digits::sample> const& train,
                           settings const& s) {
  checks c;
  auto const a = train_for_check<double>(graph, p, train, s, s.check_steps),
             b = train_for_check<double>(graph, serial, train, s, s.check_steps);
  for (std::size_t i = 0; i < a.size(); ++i) {
    double most = 0, differ = 0;
    for (std::size_t j = 0; j < a[i].size(); ++j) {
      most = std::max(most, std::abs(b[i][j]));
      differ = std::max(differ, std::abs(a[i][j] - b[i][j]));
    }
    c.relative = std::max(c.relative, most > 0 ? differ / most : differ);
  }
  c.equal = train_for_check<prime_field>(graph, p, train, s, s.field_steps) ==
            train_for_check<prime_field>(graph, serial, train, s, s.field_steps);
  return c;
}

void run(settings const& s, std::string const& model, graph_view const& net, int devices, bool alone,
         std::vector<digits::sample> const& all) {
  machine const cluster = s.cluster.empty() ? logical(devices) : find_cluster(s.cluster);
  int const n = cluster.size();
  if (s.batch % s.micro_batches)
    throw error("a batch of " + std::to_string(s.batch) + " in " + std::to_string(s.micro_batches) + " micro-batches", "--micro-batches",
                "a divisor of the batch");
  computation_graph const forward = lower(net, {digits::batch = s.batch / s.micro_batches});
  training_options options;
  options.optimizer.kind = optimizer_kind::momentum;
  options.optimizer.clip_norm = s.clip;
  options.micro_batches = s.micro_batches;
  training_graph const graph = differentiate(forward, options);
  cost::analytical const cost;
  training_problem const problem{.graph = forward,
                                 .samples = s.batch,
                                 .optimizer = options.optimizer,
                                 .scratch = exec::scratch_of<compute::eigen<float>>(),
                                 .name = model};

  // plan, or take the plan that is given
  auto const t0 = std::chrono::steady_clock::now();
  plan p;
  if (s.plan_file.empty()) {
    planned const found = plan_training(problem, cluster, cost,
                                        {.micro_batches = {s.micro_batches}, .schedules = std::vector<search::schedule_kind>{}});
    if (!found.feasible()) throw error(text_of(*found.infeasible), "the cluster", "more memory or more devices");
    p = found.plan;
  } else {
    p = read_plan(s.plan_file);
    if (p.graph != forward.hash())
      throw error("this plan was made for another model or batch: it is of " + detail::training_text(p), s.plan_file,
                  "a plan of " + model + " with --batch " + std::to_string(s.batch) + " and --micro-batches " +
                      std::to_string(s.micro_batches));
    if (!(p.optimizer == options.optimizer) || p.micro_batches != s.micro_batches)
      throw error("this plan was made for another optimizer or number of micro-batches", s.plan_file, "the flags it was made with");
  }
  double const search_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count();
  planned_step const step = step_of(forward, p, problem.loss, problem.scratch);
  program const& q = step.program;
  require_accepted(check(step.graph, step.plan, q), "train_digits");
  timeline const predicted = simulate(q, p.cluster, cost);
  p.step_seconds = predicted.seconds;
  if (p.peak_bytes.empty()) p.peak_bytes = q.arena;                    // written by hand
  std::vector<report::plan_summary> table{report::summary_of("chosen", step.graph, step.plan, q, predicted)};
  if (s.plan_file.empty())
    for (report::plan_summary& x : without_search(problem, p, cost)) table.push_back(std::move(x));
  say(s, "\n== " + model + " on " + p.cluster.name + " (" + std::to_string(p.cluster.size()) + " devices)\n" +
             report::explain(table[0]) + "\n" + report::comparison(table) + report::reasons(table));
  event(s, {{"event", "plan"},
            {"model", model},
            {"devices", p.cluster.size()},
            {"cluster", p.cluster.name},
            {"numbers", table[0].numbers},
            {"search_s", search_s},
            {"cost_s", p.cost},
            {"bound_s", p.bound},
            {"step_s", p.step_seconds},
            {"peak_bytes", p.peak_bytes}});

  // what this very machine will take: its rates measured, its kernels profiled; devices beyond its cores take turns
  cost::host_rates const rates = cost::measure_host();
  machine const host = cost::host_machine(n, rates);
  cost::profile_table profile = measure_operators<compute::eigen<float>>(q, host);
  double const turns = std::max(1.0, static_cast<double>(n) / rates.cores);
  cost::profile_table shared;
  for (auto [key, k] : profile.all()) { k.seconds *= turns; shared.add(std::move(k)); }
  timeline const expected = simulate(q, host, cost::profiled<cost::analytical>(std::move(shared), cost::analytical{cost::measured_rates}),
                                     {.overlap = false});

  say(s, "\ntraining with " + std::to_string(n) + " threads on " + std::to_string(rates.cores) + " cores of this machine, where " +
             report::seconds_text(expected.seconds) + " a step are predicted (from measured operators)\n");

  // train
  digits::split const data = digits::divide(all, s.seed);
  run_of<float> e(graph, p);
  e.initialise(s.seed);
  computation_graph const whole = lower(net, {digits::batch = static_cast<i64>(data.test.size())});
  forward_pass<compute::eigen<float>> eval(whole);
  std::vector<std::size_t> in_order(data.test.size());
  std::iota(in_order.begin(), in_order.end(), std::size_t{0});
  host_batch const test = digits::make_batch(data.test, in_order, 0, static_cast<i64>(data.test.size()), forward.type(0));
  std::size_t const steps = data.train.size() / static_cast<std::size_t>(s.batch);
  if (steps == 0)
    throw error("a batch of " + std::to_string(s.batch) + " samples", "--batch", "at most " + std::to_string(data.train.size()));
  rate_schedule const learn = warm_up_cosine{s.rate, steps, steps * static_cast<u64>(std::max(2, s.epochs)), s.rate / 50};
  timeline measured;
  double accuracy = 0;
  std::vector<double> seconds;
  for (int epoch = 0; epoch < s.epochs; ++epoch) {
    std::vector<std::size_t> const order = digits::shuffled(data.train.size(), s.seed + 1000 + static_cast<u64>(epoch));
    double loss = 0, spent = 0;
    for (std::size_t k = 0; k < steps; ++k) {
      bool const last = epoch + 1 == s.epochs && k + 1 == steps;
      step_result const r = e.step(digits::make_batch(data.train, order, k * static_cast<std::size_t>(s.batch), s.batch, forward.type(0)),
                                   rate(learn, e.steps()), last ? &measured : nullptr);
      loss += r.loss / static_cast<double>(steps);
      spent += r.seconds;
      seconds.push_back(r.seconds);
    }
    eval.take_parameters(e);
    eval.run(test);
    accuracy = digits::accuracy(eval.output("logits"), test.at("label").index);
    double const each = spent / static_cast<double>(steps), rate_s = static_cast<double>(s.batch) / each;
    say(s, report::progress_line({epoch + 1, s.epochs, loss, accuracy, rate_s, each, expected.seconds}) + "\n");
    event(s, {{"event", "epoch"},
              {"model", model},
              {"epoch", epoch + 1},
              {"loss", loss},
              {"accuracy", accuracy},
              {"samples_per_s", rate_s},
              {"measured_step_s", each},
              {"predicted_step_s", expected.seconds}});
  }
  std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2), seconds.end());
  double const median = seconds.empty() ? 0 : seconds[seconds.size() / 2];

  // check
  checks const c = compare_with_serial(graph, p, one_device_plan(forward, p), data.train, s);
  say(s, "check: " + std::to_string(s.check_steps) + " steps in double differ from serial training by " + number("%.1e", c.relative) +
             " relative; " + std::to_string(s.field_steps) + " steps in the prime field are " + (c.equal ? "equal" : "NOT EQUAL") +
             "; each arena is " + (e.allocated_bytes() == p.peak_bytes ? "what was planned, to the byte" : "NOT what was planned") + "\n");

  // write
  if (!s.out.empty()) {
    std::filesystem::path dir(s.out);
    if (!alone) dir /= model + "-" + std::to_string(n);
    std::filesystem::create_directories(dir);
    std::vector<report::named_timeline> const shown{{"expected on this machine", expected}, {"measured on this machine", measured}};
    write_plan(p, (dir / "plan.json").string());
    core::write_whole_file((dir / "plan.html").string(), report::html_report(step.graph, step.plan, q, predicted, shown, table));
    core::write_whole_file((dir / "trace.json").string(), report::chrome_trace(expected, &measured, &q));
    say(s, "wrote " + (dir / "plan.json").string() + ", plan.html, trace.json\n");
  }
  event(s, {{"event", "result"},
            {"model", model},
            {"devices", n},
            {"accuracy", accuracy},
            {"max_rel_diff_double", c.relative},
            {"prime_field_equal", c.equal},
            {"predicted_peak_bytes", p.peak_bytes},
            {"allocated_peak_bytes", e.allocated_bytes()},
            {"predicted_step_s", expected.seconds},
            {"measured_step_s", median}});
  if (!c.equal || !(c.relative <= 1e-12) || e.allocated_bytes() != p.peak_bytes)
    throw error("a check failed", model, "equal to serial training");
  if (accuracy < s.min_accuracy)
    throw error("a test accuracy of " + number("%.4f", accuracy), model, "at least " + number("%.4f", s.min_accuracy));
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  CLI::App app("Declares, plans, trains and checks two networks on 1,797 handwritten digits.");
  app.add_option("--model", s.models, "mlp, cnn, or both")->delimiter(',')->check(CLI::IsMember({"mlp", "cnn"}))->capture_default_str();
  app.add_option("--devices", s.devices, "numbers of logical devices (threads), e.g. 1,2,4")
      ->delimiter(',')
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--cluster", s.cluster,
                 "a machine by name (logical-2x2: two nodes with a slow link) or a cluster file, instead of --devices");
  app.add_option("--plan", s.plan_file, "start from this plan.json instead of searching (one model)");
  app.add_option("--batch", s.batch, "samples per step")->check(CLI::Range(1, 1437))->capture_default_str();
  app.add_option("--micro-batches", s.micro_batches, "parts of a batch whose gradients are accumulated")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--epochs", s.epochs)->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--rate", s.rate, "peak learning rate")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--clip", s.clip, "clip gradients to this global norm; 0: do not")->check(CLI::NonNegativeNumber)->capture_default_str();
  app.add_option("--min-accuracy", s.min_accuracy, "fail if the test accuracy ends below this, e.g. 0.97")->check(CLI::Range(0.0, 1.0));
  app.add_option("--seed", s.seed)->capture_default_str();
  app.add_option("--check-steps", s.check_steps, "steps compared with serial training in double")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--field-steps", s.field_steps, "steps compared in the prime field")->check(CLI::Range(1, 100000))->capture_default_str();
  app.add_option("--data", s.data, "the digits, as csv")->capture_default_str();
  app.add_option("--out", s.out, "folder for plan.json, plan.html, trace.json; without it nothing is written");
  app.add_flag("--json", s.json, "one JSON object per line instead of text");
  CLI11_PARSE(app, argc, argv);
  try {
    std::vector<digits::sample> const all = digits::read(s.data);
    if (!s.cluster.empty()) flags::refuse(app, "--cluster", {"--devices"});
    if (!s.plan_file.empty()) {
      flags::refuse(app, "--plan", {"--devices", "--cluster"});
      plan const given = read_plan(s.plan_file);
      if (app.count("--model") > 0 && s.models != std::vector<std::string>{given.model})
        throw error("a plan of " + detail::training_text(given) + " for --model " + CLI::detail::join(s.models), s.plan_file,
                    "--model " + given.model + ", or a plan of the model");
      s.models = {given.model};
      s.devices = {given.cluster.size()};
      s.cluster.clear();
    }
    if (!s.cluster.empty()) s.devices = {0};
    bool const alone = s.models.size() * s.devices.size() == 1;
    for (int n : s.devices)
      for (std::string const& m : s.models) {
        if (m != "mlp" && m != "cnn") throw error("model '" + m + "' is not one of this program's", s.plan_file, "mlp or cnn");
        run(s, m, m == "mlp" ? graph_view(typed<digits::mlp>) : graph_view(typed<digits::cnn>), n, alone, all);
      }
  } catch (std::exception const& e) {
    if (s.json) std::cout << core::json({{"event", "error"}, {"what", e.what()}}).dump() << std::endl;
    else std::cerr << "train_digits: " << e.what() << std::endl;
    return 1;
  }
  return 0;
}
