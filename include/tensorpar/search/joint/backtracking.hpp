// tensorpar/search/joint/backtracking.hpp - what rules make of a part of a network, best first
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/rewrite/canonical.hpp>
#include <tensorpar/search/joint/distribution.hpp>
#include <tensorpar/search/joint/piece_prices.hpp>
#include <tensorpar/search/joint/rewriting_knobs.hpp>

namespace tensorpar::search {

/// A graph that computes what the part computes.
struct piece_variant {
  std::vector<rewrite_step> steps;
  computation_graph graph;
  piece_ends ends;
  piece_table table;
};
struct piece_variants {
  // the first is the part as it was; none is worse than another at both ends' every choice
  std::vector<piece_variant> all;
  int priced = 0;
  // nothing was cut off by `priced`: all that is within alpha was developed
  bool exhausted = true;
};

namespace detail {

class substitution_search {
  struct state {
    rewrite::open_graph graph;
    piece_variant variant;
    int most;                            // operators that what is made of it may have
    double least;
  };
  std::vector<rewrite::rule> const& rules_;
  backtracking_options o_;

  /// The ends in the closed graph, or nothing where a reader less would change how the gradient comes back.
  static std::optional<piece_ends> ends_of(computation_graph const& g, piece_ends const& was) {
    piece_ends e = was;
    e.last = g.node_count() - 1;
    if (was.readers) e.last = g.value(g.output(beyond_last)).producer;
    if (was.anchor < 0) return e;
    e.anchor = g.value(g.output(beyond_anchor)).producer;
    int readers = 0;
    for (graph_node const& n : g.nodes)
      readers += static_cast<int>(std::count(n.in.begin(), n.in.end(), g.node(e.anchor).out[0]));
    return std::min(2, readers) == was.anchor_readers ? std::optional(e) : std::nullopt;
  }

 public:
  substitution_search(std::vector<rewrite::rule> const& rules, backtracking_options const& o) : rules_(rules),
      o_(o) {}

