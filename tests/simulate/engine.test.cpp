// tests/simulate/engine.test.cpp - programs in virtual time: small cases by hand, laws and an oracle on random programs, pace
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/program/arena.hpp>
#include <tensorpar/program/core/task_lane.hpp>
#include <tensorpar/program/unroll.hpp>
#include <tensorpar/simulate/engine.hpp>
#include <support/peaks.hpp>
#include <tensorpar/simulate/prices.hpp>

#include <ctime>
#include <map>
#include <random>

#include "support/laws/cost_model.hpp"
#include "support/laws/cost_table.hpp"

using namespace tensorpar;

namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// Adds tasks to a program the way the unrolling does.
struct writer {
  program p;
  int add_buffer(shape const& s, ir::layout l, bool persistent = false) {
    buffer b;
    b.type = s;
    b.devices = l.devices();
    std::sort(b.devices.begin(), b.devices.end());
    b.bytes = ir::part_of(l, s).elements() * 4;
    b.where = std::move(l);
    b.persistent = persistent;
    b.first = b.last = static_cast<int>(p.tasks.size());
    p.buffers.push_back(std::move(b));
    return static_cast<int>(p.buffers.size()) - 1;
  }
  void push(task t) {
    int const i = static_cast<int>(p.tasks.size());
    for (auto const* list : {&t.in, &t.out}) for (int b : *list) p.buffers[at(b)].last = i;
    t.name = std::to_string(i);
    p.tasks.push_back(std::move(t));
  }
  /// A unary or binary elementwise operator where its operands lie.
  int compute(std::vector<int> in, op::any_op const& op = relu{}) {
    task t;
    t.op = op;
    ir::layout l = p.buffers[at(in[0])].where;
    t.devices = p.buffers[at(in[0])].devices;
    t.in = std::move(in);
    t.out = {add_buffer(p.buffers[at(t.in[0])].type, std::move(l))};
    int const r = t.out[0];
    push(std::move(t));
    return r;
  }
  int move(int from, ir::layout to) {
    for (ir::reshard_step& s : ir::reshard(p.buffers[at(from)].where, ir::canonical(std::move(to)), p.buffers[at(from)].type)) {
      task t;
      t.kind = task_kind::reshard;
      t.in = {from};
      t.devices = s.after.devices();
      if (s.kind == ir::reshard_kind::exchange) for (int d : s.before.devices()) t.devices.push_back(d);
      std::sort(t.devices.begin(), t.devices.end());
      t.devices.erase(std::unique(t.devices.begin(), t.devices.end()), t.devices.end());
      from = add_buffer(p.buffers[at(from)].type, s.after);
      t.out = {from};
      t.step = std::move(s);
      push(std::move(t));
    }
    return from;
  }
  program finish(int devices) && {
    for (buffer& b : p.buffers) if (b.persistent) { b.first = 0; b.last = std::max(0, static_cast<int>(p.tasks.size()) - 1); }
    passes::assign_offsets(p, devices);
    return std::move(p);
  }
};

ir::layout whole(int device) { return {device, {}}; }
ir::layout over(ir::part_kind k, i64 degree, i64 stride = 1, int start = 0) {
  return {start, {{k, k == ir::part_kind::shard ? 0 : -1, degree, stride}}};
}

/// Operators take 10 s, reshards 1 s, local copies 2 s.
struct ten_and_one {
  double seconds(cost::compute_query const&) const { return 10; }
  double seconds(cost::reshard_query const& q) const { return q.step.kind == ir::reshard_kind::slice ? 2 : 1; }
};

/// A random program on a machine: values computed, moved, accumulated in place.
program random_program(machine const& m, int tasks, u64 seed) {
  std::mt19937_64 random(seed);
  shape const s{dim(m.size() * 4), dim(m.size() * 2)};
  writer w;
  std::vector<int> live;
  for (int i = 0; i < 3; ++i) live.push_back(w.add_buffer(s, laws::random_layouts(m.size(), random).to, i == 0));
  while (static_cast<int>(w.p.tasks.size()) < tasks) {
    int const b = live[random() % live.size()];
    switch (random() % 5) {
      case 0: live.push_back(w.compute({b})); break;
      case 1: live.push_back(w.compute({b}, gelu{})); break;
      case 2:
        for (int c : live)
          if (c != b && w.p.buffers[at(c)].where == w.p.buffers[at(b)].where) {
            live.push_back(w.compute({b, c}, add{}));
            break;
          }
        break;
      case 3: {                                                            // in place
        task t;
        t.op = relu{};
        t.in = t.out = {b};
        t.devices = w.p.buffers[at(b)].devices;
        w.push(std::move(t));
        break;
      }
      default: {
        ir::layout_axis const* sums = nullptr;
        for (ir::layout_axis const& a : w.p.buffers[at(b)].where.axes) if (a.kind == ir::part_kind::partial) sums = &a;
        if (!sums) live.push_back(w.move(b, laws::random_layouts(m.size(), random).to));
      }
    }
    if (live.size() > 6) live.erase(live.begin() + 1);
  }
  return std::move(w).finish(m.size());
}

