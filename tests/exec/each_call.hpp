// tests/exec/each_call.hpp - a call of every operator there is
#pragma once
#include "support/dense.hpp"
#include "samples.hpp"
#include <set>
#include <tensorpar/exec/cpu/common/kernel_table.hpp>

namespace tests {

template <class... Op> std::set<std::string> names_of(tensorpar::op::op_set<Op...>) { return {std::string(Op::name)...}; }
/// Of every operator of the library.
inline std::set<std::string> names_of_all() {
  std::set<std::string> all = names_of(tensorpar::op::forward_operators{});
  all.merge(names_of(tensorpar::op::backward_operators{}));
  all.merge(names_of(tensorpar::exec::detail::sharding_operators{}));
  return all;
}

/// All forward samples, everything that their derivatives emit, and the rest.
template <class Policy, class Visit> void each_call(Visit&& visit) {
  using scalar = typename Policy::scalar_type;
  std::mt19937_64 r(5);
  tensorpar::exec::step_state state;
  state.step = 7;
  state.seed = 11;
  state.micro_batch = 1;
  state.learning_rate = 0.25;
  for (auto const& list : {forward_samples(), other_samples()})
    for (sample const& s : list) {
      auto const x = operands_of<scalar>(s, r);
      visit(s.op, x, state);
      if (!s.differentiable()) continue;
      auto const y = run_whole<Policy>(s.op, x, state);
      std::vector<dense<scalar>> dy;
      for (auto const& t : y) dy.push_back(random_dense<scalar>(t.block.local_shape(), s.end, r));
      if (!y.empty() && y[0].integer()) continue;
      eager<Policy> const g(s.op, x, y, dy, state);
      for (auto const& e : g.emitted) visit(e.op, e.operands, state);
    }
}

}  // namespace tests
