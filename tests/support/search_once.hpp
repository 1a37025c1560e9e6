// tests/support/search_once.hpp - the searches under the analytical model, compiled once (support/search_once.cpp)
#pragma once
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/search/plan_training.hpp>

namespace tensorpar {
namespace search {
extern template search_result optimize(computation_graph const&, machine const&, cost::analytical const&, search_options const&);
extern template joint_result optimize_jointly(computation_graph const&, machine const&, cost::analytical const&, joint_options const&);
extern template joint_result optimize_one_after_the_other(computation_graph const&, machine const&, cost::analytical const&,
                                                          joint_options const&);
}  // namespace search
extern template class detail::plan_search<cost::analytical>;
}  // namespace tensorpar
