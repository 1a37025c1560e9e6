// bench/published.cpp - steps that others published with their configurations, against what this library predicts for the same
// configurations. What a row does not say (micro-batches, virtual stages, ZeRO, recomputation) is what is predicted to be fastest of a few
// that fit.
#include "../examples/standard_output.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <tensorpar/core/read_file.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/ir/rebatch.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/search/degrees/configured.hpp>
#include <tensorpar/search/overlapped.hpp>
#include <tensorpar/search/plan_training.hpp>
#include <tensorpar/peers/rivals.hpp>
#include <tensorpar/program/fuse_tasks.hpp>
#include <tensorpar/program/step_of.hpp>
#include <tensorpar/simulate/engine.hpp>
#include <tensorpar/zoo/registry.hpp>
#include <vector>

using namespace tensorpar;

namespace {

using row = std::map<std::string, std::string>;

/// One line of a CSV file; a cell may stand in quotes, doubled inside.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> r(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') r.back() += line[++i];
    else if (line[i] == '"') quoted = !quoted;
    else if (line[i] == ',' && !quoted) r.emplace_back();
    else if (line[i] != '\r') r.back() += line[i];
  }
  return r;
}
/// The rows of a CSV file with a header, or of the CSV block of a Markdown page.
std::vector<row> rows_of(std::string const& path) {
  std::string const text = core::read_file(path);
  std::size_t at = text.find("```csv\n");
  std::size_t const end = at == text.npos ? text.size() : text.find("```", at + 7);
  at = at == text.npos ? 0 : at + 7;
  std::vector<std::string> header;
  std::vector<row> r;
  while (at < end) {
    std::size_t const stop = std::min(text.find('\n', at), end);
    std::vector<std::string> const cells = cells_of(std::string_view(text).substr(at, stop - at));
    at = stop + 1;
    if (header.empty()) {
      header = cells;
      continue;
    }
    if (cells.size() != header.size())
      throw error("a row of " + std::to_string(cells.size()) + " cells: " + cells[0], path, std::to_string(header.size()) + " cells");
    r.emplace_back();
    for (std::size_t i = 0; i < cells.size(); ++i) r.back()[header[i]] = cells[i];
  }
  for (char const* key : {"id", "model", "family", "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "gated", "seq", "gpu", "gpus",
                          "gpus_per_node", "precision", "tp", "pp", "vp", "cp", "ep", "dp", "shard", "mbs", "gbs_seqs", "recompute", "step_s", "flag"})
    if (std::find(header.begin(), header.end(), key) == header.end()) throw error(std::string("no column \"") + key + "\"", path, "a CSV with it");
  return r;
}
/// Of a cell that holds a whole number; else `otherwise`.
i64 whole(std::string const& s, i64 otherwise) {
  bool const digits = !s.empty() && s.size() < 16 && s.find_first_not_of("0123456789") == s.npos;
  return digits ? std::stoll(s) : otherwise;
}
bool has(std::string const& s, char const* part) { return s.find(part) != s.npos; }

/// Of a cell that holds a number above 0; else 0.
double real(std::string const& s) {
  char* end = nullptr;
  double const x = std::strtod(s.c_str(), &end);
  return end != s.c_str() && *end == '\0' && std::isfinite(x) && x > 0 ? x : 0;
}

