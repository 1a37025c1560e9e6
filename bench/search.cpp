// bench/search.cpp - how long planning takes, and how far a plan is from the bound
#include "../examples/standard_output.hpp"
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/ir/machine/precision.hpp>
#include <tensorpar/program/evidence/certificate.hpp>
#include <tensorpar/program/step_of.hpp>
#include <tensorpar/search/joint/joint.hpp>
#include <tensorpar/search/plan_training.hpp>
#include <tensorpar/peers/strategies.hpp>
#include <tensorpar/typed/typed.hpp>
#include <tensorpar/zoo/registry.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tensorpar::peers;

namespace {

constexpr axis batch{"batch"}, pixels{"pixels"}, classes{"classes"}, tok{"tok"}, hidden{"hidden"}, vocab{"vocab"};

struct digits_mlp {
  static constexpr void define(auto& g) {
    auto x = g.input("image", {batch, pixels(64)});
    auto label = g.input("label", {batch}, dtype::i32);
    auto logits = x | linear{512} | relu{} | linear{512} | relu{} | linear{.out = 10, .to = classes};
    g.output("loss", all(logits, label) | cross_entropy{});
  }
};
struct digits_conv {
  static constexpr void define(auto& g) {
    auto x = g.input("image", {batch, 1, 8, 8});
    auto label = g.input("label", {batch}, dtype::i32);
    auto logits = x | conv2d{.out = 32, .kernel = 3, .pad = 1} | relu{} | conv2d{.out = 64, .kernel = 3, .pad = 1} | relu{} | pool2d{} |
                  conv2d{.out = 64, .kernel = 3, .pad = 1} | relu{} | flatten{} | linear{128} | relu{} | linear{.out = 10, .to = classes};
    g.output("loss", all(logits, label) | cross_entropy{});
  }
};

template <i64 Heads, i64 Width> inline constexpr auto attend = [](ref x) {
  auto q = x | linear{Width}, k = x | linear{Width}, v = x | linear{Width};
  return all(q, k, v) | attention{.heads = Heads, .causal = true} | linear{Width};
};
template <i64 Heads, i64 Width> inline constexpr auto block = seq(residual(seq(layernorm{}, attend<Heads, Width>)),
                                                                  residual(seq(layernorm{}, linear{4 * Width}, gelu{}, linear{Width})));

template <i64 Layers, i64 Heads, i64 Width, i64 Tokens> struct gpt {
  static constexpr void define(auto& g) {
    auto tokens = g.input("tokens", {batch, tok(Tokens)}, dtype::i32);
    auto labels = g.input("labels", {batch, tok(Tokens)}, dtype::i32);
    auto logits = tokens | embedding{.rows = 51200, .width = Width, .to = hidden} | repeat(Layers, block<Heads, Width>) | layernorm{} |
                  linear{.out = 51200, .bias = false, .to = vocab};
    g.output("loss", all(logits, labels) | cross_entropy{});
  }
};
/// 26 embedding tables beside a small network: branches that may run side by side.
struct dlrm {
  static constexpr void define(auto& g) {
    bundle features{};
    features.push(g.input("dense", {batch, 13}) | linear{512} | relu{} | linear{256} | relu{} | linear{64});
    for (int t = 0; t < 26; ++t) features.push(g.input({"sparse", t}, {batch, 1}, dtype::i32) | embedding_bag{.rows = 100000, .width = 64});
    auto click = features | concat{} | linear{1024} | relu{} | linear{512} | relu{} | linear{1};
    g.output("loss", all(click, g.input("clicked", {batch, 1})) | mean_squared_error{});
  }
};

void line(char const* name, char const* metric, double value, char const* unit, double reference) {
  std::printf("{\"bench\":\"search\",\"case\":\"%s\",\"metric\":\"%s\",\"value\":%.6g,\"unit\":\"%s\",\"reference\":%.6g,\"ratio\":%.4g}\n",
              name, metric, value, unit, reference, reference > 0 ? value / reference : 0.0);
}
double memory_mb() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_maxrss) / 1024;
}

/// Numbers have four bytes in all of these plans, so devices have their FLOP/s in that format.
machine in_f32(std::string const& cluster) { return at_precision(preset(cluster), precision::f32); }

