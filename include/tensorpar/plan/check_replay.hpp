// tensorpar/plan/check_replay.hpp - runs a program without numbers: which box and which contributions every device holds, task by task
#pragma once
#include <map>
#include <tensorpar/op/pointwise.hpp>
#include <tensorpar/plan/check_form.hpp>

namespace tensorpar::detail::check {

/// A set of contributions to a value: (micro-batch, share of the sum), numbered micro-batch * shares + share.
using atoms = std::vector<u64>;
inline atoms atom_range(i64 all, i64 from, i64 n) {
  atoms a(z((all + 63) / 64), 0);
  for (i64 i = from; i < from + n; ++i) a[z(i / 64)] |= u64{1} << (i % 64);
  return a;
}
/// a |= b; false if they have one in common: it would be added twice.
inline bool unite(atoms& a, atoms const& b) {
  bool apart = a.size() == b.size();
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    apart = apart && !(a[i] & b[i]);
    a[i] |= b[i];
  }
  return apart;
}

/// What a buffer holds on one device. `known` is false after a fault, so that what follows from it is not reported again.
struct content {
  bool written = false, known = true, updated = false;
  box at;
  atoms has;
};

/// Replays a program whose form has been checked. Nothing of the unrolling is used: layouts follow from notations and spreads, and what a
/// movement does is worked out from its group and kind, then compared with what it claims.
class replay {
 public:
  replay(training_graph const& t, plan const& p, program const& q, findings& out)
      : t_(t), g_(t.graph), plan_(p), q_(q), out_(out), devices_(p.cluster.size()) {
    held_.resize(q.buffers.size());
    at_.resize(q.buffers.size());
    for (graph_value const& v : g_.values) shares_.push_back(v.producer < 0 ? 1 : 0);
    done_.assign(g_.nodes.size(), std::vector<int>(z(q.micro_batches), 0));
    for (int v = 0; v < g_.node_count(); ++v) spaces_.push_back(space_of(g_, v));
  }

  /// `updates`: a whole training step; else the forward operators alone. O(tasks * devices), exchanges O(senders * receivers).
  void run(bool updates) {
    start();
    for (now_ = 0; now_ < static_cast<int>(q_.tasks.size()) && !out_.full(); ++now_) {
      if (task_().kind == task_kind::move)
        move();
      else
        compute();
      for (int b : ends_[z(now_)]) held_[z(b)] = {};
    }
    now_ = -1;
    if (!out_.full()) finish(updates);
  }

 private:
  training_graph const& t_;
  computation_graph const& g_;
  plan const& plan_;
  program const& q_;
  findings& out_;
  int devices_, now_ = -1;
  std::vector<iteration_space> spaces_;
  std::vector<std::vector<content>> held_;  // by buffer, parallel to its devices; let go after its last task
  std::vector<std::vector<place>> at_;      // by buffer: its layout, made when first written
  std::vector<std::vector<int>> ends_;      // by task: buffers that die with it
  std::vector<i64> shares_;                 // by value: in how many shares its sum came; 0: not computed yet
  std::vector<std::vector<int>> done_;      // by node and micro-batch: how often it ran
  std::vector<bool> updated_;               // by value

  task const& task_() const { return q_.tasks[z(now_)]; }
  buffer const& buf(int b) const { return q_.buffers[z(b)]; }
  void say(fault f, int b, int device, std::string const& what) {
    int const v = now_ >= 0 ? task_().node : -1;
    out_.add({f, now_, b, device, v, (now_ >= 0 ? label(g_, q_, now_) + " " : "") + what});
  }
  static std::string on_device(int d) { return " on device " + std::to_string(d); }

  /// Values of parameters, states, inputs and update operators exist once per step (inputs once per micro-batch).
  bool once(int x) const {
    value_role const r = g_.value(x).role;
    int const p = g_.value(x).producer;
    return r == value_role::parameter || r == value_role::state || (p >= 0 && g_.node(p).phase == step_phase::update);
  }
  i64 batches(int x) const { return once(x) ? 1 : q_.micro_batches; }
  i64 atom_count(int x) const { return batches(x) * shares_[z(x)]; }
  atoms of_batch(int x, int m) const {
    i64 const s = shares_[z(x)];
    return atom_range(atom_count(x), once(x) ? 0 : m * s, s);
  }
  atoms all_of(int x) const { return atom_range(atom_count(x), 0, atom_count(x)); }

