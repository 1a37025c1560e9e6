// tests/search/stage_oracle.hpp - random stage problems, and every partition of small ones, priced without any of the search's code
#pragma once
#include "support/random_graph.hpp"
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tensorpar/search/pipeline/schedules/in_flight.hpp>
#include <tensorpar/search/pipeline/stages/additive.hpp>
#include <vector>

namespace tests {

using tensorpar::search::additive_stages;
using tensorpar::i64;
using tensorpar::search::stage_choice;
using tensorpar::search::stage_work;

/// A graph, what its operators cost, and devices.
struct stage_problem {
  lists graph;
  additive_stages model;
  std::string text;
};

struct stage_problem_options {
  int devices = 4;
  i64 mini_batch = 4;
  bool tight = false;    // memory that bites
  bool unequal = false;  // devices of several kinds
  int alike = 100;       // percent of operators that have costs of their own
  bool recompute = false, shard_optimizer = false;
  int max_tensor = 1;
};

inline stage_problem random_stage_problem(random_source& r, lists graph, stage_problem_options const& o) {
  std::vector<tensorpar::search::operator_numbers> ops;
  std::string said = text(graph);
  auto number = [&](int n) { return static_cast<double>(1 + r.below(n)); };
  for (std::size_t v = 0; v < graph.size(); ++v) {
    if (v > 0 && !r.chance(o.alike)) {
      ops.push_back(ops[at(r.below(static_cast<int>(v)))]);
      said += " =";
      continue;
    }
    tensorpar::search::operator_numbers x;
    x.forward = number(9);
    x.backward = number(9);
    x.weights = r.chance(50) ? number(9) : 0;
    x.launch = r.below(3);
    x.half = r.below(2);
    x.parameters = 8 * r.below(6);
    x.kept = number(8);
    x.result = number(4);
    x.scratch = o.tight ? 3 * x.kept * static_cast<double>(v % 3) : 0;  // some operators have much, some none
    ops.push_back(x);
    said +=
        " (" + std::to_string(x.forward + x.backward + x.weights) + "," + std::to_string(x.parameters) + "," + std::to_string(x.kept) + ")";
  }
  tensorpar::search::stage_devices d = tensorpar::search::stage_devices::equal(o.devices, 1e9);
  d.per_node = r.chance(50) ? 2 : 1 << 20;
  d.inner_bandwidth = 16;
  d.outer_bandwidth = 4;
  d.inner_latency = 0.125;
  d.outer_latency = 0.5;
  double const memory = o.tight ? static_cast<double>(20 + r.below(200)) : 1e9;
  for (auto& x : d.list) {
    x.memory = memory;
    if (o.unequal) {
      x.speed = r.chance(50) ? 1 : 2;
      if (r.chance(30)) x.memory *= 2;
    }
  }
  std::vector<double> bytes;
  for (std::size_t v = 0; v < graph.size(); ++v) bytes.push_back(r.below(5));
  said += "; memory " + std::to_string(memory) + ", per node " + std::to_string(d.per_node);
  return {graph,
          additive_stages(ops, tensorpar::search::tensors_of(graph, bytes), d,
                          {o.mini_batch, 2, 1 << 20, o.max_tensor, o.recompute, o.shard_optimizer}),
          said};
}

/// A stage as a set of bits with a choice; what it costs is worked out from the definitions.
struct oracle_stage {
  unsigned nodes;
  stage_choice choice;
  int first = 0;
};

/// What crosses the border of a set of operators, by the definition.
inline tensorpar::search::stage_border oracle_border(additive_stages const& m, unsigned nodes) {
  tensorpar::search::stage_border b;
  for (auto const& t : m.tensors()) {
    bool const made = nodes >> t.producer & 1;
    bool inside = false, outside = false;
    for (int v : t.consumers) (nodes >> v & 1 ? inside : outside) = true;
    if (!made && inside) {
      b.in += t.bytes;
      ++b.tensors_in;
    }
    if (made && outside) {
      b.out += t.bytes;
      ++b.tensors_out;
    }
  }
  return b;
}

inline stage_work oracle_work(additive_stages const& m, oracle_stage const& s) {
  stage_work w = m.transfer(oracle_border(m, s.nodes), s.choice, s.first);
  for (int v = 0; v < m.operators(); ++v)
    if (s.nodes >> v & 1) w += m.work(v, s.choice, s.first);
  return w;
}

/// Stage graph of a partition: edges[i][j], in the order given. Empty answer: cyclic.
inline std::vector<std::vector<bool>> oracle_edges(lists const& g, std::vector<unsigned> const& parts) {
  std::vector<std::vector<bool>> e(parts.size(), std::vector<bool>(parts.size(), false));
  for (std::size_t i = 0; i < parts.size(); ++i)
    for (std::size_t j = 0; j < parts.size(); ++j)
      for (std::size_t v = 0; v < g.size(); ++v)
        for (int u : g[v])
          if (i != j && (parts[i] >> u & 1) && (parts[j] >> v & 1)) e[i][j] = true;
  std::vector<std::vector<bool>> c = e;
  for (std::size_t k = 0; k < parts.size(); ++k)
    for (std::size_t i = 0; i < parts.size(); ++i)
      for (std::size_t j = 0; j < parts.size(); ++j)
        if (c[i][k] && c[k][j]) c[i][j] = true;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (c[i][i]) return {};
  return e;
}

/// The least bottleneck over ways to run these stages, or no better than `best`. Devices are given in order from the last one to the first,
/// the order being that of `parts`, which must be topological from the sinks where the model is not uniform.
inline double oracle_least(additive_stages const& m, std::vector<unsigned> const& parts, std::vector<std::vector<bool>> const& edges,
                           std::vector<i64> const& sizes, std::vector<int> const& ks, double best) {
  std::vector<stage_choice> all;
  for (i64 b : sizes)
    for (int k : ks)
      for (stage_choice c : m.degrees()) {
        c.micro_batch = b;
        c.k = k;
        if (m.admits(c)) all.push_back(c);
      }
  std::vector<oracle_stage> chosen;
  std::vector<stage_work> work;
  std::function<void(int, double)> go = [&](int devices, double worst) {
    if (worst >= best) return;
    if (chosen.size() == parts.size()) {
      std::vector<i64> flight(parts.size(), 0);
      std::function<i64(std::size_t)> of = [&](std::size_t i) {
        if (flight[i]) return flight[i];
        stage_choice const& c = chosen[i].choice;
        i64 most = c.k * c.micro_batch;
        for (std::size_t j = 0; j < parts.size(); ++j)
          if (edges[i][j])
            most = std::max(most, tensorpar::search::in_flight_grouped(c.k, c.micro_batch, chosen[j].choice.k, chosen[j].choice.micro_batch,
                                                                       of(j)));
        return flight[i] = std::min(most, m.mini_batch());
      };
      for (std::size_t i = 0; i < parts.size(); ++i)
        if (work[i].bytes(of(i)) > m.capacity(chosen[i].first, chosen[i].choice.devices())) return;
      best = worst;
      return;
    }
    for (stage_choice const& c : all)
      for (int idle = 0; idle <= (m.uniform() ? 0 : m.devices()); ++idle) {  // devices may stay unused
        if (devices + idle + c.devices() > m.devices()) continue;
        oracle_stage const s{parts[chosen.size()], c, m.devices() - devices - idle - c.devices()};
        work.push_back(oracle_work(m, s));
        double const time =
            work.back().micro_batch_seconds() / static_cast<double>(c.micro_batch) + work.back().once / static_cast<double>(m.mini_batch());
        chosen.push_back(s);
        go(devices + idle + c.devices(), std::max(worst, time));
        chosen.pop_back();
        work.pop_back();
      }
  };
  go(0, 0);
  return best;
}

/// All partitions of n nodes into sets.
inline std::vector<std::vector<unsigned>> set_partitions(int n) {
  std::vector<std::vector<unsigned>> r{{}};
  for (int v = 0; v < n; ++v) {
    std::vector<std::vector<unsigned>> next;
    for (auto const& p : r) {
      for (std::size_t i = 0; i < p.size(); ++i) {
        next.push_back(p);
        next.back()[i] |= 1u << v;
      }
      next.push_back(p);
      next.back().push_back(1u << v);
    }
    r = std::move(next);
  }
  return r;
}

constexpr double no_pipeline = 1e200;

/// The least bottleneck over some partitions.
inline double oracle_least(stage_problem const& p, std::vector<std::vector<unsigned>> const& partitions, std::vector<i64> const& sizes,
                           std::vector<int> const& ks = {1}) {
  double best = no_pipeline;
  for (auto const& parts : partitions) {
    auto const edges = oracle_edges(p.graph, parts);
    if (edges.empty()) continue;
    if (p.model.uniform()) {
      best = oracle_least(p.model, parts, edges, sizes, ks, best);
      continue;
    }
    std::vector<std::size_t> order;  // every order from the sinks
    for (std::size_t i = 0; i < parts.size(); ++i) order.push_back(i);
    do {
      bool fits = true;
      for (std::size_t i = 0; i < order.size(); ++i)
        for (std::size_t j = i + 1; j < order.size(); ++j) fits = fits && !edges[order[i]][order[j]];
      if (!fits) continue;
      std::vector<unsigned> q;
      for (std::size_t i : order) q.push_back(parts[i]);
      best = oracle_least(p.model, q, oracle_edges(p.graph, q), sizes, ks, best);
    } while (std::next_permutation(order.begin(), order.end()));
  }
  return best;
}

/// The partitions that the tree's family is said to hold (find_stages), made by reading its definition backwards: from the parts of a
/// series and the branches of a block, without devices or times.
/// `together`: the ends of several equal branches, cut at one place, may be joined with what follows too; the search does so for some cuts.
class tree_partitions {
  using partitions = std::set<std::vector<unsigned>>;  // each ascending
  tensorpar::graph::sp_tree const& t_;
  bool together_;