template <class Model> void run(char const* name, i64 samples, machine const& m, double max_seconds, double max_mb) {
  computation_graph const g = lower(typed<Model>, {batch = samples});
  search_options const o;
  search_result r;
  double least = 1e300;
  for (int i = 0; i < 3; ++i) {
    auto const from = std::chrono::steady_clock::now();
    r = optimize(g, m, cost::analytical{}, o);
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count());
  }
  line(name, "plan", least, "s", max_seconds);
  if (max_mb > 0) line(name, "peak memory of the process", memory_mb(), "MB", max_mb);
  line(name, "operators", r.operators, "", 0);
  line(name, "different operators", r.kinds, "", 0);
  line(name, "shardings", static_cast<double>(r.choices), "", 0);
  line(name, "reshards priced", static_cast<double>(r.moves_priced), "", 0);
  line(name, "tables joined", r.statistics.tables, "", 0);
  line(name, "step", r.cost.seconds, "s", r.bound);
  line(name, "gap", r.gap, "", 0);
  for (baseline const& b : r.baselines) line(name, ("step, " + b.name).c_str(), b.cost.seconds, "s", r.cost.seconds);
}

/// Unity's models at its batch sizes on Summit nodes: rules and shardings together (OSDI 2022, figures 14 and 15, table 2). `seconds`: the
/// paper's search time, 0 where it gives none; `faster`: how many times as fast as the best plan of others it trains (section 6.2).
void joint(std::string const& model, int nodes, bool split, double seconds, double faster = 0, bool remember = true) {
  machine const on = preset("summit:" + std::to_string(nodes));
  i64 samples = on.size();
  for (zoo::entry const& e : zoo::entries()) if (e.name == model) samples *= e.samples_per_device;
  computation_graph const g = zoo::make(model, samples);
  joint_options o;
  o.split = split;
  o.remember = remember;
  auto const from = std::chrono::steady_clock::now();
  joint_result const r = optimize_jointly(g, on, cost::analytical{}, o);
  double const took = std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
  std::string const name = model + " on " + std::to_string(on.size()) + (split ? "" : ", in one part")
      + (remember ? "" : ", nothing remembered");
  line(name.c_str(), "joint search", took, "s", seconds);
  if (!r.feasible()) {
    line(name.c_str(), "lacks on the fullest device", static_cast<double>(r.infeasible->missing) / 1e9, "GB", 0);
    return;
  }
  line(name.c_str(), "step", r.cost.seconds, "s", r.bound);
  line(name.c_str(), "gap", r.gap, "", 0);
  line(name.c_str(), "graphs priced", r.rewriting.candidates, "", 0);
  line(name.c_str(), "tables remembered", static_cast<double>(r.rewriting.remembered), "", static_cast<double>(r.rewriting.tables));
  line(name.c_str(), "rules applied", r.rewriting.steps, "", 0);
  for (baseline const& b : r.baselines) line(name.c_str(), ("step, " + b.name).c_str(), b.cost.seconds, "s", r.cost.seconds);
  if (!split || !remember) return;
  std::vector<baseline> others = strategies(g, on, cost::analytical{}, o.search);
  for (baseline const& b : others) line(name.c_str(), ("step, " + b.name).c_str(), b.cost.seconds, "s", r.cost.seconds);
  // what the paper compares with, of that what fits: data parallelism, and experts' plans
  double best = 0;
  others.insert(others.end(), r.baselines.begin(), r.baselines.end());
  for (baseline const& b : others) {
    bool fits = b.name == "data parallel" || b.name == "expert" || b.name == "Megatron";
    for (int d = 0; d < on.size(); ++d) fits = fits && b.cost.bytes[static_cast<std::size_t>(d)] <= on.kind_of(d).memory;
    if (fits && (best == 0 || b.cost.seconds < best)) best = b.cost.seconds;
  }
  line(name.c_str(), "times as fast as data parallelism and experts", best / r.cost.seconds, "", faster);
  joint_result const s = optimize_one_after_the_other(g, on, cost::analytical{}, o);
  if (!s.feasible()) return;
  line(name.c_str(), "step, one after the other", s.cost.seconds, "s", r.cost.seconds);
  // TASO and then FlexFlow, as in the paper's figure 14
  for (baseline const& b : strategies(s.graph, on, cost::analytical{}, o.search))
    if (b.name == "random walk") line(name.c_str(), "step, algebra and then a random walk", b.cost.seconds, "s", r.cost.seconds);
}

