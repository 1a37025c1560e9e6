// tensorpar/program/evidence/certificate.hpp - the evidence that a plan carries, and its replay: from the
// declared graph to the tasks that run
#pragma once
#include <tensorpar/check/check.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/program/passes/memory_pass.hpp>
#include <tensorpar/program/program_hash.hpp>
#include <tensorpar/program/rewritten.hpp>
#include <tensorpar/program/training.hpp>
#include <tensorpar/program/unroll.hpp>

namespace tensorpar {

namespace detail {

/// Devices by the first that is like them.
inline std::map<int, std::vector<int>> kinds_of_devices(program const& q, int devices) {
  std::vector<int> const like = passes::alike_devices(q, devices);
  std::map<int, std::vector<int>> kinds;
  for (int d = 0; d < devices; ++d) kinds[like[idx(d)]].push_back(d);
  return kinds;
}

/// The program of a step as every kind of device sees it. `look(program, device, devices like it)`: a program
/// that lists this device alone. Devices whose buffers are the same have the same arena, so one of each kind
/// stands for all. O(kinds * unrolling).
template <class Look>
void for_each_kind_of_device(training_graph const& t, plan const& p, workspace_rule w, Look const& look) {
  program q = unroll(t, p, {.workspace = w, .device = 0});
  for (auto const& [d, members] : kinds_of_devices(q, p.cluster.size())) {
    if (d > 0) q = unroll(t, p, {.workspace = w, .device = d});
    look(q, d, members);
  }
}

/// What a plan's program is known by.
struct program_seal {
  u64 tasks = 0;
  core::hasher offsets;
  std::vector<i64> arena;
  void add(program const& q, int device, std::vector<int> const& members) {
    arena.resize(q.arena.size());
    for (int d : members) arena[idx(d)] = q.arena[idx(device)];
    tasks = passes::task_hash(q);
    int const listed = q.listed_for.empty() ? device : q.listed_for[idx(device)];
    offsets.add(device).add(members.size()).add(passes::offset_hash(q, listed));
  }
  void write(plan& p) const {
    p.peak_bytes = arena;
    p.tasks = tasks;
    p.offsets = offsets.value();
  }
};

/// The same whether a program lists all devices or one of those that do the same.
inline program_seal seal_of(program const& q, int devices) {
  program_seal s;
  for (auto const& [d, members] : kinds_of_devices(q, devices)) s.add(q, d, members);
  return s;
}

}  // namespace detail

namespace detail {
/// How the plan's count of scratch space and the rule that is given differ, in words. Empty: they agree.
inline std::string scratch_disagreement(plan const& p, scratch_space const& given) {
  if (p.scratch == given.policy) return {};
  auto const of = [](std::string const& policy) {
    return policy.empty() ? std::string("of no policy") : "of " + policy;
  };
  return "the plan counts the scratch space " + of(p.scratch) + ", given is that " + of(given.policy);
}
}  // namespace detail

/// Completes a plan for this graph: the arenas of its program (`peak_bytes`), and the numbers by which the
/// program is known (`tasks`, `offsets`). `scratch`: of the policy that will run it
/// (exec/device/scratch_of.hpp), which the plan then names; by default kernels' scratch is not counted. An
/// executor refuses a plan whose program has other tasks. `forward`: what the plan runs
/// (program/rewritten.hpp). Throws `error` where the plan does not fit, and where it was searched for with
/// another policy's scratch.
/// O(kinds of devices * unrolling); a pipeline is unrolled for all.
inline void seal(computation_graph const& forward, plan& p, std::string const& loss = "loss",
                 scratch_space const& scratch = {}) {
  require_feasible(p);
  workspace_rule const w = require_scratch(scratch, p.scalar_bytes, "seal").rule;
  if (std::string const text = detail::scratch_disagreement(p, scratch); !text.empty() && !p.scratch.empty())
    throw error(text, "seal", "scratch_of<the policy>() of the search (exec/device/scratch_of.hpp)");
  p.scratch = scratch.policy;
  detail::program_seal s;
  if (p.pipeline.empty()) {
    planned_step const step = passes::memory_pass(differentiate(forward, training_of(p, loss)), p);
    detail::for_each_kind_of_device(
        step.graph, step.plan, w,
        [&](program const& q, int d, std::vector<int> const& members) { s.add(q, d, members); });
  } else {
    s = detail::seal_of(unroll(passes::pipeline_pass(forward, p, loss), {w}), p.cluster.size());
  }
  s.write(p);
}

namespace detail::check {

/// Form, replay and memory of a program as one device sees it, which stands for others.
inline void check_kind(training_graph const& t, plan const& p, program const& q, int device,
                       std::vector<int> const& members, facts& known, findings& out) {
  known.look_at(device);
  check_program_form(t, p, q, known, out);
  if (!out.empty()) return;
  replay(t, p, q, known, out).run(true);
  check_memory(t.graph, p, q, out, device);
  i64 const need = q.arena[idx(device)];
  for (int d : members) {
    if (d == device || out.full()) continue;
    if (i64 const room = p.cluster.kind_of(d).memory; need > room)
      out.add({fault::memory, -1, -1, d, -1,
               sentence("device ", d, " needs ", need, " bytes, has ", room, ": ", need - room, " too few")});
    if (!p.peak_bytes.empty() && p.peak_bytes[idx(d)] != need)
      out.add({fault::peak, -1, -1, d, -1,
               sentence("device ", d, " takes ", need, " bytes, the plan predicts ", p.peak_bytes[idx(d)])});
  }
}

}  // namespace detail::check

/// Replays a plan's evidence from the graph that the user declared, without any search:
///  - the rewrites: shipped, proved rules, applied where they stand and where their conditions hold;
///  - every operator's sharding, recomputation and ZeRO stage;
///  - the program that they give: `check` accepts it, and it has the tasks, offsets and arenas that the plan
///    was sealed with.
/// Empty: accepted. `find(name)`: rules of your own besides. `scratch`: of the policy whose scratch space the
/// plan counts, if it does (plan::scratch).
/// Cost: rewrites as in `rewritten`; then O(kinds of devices * tasks) and O(devices) for every operator,
/// mesh, layout and reshard unlike all others. A program is never listed for all devices, except for
/// pipelines.
template <class Find>
std::vector<finding> check_certificate(computation_graph const& declared, plan const& p, Find const& find,
                                       std::string const& loss = "loss", std::size_t limit = 50,
                                       scratch_space const& scratch = {}) {
  findings out(limit);
  auto say = [&](fault f, std::string text) { out.add({f, -1, -1, -1, -1, std::move(text)}); };
  if (p.infeasible) say(fault::memory, text_of(*p.infeasible));
  else if (std::string text = detail::scratch_disagreement(p, scratch); !text.empty())
    say(fault::malformed, std::move(text));
  if (!out.empty()) return out.take();
  std::size_t const devices = idx(std::max(0, p.cluster.size()));
  if (!p.tasks || p.peak_bytes.size() != devices) {
    say(fault::malformed,
        "the plan is not sealed: it names no program (program/evidence/certificate.hpp, seal)");
    return out.take();
  }
  try {
    require_scratch(scratch, p.scalar_bytes, "certificate");
    computation_graph const forward = passes::rewritten(declared, p, find);
    detail::program_seal s;
    if (!p.pipeline.empty()) {
      planned_step const step = passes::pipeline_pass(forward, p, loss);
      program const q = unroll(step, {scratch.rule});
      if (auto wrong = check(step.graph, step.plan, q, limit); !wrong.empty()) return wrong;
      s = detail::seal_of(q, p.cluster.size());
    } else {
      training_graph const t = differentiate(forward, training_of(p, loss));
      plan shardings = p;
      for (op_strategy& c : shardings.nodes) c = {c.sharding};
      detail::check::facts known(p.cluster.size());
      detail::check::check_plan(t, shardings, known, out);           // what follows relies on it
      if (!out.empty()) return out.take();
      planned_step const step = passes::memory_pass(t, p);
      u64 tasks = 0;
      detail::for_each_kind_of_device(
          step.graph, step.plan, scratch.rule, [&](program const& q, int d, std::vector<int> const& members) {
            detail::check::check_kind(step.graph, step.plan, q, d, members, known, out);
            s.add(q, d, members);
            if (d > 0 && s.tasks != tasks)
              say(fault::malformed, "devices 0 and " + std::to_string(d) + " have different programs");
            tasks = s.tasks;
          });
    }
    if (s.tasks != p.tasks)
      say(fault::sealed, "the plan's program has other tasks than those it was sealed with");
    else if (s.offsets.value() != p.offsets)
      say(fault::sealed, "the plan's buffers lie elsewhere than where they were when it was sealed");
  } catch (error const& e) {
    say(fault::wrong_graph, e.what());
  }
  return out.take();
}
inline std::vector<finding> check_certificate(computation_graph const& declared, plan const& p,
                                              scratch_space const& scratch = {}) {
  return check_certificate(
      declared, p, [](std::string_view name) { return passes::standard_rule(name); }, "loss", 50, scratch);
}

}  // namespace tensorpar
