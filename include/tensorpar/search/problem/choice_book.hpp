// tensorpar/search/problem/choice_book.hpp - choices of operators and prices between them, made once however
// many graphs ask
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/cost/model_ref.hpp>
#include <tensorpar/search/problem/choice_sets.hpp>

namespace tensorpar::search {

/// Choice sets and pair costs by all that they depend on, for one machine, cost model and space of shardings.
/// Operators that look alike, in this graph or another one, share them. Precondition: machine and cost model
/// outlive it.
template <cost::cost_model M> class choice_book : public choice_sets<M> {
  using base = choice_sets<M>;
  using base::columns_of, base::excess_, base::kinds_, base::layouts, base::prices_, base::slack_;

 public:
  using base::tables;

  choice_book(machine const& on, M const& model, objective_options const& o)
      : choice_book(on, model, o, std::make_shared<layout_prices<M>>(model, on, o.scalar_bytes)) {}
  // it would be gone before it is asked
  choice_book(machine const& on, M const&& model, objective_options const& o) = delete;
  /// With the prices of reshards that other books found. Precondition: for this machine, cost model and size
  /// of numbers.
  choice_book(machine const& on, M const& model, objective_options const& o,
              std::shared_ptr<layout_prices<M>> known)
      : base(on, model, o, std::move(known)) {}

  /// Forgets everything but the prices of reshards.
  void start(sharding_limits const& l) {
    base::start(l);
    classes_id_ = flows_id_ = cost_id_ = {};
    lists_.clear();
    priced_.clear();
    pairs_.clear();
  }

  /// Is a function computed with its operator where these are their choices? Precondition: what they exchange
  /// was asked for since `start`.
  bool together(int op_set, int op, int function_set, int function) const {
    return together(op_set, *kinds_[idx(op_set)].layouts.at({0, 0, true}), op, function_set,
                    *kinds_[idx(function_set)].layouts.at({0, 0, false}), function);
  }

  /// What two operators of these sets exchange.
  operator_pair pair_for(training_flows const& flows, std::pair<int, int> ab, value_flows const& all, int sa,
                         int sb) {
    std::vector<i64> key{sa, sb};
    flows.put(key, all);
    int const id = flows_id_(key);
    if (id == static_cast<int>(priced_.size())) priced_.push_back(cost_id_(layouts_of(all, sa, sb)));
    int const same = priced_[idx(id)];
    if (same == static_cast<int>(pairs_.size())) pairs_.push_back(price_pair(all, sa, sb));
    auto const& [cost, rows, cols] = pairs_[idx(same)];
    return {ab.first, ab.second, cost, rows, cols};
  }

 private:
  interner classes_id_, flows_id_, cost_id_;
  std::map<std::vector<int> const*, i64> lists_;  // of layouts, in order of first sight
  std::vector<int> priced_;                       // by flows: which pair
  std::vector<std::array<int, 3>> pairs_;         // cost, rows, cols
  std::vector<flow_lines> flows_;                 // of the pair at hand

  /// `made`, `wanted`: layouts of what they exchange, by choice of the one and the other.
  bool together(int op_set, std::vector<int> const& made, int op, int function_set,
                std::vector<int> const& wanted, int function) const {
    return made[idx(op)] == wanted[idx(function)] &&
           kinds_[idx(op_set)].function[idx(op)] <= kinds_[idx(function_set)].own[idx(function)] &&
           prices_.layout_of(made[idx(op)]).degree(ir::part_kind::partial) == 1;
  }
  /// All that the price of flows depends on: of many readers of a value each has a slot of its own, and the
  /// same layouts there.
  std::vector<i64> layouts_of(value_flows const& all, int sa, int sb) {
    std::vector<i64> key{sa, sb};
    for (value_flow const& f : all) {
      key.insert(key.end(), {f.shape_id, f.times * 4 + f.from_first * 2 + f.activation, f.shared_by});
      for (bool first : {true, false}) {
        layout_columns const some = slots_of(first ? sa : sb, f, first);
        key.push_back(static_cast<i64>(some.size()));
        for (auto const* l : some)
          key.push_back(lists_.try_emplace(l, static_cast<i64>(lists_.size())).first->second);
      }
    }
    return key;
  }
  /// Choices of one side with the same layouts at all slots of these flows.
  int classes_for(int set, value_flows const& all, bool first) {
    interner number;
    choice_classes c{set, 0, {}};
    std::vector<layout_columns> slots;
    for (value_flow const& f : all) slots.push_back(slots_of(set, f, first));
    std::vector<i64> key;
    std::vector<int> ids;
    for (std::size_t i = 0, n = idx(tables.sets[idx(set)].count()); i < n; ++i) {
      key.clear();
      for (layout_columns const& l : slots) {
        if (l.size() == 1) { key.push_back((*l[0])[i]); continue; }
        different(l, i, ids);
        std::sort(ids.begin(), ids.end());
        key.push_back(-static_cast<i64>(ids.size()));
        key.insert(key.end(), ids.begin(), ids.end());
      }
      c.of.push_back(number(key));
    }
    c.count = number.size();
    std::vector<i64> whole{set};
    whole.insert(whole.end(), c.of.begin(), c.of.end());
    int const id = classes_id_(whole);
    if (id == static_cast<int>(tables.classes.size())) tables.classes.push_back(std::move(c));
    return id;
  }

  std::array<int, 3> price_pair(value_flows const& all, int sa, int sb) {
    int const rows = classes_for(sa, all, true), cols = classes_for(sb, all, false);
    std::vector<int> const ra = representatives(rows), rb = representatives(cols);
    std::vector<double> const above_a = min_excess(rows), above_b = min_excess(cols);
    bool const bar = !excess_.empty();
    if (flows_.size() < all.size()) flows_.resize(all.size());
    for (std::size_t k = 0; k < all.size(); ++k) {
      value_flow const& f = all[k];
      flow_lines& here = flows_[k];
      here.first.read(slots_of(sa, f, true), ra, above_a);
      here.second.read(slots_of(sb, f, false), rb, above_b);
      flow_end const &from = f.from_first ? here.first : here.second,
                     &to = f.from_first ? here.second : here.first;
      double const times = static_cast<double>(f.times) / f.shared_by;
      auto const senders = prices_.senders_of(f.shape_id, from.layouts());
      here.price(f.from_first, times, [&](int t, std::vector<double>& sum) {
        auto const apart = [&](std::size_t i) {
          return bar && from.least[i] + to.least[idx(t)] > slack_;
        };
        for (int const* w = to.begin(t); w != to.end(t); ++w)
          prices_.add_seconds(senders, *w, sum, apart);
      });
    }
    pair_cost c{static_cast<int>(ra.size()), static_cast<int>(rb.size()),
                sum_of(flows_, all.size(), ra.size(), rb.size())};
    for (std::size_t x = 0; x < ra.size() && bar; ++x)
      for (std::size_t y = 0; y < rb.size(); ++y)
        if (above_a[x] + above_b[y] > slack_) c.seconds[x * rb.size() + y] = infinity;
    // what a function takes beyond the operator and what is moved: for all choices of a class the same, as it
    // follows from layouts
    for (value_flow const& f : all) {
      if (!f.activation) continue;
      std::vector<int> const &made = *kinds_[idx(sa)].layouts.at({0, 0, true}),
                             &wanted = *kinds_[idx(sb)].layouts.at({0, 0, false});
      for (std::size_t x = 0; x < ra.size(); ++x)
        for (std::size_t y = 0; y < rb.size(); ++y)
          c.seconds[x * rb.size() + y] += together(sa, made, ra[x], sb, wanted, rb[y])
                                              ? kinds_[idx(sa)].function[idx(ra[x])]
                                              : kinds_[idx(sb)].own[idx(rb[y])];
    }
    tables.costs.push_back(std::move(c));
    return {static_cast<int>(tables.costs.size()) - 1, rows, cols};
  }
  layout_columns slots_of(int set, value_flow const& f, bool first) {
    return f.from_first == first ? layout_columns{&layouts(set, f.from)} : columns_of(set, f.to);
  }
  std::vector<double> min_excess(int classes) const {
    choice_classes const& c = tables.classes[idx(classes)];
    std::vector<double> r(idx(c.count), infinity);
    if (!excess_.empty())
      for (std::size_t i = 0; i < c.of.size(); ++i) {
        double& x = r[idx(c.of[i])];
        x = std::min(x, excess_[idx(c.set)][i]);
      }
    return r;
  }
  std::vector<int> representatives(int classes) const {
    choice_classes const& c = tables.classes[idx(classes)];
    std::vector<int> r(idx(c.count), -1);
    for (std::size_t i = 0; i < c.of.size(); ++i)
      if (int& x = r[idx(c.of[i])]; x < 0) x = static_cast<int>(i);
    return r;
  }
};

#ifdef TENSORPAR_COMPILED
extern template class choice_layouts<cost::model_ref>;
extern template class choice_sets<cost::model_ref>;
extern template class choice_book<cost::model_ref>;
#endif

}  // namespace tensorpar::search
