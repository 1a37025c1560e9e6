// tensorpar/search/pipeline/schedules/weight_filling.hpp - weights passes put where a group would wait
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/search/pipeline/schedules/orders.hpp>
#include <tensorpar/simulate/pipeline.hpp>

namespace tensorpar::search {

/// How weights passes are put into an order of forward and backward passes.
struct weight_filling {
  // a wait is used if it is at least this share of the weights pass; below 1 the next pass may be delayed
  double fits = 1;
  // activation units of each group: a weights pass comes before a forward pass that would exceed them
  double limit = infinity;
  friend bool operator==(weight_filling const&, weight_filling const&) = default;
};

namespace detail {

class weight_filler {
  pipeline const& p_;
  simulation::pipeline_costs const& c_;
  weight_filling const& how_;
  passes::stage_edges const& in_;
  passes::stage_edges const out_;
  struct group_state {
    std::size_t at = 0, oldest = 0;            // next entry; oldest backward pass whose weights are pending
    double now = 0, held = 0;
    std::vector<pass_entry> pending, order;    // backward passes as they came; what comes out
  };
  std::vector<group_state> g_;
  std::vector<std::vector<double>> ended_[2];  // by stage, as far as done

  double transfer(int from, int to, int way) const {
    for (simulation::stage_transfer const& t : c_.transfers)
      if (t.from == from && t.to == to) return way == 0 ? t.forward : t.backward;
    return 0;
  }
  /// When what the pass waits for is there; -1 if that is not known yet.
  double available(pass_entry const& e) const {
    int const way = e.what == pass::forward ? 0 : 1;
    std::size_t const s = idx(e.stage);
    i64 const samples = (i64{e.micro_batch} + 1) * p_.stages[s].micro_batch;
    double t = 0;
    for (int o : way == 0 ? in_[s] : out_[s]) {
      i64 const size = p_.stages[idx(o)].micro_batch;
      std::size_t const last = idx((samples + size - 1) / size - 1);
      auto const& done = ended_[way][idx(o)];
      if (done.size() <= last) return -1;
      t = std::max(t, done[last] + (way == 0 ? transfer(o, e.stage, 0) : transfer(e.stage, o, 1)));
    }
    return t;
  }
  void weights(group_state& g) {
    pass_entry e = g.pending[g.oldest++];
    simulation::stage_seconds const& c = c_.stages[idx(e.stage)];
    e.what = pass::weights;
    g.order.push_back(e);
    g.now += c.weights;
    g.held -= (1 - c_.freed_at_backward) * c.activation;
  }
  bool step(group_state& g, pass_entry const& e) {
    double const t = available(e);
    if (t < 0) return false;
    std::size_t const s = idx(e.stage);
    simulation::stage_seconds const& c = c_.stages[s];
    while (g.oldest < g.pending.size() && t - g.now > 0 &&
           t - g.now >= how_.fits * c_.stages[idx(g.pending[g.oldest].stage)].weights)
      weights(g);
    if (e.what == pass::forward) {
      double const slack = 1e-9 * how_.limit;
      while (g.oldest < g.pending.size() && g.held + c.activation > how_.limit + slack) weights(g);
      g.held += c.activation;
    } else {
      g.held -= (p_.stages[s].split_backward ? c_.freed_at_backward : 1) * c.activation;
      if (p_.stages[s].split_backward) g.pending.push_back(e);
    }
    g.now =
        std::max(g.now, t) +
        (e.what == pass::forward ? c.forward : c.backward + (p_.stages[s].split_backward ? 0 : c.weights));
    ended_[e.what == pass::forward ? 0 : 1][s].push_back(g.now);
    g.order.push_back(e);
    return true;
  }

 public:
  weight_filler(pipeline const& p, passes::stage_edges const& e, simulation::pipeline_costs const& c,
                weight_filling const& how)
      : p_(p), c_(c), how_(how), in_(e), out_(passes::reversed_edges(e)), g_(p.groups.size()) {
    for (auto& x : ended_) x.resize(p.stages.size());
  }
  bool run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t i = 0; i < g_.size(); ++i)
        while (g_[i].at < p_.schedule[i].size() && step(g_[i], p_.schedule[i][g_[i].at])) {
          ++g_[i].at;
          moved = true;
        }
    }
    for (std::size_t i = 0; i < g_.size(); ++i) {
      if (g_[i].at < p_.schedule[i].size()) return false;
      while (g_[i].oldest < g_[i].pending.size()) weights(g_[i]);
    }
    return true;
  }
  std::vector<pass_entry>& order(std::size_t i) { return g_[i].order; }
};

}  // namespace detail

/// Adds the weights passes of all stages that split to orders that hold forward and backward passes only. In
/// virtual time, each group does the oldest pending one where it would wait for its next pass, or needs its
/// memory, and the rest at the end. Returns false, and leaves the pipeline alone, if the orders wait for
/// ever. Pre: in `p.order` the passes of each kind ascend. O(passes * (edges per stage + transfers) + rounds
/// * groups). Throws `error` if an order has weights passes or passes of no stage, or costs are bad.
inline bool fill_weights(pipeline& p, passes::stage_edges const& e, simulation::pipeline_costs const& c,
                         weight_filling const& how = {}) {
  simulation::pipeline_simulator const checked(p, e, c);
  if (p.schedule.size() != p.groups.size())
    throw error("orders of " + std::to_string(p.schedule.size()) + " groups", "pipeline",
                std::to_string(p.groups.size()) + " of them");
  for (std::size_t g = 0; g < p.schedule.size(); ++g)
    for (pass_entry const& x : p.schedule[g])
      if (x.stage < 0 || idx(x.stage) >= p.stages.size() || x.what == pass::weights ||
          x.micro_batch < 0 || x.micro_batch >= p.micro_batches(x.stage))
        throw error("a pass of stage " + std::to_string(x.stage), "order of group " + std::to_string(g),
                    "forward and backward passes");
  detail::weight_filler f(p, e, c, how);
  if (!f.run()) return false;
  for (std::size_t g = 0; g < p.schedule.size(); ++g) p.schedule[g] = std::move(f.order(g));
  return true;
}

}  // namespace tensorpar::search