  template <class Price, class GoOn>
  piece_variants run(graph_piece const& p, Price& price, GoOn const& go_on) {
    if (!(o_.alpha >= 1)) throw error("alpha is " + std::to_string(o_.alpha), "substitutions", "1 or more");
    if (o_.priced < 1)
      throw error("a budget of " + std::to_string(o_.priced) + " graphs", "substitutions", "1 or more");
    computation_graph first = p.graph;
    if (p.ends.readers) first.append_output(beyond_last, first.node(p.ends.last).out[0]);
    if (p.ends.anchor >= 0) first.append_output(beyond_anchor, first.node(p.ends.anchor).out[0]);
    // an end keeps its number in every open graph made from this one
    int const anchor = p.ends.anchor, last = p.ends.readers ? p.ends.last : -1;
    rewrite::canonical_forms form;
    std::map<std::vector<i64>, int> seen;
    std::vector<state> states;
    std::vector<int> open;               // not developed yet
    double best = infinity;
    piece_variants r;
    // nodes of the piece's two ends stay: they belong to what is around as well
    auto const stays = [&](int v) { return v == anchor || v == last; };
    auto consider = [&](rewrite::open_graph g, std::vector<rewrite_step> steps, int most) {
      computation_graph closed = g.close().graph;
      if (!seen.try_emplace(form(closed), static_cast<int>(states.size())).second) return;
      auto const ends = ends_of(closed, p.ends);
      if (!ends) return;
      if (r.priced >= o_.priced || (r.priced > 0 && !go_on(r.priced, best))) { r.exhausted = false; return; }
      ++r.priced;
      state s{std::move(g), {std::move(steps), std::move(closed), *ends, {}}, most, 0};
      s.variant.table = price(s.variant.graph, s.variant.ends);
      s.least = s.variant.table.least();
      best = std::min(best, s.least);
      if (s.least > best * o_.alpha) return;
      open.push_back(static_cast<int>(states.size()));
      states.push_back(std::move(s));
    };
    consider(rewrite::open_graph(rewrite::unsharded(first)), {}, first.node_count() + o_.growth);
    while (!open.empty() && r.exhausted) {
      auto const at = std::min_element(open.begin(), open.end(), [&](int a, int b) {
        double const x = states[idx(a)].least, y = states[idx(b)].least;
        return x != y ? x < y : a < b;
      });
      int const i = *at;
      open.erase(at);
      if (states[idx(i)].least > best * o_.alpha) continue;
      for (std::size_t k = 0; k < rules_.size() && r.exhausted; ++k) {
        rewrite::rule const& what = rules_[k];
        if (activates(what)) continue;                   // decided with the shardings: see piece_prices
        for (rewrite::rule_match const& m : rewrite::find_matches(what, states[idx(i)].graph)) {
          if (std::any_of(m.node.begin(), m.node.end(), stays) || !all_bound(what, m)) continue;
          int const most = states[idx(i)].most;
          rewrite::open_graph g = states[idx(i)].graph;
          if (!rewrite::apply_rule(what, m, g).done() || g.alive() > most) continue;
          std::vector<rewrite_step> steps = states[idx(i)].variant.steps;
          steps.push_back({&what, m});
          consider(std::move(g), std::move(steps), most);
        }
        int const joint = o_.distribute ? joined_in_vain(what) : -1;
        if (joint < 0) continue;
        for (int v : std::vector<int>(states[idx(i)].graph.nodes_of(core::name_hash(concat::name)))) {
          rewrite::open_graph g = states[idx(i)].graph;
          if (!g.node(v).alive || g.node(v).in.size() < 3) continue;      // two are the rule's own business
          std::vector<rewrite_step> steps = states[idx(i)].variant.steps;
          if (distribute(g, v, what, joint, steps, stays)) {
            int const most = g.alive() + o_.growth;
            consider(std::move(g), std::move(steps), most);
          }
        }
      }
    }
    for (state& s : states) keep(r.all, std::move(s.variant));
    return r;
  }

 private:
  /// Variants that are nowhere better than another one are left out; the first one stays.
  static void keep(std::vector<piece_variant>& all, piece_variant v) {
    // in sequence or side by side
    auto const nowhere_better = [](piece_table const& a, piece_table const& b) {
      for (std::size_t i = 0; i < a.seconds.size(); ++i)
        if (a.seconds[i] < b.seconds[i] || a.bounds()[i] < b.bounds()[i]) return false;
      return true;
    };
    for (piece_variant const& x : all) if (nowhere_better(v.table, x.table)) return;
    std::size_t n = all.empty() ? 0 : 1;
    for (std::size_t i = n; i < all.size(); ++i)
      if (!nowhere_better(all[i].table, v.table)) {
        if (n != i) all[n] = std::move(all[i]);
        ++n;
      }
    all.resize(n);
    all.push_back(std::move(v));
  }
};

}  // namespace detail

/// Develops a part of a network by rules, the cheapest graph first, until nothing within alpha of the
/// cheapest is left: Unity's middle level. `price(graph, ends)` gives a piece_table (piece_prices). Rules are
/// applied where all that they name is bound; they never touch the operators where parts meet. Graphs are
/// told apart by their canonical forms. Deterministic.
/// `go_on(priced, least)` is asked before every further graph, with how many were priced and the least of
/// their seconds; false ends it.
template <class Price, class GoOn>
piece_variants substitutions(graph_piece const& p, std::vector<rewrite::rule> const& rules, Price& price,
                             backtracking_options const& o, GoOn const& go_on) {
  return detail::substitution_search(rules, o).run(p, price, go_on);
}
template <class Price>
piece_variants substitutions(graph_piece const& p, std::vector<rewrite::rule> const& rules, Price& price,
                             backtracking_options const& o = {}) {
  return substitutions(p, rules, price, o, [](int, double) { return true; });
}

}  // namespace tensorpar::search
