// examples/train_digits.cpp - declare, plan, train, check: three networks on real handwritten digits, on as many devices as you ask for, each
// plan beside data and tensor parallelism and one device
#include "standard_output.hpp"
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <tensorpar/core/json.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/exec/cpu/eigen.hpp>
#include <tensorpar/exec/forward_pass.hpp>
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/exec/step/learning_rate.hpp>
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
#include <tensorpar/tool/demo/network.hpp>
#include <tensorpar/tool/demo/race.hpp>

#include "digits.hpp"
#include "flags.hpp"

using namespace tensorpar;

namespace {

/// A network, and what suits it where no flag says otherwise.
struct network {
  char const* name;
  graph_view graph;
  i64 batch;
  int epochs;
  double rate;
  int check_steps, field_steps;
};
network const networks[] = {{"mlp", typed<digits::mlp>, 96, 12, 0.1, 100, 20},
                            {"cnn", typed<digits::cnn>, 96, 12, 0.1, 100, 20},
                            {"wide", typed<tools::demo_network>, tools::demo_batch, 4, 0.01, 10, 1}};
network const* network_named(std::string const& name) {
  for (network const& n : networks)
    if (name == n.name) return &n;
  return nullptr;
}

struct settings {
  std::vector<std::string> models{"mlp", "cnn", "wide"};
  std::vector<int> devices;
  std::string cluster;
  std::string data = TENSORPAR_EXAMPLE_DATA "/digits.csv";
  std::string out;                       // empty: nothing is written
  std::string plan_file;
  // 0: what suits the network
  i64 batch = 0;
  int micro_batches = 1;
  int epochs = 0;
  double rate = 0;
  double clip = 0;
  double min_accuracy = 0;
  u64 seed = 1;
  int check_steps = 0, field_steps = 0;
  int rounds = 11;
  bool json = false;