int lanes_of(machine const& m) { return 1 + m.communication_lanes(); }
/// The same program as a plain task graph: one task per (task, group of devices), every reason to wait an edge of its own.
std::vector<simulation::timed_task> expand(program const& p, machine const& m, simulation::task_prices const& price, bool overlap) {
  std::vector<simulation::timed_task> r;
  struct use { int buffer, device, node; bool writes; };
  std::vector<use> uses;
  for (std::size_t t = 0; t < p.tasks.size(); ++t) {
    task const& x = p.tasks[t];
    bool const local = x.kind == task_kind::compute || x.step.kind == ir::reshard_kind::slice;
    std::vector<std::vector<int>> groups;
    std::vector<int> done;
    for (int d : x.devices) {
      if (std::find(done.begin(), done.end(), d) != done.end()) continue;
      std::vector<int> const g = local ? std::vector<int>{d} : x.step.kind == ir::reshard_kind::exchange ? x.devices : x.step.members(d);
      done.insert(done.end(), g.begin(), g.end());
      groups.push_back(g);
    }
    for (auto const& g : groups) {
      int const id = static_cast<int>(r.size());
      simulation::timed_task n;
      std::vector<use> mine;
      for (int d : g) {
        n.seconds = std::max(n.seconds, price.of(t, m.device[at(d)]));
        n.lanes.push_back(lanes_of(m) * d + (overlap ? passes::lane_of(x, d, m) : 0));
        for (auto const* list : {&x.in, &x.out})
          for (int b : *list) {
            buffer const& y = p.buffers[at(b)];
            auto const it = std::find(y.devices.begin(), y.devices.end(), d);
            if (it == y.devices.end()) continue;
            mine.push_back({b, d, id, list == &x.out});
            i64 const low = y.offset[static_cast<std::size_t>(it - y.devices.begin())];
            for (use const& u : uses) {
              if (u.device != d) continue;
              if (u.buffer == b && (u.writes || list == &x.out)) n.after.push_back(u.node);
              buffer const& z = p.buffers[at(u.buffer)];
              if (u.buffer == b || !overlap || z.persistent || y.persistent || z.last >= y.first) continue;
              i64 const o = z.offset[static_cast<std::size_t>(std::find(z.devices.begin(), z.devices.end(), d) - z.devices.begin())];
              if (o < low + y.bytes && low < o + z.bytes) n.after.push_back(u.node);
            }
          }
      }
      uses.insert(uses.end(), mine.begin(), mine.end());
      r.push_back(std::move(n));
    }
  }
  return r;
}

}  // namespace

TEST_CASE("one device: tasks follow each other") {
  machine const m = logical(1);
  writer w;
  int const x = w.add_buffer({dim(4)}, whole(0));
  w.compute({w.compute({x})});
  timeline const t = simulate(std::move(w).finish(1), m, ten_and_one{});
  CHECK(t.seconds == 20);
  REQUIRE(t.spans.size() == 2);
  CHECK(t.spans[0] == span{0, lane::compute, 0, "0", 0, 10});
  CHECK(t.spans[1] == span{0, lane::compute, 1, "1", 10, 20});
}

TEST_CASE("a chain over two devices: 10, a transfer of 1, 10") {
  machine const m = logical(2);
  writer w;
  int const x = w.add_buffer({dim(4)}, whole(0));
  w.compute({w.move(w.compute({x}), whole(1))});
  timeline const t = simulate(std::move(w).finish(2), m, ten_and_one{});
  CHECK(t.seconds == 21);
  REQUIRE(t.spans.size() == 4);                                     // both ends of the transfer
  CHECK(t.spans[1].where == lane::communication);
  CHECK(t.spans[3] == span{1, lane::communication, 1, "1", 10, 11});
  CHECK(t.spans[2] == span{1, lane::compute, 2, "2", 11, 21});
}

