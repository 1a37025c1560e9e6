// tensorpar/program/unroller.hpp - a plan's tasks, one after another: operators, reshards, sums over
// micro-batches, buffers' lives
#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/ir/exchange.hpp>
#include <tensorpar/ir/gradient_sums.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>
#include <tensorpar/plan/plan.hpp>
#include <tensorpar/program/arena.hpp>
#include <tensorpar/program/core/scratch.hpp>
#include <tensorpar/program/node_spaces.hpp>
#include <tensorpar/program/operator_order.hpp>
#include <tensorpar/program/overwritten.hpp>
#include <tensorpar/program/passes/pipeline_pass.hpp>
#include <tensorpar/program/step_meshes.hpp>
#include <tensorpar/program/unrollable.hpp>

namespace tensorpar::passes::detail {

class unroller : step_meshes {
 public:
  program out;

  /// Without `keep` tasks are counted only, for buffers' lives.
  unroller(training_graph const& t, plan const& p, workspace_rule w, listed_devices listed = {},
           bool keep = true)
      : step_meshes(t, p), t_(t), g_(t.graph), plan_(p), workspace_(w), keep_(keep),
        summed_(ir::gradient_sums(t)) {
    out.micro_batches = p.micro_batches;
    out.scalar_bytes = p.scalar_bytes;
    out.scratch = w != no_workspace;
    require_unrollable(t, p);
    spaces_ = passes::spaces_of(g_);
    require(t.forward_nodes, spaces_);
    out.listed_for = list(listed);
    readers_.resize(g_.values.size());
    for (int v = 0; v < g_.node_count(); ++v)
      for (std::size_t k = 0; k < g_.node(v).in.size(); ++k)
        readers_[idx(g_.node(v).in[k])].push_back({v, static_cast<int>(k)});
    copies_.resize(g_.values.size() * idx(p.micro_batches + 1));
    state_home_.assign(g_.values.size(), {-1, -1});
    for (int n = g_.node_count() - 1; n >= t.forward_nodes; --n)
      if (g_.node(n).phase == step_phase::update)
        for (std::size_t k = g_.node(n).in.size(); k-- > 0;)
          state_home_[idx(g_.node(n).in[k])] = {static_cast<int>(k), n};
  }

  /// `updates`: the whole training step; else the forward operators alone, every output kept. `groups`: all
  /// nodes, in an order that groups of devices agreed on; empty: the plan's order.
  void run(bool updates, std::vector<int> const& groups = {}) {
    for (std::size_t x = 0; x < g_.values.size(); ++x)
      if (home_of(static_cast<int>(x)).second >= 0) persistent(static_cast<int>(x));
    out.buffers.reserve(idx(g_.node_count()) * idx(plan_.micro_batches) * 3 / 2);
    if (keep_) out.tasks.reserve(idx(g_.node_count()) * idx(plan_.micro_batches) * 3 / 2);
    int const last = plan_.micro_batches - 1;
    grouped_ = !groups.empty();
    order_ = node_order(grouped_ ? groups : step_order(t_, plan_.node_order));
    for (micro_ = 0; micro_ <= last; ++micro_)
      for (int i = 0; i < (updates ? g_.node_count() : t_.forward_nodes); ++i) {
        int const v = order_.node(i);
        if (g_.node(v).phase == step_phase::update && micro_ < last) continue;
        compute(v);
        if (last > 0)
          for (int x : g_.node(v).out)
            if (summed_[idx(x)].added) accumulate(v, x);
      }
  }
  /// Lifetimes to the end of the step, and offsets.
  void finish(bool updates) {
    // halves of exchanges may be apart
    int const end = std::max(0, (keep_ ? static_cast<int>(out.tasks.size()) : now_) - 1);
    std::vector<char> kept(g_.values.size(), 0);
    if (updates) for (int x : t_.losses) kept[idx(x)] = 2;
    if (int const norm = gradient_norm(t_); updates && norm >= 0) kept[idx(norm)] = 3;
    for (graph_port const& o : g_.outputs) kept[idx(o.value)] |= updates ? 1 : 3;
    for (buffer& b : out.buffers)
      if (b.persistent) b.first = 0, b.last = end;
      else if (b.value >= 0 && kept[idx(b.value)] == 3) b.last = end;
    for (buffer& b : out.buffers)                       // what is read again is left as it is
      if (b.in_place_of >= 0 && at(b.in_place_of).last > b.first) b.in_place_of = -1;
    assign_offsets(out, plan_.cluster.size());
  }