  settings suited_to(network const& n) const {
    settings r = *this;
    if (!r.batch) r.batch = n.batch;
    if (!r.epochs) r.epochs = n.epochs;
    if (r.rate <= 0) r.rate = n.rate;
    if (!r.check_steps) r.check_steps = n.check_steps;
    if (!r.field_steps) r.field_steps = n.field_steps;
    return r;
  }
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

/// The plan that is asked for, with its rivals: for this machine, for another one, or of a file, which has none but one device.
tools::local_plans plans_for(settings const& s, training_problem const& problem, training_options const& options, tools::local_machine& here) {
  planning_options const whole{.micro_batches = {s.micro_batches}, .schedules = std::vector<search::schedule_kind>{}};
  tools::local_plans r;
  if (s.plan_file.empty() && s.cluster.empty()) {
    r = tools::plans_for(problem, here, whole);
  } else if (s.plan_file.empty()) {
    cost::analytical const cost;
    machine const cluster = find_cluster(s.cluster);
    r.found = plan_training(problem, cluster, cost, whole);
    if (!r.found.feasible()) throw error(text_of(*r.found.infeasible), "the cluster", "more memory or more devices");
    r.all = tools::contenders(r.found, problem, cluster, cost::model_ref(cost));
  } else {
    plan p = read_plan(s.plan_file);
    if (p.graph != problem.graph.hash())
      throw error("this plan was made for another model or batch: it is of " + detail::training_text(p), s.plan_file,
                  "a plan of " + problem.name + " with --batch " + std::to_string(s.batch) + " and --micro-batches " +
                      std::to_string(s.micro_batches));
    if (!(p.optimizer == options.optimizer) || p.micro_batches != s.micro_batches)
      throw error("this plan was made for another optimizer or number of micro-batches", s.plan_file, "the flags it was made with");
    r.found.graph = problem.graph;
    r.all = {{"chosen plan", step_of(problem.graph, p, problem.loss, problem.scratch), {}},
             {"one device", step_of(problem.graph, one_device_plan(problem.graph, p), problem.loss, problem.scratch), {}}};
    r.found.plan = std::move(p);
  }
  for (tools::contender& c : r.all)
    if (c.expected.seconds <= 0) c.expected = here.expected(c.step);
  return r;
}

void run(settings const& given, network const& net, int devices, bool alone, std::vector<digits::sample> const& all) {
  settings const s = given.suited_to(net);
  std::string const model = net.name;
  tools::machine_watch const watch;
  int const n = s.cluster.empty() ? devices : find_cluster(s.cluster).size();
  if (s.batch % s.micro_batches)
    throw error("a batch of " + std::to_string(s.batch) + " in " + std::to_string(s.micro_batches) + " micro-batches", "--micro-batches",
                "a divisor of the batch");
  digits::split const data = digits::divide(all, s.seed);
  std::size_t const steps = data.train.size() / static_cast<std::size_t>(s.batch);
  if (steps == 0)
    throw error("a batch of " + std::to_string(s.batch) + " samples", "--batch", "at most " + std::to_string(data.train.size()));
  computation_graph const forward = lower(net.graph, {digits::batch = s.batch / s.micro_batches});
  training_options options;
  options.optimizer.kind = optimizer_kind::momentum;
  options.optimizer.clip_norm = s.clip;
  options.micro_batches = s.micro_batches;
  training_graph const graph = differentiate(forward, options);
  training_problem const problem{.graph = forward,
                                 .samples = s.batch,
                                 .optimizer = options.optimizer,
                                 .scratch = exec::scratch_of<compute::eigen<float>>(),
                                 .name = model};

  // plan, or take the plan that is given
  auto const t0 = std::chrono::steady_clock::now();
  tools::local_machine here(n);
  tools::local_plans plans = plans_for(s, problem, options, here);
  double const search_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count();
  plan p = plans.found.plan;
  planned_step const& step = plans.all.front().step;
  program const& q = step.program;
  for (tools::contender const& c : plans.all) require_accepted(check(c.step.graph, c.step.plan, c.step.program), "train_digits");
  auto const priced = [&](tools::contender const& c) {
    machine const& on = c.step.plan.cluster;
    return s.cluster.empty() && s.plan_file.empty() ? simulate(c.step.program, on, here.prices(here.alone))
                                                    : simulate(c.step.program, on, cost::analytical{});
  };
  timeline const predicted = priced(plans.all.front());
  p.step_seconds = predicted.seconds;
  if (p.peak_bytes.empty()) p.peak_bytes = q.arena;                    // written by hand
  std::vector<report::plan_summary> table;
  for (tools::contender const& c : plans.all)
    if (&c == &plans.all.front() || s.plan_file.empty())
      table.push_back(report::summary_of(&c == &plans.all.front() ? "chosen" : c.name, c.step.graph, c.step.plan, c.step.program, priced(c)));
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

  // what this very machine takes: each plan and one device in turns
  timeline const& expected = plans.all.front().expected;
  std::vector<std::size_t> const in_turn = digits::shuffled(data.train.size(), s.seed);
  auto const some_batch = [&](int k) {
    return digits::make_batch(data.train, in_turn, static_cast<std::size_t>(k) % steps * static_cast<std::size_t>(s.batch), s.batch,
                              forward.type(0));
  };
  tools::race_result const race = tools::race_plans(plans, some_batch, {.rounds = s.rounds, .rate = s.rate, .seed = s.seed});
  tools::require_same_training(race, model);
  say(s, "\n" + std::to_string(n) + " threads on " + std::to_string(here.cores) + " cores of this machine" +
             (n > here.cores ? ", in turns" : "") + "; steps predicted from operators measured here\n" + tools::race_table(race) +
             tools::race_text(race) + "\n");
  core::json told = tools::race_json(race);
  told.update({{"event", "race"}, {"model", model}});
  event(s, told);

  // train
  run_of<float> e(graph, p);
  e.initialise(s.seed);
  computation_graph const whole = lower(net.graph, {digits::batch = static_cast<i64>(data.test.size())});
  forward_pass<compute::eigen<float>> eval(whole);
  std::vector<std::size_t> in_order(data.test.size());
  std::iota(in_order.begin(), in_order.end(), std::size_t{0});
  host_batch const test = digits::make_batch(data.test, in_order, 0, static_cast<i64>(data.test.size()), forward.type(0));
  rate_schedule const learn = warm_up_cosine{s.rate, steps, steps * static_cast<u64>(std::max(2, s.epochs)), s.rate / 50};
  timeline measured;
  double accuracy = 0;
  std::vector<double> seconds;
  for (int epoch = 0; epoch < s.epochs; ++epoch) {
    std::vector<std::size_t> const order = digits::shuffled(data.train.size(), s.seed + 1000 + static_cast<u64>(epoch));
    double loss = 0, spent = 0;
    tools::machine_watch const during;
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
    bool const busy = tools::is_busy(watch.others()) || tools::is_busy(during.others());
    say(s, report::progress_line({epoch + 1, s.epochs, loss, accuracy, rate_s, each, busy ? 0 : expected.seconds}) + "\n");
    event(s, {{"event", "epoch"},
              {"model", model},
              {"epoch", epoch + 1},
              {"loss", loss},
              {"accuracy", accuracy},
              {"samples_per_s", rate_s},
              {"measured_step_s", each},
              {"predicted_step_s", expected.seconds}});
  }
  double const median = tools::detail::median_of(std::move(seconds));

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
            {"measured_step_s", median},
            {"busy", tools::is_busy(watch.others())}});
  if (std::string const busy = tools::busy_text(watch.others()); !busy.empty()) say(s, busy + "\n");
  if (!c.equal || !(c.relative <= 1e-12) || e.allocated_bytes() != p.peak_bytes)
    throw error("a check failed", model, "equal to serial training");
  if (accuracy < s.min_accuracy)
    throw error("a test accuracy of " + number("%.4f", accuracy), model, "at least " + number("%.4f", s.min_accuracy));
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  CLI::App app("Plans, trains and checks three networks on 1,797 handwritten digits, each beside data and tensor parallelism and one device.",
               "train_digits");
  app.add_option("--model", s.models, "mlp, cnn, wide, or several: wide is a convolution before wide layers")
      ->delimiter(',')
      ->check(CLI::IsMember({"mlp", "cnn", "wide"}))
      ->capture_default_str();
  app.add_option("--devices", s.devices, "numbers of devices (threads), e.g. 1,2,4; without it as many as suit the cores")
      ->delimiter(',')
      ->check(CLI::Range(1, 64));
  app.add_option("--cluster", s.cluster,
                 "plan for a machine by name (logical-2x2: two nodes with a slow link) or a cluster file, instead of this one");
  app.add_option("--plan", s.plan_file, "start from this plan.json instead of searching (one model)");
  app.add_option("--batch", s.batch, "samples per step; else 96, of wide 32")->check(CLI::Range(1, 1437));
  app.add_option("--micro-batches", s.micro_batches, "parts of a batch whose gradients are accumulated")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--epochs", s.epochs, "times through all samples; else 12, of wide 4")->check(CLI::Range(1, 1000));
  app.add_option("--rate", s.rate, "peak learning rate; else 0.1, of wide 0.01")->check(CLI::PositiveNumber);
  app.add_option("--rounds", s.rounds, "rounds in which every plan is measured")->check(CLI::Range(1, 10000))->capture_default_str();
  app.add_option("--clip", s.clip, "clip gradients to this global norm; 0: do not")->check(CLI::NonNegativeNumber)->capture_default_str();
  app.add_option("--min-accuracy", s.min_accuracy, "fail if the test accuracy ends below this, e.g. 0.97")->check(CLI::Range(0.0, 1.0));
  app.add_option("--seed", s.seed, "of parameters, and of the order of samples")->capture_default_str();
  app.add_option("--check-steps", s.check_steps, "steps compared with serial training in double; else 100, of wide 10")
      ->check(CLI::Range(1, 100000));
  app.add_option("--field-steps", s.field_steps, "steps compared in the prime field; else 20, of wide 1")->check(CLI::Range(1, 100000));
  app.add_option("--data", s.data, "the digits, as csv; else those of examples/data");
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
    if (s.devices.empty()) s.devices = {tools::usual_devices(static_cast<int>(std::thread::hardware_concurrency()))};
    bool const alone = s.models.size() * s.devices.size() == 1;
    for (int n : s.devices)
      for (std::string const& m : s.models) {
        network const* const net = network_named(m);
        if (!net) throw error("model '" + m + "' is not one of this program's", s.plan_file, "mlp, cnn or wide");
        run(s, *net, n, alone, all);
      }
  } catch (std::exception const& e) {
    if (s.json) std::cout << core::json({{"event", "error"}, {"what", e.what()}}).dump() << std::endl;
    else std::cerr << "train_digits: " << e.what() << std::endl;
    return 1;
  }
  return 0;
}