TEST_CASE("a rhombus on four devices takes 32, on one 40: nothing moves there") {
  auto rhombus = [](std::vector<int> const& on) {
    writer w;
    int const x = w.add_buffer({dim(4)}, whole(on[0])), a = w.compute({x});
    auto to = [&](int b, int d) { return w.p.buffers[at(b)].where == whole(d) ? b : w.move(b, whole(d)); };
    // the program asks for both transfers of a pair before what depends on them, as a reader of one lane per device must
    int const a1 = to(a, on[1]), a2 = to(a, on[2]), b = w.compute({a1}), c = w.compute({a2});
    int const b3 = to(b, on[3]), c3 = to(c, on[3]);
    w.compute({b3, c3}, add{});
    return std::move(w).finish(4);
  };
  // device 0 sends twice on one channel: the second branch starts a second later, and so does the end
  CHECK(simulate(rhombus({0, 1, 2, 3}), logical(4), ten_and_one{}).seconds == 33);
  simulation::task_prices const price = tensorpar::simulation::price(rhombus({0, 1, 2, 3}), logical(4), ten_and_one{});
  CHECK(critical_path(rhombus({0, 1, 2, 3}), logical(4), price) == 32);
  CHECK(simulate(rhombus({0, 0, 0, 0}), logical(4), ten_and_one{}).seconds == 40);
}

TEST_CASE("communication hides behind computation only if it has its own lane") {
  machine const m = logical(2);
  writer w;
  int const x = w.add_buffer({dim(4), dim(4)}, over(ir::part_kind::partial, 2), true),
      y = w.add_buffer({dim(4), dim(4)}, over(ir::part_kind::replicate, 2));
  int const z = w.move(x, over(ir::part_kind::replicate, 2));
  w.compute({y});
  w.compute({z});
  program const p = std::move(w).finish(2);
  CHECK(simulate(p, m, ten_and_one{}).seconds == 20);
  CHECK(simulate(p, m, ten_and_one{}, {.overlap = false}).seconds == 21);
  timeline const t = simulate(p, m, ten_and_one{}, {.overlap = false});
  for (span const& s : t.spans) CHECK(s.where == lane::compute);
}

TEST_CASE("what is computed while a collective runs takes longer, by the share that the kind says") {
  auto const seconds = [](double share, bool moves_first, simulation_options o = {}) {
    machine m = logical(2);
    m.kinds[0].efficiency.while_communicating = share;
    writer w;
    int const x = w.add_buffer({dim(4), dim(4)}, over(ir::part_kind::partial, 2), true),
        y = w.add_buffer({dim(4), dim(4)}, over(ir::part_kind::replicate, 2), true);
    int z = moves_first ? w.move(x, over(ir::part_kind::replicate, 2)) : -1;
    int const a = w.compute({y});
    if (!moves_first) z = w.move(x, over(ir::part_kind::replicate, 2));
    w.compute({w.compute({a, w.compute({y})}, add{}), z}, add{});     // all of it is there to the end
    program const p = std::move(w).finish(2);
    simulation::task_prices const price = simulation::price(p, m, ten_and_one{});
    CHECK(critical_path(p, m, price) == 30);
    CHECK(simulate(p, m, price, o).seconds <= simulation::serial_seconds(p, m, price));
    return simulate(p, m, price, o).seconds;
  };
  CHECK(seconds(0, true) == 40);
  CHECK(seconds(1, true) == 40);
  CHECK(seconds(0.5, true) == 40.5);                                  // half a second's work in the second that both take
  CHECK(seconds(0.25, true) == 40.75);
  CHECK(seconds(0.5, false) == 40);                                   // later in the program
  CHECK(seconds(0.5, true, {.overlap = false}) == 41);                // one lane: nothing runs beside anything
}

