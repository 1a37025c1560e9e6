// examples/train_gpt.hpp - a GPT on token files: planned for as many devices as you ask for, trained, saved, resumed under another plan; on
// whatever computes and communicates. A Backend says:
//   compute, comm        the executor's two policies
//   devices, what        how many devices unless asked otherwise; what they are
//   precision            f32 or bf16, unless asked otherwise
//   Backend(n, bf16)     of n devices; throws where they cannot compute in bf16 and shall; then
//   cluster, peak        what the plan is for, with the memory there is; operations per second of all devices' matrix products
//   maker()              what makes the ranks' world, and their policies (exec/comm/world_maker.hpp)
//   measure(q)           how long the program's operators take
#pragma once
#include "standard_output.hpp"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <limits>
#include <tensorpar/check/check.hpp>
#include <tensorpar/core/json.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/cost/profiled.hpp>
#include <tensorpar/exec/device/scratch_of.hpp>
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/exec/files/checkpoint.hpp>
#include <tensorpar/exec/profile.hpp>
#include <tensorpar/exec/step/fuse.hpp>
#include <tensorpar/exec/step/learning_rate.hpp>
#include <tensorpar/ir/mixed_precision.hpp>
#include <tensorpar/report/text.hpp>
#include <tensorpar/search/plan_training.hpp>
#include <tensorpar/simulate/engine.hpp>
#include <tensorpar/zoo/gpt.hpp>

#include "flags.hpp"
#include "tokens.hpp"

