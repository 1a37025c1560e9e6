// tensorpar/search/solve/objective.hpp - from a training graph, a machine and a cost model to a mapping
// problem
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/cost/model_ref.hpp>
#include <tensorpar/graph/sp/relaxation.hpp>
#include <tensorpar/search/problem/activation_sites.hpp>
#include <tensorpar/search/problem/choice_book.hpp>
#include <tensorpar/search/solve/dealt_tree.hpp>
#include <tensorpar/search/solve/mapping.hpp>

namespace tensorpar::search {

namespace detail {

template <cost::cost_model M> class objective_builder {
 public:
  /// `order`: operators (first) that come before others (second, a larger number) although no tensor says so.
  /// `kept`: of flows, see there. `sites`: functions are computed with their operators where that is allowed
  /// and pays.
  objective_builder(training_graph const& t, choice_book<M>& book,
                    std::vector<std::pair<int, int>> const& order = {}, bool kept = false,
                    std::vector<activation_site> const& sites = {})
      : t_(t),
        g_(t.graph),
        book_(book),
        flows_(t, book.options().micro_batches, kept, book.options().at_least) {
    if (t_.forward_nodes < 1) throw error("the graph has no operators", "search", "at least one operator");
    for (activation_site const& s : sites) flows_.activate(s.op, s.function, s.both.op);
    make_tree(order);
    book_.number_shapes(t_, flows_);
    ranges_ = reachable_ranges(tree_, book_.on().size(), book_.options().grain);
    leaf_of_.assign(idx(t_.forward_nodes), -1);
    for (int i = 0; i < tree_.size(); ++i)
      if (tree_[i].kind == graph::sp_kind::leaf) leaf_of_[idx(tree_[i].left)] = i;
  }

  /// The problem over the shardings within these limits. Choices that cannot be part of an assignment of at
  /// most `worth_having` seconds are left out: those with which the operators alone take longer. Reshards
  /// between two choices that cannot be together so either are not priced: they cost `never`. The book starts
  /// afresh.
  /// `plain`: no choice saves memory, whatever the options say.
  mapping_problem make(sharding_limits const& l, double worth_having = infinity, bool plain = false) {
    book_.start(l);
    std::vector<int> const sets = plain ? choose(choice_saving{}) : choose();
    return put_together(sets, worth_having < infinity ? relaxed_costs(sets) : relaxed_seconds{},
                        worth_having);
  }
  /// Seconds that no assignment is below, quickly: as if nothing ever moved. The book starts afresh.
  double least(sharding_limits const& l) {
    book_.start(l);
    chosen_ = choose();
    return relaxed_costs(chosen_).sum * (1 - 1e-9);
  }
  /// `make` within the limits of `least`. Precondition: nothing else was asked of the book since that.
  mapping_problem make_after_least(double worth_having) {
    return put_together(chosen_, relaxed_costs(chosen_), worth_having);
  }
  /// All of a problem but its choices and their costs.
  mapping_problem frame() const {
    mapping_problem p;
    p.tree = tree_;
    p.relaxed = relaxed_;
    p.devices = book_.on().size();
    p.grain = book_.options().grain;
    p.capacity = book_.on().memories();
    for (int f = 0; f < t_.forward_nodes; ++f) {
      graph_node const& n = g_.node(f);
      p.names.push_back((n.name.empty() ? std::string() : n.name + ":") + std::string(n.op.op->name));
    }
    return p;
  }

  /// Adds the graph's choice sets to the book. By forward operator. `saving`: of all choices, as in
  /// choice_book::set_for.
  template <class... Saving> std::vector<int> choose(Saving... saving) {
    std::vector<int> r;
    for (int f = 0; f < t_.forward_nodes; ++f)
      r.push_back(book_.set_for(t_, flows_, f, ranges_of(f), saving...));
    return r;
  }
  /// Adds the costs between operators to the book; ascending.
  std::vector<operator_pair> pairs(std::vector<int> const& sets) {
    std::vector<operator_pair> r;
    for (auto const& [ab, all] : flows_.between)
      r.push_back(book_.pair_for(flows_, ab, all, sets[idx(ab.first)], sets[idx(ab.second)]));
    return r;
  }
  graph::sp_binary const& tree() const { return tree_; }
  bool relaxed() const { return relaxed_; }

 private:
  training_graph const& t_;
  computation_graph const& g_;
  choice_book<M>& book_;
  graph::sp_binary tree_;
  bool relaxed_ = false;
  training_flows flows_;
  std::vector<std::vector<device_range>> ranges_;
  std::vector<int> leaf_of_;
  std::vector<int> chosen_;              // sets, as `least` found them

  std::vector<device_range> const& ranges_of(int f) const {
    return ranges_[idx(leaf_of_[idx(f)])];
  }

  void make_tree(std::vector<std::pair<int, int>> const& order) {
    std::vector<std::vector<int>> before(idx(t_.forward_nodes));
    for (int v = 0; v < t_.forward_nodes; ++v) before[idx(v)] = g_.predecessors(v);
    for (auto const& [u, v] : order) {
      if (u < 0 || u >= v || v >= t_.forward_nodes)
        throw error("operator " + std::to_string(u) + " before operator " + std::to_string(v), "search",
                    "two operators, ascending");
      auto& some = before[idx(v)];
      if (auto const at = std::lower_bound(some.begin(), some.end(), u); at == some.end() || *at != u)
        some.insert(at, u);
    }
    auto const work = [this](int v) {
      std::vector<shape> in, out;
      for (int x : g_.node(v).in) in.push_back(g_.type(x));
      for (int x : g_.node(v).out) out.push_back(g_.type(x));
      op::any_op const& op = g_.node(v).op;
      return 1 + op.op->flops(op.attr, {in.data(), static_cast<int>(in.size())},
                              {out.data(), static_cast<int>(out.size())});
    };
    auto const r = graph::relax(before, work);
    relaxed_ = !r.added.empty();
    tree_ = dealt_binary(r.tree, work);
  }

  /// Relaxed costs (reduced.hpp) of every choice of every set: what is safe whatever runs side by side.
  struct relaxed_seconds {
    std::vector<std::vector<double>> of;                      // set -> choice; empty: no forward operator's
    std::vector<double> best;                                 // by set
    double sum = 0;                                           // of the best, over all operators
  };
  mapping_problem put_together(std::vector<int> const& sets, relaxed_seconds const& apart,
                               double worth_having) {
    if (worth_having < infinity) leave_out(apart, worth_having);
    mapping_problem p = frame();
    p.pairs = pairs(sets);
    p.set_of = sets;
    static_cast<mapping_tables&>(p) = std::move(book_.tables);
    return p;
  }
  relaxed_seconds relaxed_costs(std::vector<int> const& sets) const {
    auto const& all = book_.tables.sets;
    int const devices = book_.on().size();
    relaxed_seconds r{std::vector<std::vector<double>>(all.size()), std::vector<double>(all.size(), infinity),
                      0};
    for (int f = 0; f < t_.forward_nodes; ++f) {
      auto const s = idx(sets[idx(f)]);
      if (r.of[s].empty()) {
        std::vector<int> const size = book_.min_ranges(static_cast<int>(s));
        for (std::size_t i = 0; i < size.size(); ++i) {
          r.of[s].push_back(all[s].seconds[i] * size[i] / devices);
          r.best[s] = std::min(r.best[s], r.of[s].back());
        }
      }
      r.sum += r.best[s];
    }
    return r;
  }
  void leave_out(relaxed_seconds least, double worth_having) {
    double const slack = worth_having * (1 + 1e-9) - least.sum;
    for (std::size_t s = 0; s < least.of.size(); ++s) {
      std::vector<double>& of = least.of[s];
      // the best that starts at device 0: some assignment is needed
      int first = -1;
      for (std::size_t i = 0; i < of.size(); ++i)
        if (book_.tables.sets[s].shardings[i].start == 0 && (first < 0 || of[i] < of[idx(first)]))
          first = static_cast<int>(i);
      for (std::size_t i = 0; i < of.size(); ++i) {
        double const excess = of[i] - least.best[s];
        of[i] = excess <= slack || static_cast<int>(i) == first ? excess : infinity;
      }
    }
    book_.leave_out(least.of, slack);
  }
};

}  // namespace detail

/// The mapping problem of a training step. Every reshard that the step needs is counted: producer to
/// consumer, gradients back, and partial sums of gradients to the parameter's home. So are a shared
/// parameter's copies to its further users, and their gradients back. A value read several times by one
/// operator and its derivatives in one layout is delivered once. Two operators that want it in the same
/// layout each pay. (The executor lets them share, and adds gradients that lie alike before moving them: the
/// objective is never below what it does.) Graphs that are not series-parallel get the tree of
/// graph/sp/relaxation.hpp; all their reshards still count.
/// Throws `error` for a graph without operators. O(operators * choices + pairs of layouts), the latter asked
/// of the model once each.
template <cost::cost_model M>
mapping_problem make_problem(training_graph const& t, machine const& on, M const& model,
                             sharding_limits const& l = {}, objective_options const& o = {}) {
  choice_book<M> book(on, model, o);
  return detail::objective_builder<M>(t, book).make(l);
}
template <class M>
  requires(!cost::cost_model<M>)
cost::cost_model_lack<M> make_problem(training_graph const&, machine const&, M const&,
                                      sharding_limits const& = {}, objective_options const& = {});

#ifdef TENSORPAR_COMPILED
extern template class detail::objective_builder<cost::model_ref>;
#endif

}  // namespace tensorpar::search
