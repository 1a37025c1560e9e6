// examples/plan.cpp - plan any model of the zoo on any cluster: rules and shardings together, shardings alone, plans of any kind, or no
// search
#include "standard_output.hpp"
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/ir/machine/precision.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/peers/strategies.hpp>
#include <tensorpar/plan/cluster_file.hpp>
#include <tensorpar/plan/plan_file.hpp>
#include <tensorpar/program/evidence/certificate.hpp>
#include <tensorpar/program/step_of.hpp>
#include <tensorpar/program/unroll.hpp>
#include <tensorpar/report/bound.hpp>
#include <tensorpar/report/comparison.hpp>
#include <tensorpar/report/page/html.hpp>
#include <tensorpar/report/json.hpp>
#include <tensorpar/report/reason.hpp>
#include <tensorpar/report/strategy.hpp>
#include <tensorpar/search/joint/joint.hpp>
#include <tensorpar/search/plan_training.hpp>
#include <tensorpar/simulate/engine.hpp>
#include <tensorpar/zoo/registry.hpp>
#include <thread>

#include "flags.hpp"

using namespace tensorpar;

namespace {

struct settings {
  std::string model = "bert_large", cluster = "summit:1", search = "unity", optimizer = "sgd", plan_file, html, verify, precision,
      date, command, numbers;   // numbers: what the precision means here
  tensorpar::precision format() const { return precision_of(precision.empty() ? "f32" : precision); }
  i64 batch = 0;
  int graphs = 200;
  u64 seed = 1;
  double budget = 0, alpha = 1.05;
  bool reduced = false, json = false, list = false, whole = false, check = false, simulate = false, distribute = false, explain = false,
      progress = false;
};

/// While it lives, a line on standard error every ten seconds: a long search is not silent.
class still_here {
  std::mutex m_;
  std::condition_variable_any ended_;
  std::string doing_;
  std::jthread thread_;

 public:
  explicit still_here(std::string doing) : doing_(std::move(doing)), thread_([this](std::stop_token stop) {
    std::unique_lock lock(m_);
    for (int seconds = 10; !ended_.wait_for(lock, stop, std::chrono::seconds(10), [&] { return stop.stop_requested(); }); seconds += 10)
      std::fprintf(stderr, "plan: %s, %d s\n", doing_.c_str(), seconds);
  }) {}
};

double seconds_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
}
i64 resident_bytes() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return i64{u.ru_maxrss} * 1024;
}

void list_models() {
  for (zoo::entry const& e : zoo::entries()) {
    std::printf("%-22s %s; %lld samples per device\n", e.name.c_str(), e.description.c_str(), static_cast<long long>(e.samples_per_device));
    std::string sizes;
    for (auto const& p : e.params) sizes += " " + p.key + "=" + std::to_string(p.value);
    std::printf("%22s%s\n", "", sizes.c_str());
  }
}
i64 samples_per_device(std::string const& spec) {
  std::string const name = spec.substr(0, spec.find(':'));
  for (zoo::entry const& e : zoo::entries()) if (e.name == name) return e.samples_per_device;
  return 1;                                                   // zoo::make says what is wrong
}

/// A search's name without case, spaces and hyphens, short forms written out.
std::string name_of_search(std::string const& given) {
  std::string plain;
  for (unsigned char c : given) if (std::isalnum(c)) plain += static_cast<char>(std::tolower(c));
  std::pair<char const*, char const*> const forms[] = {
      {"dp", "dataparallel"}, {"tp", "tensorparallel"},  {"zero1", "zero2"},
      {"mesh", "uniformgrid"}, {"mcmc", "randomwalk"}, {"sequential", "oneaftertheother"}};
  for (auto const& [form, whole] : forms) if (plain == form) plain = whole;
  return plain;
}

computation_graph declared_for(settings const& s, i64 batch) {
  return s.reduced ? zoo::make_reduced(s.model, batch) : zoo::make(s.model, batch);
}

