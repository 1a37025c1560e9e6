// tests/check/check_subject.hpp - random training steps that the checker accepts, for tests that spoil them
#pragma once
#include <random>
#include <support/small_graphs.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/plan/plan.hpp>
#include <tensorpar/program/core/program.hpp>

namespace tests {

struct subject {
  training_graph t;
  plan p;
  program q;
};
/// Scratch space for operators, so that programs have workspaces to spoil.
i64 some_workspace(tensorpar::op::any_op const& o, shapes in, shapes out);
/// `turn` chooses graph, optimizer, clipping, micro-batches and the number of devices. Some operators have workspaces.
subject checked_step(int turn, std::mt19937& draw);

}  // namespace tests
