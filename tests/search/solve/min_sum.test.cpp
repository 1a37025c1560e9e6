// tests/search/solve/min_sum.test.cpp - min_sum against every assignment
#include "handmade.hpp"

#include <doctest/doctest.h>
#include <tensorpar/search/solve/min_sum.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tensorpar::search_test;

namespace {
/// Random costs over random classes on any graph; operators share sets, pairs share costs.
mapping_problem random_sum(std::mt19937_64& g, int n, int max_choices, double density) {
  std::vector<std::vector<choice>> ops;
  int const kinds = 1 + static_cast<int>(g() % 3);
  for (int k = 0; k < kinds; ++k) {
    ops.emplace_back();
    for (int i = 0, c = 1 + static_cast<int>(g() % static_cast<u64>(max_choices)); i < c; ++i)
      ops.back().push_back({0, 1, static_cast<double>(g() % 20), 0});
  }
  std::string chain = "S(0";
  for (int v = 1; v < n; ++v) chain += "," + std::to_string(v);
  mapping_problem p = handmade(1, n > 1 ? chain + ")" : "0", ops);
  p.set_of.clear();
  for (int v = 0; v < n; ++v) p.set_of.push_back(static_cast<int>(g() % static_cast<u64>(kinds)));
  std::vector<std::vector<int>> classes(static_cast<std::size_t>(kinds));
  for (int k = 0; k < kinds; ++k)
    for (int c = 0; c < 2; ++c) {
      choice_classes x{k, 0, {}};
      std::vector<int> seen;
      for (int i = 0; i < p.sets[static_cast<std::size_t>(k)].count(); ++i) {
        int const wanted = static_cast<int>(g() % 3);
        int at = -1;
        for (std::size_t s = 0; s < seen.size(); ++s) if (seen[s] == wanted) at = static_cast<int>(s);
        if (at < 0) { at = static_cast<int>(seen.size()); seen.push_back(wanted); }
        x.of.push_back(at);
      }
      x.count = static_cast<int>(seen.size());
      classes[static_cast<std::size_t>(k)].push_back(static_cast<int>(p.classes.size()));
      p.classes.push_back(std::move(x));
    }
  for (int a = 0; a < n; ++a)
    for (int b = a + 1; b < n; ++b) {
      if (static_cast<double>(g() % 1000) >= 1000 * density) continue;
      int const rows = classes[static_cast<std::size_t>(p.set_of[static_cast<std::size_t>(a)])][g() % 2],
                cols = classes[static_cast<std::size_t>(p.set_of[static_cast<std::size_t>(b)])][g() % 2];
      pair_cost c{p.classes[static_cast<std::size_t>(rows)].count, p.classes[static_cast<std::size_t>(cols)].count, {}};
      for (int i = 0; i < c.rows * c.cols; ++i) c.seconds.push_back(static_cast<double>(g() % 20));
      p.costs.push_back(std::move(c));
      p.pairs.push_back({a, b, static_cast<int>(p.costs.size()) - 1, rows, cols});
    }
  return p;
}
std::vector<std::vector<double>> seconds_of(mapping_problem const& p) {
  std::vector<std::vector<double>> r;
  for (choice_set const& s : p.sets) r.push_back(s.seconds);
  return r;
}
double sum(mapping_problem const& p, assignment const& a) {
  double t = 0;
  for (int v = 0; v < p.operators(); ++v) t += p.choices(v).seconds[static_cast<std::size_t>(a[static_cast<std::size_t>(v)])];
  for (operator_pair const& q : p.pairs) t += p.seconds(q, a[static_cast<std::size_t>(q.first)], a[static_cast<std::size_t>(q.second)]);
  return t;
}
double min_of_all(mapping_problem const& p) {
  assignment a(static_cast<std::size_t>(p.operators()), 0);
  double best = infinity;
  for (;;) {
    best = std::min(best, sum(p, a));
    int v = 0;
    while (v < p.operators() && ++a[static_cast<std::size_t>(v)] == p.choices(v).count()) a[static_cast<std::size_t>(v++)] = 0;
    if (v == p.operators()) return best;
  }
}
}  // namespace

TEST_CASE("search: min_sum equals the minimum over all assignments, on any graph") {
  std::mt19937_64 g(11);
  for (int round = 0; round < 400; ++round) {
    mapping_problem const p = random_sum(g, 1 + static_cast<int>(g() % 7), 4, 0.2 + 0.2 * static_cast<double>(round % 4));
    double const least = min_of_all(p);
    additive_optimum const x = min_sum(p, seconds_of(p));
    CHECK(x.exact);
    CHECK(x.value == least);
    CHECK(sum(p, x.choices) == least);
    CHECK(min_sum(p, seconds_of(p)).choices == x.choices);
    additive_optimum const rough = min_sum(p, seconds_of(p), {10});
    CHECK(rough.value <= least);
    CHECK(sum(p, rough.choices) >= least);
    if (rough.exact) CHECK(rough.value == least);
  }
}

TEST_CASE("search: equal blocks are joined once") {
  std::mt19937_64 g(3);
  mapping_problem block = random_sum(g, 2, 6, 2);
  auto const chain_of = [&](int n) {
    mapping_problem p = block;
    p.set_of.assign(static_cast<std::size_t>(n), block.set_of[0]);
    p.pairs.clear();
    p.classes = {{block.set_of[0], 0, {}}};
    for (int i = 0; i < block.choices(0).count(); ++i) p.classes[0].of.push_back(p.classes[0].count++);
    pair_cost c{p.classes[0].count, p.classes[0].count, {}};
    for (int i = 0; i < c.rows * c.cols; ++i) c.seconds.push_back(static_cast<double>((i * 7 + 3) % 11));
    p.costs = {c};
    for (int v = 0; v + 1 < n; ++v) p.pairs.push_back({v, v + 1, 0, 0, 0});
    return p;
  };
  // independently: min-plus, one step at a time
  mapping_problem const p = chain_of(1000);
  std::vector<double> now = p.sets[static_cast<std::size_t>(p.set_of[0])].seconds;
  for (int v = 1; v < 1000; ++v) {
    std::vector<double> next(now.size(), infinity);
    for (std::size_t j = 0; j < now.size(); ++j)
      for (std::size_t i = 0; i < now.size(); ++i)
        next[j] = std::min(next[j], now[i] + p.costs[0].at(static_cast<int>(i), static_cast<int>(j)) + p.choices(v).seconds[j]);
    now = next;
  }
  additive_optimum const x = min_sum(p, seconds_of(p));
  CHECK(x.value == *std::min_element(now.begin(), now.end()));
  CHECK(sum(p, x.choices) == x.value);
  CHECK(x.tables <= 45);                               // about 2 log2(1000) products and the ends
  CHECK(min_sum(chain_of(2000), seconds_of(p)).tables <= x.tables + 5);
}