/// The preset of a GPU's kind; null: there is none.
char const* preset_of(std::string const& gpu) {
  for (auto const& [part, name] : {std::pair{"GB200", "gb200-nvl72"}, {"B200", "dgx-b200"}, {"H200", "dgx-h200"}, {"H100", "dgx-h100"}, {"A100", "dgx-a100"}})
    if (has(gpu, part)) return has(gpu, "A100 40GB") ? nullptr : name;
  return nullptr;
}
/// Why a row cannot be declared here; empty: it can.
std::string refusal(row const& r) {
  if (r.at("family") != "dense") return "not a dense model";
  if (whole(r.at("cp"), 1) > 1 || whole(r.at("ep"), 1) > 1) return "context or expert parallelism";
  if (real(r.at("step_s")) == 0) return "no step time";
  if (has(r.at("shard"), "offload")) return "offloading";
  for (char const* key : {"layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "seq", "gpus", "gbs_seqs"})
    if (whole(r.at(key), 0) == 0) return std::string("its ") + key + " is not stated";
  for (char const* key : {"gpus_per_node", "tp", "pp"})
    if (whole(r.at(key), 1) == 0) return std::string("0 in ") + key;
  if (whole(r.at("gpus"), 0) % (whole(r.at("tp"), 1) * whole(r.at("pp"), 1))) return "its tp and pp do not divide its gpus";
  if (r.at("gated") != "1" && r.at("kv_heads") != r.at("heads")) return "grouped heads without gates, of which the zoo has no model";
  if (whole(r.at("head_dim"), 0) && whole(r.at("head_dim"), 0) * whole(r.at("heads"), 0) != whole(r.at("hidden"), 0))
    return "heads of another size than hidden by heads";
  if (!preset_of(r.at("gpu"))) return "no preset for " + r.at("gpu");
  if (!has(r.at("gpu"), "GB200") && whole(r.at("gpus"), 0) % std::min(whole(r.at("gpus"), 0), whole(r.at("gpus_per_node"), 8)))
    return "its last node is not full";
  if (!has(r.at("precision"), "bf16") && !has(r.at("precision"), "fp16") && !has(r.at("precision"), "fp8")) return r.at("precision");
  if (has(r.at("precision"), "fp4")) return "fp4";
  return "";
}
machine cluster_of(row const& r) {
  i64 const n = whole(r.at("gpus"), 0), per = std::min(n, whole(r.at("gpus_per_node"), 8));
  std::string const& gpu = r.at("gpu");
  machine const two = preset(std::string(preset_of(gpu)) + ":2");
  device_kind kind = two.kinds[0];
  if (has(gpu, "96GB HBM2e")) {                           // torchtitan's: HBM2e, 500 W; its products are slower by the lower power
    kind.name = "H100-96GB-500W";
    kind.memory_bandwidth = 2.4e12;
    kind.memory = 96'000'000'000;
    kind.efficiency.products = 0.55;
  }
  i64 domain = has(gpu, "GB200") ? std::min<i64>(n, 72) : per;
  while (n % domain) --domain;
  link_level outer = two.links[1];
  outer.group = n;
  machine on = make_cluster(gpu + " x " + std::to_string(n), kind, static_cast<int>(n), static_cast<int>(domain), two.links[0],
                            n > domain ? outer : link_level{});
  on.lane_per_link = true;                                // trainers have a stream for each kind of parallelism
  return on;
}
computation_graph model_of(row const& r) {
  bool const gated = r.at("gated") == "1";
  std::string s = gated ? "llama3_8b:kv_heads=" + r.at("kv_heads") + "," : "gpt3_1b3:";
  s += "layers=" + r.at("layers") + ",hidden=" + r.at("hidden") + ",heads=" + r.at("heads") + ",wide=" + r.at("ffn") +
       ",vocab=" + r.at("vocab") + ",seq=" + r.at("seq");
  return zoo::make(s, 1);
}
bool unknown(std::string const& cell) {
  return cell.empty() || cell == "?" || has(cell, "not stated") || has(cell, "see recipe") || has(cell, "default of the program");
}
/// Does the row's software run operators one by one (PyTorch's eager mode)? So do Composer of 2023, and torchtitan's "FSDP" beside
/// "FSDP+compile".
bool one_by_one(row const& r) {
  std::string const section = r.count("section") ? r.at("section") : "", software = r.count("software") ? r.at("software") : "";
  return has(software, "Composer") || section.ends_with(" FSDP");
}
/// What the row's software keeps moments, gradients and masters in, where the row or its documentation says so: LLMQ has gradients and
/// masters in the model's format (its README, --model-dtype).
void set_formats(row const& r, optimizer_choice& o) {
  if (!r.count("software")) return;
  std::string const& software = r.at("software");
  if (has(software, "moments bf16")) o.moments = dtype::bf16;
  if (has(software, "llmq")) o.gradients = o.masters = dtype::bf16;
}
/// Is the row's software older than FlashAttention (Dao et al., May 2022)?
bool before_fused_attention(row const& r) {
  std::string const software = r.count("software") ? r.at("software") : "";
  for (char const* month : {"2022-01", "2022-02", "2022-03", "2022-04", "2022-05"}) if (has(software, month)) return true;
  return has(software, "2021") || has(software, "2020");
}
/// May recomputation be of some layers, all of each? So trainers with FSDP mean "selective" unless they say that it is of operators.
bool by_layers(row const& r) {
  std::string const& again = r.at("recompute");
  return has(r.at("shard"), "FSDP") && has(again, "selective") && !has(again, "per-op") && !has(again, "attention");
}
/// Degrees and micro-batches, with the stages of sharing and the recomputation that the row says, or any that it may mean, those that save
/// least first.
std::vector<search::parallel_config> configs_of(row const& r, i64 micro_batch, int virtual_stages) {
  search::parallel_config c;
  c.tensor = static_cast<int>(whole(r.at("tp"), 1));
  c.pipeline = static_cast<int>(whole(r.at("pp"), 1));
  c.data = static_cast<int>(whole(r.at("gpus"), 1)) / c.tensor / c.pipeline;
  c.virtual_stages = virtual_stages;
  c.micro_batch = micro_batch;
  std::string const &shard = r.at("shard"), &again = r.at("recompute");
  std::vector<ir::zero_stage> shared{ir::zero_stage::none};
  if (has(shard, "FSDP gradients")) shared = {ir::zero_stage::gradients};
  else if (has(shard, "ZeRO-2")) shared = {ir::zero_stage::updates, ir::zero_stage::gradients};  // once a step, or for each micro-batch
  else if (has(shard, "optimizer") || has(shard, "ZeRO-1")) shared = {ir::zero_stage::updates};
  else if (has(shard, "FSDP") || has(shard, "ZeRO-3") || has(shard, "HSDP")) shared = {ir::zero_stage::weights};
  else if (unknown(shard) && c.data > 1) shared = {ir::zero_stage::none, ir::zero_stage::updates, ir::zero_stage::gradients};
  // fused kernels keep what they read, not what lies between
  std::vector<search::recomputation> recomputed{one_by_one(r) && !has(again, "selective") ? search::recomputation::none
                                                                                         : search::recomputation::selective};
  if (has(again, "full") || has(again, "block") || has(again, "every other layer")) recomputed = {search::recomputation::full};
  if (has(again, "every other layer")) c.recompute_layers = static_cast<int>(whole(r.at("layers"), 2)) / 2 / c.pipeline / c.virtual_stages;
  else if (unknown(again)) recomputed.push_back(search::recomputation::full);
  std::vector<search::parallel_config> all;
  for (int ahead : {2, 1})
    for (search::recomputation x : recomputed)
      for (ir::zero_stage s : shared) {
        c.prefetch = ahead;
        c.recompute = x;
        c.sharding = s;
        all.push_back(c);
      }
  return all;
}

/// Attention that is no fused kernel: scores are written and read, in two bytes each. Forward four times: by the product that makes them,
/// twice by the softmax, by the product with values. Backward seven times: their gradient by its product, three times by the softmax's,
/// twice by the products for queries and keys, and the softmax's result for the values.
struct written_scores {
  cost::analytical fused;
  double head_size = 0;                                   // 0: attention is fused
  double seconds(cost::compute_query const& q) const {
    double const alone = fused.seconds(q);
    if (head_size == 0 || q.op.op->work != op::work_kind::attention) return alone;
    bool const backward = has(std::string(q.op.op->name), "grad");
    double const scores = q.op.op->flops(q.op.attr, q.in, q.out) / ((backward ? 5 : 2) * head_size);       // causal: 2 and 5 FLOPs each
    kernel_efficiency const& e = q.device.efficiency;
    double const rate = q.device.memory_bandwidth * (e.memory > 0 ? e.memory : 1) * (e.sustained > 0 ? e.sustained : 1);
    return alone + (backward ? 7 : 4) * 2 * scores / rate;
  }
  double seconds(cost::reshard_query const& q) const { return fused.seconds(q); }
};
/// By the software's age, or by what the row notes, as "126M without flash attention".
written_scores model_for(row const& r) {
  if (before_fused_attention(r)) return {{}, real(r.at("hidden")) / real(r.at("heads"))};
  std::string const note = r.count("note") ? r.at("note") : "";
  std::size_t const at = note.find(" without flash attention");
  if (at == note.npos || at == 0) return {};
  std::size_t const word = note.find_last_of(" ;", at - 1) + 1;
  if (!has(r.at("model"), note.substr(word, at - word).c_str())) return {};
  return {{}, real(r.at("hidden")) / real(r.at("heads"))};
}

struct prediction { double seconds = 0; i64 lacks = 0; };
struct settings { std::string effort; bool rivals = false, of_megatron = false; };

/// The step of so many micro-batches on each replica: simulated, or beyond `most` what two shorter ones say of one more.
prediction predict(training_problem asked, machine const& on, written_scores const& model, search::parallel_config const& c, i64 micro_batches,
                   bool fused) {
  prediction r;
  auto const timed = [&](i64 m) {
    asked.samples = m * c.micro_batch * c.data;
    search::configured_plan const x = search::configured(asked, on, model, c);
    planned_step const s = step_to_simulate(x.graph, x.plan);
    // most of what was published ran kernels that are fused as ours on GPUs are, and it had the room for that
    machine roomy = x.plan.cluster;
    for (device_kind& k : roomy.kinds) k.memory = i64{1} << 50;
    passes::kernel_rule const any = [](op::any_op const&, bool) { return true; };
    program const p = fused ? passes::fuse_tasks(s.program, roomy, any, no_workspace) : s.program;
    for (int d = 0; d < on.size(); ++d) r.lacks = std::max(r.lacks, p.arena[static_cast<std::size_t>(d)] - on.kind_of(d).memory);
    return simulate(p, x.plan.cluster, model, {true, false}).seconds;
  };
  i64 const k = std::max(2, c.pipeline);
  if (micro_batches <= 2 * k) r.seconds = timed(micro_batches);
  else {
    double const a = timed(k), b = timed(2 * k);
    r.seconds = b + (b - a) / static_cast<double>(k) * static_cast<double>(micro_batches - 2 * k);
  }
  return r;
}

void tell(std::string const& what, char const* metric, double value, double reference) {
  std::printf("{\"bench\":\"published\",\"case\":\"%s\",\"metric\":\"%s\",\"value\":%.4g,\"unit\":\"s\",\"reference\":%.4g,\"ratio\":%.3f}\n",
              what.c_str(), metric, value, reference, value / reference);
  std::fflush(stdout);
}
/// What the planner chooses, beside the published configuration under the same simulation, kernels as the planner prices them; and rivals
/// at their best beside what was published.
void choose(std::string const& name, training_problem const& asked, machine const& on, search::parallel_config const& told, double published,
            settings const& s) {
  cost::analytical const model;
  planning_options o;
  for (auto const& [word, e] : {std::pair{"quick", effort::quick}, {"normal", effort::normal}, {"thorough", effort::thorough}})
    if (s.effort == word) o.effort = e;
  try {
    search::configured_plan x = search::configured(asked, on, model, told);
    search::simulated_plan const theirs = search::overlapped(x.graph, x.plan, asked, model, infinity);
    planned const ours = plan_training(asked, on, model, o);
    if (!ours.feasible()) {
      std::printf("row %s: the planner finds no plan that fits\n", name.c_str());
      return;
    }
    tell(name + (theirs.infeasible ? ", published configuration does not fit" : "") + ", chosen: " + ours.best().what, "planned step", ours.seconds(),
         theirs.seconds);
    if (!s.rivals) return;
    for (peers::rival const& r : peers::rivals(asked, on, model, {.planners = false})) {
      if (!r.fits()) continue;
      tell(name + ", " + r.name + ": " + r.settings, "planned step over rival's", ours.seconds(), r.step.seconds);
      if (r.name == "Megatron" && s.of_megatron) tell(name + ", Megatron at its best", "step", r.step.seconds, published);
    }
  } catch (error const& e) {
    std::printf("row %s: no choice, %s\n", name.c_str(), e.what());
  }
}

void run(row const& r, std::vector<double>& errors, settings s) {
  std::string const name = r.at("id") + " " + r.at("model") + ", " + r.at("gpus") + " x " + r.at("gpu");
  if (std::string const why = refusal(r); !why.empty()) {
    std::printf("row %s: left out, %s\n", name.c_str(), why.c_str());
    return;
  }
  machine const on = cluster_of(r);
  computation_graph const g = model_of(r);
  training_problem asked{.graph = g, .optimizer = {.kind = optimizer_kind::adamw},
                         .precision = has(r.at("precision"), "fp8") ? precision::fp8 : precision::bf16, .name = r.at("model")};
  set_formats(r, asked.optimizer);
  i64 const batch = whole(r.at("gbs_seqs"), 0), given = whole(r.at("mbs"), 0);
  double const published = real(r.at("step_s"));
  std::optional<prediction> best;
  search::parallel_config chosen;
  int const said = static_cast<int>(whole(r.at("vp"), 0));
  std::vector<int> const chunks = said > 0 ? std::vector{said} : r.at("vp") == ">1" ? std::vector{2, 4, 8} : std::vector{1, 2, 4};
  for (i64 m : given ? std::vector<i64>{given} : std::vector<i64>{1, 2, 4})
    for (int v : chunks)
      for (search::parallel_config const& c : configs_of(r, m, v)) {
        if (batch % (c.data * m) || (v > 1 && (c.pipeline == 1 || batch / (c.data * m) % c.pipeline))) continue;
        bool const again = c.recompute != chosen.recompute && c.recompute == search::recomputation::full;
        if (best && best->lacks <= 0 && (again || c.prefetch < chosen.prefetch)) continue;                           // slower
        prediction const x = predict(asked, on, model_for(r), c, batch / (c.data * m), !one_by_one(r));
        if (best && (x.lacks > 0 ? best->lacks <= x.lacks : best->lacks <= 0 && best->seconds <= x.seconds)) continue;
        best = x;
        chosen = c;
      }
  bool const in_layers = best && best->lacks > 0 && by_layers(r);              // in as few as fit
  for (int lacking = 0, fitting = static_cast<int>(whole(r.at("layers"), 1)); in_layers && fitting - lacking > 1;) {
    search::parallel_config c = chosen;
    c.recompute = search::recomputation::full;
    c.recompute_layers = (lacking + fitting) / 2;
    prediction const x = predict(asked, on, model_for(r), c, batch / (c.data * c.micro_batch), !one_by_one(r));
    (x.lacks > 0 ? lacking : fitting) = c.recompute_layers;
    if (x.lacks > 0 ? best->lacks > 0 && x.lacks < best->lacks : best->lacks > 0 || x.seconds < best->seconds) {
      best = x;
      chosen = c;
    }
  }
  if (!best) {
    std::printf("row %s: left out, its batch of %lld does not divide\n", name.c_str(), static_cast<long long>(batch));
    return;
  }
  bool const doubted = !r.at("flag").empty();              // by whoever collected the rows: shown, and in no mean
  if (!doubted) errors.push_back(std::abs(best->seconds / published - 1));
  tell(name + ", " + search::text_of(chosen) + (doubted ? ", doubted by its source" : ""), "step", best->seconds, published);
  if (best->lacks > 0) std::printf("row %s: does not fit, lacks %.3g GB\n", name.c_str(), static_cast<double>(best->lacks) / 1e9);
  asked.samples = batch;
  s.of_megatron = r.count("software") && (has(r.at("software"), "Megatron") || has(r.at("software"), "NeMo"));
  if (!s.effort.empty()) choose(name, asked, on, chosen, published, s);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Published steps against predicted ones"};
  std::string path = TENSORPAR_BENCH_DIR "/../../shared/facts/published_throughput.md";
  std::vector<std::string> only;
  bool quick = false;
  settings chosen;
  auto* const rows = app.add_option("--rows", path, "a CSV file with a header, or a Markdown page with a csv block");
  app.add_option("--id", only, "these rows alone");
  auto* const effort = app.add_option("--choose", chosen.effort, "plan each row, too, with this effort: quick, normal or thorough")
                           ->check(CLI::IsMember({"quick", "normal", "thorough"}));
  app.add_flag("--rivals", chosen.rivals, "and DDP, ZeRO-2, FSDP and Megatron at their best")->needs(effort);
  app.add_flag("--quick", quick, "the few rows of bench/published_rows.csv")->excludes(rows);
  CLI11_PARSE(app, argc, argv);
  if (quick) path = TENSORPAR_BENCH_DIR "/published_rows.csv";
  if (!std::filesystem::exists(path) && !*rows) {
    std::printf("skipped: there is no %s; --rows FILE says where rows are\n", path.c_str());
    return 77;
  }
  try {
    std::vector<double> errors;
    for (row const& r : rows_of(path)) {
      if (!only.empty() && std::find(only.begin(), only.end(), r.at("id")) == only.end()) continue;
      try {
        run(r, errors, chosen);
      } catch (error const& e) {
        std::printf("row %s: refused, %s\n", r.at("id").c_str(), e.what());
      }
    }
    double sum = 0, most = 0;
    for (double e : errors) sum += e, most = std::max(most, e);
    if (!errors.empty())
      std::printf("{\"bench\":\"published\",\"case\":\"all %zu rows\",\"metric\":\"mean error\",\"value\":%.4g,\"unit\":\"\",\"reference\":0.15,\"ratio\":%.3g}\n"
                  "{\"bench\":\"published\",\"case\":\"all %zu rows\",\"metric\":\"largest error\",\"value\":%.4g,\"unit\":\"\",\"reference\":0.35,\"ratio\":%.3g}\n",
                  errors.size(), sum / static_cast<double>(errors.size()), sum / static_cast<double>(errors.size()) / 0.15, errors.size(), most,
                  most / 0.35);
  } catch (std::exception const& e) {
    std::fprintf(stderr, "published: %s\n", e.what());
    return 1;
  }
  return 0;
}
