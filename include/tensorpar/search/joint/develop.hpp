// tensorpar/search/joint/develop.hpp - what rules make of every part of a network, and the best way through
// all parts
#pragma once
#include <numeric>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/program/rewritten.hpp>
#include <tensorpar/search/joint/backtracking.hpp>
#include <tensorpar/search/joint/part_pricing.hpp>
#include <tensorpar/search/problem/activate.hpp>

namespace tensorpar::search {

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
developed develop(computation_graph const& declared, cut_network const& cut, joint_options const& o,
                  part_pricing<M>& price) {
  std::vector<graph_piece> const& parts = cut.parts;
  std::vector<int> const& kind = cut.kind;
  rewrite::open_graph const whole(rewrite::unsharded(declared));
  developed r;
  std::vector<piece_variants> kinds;
  for (int part : cut.first) {
    auto const go_on = [&](int graphs, double least) {
      return !o.watch ||
             o.watch->go_on({part, static_cast<int>(parts.size()), r.statistics.candidates + graphs, least});
    };
    kinds.push_back(substitutions(parts[idx(part)], rules_of(o), price, o.rewriting, go_on));
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
      for (int v : made) if (k > 0) after.push_back({cut.cuts[k - 1], v});
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