search::joint_result searched(settings const& s, computation_graph const& g, machine const& on, search::joint_options const& o) {
  cost::analytical const model;
  std::string const name = name_of_search(s.search);
  if (name == "unity") return search::optimize_jointly(g, on, model, o);
  if (name == "oneaftertheother") return search::optimize_one_after_the_other(g, on, model, o);
  search::joint_result r;
  static_cast<search::search_result&>(r) = search::optimize(g, on, model, o.search);
  r.graph = g;
  if (name == "mapping") return r;
  std::vector<search::baseline> all = r.baselines;
  for (search::baseline& b : peers::strategies(g, on, model, o.search, {.seed = s.seed})) all.push_back(std::move(b));
  std::string valid = "unity, mapping, any, one-after-the-other";
  for (search::baseline const& b : all) {
    valid += ", " + b.name;
    if (name_of_search(b.name) != name) continue;
    r.infeasible = r.plan.infeasible = search::shortage_in(b.cost.bytes, on.memories(), true);
    r.plan.model = s.model;
    r.plan.graph = g.hash();
    r.plan.nodes = b.nodes;
    r.plan.node_order.clear();
    r.cost = b.cost;
    r.plan.cost = b.cost.seconds;
    r.bound = r.plan.bound = std::min(r.bound, b.cost.seconds);
    r.gap = (r.cost.seconds - r.bound) / r.cost.seconds;
    return r;
  }
  throw error("no search \"" + s.search + "\" for this model", "--search", valid);
}

/// Bytes that a device lacks at most, 0 if all fits.
i64 lacks(std::vector<i64> const& bytes, machine const& on) {
  i64 most = 0;
  for (int d = 0; d < on.size(); ++d) most = std::max(most, bytes[static_cast<std::size_t>(d)] - on.kind_of(d).memory);
  return most;
}
std::string lacks_text(std::vector<i64> const& bytes, machine const& on) {
  i64 const most = lacks(bytes, on);
  return most > 0 ? ", does not fit: lacks " + report::bytes_text(static_cast<double>(most)) : "";
}

int no_plan(settings const& s, machine const& on, shortage const& w) {
  if (s.json)
    std::cout << report::event_line("infeasible", {{"model", s.model}, {"devices", on.size()}, {"device", w.device},
                                                   {"lacks_bytes", w.missing},
                                           {"needed_bytes", w.needed}, {"capacity_bytes", w.capacity}, {"proven", w.proven}});
  else
    std::printf("no plan fits%s: device %d needs %s and has %s, it lacks %s; more devices or a smaller batch would help\n",
                w.proven ? "" : " that was found", w.device, report::bytes_text(static_cast<double>(w.needed)).c_str(),
                report::bytes_text(static_cast<double>(w.capacity)).c_str(), report::bytes_text(static_cast<double>(w.missing)).c_str());
  return 3;
}
optimizer_choice optimizer_of(settings const& s) {
  optimizer_choice o;
  o.kind = s.optimizer == "adamw" ? optimizer_kind::adamw : s.optimizer == "momentum" ? optimizer_kind::momentum : optimizer_kind::sgd;
  return o;
}

/// What else could have been, each answered by mapping the planned graph again.
void explain(search::joint_result const& r, machine const& on, search::search_options o) {
  o.compare = false;
  auto const again = [&](std::string const& what, machine const& m) {
    auto const start = std::chrono::steady_clock::now();
    search::search_result const x = search::optimize(r.graph, m, cost::analytical{}, o);
    std::string answer;
    if (x.feasible()) {
      double const longer = x.cost.seconds / r.cost.seconds - 1;
      answer = "step " + report::seconds_text(x.cost.seconds) + ", " + report::percent_text(std::abs(longer))
          + (longer < 0 ? " shorter" : " longer");
    } else answer = "no plan fits, " + report::bytes_text(static_cast<double>(x.infeasible->missing)) + " missing";
    std::printf("  %s: %s (answered in %s)\n", what.c_str(), answer.c_str(), report::seconds_text(seconds_since(start)).c_str());
  };
  std::printf("why not, and what if:\n");
  for (search::baseline const& b : r.baselines)
    std::printf("  %s: step %s, %.2f of the plan's%s\n", b.name.c_str(), report::seconds_text(b.cost.seconds).c_str(),
                b.cost.seconds / r.cost.seconds, lacks_text(b.cost.bytes, on).c_str());
  for (std::size_t k = 0; k < on.links.size(); ++k) {
    machine m = on;
    m.links[k].bandwidth /= 2;
    again("links \"" + on.links[k].name + "\" half as fast", m);
  }
  machine more = on;
  for (device_kind& k : more.kinds) k.memory += i64{8} << 30;
  again("8 GiB more on every device", more);
}

