// src/rewriting.cpp - compiled once for tensorpar::compiled: rewrite rules and shardings together
#include <tensorpar/search/joint/joint.hpp>

namespace tensorpar::search {
template joint_result detail::optimize_jointly_by(computation_graph const&, machine const&, cost::model_ref const&, joint_options const&);
}  // namespace tensorpar::search