  content* held(int b, int device) {
    auto const& d = buf(b).devices;
    auto const it = std::lower_bound(d.begin(), d.end(), device);
    if (it == d.end() || *it != device || held_[z(b)].empty()) return nullptr;
    return &held_[z(b)][z(it - d.begin())];
  }
  std::vector<place> const& layout_of(int b) {
    auto& p = at_[z(b)];
    if (p.empty()) p = places(buf(b).where, buf(b).type, devices_);
    return p;
  }

  void start() {
    ends_.resize(q_.tasks.size());
    updated_.assign(g_.values.size(), false);
    std::vector<int> homes(g_.values.size(), 0);
    for (int b = 0; b < static_cast<int>(q_.buffers.size()); ++b) {
      buffer const& x = buf(b);
      if (!x.persistent) {
        if (x.value >= 0) ends_[z(x.last)].push_back(b);
        continue;
      }
      if (++homes[z(x.value)] > 1) say(fault::repeated, b, -1, value_label(g_, x.value) + " has two homes");
      fill(b, atom_range(1, 0, 1));
      for (place const& p : layout_of(b))
        if (p.sum) say(fault::partial, b, p.device, value_label(g_, x.value) + " is kept as partial sums");
    }
  }
  /// A buffer written from outside: complete on every device, in its own layout.
  void fill(int b, atoms const& has) {
    auto& h = held_[z(b)];
    h.assign(buf(b).devices.size(), {});
    for (place const& p : layout_of(b)) *held(b, p.device) = {true, true, false, p.at, has};
  }

  /// What device `d` reads in buffer b; nullptr (and perhaps a finding) if that makes no sense.
  content const* read(int b, int d) {
    buffer const& x = buf(b);
    if (held_[z(b)].empty() && g_.value(x.value).role == value_role::input && x.first == now_ &&
        task_().kind == task_kind::compute)
      fill(b, of_batch(x.value, task_().micro_batch));  // the host feeds an input at the first task that reads it
    content const* c = held(b, d);
    if (!c || !c->written) {
      say(fault::not_written, b, d, "reads " + value_label(g_, x.value) + on_device(d) + " before it is there");
      return nullptr;
    }
    return c->known ? c : nullptr;
  }

  /// Stores what the devices now hold in buffer b, and compares it with the buffer's layout: boxes, and shares of sums that are the same
  /// where the layout says copies, apart where it says sums, and together complete.
  void write(int b, std::vector<std::pair<int, content>> now, atoms const& complete, bool over = false) {
    int const x = buf(b).value;
    auto& h = held_[z(b)];
    if (h.empty()) h.assign(buf(b).devices.size(), {});
    std::vector<place> const& at = layout_of(b);
    std::map<box, std::map<i64, atoms>> sums;
    bool good = now.size() == at.size();
    if (!good)
      say(fault::devices, b, -1,
          "writes " + value_label(g_, x) + " on " + std::to_string(now.size()) + " devices, its buffer is on " + std::to_string(at.size()));
    bool known = true;
    for (auto const& [d, c] : now) {
      place const* p = on(at, d);
      content* old = held(b, d);
      if (!p || !old) {
        if (good) say(fault::devices, b, d, "writes " + value_label(g_, x) + on_device(d) + ", where its buffer is not");
        good = false;
        continue;
      }
      if (old->written && !over) {
        say(fault::repeated, b, d, "writes " + value_label(g_, x) + on_device(d) + " a second time");
        good = false;
      }
      known = known && c.known;
      if (c.known && !(c.at == p->at)) {
        say(fault::block, b, d,
            "leaves " + spell(c.at, buf(b).type.rank) + " of " + value_label(g_, x) + on_device(d) + ", its buffer states " +
                spell(p->at, buf(b).type.rank));
        good = false;
      }
      auto const [it, fresh] = sums[p->at].insert({p->sum, c.has});
      if (!fresh && c.known && good && it->second != c.has) {
        say(fault::partial, b, d, "leaves another share of " + value_label(g_, x) + on_device(d) + " than on its copies");
        good = false;
      }
    }
    for (auto const& [where, share] : sums) {
      atoms all(complete.size(), 0);
      bool apart = true;
      for (auto const& [i, s] : share) apart = unite(all, s) && apart;
      if (known && good && (!apart || all != complete)) {
        say(apart ? fault::missing : fault::added_twice, b, -1,
            "leaves " + value_label(g_, x) + spell(where, buf(b).type.rank) +
                (apart ? " without all of its contributions" : " with a contribution twice"));
        good = false;
      }
    }
    for (auto& [d, c] : now)
      if (content* old = held(b, d)) {
        *old = std::move(c);
        old->written = true;
        old->known = old->known && good;
      }
  }