/// Flags that this mode does not look at are refused.
void require_flags(CLI::App const& app, settings const& s) {
  if (s.list) return flags::refuse_all_but(app, "--list", {"--list"});
  if (!s.verify.empty())
    return flags::refuse_all_but(app, "--verify", {"--verify", "--model", "--reduced", "--batch", "--precision", "--json"});
  std::string const name = name_of_search(s.search), mode = "--search " + s.search;
  bool const rules = name == "unity" || name == "oneaftertheother" || name == "any";
  if (!rules) flags::refuse(app, mode, {"--graphs", "--alpha", "--distribute", "--whole", "--budget", "--progress"});
  if (name == "any") flags::refuse(app, mode, {"--explain", "--seed"});
  if (s.json) flags::refuse(app, "--json", {"--explain"});
  flags::require(app, "--html", {"--date"});
}

/// Replays a plan's evidence. Says how long it took.
void verify(settings const& s, computation_graph const& declared, plan const& p) {
  auto const start = std::chrono::steady_clock::now();
  require_accepted(check_certificate(declared, p), s.verify.empty() ? "plan" : s.verify);
  double const took = seconds_since(start);
  if (s.json)
    std::cout << report::event_line("checked", {{"model", s.model}, {"devices", p.cluster.size()}, {"rewrites", p.rewrites.size()},
                                        {"check_s", took}, {"rss_bytes", resident_bytes()}});
  else
    std::printf("checked in %s: %zu rules, %zu operators, and what every one of %d devices does\n", report::seconds_text(took).c_str(),
                p.rewrites.size(), p.nodes.size(), p.cluster.size());
}

/// Plans of other strategies as the page compares them: their steps are simulated, too.
std::vector<report::rival> rivals_of(std::vector<search::baseline> const& all, computation_graph const& declared,
                                     computation_graph const& graph, plan p) {
  std::vector<report::rival> r;
  planned_step const mine = step_to_simulate(graph, p);
  report::step_account const chosen = report::account_of(mine, simulate(mine.program, p.cluster, cost::analytical{}, {.memory = false}));
  p.graph = declared.hash();
  p.rewrites.clear();
  p.node_order.clear();
  p.prefetch = 0;
  p.infeasible.reset();
  for (search::baseline const& b : all) {
    if (b.nodes.size() != static_cast<std::size_t>(declared.node_count())) continue;
    p.nodes = b.nodes;
    planned_step const step = step_to_simulate(declared, p);
    timeline const time = simulate(step.program, p.cluster, cost::analytical{}, {.memory = false});
    report::plan_summary const sum = report::summary_of(b.name, step.graph, step.plan, step.program, time);
    r.push_back({b.name, report::settings_text(sum), sum.seconds, sum.peak(), std::max(i64{0}, sum.lacks()),
                 report::reason_text(chosen, report::account_of(step, time))});
  }
  return r;
}
/// Unrolls for all devices and simulates; writes the page.
void look_closer(settings const& s, computation_graph const& graph, plan& p, std::vector<report::rival> rivals) {
  planned_step step = step_of(graph, p);
  program const& q = step.program;
  timeline const time = simulate(q, p.cluster, cost::analytical{});
  p.step_seconds = step.plan.step_seconds = time.seconds;
  report::plan_summary const all = report::summary_of("plan", step.graph, step.plan, q, time);
  std::string const strategy = report::strategy_text(graph, p);
  if (!s.html.empty()) {                                                  // [quoted: page]
    report::page_notes const notes{.strategy = strategy, .rivals = std::move(rivals), .date = s.date, .command = s.command};
    std::string const page = report::html_report(step.graph, step.plan, q, time, {}, {}, notes);
    core::write_whole_file(s.html, page);
  }                                                                       // [end]
  if (s.json) return;
  std::printf("%s\nsimulated step %s, largest arena %s; %s\n", strategy.c_str(), report::seconds_text(time.seconds).c_str(),
              report::bytes_text(static_cast<double>(all.peak())).c_str(), all.dominated.c_str());
}

/// What rules were applied, each with its number of times.
void print_rules(plan const& p) {
  std::map<std::string, int> rules;
  for (rewrite::rewrite_record const& x : p.rewrites) ++rules[rewrite::spell(*passes::standard_rule(x.rule))];
  for (auto const& [what, n] : rules) std::printf("  %d x %s\n", n, what.c_str());
}

