// tensorpar/tool/subject.hpp - what is trained, and where: models and clusters by name
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/machine/precision.hpp>
#include <tensorpar/plan/cluster_file.hpp>
#include <tensorpar/plan/step_fit.hpp>
#include <tensorpar/program/training_problem.hpp>
#include <tensorpar/tool/console.hpp>
#include <tensorpar/tool/nearest.hpp>
#include <tensorpar/tool/settings.hpp>
#include <tensorpar/tool/words.hpp>
#include <tensorpar/zoo/registry.hpp>

namespace tensorpar::tools {

namespace detail {

/// "llama3_8b" of "llama3_8b:layers=2".
inline std::string base_of(std::string const& spec) { return spec.substr(0, spec.find(':')); }
/// The zoo's entry, or nullptr. O(models).
inline zoo::entry const* entry_of(std::string const& spec) {
  for (zoo::entry const& e : zoo::entries())
    if (e.name == base_of(spec)) return &e;
  return nullptr;
}
/// Misspelt sizes: "layrs=2".
inline void require_keys(std::string const& spec, zoo::entry const& e) {
  std::size_t at = spec.find(':');
  std::vector<std::string> known;
  for (zoo::parameter const& p : e.params) known.push_back(p.key);
  while (at != spec.npos) {
    std::size_t const end = spec.find(',', at + 1);
    std::string const item = spec.substr(at + 1, end == spec.npos ? end : end - at - 1);
    std::string const key = item.substr(0, item.find('='));
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw usage_error("no size \"" + key + "\"" + did_you_mean(key, known), "--model " + spec,
                        listed(known));
    at = end;
  }
}

}  // namespace detail

/// The graph of one sample. Throws `usage_error` for a model or a size that the zoo does not have.
/// O(operators).
inline computation_graph zoo_graph(std::string const& spec) {
  zoo::entry const* const e = detail::entry_of(spec);
  if (!e) {
    std::vector<std::string> names;
    for (zoo::entry const& x : zoo::entries()) names.push_back(x.name);
    std::string const name = detail::base_of(spec);
    throw usage_error("no model \"" + name + "\"" + did_you_mean(name, names), "--model", listed(names));
  }
  detail::require_keys(spec, *e);
  try {
    return zoo::make(spec, 1);
  } catch (error const& x) { throw usage_error(x.problem(), "--model " + spec, x.valid()); }
}

/// A preset by name, or the cluster in a file. Throws `usage_error` for a name that is none, and `error` as
/// `read_cluster` does. O(devices).
inline machine cluster_named(std::string const& name) {
  std::string const base = detail::lower_case(detail::base_of(name));
  std::vector<std::string> const known = preset_names();
  if (name.ends_with(".json")) return read_cluster(name);
  if (std::find(known.begin(), known.end(), base) == known.end())
    throw usage_error("no cluster \"" + name + "\"" + did_you_mean(base, known), "--cluster",
                      listed(known) + "; NAME:COUNT for several nodes; or a file that ends in .json");
  try {
    return preset(base + name.substr(std::min(name.size(), name.find(':'))));
  } catch (error const& e) { throw usage_error(e.problem(), "--cluster " + name, e.valid()); }
}

/// What is planned, and on what. `asked.graph` is of few samples, and `on` as it was given: the planner puts
/// both into the format of numbers.
struct subject {
  training_problem asked;
  machine on;
  planning_options options;
};

/// FLOP/s of presets are of the format that their sources train with; kinds that say nothing get f32.
inline precision usual_precision(machine const& on) {
  return on.kinds.empty() ? precision::f32 : format_of(on.kinds.front()).value_or(precision::f32);
}

/// What the command line asks for. Throws `usage_error` for unknown names, and `error` for bad files.
inline subject subject_of(settings const& s, std::optional<own_model> const& own) {
  subject r;
  r.on = cluster_named(s.cluster);
  r.on.lane_per_link = r.on.lane_per_link || s.lane_per_link;
  r.asked.graph = own ? own->graph : zoo_graph(s.model);
  r.asked.name = own ? own->name : s.model;
  i64 const few = samples_of(r.asked.graph), each = own ? few : detail::entry_of(s.model)->samples_per_device;
  r.asked.samples = s.batch ? s.batch : each * r.on.size();
  if (r.asked.samples % few)
    throw usage_error("--batch " + std::to_string(s.batch), "a graph of " + std::to_string(few) + " samples",
                      "a multiple of " + std::to_string(few));
  r.asked.precision = s.precision.empty() ? usual_precision(r.on) : precision_of(s.precision);
  if (is_narrow(precision_in(r.asked.graph)) && !is_narrow(r.asked.precision)) {
    if (!s.precision.empty())
      throw usage_error("--precision " + s.precision + " for a graph in bf16", s.typed, "bf16 or fp8");
    r.asked.precision = precision::bf16;
  }
  r.asked.optimizer.kind = optimizer_named(s.optimizer);
  r.asked.optimizer.moments = state_format_named(s.moments, "--moments");
  r.asked.optimizer.gradients = state_format_named(s.gradients, "--gradients");
  r.asked.optimizer.masters = state_format_named(s.masters, "--masters");
  for (auto const& [flag, type] : {std::pair{"--gradients", r.asked.optimizer.gradients},
                                   {"--masters", r.asked.optimizer.masters}})
    if (is_narrow(type) && !is_narrow(r.asked.precision))
      throw usage_error(std::string(flag) + " " + name_of(type) + " for training in " +
                            precision_names[static_cast<int>(r.asked.precision)],
                        s.typed, "--precision bf16 or fp8, or f32");
  for (int k : s.micro_batches)
    if (k < 1 || (r.asked.samples / few) % k)
      throw usage_error(std::to_string(k) + " micro-batches", "--micro-batches",
                        "numbers that divide " + std::to_string(r.asked.samples / few));
  r.options.effort = effort_named(s.effort);
  r.options.micro_batches = s.micro_batches;
  r.options.threads = s.threads;
  return r;
}

}  // namespace tensorpar::tools
