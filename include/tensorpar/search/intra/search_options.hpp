// tensorpar/search/intra/search_options.hpp - what `optimize` is asked, and what it answers
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/plan/plan.hpp>
#include <tensorpar/plan/shortage.hpp>
#include <tensorpar/program/core/scratch.hpp>
#include <tensorpar/search/intra/sharding_knobs.hpp>
#include <tensorpar/search/intra/with_parts.hpp>
#include <tensorpar/search/solve/baselines.hpp>
#include <tensorpar/search/solve/mapping.hpp>
#include <utility>
#include <vector>

namespace tensorpar::search {

struct search_options : sharding_knobs {
  std::string model;                          // a label for the plan
  std::string loss = "loss";                  // the output to minimise
  optimizer_choice optimizer;
  int micro_batches = 1;
  int prefetch = 0;                           // of the plan (plan::prefetch): arenas are what it needs
  loss_reduction reduction = loss_reduction::as_graph;   // of their losses, as in training_options
  i64 scalar_bytes = 4;
  bool compare = true;                        // price the baselines too
  // of the policy that will run the plan (exec/device/scratch_of.hpp); by default it is not counted
  scratch_space scratch;
  // operators of a step times micro-batches, each of which arenas and programs list
  i64 max_listed = i64{1} << 22;
  // 0: one per processor. The result is the same for any number; the cost model is asked by the calling
  // thread alone
  int threads = 0;
  // operators whose time is counted before that of others (a larger number) although no tensor says so; an
  // order that `reorder` finds may still put them otherwise
  std::vector<std::pair<int, int>> order;
};

struct search_result {
  std::optional<shortage> infeasible;         // then there is no plan
  tensorpar::plan plan;
  // seconds of a step by the search's objective, bytes by its estimate
  assignment_cost cost;
  // no assignment in the space costs less, on all devices or on the parts that the space names (nor does the
  // plan, should a baseline be outside of it)
  double bound = 0;
  double gap = 0;                             // (cost - bound) / cost
  search_space space;
  mapping_statistics statistics;
  int operators = 0, kinds = 0;               // kinds: operators that differ in more than their place
  i64 choices = 0;                            // shardings over all kinds that could matter
  i64 moves_priced = 0;                       // without regard to memory; of a joint search all together
  std::vector<baseline> baselines;
  bool feasible() const { return !infeasible; }
};

/// Rich on small machines, affordable on large ones. Up to 4 devices a mesh has any size. Up to 16 it has one
/// device or at least half of them. Beyond, one or all of them; where loops do not divide so, the largest
/// power of two among them. There are at most two axes, which is no limit up to 4 devices. Where the number
/// of devices has more than 16 divisors, axes have few parts or nearly all.
inline sharding_limits usual_limits(int devices) {
  sharding_limits l;
  l.max_axes = 2;
  l.min_part = devices <= 16 ? 2 : 1;
  l.max_divisors = 16;
  return l;
}

/// What `optimize` searches on a machine.
inline search_space space_for(machine const& on, search_options const& o) {
  search_space s;
  s.shardings = o.shardings ? *o.shardings : usual_limits(on.size());
  s.grain = o.grain > 0 ? o.grain : on.size() <= 8 ? 1 : (on.size() + 3) / 4;
  return s;
}

}  // namespace tensorpar::search
