// src/program.cpp - compiled once for tensorpar::compiled: a plan written into a graph, and unrolled
#include <tensorpar/program/step_of.hpp>
#include <tensorpar/simulate/engine.hpp>

namespace tensorpar {
template training_graph differentiate<>(computation_graph const&, training_options const&);
template planned_step passes::memory_pass<>(training_graph const&, plan);
template planned_step passes::pipeline_pass<>(computation_graph const&, plan const&, std::string const&);
template void passes::prefetch<>(program&, computation_graph const&, int);
template void passes::assign_offsets<>(program&, int);
template program unroll<>(training_graph const&, plan const&, unroll_options const&);
template program unroll<>(planned_step const&, unroll_options const&);
template i64 arena_on<>(int, training_graph const&, plan const&, workspace_rule);
template timeline simulate<>(program const&, machine const&, simulation::task_prices const&, simulation_options);
}  // namespace tensorpar
