// tensorpar/tool/stored.hpp - a plan from a file, and the graph that it runs, made again from its model
#pragma once
#include <optional>
#include <string>
#include <tensorpar/plan/plan_file.hpp>
#include <tensorpar/program/rewritten.hpp>
#include <tensorpar/program/step_of.hpp>
#include <tensorpar/tool/subject.hpp>

namespace tensorpar::tools {

/// A plan, and where its model can be told its graphs: as declared, and as it runs after its rewrites.
struct stored_plan {
  std::string file;
  tensorpar::plan plan;
  std::optional<computation_graph> declared, forward;
  std::string unknown;  // why there are none
};

namespace detail {

/// Of few samples: the caller's graph, or that of the zoo.
inline computation_graph few_samples(plan const& p, settings const& s, std::optional<own_model> const& own) {
  if (own) return own->graph;
  std::string const spec = s.model.empty() ? p.model : s.model;
  if (s.model.empty() && !entry_of(spec))
    throw error(
        spec.empty() ? "the plan names no model" : "the plan's model \"" + spec + "\" is none of the zoo",
        "the plan", "--model with the zoo's model, or a tool that has the graph");
  return zoo_graph(spec);
}

}  // namespace detail

/// Reads the file and makes its graph again: of the zoo's model that it names, of --model, or the caller's.
/// Where that is impossible `unknown` says why. Throws `error` for a file that cannot be read, and where the
/// model that was given is another than the plan's. O(file + graph).
inline stored_plan read_stored(std::string const& file, settings const& s,
                               std::optional<own_model> const& own) {
  stored_plan r{file, read_plan(file), {}, {}, {}};
  if (r.plan.infeasible) {
    r.unknown = text_of(*r.plan.infeasible);
    return r;
  }
  try {
    computation_graph const few = detail::few_samples(r.plan, s, own);
    i64 const labelled = r.plan.pipeline.empty() ? r.plan.batch : r.plan.pipeline.mini_batch;
    i64 const samples = s.batch ? s.batch : labelled;
    if (!samples) throw error("the plan does not say how many samples a step has", file, "--batch");
    r.declared = graph_of(few, r.plan, samples);
    r.forward = passes::rewritten(*r.declared, r.plan);
  } catch (error const& e) {
    if (!s.model.empty() || own || s.batch) throw;
    r.declared.reset();
    r.unknown = e.what();
  }
  return r;
}

/// The same for what needs the graph and a plan that runs. Throws `error` where there is none, and where the
/// plan counts the scratch space of kernels that this tool does not have.
inline stored_plan read_runnable(std::string const& file, settings const& s,
                                 std::optional<own_model> const& own) {
  stored_plan r = read_stored(file, s, own);
  if (!r.forward)
    throw error(r.unknown, file, r.plan.infeasible ? "a plan that fits" : "a plan of a known model");
  if (!r.plan.scratch.empty())
    throw error("the plan counts the scratch space of " + r.plan.scratch, file,
                "a plan made by this tool, or a program that has those kernels");
  return r;
}

}  // namespace tensorpar::tools