struct unity_model { char const* model; double seconds[6], faster; };
constexpr unity_model unity_models[] = {
    {"resnext50_artifact", {57, 107, 180, 355, 0, 0}, 1.0}, {"inception_v3_artifact", {}, 1.3}, {"bert_artifact", {}, 1.0},
        {"dlrm", {}, 3.6}, {"xdl", {}, 1.9}, {"candle_uno", {}, 1.6}, {"mlp_unify", {}, 2.0}};

/// MODEL:NODES, or what is wrong with it.
struct joint_request { std::string model; int nodes = 0; };
joint_request request_of(std::string const& text) {
  auto const colon = text.find(':');
  joint_request r{text.substr(0, colon), 0};
  std::string names;
  bool known = false;
  for (unity_model const& m : unity_models) {
    names += (names.empty() ? "" : ", ") + std::string(m.model);
    known = known || r.model == m.model;
  }
  std::string const number = colon == std::string::npos ? "" : text.substr(colon + 1);
  bool const digits = !number.empty() && number.size() <= 4 && number.find_first_not_of("0123456789") == std::string::npos;
  if (digits) r.nodes = std::atoi(number.c_str());
  if (!known) throw error("model \"" + r.model + "\"", "--joint " + text, names + ", as MODEL:NODES");
  if (r.nodes < 1) throw error("\"" + number + "\" nodes", "--joint " + text, "MODEL:NODES with 1 to 9999 nodes");
  return r;
}

/// All of them on so many nodes, or one by name.
void unity(int nodes, std::string const& only) {
  int k = 0;                                           // nodes are powers of two
  while (k < 5 && 1 << k < nodes) ++k;
  for (unity_model const& x : unity_models)
    if (only.empty() || only == x.model) joint(x.model, nodes, true, x.seconds[k], x.faster);
}

/// Rules and shardings together, median of three searches, in seconds.
double median_search(computation_graph const& g, machine const& on) {
  std::vector<double> took;
  for (int i = 0; i < 3; ++i) {
    auto const from = std::chrono::steady_clock::now();
    if (!optimize_jointly(g, on, cost::analytical{}).feasible()) throw error("no plan fits", "bench", "a cluster with more memory");
    took.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count());
  }
  std::sort(took.begin(), took.end());
  return took[1];
}
/// 64 times as many devices: how much longer the search takes.
void growth(std::string const& model) {
  double seconds[2];
  int const nodes[] = {32, 2048};
  for (int k : {0, 1}) {
    machine const on = preset("summit:" + std::to_string(nodes[k]));
    i64 samples = on.size();
    for (zoo::entry const& e : zoo::entries()) if (e.name == model) samples *= e.samples_per_device;
    seconds[k] = median_search(zoo::make(model, samples), on);
  }
  line((model + " on 12288").c_str(), "joint search", seconds[1], "s", 0);
  line((model + " on 12288").c_str(), "joint search, times that on 192", seconds[1] / seconds[0], "", 2);
}
void large(std::string const& model, int nodes, i64 samples, double max_seconds) {
  machine const on = in_f32("dgx-h100:" + std::to_string(nodes));
  line((model + ", " + std::to_string(samples) + " samples on " + std::to_string(on.size()) + " H100").c_str(), "joint search",
       median_search(zoo::make(model, samples), on), "s", max_seconds);
}