TEST_CASE("collectives over links of two levels go on at the same time where these have lanes of their own") {
  using enum ir::part_kind;
  auto const run = [](bool lanes, double share, bool overlap = true) {
    machine m = logical(4);
    m.links = {{"pairs", 2, 0, 1e9}, {"all", 4, 0, 1e9}};
    m.lane_per_link = lanes;
    m.kinds[0].efficiency.while_communicating = share;
    writer w;
    int const a = w.add_buffer({dim(4), dim(4)}, ir::layout{0, {{shard, 0, 2, 2}, {partial, -1, 2, 1}}}, true),
              b = w.add_buffer({dim(4), dim(4)}, ir::layout{0, {{shard, 0, 2, 1}, {partial, -1, 2, 2}}}, true),
              c = w.add_buffer({dim(4), dim(4)}, ir::layout{0, {{replicate, -1, 4, 1}}}, true);
    for (int made : {w.move(a, ir::layout{0, {{shard, 0, 2, 2}, {replicate, -1, 2, 1}}}),
                     w.move(b, ir::layout{0, {{shard, 0, 2, 1}, {replicate, -1, 2, 2}}}),
                     w.move(b, ir::layout{0, {{shard, 0, 2, 1}, {replicate, -1, 2, 2}}}), w.compute({c})})
      w.p.buffers[at(made)].persistent = true;                 // none takes another's bytes
    return simulate(std::move(w).finish(4), m, ten_and_one{}, {.overlap = overlap});
  };
  timeline const one = run(false, 0), two = run(true, 0);
  auto const ends = [](timeline const& t) {
    std::vector<std::tuple<int, double, double>> r;
    for (span const& s : t.spans) if (s.device == 3 && s.where == lane::communication) r.push_back({s.link, s.start, s.end});
    return r;
  };
  CHECK(ends(one) == std::vector<std::tuple<int, double, double>>{{0, 0, 1}, {0, 1, 2}, {0, 2, 3}});
  CHECK(ends(two) == std::vector<std::tuple<int, double, double>>{{0, 0, 1}, {1, 0, 1}, {1, 1, 2}});
  // it computes at half its speed for as long as any lane communicates
  CHECK(run(false, 0.5).seconds == 11.5);
  CHECK(run(true, 0.5).seconds == 11);
  CHECK(run(true, 0.5, false).seconds == 13);
}

TEST_CASE("a collective waits for its own group only") {
  // devices 0 1 and 2 3 reduce in pairs; 2 has more to do before
  machine const m = logical(4);
  writer w;
  int const y = w.add_buffer({dim(4), dim(4)}, whole(2));
  w.compute({y});
  int const x = w.add_buffer({dim(4), dim(4)}, ir::layout{0, {{ir::part_kind::shard, 0, 2, 2}, {ir::part_kind::partial, -1, 2, 1}}});
  w.move(w.compute({x}), ir::layout{0, {{ir::part_kind::shard, 0, 2, 2}, {ir::part_kind::replicate, -1, 2, 1}}});
  timeline const t = simulate(std::move(w).finish(4), m, ten_and_one{});
  std::map<int, double> end;
  for (span const& s : t.spans) if (s.where == lane::communication) end[s.device] = s.end;
  CHECK(end == std::map<int, double>{{0, 11}, {1, 11}, {2, 21}, {3, 21}});
}

TEST_CASE("an operator takes its own time on each kind of device, and a keep is local") {
  machine m = logical(2);
  m.kinds.push_back(m.kinds[0]);
  m.kinds[1].flops *= 2;
  m.device[1] = 1;
  struct by_kind {
    double seconds(cost::compute_query const& q) const { return q.device.flops > 30e9 ? 1 : 7; }
    double seconds(cost::reshard_query const& q) const { return q.step.kind == ir::reshard_kind::slice ? 2 : 100; }
  };
  writer w;
  int const x = w.add_buffer({dim(4), dim(4)}, over(ir::part_kind::replicate, 2));
  w.move(w.compute({x}), over(ir::part_kind::shard, 2));
  program const p = std::move(w).finish(2);
  timeline const t = simulate(p, m, by_kind{});
  REQUIRE(t.spans.size() == 4);
  CHECK(t.spans[1] == span{0, lane::compute, 1, "1", 7, 9});
  CHECK(t.spans[3] == span{1, lane::compute, 1, "1", 1, 3});
  CHECK(simulation::serial_seconds(p, m, simulation::price(p, m, by_kind{})) == 9);
}

