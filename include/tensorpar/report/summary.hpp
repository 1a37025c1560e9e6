// tensorpar/report/summary.hpp - what a plan comes to: per operator, per collective, per device, and what
// dominates
#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/ir/machine/precision.hpp>
#include <tensorpar/op/core/spelling.hpp>
#include <tensorpar/op/kinds/contraction.hpp>
#include <tensorpar/plan/plan.hpp>
#include <tensorpar/program/core/scratch.hpp>
#include <tensorpar/report/choices.hpp>
#include <tensorpar/report/exposed_communication.hpp>
#include <tensorpar/program/memory_by_kind.hpp>
#include <tensorpar/report/units.hpp>
#include <tensorpar/simulate/throughput.hpp>

namespace tensorpar::report {

/// A forward operator with all that was derived from it (gradients, updates, reshards for them).
struct operator_summary {
  int node = -1;
  std::string name, op, sharding;
  std::vector<int> devices;
  operator_choice choice = {};
  double compute = 0, move = 0;            // seconds, the busiest device's
  std::array<double, move_kinds> bytes{};  // sent by all devices together
  double sent() const {
    double b = 0;
    for (double x : bytes) b += x;
    return b;
  }
};
struct device_summary {
  double compute = 0, move = 0;  // busy seconds; the two may overlap
  i64 peak = 0, capacity = 0;
  passes::memory_by_kind memory = {};  // in use when most is; between buffers lies the rest
};
struct plan_summary {
  std::string name, model, cluster;
  std::string strategy;                // in a sentence, where given (report/strategy.hpp)
  std::string numbers;                 // number format, bytes of a number, FLOP/s of the devices, in words
  int micro_batches = 1;               // of a pipeline those of the stage that has most
  bool summed = false;                 // the loss is the sum of micro-batches' losses, else their mean
  int prefetch = 0;                    // collectives start so many operators ahead
  bool ordered = false;                     // operators run in an order that the plan gives, not by number
  std::string scratch;                      // whose scratch space is in `peak`, in words
  // simulated step; the search's lower bound and its own estimate (0: none)
  double seconds = 0, bound = 0, cost = 0;
  bool of_steps = false;         // the bound and the cost are those of simulated steps
  simulation::throughput rate;                          // of that step
  std::array<double, move_kinds> bytes{};   // sent by all devices in one step, by kind of reshard
  std::array<i64, move_kinds> times{};      // tasks
  std::vector<operator_summary> operators;
  std::vector<device_summary> devices;
  communication_time communication;         // of the busiest device
  double recomputing = 0;                   // seconds of the device that computes most again
  std::string dominated;  // a sentence
  double sent() const {
    double b = 0;
    for (double x : bytes) b += x;
    return b;
  }
  i64 peak() const {
    i64 m = 0;
    for (device_summary const& d : devices) m = std::max(m, d.peak);
    return m;
  }
  /// Bytes that the device lacks most, 0 if the plan fits. A device of unknown capacity holds anything.
  i64 lacks() const {
    i64 m = 0;
    for (device_summary const& d : devices)
      if (d.capacity > 0) m = std::max(m, d.peak - d.capacity);
    return m;
  }
};

/// "51.6 samples/s, 26400 tokens/s (413 a device), 38 % of the devices' FLOP/s (MFU)"; "" without a time.
inline std::string throughput_text(plan_summary const& s) {
  simulation::throughput const& t = s.rate;
  if (t.samples <= 0) return "";
  std::string r = detail::three(t.samples) + " samples/s";
  if (t.tokens > 0)
    r += ", " + detail::three(t.tokens) + " tokens/s (" +
         detail::three(t.tokens / static_cast<double>(s.devices.size())) + " a device)";
  return r + ", " + detail::printed("%.1f", 100 * t.mfu) + " % of the devices' FLOP/s (MFU)";
}

/// "weights 15.0 GiB, gradients 3.1 GiB": kinds that there are.
inline std::string memory_text(passes::memory_by_kind const& m, char const* between = ", ") {
  std::string r;
  for (std::size_t k = 0; k < m.bytes.size(); ++k)
    if (m.bytes[k] > 0)
      r += (r.empty() ? "" : between) + std::string(passes::memory_kind_names[k]) + " " +
           bytes_text(static_cast<double>(m.bytes[k]));
  return r;
}
/// An operator with its attributes, those that are empty left out; a contraction by its notation.
inline std::string op_text(op::any_op const& op) {
  if (op.is<contraction>()) return "contraction{" + std::string(op.as<contraction>().spelled().view()) + "}";
  std::string const all = op::spell(op);
  std::size_t const open = all.find('{');
  if (open == all.npos) return all;
  std::string kept;
  for (std::size_t at = open + 1; at < all.size();) {
    std::size_t const end = std::min(all.find(',', at), all.size() - 1);
    if (end > at && all[end - 1] != '=') kept += (kept.empty() ? "" : ",") + all.substr(at, end - at);
    at = end + 1;
  }
  return kept.empty() ? all.substr(0, open) : all.substr(0, open) + "{" + kept + "}";
}

/// How a node is sharded: "batch /2, o /4", "2 copies", "one device".
inline std::string sharding_text(computation_graph const& g, int v, ir::sharding const& s) {
  ir::iteration_space const space = ir::space_of(g, v);
  std::vector<std::pair<std::string, i64>> parts;  // one loop split twice is named once
  for (ir::mesh_axis const& a : s.axes) {
    if (a.degree <= 1) continue;
    std::string what = "copies";
    if (ir::node_loop const* l = a.letter ? space.find(a.letter) : nullptr) {
      what =
          a.letter >= '0' && a.letter <= '9' ? "axis " + std::string(1, a.letter) : std::string(1, a.letter);
      graph_node const& n = g.node(v);
      for (std::size_t k = 0; k < n.out.size(); ++k)
        if (l->out[k] >= 0 && g.type(n.out[k]).d[l->out[k]].name)
          what = op::spell(g.type(n.out[k]).d[l->out[k]].name);
      if (l->reduced) {
        for (std::size_t k = 0; k < n.in.size(); ++k)
          if (l->in[k] >= 0 && g.type(n.in[k]).d[l->in[k]].name)
            what = op::spell(g.type(n.in[k]).d[l->in[k]].name);
        what += " (summed)";
      }
    }
    bool again = false;
    for (auto& p : parts)
      if (p.first == what) {
        p.second *= a.degree;
        again = true;
      }
    if (!again) parts.push_back({what, a.degree});
  }
  std::string r;
  for (auto const& [what, n] : parts)
    r += (r.empty() ? "" : ", ") +
         (what == "copies" ? std::to_string(n) + " copies" : what + " /" + std::to_string(n));
  return r.empty() ? "one device" : r;
}
inline std::vector<int> sharding_devices(ir::sharding const& s) {
  ir::layout l{s.start, {}};
  for (ir::mesh_axis const& a : s.axes) l.axes.push_back({ir::part_kind::replicate, -1, a.degree, a.stride});
  std::vector<int> d = l.devices();
  std::sort(d.begin(), d.end());
  return d;
}
namespace detail {

/// The largest entry as ", most of it for X (1.2 ms)", or "" for none.
inline std::string largest_text(std::map<std::string, double> const& m, char const* preposition) {
  double sum = 0, best = 0;
  std::string name;
  for (auto const& [what, t] : m) {
    sum += t;
    if (t > best) {
      best = t;
      name = what;
    }
  }
  if (best <= 0) return "";
  return std::string(2 * best > sum ? ", most of it " : ", the largest part ") + preposition + " " + name +
         " (" + seconds_text(best) + ")";
}

/// What the busiest device does with the step, compute by forward operator (by kind of operator, if they are
/// many).
inline std::string dominating(plan_summary const& s, computation_graph const& g, program const& q,
                              timeline const& time) {
  if (time.spans.empty() || s.seconds <= 0 || s.devices.empty()) return "nothing was timed";
  std::size_t busiest = 0;
  for (std::size_t d = 0; d < s.devices.size(); ++d)
    if (s.devices[d].compute + s.devices[d].move > s.devices[busiest].compute + s.devices[busiest].move)
      busiest = d;
  device_summary const& b = s.devices[busiest];
  std::map<std::string, double> work, moves;
  for (span const& x : time.spans) {
    if (x.device != static_cast<int>(busiest) || x.task < 0 || x.task >= static_cast<int>(q.tasks.size()))
      continue;
    task const& t = q.tasks[idx(x.task)];
    if (communicates(t)) {
      moves[move_text(t.step.kind)] += x.end - x.start;
      continue;
    }
    int const v = served(g, t);
    std::string what = v >= 0 && v < static_cast<int>(s.operators.size())
                           ? s.operators[idx(v)].name
                           : std::string();
    if (v < 0)
      what = x.name;
    else if (s.operators.size() > 24 || what.empty())
      what = g.node(v).op.op ? std::string(g.node(v).op.op->name) : "#" + std::to_string(v);
    work[what] += x.end - x.start;
  }
  bool const by_moves = b.move > b.compute;
  std::string const compute = "computes for " + percent_text(b.compute / s.seconds) + " of the step" +
                              largest_text(work, "for"),
                    move = "communicates for " + percent_text(b.move / s.seconds) + largest_text(moves, "in");
  double const covered = std::max(b.compute, b.move) / s.seconds;
  return std::string(by_moves ? "communication" : "computation") + (covered < 0.5 ? " and waiting" : "") +
         ": device " + std::to_string(busiest) + " " + compute + "; it " + move;
}

/// Memory of every device; not yet what it does.
inline std::vector<device_summary> devices_of(training_graph const& t, plan const& p, program const& q) {
  std::vector<device_summary> r(p.cluster.device.size());
  std::vector<passes::memory_by_kind> const memory = passes::memory_of(t, q);
  for (std::size_t d = 0; d < r.size(); ++d) {
    r[d].peak = d < q.arena.size() ? q.arena[d] : 0;
    r[d].capacity = p.cluster.kind_of(static_cast<int>(d)).memory;
    if (d < memory.size()) r[d].memory = memory[d];
  }
  return r;
}

}  // namespace detail

/// O(tasks + spans + operators).
inline plan_summary summary_of(std::string name, training_graph const& t, plan const& p, program const& q,
                               timeline const& time) {
  require_feasible(p);
  computation_graph const& g = t.graph;
  plan_summary s;
  s.name = std::move(name);
  s.model = p.model;
  s.cluster = p.cluster.name;
  s.numbers = precision_text(p.cluster, p.precision, p.optimizer);
  s.micro_batches = p.micro_batches;
  for (int v = 0; v < t.forward_nodes; ++v)
    s.micro_batches = std::max(s.micro_batches, g.node(v).micro_batches);
  s.summed = t.reduction == loss_reduction::sum;
  s.ordered = !p.node_order.empty();
  s.scratch =
      q.scratch && p.scratch.empty() ? "with kernels' scratch" : scratch_text(q.scratch ? p.scratch : "");
  s.seconds = time.seconds;
  if (s.seconds > 0) s.rate = simulation::throughput_of(t, p, s.seconds);
  s.bound = p.bound;
  s.cost = p.cost;
  s.of_steps = p.cost > 0 && p.cost == p.step_seconds;
  s.prefetch = p.prefetch;
  s.devices = detail::devices_of(t, p, q);
  std::vector<operator_choice> const choices = choices_of(t, p, q);
  for (int v = 0; v < static_cast<int>(choices.size()); ++v) {
    ir::sharding const& x = p.nodes[idx(v)].sharding;
    operator_summary o;
    o.node = v;
    o.name = g.node(v).name;
    o.op = op_text(g.node(v).op);
    o.sharding = sharding_text(g, v, x);
    o.devices = sharding_devices(x);
    o.choice = choices[idx(v)];
    s.operators.push_back(std::move(o));
  }
  auto slot = [&](int task) -> operator_summary* {
    if (task < 0 || task >= static_cast<int>(q.tasks.size())) return nullptr;
    int const v = served(g, q.tasks[idx(task)]);
    return v >= 0 && v < static_cast<int>(s.operators.size()) ? &s.operators[idx(v)]
                                                              : nullptr;
  };
  for (std::size_t i = 0; i < q.tasks.size(); ++i) {
    task const& x = q.tasks[i];
    if (!is_movement(x)) continue;
    double const b = bytes_of_move(q, x);
    auto const k = idx(x.step.kind);
    s.bytes[k] += b;
    ++s.times[k];
    if (operator_summary* o = slot(static_cast<int>(i))) o->bytes[k] += b;
  }
  std::map<std::pair<int, int>, std::pair<double, double>> busy;  // (operator, device) -> compute, move
  std::map<int, double> again;                                    // by device
  for (span const& x : time.spans) {
    double const n = x.end - x.start;
    bool const talks = communicates(q, x);
    if (x.device >= 0 && x.device < static_cast<int>(s.devices.size())) {
      device_summary& d = s.devices[idx(x.device)];
      (talks ? d.move : d.compute) += n;
    }
    int const v = x.task < 0 || talks ? -1 : int(q.tasks[idx(x.task)].node);
    if (v >= 0 && g.node(v).recomputed) s.recomputing = std::max(s.recomputing, again[x.device] += n);
    if (operator_summary* o = slot(x.task)) {
      auto& b = busy[{o->node, x.device}];
      (talks ? b.second : b.first) += n;
    }
  }
  for (std::size_t d = 0; d < q.listed_for.size(); ++d) {  // others do as one that is listed
    device_summary const& like = s.devices[idx(q.listed_for[d])];
    s.devices[d].compute = like.compute;
    s.devices[d].move = like.move;
  }
  for (auto const& [key, b] : busy) {
    operator_summary& o = s.operators[idx(key.first)];
    o.compute = std::max(o.compute, b.first);
    o.move = std::max(o.move, b.second);
  }
  s.communication = exposed_communication(q, time);
  s.dominated = detail::dominating(s, g, q, time);
  return s;
}

}  // namespace tensorpar::report
