// tensorpar/tool/demo/race.hpp - several plans of one network run in turns on the same devices and batches
#pragma once
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/report/json.hpp>
#include <tensorpar/report/units.hpp>
#include <tensorpar/tool/demo/local_plans.hpp>
#include <tensorpar/tool/demo/other_programs.hpp>
#include <utility>
#include <vector>

#ifdef TENSORPAR_COMPILED
namespace tensorpar {  // as in run.hpp
extern template class executor<compute::eigen<float>, comm::threads>;
extern template executor<compute::eigen<float>, comm::threads>::executor(
    exec::detail::step_to_run, exec::detail::own_world<comm::threads> const&);
}  // namespace tensorpar
#endif

namespace tensorpar::tools {

using demo_executor = executor<demo_kernels, comm::threads>;

struct race_options {
  int rounds = 11;
  int steps = 3;     // of each contender in a round; the first is not counted: the caches hold another's data
  double rate = 0.05;
  u64 seed = 1;      // of the parameters
};

/// What a contender took.
struct raced {
  std::string name;
  int devices = 1;
  double predicted = 0, measured = 0;  // seconds of a step; the median of those measured
  double loss = 0;                     // of the last step
};
struct race_result {
  std::vector<raced> all;              // by contender
  double differ = 0;                   // after the first round, see `race`
  // share of all cores that other programs used meanwhile, or while predictions were made (`race_plans`)
  std::optional<double> others;
  /// How many times as fast as the contender of this name is the first? 0 without it.
  double against(std::string const& name) const {
    for (raced const& r : all)
      if (r.name == name && all.front().measured > 0) return r.measured / all.front().measured;
    return 0;
  }
};
/// Sums in another order differ so much at most after a few steps in float.
inline constexpr double float_noise = 1e-3;
/// A prediction that is further off than this share does not hold.
inline constexpr double prediction_holds = 0.25;

namespace detail {

inline double median_of(std::vector<double> v) {
  if (v.empty()) return 0;
  auto const middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  return *middle;
}
/// Of all parameters the largest difference, relative to the largest element of the same parameter.
inline double difference(demo_executor const& a, demo_executor const& b, computation_graph const& forward) {
  double r = 0;
  for (std::size_t x = 0; x < forward.values.size(); ++x) {
    if (forward.values[x].role != value_role::parameter) continue;
    std::vector<float> const p = a.fetch(static_cast<int>(x)), q = b.fetch(static_cast<int>(x));
    double most = 0, differ = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
      most = std::max(most, std::abs(static_cast<double>(q[i])));
      differ = std::max(differ, std::abs(static_cast<double>(p[i]) - static_cast<double>(q[i])));
    }
    differ = most > 0 ? differ / most : differ;
    if (!(differ <= r)) r = differ;    // NaN, too
  }
  return r;
}

}  // namespace detail

/// Trains every contender from the same parameters on the same batches, in turns: a round is a few steps of
/// each, and every round another one begins. So what disturbs the machine disturbs all. After the first round
/// the parameters of all are compared with the last contender's (`race_result::differ`).
/// `forward`: the graph that all contenders run. `batch_of(k)`: the batch of step k. Throws as `executor`
/// does; every contender's program is checked. Takes rounds * steps of all.
template <class Batches>
race_result race(std::vector<contender> const& all, computation_graph const& forward, Batches const& batch_of,
                 race_options const& o = {}) {
  std::vector<std::unique_ptr<demo_executor>> run;
  for (contender const& c : all) {
    run.push_back(std::make_unique<demo_executor>(c.step));
    run.back()->initialise(o.seed);
  }
  race_result r;
  for (contender const& c : all) r.all.push_back({c.name, c.devices(), c.expected.seconds});
  std::vector<std::vector<double>> seconds(all.size());
  machine_watch const watch;
  for (int round = 0; round < o.rounds; ++round) {
    for (std::size_t k = 0; k < all.size(); ++k) {
      std::size_t const i = (k + idx(round)) % all.size();
      for (int step = 0; step < o.steps; ++step) {
        step_result const s = run[i]->step(batch_of(round * o.steps + step), o.rate);
        r.all[i].loss = s.loss;
        if (step > 0 || o.steps == 1) seconds[i].push_back(s.seconds);
      }
    }
    if (round > 0) continue;
    for (auto const& e : run) {
      double const d = detail::difference(*e, *run.back(), forward);
      if (!(d <= r.differ)) r.differ = d;
    }
  }
  r.others = watch.others();
  for (std::size_t i = 0; i < all.size(); ++i) r.all[i].measured = detail::median_of(std::move(seconds[i]));
  return r;
}

