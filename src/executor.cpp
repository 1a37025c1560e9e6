// src/executor.cpp - compiled once for tensorpar::compiled: training on threads, in float and in bf16 with float masters
#include <tensorpar/run.hpp>

namespace tensorpar {
using kernels = compute::eigen<float>;
using own_world = exec::detail::own_world<comm::threads>;
template class executor<kernels, comm::threads>;
template executor<kernels, comm::threads>::executor(exec::detail::step_to_run, own_world const&);
template class trainer<kernels, comm::threads>;
template trainer<kernels, comm::threads>::trainer(planned const&, own_world const&);
template trainer<kernels, comm::threads>::trainer(training_problem const&, plan const&, own_world const&);
}  // namespace tensorpar
