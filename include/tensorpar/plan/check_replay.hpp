// tensorpar/plan/check_replay.hpp - runs a program without numbers: which box and which contributions every device holds, task by task
#pragma once
#include <map>
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
      switch (task_().kind) {
        case task_kind::compute: compute(); break;
        case task_kind::move: move(); break;
        case task_kind::send: send(); break;
        case task_kind::receive: receive(); break;
      }
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
  /// What senders give away: every (box, share of the sum) with those who hold it.
  struct message {
    struct source { content what; std::vector<int> holders; };
    std::vector<source> sources;
    int value = -1;
    atoms all;
  };
  std::map<int, message> sent_;             // by task

  task const& task_() const { return q_.tasks[z(now_)]; }
  buffer const& buf(int b) const { return q_.buffers[z(b)]; }
  /// Always false, so that a check can end with it.
  bool say(fault f, int b, int device, auto const&... what) {
    if (out_.full()) return false;
    std::string const where = now_ < 0 ? "" : label(g_, q_, now_) + " ";
    out_.add({f, now_, b, device, now_ < 0 ? -1 : task_().node, sentence(where, what...)});
    return false;
  }
  static std::string on_device(int d) { return " on device " + std::to_string(d); }
  std::string named(int b) const { return value_label(g_, buf(b).value); }
  std::string spelled(box const& x, int b) const { return spell(x, buf(b).type.rank); }

  /// Values of parameters, states, inputs and update operators exist once per step (inputs once per micro-batch).
  bool once(int x) const {
    value_role const r = g_.value(x).role;
    int const p = g_.value(x).producer;
    return r == value_role::parameter || r == value_role::state || (p >= 0 && g_.node(p).phase == step_phase::update);
  }
  i64 atom_count(int x) const { return (once(x) ? 1 : q_.micro_batches) * shares_[z(x)]; }
  atoms of_batch(int x, int m) const { return atom_range(atom_count(x), once(x) ? 0 : m * shares_[z(x)], shares_[z(x)]); }
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
    held_[z(b)].assign(buf(b).devices.size(), {});
    for (place const& p : layout_of(b)) *held(b, p.device) = {true, true, false, p.at, has};
  }

  /// What device `d` reads in buffer b; nullptr (and perhaps a finding) if that makes no sense.
  content const* read(int b, int d) {
    buffer const& x = buf(b);
    bool const fed = g_.value(x.value).role == value_role::input && x.first == now_ && task_().kind == task_kind::compute;
    if (fed && held_[z(b)].empty()) fill(b, of_batch(x.value, task_().micro_batch));  // the host feeds an input where it is read first
    content const* c = held(b, d);
    if (!c || !c->written) say(fault::not_written, b, d, "reads ", named(b), on_device(d), " before it is there");
    return c && c->written && c->known ? c : nullptr;
  }

  using contents = std::vector<std::pair<int, content>>;  // by device

  /// Stores what the devices now hold in buffer b, and compares it with the buffer's layout: boxes, and shares of sums that are the same
  /// where the layout says copies, apart where it says sums, and together complete.
  bool write(int b, contents now, atoms const& complete, bool over = false) {
    if (held_[z(b)].empty()) held_[z(b)].assign(buf(b).devices.size(), {});
    std::vector<place> const& at = layout_of(b);
    std::map<box, std::map<i64, atoms>> sums;
    bool good = now.size() == at.size() ||
                say(fault::devices, b, -1, "writes ", named(b), " on ", now.size(), " devices, its buffer is on ", at.size());
    bool known = true;
    for (auto const& [d, c] : now) {
      place const* p = on(at, d);
      if (!p) {
        good = say(fault::devices, b, d, "writes ", named(b), on_device(d), ", where its buffer is not");
        continue;
      }
      if (held(b, d)->written && !over) good = say(fault::repeated, b, d, "writes ", named(b), on_device(d), " a second time");
      known = known && c.known;
      if (c.known && !(c.at == p->at))
        good = say(fault::block, b, d, "leaves ", spelled(c.at, b), " of ", named(b), on_device(d), ", its buffer states ",
                   spelled(p->at, b));
      auto const [it, fresh] = sums[p->at].insert({p->sum, c.has});
      if (!fresh && c.known && good && it->second != c.has)
        good = say(fault::partial, b, d, "leaves another share of ", named(b), on_device(d), " than on its copies");
    }
    for (auto const& [where, share] : sums) {
      if (!known || !good) break;
      atoms all(complete.size(), 0);
      bool apart = true;
      for (auto const& [i, s] : share) apart = unite(all, s) && apart;
      if (!apart) good = say(fault::added_twice, b, -1, "leaves ", named(b), spelled(where, b), " with a contribution twice");
      else if (all != complete)
        good = say(fault::missing, b, -1, "leaves ", named(b), spelled(where, b), " without all of its contributions");
    }
    for (auto& [d, c] : now)
      if (content* old = held(b, d)) *old = {true, c.known && good, c.updated, c.at, std::move(c.has)};
    return good;
  }

  // check_compute.hpp
  bool compute();
  bool operand(int b, int d, box const& need);
  bool set_shares(int x, i64 s);
  std::vector<int> grid_devices(spread const& s) const;
  bool add_where_they_lie();
  bool accumulate();
  // check_moves.hpp
  bool move();
  bool keep(std::vector<place> const& after);
  bool exchange(std::vector<place> const& before, std::vector<place> const& after);
  bool send();
  bool receive();
  message gather(std::vector<place> const& before);
  bool deliver(message const& m, std::vector<place> const& after);
  bool collective(std::vector<place> const& before);
  atoms contributions(int b) const;
  void packing_space(i64 scalars);

  void finish(bool updates) {
    auto lacks = [&](fault f, int v, auto const&... what) { out_.add({f, -1, -1, -1, v, sentence(label(g_, v), what...)}); };
    for (int v = 0; v < (updates ? g_.node_count() : t_.forward_nodes) && !out_.full(); ++v) {
      bool const update = g_.node(v).phase == step_phase::update;
      int runs = 0;
      for (int m = 0; m < q_.micro_batches; ++m) {
        int const n = done_[z(v)][z(m)];
        runs += n;
        if (!update && n == 0) lacks(fault::missing, v, " does not run for micro-batch ", m);
        if (n > 1) lacks(fault::repeated, v, " runs ", n, " times for micro-batch ", m);
      }
      if (update && runs == 0) lacks(fault::missing, v, " does not run");
      if (update && runs > 1) lacks(fault::repeated, v, " runs ", runs, " times");
    }
    for (graph_value const& v : g_.values)
      for (int b = 0; updates && v.stored_in >= 0 && b < static_cast<int>(q_.buffers.size()); ++b)
        if (buf(b).persistent && buf(b).value == v.stored_in)
          for (std::size_t k = 0; k < held_[z(b)].size(); ++k)
            if (content const& c = held_[z(b)][k]; c.known && !c.updated)
              out_.add({fault::missing, -1, b, buf(b).devices[k], v.producer,
                        sentence(value_label(g_, v.stored_in), on_device(buf(b).devices[k]), " is not updated")});
    int const end = static_cast<int>(q_.tasks.size()) - 1;
    for (graph_port const& o : g_.outputs) {
      if (updates && !is_loss(t_, o.value)) continue;
      int kept = 0;
      for (int b = 0; b < static_cast<int>(q_.buffers.size()); ++b) kept += buf(b).value == o.value && buf(b).last == end;
      if (g_.value(o.value).producer >= 0 && kept < q_.micro_batches)
        out_.add({fault::lifetime, -1, -1, -1, -1, "output '" + o.name + "' does not live to the end of the step"});
    }
  }
};

}  // namespace tensorpar::detail::check