  static partitions both(partitions const& a, partitions const& b) {
    partitions r;
    for (auto const& x : a)
      for (auto const& y : b) {
        auto z = x;
        z.insert(z.end(), y.begin(), y.end());
        std::sort(z.begin(), z.end());
        r.insert(z);
      }
    return r;
  }
  unsigned bits(int e) const {
    if (t_.kind(e) == tensorpar::graph::sp_kind::leaf) return 1u << t_.node(e);
    unsigned b = 0;
    for (int c : t_.parts(e)) b |= bits(c);
    return b;
  }
  unsigned bits(std::vector<int> const& some) const {
    unsigned b = 0;
    for (int e : some) b |= bits(e);
    return b;
  }
  std::vector<int> series(int e) const {
    if (t_.kind(e) != tensorpar::graph::sp_kind::series) return {e};
    auto const p = t_.parts(e);
    return {p.begin(), p.end()};
  }
  std::vector<int> branches(int e) const {
    auto const p = t_.parts(e);
    return {p.begin(), p.end()};
  }
  /// Groups of these branches.
  partitions block(std::vector<int> const& some) const {
    if (some.empty()) return {{}};
    partitions r;
    for (unsigned with = 0; with < 1u << (some.size() - 1); ++with) {  // who is with the first one
      std::vector<int> group{some[0]}, rest;
      for (std::size_t i = 1; i < some.size(); ++i) (with >> (i - 1) & 1 ? group : rest).push_back(some[i]);
      partitions const here = group.size() == 1 ? whole(some[0]) : partitions{{bits(group)}};
      for (auto const& p : both(here, block(rest))) r.insert(p);
    }
    return r;
  }
  /// The first j parts of a series.
  partitions prefix(std::vector<int> const& parts, std::size_t j) const {
    if (j == 0) return {{}};
    partitions r;
    auto take = [&](partitions const& p) { r.insert(p.begin(), p.end()); };
    for (std::size_t i = 0; i < j; ++i)
      take(both(prefix(parts, i), {{bits(std::vector<int>(parts.begin() + static_cast<i64>(i), parts.begin() + static_cast<i64>(j)))}}));
    if (t_.kind(parts[j - 1]) == tensorpar::graph::sp_kind::parallel) take(both(prefix(parts, j - 1), block(branches(parts[j - 1]))));
    for (std::size_t p = 0; p + 1 < j; ++p) {
      if (t_.kind(parts[p]) != tensorpar::graph::sp_kind::parallel) continue;
      unsigned const after = bits(std::vector<int>(parts.begin() + static_cast<i64>(p) + 1, parts.begin() + static_cast<i64>(j)));
      auto const all = branches(parts[p]);
      for (unsigned with = 1; with < 1u << all.size(); ++with) {
        std::vector<int> group, rest;
        for (std::size_t i = 0; i < all.size(); ++i) (with >> i & 1 ? group : rest).push_back(all[i]);
        take(both(both(prefix(parts, p), block(rest)), {{after | bits(group)}}));
        if (group.size() > 1 && together_) {
          std::size_t shortest = 99;
          for (int e : group) shortest = std::min(shortest, series(e).size());
          for (std::size_t q = 1; q < shortest; ++q) {
            partitions fronts{{}};
            unsigned ends = after;
            for (int e : group) {
              auto const own = series(e);
              fronts = both(fronts, prefix(own, q));
              ends |= bits(std::vector<int>(own.begin() + static_cast<i64>(q), own.end()));
            }
            take(both(both(prefix(parts, p), block(rest)), both(fronts, {{ends}})));
          }
        }
        if (group.size() != 1) continue;
        auto const own = series(group[0]);
        for (std::size_t q = 1; q < own.size(); ++q)
          take(both(both(prefix(parts, p), block(rest)),
                    both(prefix(own, q), {{after | bits(std::vector<int>(own.begin() + static_cast<i64>(q), own.end()))}})));
      }
    }
    return r;
  }
  partitions whole(int e) const { return prefix(series(e), series(e).size()); }

 public:
  explicit tree_partitions(tensorpar::graph::sp_tree const& t, bool together = false) : t_(t), together_(together) {}
  std::vector<std::vector<unsigned>> all() const {
    auto const p = whole(t_.root());
    return {p.begin(), p.end()};
  }
};

}  // namespace tests
