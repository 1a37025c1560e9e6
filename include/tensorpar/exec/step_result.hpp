// tensorpar/exec/step_result.hpp - what a training step tells, read from all devices
#pragma once
#include <concepts>
#include <optional>
#include <tensorpar/exec/device_memory.hpp>
#include <tensorpar/exec/processes.hpp>
#include <vector>

namespace tensorpar {

struct step_result {
  double loss = 0;             // mean over the batch
  double seconds = 0;
  std::optional<double> gradient_norm;   // of all gradients before they were clipped; where they are not clipped, nobody computes it
};

namespace detail {

template <class Scalar> double to_double(Scalar x) {
  if constexpr (std::floating_point<Scalar>) return static_cast<double>(x);
  else return 0;                                   // a field element has no size
}
/// The loss: its partial sums added, averaged over micro-batches. And the gradients' norm. `losses`: the buffers of the loss, or of its
/// `shares` shares; norm: that of the norm, or -1.
template <class Scalar, class Memory, class Hub>
void read_step(step_result& r, program const& p, std::vector<int> const& losses, int norm, std::size_t shares,
            device_memory<Scalar, Memory> const& memory, Hub& hub) {
  std::vector<double> all;
  auto const take = [&](int made) {
    buffer const& q = p.buffers[static_cast<std::size_t>(made)];
    for (i64 k = 0, n = q.where.size(); k < n; ++k) {
      int const d = q.where.device(k);
      auto const c = q.where.coordinates(d);
      bool counted = true;
      for (std::size_t a = 0; a < q.where.axes.size(); ++a) counted = counted && (q.where.axes[a].kind != part_kind::copy || c[a] == 0);
      if (!counted) continue;
      Scalar x(0);
      if (memory.here(d)) memory.memory(d).read(&x, memory.address(made, d), sizeof(Scalar));
      all.push_back(to_double(x));
    }
  };
  if (norm >= 0) take(norm);
  for (int made : losses) take(made);
  add_up(hub, all);
  if (norm >= 0) r.gradient_norm = all[0];
  for (std::size_t k = norm >= 0; k < all.size(); ++k) r.loss += all[k];
  r.loss /= p.micro_batches * static_cast<double>(shares);
}

}  // namespace detail

}  // namespace tensorpar
