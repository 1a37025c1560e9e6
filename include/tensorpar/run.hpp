// tensorpar/run.hpp - the umbrella of running: declare a model, read a plan, train it on threads of this
// machine. No search is in it. Needs the parts `eigen`, `json` and `threads`.
#pragma once
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/cpu/eigen.hpp>
#include <tensorpar/exec/files/checkpoint.hpp>
#include <tensorpar/exec/trainer.hpp>
#include <tensorpar/plan/plan_file.hpp>
#include <tensorpar/tensorpar.hpp>
#include <tensorpar/typed/lower.hpp>

#ifdef TENSORPAR_COMPILED
namespace tensorpar {
extern template class compute::eigen<float>;
extern template class executor<compute::eigen<float>, comm::threads>;
extern template executor<compute::eigen<float>, comm::threads>::executor(
    exec::detail::step_to_run, exec::detail::own_world<comm::threads> const&);
extern template class trainer<compute::eigen<float>, comm::threads>;
extern template trainer<compute::eigen<float>, comm::threads>::trainer(
    planned const&, exec::detail::own_world<comm::threads> const&);
extern template trainer<compute::eigen<float>, comm::threads>::trainer(
    training_problem const&, plan const&, exec::detail::own_world<comm::threads> const&);
}  // namespace tensorpar
#endif
