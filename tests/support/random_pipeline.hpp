// tests/support/random_pipeline.hpp - seeded pipelines: random stages of a random topological order, sizes, shardings and schedules
#pragma once
#include <random>
#include "small_graphs.hpp"
#include <tensorpar/plan/plan.hpp>

namespace tests {

using namespace tensorpar;

struct pipeline_kind {
  int devices = 4;
  bool sizes = true, split = true, recompute = true, shared_groups = false;
};

/// Which stage reads what of which other: forward edges between stages, deduced from the graph.
std::vector<std::vector<int>> stage_predecessors(computation_graph const& g, pipeline const& p);
/// Some order that respects every dependency: at each step a random group takes a random pass that is ready.
void random_order(pipeline& p, std::vector<std::vector<int>> const& before, std::mt19937& draw);
plan random_pipeline(computation_graph const& g, pipeline_kind k, i64 unit, i64 mini_batch, std::mt19937& draw);
/// In turn on three devices: a pipeline on four times the graph's batch, shardings with four micro-batches, shardings that save memory.
plan random_plan_of_a_kind(computation_graph const& g, int turn, std::mt19937& draw);

}  // namespace tests
