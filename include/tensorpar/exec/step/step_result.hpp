// tensorpar/exec/step/step_result.hpp - what a training step tells, read from all devices
#pragma once
#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdio>
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/comm/processes.hpp>
#include <tensorpar/exec/step/device_memory.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <vector>

namespace tensorpar {

struct step_result {
  double loss = 0;             // of the batch: the mean or the sum of its micro-batches' losses
  double seconds = 0;
  // of all gradients before they were clipped; where no update waits for it, nobody computes it
  std::optional<double> gradient_norm;
  // by optimizer_choice::on_non_finite: nothing has changed, and the step does not count
  bool skipped = false;
  /// Is the loss a finite number, and the norm where there is one?
  bool finite() const { return std::isfinite(loss) && std::isfinite(gradient_norm.value_or(0)); }
};

namespace detail {

template <class Scalar> double to_double(Scalar x) {
  if constexpr (std::floating_point<Scalar>) return static_cast<double>(x);
  else return 0;                                   // a field element has no size
}
template <class Scalar> double mean(std::vector<Scalar> const& all) {
  double sum = 0;
  for (Scalar x : all) sum += to_double(x);
  return sum / static_cast<double>(all.size());
}
inline std::string const& name_of_loss(training_graph const& t) {
  return std::find_if(t.graph.outputs.begin(), t.graph.outputs.end(),
                      [&](graph_port const& o) { return o.value == t.loss; })
      ->name;
}
/// The buffers that a step's result is read from.
struct step_numbers {
  std::vector<int> losses;         // those that forward operators write the loss to, its shares one by one
  int norm = -1;                   // that of the gradients' norm
  double terms = 1;                // whose mean is the loss; 1: their sum
};
inline step_numbers told_by_step(training_graph const& g, program const& p) {
  step_numbers r;
  if (g.reduction != loss_reduction::sum)
    r.terms = p.micro_batches * static_cast<double>(std::max<std::size_t>(1, g.losses.size()));
  for (task const& t : p.tasks) {
    if (t.kind != task_kind::compute) continue;
    if (t.op.is<clip_factor>()) r.norm = t.out[1];
    else if (!t.out.empty() && t.node < g.forward_nodes &&
             is_loss(g, p.buffers[idx(t.out[0])].value))
      r.losses.push_back(t.out[0]);
  }
  return r;
}
/// The loss: its partial sums added, averaged over micro-batches where it is a mean. And the gradients' norm.
template <class Scalar, class Memory, class World>
void read_step(step_result& r, program const& p, step_numbers const& from,
               exec::detail::device_memory<Scalar, Memory> const& memory, World& world) {
  std::vector<double> all;
  auto const take = [&](int made) {
    buffer const& q = p.buffers[idx(made)];
    for (i64 k = 0, n = q.where.size(); k < n; ++k) {
      int const d = q.where.device(k);
      if (!exec::detail::is_first_copy(q.where, d)) continue;
      Scalar x(0);
      if (memory.here(d)) memory.memory(d).read(&x, memory.address(made, d), sizeof(Scalar));
      all.push_back(to_double(x));
    }
  };
  if (from.norm >= 0) take(from.norm);
  for (int made : from.losses) take(made);
  exec::detail::add_up(world, all);
  if (from.norm >= 0) r.gradient_norm = all[0];
  for (std::size_t k = from.norm >= 0; k < all.size(); ++k) r.loss += all[k];
  r.loss /= from.terms;
}

/// Does this step count? Not where its update was skipped, as kernels found from the same norm. Throws where
/// the optimizer wants finite numbers.
inline bool counts(step_result& r, optimizer_choice const& o, u64 step) {
  if (r.finite() || o.on_non_finite == non_finite::go_on) return true;
  if (r.skipped = o.on_non_finite == non_finite::skip; r.skipped) return false;
  bool const loss = !std::isfinite(r.loss);
  char what[160];
  std::snprintf(what, sizeof what, "step %llu: %s is %g", static_cast<unsigned long long>(step),
                loss ? "the loss" : "the norm of all gradients", loss ? r.loss : *r.gradient_norm);
  throw error(
      std::string(what) + ", and parameters are updated by it", "executor",
      "finite numbers: look at the batch and the learning rate, go on from the last checkpoint; or "
      "optimizer.on_non_finite = skip");
}

}  // namespace detail

}  // namespace tensorpar
