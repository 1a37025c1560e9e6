#include "support/random_pipeline.hpp"

#include <algorithm>
#include <tensorpar/ir/machine/precision.hpp>

namespace tests {

std::vector<std::vector<int>> stage_predecessors(computation_graph const& g, pipeline const& p) {
  std::vector<int> of(static_cast<std::size_t>(g.node_count()), 0);
  for (std::size_t s = 0; s < p.stages.size(); ++s) for (int v : p.stages[s].nodes) of[static_cast<std::size_t>(v)] = static_cast<int>(s);
  std::vector<std::vector<int>> r(p.stages.size());
  for (int v = 0; v < g.node_count(); ++v)
    for (int u : g.predecessors(v)) {
      int const a = of[static_cast<std::size_t>(u)], b = of[static_cast<std::size_t>(v)];
      if (a != b && std::find(r[static_cast<std::size_t>(b)].begin(), r[static_cast<std::size_t>(b)].end(), a)
          == r[static_cast<std::size_t>(b)].end())
        r[static_cast<std::size_t>(b)].push_back(a);
    }
  return r;
}

void random_order(pipeline& p, std::vector<std::vector<int>> const& before, std::mt19937& draw) {
  auto z = [](i64 i) { return static_cast<std::size_t>(i); };
  std::vector<std::vector<int>> after(before.size());
  for (std::size_t s = 0; s < before.size(); ++s) for (int b : before[s]) after[z(b)].push_back(static_cast<int>(s));
  p.schedule.assign(p.groups.size(), {});
  std::vector<int> done[3];
  for (auto& d : done) d.assign(p.stages.size(), 0);
  auto ready = [&](int s, int what) {
    int const j = done[what][z(s)];
    if (j == p.micro_batches(s)) return false;
    if (what == 2) return p.stages[z(s)].split_backward && j < done[1][z(s)];
    if (what == 1 && j >= done[0][z(s)]) return false;
    i64 const end = (j + 1) * p.stages[z(s)].micro_batch;
    for (int o : what ? after[z(s)] : before[z(s)]) if (done[what][z(o)] * p.stages[z(o)].micro_batch < end) return false;
    return true;
  };
  for (;;) {
    std::vector<pass_entry> all;
    for (int s = 0; s < static_cast<int>(p.stages.size()); ++s)
      for (int w = 0; w < 3; ++w) if (ready(s, w)) all.push_back({s, static_cast<pass>(w), done[w][z(s)]});
    if (all.empty()) return;
    pass_entry const e = all[draw() % all.size()];
    ++done[static_cast<int>(e.what)][z(e.stage)];
    p.schedule[z(p.stages[z(e.stage)].group)].push_back(e);
  }
}

plan random_pipeline(computation_graph const& g, pipeline_kind k, i64 unit, i64 mini_batch, std::mt19937& draw) {
  auto z = [](i64 i) { return static_cast<std::size_t>(i); };
  auto below = [&](i64 n) { return static_cast<i64>(draw() % static_cast<unsigned>(n)); };
  plan p;
  p.cluster = devices(k.devices);
  p.graph = g.hash();
  p.precision = precision_in(g);
  p.nodes.resize(z(g.node_count()));
  pipeline& q = p.pipeline;
  q.unit = unit;
  q.mini_batch = mini_batch;
  for (int d = 0; d < k.devices;) {
    int const n = static_cast<int>(1 + below(std::min(2, k.devices - d)));
    q.groups.push_back({d, n});
    d += n;
  }
  // a random topological order, cut into runs: every run is convex and runs form no circle
  std::vector<int> order, left(z(g.node_count()), 0);
  for (int v = 0; v < g.node_count(); ++v) left[z(v)] = static_cast<int>(g.predecessors(v).size());
  std::vector<int> free;
  for (int v = 0; v < g.node_count(); ++v) if (!left[z(v)]) free.push_back(v);
  while (!free.empty()) {
    std::size_t const i = z(below(static_cast<i64>(free.size())));
    int const v = free[i];
    free.erase(free.begin() + static_cast<std::ptrdiff_t>(i));
    order.push_back(v);
    for (int w = 0; w < g.node_count(); ++w)
      for (int u : g.predecessors(w)) if (u == v && --left[z(w)] == 0) free.push_back(w);
  }
  int const groups = static_cast<int>(q.groups.size()), stages = k.shared_groups ? 2 * groups : groups;
  std::vector<std::size_t> cuts{0, order.size()};
  while (static_cast<int>(cuts.size()) < std::min(stages, g.node_count()) + 1) {
    std::size_t const c = 1 + z(below(static_cast<i64>(order.size()) - 1));
    if (std::find(cuts.begin(), cuts.end(), c) == cuts.end()) cuts.push_back(c);
  }
  std::sort(cuts.begin(), cuts.end());
  for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
    pipeline_stage x;
    x.nodes.assign(order.begin() + static_cast<std::ptrdiff_t>(cuts[s]), order.begin() + static_cast<std::ptrdiff_t>(cuts[s + 1]));
    std::sort(x.nodes.begin(), x.nodes.end());
    x.group = static_cast<int>(s) % groups;
    x.micro_batch = unit;
    while (k.sizes && x.micro_batch * 2 <= mini_batch && mini_batch % (x.micro_batch * 2) == 0 && below(2)) x.micro_batch *= 2;
    x.split_backward = k.split && below(2);
    x.recompute = k.recompute && below(2);
    x.shard_optimizer = below(2);
    device_range const d = q.groups[z(x.group)];
    for (int v : x.nodes) {
      tensorpar::ir::iteration_space const space = tensorpar::ir::space_of(g, v);
      tensorpar::ir::sharding s2{d.first, {}};
      if (d.count > 1 && below(4)) {
        std::vector<char> letters{'\0'};
        for (tensorpar::ir::node_loop const& l : space.loops) if (l.units % d.count == 0) letters.push_back(l.letter);
        s2.axes.push_back({letters[z(below(static_cast<i64>(letters.size())))], d.count, 1});
      }
      p.nodes[z(v)].sharding = s2;
    }
    q.stages.push_back(std::move(x));
  }
  q.groups.resize(z(std::min(groups, static_cast<int>(q.stages.size()))));
  random_order(q, stage_predecessors(g, q), draw);
  p.prefetch = static_cast<int>(q.groups.size() + q.stages.size()) % 3;
  return p;
}

plan random_plan_of_a_kind(computation_graph const& g, int turn, std::mt19937& draw) {
  plan p = turn % 3 == 0 ? random_pipeline(g, {.devices = 3}, 1, 4, draw) : random_plan(g, 3, draw);
  if (turn % 3 == 1) p.micro_batches = 4;
  if (turn % 3 == 2)
    for (op_strategy& n : p.nodes) n = {n.sharding, static_cast<tensorpar::ir::zero_stage>(draw() % 4), draw() % 2 == 0};
  return p;
}

}  // namespace tests
