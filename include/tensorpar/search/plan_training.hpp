// tensorpar/search/plan_training.hpp - from a training problem and a machine to the fastest plan of any kind
#pragma once
#include <tensorpar/cost/model_ref.hpp>
#include <tensorpar/program/planned.hpp>
#include <tensorpar/program/training_problem.hpp>
#include <tensorpar/search/effort.hpp>
#ifndef TENSORPAR_COMPILED
#include <tensorpar/search/candidates.hpp>
#endif

namespace tensorpar {

namespace detail {
/// `plan_training` by one type of model (search/candidates.hpp): what tensorpar::compiled has compiled.
template <cost::cost_model M>
planned fastest_plan(training_problem const& problem, machine const& on, M const& model,
                     planning_options const& options);
#ifdef TENSORPAR_COMPILED
extern template planned fastest_plan(training_problem const&, machine const&, cost::model_ref const&,
                                     planning_options const&);
#endif
}  // namespace detail

/// The fastest plan for a training step on a machine, by a cost model. Candidates are
/// 1. shardings: every operator over all devices or some, for one number of micro-batches after another
///    (`optimize`, search/intra/optimize.hpp), and once more for steps in which computing and communicating
///    overlap. More micro-batches are tried while nothing fits, or while the plan for fewer recomputes or
///    shards its weights, until a step gets longer or takes 1.3 times the best one known, and with
///    `effort::quick` until something fits. Degrees come after the first number.
/// 2. degrees: data, tensor and pipeline parallelism in the same degrees for all operators, as trainers are
///    configured, with ZeRO, recomputation and virtual stages (`rank_configurations`,
///    search/degrees/ranking.hpp). Those that may be faster than what is known, by estimates.
/// 3. pipelines: stages for each schedule (`fit_stages`, search/pipeline/fit_stages.hpp), and the same with
///    shardings of their own inside (`map_within`). A pipeline may have one stage.
/// 4. with `effort::thorough` shardings and pipelines again after rewrite rules (`optimize_jointly`,
///    search/joint/joint.hpp), for the whole machine and for one device with its share of the samples.
/// Graph and machine are put into the problem's number format first (`at_precision`): products run at its
/// rate, numbers have its bytes, and `planned::graph` is in that format.
/// Every candidate is unrolled and simulated under the same cost model, with prefetch too
/// (search/overlapped.hpp). The fastest program whose arenas fit is taken, and all are told. Where none fits,
/// `infeasible` says what lacked least.
///
/// All inputs of the problem's graph have their samples along the first axis. Operators that mix samples
/// (batch normalisation) do so within each micro-batch. Orders of stages that come back to a device are not
/// looked for.
/// Throws `error` as `optimize` and `at_precision` do, and as `rebatch` for operators that fix how many
/// samples there are. Also for a batch that is no multiple of the graph's, for options that this effort does
/// not look at, and where no candidate is allowed. The reason why a schedule is impossible stands beside it
/// in `tried`.
/// Deterministic. Takes as long as all phases together, nearly all of it for unrolling pipelines.
template <cost::cost_model M>
planned plan_training(training_problem const& problem, machine const& on, M const& model,
                      planning_options const& options = {}) {
  return detail::fastest_plan(problem, on, cost::model_ref(model), options);
}
template <class M>
  requires(!cost::cost_model<M>)
cost::cost_model_lack<M> plan_training(training_problem const&, machine const&, M const&,
                                 planning_options const& = {});

}  // namespace tensorpar