 private:
  training_graph const& t_;
  computation_graph const& g_;
  plan const& plan_;
  workspace_rule workspace_;
  bool keep_;
  int now_ = 0;                                                 // tasks so far
  std::vector<ir::iteration_space> spaces_;
  // by value: (operand, update) that reads it first
  std::vector<std::pair<int, int>> state_home_;
  std::vector<std::vector<std::pair<int, int>>> readers_;       // by value: (node, operand)
  // by value and micro-batch (see `copies_of`): buffers, the producer's first
  std::vector<std::vector<int>> copies_;
  // gradient -> its sum over micro-batches, and copies of that
  std::map<int, std::vector<int>> sums_;
  std::vector<ir::gradient_sum> summed_;
  // (value, micro-batch, backward?) -> the first of these, and others
  std::map<std::array<int, 3>, std::vector<int>> apart_;
  int micro_ = 0;
  node_order order_;
  bool grouped_ = false;                                        // the order is that of a pipeline's groups

  ir::iteration_space const& space(int v) const { return spaces_[idx(v)]; }
  buffer& at(int b) { return out.buffers[idx(b)]; }

  /// (node, operand) in whose layout a parameter or state lives; node -1: this value is neither, or is never
  /// updated nor read.
  std::pair<int, int> home_of(int x) const {
    graph_value const& v = g_.value(x);
    if (v.role == value_role::parameter) {
      int const n = t_.home[idx(x)];
      if (n >= 0)
        for (std::size_t k = 0; k < g_.node(n).in.size(); ++k)
          if (g_.node(n).in[k] == x) return {static_cast<int>(k), n};
    }
    return v.role == value_role::state ? state_home_[idx(x)] : std::pair(-1, -1);
  }

  int add_buffer(int value, shape const& type, ir::layout l, bool persistent) {
    buffer b;
    b.value = value;
    b.type = type;
    b.bytes = core::saturating_mul(ir::part_of(l, type).elements(), bytes_of(type.type, plan_.scalar_bytes));
    b.devices = devices(l);
    b.where = std::move(l);
    b.persistent = persistent;
    b.first = b.last = now_;
    out.buffers.push_back(std::move(b));
    return static_cast<int>(out.buffers.size()) - 1;
  }
  void persistent(int x) {
    auto const [k, n] = home_of(x);
    copies_of(x, -1) = {
        add_buffer(x, g_.type(x), ir::operand_layout(space(n), g_.node(n).letters, mesh_of(n), k), true)};
  }
  /// Micro-batch -1: parameters and states, of which there is one for all.
  std::vector<int>& copies_of(int x, int micro) {
    return copies_[idx(x) * idx(plan_.micro_batches + 1) + idx(micro + 1)];
  }
  std::vector<int>& copies(int x) {
    value_role const r = g_.value(x).role;
    if (r == value_role::parameter || r == value_role::state) return copies_of(x, -1);
    int const p = g_.value(x).producer;
    if (p >= 0 && g_.node(p).phase == step_phase::update) return copies_of(x, plan_.micro_batches - 1);
    return copies_of(x, micro_);
  }
  /// What `consumer` may read or move value x from. Updates read a gradient's sum over micro-batches, all
  /// others what is of their own. Weights in parts are gathered for each pass, or once a step. What
  /// recomputed operators and their derivatives read is moved anew, so that no copy has to stay from the
  /// forward pass; but stages keep what came from other devices (Narayanan et al. 2021, section 3.5).
  std::vector<int>& copies_for(int x, int consumer) {
    graph_node const& n = g_.node(consumer);
    if (n.phase == step_phase::update)
      if (auto const sum = sums_.find(x); sum != sums_.end()) return sum->second;
    std::vector<int>& all = copies(x);
    graph_value const& v = g_.value(x);
    bool const in_parts = v.role == value_role::parameter && n.phase != step_phase::update &&
                          t_.home[idx(x)] >= t_.forward_nodes && !ir::gathered_once(t_, x);
    bool const anew = n.refetch_operands && v.producer >= 0 &&
                      g_.node(v.producer).phase == step_phase::forward &&
                      meets(at(all.front()).where, mesh_of(consumer));
    if (!in_parts && !anew) return all;
    std::vector<int>& own = apart_[{x, micro_ + n.micro_batch, n.phase == step_phase::backward}];
    if (own.empty()) own.push_back(all.front());
    return own;
  }