/// A model that does not fit without sharded weights or recomputation, trained with AdamW in single precision.
void short_of_memory(std::string const& model, int nodes, i64 samples, double max_seconds) {
  machine const on = in_f32("dgx-h100:" + std::to_string(nodes));
  computation_graph const g = zoo::make(model, samples);
  search_options o;
  o.optimizer.kind = optimizer_kind::adamw;
  auto const from = std::chrono::steady_clock::now();
  search_result const r = optimize(g, on, cost::analytical{}, o);
  double const took = std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
  std::string const name = model + ", " + std::to_string(samples) + " samples on " + std::to_string(on.size()) + " H100";
  line(name.c_str(), "plan", took, "s", max_seconds);
  if (!r.feasible()) {
    line(name.c_str(), "lacks on the fullest device", static_cast<double>(r.infeasible->missing) / 1e9, "GB", 0);
    return;
  }
  int again = 0, update = 0, weights = 0;
  for (op_strategy const& n : r.plan.nodes) {
    again += n.recompute;
    update += n.zero == ir::zero_stage::updates;
    weights += n.zero == ir::zero_stage::weights;
  }
  line(name.c_str(), "step", r.cost.seconds, "s", r.bound);
  line(name.c_str(), "largest arena", static_cast<double>(*std::max_element(r.cost.bytes.begin(), r.cost.bytes.end())) / 1e9, "GB",
       static_cast<double>(on.kinds[0].memory) / 1e9);
  line(name.c_str(), "operators computed again", again, "", r.operators);
  line(name.c_str(), "operators whose weights are updated in parts", update, "", r.operators);
  line(name.c_str(), "operators whose weights are kept in parts", weights, "", r.operators);
  plan p = r.plan;
  seal(g, p);
  auto const begun = std::chrono::steady_clock::now();
  if (auto const wrong = check_certificate(g, p); !wrong.empty()) throw error(wrong.front().text, name, "a plan that is accepted");
  line(name.c_str(), "replay of the evidence", std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count(), "s", 1);
}

/// Rules, micro-batches, shardings and stages chosen together for AdamW in single precision, beside strategies of others and each kind
/// alone
/// without rules: all simulated as programs, those that do not fit left out.
void batch_on(std::string const& model, std::string const& cluster, i64 samples) {
  machine const on = in_f32(cluster);
  computation_graph const g = zoo::make(model, 1);
  training_problem const asked{.graph = g, .samples = samples, .optimizer = {optimizer_kind::adamw}};
  auto const from = std::chrono::steady_clock::now();
  planned const r = plan_training(asked, on, cost::analytical{}, {.effort = effort::thorough});
  double const took = std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
  std::string const name = model + ", a batch of " + std::to_string(samples) + " on " + cluster;
  line(name.c_str(), "plan of any kind", took, "s", 0);
  if (!r.feasible()) throw error("no plan fits", name, "a smaller batch");
  double const step = r.plan.step_seconds;
  double shardings = 0, stages = 0, known = 0;
  auto const less = [](double& least, double s) { if (least == 0 || s < least) least = s; };
  for (tried_plan const& c : r.tried)
    if (c.feasible() && c.what.find("rewritten") == std::string::npos) less(c.stages > 0 ? stages : shardings, c.seconds);
  computation_graph const whole = ir::rebatch(g, samples);
  plan p = one_device_plan(whole, {"loss", asked.optimizer, 1});
  p.cluster = on;
  search_options o;
  o.optimizer = asked.optimizer;
  for (baseline const& b : strategies(whole, on, cost::analytical{}, o)) {
    p.nodes = b.nodes;
    program const q = step_of(whole, p).program;
    bool fits = true;
    for (int d = 0; d < on.size(); ++d) fits = fits && q.arena[static_cast<std::size_t>(d)] <= on.kind_of(d).memory;
    if (fits) less(known, simulate(q, on, cost::analytical{}, {true, false}).seconds);
  }
  line(name.c_str(), "step", step, "s", shardings);
  line(name.c_str(), "stages", static_cast<double>(r.plan.pipeline.stages.size()), "", 0);
  line(name.c_str(), "rules applied", static_cast<double>(r.plan.rewrites.size()), "", 0);
  line(name.c_str(), "times as fast as without rules", std::min(shardings > 0 ? shardings : stages, stages > 0 ? stages : shardings) / step,
       "", 1);
  line(name.c_str(), "times as fast as shardings", shardings / step, "", 1);
  line(name.c_str(), "times as fast as pipelines", stages / step, "", 1);
  if (known > 0)
    line(name.c_str(), "times as fast as data and tensor parallelism, ZeRO, Megatron, meshes, a random walk", known / step, "", 1);
}

