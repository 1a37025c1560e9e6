// tensorpar/tool/demo/local_plans.hpp - plans for this very machine, from operators that are measured on it
#pragma once
#include <algorithm>
#include <bit>
#include <future>
#include <optional>
#include <string>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/cost/measure_host.hpp>
#include <tensorpar/cost/profiled.hpp>
#include <tensorpar/exec/cpu/eigen.hpp>
#include <tensorpar/exec/device/scratch_of.hpp>
#include <tensorpar/exec/profile.hpp>
#include <tensorpar/program/step_of.hpp>
#include <tensorpar/program/training.hpp>
#include <tensorpar/search/intra/optimize.hpp>
#include <tensorpar/search/plan_training.hpp>
#include <tensorpar/simulate/engine.hpp>
#include <tensorpar/tool/demo/other_programs.hpp>
#include <tensorpar/typed/lower.hpp>
#include <tensorpar/typed/typed.hpp>
#include <utility>
#include <vector>

namespace tensorpar::tools {

using demo_kernels = compute::eigen<float>;
using measured_prices = cost::profiled<cost::analytical>;

/// Devices that do not wait for each other's cores: a power of two, at most 8, at most one per core.
inline int usual_devices(int cores) {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(std::clamp(cores, 1, 8))));
}

/// One way to train the network.
struct contender {
  std::string name;
  planned_step step;
  timeline expected = {};  // of a step on this machine (`local_machine::expected`)
  int devices() const { return step.plan.cluster.size(); }
};

/// What a step's operators take on this machine that `have` does not say yet: measured on so many threads at
/// once, which then share memory and caches. Of three medians the least, which other programs disturb least.
/// Throws as `measure_operators` does.
inline cost::profile_table operators_of(program const& q, machine const& on, int threads,
                                        cost::profile_table const& have) {
  auto const measured = [&] { return measure_operators<demo_kernels>(q, on, {.samples = 3}, have); };
  cost::profile_table r = have;
  for (int pass = 0; pass < 3; ++pass) {
    std::vector<std::future<cost::profile_table>> others;
    for (int k = 1; k < threads; ++k) others.push_back(std::async(std::launch::async, measured));
    cost::profile_table const now = measured();
    for (auto& other : others) other.get();
    for (auto const& [key, k] : now.all())
      if (cost::operator_profile const* known = r.find(key); !known || k.seconds < known->seconds) r.add(k);
  }
  return r;
}

namespace detail {
/// Its product has 256 x 256 x 256 terms.
struct product_net {
  static constexpr void define(auto& g) {
    constexpr axis samples{"samples"}, classes{"classes"};
    auto x = g.input("x", {samples(256), 256});
    auto label = g.input("label", {samples(256)}, dtype::i32);
    g.output("loss", all(x | linear{.out = 256, .to = classes}, label) | cross_entropy{});
  }
};
/// FLOP/s of the kernels' matrix product on one core of this kind.
inline double product_rate(machine const& on) {
  computation_graph const g = lower(typed<product_net>);
  planned_step const s = step_of(g, one_device_plan(g), "loss", exec::scratch_of<demo_kernels>());
  cost::profile_table const t = measure_operators<demo_kernels>(s.program, on, {.samples = 3});
  double r = 0;
  for (auto const& [key, k] : t.all())
    if (key.op == linear::name) r = 2.0 * 256 * 256 * 256 / std::max(k.seconds, 1e-9);
  return r;
}
}  // namespace detail

/// This machine as devices that are threads, and what operators take on it.
struct local_machine {
  machine on;
  int cores = 1;
  cost::profile_table alone;     // measured one at a time: other programs disturb that least

  /// Measures for less than half a second. Throws `error` for no device.
  explicit local_machine(int devices) {
    cost::host_rates rates = cost::measure_host();
    rates.flops = std::max(rates.flops, detail::product_rate(cost::host_machine(1, rates)));
    on = cost::host_machine(devices, rates);
    cores = rates.cores;
  }
  /// By a table: devices beyond the cores take turns.
  measured_prices prices(cost::profile_table const& t) const {
    cost::profile_table shared;
    for (auto [key, k] : t.all()) {
      k.seconds *= std::max(1.0, static_cast<double>(on.size()) / cores);
      shared.add(std::move(k));
    }
    return measured_prices(std::move(shared), cost::analytical{cost::measured_rates});
  }
  /// Measures those operators of a step that have not been yet. Returns whether there were some.
  bool measure(program const& q) {
    std::size_t const before = alone.size();
    alone = operators_of(q, on, 1, alone);
    return alone.size() > before;
  }
  /// A step, as it will run here: by operators that are measured on all its devices at once. A device's
  /// thread does not communicate while it computes.
  timeline expected(planned_step const& s) const {
    int const devices = s.plan.cluster.size();
    cost::profile_table const t = operators_of(s.program, on, std::min(devices, cores), {});
    machine m = on;
    if (devices != on.size()) {  // one device
      m = s.plan.cluster;
      m.kinds = on.kinds;
    }
    return simulate(s.program, m, prices(t), {.overlap = false});
  }
};

/// A plan for this machine, and what people do without a search.
struct local_plans {
  planned found;
  std::vector<contender> all;    // "chosen plan", "data parallel", "tensor parallel", "one device"
  // share of all cores that other programs used while operators were measured
  std::optional<double> others;
};

/// The chosen plan's step and its rivals', which are of the same graph. Nothing is expected of them yet.
/// Throws `error` as `optimize` does.
inline std::vector<contender> contenders(planned const& found, training_problem const& asked,
                                         machine const& on, cost::model_ref const& prices) {
  computation_graph const& g = found.graph;
  std::vector<contender> r{{"chosen plan", found.step}};
  search::search_options wanted;
  wanted.fewer_devices = false;  // rivals stand on all of them
  wanted.optimizer = asked.optimizer;
  wanted.scratch = asked.scratch;
  wanted.loss = asked.loss;
  wanted.micro_batches = found.plan.micro_batches;
  plan p = one_device_plan(g, found.plan);
  plan const serial = p;
  p.cluster = on;
  for (search::baseline const& b : search::optimize(g, on, prices, wanted).baselines) {
    if (b.name == "single device") continue;
    p.nodes = b.nodes;
    r.push_back({b.name, step_of(g, p, asked.loss, asked.scratch)});
  }
  r.push_back({"one device", step_of(g, serial, asked.loss, asked.scratch)});
  return r;
}

/// Plans a network for this machine. Plans and measures the operators of the plans in turn until none is new,
/// at most five times. Precondition: the problem's scratch is that of `demo_kernels`. Throws `error` as
/// `plan_training` does, and where nothing fits.
inline local_plans plans_for(training_problem const& asked, local_machine& here,
                             planning_options const& options = {}) {
  local_plans r;
  machine_watch const watch;
  for (int round = 0; round < 5; ++round) {
    measured_prices const prices = here.prices(here.alone);
    r.found = plan_training(asked, here.on, prices, options);
    if (!r.found.feasible())
      throw error(text_of(*r.found.infeasible), "this machine", "a smaller network or batch");
    r.all = contenders(r.found, asked, here.on, cost::model_ref(prices));
    bool some = false;
    for (contender const& c : r.all) some = here.measure(c.step.program) || some;
    if (!some) break;
  }
  for (contender& c : r.all) c.expected = here.expected(c.step);
  r.others = watch.others();
  return r;
}

}  // namespace tensorpar::tools

#ifdef TENSORPAR_COMPILED
extern template class tensorpar::compute::eigen<float>;
#endif
