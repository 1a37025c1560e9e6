// tests/ir/sample_runs.test.cpp - where samples stand: a graph of few samples against the same graph of many
#include <tensorpar/ir/sample_runs.hpp>

#include <doctest/doctest.h>

#include "support/effort.hpp"
#include <random>
#include <tensorpar/op/operators.hpp>

using namespace tensorpar;

namespace {

/// A network that only moves elements, at any number of samples: each axis is a product of factors, of which -1 stands for the samples.
struct moving {
  std::vector<std::vector<i64>> axes;
  struct step {
    int kind;     // 0 transpose a, b; 1 merge a; 2 split a, its last b factors inside; 3 reshape all but a axes: groups of factors
    int a, b;
    std::vector<int> groups;
  };
  std::vector<step> steps;

  moving(std::mt19937& draw, bool ones) {
    auto const pick = [&](std::size_t n) { return static_cast<int>(draw() % n); };
    axes = {{-1}};
    for (int k = 1 + pick(3); k > 0; --k) axes.push_back({ones ? 1 + pick(3) : 2 + pick(2)});
    std::vector<std::vector<i64>> now = axes;
    for (int k = 2 + pick(5); k > 0; --k) {
      auto const n = now.size();
      step s{pick(4), 0, 0, {}};
      if (s.kind == 0) {
        s.a = pick(n), s.b = pick(n);
        std::swap(now[static_cast<std::size_t>(s.a)], now[static_cast<std::size_t>(s.b)]);
      } else if (s.kind == 1) {
        if (n < 2) continue;
        s.a = pick(n - 1);
        auto& first = now[static_cast<std::size_t>(s.a)];
        auto const second = now.begin() + s.a + 1;
        first.insert(first.end(), second->begin(), second->end());
        now.erase(second);
      } else if (s.kind == 2) {
        s.a = pick(n);
        auto& whole = now[static_cast<std::size_t>(s.a)];
        if (whole.size() < 2 || n == 6) continue;
        s.b = 1 + pick(whole.size() - 1);
        std::vector<i64> const inside(whole.end() - s.b, whole.end());
        whole.resize(whole.size() - inside.size());
        now.insert(now.begin() + s.a + 1, inside);
      } else {
        s.a = pick(n);                              // kept
        std::vector<i64> all;
        for (std::size_t d = static_cast<std::size_t>(s.a); d < n; ++d) all.insert(all.end(), now[d].begin(), now[d].end());
        now.resize(static_cast<std::size_t>(s.a));
        for (std::size_t at = 0; at < all.size();) {
          int const most = now.size() == 5 ? static_cast<int>(all.size() - at) : 1 + pick(all.size() - at);
          s.groups.push_back(most);
          now.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(at), all.begin() + static_cast<std::ptrdiff_t>(at) + most);
          at += static_cast<std::size_t>(most);
        }
      }
      steps.push_back(s);
    }
  }

  /// The graph, and for every value which (sample, other index) each element is.
  struct made {
    computation_graph graph;
    std::vector<std::pair<i64, i64>> label;         // of the last value
  };
  made at(i64 samples) const {
    auto const extent = [&](std::vector<i64> const& factors) {
      i64 n = 1;
      for (i64 f : factors) n *= f < 0 ? samples : f;
      return n;
    };
    made r;
    std::vector<std::vector<i64>> now = axes;
    shape s;
    for (auto const& f : now) s.d[s.rank++] = dim(extent(f));
    int x = r.graph.add_input("x", s);
    i64 const each = s.elements() / samples;
    for (i64 i = 0; i < s.elements(); ++i) r.label.push_back({i / each, i % each});
    for (step const& t : steps) {
      auto const a = static_cast<std::size_t>(t.a);
      if (t.kind == 0) {
        shape const from = r.graph.type(x);
        x = r.graph.node(r.graph.add(transpose{t.a, t.b}, {x})).out[0];
        std::vector<std::pair<i64, i64>> moved;
        for (i64 i = 0; i < from.elements(); ++i) {
          i64 at[6], rest = i;
          shape const& to = r.graph.type(x);
          for (int d = to.rank - 1; d >= 0; --d) at[d] = rest % to.d[d].n, rest /= to.d[d].n;
          std::swap(at[t.a], at[t.b]);
          i64 old = 0;
          for (int d = 0; d < from.rank; ++d) old = old * from.d[d].n + at[d];
          moved.push_back(r.label[static_cast<std::size_t>(old)]);
        }
        r.label = std::move(moved);
        std::swap(now[a], now[static_cast<std::size_t>(t.b)]);
      } else if (t.kind == 1) {
        x = r.graph.node(r.graph.add(merge_axes{t.a}, {x})).out[0];
        now[a].insert(now[a].end(), now[a + 1].begin(), now[a + 1].end());
        now.erase(now.begin() + t.a + 1);
      } else if (t.kind == 2) {
        std::vector<i64> const inside(now[a].end() - t.b, now[a].end());
        x = r.graph.node(r.graph.add(split_axis{t.a, extent(inside)}, {x})).out[0];
        now[a].resize(now[a].size() - inside.size());
        now.insert(now.begin() + t.a + 1, inside);
      } else {
        std::vector<i64> all;
        for (std::size_t d = a; d < now.size(); ++d) all.insert(all.end(), now[d].begin(), now[d].end());
        now.resize(a);
        reshape to{t.a, static_cast<i64>(t.groups.size()), {}};
        std::size_t at = 0, k = 0;
        for (int n : t.groups) {
          now.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(at), all.begin() + static_cast<std::ptrdiff_t>(at) + n);
          to.d[k++] = extent(now.back());
          at += static_cast<std::size_t>(n);
        }
        x = r.graph.node(r.graph.add(to, {x})).out[0];
      }
    }
    return r;
  }
};

