// tensorpar/cost/ask.hpp - a cost model is asked, and what it answers must be a time
#pragma once
#include <limits>
#include <tensorpar/core/error.hpp>
#include <tensorpar/cost/concepts.hpp>
#include <tensorpar/op/core/spelling.hpp>

namespace tensorpar::cost::detail {

[[noreturn, gnu::noinline, gnu::cold]] inline void no_time(double s, std::string const& call,
                                                           std::string const& of) {
  throw error("the cost model answers " + std::to_string(s) + " s for " + of, call,
              "a finite number of seconds, not negative");
}

/// What the model answers. Throws `error` that names call, operator and value where that is no time, as the
/// laws of cost models ask.
template <prices_compute M> double ask(M const& model, compute_query const& q) {
  double const s = model.seconds(q);
  if (!(s >= 0 && s <= std::numeric_limits<double>::max()))
    no_time(s, "seconds(compute_query)", op::spell(q.op) + (q.in.empty() ? "" : " on " + op::spell(q.in[0])));
  return s;
}
template <prices_moves M> double ask(M const& model, reshard_query const& q) {
  double const s = model.seconds(q);
  if (!(s >= 0 && s <= std::numeric_limits<double>::max()))
    no_time(s, "seconds(reshard_query)", std::string(ir::name_of(q.step.kind)) + " of "
            + op::spell(q.logical));
  return s;
}

}  // namespace tensorpar::cost::detail
