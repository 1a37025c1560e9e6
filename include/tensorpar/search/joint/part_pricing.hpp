// tensorpar/search/joint/part_pricing.hpp - prices of a network's parts on one machine, and a quick bound on
// all that rules make of them
#pragma once
#include <algorithm>
#include <numeric>
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/search/joint/backtracking.hpp>
#include <tensorpar/search/joint/cut_network.hpp>
#include <tensorpar/search/joint/piece_prices.hpp>

namespace tensorpar::search::detail {

/// Prices parts one after another, or each as if it were the first.
template <cost::cost_model M> class part_pricing {
  machine const& on_;
  M const& model_;
  search_space space_;
  objective_options objective_;
  training_options training_;
  elimination_limits limits_;
  std::vector<rewrite::rule const*> activating_;
  std::optional<piece_prices<M>> all_;
  i64 tables_ = 0, remembered_ = 0;

 public:
  /// Precondition: machine and cost model outlive it.
  part_pricing(machine const& on, M const& model, joint_options const& o,
               std::shared_ptr<layout_prices<M>> const& moves)
      : on_(on),
        model_(model),
        space_(space_for(on, o.search)),
        objective_{space_.grain, o.search.scalar_bytes, o.search.micro_batches, o.search.save_memory},
        training_(training_of(o)),
        limits_(o.search.mapping.elimination),
        activating_(activating(rules_of(o))) {
    if (o.remember) start(all_, moves);
  }
  piece_table operator()(computation_graph const& g, piece_ends const& ends) {
    if (all_) return (*all_)(g, ends);
    std::optional<piece_prices<M>> alone;
    start(alone, std::make_shared<layout_prices<M>>(model_, on_, objective_.scalar_bytes));
    piece_table t = (*alone)(g, ends);
    tables_ += alone->tables();
    remembered_ += alone->remembered();
    return t;
  }
  /// What parts have in common, where that is worked out once.
  piece_prices<M>* shared() { return all_ ? &*all_ : nullptr; }
  i64 tables() const { return all_ ? all_->tables() : tables_; }
  i64 remembered() const { return all_ ? all_->remembered() : remembered_; }

 private:
  void start(std::optional<piece_prices<M>>& to, std::shared_ptr<layout_prices<M>> const& moves) const {
    to.emplace(on_, model_, space_.shardings, objective_, training_, limits_, moves, activating_);
  }
};

/// Every graph that rules make of a network's parts, whatever it takes on any machine.
struct rewritten_parts {
  struct graph_of_part {
    computation_graph graph;
    piece_ends ends;
  };
  std::vector<std::vector<graph_of_part>> of;            // by kind
  bool all = true;                                       // else the budget ended that
};
inline rewritten_parts rewritten(cut_network const& cut, joint_options const& o) {
  rewritten_parts r;
  for (int part : cut.first) {
    auto& to = r.of.emplace_back();
    // equal costs: nothing is dearer than alpha times the least
    auto const note = [&](computation_graph const& g, piece_ends const& ends) {
      to.push_back({g, ends});
      return piece_table{1, 1, {0.0}, {}};
    };
    r.all = r.all && substitutions(cut.parts[idx(part)], rules_of(o), note, o.rewriting).exhausted;
    if (!r.all) break;
  }
  return r;
}

/// Seconds that nothing made of these parts is below, found quickly. It is the sum of the least of each part,
/// first of its operators alone, then with what they exchange, and ends where it is `enough`. Parts that
/// stand often and have few graphs come first. Law (tests): not above the bound of `develop`. Precondition:
/// `p.all`. O(graphs * operators * choices), and the tables of these graphs.
template <cost::cost_model M>
double quick_bound(cut_network const& cut, rewritten_parts const& p, piece_prices<M>& price, double enough) {
  std::vector<int> const count = cut.counts();
  std::vector<int> order(p.of.size());
  std::iota(order.begin(), order.end(), 0);
  auto const each = [&](int k) { return count[idx(k)] / static_cast<double>(p.of[idx(k)].size()); };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return each(a) > each(b); });
  std::vector<double> least(p.of.size(), 0);
  double sum = 0;
  for (bool const moved : {false, true})
    for (int k : order) {
      if (!moved && each(k) < 1) break;                  // more graphs than it is worth
      double now = infinity;
      for (auto const& [graph, ends] : p.of[idx(k)]) {
        if (sum * (1 - 1e-9) >= enough) return sum * (1 - 1e-9);
        now = std::min(now, moved ? price.relaxed(graph, ends) : price.operators_alone(graph, ends));
      }
      sum += (now - least[idx(k)]) * count[idx(k)];
      least[idx(k)] = now;
    }
  return sum * (1 - 1e-9);
}

}  // namespace tensorpar::search::detail