namespace gpt {

using namespace tensorpar;

struct settings {
  std::string model = "tiny", data, validation, save, precision;
  std::vector<std::string> text{TENSORPAR_EXAMPLE_DATA "/../../LICENSE"};
  int devices = 0, micro_batches = 2;
  i64 batch = 8;
  double memory = 0;
  u64 steps = 60, warm_up = 10, every = 20, evaluate_every = 20, evaluations = 4, seed = 1;
  double rate = 3e-3, last_rate = 3e-4, decay = 0.1, clip = 1, max_loss = 0;
  bool resume = false, json = false, measure = false;
};

// [quoted: sizes]
/// Sizes by name: GPT-2's, with the vocabulary filled up to a multiple of 128, and one that a laptop trains in a minute.
inline zoo::gpt_sizes sizes_of(std::string const& name) {
  if (name == "tiny") return {.layers = 2, .hidden = 64, .heads = 4, .seq = 64, .vocab = 256, .wide = 256, .packed = true};
  zoo::gpt_sizes s;
  if (name == "gpt2_124m") s = zoo::gpt2_124m;
  else if (name == "gpt2_774m") s = zoo::gpt2_774m;
  else if (name == "gpt2_1b5") s = zoo::gpt2_1b5;
  else throw error("no model '" + name + "'", "--model", "tiny, gpt2_124m, gpt2_774m or gpt2_1b5");
  s.vocab = (s.vocab + 127) / 128 * 128;
  return s;
}
/// The same definition that a compile-time model is made of, run with sizes that are known only now.
inline computation_graph network(zoo::gpt_sizes const& s, i64 samples) {
  model_builder g;
  zoo::gpt<>::define(g, s);
  return lower(g, {zoo::batch = samples});
}
// [end]

/// Multiplications and additions of a training step on a graph's samples: what the model needs, that is a forward pass and twice that for
/// the
/// gradients (Kaplan et al. 2020, section 2.1). What a plan computes again to save memory does not count.
inline double training_flops(computation_graph const& g) {
  double sum = 0;
  for (int v = 0; v < g.node_count(); ++v) {
    graph_node const& n = g.node(v);
    std::vector<shape> in, out;
    for (int x : n.in) in.push_back(g.type(x));
    for (int x : n.out) out.push_back(g.type(x));
    sum += n.op.op->flops(n.op.attr, {in.data(), static_cast<int>(in.size())}, {out.data(), static_cast<int>(out.size())});
  }
  return 3 * sum;
}

/// Rounded as a reader wants it.
inline std::string number(char const* format, double x) {
  char b[64];
  std::snprintf(b, sizeof b, format, x);
  return b;
}

/// A token file's tokens where the run is on such files, else the bytes of texts. Throws `error` for too few, or one beyond the vocabulary.
inline std::vector<std::uint16_t> tokens_for(zoo::gpt_sizes const& size, bool file, std::vector<std::string> const& paths,
                                             char const* flag) {
  std::vector<std::uint16_t> all;
  for (std::string const& p : paths) {
    std::vector<std::uint16_t> const part = file ? tokens::read(p) : tokens::of_text(p);
    all.insert(all.end(), part.begin(), part.end());
  }
  std::string const where = paths.size() == 1 ? std::string(flag) + " " + paths[0] : flag;
  if (static_cast<i64>(all.size()) <= size.seq)
    throw error("a text of " + std::to_string(all.size()) + " tokens", where, "more than the model's " + std::to_string(size.seq));
  for (std::uint16_t x : all)
    if (x >= size.vocab) throw error("token " + std::to_string(x), where, "below the model's " + std::to_string(size.vocab));
  return all;
}

/// Backend: see the top of this file.
template <class Backend> void run(settings const& s) {
  using compute = typename Backend::compute;
  zoo::gpt_sizes const size = sizes_of(s.model);
  bool const files = !s.data.empty();
  std::vector<std::uint16_t> const all = files ? tokens_for(size, true, {s.data}, "--data") : tokens_for(size, false, s.text, "--text");
  std::vector<std::uint16_t> unseen;
  if (!s.validation.empty()) unseen = tokens_for(size, files, {s.validation}, "--validation");
  if (s.micro_batches > 0 && s.batch % s.micro_batches)
    throw error("a batch of " + std::to_string(s.batch) + " in " + std::to_string(s.micro_batches) + " micro-batches", "--micro-batches",
                "a divisor of the batch");

  // plan: the devices, each with the memory that it may take
  bool const bf16 = s.precision == "bf16";
  computation_graph sequence = network(size, 1);
  if (bf16) sequence = mixed_precision(sequence);        // weights are kept in f32 as well, and gradients of weights
  Backend const backend(s.devices, bf16);
  machine cluster = backend.cluster;
  if (s.memory > 0) for (device_kind& k : cluster.kinds) k.memory = static_cast<i64>(s.memory * 1048576);
  training_problem asked{.graph = sequence, .samples = s.batch, .scratch = exec::scratch_of<compute>(), .name = s.model};
  asked.optimizer.kind = optimizer_kind::adamw;
  asked.optimizer.weight_decay = s.decay;
  asked.optimizer.clip_norm = s.clip;
  planning_options wanted;
  if (s.micro_batches > 0) {
    wanted.micro_batches = {s.micro_batches};
    wanted.schedules = std::vector<search::schedule_kind>{};
    wanted.knobs.max_placed = std::numeric_limits<i64>::max();
  }
  planned const found = plan_training(asked, cluster, cost::analytical{cost::measured_rates}, wanted);
  if (!found.feasible())
    throw error(text_of(*found.infeasible), "--memory", "more memory, more devices, or a smaller batch");
  planned_step const step = exec::fused<compute>(found.step);
  program const& q = step.program;
  int again = 0, stages = static_cast<int>(found.plan.pipeline.stages.size());
  for (op_strategy const& c : found.plan.nodes) again += c.recompute;
  for (pipeline_stage const& x : found.plan.pipeline.stages) again += x.recompute ? static_cast<int>(x.nodes.size()) : 0;

  double predicted = 0;
  if (s.measure) {
    cost::profiled<cost::analytical> const prices(backend.measure(q), cost::analytical{cost::measured_rates});
    predicted = simulate(q, cluster, prices).seconds;
    if (!s.json) std::cout << "a step should take " << number("%.4f", predicted) << " s\n";
  }
  executor<compute, typename Backend::comm> e(step, backend.maker());
  e.initialise(s.seed);
  if (s.resume) {
    found_checkpoint const c = load_checkpoint(e, s.save);
    if (!s.json) std::cout << "resumed from " << c.path << "\n";
  }
  i64 parameters = 0;
  for (graph_value const& v : sequence.values) if (v.role == value_role::parameter) parameters += v.type.elements();
  i64 const most = *std::max_element(q.arena.begin(), q.arena.end());
  if (!s.json)
    std::cout << s.model << ": " << parameters << " parameters in " << s.precision << ", " << all.size() << " tokens of text; "
              << cluster.size() << " devices, "
              << number("%.1f", static_cast<double>(most) / 1048576) << " MiB each, "
              << (stages ? std::to_string(stages) + " stages, " : std::to_string(found.plan.micro_batches) + " micro-batches, ") << again
              << " operators computed again\n";

  // train
  rate_schedule const learn = warm_up_cosine{s.rate, s.warm_up, std::max(s.steps, s.warm_up + 1), s.last_rate};
  double const flops = training_flops(sequence) * static_cast<double>(s.batch);
  std::optional<double> loss;                                         // of the last step, if there is one
  // [quoted: validation]
  auto const evaluate = [&] {                                         // under the plan: the forward operators alone, nothing dropped out
    double sum = 0;
    for (u64 k = 0; k < s.evaluations; ++k) sum += e.evaluate(tokens::batch_of(unseen, k, s.batch, size.seq));
    return sum / static_cast<double>(s.evaluations);
  };
  // [end]
  while (e.steps() < s.steps) {
    u64 const k = e.steps();
    double const now = rate(learn, k);
    step_result const r = e.step(tokens::batch_of(all, k, s.batch, size.seq), now);
    loss = r.loss;
    double const tokens_s = static_cast<double>(s.batch * size.seq) / r.seconds, mfu = flops / r.seconds / backend.peak;
    std::optional<double> const norm = r.gradient_norm;
    if (s.json)
      std::cout << core::json({{"event", "step"}, {"step", k + 1}, {"loss", r.loss}, {"norm", norm ? core::json(*norm) : core::json()},
                               {"rate", now},
                         {"tokens_per_s", tokens_s}, {"mfu", mfu}, {"peak_bytes", most}, {"seconds", r.seconds}}).dump() << std::endl;
    else
      std::cout << "step " << k + 1 << "/" << s.steps << "  loss " << number("%.4f", r.loss) << "  norm "
                << (norm ? number("%.3f", *norm) : "-") << "  rate " << number("%.2e", now) << "  "
                << number("%.0f", tokens_s) << " tokens/s  MFU " << number("%.1f", 100 * mfu) << " %  "
                << number("%.1f", static_cast<double>(most) / 1048576) << " MiB" << std::endl;
    if (!unseen.empty() && (e.steps() % s.evaluate_every == 0 || e.steps() == s.steps)) {
      double const unseen_loss = evaluate();
      if (s.json) std::cout << core::json({{"event", "validation"}, {"step", e.steps()}, {"loss", unseen_loss}}).dump() << std::endl;
      else std::cout << "step " << e.steps() << "/" << s.steps << "  validation loss " << number("%.4f", unseen_loss) << std::endl;
    }
    if (!s.save.empty() && (e.steps() % s.every == 0 || e.steps() == s.steps)) save_checkpoint(e, s.save);
  }
  if (s.json)
    std::cout << core::json({{"event", "result"}, {"model", s.model}, {"precision", s.precision}, {"devices", cluster.size()},
                       {"parameters", parameters}, {"steps", e.steps()}, {"loss", loss ? core::json(*loss) : core::json()},
                           {"stages", stages}, {"recomputed", again}, {"flops", flops}, {"predicted_seconds", predicted},
                           {"peak_bytes", e.allocated_bytes()}}).dump() << std::endl;
  if (s.max_loss > 0 && !(loss && *loss <= s.max_loss))
    throw error(loss ? "a loss of " + number("%.4f", *loss) : "no step was left to train", "--most-loss",
                "at most " + number("%.4f", s.max_loss));
}

/// The program.
template <class Backend> int train_gpt(int argc, char** argv) {
  settings s;
  s.devices = Backend::devices;
  s.precision = Backend::precision;
  std::string write;
  CLI::App app("Plans and trains a GPT on tokens: llm.c's .bin files, or the bytes of a text.");
  app.add_option("--model", s.model, "tiny, gpt2_124m, gpt2_774m, gpt2_1b5")->capture_default_str();
  app.add_option("--data", s.data, "a token file in llm.c's format");
  app.add_option("--text", s.text, "texts whose bytes are the tokens, where there is no --data")->delimiter(',')->capture_default_str();
  app.add_option("--validation", s.validation,
                 "what the loss is evaluated on without learning from it: a token file with --data, else a text");
  app.add_option("--evaluate-every", s.evaluate_every, "steps between evaluations")->check(CLI::Range(1, 1 << 30))->capture_default_str();
  app.add_option("--evaluations", s.evaluations, "batches of an evaluation")->check(CLI::Range(1, 1 << 20))->capture_default_str();
  app.add_option("--write", write, "write the bytes of --text as a token file, and do nothing else");
  app.add_option("--devices", s.devices, Backend::what)->check(CLI::Range(1, 64))->capture_default_str();
  app.add_option("--precision", s.precision, "of weights and activations: f32, or bf16 beside weights in f32")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->capture_default_str();
  app.add_option("--batch", s.batch, "sequences per step")->check(CLI::Range(1, 65536))->capture_default_str();
  app.add_option("--micro-batches", s.micro_batches,
                 "parts of a batch whose gradients are accumulated; 0: what is fastest, in stages if these are faster")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--memory", s.memory, "MiB that a device may take, if not all it has; where that is short, plans shard and compute again")
      ->check(CLI::PositiveNumber);
  app.add_option("--steps", s.steps, "steps in all, those of a resumed run included")->check(CLI::Range(1, 1 << 30))->capture_default_str();
  app.add_option("--rate", s.rate, "peak learning rate")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--last-rate", s.last_rate, "learning rate at the end")->check(CLI::NonNegativeNumber)->capture_default_str();
  app.add_option("--warm-up", s.warm_up, "steps of growing rate")->capture_default_str();
  app.add_option("--decay", s.decay, "AdamW's weight decay")->check(CLI::NonNegativeNumber)->capture_default_str();
  app.add_option("--clip", s.clip, "clip gradients to this global norm; 0: do not")->check(CLI::NonNegativeNumber)->capture_default_str();
  app.add_option("--save", s.save, "folder for checkpoints");
  app.add_option("--every", s.every, "steps between checkpoints")->check(CLI::Range(1, 1 << 30))->capture_default_str();
  app.add_flag("--resume", s.resume, "go on from the newest checkpoint of --save, on any number of devices");
  app.add_option("--seed", s.seed)->capture_default_str();
  app.add_flag("--measure", s.measure, "measure the plan's operators first, and say how long a step should take");
  app.add_option("--most-loss", s.max_loss, "fail if the last loss is above this");
  app.add_flag("--json", s.json, "one JSON object per line instead of text");
  CLI11_PARSE(app, argc, argv);
  try {
    if (s.resume && s.save.empty()) throw error("--resume without --save", "the flags", "the folder of the checkpoints");
    flags::require(app, "--save", {"--every"});
    flags::require(app, "--validation", {"--evaluate-every", "--evaluations"});
    if (!s.data.empty()) flags::refuse(app, "--data", {"--text"});
    if (!write.empty()) {
      flags::refuse_all_but(app, "--write", {"--write", "--text", "--json"});
      std::vector<std::uint16_t> all;
      for (std::string const& t : s.text) for (std::uint16_t x : tokens::of_text(t)) all.push_back(x);
      tokens::write(all, write);
    } else {
      run<Backend>(s);
    }
  } catch (std::exception const& e) {
    if (s.json) std::cout << core::json({{"event", "error"}, {"what", e.what()}}).dump() << std::endl;
    else std::cerr << "train_gpt: " << e.what() << std::endl;
    return 1;
  }
  return 0;
}

}  // namespace gpt