TEST_CASE("bytes that a slow transfer still reads are not written over") {
  // the transfer of a is on its channel until 101; c's result lies where a lay, since a's life ends with task 1
  machine const m = logical(2);
  struct slow_link {
    double seconds(cost::compute_query const&) const { return 1; }
    double seconds(cost::reshard_query const&) const { return 100; }
  };
  writer w;
  int const x = w.add_buffer({dim(64)}, whole(0), true);
  int const a = w.compute({x});
  w.move(a, whole(1));
  int const c = w.compute({x});
  w.compute({c});
  program p = std::move(w).finish(2);
  buffer const &first = p.buffers[at(a)], &later = p.buffers[at(c)];
  REQUIRE(first.offset[0] == later.offset[0]);
  timeline const t = simulate(p, m, slow_link{});
  for (span const& s : t.spans) if (s.task == 2) CHECK(s.start == 101);
  for (memory_sample const& s : t.memory) CHECK(s.bytes <= p.arena[at(s.device)]);
  // elsewhere in the arena it need not wait
  p.buffers[at(c)].offset[0] = p.arena[0];
  p.arena[0] += 256;
  for (span const& s : simulate(p, m, slow_link{}).spans) if (s.task == 2) CHECK(s.start == 1);
}

TEST_CASE("memory over tasks: lifetimes, persistent buffers, workspaces") {
  writer w;
  int const weight = w.add_buffer({dim(100)}, whole(0), true), x = w.add_buffer({dim(10)}, whole(0));
  int const y = w.compute({x});
  w.compute({y, weight}, add{});
  program p = std::move(w).finish(1);
  CHECK(memory_over_tasks(p, 0) == std::vector<i64>{400 + 40 + 40, 400 + 40 + 40});
  buffer scratch;
  scratch.type = {dim(5)};
  scratch.bytes = 20;
  scratch.first = scratch.last = 1;
  scratch.devices = {0};
  scratch.where = whole(0);
  p.buffers.push_back(scratch);
  p.tasks[1].workspace = 4;
  CHECK(memory_over_tasks(p, 0) == std::vector<i64>{480, 500});
  CHECK(peak_memory(p, 1) == std::vector<i64>{500});
}

TEST_CASE("random programs: the oracle's times, the laws, the memory") {
  int checked = 0, levels = 0;
  for (u64 seed = 1; seed <= 120; ++seed) {
    CAPTURE(seed);
    machine m = seed % 3 == 0 ? preset("autodist-b12") : seed % 3 == 1 ? logical_nodes(2, 2) : logical(6);
    if (seed % 3 == 2) m.links.insert(m.links.begin(), {"threes", 3, 1e-6, 1e10});
    m.lane_per_link = seed % 2 == 0;
    program const p = random_program(m, 5 + static_cast<int>(seed % 25), seed);
    laws::decreed const model{seed};
    simulation::task_prices const cost = simulation::price(p, m, model);
    double const longest = critical_path(p, m, cost), sum = simulation::serial_seconds(p, m, cost);
    for (bool overlap : {true, false}) {
      timeline const t = simulate(p, m, model, {.overlap = overlap});
      auto const want = simulation::run_on_lanes(expand(p, m, cost, overlap), lanes_of(m) * m.size());
      CHECK(t.seconds == simulation::finish(want));
      double total = 0, total_want = 0;                             // of all starts, so that every task counts
      for (span const& s : t.spans) total += s.start;
      auto const graph = expand(p, m, cost, overlap);
      for (std::size_t i = 0; i < want.size(); ++i) total_want += want[i].start * static_cast<double>(graph[i].lanes.size());
      CHECK(total == total_want);
      CHECK(longest <= t.seconds);
      CHECK(t.seconds <= sum);
      CHECK(t.seconds >= simulate(p, m, model).seconds);            // a lane more never hurts
      for (std::size_t i = 1; i < t.spans.size(); ++i) {
        span const &a = t.spans[i - 1], &b = t.spans[i];
        CHECK(std::tuple(a.device, a.where, a.link) <= std::tuple(b.device, b.where, b.link));
        if (a.device == b.device && a.where == b.where && a.link == b.link) CHECK(a.end <= b.start);
        levels += b.link > 0;
      }
      for (memory_sample const& s : t.memory) { CHECK(s.bytes <= p.arena[at(s.device)]); CHECK(s.bytes >= 0); }
      timeline const again = simulate(p, m, model, {.overlap = overlap});
      CHECK(again.spans == t.spans);
      CHECK(again.memory == t.memory);
      ++checked;
    }
    auto const peak = peak_memory(p, m.size());
    for (int d = 0; d < m.size(); ++d) CHECK(peak[at(d)] <= p.arena[at(d)]);
  }
  CHECK(levels > 100);
  CHECK(checked == 240);
}

