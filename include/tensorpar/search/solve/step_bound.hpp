// tensorpar/search/solve/step_bound.hpp - what no step is below in which computing and communicating overlap
#pragma once
#include <algorithm>
#include <numeric>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/cost/groups.hpp>
#include <tensorpar/cost/model_ref.hpp>
#include <tensorpar/program/core/task_lane.hpp>
#include <tensorpar/search/solve/min_additions.hpp>
#include <tensorpar/search/solve/min_sum.hpp>
#include <tensorpar/search/solve/objective.hpp>
#include <tensorpar/search/solve/reduced.hpp>
#include <vector>

namespace tensorpar::search {

/// How fast devices compute while they communicate (`kernel_efficiency::while_communicating`), the largest
/// share; 1: at full speed.
inline double speed_while_communicating(machine const& on) {
  double share = 0;
  for (device_kind const& k : on.kinds) {
    double const s = k.efficiency.while_communicating;
    share = std::max(share, s > 0 && s < 1 ? s : 1.0);
  }
  return share;
}

namespace detail {
/// Is this level of links the one that joins the members of every group of the step, or all its devices?
inline bool all_cross(int link, cost::reshard_query const& q) {
  if (q.step.kind == ir::reshard_kind::exchange)
    return passes::link_of(q.step, q.step.before.start, q.on) == link;
  return cost::worst_group(q.step, q.on, [link](cost::group_levels const& g) {
           int top = 0;
           for (int l = 0; l < g.levels; ++l) if (g.fan[idx(l)] > 1) top = l;
           return top == link ? 0.0 : 1.0;
         }) == 0;
}
}  // namespace detail

/// A cost model whose seconds count by what they keep busy: a device that computes, or one that communicates.
/// With `kinds` it never counts more than what is done, wherever that is. An operator takes as long as on the
/// fastest of these devices. Parts that a device cuts out of what it has count for nothing, as all else that
/// is moved occupies senders and receivers.
/// `link`: communication counts only where every group's lies in the lane of this level of links
/// (`passes::lane_of`); -1: all of it.
/// Precondition: model and kinds outlive it.
template <cost::cost_model M> struct weighed_lanes {
  M const& model;
  double computing = 1, communicating = 1;
  std::vector<device_kind> const* kinds = nullptr;
  int link = -1;

  double seconds(cost::compute_query const& q) const {
    if (!kinds) return computing * cost::detail::ask(model, q);
    double least = infinity;
    for (device_kind const& k : *kinds)
      least = std::min(
          least, cost::detail::ask(model, cost::compute_query{q.op, q.in, q.out, q.scalar_bytes, k}));
    return computing * least;
  }
  double seconds(cost::reshard_query const& q) const {
    bool const cut = q.step.kind == ir::reshard_kind::slice;
    if ((cut && kinds) || (!cut && link >= 0 && !detail::all_cross(link, q))) return 0;
    return (cut ? computing : communicating) * cost::detail::ask(model, q);
  }
};

namespace detail {

/// The least sum of seconds on device 0, and in the mean of all devices: the first counts for
/// `share_of_first`, the mean for the rest.
template <cost::cost_model M>
double lower_bound_on_devices(training_graph const& t, machine const& on, M const& model, objective_options o,
                        sharding_limits const& l, double share_of_first, elimination_limits const& e) {
  choice_book<M> book(on, model, o);
  mapping_problem p = objective_builder<M>(t, book).make(l);
  double const devices = on.size();
  auto const at = [&](int start, double size) {
    return share_of_first * (start == 0 ? 1 : 0) + (1 - share_of_first) * size / devices;
  };
  auto const counts = [&](choice_set const& s, std::size_t i) {
    return at(s.shardings[i].start, s.sizes[i]);
  };
  std::vector<std::vector<double>> alone;
  for (choice_set const& s : p.sets) {
    alone.push_back(s.seconds);
    for (std::size_t i = 0; i < s.seconds.size(); ++i) alone.back()[i] *= counts(s, i);
  }
  std::vector<std::vector<double>> by_class;                     // what the choices of a class count at least
  for (choice_classes const& c : p.classes) {
    by_class.emplace_back(idx(c.count), infinity);
    for (std::size_t i = 0; i < c.of.size(); ++i) {
      double& x = by_class.back()[idx(c.of[i])];
      x = std::min(x, counts(p.sets[idx(c.set)], i));
    }
  }
  std::vector<char> done(p.costs.size(), 0);
  for (operator_pair const& q : p.pairs) {
    if (std::exchange(done[idx(q.cost)], 1)) continue;           // equal costs have equal classes
    pair_cost& c = p.costs[idx(q.cost)];
    for (int x = 0; x < c.rows; ++x)
      for (int y = 0; y < c.cols; ++y)
        c.seconds[idx(x) * idx(c.cols) + idx(y)] *=
            std::max(by_class[idx(q.rows)][idx(x)], by_class[idx(q.cols)][idx(y)]);
  }
  training_flows const flows(t, o.micro_batches, false, true);
  double const additions =
      search::min_additions(t, on, model, book, flows, p.set_of, [&](ir::layout const& where) {
        return at(where.start, static_cast<double>(where.size()));
      });
  return additions + detail::eliminator(p, alone, e).least(p.set_of, p.pairs).value;
}

}  // namespace detail

/// A bound on simulated steps, and the share that computing had in it.
struct step_bound {
  double seconds = 0;
  double computing = 1;
};

/// Seconds that no simulated step of a plan of this space is below, whatever overlaps, with whatever
/// prefetch, memory aside. Let a device compute for C seconds and communicate for M, and let it compute at a
/// share s of its speed meanwhile (`kernel_efficiency::while_communicating`). Both lanes are busy for M
/// seconds at most, and for C / s. So it takes at least l C + (1 - l s) M, for every l from 0 to 1. The least
/// of that sum over all assignments, which elimination gives, is a bound; the largest over l is taken. Where
/// links have lanes of their own (`machine::lane_per_link`), M is what one of them carries, each in turn.
/// Device 0 takes part in every operator where nothing runs side by side. Else shares of its sum and of the
/// mean over all devices are bounded.
/// `every_share`: else l = 1 alone is looked at, which is best where steps compute for longer than they
/// communicate.
/// `t`: the graph of a micro-batch. Reshards count as often as a program makes them at least
/// (`objective_options::at_least`), additions of gradients with the least that they take anywhere
/// (`min_additions`). O(some ten problems), for each lane of communication.
template <cost::cost_model M>
step_bound step_bound_of(training_graph const& t, machine const& on, M const& model, objective_options o,
                         sharding_limits const& l, elimination_limits const& e = {},
                         bool every_share = true) {
  double const share = speed_while_communicating(on);
  o.shard_updates = o.at_least = true;
  choice_book<M> book(on, model, o);
  mapping_problem frame = detail::objective_builder<M>(t, book).frame();
  std::vector<double> shares{1.0};
  if (branches(frame)) shares = {0.05, 0.3};
  std::vector<int> links{-1};
  if (on.communication_lanes() > 1) {
    links.resize(on.links.size());
    std::iota(links.begin(), links.end(), 0);
  }
  step_bound best;
  auto const at = [&](double computing) {
    double most = 0;
    for (int link : links)
      for (double share_of_first : shares) {
        weighed_lanes<M> const w{model, computing, 1 - computing * share, &on.kinds, link};
        cost::model_ref const weighed(w);
        most = std::max(most, detail::lower_bound_on_devices(t, on, weighed, o, l, share_of_first, e));
      }
    most *= 1 - 1e-9;
    if (most > best.seconds) best = {most, computing};
    return most;
  };
  // concave in the share: up to where it falls, then a search by golden sections
  double low = 0.9, high = 1;
  if (double const first = at(high); !every_share || first >= at(low)) return best;
  low = 0;
  constexpr double golden = 0.6180339887498949;
  double a = high - golden * (high - low), b = low + golden * (high - low), at_a = at(a), at_b = at(b);
  for (int round = 0; round < 5; ++round) {
    if (at_a < at_b) {
      low = a, a = b, at_a = at_b;
      at_b = at(b = low + golden * (high - low));
    } else {
      high = b, b = a, at_b = at_a;
      at_a = at(a = high - golden * (high - low));
    }
  }
  return best;
}
template <class M>
  requires(!cost::cost_model<M>)
cost::cost_model_lack<M> step_bound_of(training_graph const&, machine const&, M const&, objective_options,
                                       sharding_limits const&, elimination_limits const& = {}, bool = true);

#ifdef TENSORPAR_COMPILED
extern template step_bound step_bound_of(training_graph const&, machine const&, cost::model_ref const&,
    objective_options, sharding_limits const&, elimination_limits const&, bool);
#endif

}  // namespace tensorpar::search
