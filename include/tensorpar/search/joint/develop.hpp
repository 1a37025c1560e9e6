// tensorpar/search/joint/develop.hpp - what rules make of every part of a network, and the best way through
// all parts
#pragma once
#include <map>
#include <numeric>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/program/rewritten.hpp>
#include <tensorpar/search/intra/optimize.hpp>
#include <tensorpar/search/joint/backtracking.hpp>
#include <tensorpar/search/joint/rewriting_knobs.hpp>
#include <tensorpar/search/problem/activate.hpp>
#include <tensorpar/search/problem/substitution_rules.hpp>

namespace tensorpar::search {

struct joint_options : rewriting_knobs {
  search_options search;
};

struct joint_statistics {
  int parts = 0, kinds = 0;              // parts, and how many of them differ
  int candidates = 0;                    // graphs of parts that were priced
  i64 tables = 0, remembered = 0;        // tables of costs that were worked out, and that were known already
  int steps = 0;                         // rules applied in the plan
  bool exhausted = true;                 // no budget ended the development of a part
  double sequential = 0;                 // least seconds of the chosen graphs, all on all devices in sequence
  // of all developed graphs; above the cost only if a baseline is outside of the space
  double bound = 0;
};

namespace detail {

/// The cheapest way through all parts: a variant of each and the choices where they meet, one after another
/// (min-plus products).
class part_chain {
  struct merged {                                        // of all variants of a part
    int rows, cols;
    std::vector<double> seconds, bound;
    std::vector<int> variant, bound_variant;             // that are least in sequence, and by their bounds
  };
  std::vector<merged> kinds_;
  // a rounding is no gain: of equals the first, which has fewest steps
  static constexpr double tie = 1 - 1e-9;

 public:
  explicit part_chain(std::vector<piece_variants> const& all) {
    for (piece_variants const& v : all) {
      merged m{
          v.all[0].table.rows, v.all[0].table.cols, v.all[0].table.seconds, v.all[0].table.bounds(), {}, {}};
      m.variant.assign(m.seconds.size(), 0);
      m.bound_variant = m.variant;
      for (std::size_t k = 1; k < v.all.size(); ++k)
        for (std::size_t i = 0; i < m.seconds.size(); ++i) {
          if (double const b = v.all[k].table.bounds()[i]; b < m.bound[i]) {
            if (b < m.bound[i] * tie) m.bound_variant[i] = static_cast<int>(k);
            m.bound[i] = b;
          }
          if (v.all[k].table.seconds[i] >= m.seconds[i] * tie) continue;
          m.seconds[i] = v.all[k].table.seconds[i];
          m.variant[i] = static_cast<int>(k);
        }
      kinds_.push_back(std::move(m));
    }
  }