void all_batches() {
  batch_on("bert_large", "g4dn.12xlarge:2", 32);
  batch_on("gpt3_1b3", "g4dn.12xlarge:2", 16);
  batch_on("gpt3_1b3", "dgx-h100:2", 64);
  batch_on("llama3_8b", "dgx-h100:4", 32);
  batch_on("moe_2b6", "summit:2", 32);
  batch_on("mmt", "g3.16xlarge:2", 64);
  batch_on("candle_uno", "autodist-b10", 1024);
  batch_on("dlrm_criteo", "g4dn.12xlarge:2", 2048);
  batch_on("resnet50", "g4dn.12xlarge:2", 64);
  batch_on("vgg19", "g3.4xlarge:8", 128);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"How long planning takes, and how far a plan is from the bound on all plans"};
  bool quick = false, batches = false;
  std::vector<std::string> only;
  app.add_flag("--quick", quick, "the digits models only");
  app.add_flag("--batches", batches, "plans of any kind for a batch only");
  app.add_option("--joint", only, "MODEL:NODES, only rules and shardings together for these models of Unity's on so many Summit nodes");
  CLI11_PARSE(app, argc, argv);
  std::vector<joint_request> asked;
  try {
    for (std::string const& x : only) asked.push_back(request_of(x));
  } catch (error const& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
  if (batches) return all_batches(), 0;
  for (joint_request const& x : asked) unity(x.nodes, x.model);
  if (!only.empty()) return 0;
  device_kind const core{"core", 2e10, 1e10, i64{4} << 30, 2e-6};
  link_level const bus{"memory", 1, 2e-6, 5e9}, wire{"Ethernet", 1, 5e-5, 1e8};
  machine const four = make_cluster("4 cores", core, 4, 4, bus, wire), two_nodes = make_cluster("2 nodes of 2", core, 4, 2, bus, wire),
                eight = make_cluster("8 cores", core, 8, 8, bus, wire);
  run<digits_mlp>("digits mlp on 4", 64, four, 0.02, 0);
  run<digits_conv>("digits conv net on 4", 64, four, 0.02, 0);
  run<digits_mlp>("digits mlp on 2x2", 64, two_nodes, 0.02, 0);
  run<digits_conv>("digits conv net on 2x2", 64, two_nodes, 0.02, 0);
  run<digits_mlp>("digits mlp on 8", 64, eight, 0.02, 0);
  run<digits_conv>("digits conv net on 8", 64, eight, 0.02, 0);
  if (quick) return 0;
  device_kind const gpu{"H100", 4e14, 3e12, i64{80} << 30, 4e-6};
  machine const cluster = make_cluster("8x8", gpu, 64, 8, {"NVLink", 8, 2e-6, 4.5e11}, {"InfiniBand", 64, 5e-6, 5e10});
  run<gpt<96, 32, 4096, 2048>>("gpt 96 layers on 8x8", 16, cluster, 1, 300);
  run<dlrm>("dlrm on 8x8", 2048, cluster, 0, 0);
  short_of_memory("bert_large", 1, 512, 0);
  short_of_memory("llama3_8b", 8, 64, 1);
  short_of_memory("llama3_70b", 32, 128, 0);
  short_of_memory("llama3_405b", 512, 512, 5);
  for (int nodes : {1, 2, 4, 8, 16, 32}) unity(nodes, {});
  for (char const* model : {"resnext50_artifact", "inception_v3_artifact", "bert_artifact", "dlrm", "xdl", "candle_uno", "mlp_unify"})
    growth(model);
  large("llama3_8b", 8, 64, 1);
  large("llama3_405b", 512, 512, 5);
  // table 2: without splits; without splits and caches
  joint("resnext50_artifact", 1, false, 4 * 60 + 1);
  joint("resnext50_artifact", 2, false, 11 * 60 + 15);
  joint("resnext50_artifact", 1, true, 0, 0, false);
  joint("resnext50_artifact", 1, false, 37 * 60 + 1, 0, false);
  all_batches();
  return 0;
}
