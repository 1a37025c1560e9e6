// tensorpar/search/joint/piece_prices.hpp - what a part of a network costs, by the choices of the operators
// at its two ends
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/op/kinds/loss.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>
#include <tensorpar/search/problem/split.hpp>
#include <tensorpar/search/solve/branches.hpp>
#include <tensorpar/search/solve/elimination.hpp>
#include <tensorpar/search/solve/objective.hpp>
#include <tensorpar/search/solve/reduced.hpp>

namespace tensorpar::search {

/// Least seconds of a part of a network: `at(i, j)` where its anchor has choice i and its last operator
/// choice j. Without an anchor, i is 0; without a part after it, j is 0. The last operator's seconds count
/// here, the anchor's where it is last.
struct piece_table {
  int rows = 1, cols = 1;
  // everything on all devices in sequence; a lower bound of that where tables would grow too large
  std::vector<double> seconds;
  std::vector<double> bound;           // no less is possible, whatever runs side by side; empty: `seconds`
  double at(int i, int j) const { return seconds[idx(i) * idx(cols) + idx(j)]; }
  double least() const { return *std::min_element(seconds.begin(), seconds.end()); }
  std::vector<double> const& bounds() const { return bound.empty() ? seconds : bound; }
};

/// Outputs of a part that stand for what reads its last operator's result and its anchor's elsewhere.
inline constexpr char const *beyond_last = "what goes on", *beyond_anchor = "what came before";

/// Prices parts of networks, one part after another, for one machine, cost model and space of shardings. What
/// parts have in common is worked out once. Law (tests): the least sum of the tables of a graph's parts over
/// the choices where they meet is the least sum of the whole graph. Where parts share a parameter it is at
/// most that: what it costs between them is left out. The bounds are those of the relaxed costs of
/// search/solve/reduced.hpp and, for parts without an anchor, of search/solve/branches.hpp.
template <cost::cost_model M> class piece_prices {
 public:
  /// Precondition: machine and cost model outlive it. Stays where it is: its parts refer to each other.
  piece_prices(machine const& on, M const& model, sharding_limits const& shardings,
               objective_options const& o, training_options const& t, elimination_limits const& limits = {})
      : piece_prices(on, model, shardings, o, t, limits,
                     std::make_shared<layout_prices<M>>(model, on, o.scalar_bytes)) {}
  /// With prices of reshards that others share, as choice_book has it. `activating`: rules by which
  /// functions are computed with their operators where that is allowed and pays.
  piece_prices(machine const& on, M const& model, sharding_limits const& shardings,
               objective_options const& o, training_options const& t, elimination_limits const& limits,
               std::shared_ptr<layout_prices<M>> known, std::vector<rewrite::rule const*> activating = {})
      : book_(on, model, o, std::move(known)),
        training_(t),
        activating_(std::move(activating)),
        eliminate_(book_.tables, seconds_, limits),
        relaxed_(relaxed_tables_, relaxed_seconds_, limits),
        scaled_(book_.tables, relaxed_tables_, least_, on.size()) {
    book_.start(shardings);
  }
  piece_prices(piece_prices const&) = delete;
  piece_prices& operator=(piece_prices const&) = delete;

  /// Precondition: the part's last result and its anchor's have as many readers as the ends say (2: two or
  /// more); the anchor is node 0.
  piece_table operator()(computation_graph const& g, piece_ends const& ends) {
    problem const p = problem_of(g, ends);
    auto x = eliminate_.min_beside(p.sets, p.pairs, p.kept);
    piece_table r{static_cast<int>(p.met.size()), static_cast<int>(p.own.size()), std::move(x.seconds), {}};
    with_ends(p, r.seconds);
    if (branches(p)) {
      r.bound = relaxed_cells(p);
      if (ends.anchor < 0) raise_bounds(r, p, ends);
    }
    return r;
  }
  /// Quicker, and below each of its bounds: as if nothing ever moved.
  double operators_alone(computation_graph const& g, piece_ends const& ends) {
    problem const p = problem_of(g, ends, false);
    double sum = min_of(p.met) + min_of(p.own);
    for (std::size_t v = 0; v < p.sets.size(); ++v)
      if (std::find(p.kept.begin(), p.kept.end(), static_cast<int>(v)) == p.kept.end())
        sum += min_of(relaxed_seconds_[idx(p.sets[v])]);
    return sum;
  }
  /// The least of its bounds where these are not raised.
  double relaxed(computation_graph const& g, piece_ends const& ends) {
    problem const p = problem_of(g, ends);
    if (branches(p)) return min_of(relaxed_cells(p));
    std::vector<double> cells = eliminate_.min_beside(p.sets, p.pairs, p.kept).seconds;
    with_ends(p, cells);
    return min_of(cells);
  }
  choice_book<M> const& book() const { return book_; }
  /// How many tables of costs were worked out, and how many were known already.
  i64 tables() const { return i64{eliminate_.joined()} + relaxed_.joined(); }
  i64 remembered() const { return i64{eliminate_.remembered()} + relaxed_.remembered(); }

 private:
  struct problem {
    std::vector<int> sets;
    std::vector<operator_pair> pairs;
    graph::sp_binary tree;
    std::vector<int> kept;                                         // the two ends
    std::vector<double> met{0.0}, own{0.0};                        // of the anchor and of the last, by choice
  };

  choice_book<M> book_;
  training_options training_;
  std::vector<rewrite::rule const*> activating_;
  std::vector<std::vector<double>> seconds_;                       // by choice set
  detail::eliminator eliminate_;
  // the same, but what happens on k of n devices counts k/n
  // by choice set: may it stand on some devices alone?
  std::vector<char> branching_;
  mapping_tables relaxed_tables_;
  std::vector<std::vector<double>> relaxed_seconds_;
  detail::eliminator relaxed_;
  // choice set -> choice -> devices of its smallest range
  std::vector<std::vector<int>> least_;
  scaled_pairs scaled_;
  // what all graphs together may take in search/solve/branches.hpp
  i64 branch_points_ = 20'000'000;

  /// Stand-ins for what comes after: the gradient of `last` comes from them. They are not part of the price.
  void end_with_loss(computation_graph& h, int last, int readers) const {
    if (!readers) return;
    value_id const y = h.node(last).out[0];
    std::vector<value_id> losses;
    for (int i = 0; i < readers; ++i) {
      value_id const target = h.append_value(value_role::input, "what comes after", h.type(y));
      losses.push_back(h.node(h.add(mean_squared_error{}, {y, target})).out[0]);
    }
    std::erase_if(h.outputs, [&](graph_port const& o) { return o.name == training_.loss; });
    h.append_output(training_.loss, readers == 1 ? losses[0] : h.node(h.add(add{}, losses)).out[0]);
  }
  static double min_of(std::vector<double> const& all) { return *std::min_element(all.begin(), all.end()); }
  /// Adds what the two ends take.
  static void with_ends(problem const& p, std::vector<double>& cells) {
    std::size_t cell = 0;
    for (double m : p.met) for (double o : p.own) cells[cell++] += m + o;
  }
  bool branches(problem const& p) const {
    return std::any_of(p.sets.begin(), p.sets.end(), [&](int s) { return branching_[idx(s)] != 0; });
  }
  std::vector<double> relaxed_cells(problem const& p) {
    std::vector<operator_pair> on_parts;
    for (operator_pair const& q : p.pairs) on_parts.push_back(scaled_(q));
    std::vector<double> r = relaxed_.min_beside(p.sets, on_parts, p.kept).seconds;
    with_ends(p, r);
    return r;
  }
  problem problem_of(computation_graph const& g, piece_ends const& ends, bool moves = true) {
    computation_graph h = g;
    end_with_loss(h, ends.last, ends.readers);
    problem p = problem_of(h, ends.readers ? g.node_count() : h.node_count(), ends.anchor, moves);
    if (ends.anchor >= 0) {
      p.kept.push_back(ends.anchor);
      p.met = meeting(h, p, ends);
    }
    if (ends.readers) {
      p.kept.push_back(ends.last);
      p.own = seconds_[idx(p.sets[idx(ends.last)])];
    }
    return p;
  }
  /// The first `operators` of a graph. Parts follow each other: what does not depend on the anchor, a product
  /// of weights, is after it too.
  problem problem_of(computation_graph const& h, int operators, int anchor, bool moves) {
    // a part's inputs have samples along any axis
    training_graph const t = differentiate(h, {training_.loss, training_.optimizer, 1});
    std::vector<std::pair<int, int>> order;
    for (int v = anchor + 1; v < h.node_count() && anchor >= 0; ++v)
      if (h.predecessors(v).empty()) order.push_back({anchor, v});
    auto const beyond = [](std::string const& name) { return name == beyond_last || name == beyond_anchor; };
    detail::objective_builder<M> build(t, book_, order, false,
                                       activation_sites(h, operators, activating_, beyond));
    problem p{build.choose(), {}, build.tree(), {}};
    if (moves) p.pairs = build.pairs(p.sets);
    p.sets.resize(idx(operators));
    std::erase_if(p.pairs, [&](operator_pair const& q) { return q.second >= operators; });
    while (seconds_.size() < book_.tables.sets.size()) note(static_cast<int>(seconds_.size()));
    return p;
  }
  void note(int set) {
    choice_set const& c = book_.tables.sets[idx(set)];
    least_.push_back(book_.min_ranges(set));
    bool const part = *std::min_element(least_.back().begin(), least_.back().end()) < book_.on().size();
    branching_.push_back(part);
    seconds_.push_back(c.seconds);
    relaxed_seconds_.push_back(c.seconds);
    for (std::size_t i = 0; i < c.seconds.size() && part; ++i) {
      if (c.shardings[i].start != 0) seconds_.back()[i] = infinity;
      relaxed_seconds_.back()[i] *= static_cast<double>(least_.back()[i]) / book_.on().size();
    }
    relaxed_tables_.sets.emplace_back().shardings.resize(c.seconds.size());
  }
  void raise_bounds(piece_table& r, problem const& p, piece_ends const& ends) {
    double const low = *std::min_element(r.bound.begin(), r.bound.end());
    i64 const most = std::min<i64>(branch_points_, 3'000'000);
    if (most <= 0 || low > 0.99 * r.least()) return;                 // nothing to be gained
    detail::branch_mapper branches(
        {&book_.tables, &p.tree, &p.sets, &p.pairs, book_.on().size(), book_.options().grain}, most);
    if (ends.readers) {
      if (auto const some = branches.up_to(ends.last))
        for (std::size_t j = 0; j < r.bound.size(); ++j) r.bound[j] = std::max(r.bound[j], (*some)[j]);
    } else if (auto const some = branches.run()) {
      r.bound[0] = std::max(r.bound[0], some->bound);
    }
    branch_points_ -= most - branches.left();
  }
  /// The anchor's seconds were counted where it is last, with stand-ins for its readers. Here are the real
  /// ones, and perhaps more of them, whose gradients it adds: what that takes more.
  std::vector<double> meeting(computation_graph const& h, problem const& p, piece_ends const& ends) {
    computation_graph one;
    std::vector<value_id> in;
    std::map<value_id, value_id> here;
    for (value_id x : h.node(ends.anchor).in) {
      graph_value const& v = h.value(x);
      auto const [at, fresh] = here.try_emplace(x, -1);
      if (fresh)
        at->second = v.role == value_role::input
                         ? one.append_value(value_role::input, v.name, v.type)
                         : one.append_value(value_role::parameter, v.name, v.type, v.start);
      in.push_back(at->second);
    }
    one.add(h.node(ends.anchor).op, in, h.node(ends.anchor).name);
    end_with_loss(one, 0, ends.anchor_readers);
    problem const q = problem_of(one, 1, -1, false);
    std::vector<double> r = seconds_[idx(p.sets[idx(ends.anchor)])];
    std::vector<double> const& alone = seconds_[idx(q.sets[0])];
    for (std::size_t i = 0; i < r.size(); ++i) r[i] -= alone[i];
    return r;
  }
};

}  // namespace tensorpar::search
