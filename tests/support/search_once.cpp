#include "search_once.hpp"

namespace tensorpar {
namespace search {
template search_result detail::optimize_by(computation_graph const&, machine const&, cost::model_ref const&, search_options const&);
template joint_result detail::optimize_jointly_by(computation_graph const&, machine const&, cost::model_ref const&, joint_options const&);
}  // namespace search
template planned detail::fastest_plan(training_problem const&, machine const&, cost::model_ref const&, planning_options const&);
}  // namespace tensorpar