TEST_CASE("a training step as the unrolling writes it: laws, memory, and what a slower link costs") {
  computation_graph g;
  int x = g.add_input("x", {dim(32), dim(64)});
  int const label = g.add_input("label", shape{dim(32)}.of(dtype::i32));
  for (i64 width : {64, 10}) {
    x = g.node(g.add_with_weights(linear{width}, {x}, "l" + std::to_string(width))).out[0];
    if (width == 64) x = g.node(g.add(relu{}, {x})).out[0];
  }
  g.add_output("loss", g.node(g.add(cross_entropy{}, {x, label})).out[0]);
  training_options two;
  two.micro_batches = 2;
  training_graph const t = differentiate(g, two);
  for (char kind : {'s', 'b', 'm'}) {                       // one device; the batch split; hidden units split as well
    plan choice;
    choice.cluster = preset("logical-2x2");
    choice.micro_batches = 2;
    for (int v = 0; v < t.forward_nodes; ++v) {
      auto const space = ir::space_of(t.graph, v);
      ir::sharding s;
      if (kind != 's' && space.loops.front().units % 4 == 0) s.axes = {{space.loops.front().letter, kind == 'b' ? 4 : 2, 1}};
      if (kind == 'm' && t.graph.node(v).op.is<linear>() && space.find('o')->units % 2 == 0) s.axes.push_back({'o', 2, 2});
      else if (kind == 'm') s.axes.push_back({'\0', 2, 2});
      choice.nodes.push_back({s});
    }
    program const p = unroll(t, choice);
    simulation::task_prices const cost = simulation::price(p, choice.cluster, cost::analytical{});
    timeline const with = simulate(p, choice.cluster, cost), without = simulate(p, choice.cluster, cost, {.overlap = false});
    CAPTURE(kind);
    CHECK(critical_path(p, choice.cluster, cost) <= with.seconds);
    CHECK(with.seconds <= without.seconds);
    CHECK(without.seconds <= simulation::serial_seconds(p, choice.cluster, cost) * (1 + 1e-12));
    std::size_t spans = 0;
    for (task const& k : p.tasks) spans += k.devices.size();
    CHECK(with.spans.size() == spans);
    CHECK(simulation::finish(simulation::run_on_lanes(expand(p, choice.cluster, cost, true), 8)) == doctest::Approx(with.seconds));
    for (memory_sample const& m : with.memory) CHECK(m.bytes <= p.arena[at(m.device)]);
    machine slower = choice.cluster;
    for (link_level& l : slower.links) l.bandwidth /= 100;
    double const slow = simulate(p, slower, cost::analytical{}).seconds;
    if (kind == 'b') CHECK(slow > with.seconds);
    if (kind == 's') CHECK(with.seconds == doctest::Approx(simulation::serial_seconds(p, choice.cluster, cost)));
  }
}

TEST_CASE("64 devices, 5,000 tasks") {
  machine const m = preset("dgx-h100:8");
  writer w;
  shape const s{dim(512), dim(512)};
  int x = w.add_buffer(s, over(ir::part_kind::shard, 64));
  while (w.p.tasks.size() < 5000) {
    int const y = w.compute({x});
    int const z = w.move(y, ir::layout{0, {{ir::part_kind::shard, 0, 8, 8}, {ir::part_kind::replicate, -1, 8, 1}}});
    x = w.move(w.compute({z}), over(ir::part_kind::shard, 64));
  }
  program const p = std::move(w).finish(64);
  auto const start = std::clock();                                          // of the processor: other processes do not count
  timeline const t = simulate(p, m, cost::analytical{});
  double const took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  auto const bare_start = std::clock();
  simulation::task_prices const cost = simulation::price(p, m, cost::analytical{});
  double const pricing = static_cast<double>(std::clock() - bare_start) / CLOCKS_PER_SEC;
  CHECK(simulate(p, m, cost, {.memory = false}).seconds == t.seconds);
  double const bare = static_cast<double>(std::clock() - bare_start) / CLOCKS_PER_SEC;
  MESSAGE("prices " << pricing << " s, prices and times without memory " << bare << " s");
  MESSAGE(p.tasks.size() << " tasks, " << t.spans.size() << " spans, " << took << " s");
  CHECK(t.spans.size() == p.tasks.size() * 64);
  CHECK(took < 3);                        // 0.3 s in a release build; room for sanitizers
}
