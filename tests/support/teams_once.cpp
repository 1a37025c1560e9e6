#include "support/teams_once.hpp"

namespace tensorpar::compute {
template class teams<float>;
template class teams<double>;
template class teams<prime_field>;
template class teams<float, exec::host_teams<>, op::op_set<>, bfloat16>;
template class teams<float, tests::queued_teams>;
template class teams<double, tests::queued_teams>;
template class teams<prime_field, tests::queued_teams>;
template class teams<float, tests::queued_teams, op::op_set<>, bfloat16>;
}  // namespace tensorpar::compute