/// Rules, micro-batches, shardings or stages: whatever is fastest for a batch.
int any_kind(settings const& s, machine const& on, i64 batch, search::joint_options const& rules) {
  computation_graph const one = declared_for(s, 1);
  planning_options o{.effort = effort::thorough};
  o.knobs.rules = rules;
  auto const start = std::chrono::steady_clock::now();
  std::fprintf(stderr, "plan: searching micro-batches, shardings and stages, with rules and without, for %lld samples on %d devices\n",
               static_cast<long long>(batch), on.size());
  planned r = [&] {
    still_here const note("searching");
    return plan_training({.graph = one, .samples = batch, .optimizer = optimizer_of(s), .precision = s.format(), .name = s.model}, on,
                         cost::analytical{}, o);
  }();
  double const took = seconds_since(start);
  for (std::size_t i = 0; i < r.tried.size(); ++i) {
    tried_plan const& c = r.tried[i];
    bool const taken = static_cast<int>(i) == r.chosen;
    if (s.json)
      std::cout << report::event_line("candidate",
                                      {{"what", c.what}, {"micro_batches", c.micro_batches}, {"stages", c.stages}, {"step_s", c.seconds},
                                            {"peak_bytes", c.peak}, {"fits", c.feasible()}, {"taken", taken},
                                            {"lacks_bytes", c.infeasible ? c.infeasible->missing : 0}, {"refused", c.refused}});
    else if (!c.feasible())
      std::printf("  %-24s %s\n", c.what.c_str(),
                  c.infeasible ? ("lacks " + report::bytes_text(static_cast<double>(c.infeasible->missing))).c_str() : c.refused.c_str());
    else
      std::printf("%c %-24s %4d micro-batches, %2d stages: step %s, largest arena %s\n", taken ? '*' : ' ', c.what.c_str(), c.micro_batches,
                  c.stages, report::seconds_text(c.seconds).c_str(), report::bytes_text(static_cast<double>(c.peak)).c_str());
  }
  if (!r.feasible()) return no_plan(s, on, *r.infeasible);
  if (!s.json) {
    std::printf("%s, %lld samples on %d devices of %s: planned in %s; %zu rules applied; %s\n", s.model.c_str(),
                static_cast<long long>(batch), on.size(), on.name.c_str(), report::seconds_text(took).c_str(), r.plan.rewrites.size(),
                scratch_text(r.plan.scratch).c_str());
    std::printf("numbers in %s\n", s.numbers.c_str());
    print_rules(r.plan);
  }
  if (s.check) verify(s, graph_of(one, r.plan, batch), r.plan);
  if (s.simulate || !s.html.empty()) look_closer(s, r.graph, r.plan, report::rivals_of(r));
  if (!s.plan_file.empty()) write_plan(r.plan, s.plan_file);
  if (s.json)
    std::cout << report::event_line("plan", {{"model", s.model}, {"devices", on.size()}, {"search", s.search},
                                     {"precision", precision_names[static_cast<int>(s.format())]}, {"numbers", s.numbers}, {"search_s", took},
                                     {"step_s", r.plan.step_seconds}, {"rewrites", r.plan.rewrites.size()},
                                     {"rss_bytes", resident_bytes()}, {"peak_bytes", r.plan.peak_bytes},
                                     {"scratch", scratch_text(r.plan.scratch)}});
  return 0;
}

