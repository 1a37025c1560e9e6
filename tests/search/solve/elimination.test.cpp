// tests/search/solve/elimination.test.cpp - what is left when two operators are kept: every combination of their choices, by brute force
#include <tensorpar/search/solve/elimination.hpp>
#include <doctest/doctest.h>

#include <random>
#include <tensorpar/search/solve/min_cells.hpp>
#include <tensorpar/search/solve/refined_classes.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

namespace {

/// Random sets, classes and costs, and a random graph of pairs over some operators.
struct problem {
  mapping_tables tables;
  std::vector<std::vector<double>> seconds;
  std::vector<int> sets;
  std::vector<operator_pair> pairs;
};
int below(std::mt19937& draw, int n) { return static_cast<int>(draw() % static_cast<unsigned>(n)); }
void make_tables(problem& p, std::mt19937& draw) {
  for (int s = 0; s < 3; ++s) {
    choice_set c;
    c.shardings.resize(static_cast<std::size_t>(1 + below(draw, 4)));
    p.seconds.emplace_back();
    for (std::size_t i = 0; i < c.shardings.size(); ++i) p.seconds.back().push_back(below(draw, 50));
    c.seconds = p.seconds.back();
    p.tables.sets.push_back(std::move(c));
  }
}
void make_graph(problem& p, std::mt19937& draw) {
  p.sets.clear();
  p.pairs.clear();
  int const n = 2 + below(draw, 4);
  for (int v = 0; v < n; ++v) p.sets.push_back(below(draw, 3));
  for (int a = 0; a < n; ++a)
    for (int b = a + 1; b < n; ++b) {
      if (below(draw, 3) == 0) continue;
      auto classes = [&](int v) {
        choice_classes c{p.sets[static_cast<std::size_t>(v)], 0, {}};
        int const most = 1 + below(draw, 3);
        for (std::size_t i = 0; i < p.seconds[static_cast<std::size_t>(c.set)].size(); ++i) {
          c.of.push_back(below(draw, std::min(most, c.count + 1)));
          c.count = std::max(c.count, c.of.back() + 1);
        }
        p.tables.classes.push_back(c);
        return static_cast<int>(p.tables.classes.size()) - 1;
      };
      operator_pair q{a, b, static_cast<int>(p.tables.costs.size()), classes(a), classes(b)};
      pair_cost cost{p.tables.classes[static_cast<std::size_t>(q.rows)].count, p.tables.classes[static_cast<std::size_t>(q.cols)].count, {}};
      for (int i = 0; i < cost.rows * cost.cols; ++i) cost.seconds.push_back(below(draw, 50));
      p.tables.costs.push_back(std::move(cost));
      p.pairs.push_back(q);
    }
}
/// The least sum with some choices given (-1: open); own seconds of given ones do not count.
double by_trying(problem const& p, std::vector<int> choice, std::vector<int> const& given) {
  for (std::size_t v = 0; v < choice.size(); ++v)
    if (choice[v] < 0) {
      double best = infinity;
      for (std::size_t i = 0; i < p.seconds[static_cast<std::size_t>(p.sets[v])].size(); ++i) {
        choice[v] = static_cast<int>(i);
        best = std::min(best, by_trying(p, choice, given));
      }
      return best;
    }
  double sum = 0;
  for (std::size_t v = 0; v < choice.size(); ++v)
    if (given[v] < 0) sum += p.seconds[static_cast<std::size_t>(p.sets[v])][static_cast<std::size_t>(choice[v])];
  for (operator_pair const& q : p.pairs)
    sum += p.tables.seconds(q, choice[static_cast<std::size_t>(q.first)], choice[static_cast<std::size_t>(q.second)]);
  return sum;
}

}  // namespace

TEST_CASE("one eliminator for many graphs over growing tables: with none, one or two operators kept") {
  std::mt19937 draw(3);
  for (int book = 0; book < 40; ++book) {
    problem p;
    make_tables(p, draw);
    search::detail::eliminator e(p.tables, p.seconds, {});
    for (int graph = 0; graph < 8; ++graph) {
      make_graph(p, draw);
      int const n = static_cast<int>(p.sets.size());
      std::vector<int> const open(static_cast<std::size_t>(n), -1);
      additive_optimum const all = e.least(p.sets, p.pairs);
      CHECK(all.exact);
      CHECK(all.value == by_trying(p, open, open));
      CHECK(by_trying(p, all.choices, open) == all.value);
      std::vector<int> kept{below(draw, n)};
      if (int const other = below(draw, n); other != kept[0]) kept.push_back(other);
      auto const rest = e.min_beside(p.sets, p.pairs, kept);
      CHECK(rest.exact);
      std::size_t cell = 0;
      auto const count = [&](int v) { return p.seconds[static_cast<std::size_t>(p.sets[static_cast<std::size_t>(v)])].size(); };
      for (std::size_t i = 0; i < count(kept[0]); ++i)
        for (std::size_t j = 0; j < (kept.size() > 1 ? count(kept[1]) : 1); ++j) {
          std::vector<int> given = open;
          given[static_cast<std::size_t>(kept[0])] = static_cast<int>(i);
          if (kept.size() > 1) given[static_cast<std::size_t>(kept[1])] = static_cast<int>(j);
          CHECK(rest.seconds[cell++] == by_trying(p, given, given));
        }
      CHECK(cell == rest.seconds.size());
    }
  }
}