/// Is element i of micro-batch j found where it is said to stand? Returns how many graphs were told nothing of.
int as_said(bool ones, int trials, unsigned seed) {
  std::mt19937 draw(seed);
  int unknown = 0;
  for (int trial = 0; trial < test_effort::cases(trials); ++trial) {
    moving const net(draw, ones);
    i64 const samples = ones ? 1 + static_cast<i64>(draw() % 3) : 2 + static_cast<i64>(draw() % 2), m = 2 + static_cast<i64>(draw() % 3);
    auto const part = net.at(samples), whole = net.at(samples * m);
    i64 const run = ir::sample_runs(part.graph).back().run;
    unknown += run == ir::sample_run::unknown;
    if (run == ir::sample_run::unknown) continue;
    REQUIRE(run > 0);
    bool right = true;
    for (i64 j = 0; j < m; ++j)
      for (i64 i = 0; i < static_cast<i64>(part.label.size()); ++i) {
        auto const [sample, rest] = part.label[static_cast<std::size_t>(i)];
        right = right && whole.label[static_cast<std::size_t>((i / run * m + j) * run + i % run)] == std::pair(sample + j * samples, rest);
      }
    CAPTURE(trial);
    REQUIRE(right);
  }
  return unknown;
}

i64 run_of(computation_graph const& g, int value) { return ir::sample_runs(g)[static_cast<std::size_t>(value)].run; }
int out(computation_graph const& g, int v, std::size_t k = 0) { return g.node(v).out[k]; }

}  // namespace

TEST_CASE("samples are followed through transposes, merges, splits and reshapes of any axes") {
  CHECK(as_said(false, 3000, 1) == 0);
  CHECK(as_said(true, 3000, 2) < test_effort::cases(3000) / 4);    // with axes of one element it may not be told, but is never told wrongly
}

TEST_CASE("loops take samples along; sums and parameters have none; two axes of them are not told apart") {
  computation_graph g;
  int const x = g.add_input("x", {4, 3, 6}), s = g.add_input("s", {}), w = g.add_parameter("w", {5, 6}, op::init::zeros);
  CHECK(run_of(g, x) == 72);
  CHECK(run_of(g, s) == ir::sample_run::none);
  int const h = out(g, g.add_with_weights(linear{5}, {x}, "l")), t = out(g, g.add(transpose{0, 2}, {h}));
  CHECK(run_of(g, h) == 60);
  CHECK(run_of(g, t) == 4);
  CHECK(run_of(g, out(g, g.add(relu{}, {t}))) == 4);
  CHECK(run_of(g, out(g, g.add(dropout{0.5}, {w}))) == ir::sample_run::none);
  CHECK(run_of(g, out(g, g.add(contraction("bij,oj->iob"), {x, w}))) == 4);
  CHECK(run_of(g, out(g, g.add(contraction("bij,oj->io"), {x, w}))) == ir::sample_run::none);
  int const flat = out(g, g.add(flatten{1}, {x}));
  CHECK(run_of(g, out(g, g.add(contraction("aj,bj->ab"), {flat, flat}))) == ir::sample_run::unknown);       // every sample with every other
  int const y = out(g, g.add(transpose{0, 1}, {x})), cut = g.add(split_axes{2, 0}, {x});
  CHECK(run_of(g, out(g, g.add(concat{0}, {y, y}))) == 24);
  CHECK(run_of(g, out(g, cut, 0)) == ir::sample_run::unknown);                                               // half of the samples
  CHECK(run_of(g, out(g, g.add(split_axes{3, 1}, {x}), 2)) == 24);
  CHECK(run_of(g, out(g, g.add(slice_axis{0, 1, 2}, {y}))) == 24);
  CHECK(run_of(g, out(g, g.add(mean_squared_error{}, {x, x}))) == ir::sample_run::none);
}