int work(settings s) {
  if (s.list) { list_models(); return 0; }
  std::optional<plan> stored;
  if (!s.verify.empty()) stored = read_plan(s.verify);
  if (stored && !s.precision.empty() && s.format() != stored->precision)
    throw error("--precision " + s.precision + " for a plan in " + precision_names[static_cast<int>(stored->precision)], s.verify,
                "no such flag: the plan says it");
  machine const on = stored ? stored->cluster : at_precision(find_cluster(s.cluster), s.format());
  s.numbers = precision_text(on, s.format());
  i64 const batch = s.batch ? s.batch : samples_per_device(s.model) * on.size();
  bool const any = !stored && name_of_search(s.search) == "any";
  computation_graph declared;
  if (!any) declared = at_precision(declared_for(s, batch), stored ? stored->precision : s.format());
  if (stored) {
    if ((stored->rewrites.empty() ? stored->graph : stored->serial) != declared.hash())   // a plan of any kind may run parts of the batch
      declared = graph_of(declared_for(s, 1), *stored, batch);
    verify(s, declared, *stored);
    return 0;
  }
  search::joint_options o;
  o.search.model = s.model;
  o.search.optimizer = optimizer_of(s);
  o.rewriting.alpha = s.alpha;
  o.rewriting.priced = s.graphs;
  o.rewriting.distribute = s.distribute;
  o.split = !s.whole;
  auto const start = std::chrono::steady_clock::now();
  struct clock final : search::joint_watch {
    settings const& s;
    std::chrono::steady_clock::time_point start;
    clock(settings const& given, std::chrono::steady_clock::time_point from) : s(given), start(from) {}
    bool go_on(search::joint_progress const& p) override {
      if (s.progress)
        std::fprintf(stderr, "part %d of %d, %d graphs, %s\n", p.part + 1, p.parts, p.candidates, report::seconds_text(p.least).c_str());
      return s.budget <= 0 || seconds_since(start) < s.budget;
    }
  } watch(s, start);
  o.watch = &watch;
  if (any) return any_kind(s, on, batch, o);
  search::joint_result r = [&] {
    still_here const note("searching for " + s.model + " on " + std::to_string(on.size()) + " devices");
    return searched(s, declared, on, o);
  }();
  r.plan.precision = s.format();
  double const took = seconds_since(start);
  if (std::string const name = name_of_search(s.search); name == "unity" || name == "oneaftertheother" || name == "mapping")
    for (search::baseline& b : peers::strategies(declared, on, cost::analytical{}, o.search, {.seed = s.seed}))
      r.baselines.push_back(std::move(b));
  if (!r.feasible()) return no_plan(s, on, *r.infeasible);
  if (!s.json) {
    std::printf("%s, %lld samples on %d devices of %s: %d operators, planned in %s\n", s.model.c_str(), static_cast<long long>(batch),
                on.size(), on.name.c_str(), r.operators, report::seconds_text(took).c_str());
    std::printf("step %s, no plan of the space on %s below %s (gap %s)\n", report::seconds_text(r.cost.seconds).c_str(),
                report::bound_holds_for(r.space, on.size()).c_str(), report::seconds_text(r.bound).c_str(),
                    report::gap_text(r.cost.seconds, r.bound).c_str());
    if (r.statistics.branches_left)
      std::printf("the gap may be wide: not all ways to lay branches side by side were looked at, the bound shares work evenly\n");
    std::printf("numbers in %s\n", s.numbers.c_str());
    if (r.rewriting.parts)
      std::printf("%d parts, %d of them different; %d graphs priced%s; %d rules applied\n", r.rewriting.parts, r.rewriting.kinds,
                  r.rewriting.candidates, r.rewriting.exhausted ? "" : " (the budget ended)", r.rewriting.steps);
    print_rules(r.plan);
    int again = 0, shared = 0, parts = 0;
    for (op_strategy const& n : r.plan.nodes) {
      again += n.recompute;
      shared += n.zero == ir::zero_stage::updates;
      parts += n.zero == ir::zero_stage::weights;
    }
    std::printf("%d operators computed again, weights of %d updated in parts and of %d kept in parts; largest arena %s, %s\n", again,
                shared, parts, report::bytes_text(static_cast<double>(*std::max_element(r.cost.bytes.begin(), r.cost.bytes.end()))).c_str(),
                scratch_text(r.plan.scratch).c_str());
    if (!s.explain)
      for (search::baseline const& b : r.baselines)
        std::printf("%-16s step %s, %.2f of the plan's%s\n", b.name.c_str(), report::seconds_text(b.cost.seconds).c_str(),
                    b.cost.seconds / r.cost.seconds, lacks_text(b.cost.bytes, on).c_str());
    else explain(r, on, o.search);
  }
  seal(r.graph, r.plan);
  if (s.check) verify(s, declared, r.plan);
  std::vector<report::rival> rivals;
  if (!s.html.empty()) rivals = rivals_of(r.baselines, declared, r.graph, r.plan);
  if (s.simulate || !s.html.empty()) look_closer(s, r.graph, r.plan, std::move(rivals));
  if (!s.plan_file.empty()) {
    write_plan(r.plan, s.plan_file);
    if (passes::rewritten(declared, read_plan(s.plan_file)).hash() != r.graph.hash())
      throw error("the plan read back runs another graph", s.plan_file, "the graph that was planned");
  }
  if (s.json) {
    core::json names = core::json::object(), lack =
        core::json::object();                // of the fullest device; those that fit are not in it
    for (search::baseline const& b : r.baselines) {
      names[b.name] = b.cost.seconds;
      if (i64 const bytes = lacks(b.cost.bytes, on); bytes > 0) lack[b.name] = bytes;
    }
    std::cout << report::event_line("plan", {{"model", s.model}, {"devices", on.size()}, {"search", s.search},
                                     {"precision", precision_names[static_cast<int>(s.format())]}, {"numbers", s.numbers}, {"search_s", took},
                                     {"cost_s", r.cost.seconds}, {"bound_s", r.bound}, {"gap", r.gap},
                                     {"bound_on", report::bound_holds_for(r.space, on.size())}, {"baselines", names},
                                     {"baselines_lack_bytes", lack}, {"scratch", scratch_text(r.plan.scratch)},
                                     {"branches_left", r.statistics.branches_left},
                                     {"candidates", r.rewriting.candidates}, {"cache_hits", r.rewriting.remembered},
                                     {"rewrites", r.rewriting.steps}, {"rss_bytes", resident_bytes()},
                                     {"peak_bytes", r.plan.peak_bytes}});
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Plans the training of a model on a cluster, under the analytical cost model"};
  settings s;
  app.add_option("--model", s.model, "NAME or NAME:key=value,... (see --list)")->capture_default_str();
  app.add_flag("--list", s.list, "all models, with the sizes that can be set");
  app.add_flag("--reduced", s.reduced, "the model's structure with everything small");
  app.add_option("--cluster", s.cluster, "a preset (summit:4 is four nodes of six, dgx-h100:8 eight nodes of eight) or a JSON file")
      ->capture_default_str();
  app.add_option("--batch", s.batch, "samples of a step; 0: what is usual for the model, per device")->check(CLI::Range(i64{0},
      i64{1} << 40));
  app.add_option("--search", s.search,
                 "unity: rules and shardings together; mapping: shardings alone; any: micro-batches, shardings or stages, with rules or without; one-after-the-other: rules for one device, then shardings; or what "
                 "it is compared with: \"data parallel\" (dp), \"tensor parallel\" (tp), ZeRO-2, ZeRO-3, Megatron, \"uniform mesh\", "
                 "expert, \"random walk\" (mcmc) ...")
      ->capture_default_str();
  app.add_option("--budget", s.budget, "seconds after which no further graph is looked at; 0: none")->check(CLI::Range(0.0, 1e9));
  app.add_option("--graphs", s.graphs, "graphs priced per part of the model, at most")->check(CLI::Range(1,
                                                                                                         1'000'000))->capture_default_str();
  app.add_option("--seed", s.seed, "of the random walk that the plan is compared with")->capture_default_str();
  app.add_flag("--progress", s.progress, "a line on standard error for every graph that is looked at");
  app.add_flag("--explain", s.explain, "what other strategies, slower links and more memory would mean");
  app.add_option("--alpha", s.alpha, "graphs that cost more than so many times the best are not developed")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  app.add_flag("--distribute", s.distribute, "try products of parts instead of long concatenations too (takes longer)");
  app.add_flag("--whole", s.whole, "do not cut the model into parts");
  app.add_option("--precision", s.precision,
                 "f32, tf32 (f32's four bytes, products at the rate of tf32), bf16 (two bytes, weights kept in f32 too) or fp8 (as bf16, products with weights at the rate of eight bits); bytes and FLOP/s follow, those of a kind without \"rates\" stay")
      ->check(CLI::IsMember({"f32", "tf32", "bf16", "fp8"}))
      ->default_str("f32");
  app.add_option("--optimizer", s.optimizer)->check(CLI::IsMember({"sgd", "momentum", "adamw"}))->capture_default_str();
  app.add_flag("--check", s.check, "replay the plan's evidence: its rules, and every task that the plan makes");
  app.add_option("--verify", s.verify, "no search: replay the evidence of this plan file, made for this model and batch");
  app.add_flag("--simulate", s.simulate, "simulate the plan's step, task by task");
  app.add_option("--plan", s.plan_file, "write the plan here, with the rules that were applied");
  app.add_option("--html", s.html, "write a page about the plan here (simulates it too)");
  app.add_option("--date", s.date, "what the page says about when it was made; pages ask no clock");
  app.add_flag("--json", s.json, "one object per line");
  CLI11_PARSE(app, argc, argv);
  s.command = "plan";
  for (int i = 1; i < argc; ++i) s.command += " " + flags::quoted(argv[i]);   // for the page
  try {
    require_flags(app, s);
    return work(s);
  } catch (std::exception const& e) {
    std::fprintf(stderr, "plan: %s\n", e.what());
    return 1;
  }
}
