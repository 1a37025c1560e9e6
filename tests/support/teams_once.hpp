// tests/support/teams_once.hpp - the kernels of compute::teams on this processor, compiled once for all tests (support/teams_once.cpp)
#pragma once
#include "support/host_queues.hpp"
#include <tensorpar/core/prime_field.hpp>
#include <tensorpar/exec/teams/teams.hpp>

namespace tensorpar::compute {
extern template class teams<float>;
extern template class teams<double>;
extern template class teams<prime_field>;
extern template class teams<float, exec::host_teams<>, op::op_set<>, bfloat16>;
extern template class teams<float, tests::queued_teams>;
extern template class teams<double, tests::queued_teams>;
extern template class teams<prime_field, tests::queued_teams>;
extern template class teams<float, tests::queued_teams, op::op_set<>, bfloat16>;
}  // namespace tensorpar::compute
