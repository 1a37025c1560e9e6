// tensorpar/simulate/prices.hpp - what each task of a program takes, asked of a cost model once
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/cost/ask.hpp>
#include <tensorpar/cost/concepts.hpp>
#include <tensorpar/cost/model_ref.hpp>
#include <tensorpar/ir/machine/machine_check.hpp>
#include <tensorpar/program/core/program.hpp>

namespace tensorpar::simulation {

/// Seconds of every task on every kind of device (a reshard takes the same on all).
struct task_prices {
  std::size_t kinds = 1;
  std::vector<double> seconds;                  // task * kinds + kind
  double of(std::size_t task, int kind) const {
    return seconds[task * kinds + idx(kind)];
  }
};

/// Asks the model for every task. Kinds of device that take no part in a task cost 0 there.
/// Throws `error` for a machine that means nothing. O(tasks * kinds) queries at most.
template <cost::cost_model M> task_prices price(program const& p, machine const& on, M const& model) {
  require_machine(on);
  task_prices r{on.kinds.size(), std::vector<double>(p.tasks.size() * on.kinds.size(), 0)};
  auto at = [&](int b) -> buffer const& { return p.buffers[idx(b)]; };
  std::vector<shape> in, out;
  std::vector<bool> there(on.kinds.size());
  for (std::size_t t = 0; t < p.tasks.size(); ++t) {
    task const& x = p.tasks[t];
    double* const row = r.seconds.data() + t * r.kinds;
    // both halves of an exchange take as long as the whole: they run at one time
    if (x.kind != task_kind::compute) {
      double const s = cost::detail::ask(
          model, cost::reshard_query{x.step, at((x.in.empty() ? x.out : x.in).front()).type, p.scalar_bytes,
                                     on});
      for (std::size_t k = 0; k < r.kinds; ++k) row[k] = s;
      continue;
    }
    in.clear();
    out.clear();
    for (int b : x.in) in.push_back(ir::part_of(at(b).where, at(b).type));
    for (int b : x.out) out.push_back(ir::part_of(at(b).where, at(b).type));
    there.assign(r.kinds, false);
    for (int d : x.devices) there[idx(on.device[idx(d)])] = true;
    for (std::size_t k = 0; k < r.kinds; ++k)
      if (there[k])
        row[k] = cost::detail::ask(model, cost::compute_query{x.op, {in.data(), static_cast<int>(in.size())},
                                                  {out.data(), static_cast<int>(out.size())},
                                                  p.scalar_bytes,
                                                  on.kinds[k]});
  }
  return r;
}
template <class M>
  requires(!cost::cost_model<M>)
cost::cost_model_lack<M> price(program const&, machine const&, M const&);

/// One task after the other, each as long as on its slowest device: no schedule that runs the program in
/// order takes longer.
inline double serial_seconds(program const& p, machine const& on, task_prices const& price) {
  double sum = 0;
  for (std::size_t t = 0; t < p.tasks.size(); ++t) {
    double most = 0;
    for (int d : p.tasks[t].devices) {
      double const s = price.of(t, on.device[idx(d)]);
      most = s > most ? s : most;
    }
    sum += most;
  }
  return sum;
}

#ifdef TENSORPAR_COMPILED
extern template task_prices price(program const&, machine const&, cost::model_ref const&);
#endif

}  // namespace tensorpar::simulation