  void compute() {
    task const& k = task_();
    graph_node const& n = g_.node(k.node);
    bool const sum = k.op.is<tensorpar::add>() && k.in.size() == 2 && k.out.size() == 1;
    if (sum && k.in[0] == k.out[0] && buf(k.in[0]).value == buf(k.in[1]).value && g_.value(buf(k.in[0]).value).producer == k.node)
      return accumulate();
    if (!(k.op == n.op))
      return say(fault::wrong_operand, -1, -1, "is " + tensorpar::spell(k.op) + " where the graph has " + tensorpar::spell(n.op));
    bool fits = k.in.size() == n.in.size() && k.out.size() == n.out.size();
    for (std::size_t i = 0; fits && i < n.in.size(); ++i) fits = buf(k.in[i]).value == n.in[i];
    for (std::size_t i = 0; fits && i < n.out.size(); ++i) {
      int const stored = g_.value(n.out[i]).stored_in;
      fits = stored < 0 ? buf(k.out[i]).value == n.out[i] : buf(k.out[i]).value == stored && buf(k.out[i]).persistent;
      for (int b : k.in) fits = fits && (b != k.out[i] || stored >= 0);
    }
    if (!fits) return say(fault::wrong_operand, -1, -1, "does not read and write the values of " + label(g_, k.node));
    ++done_[z(k.node)][z(k.micro_batch)];
    spread const planned = n.origin >= 0 ? plan_.nodes[z(n.origin)].spread : spread{0, {{'\0', devices_, 1}}};
    bool lie_alike = sum && n.phase == step_phase::backward && buf(k.in[0]).where == buf(k.in[1]).where;
    for (grid_axis const& a : k.grid.axes) lie_alike = lie_alike && !a.letter;
    if (lie_alike) {
      if (grid_devices(k.grid) != k.devices) return say(fault::grid, -1, -1, "does not run on the devices of its grid");
      return add_where_they_lie();
    }
    if (!(k.grid == planned)) return say(fault::grid, -1, -1, "is not spread as the plan says");
    spread_work const w = works(n, spaces_[z(k.node)], types(g_, n.in), types(g_, n.out), k.grid, devices_);
    if (w.all.empty()) return say(fault::spread, -1, -1, "cannot be spread like the operator it was derived from: " + w.why);
    std::vector<int> who;
    for (work const& d : w.all) who.push_back(d.device);
    if (who != k.devices) return say(fault::devices, -1, -1, "does not run on the devices of its spread");
    for (std::size_t i = 0; i < n.out.size(); ++i) set_shares(n.out[i], w.shares[i]);
    std::vector<std::vector<std::pair<int, content>>> result(n.out.size());
    for (work const& d : w.all) {
      bool known = true;
      for (std::size_t i = 0; i < n.in.size(); ++i) known = operand(k.in[i], d.device, d.in[i]) && known;
      for (std::size_t i = 0; i < n.out.size(); ++i) {
        int const x = n.out[i];
        i64 const s = w.shares[i];
        result[i].push_back(
            {d.device,
             {true, known, false, d.out[i], atom_range(atom_count(x), once(x) ? d.share[i] : k.micro_batch * s + d.share[i], 1)}});
      }
    }
    for (std::size_t i = 0; i < n.out.size(); ++i) {
      int const stored = g_.value(n.out[i]).stored_in;
      if (stored >= 0) {
        updated_[z(stored)] = true;
        for (auto& [d, c] : result[i]) c.updated = true;
      }
      write(k.out[i], std::move(result[i]), of_batch(n.out[i], k.micro_batch), stored >= 0);
    }
  }
  std::vector<int> grid_devices(spread const& s) const {
    layout l{s.start, {}};
    for (grid_axis const& a : s.axes) l.axes.push_back({part_kind::copy, -1, a.degree, a.stride});
    return devices_of(places(l, scalar, devices_));
  }
  void set_shares(int x, i64 s) {
    i64& have = shares_[z(x)];
    if (have && have != s)
      say(fault::grid, -1, -1, "is spread in another way than for an earlier micro-batch");
    else
      have = s;
  }
  /// Is buffer b on this device the operand that a task of this micro-batch needs? False after a finding.
  bool operand(int b, int d, box const& need) {
    content const* c = read(b, d);
    if (!c) return false;
    int const x = buf(b).value;
    if (!(c->at == need)) {
      say(fault::block, b, d,
          "needs " + spell(need, buf(b).type.rank) + " of " + value_label(g_, x) + on_device(d) + ", there is " +
              spell(c->at, buf(b).type.rank));
      return false;
    }
    if (c->updated && g_.value(x).role == value_role::parameter && g_.node(task_().node).phase != step_phase::update) {
      say(fault::stale, b, d, "reads " + value_label(g_, x) + on_device(d) + " after its update");
      return false;
    }
    bool const gathers = g_.node(task_().node).phase == step_phase::update && g_.value(x).producer >= 0 && !once(x);
    if (c->has == (gathers ? all_of(x) : of_batch(x, task_().micro_batch))) return true;
    atoms const mine = of_batch(x, task_().micro_batch);
    bool whole_batch = true, others = false;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      whole_batch = whole_batch && (c->has[i] & mine[i]) == mine[i];
      others = others || (c->has[i] & ~mine[i]);
    }
    if (gathers ? whole_batch : others)
      say(fault::micro_batch, b, d,
          "reads " + value_label(g_, x) + on_device(d) + (gathers ? " without all micro-batches" : " of another micro-batch"));
    else
      say(fault::partial, b, d, "reads partial sums of " + value_label(g_, x) + on_device(d));
    return false;
  }

  /// Addition is linear: partial sums that lie alike may be added before they are reduced. The contributions of both are those of the sum.
  void add_where_they_lie() {
    task const& k = task_();
    graph_node const& n = g_.node(k.node);
    i64 const sa = shares_[z(n.in[0])], sb = shares_[z(n.in[1])];
    int const m = k.micro_batch;
    bool whole_values = true;
    for (int d : k.devices)
      for (int i : {0, 1})
        if (content const* c = held(k.in[z(i)], d); c && c->written)
          whole_values = whole_values && c->has == of_batch(n.in[z(i)], m);
    set_shares(n.out[0], whole_values ? 1 : sa + sb);
    i64 const s = shares_[z(n.out[0])], all = atom_count(n.out[0]);
    std::vector<std::pair<int, content>> now;
    for (int d : k.devices) {
      content const *a = read(k.in[0], d), *b = read(k.in[1], d);
      content c{true, a && b, false, a ? a->at : box{}, atom_range(all, m * s, whole_values ? 1 : 0)};
      if (a && b && !(a->at == b->at)) {
        say(fault::block, k.in[1], d, "adds two different parts" + on_device(d));
        c.known = false;
      }
      for (int i : {0, 1}) {
        content const* from = i ? b : a;
        i64 const n_from = i ? sb : sa;
        if (!from || whole_values) continue;
        for (i64 j = 0; j < static_cast<i64>(from->has.size()) * 64; ++j) {
          if (!(from->has[z(j / 64)] >> (j % 64) & 1)) continue;
          if (j / n_from != m) {
            say(fault::micro_batch, k.in[z(i)], d, "adds partial sums of another micro-batch" + on_device(d));
            c.known = false;
            break;
          }
          unite(c.has, atom_range(all, m * s + (i ? sa : 0) + j % n_from, 1));
        }
      }
      now.push_back({d, std::move(c)});
    }
    write(k.out[0], std::move(now), of_batch(n.out[0], m));
  }

  /// in[0] += in[1]: the same gradient of several micro-batches, complete or as partial sums.
  void accumulate() {
    task const& k = task_();
    int const x = buf(k.in[0]).value;
    std::vector<std::pair<int, content>> now;
    atoms complete = of_batch(x, k.micro_batch);
    for (int d : buf(k.in[0]).devices) {
      content const *a = read(k.in[0], d), *b = read(k.in[1], d);
      content c{true, a && b, false, a ? a->at : box{}, a ? a->has : atoms(complete.size(), 0)};
      if (a && b) {
        if (!(a->at == b->at)) {
          say(fault::block, k.in[1], d, "adds two different parts" + on_device(d));
          c.known = false;
        }
        if (!unite(c.has, b->has)) {
          say(fault::added_twice, k.in[1], d, "adds a micro-batch of " + value_label(g_, x) + " a second time" + on_device(d));
          c.known = false;
        }
      }
      now.push_back({d, std::move(c)});
    }
    if (grid_devices(k.grid) != k.devices || buf(k.in[0]).devices != k.devices || buf(k.in[0]).devices != buf(k.in[1]).devices)
      return say(fault::devices, k.in[0], -1, "does not run where both of its operands are");
    for (int m = 0; m < k.micro_batch; ++m) {
      bool any = false;  // a micro-batch whose contributions are there at all must be there as a whole
      atoms const batch = of_batch(x, m);
      for (auto const& [d, c] : now)
        for (std::size_t i = 0; i < batch.size() && i < c.has.size(); ++i) any = any || (c.has[i] & batch[i]);
      if (any) unite(complete, batch);
    }
    write(k.out[0], std::move(now), complete, true);
  }

  void move();
  void keep(std::vector<place> const& after);
  void exchange(std::vector<place> const& before, std::vector<place> const& after);
  void collective(std::vector<place> const& before);
  atoms contributions(int b) const;
  void packing_space(i64 scalars);

  void finish(bool updates) {
    auto lacks = [&](fault f, int v, std::string const& what) { out_.add({f, -1, -1, -1, v, label(g_, v) + what}); };
    for (int v = 0; v < (updates ? g_.node_count() : t_.forward_nodes) && !out_.full(); ++v) {
      bool const update = g_.node(v).phase == step_phase::update;
      int runs = 0;
      for (int m = 0; m < q_.micro_batches; ++m) {
        int const n = done_[z(v)][z(m)];
        runs += n;
        if (!update && n == 0) lacks(fault::missing, v, " does not run for micro-batch " + std::to_string(m));
        if (n > 1) lacks(fault::repeated, v, " runs " + std::to_string(n) + " times for micro-batch " + std::to_string(m));
      }
      if (update && runs == 0) lacks(fault::missing, v, " does not run");
      if (update && runs > 1) lacks(fault::repeated, v, " runs " + std::to_string(runs) + " times");
    }
    int const end = static_cast<int>(q_.tasks.size()) - 1;
    for (graph_port const& o : g_.outputs) {
      if (updates && o.value != t_.loss) continue;
      int kept = 0;
      for (int b = 0; b < static_cast<int>(q_.buffers.size()); ++b) kept += buf(b).value == o.value && buf(b).last == end;
      if (g_.value(o.value).producer >= 0 && kept < q_.micro_batches)
        out_.add({fault::lifetime, -1, -1, -1, -1, "output '" + o.name + "' does not live to the end of the step"});
    }
  }
};

}  // namespace tensorpar::detail::check
