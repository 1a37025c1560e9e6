// tensorpar/search/pipeline/map_within.hpp - inside every stage of a pipeline the shardings that the mapping
// search finds fastest
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/cost/model_ref.hpp>
#include <tensorpar/ir/rebatch.hpp>
#include <tensorpar/search/intra/machine_parts.hpp>
#include <tensorpar/search/intra/optimize.hpp>
#include <tensorpar/search/pipeline/stages/engine.hpp>

namespace tensorpar::search {

namespace detail {

/// The problem of these operators alone, in a row.
inline mapping_problem problem_of(mapping_problem p, std::vector<int> const& operators) {
  std::vector<int> number(idx(p.operators()), -1), set_of, order;
  std::vector<std::string> names;
  for (int v : operators) {
    number[idx(v)] = static_cast<int>(set_of.size());
    order.push_back(number[idx(v)]);
    set_of.push_back(p.set_of[idx(v)]);
    names.push_back(p.names[idx(v)]);
  }
  std::vector<operator_pair> pairs;
  for (operator_pair q : p.pairs) {
    if (number[idx(q.first)] < 0 || number[idx(q.second)] < 0) continue;
    q.first = number[idx(q.first)];
    q.second = number[idx(q.second)];
    pairs.push_back(q);
  }
  p.set_of = std::move(set_of);
  p.names = std::move(names);
  p.pairs = std::move(pairs);
  p.tree = graph::binary(line_of(order), graph::sp_shape::left);
  p.relaxed = false;
  return p;
}

}  // namespace detail

/// What became of a pipeline's stages: seconds of a mini-batch inside each (operators, reshards between
/// them, gradient synchronisation, updates; not what crosses its border), before and after.
struct mapped_stages {
  tensorpar::plan plan;
  std::vector<double> before, after;  // by stage; equal where nothing faster was found, 0 on one device
};

/// The same pipeline with other shardings inside its stages. For each stage on several devices `best_mapping`
/// finds the fastest ones for its operators, one after another on a micro-batch of the stage. The objective
/// is that of search/problem/problem.hpp. Where they are no faster than the plan's, or do not fit into memory
/// by its estimate, the plan's stay. Any loop may be split, so tensor-parallel operators in a row need not
/// gather every result, as they do by the rule of `graph_stages`. The exchange between stages is not part of
/// the objective: simulate both plans to know.
/// `o`: loss, optimizer, limits of shardings, scalar bytes; the rest is not looked at. Throws `error` where
/// the plan is not of this graph or has no pipeline, and as `rebatch` and `differentiate` do. Per stage as
/// `optimize` of the whole graph on the stage's devices.
template <cost::cost_model M>
mapped_stages map_within(computation_graph const& forward, plan p, M const& model,
                         search_options const& o = {}) {
  require_feasible(p);
  if (p.pipeline.empty()) throw error("a plan without a pipeline", "map_within", "a plan with stages");
  if (p.graph != forward.hash() || p.nodes.size() != forward.nodes.size())
    throw error("a plan of another graph", "map_within", "the graph that it was made for");
  mapped_stages r;
  pipeline const& line = p.pipeline;
  for (std::size_t s = 0; s < line.stages.size(); ++s) {
    pipeline_stage const& stage = line.stages[s];
    device_range const group = line.groups[idx(stage.group)];
    r.before.push_back(0);
    r.after.push_back(0);
    if (group.count < 2) continue;
    machine const on = detail::part_of(p.cluster, group);
    int const times = line.micro_batches(static_cast<int>(s));
    training_options const trained{o.loss, o.optimizer, times, p.reduction};
    training_graph const t = differentiate(ir::rebatch(forward, stage.micro_batch / line.unit), trained);
    choice_book<M> book(on, model, objective_options{group.count, o.scalar_bytes, times});
    detail::objective_builder<M> build(t, book);
    mapping_problem const problem =
        detail::problem_of(build.make(o.shardings ? *o.shardings : usual_limits(group.count)), stage.nodes);
    assignment now;
    for (std::size_t i = 0; i < stage.nodes.size(); ++i) {
      ir::sharding x = p.nodes[idx(stage.nodes[i])].sharding;
      x.start -= group.first;
      now.push_back(find_choice(problem, static_cast<int>(i), x));
    }
    bool const known = std::find(now.begin(), now.end(), -1) == now.end();
    if (!known) continue;  // outside of the limits: not comparable
    r.before.back() = r.after.back() = evaluator(problem).seconds(now);
    mapping_result const m = best_mapping(problem, o.mapping);
    if (!m.found() || m.cost.seconds >= r.before.back() * (1 - 1e-9)) continue;
    r.after.back() = m.cost.seconds;
    for (std::size_t i = 0; i < stage.nodes.size(); ++i) {
      ir::sharding x = problem.choices(static_cast<int>(i)).shardings[idx(m.choices[i])];
      x.start += group.first;
      p.nodes[idx(stage.nodes[i])].sharding = std::move(x);
    }
  }
  r.plan = std::move(p);
  return r;
}
template <class M>
  requires(!cost::cost_model<M>)
cost::cost_model_lack<M> map_within(computation_graph const&, plan, M const&, search_options const& = {});

#ifdef TENSORPAR_COMPILED
extern template mapped_stages map_within(computation_graph const&, plan, cost::model_ref const&,
    search_options const&);
#endif

}  // namespace tensorpar::search