/// The race of the plans for this machine. It is busy where it was while they were made, too.
template <class Batches>
race_result race_plans(local_plans const& plans, Batches const& batch_of, race_options const& o = {}) {
  race_result r = race(plans.all, plans.found.graph, batch_of, o);
  r.others = std::max(r.others, plans.others);  // nothing is less than any share
  return r;
}

/// The contenders as a table. On a busy machine measured times stand alone: what was predicted is for one
/// that is not.
inline std::string race_table(race_result const& r) {
  bool const busy = is_busy(r.others);
  std::vector<std::vector<std::string>> rows{{"", "devices", "predicted", "measured", "", ""}};
  for (raced const& x : r.all) {
    double const off = x.predicted > 0 ? x.measured / x.predicted - 1 : 0;
    rows.push_back({x.name, std::to_string(x.devices), report::seconds_text(x.predicted),
                    report::seconds_text(x.measured),
                    busy || x.predicted <= 0 ? "" : report::detail::printed("(%+.0f %%)", 100 * off),
                    &x == &r.all.front() ? ""
                                         : report::detail::printed("%.2f", r.against(x.name)) +
                                               " times the chosen plan's"});
  }
  return report::columns(rows, {true, false, false, false, true, true}, "  ");
}
/// What the race says, in a sentence or two. Precondition: it has a contender.
inline std::string race_text(race_result const& r) {
  raced const& first = r.all.front();
  std::string s = "measured in turns: the chosen plan is ";
  for (std::size_t i = 1; i < r.all.size(); ++i)
    s += (i == 1 ? "" : i + 1 == r.all.size() ? " and " : ", ") +
         report::detail::printed("%.2f", r.against(r.all[i].name)) + " times as fast as " + r.all[i].name;
  if (std::string const busy = busy_text(r.others); !busy.empty()) return s + "\n" + busy + "\n";
  double const off = first.predicted > 0 ? first.measured / first.predicted - 1 : 0;
  return s + "\nits step took " + report::detail::printed("%.0f %% ", 100 * std::abs(off)) +
         (off < 0 ? "less" : "more") + " than predicted: the prediction " +
         (std::abs(off) <= prediction_holds ? "held\n" : "did not hold\n");
}
/// One JSON object of an event "race".
inline core::json race_json(race_result const& r) {
  core::json line{{"differ", r.differ}, {"busy", is_busy(r.others)}};
  line["others"] = r.others ? core::json(*r.others) : core::json(nullptr);
  for (raced const& x : r.all)
    line["contenders"].push_back({{"name", x.name},
                                  {"devices", x.devices},
                                  {"predicted_step_s", x.predicted},
                                  {"measured_step_s", x.measured},
                                  {"relative", r.against(x.name)},
                                  {"loss", x.loss}});
  return line;
}
/// Throws `error` where the contenders have not trained the same.
inline void require_same_training(race_result const& r, std::string const& where) {
  if (!(r.differ <= float_noise))
    throw error("after equal steps the plans' parameters differ by " +
                    report::detail::printed("%.1e", r.differ) + " relative",
                where, "at most " + report::detail::printed("%.0e", float_noise) + ", the noise of float");
}

}  // namespace tensorpar::tools