  struct way {
    double least;
    std::vector<int> variant;                            // by part
  };
  /// `kind`: which of the kinds each part is. With `bounds`, of these instead of seconds in sequence.
  way best(std::vector<int> const& kind, bool bounds) const {
    std::vector<std::vector<int>> from;                  // part -> column -> row
    std::vector<double> sum{0.0};
    for (int k : kind) {
      merged const& m = kinds_[idx(k)];
      std::vector<double> const& cells = bounds ? m.bound : m.seconds;
      if (sum.size() != idx(m.rows))
        throw error("parts that do not meet", "search", "as many choices on both sides of a cut");
      std::vector<double> s(idx(m.cols), infinity);
      from.emplace_back(idx(m.cols), 0);
      std::size_t cell = 0;
      for (int i = 0; i < m.rows; ++i)
        for (int j = 0; j < m.cols; ++j, ++cell)
          if (double const t = sum[idx(i)] + cells[cell]; t < s[idx(j)]) {
            s[idx(j)] = t;
            from.back()[idx(j)] = i;
          }
      sum = std::move(s);
    }
    way w{infinity, std::vector<int>(kind.size(), 0)};
    int at = 0;
    for (std::size_t j = 0; j < sum.size(); ++j)
      if (sum[j] < w.least) {
        w.least = sum[j];
        at = static_cast<int>(j);
      }
    for (std::size_t p = kind.size(); p-- > 0;) {
      int const row = from[p][idx(at)];
      merged const& m = kinds_[idx(kind[p])];
      w.variant[p] = (bounds ? m.bound_variant : m.variant)[idx(row) * idx(m.cols) + idx(at)];
      at = row;
    }
    return w;
  }
};

/// Applies a part's steps in the whole graph. New nodes and values of both graphs come in the same order;
/// `made`: those of the whole.
inline void apply_in_whole(rewrite::open_graph& whole, graph_piece const& part,
                           std::vector<rewrite_step> const& steps,
                           std::vector<rewrite::rewrite_record>& records, std::vector<int>& made) {
  std::vector<int> node = part.node, value = part.value;
  for (rewrite_step const& s : steps) {
    rewrite::rule const& r = *s.rule;
    rewrite::rule_match m = s.where;
    for (int& v : m.node) v = node[idx(v)];
    for (int& x : m.tensor) x = value[idx(x)];
    records.push_back(rewrite::record_of(r, m));
    rewrite::rewriting const w = rewrite::apply_rule(r, m, whole);
    if (!w.done())
      throw error("rule " + r.name + " applies to a part alone: " + w.refused, "search",
                  "parts that are cut cleanly");
    for (int v : w.added) {
      made.push_back(v);
      node.push_back(v);
      for (int x : whole.node(v).out) value.push_back(x);
    }
  }
}

/// All that the variants of a part depend on.
inline std::vector<i64> piece_key(graph_piece const& p, rewrite::canonical_forms& form) {
  std::vector<i64> key = form(p.graph);
  key.insert(key.end(), {p.ends.anchor, p.ends.anchor_readers, p.ends.last, p.ends.readers,
                         static_cast<i64>(p.graph.nodes.size())});
  // in this order too: ends and steps name nodes by number
  for (graph_node const& n : p.graph.nodes) {
    key.push_back(static_cast<i64>(n.op.op->id));
    key.insert(key.end(), n.op.attr, n.op.attr + n.op.op->attrs);
    for (int x : n.in) key.push_back(x);
  }
  for (graph_value const& v : p.graph.values) {
    key.push_back(v.producer >= 0 ? -1 : static_cast<i64>(v.role));
    key.push_back(static_cast<i64>(v.type.type) * 8 + v.type.rank);
    for (int d = 0; d < v.type.rank; ++d) key.push_back(v.type.d[d].n);
  }
  return key;
}

/// Prices parts one after another, or each as if it were the first.
template <cost::cost_model M> class part_pricing {
  struct arguments {
    machine const& on;
    M const& model;
    sharding_limits shardings;
    objective_options objective;
    training_options training;
    elimination_limits limits;
    std::vector<rewrite::rule const*> activating;
  } with_;
  std::optional<piece_prices<M>> all_;
  i64 tables_ = 0, remembered_ = 0;

 public:
  part_pricing(arguments a, std::shared_ptr<layout_prices<M>> const& moves, bool remember)
      : with_(std::move(a)) {
    auto const& w = with_;
    if (remember)
      all_.emplace(w.on, w.model, w.shardings, w.objective, w.training, w.limits, moves, w.activating);
  }
  piece_table operator()(computation_graph const& g, piece_ends const& ends) {
    if (all_) return (*all_)(g, ends);
    auto const fresh =
        std::make_shared<layout_prices<M>>(with_.model, with_.on, with_.objective.scalar_bytes);
    piece_prices<M> alone(with_.on, with_.model, with_.shardings, with_.objective, with_.training,
                          with_.limits, fresh, with_.activating);
    piece_table t = alone(g, ends);
    tables_ += alone.tables();
    remembered_ += alone.remembered();
    return t;
  }
  i64 tables() const { return all_ ? all_->tables() : tables_; }
  i64 remembered() const { return all_ ? all_->remembered() : remembered_; }
};

/// What came of developing all parts for a machine, before whole graphs are mapped.
struct developed {
  struct choice {
    computation_graph graph;
    rewrite::open_graph open;                                     // the same, not closed yet
    std::vector<int> number;                             // of its nodes in the graph, or -1
    std::vector<rewrite::rewrite_record> records;
    // what stands in a part and depends on no other comes after the part before
    std::vector<std::pair<int, int>> order;
  };
  // best in sequence, and by the bounds where that is another one
  std::vector<choice> all;
  joint_statistics statistics;
  double bound = 0;
};
template <cost::cost_model M>
developed develop(computation_graph const& declared, machine const& on, M const& model,
                  joint_options const& o, std::shared_ptr<layout_prices<M>> const& prices) {
  if (!o.search.order.empty())
    throw error("an order of operators", "joint search", "none: rules make other operators");
  std::vector<rewrite::rule> const& rules = o.rules ? *o.rules : substitution_rules();
  training_options t;
  t.loss = o.search.loss;
  t.optimizer = o.search.optimizer;
  t.micro_batches = o.search.micro_batches;
  t.reduction = o.search.reduction;
  search_space const space = space_for(on, o.search);
  training_graph const step = differentiate(declared, t);
  rewrite::open_graph whole(rewrite::unsharded(declared));
  std::vector<std::vector<int>> groups;
  if (o.split)
    for (rewrite::rule const& r : rules)
      if (!activates(r))
        for (rewrite::rule_match const& m : rewrite::find_matches(r, whole)) groups.push_back(m.node);
  std::vector<int> const cuts =
      o.split ? choose_cuts(declared, step, groups, o.min_part) : std::vector<int>{};
  std::vector<graph_piece> const parts = pieces(declared, cuts);
  objective_options const priced{space.grain, o.search.scalar_bytes, o.search.micro_batches,
                                 o.search.save_memory};
  part_pricing<M> price(
      {on, model, space.shardings, priced, t, o.search.mapping.elimination, activating(rules)}, prices,
      o.remember);
  developed r;
  rewrite::canonical_forms form;
  std::map<std::vector<i64>, int> known;
  std::vector<int> kind;
  std::vector<piece_variants> kinds;
  for (graph_piece const& p : parts) {
    auto const [at, fresh] = known.try_emplace(piece_key(p, form), static_cast<int>(kinds.size()));
    kind.push_back(at->second);
    if (!fresh && o.remember) continue;
    kind.back() = static_cast<int>(kinds.size());
    auto const go_on = [&](int graphs, double least) {
      int const part = static_cast<int>(kind.size()) - 1;
      return !o.watch ||
             o.watch->go_on({part, static_cast<int>(parts.size()), r.statistics.candidates + graphs, least});
    };
    kinds.push_back(substitutions(p, rules, price, o.rewriting, go_on));
    r.statistics.candidates += kinds.back().priced;
    r.statistics.exhausted = r.statistics.exhausted && kinds.back().exhausted;
  }
  part_chain const chain(kinds);
  auto const sequential = chain.best(kind, false), bounded = chain.best(kind, true);
  auto const choose = [&](std::vector<int> const& variant) {
    developed::choice c{{}, whole, {}, {}, {}};
    std::vector<std::pair<int, int>> after;              // in the numbers of the open graph
    for (std::size_t k = 0; k < parts.size(); ++k) {
      std::vector<int> made;
      apply_in_whole(c.open, parts[k], kinds[idx(kind[k])].all[idx(variant[k])].steps, c.records, made);
      for (int v : made) if (k > 0) after.push_back({cuts[k - 1], v});
    }
    c.graph = c.open.close(&c.number).graph;
    for (auto const& [u, v] : after) {
      if (!c.open.node(v).alive || !c.graph.predecessors(c.number[idx(v)]).empty()) continue;
      if (c.number[idx(u)] < c.number[idx(v)]) c.order.push_back({c.number[idx(u)], c.number[idx(v)]});
    }
    r.all.push_back(std::move(c));
  };
  choose(sequential.variant);
  if (bounded.variant != sequential.variant) choose(bounded.variant);
  r.statistics.parts = static_cast<int>(parts.size());
  r.statistics.kinds = static_cast<int>(kinds.size());
  r.statistics.tables = price.tables();
  r.statistics.remembered = price.remembered();
  r.statistics.sequential = sequential.least;
  r.bound = r.statistics.bound = bounded.least * (1 - 1e-9);
  return r;
}

}  // namespace detail

}  // namespace tensorpar::search