  /// Whether one of both holds the other's first device.
  static bool meets(ir::layout const& l, ir::sharding const& s) {
    return l.holds(s.start) || mesh_layout(s).holds(l.start);
  }
  void use(int b) { at(b).last = std::max(at(b).last, now_); }
  void append(task t) {
    for (int b : t.in) use(b);
    for (int b : t.out) use(b);
    ++now_;
    if (keep_) out.tasks.push_back(std::move(t));
  }

  /// A buffer that holds value x in layout l: an existing one, the host's (inputs come in any layout), or one
  /// moved there.
  int bring(int x, ir::layout const& l, int reader) { return bring(x, l, reader, copies_for(x, reader)); }
  int bring(int x, ir::layout const& l, int consumer, std::vector<int>& have) {
    for (int b : have) if (at(b).where == l) return b;
    if (g_.value(x).role == value_role::input) {
      have.push_back(add_buffer(x, g_.type(x), l, false));
      return have.back();
    }
    int from = have.front();
    double cheapest = -1;
    std::vector<ir::reshard_step> steps;
    for (int b : have) {
      auto m = ir::reshard(at(b).where, l, g_.type(x));
      double bytes = 0;
      for (ir::reshard_step const& s : m) bytes += ir::bytes_sent(s, g_.type(x), plan_.scalar_bytes);
      if (cheapest < 0 || bytes < cheapest) { cheapest = bytes; from = b; steps = std::move(m); }
    }
    carry(x, std::move(steps), from, consumer, &have);
    return have.back();
  }
  /// Moves buffer `from` of value x step by step, at last into buffer `home` if there is one. `have`: takes
  /// the others.
  void carry(int x, std::vector<ir::reshard_step> steps, int from, int consumer, std::vector<int>* have,
             int home = -1) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      ir::reshard_step& s = steps[i];
      task t;
      t.kind = task_kind::reshard;
      t.node = consumer;
      t.micro_batch = micro_;
      t.in = {from};
      t.devices =
          s.kind == ir::reshard_kind::exchange ? joined(devices(s.before), devices(s.after))
              : devices(s.after);
      if (keep_) t.name = std::string(ir::name_of(s.kind)) + " for " + label(consumer);
      bool const ends = home >= 0 && i + 1 == steps.size();
      from = ends ? home : add_buffer(x, g_.type(x), s.after, false);
      t.out = {from};
      if (i64 const scalars = ir::packing_scalars(s, g_.type(x)); scalars > 0 && !t.devices.empty()) {
        ir::layout everywhere = s.kind == ir::reshard_kind::exchange ? union_layout(t.devices)
            : mesh_like(s.after);
        t.workspace = add_buffer(-1, shape{dim(scalars)}.of(g_.type(x).type), std::move(everywhere), false);
        at(t.workspace).devices = t.devices;
      }
      t.step = std::move(s);
      append(std::move(t));
      if (!ends && have) have->push_back(from);
    }
  }
  std::string label(int v) const {
    return g_.node(v).name.empty() ? std::string(g_.node(v).op.op->name)
                                   : g_.node(v).name + ":" + std::string(g_.node(v).op.op->name);
  }

  void compute(int v) {
    graph_node const& n = g_.node(v);
    task t;
    t.node = v;
    t.micro_batch = micro_;
    t.op = n.op;
    if (keep_) t.name = label(v);
    t.mesh = mesh_of(v);
    // Gradients that lie alike are added where they lie, even as partial sums: addition is linear.
    bool const alike = n.op.is<tensorpar::add>() && n.phase == step_phase::backward && !n.in_parts &&
                       at(copies(n.in[0]).front()).where == at(copies(n.in[1]).front()).where;
    if (alike) {
      ir::layout const l = at(copies(n.in[0]).front()).where;
      t.mesh = {l.start, {}};
      for (ir::layout_axis const& a : l.axes) t.mesh.axes.push_back({'\0', a.degree, a.stride});
      t.in = {copies(n.in[0]).front(), copies(n.in[1]).front()};
      t.devices = devices(l);
      t.out = {add_buffer(n.out[0], g_.type(n.out[0]), l, false)};
      if (n.in_place) at(t.out[0]).in_place_of = t.in[0];
      copies(n.out[0]).push_back(t.out[0]);
      append(std::move(t));
      return;
    }
    t.devices = devices(mesh_layout(t.mesh));
    int const before = now_;
    for (std::size_t k = 0; k < n.in.size(); ++k)
      t.in.push_back(bring(n.in[k], ir::operand_layout(space(v), n.letters, t.mesh, static_cast<int>(k)), v));
    // the host feeds an input where it is first read: here, not where a later operand is moved
    for (std::size_t k = 0; k < n.in.size(); ++k)
      if (g_.value(n.in[k]).role == value_role::input && at(t.in[k]).first >= before)
        at(t.in[k]).first = now_;
    // what was updated in parts, and where all of it belongs
    std::vector<std::pair<int, int>> elsewhere;
    std::vector<shape> in, res;
    for (int b : t.in) in.push_back(ir::part_of(at(b).where, at(b).type));
    for (std::size_t k = 0; k < n.out.size(); ++k) {
      int const stored = g_.value(n.out[k]).stored_in;
      ir::layout l = ir::result_layout(space(v), n.letters, t.mesh, static_cast<int>(k));
      int const home = stored >= 0 ? copies_of(stored, -1).front() : -1;
      bool const there = home >= 0 && at(home).where == l;
      int const b = there ? home : add_buffer(n.out[k], g_.type(n.out[k]), std::move(l), false);
      if (home >= 0 && !there) elsewhere.push_back({b, home});
      t.out.push_back(b);
      copies(n.out[k]).push_back(b);
      res.push_back(ir::part_of(at(b).where, at(b).type));
    }
    if (i64 const scalars = workspace_(n.op, {in.data(), static_cast<int>(in.size())},
                                       {res.data(), static_cast<int>(res.size())});
        scalars > 0)
      t.workspace = add_buffer(-1, shape{dim(scalars)}, mesh_layout(t.mesh), false);
    if (int const x = overwritten(g_, out, t); x >= 0) at(t.out[0]).in_place_of = x;
    append(std::move(t));
    part_with(v);
    for (auto const& [b, home] : elsewhere)
      carry(at(b).value, ir::reshard(at(b).where, at(home).where, at(home).type), b, v, nullptr, home);
  }

  /// Results that go on in some of their devices alone are sent there at once: the others would come to their
  /// halves of the exchange after all that stands between, such as a branch of their own. So are those that
  /// go to devices which have nothing to do until then. Within a pass: what the other pass reads would have
  /// to stay that long.
  void part_with(int v) {
    graph_node const& n = g_.node(v);
    if (n.phase == step_phase::update) return;
    for (int x : n.out)
      for (auto const& [c, k] : readers_[idx(x)]) {
        graph_node const& m = g_.node(c);
        if (m.in_parts) bring(x, ir::operand_layout(space(c), m.letters, mesh_of(c), k), c);
        // may add where they lie
        if (m.phase != n.phase || (m.op.is<tensorpar::add>() && m.phase == step_phase::backward)) continue;
        ir::layout const here = at(copies(x).front()).where;
        ir::sharding const s = mesh_of(c);
        if (s.start == here.start && s.size() >= here.size()) continue;
        ir::layout const there = ir::operand_layout(space(c), m.letters, s, k);
        bool within = true;
        for (int d : there.devices()) within = within && here.holds(d);
        // groups' orders send by themselves
        if (!within && (grouped_ || !nothing_between(v, c, here, there, order_))) continue;
        auto const steps = ir::reshard(here, there, g_.type(x));
        if (std::any_of(steps.begin(), steps.end(),
                        [](ir::reshard_step const& y) { return y.kind == ir::reshard_kind::exchange; }))
          bring(x, there, c);
      }
  }

  /// Adds this micro-batch's gradient x to the first one's, in place: all readers of that one have run.
  void accumulate(int v, int x) {
    auto const [added, update, operand] = summed_[idx(x)];
    int mine = copies(x).front();
    if (update >= 0)
      mine = bring(x, ir::operand_layout(space(update), g_.node(update).letters, mesh_of(update), operand),
                   update, copies(x));
    int const sum = sums_.try_emplace(x, std::vector<int>{mine}).first->second.front();
    if (micro_ == 0) return;
    task t;
    t.node = v;
    t.micro_batch = micro_;
    t.op = tensorpar::add{};
    t.name = "accumulate " + label(v);
    t.in = {sum, mine};
    t.out = {sum};
    t.mesh = {at(sum).where.start, {}};
    for (ir::layout_axis const& a : at(sum).where.axes) t.mesh.axes.push_back({'\0', a.degree, a.stride});
    t.devices = at(sum).devices;
    append(std::move(t));
  }
};

}  // namespace tensorpar::passes::detail
