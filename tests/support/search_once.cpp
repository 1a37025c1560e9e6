#include "search_once.hpp"

namespace tensorpar {
namespace search {
template search_result optimize(computation_graph const&, machine const&, cost::analytical const&, search_options const&);
template joint_result optimize_jointly(computation_graph const&, machine const&, cost::analytical const&, joint_options const&);
template joint_result optimize_one_after_the_other(computation_graph const&, machine const&, cost::analytical const&, joint_options const&);
}  // namespace search
template class detail::plan_search<cost::analytical>;
}  // namespace tensorpar
