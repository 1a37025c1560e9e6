// tensorpar/check/replay.hpp - runs a program without numbers: which box and which contributions every device
// holds, task by task
#pragma once
#include <map>
#include <numeric>
#include <tensorpar/check/form.hpp>
#include <tensorpar/check/geometry.hpp>

namespace tensorpar::detail::check {

/// Contributions to a value, ascending: (micro-batch, share of the sum), numbered micro-batch * shares +
/// share.
using atoms = std::vector<i64>;
inline atoms atom_range(i64 from, i64 n) {
  atoms a(idx(n));
  for (i64 i = 0; i < n; ++i) a[idx(i)] = from + i;
  return a;
}
inline bool is_range(atoms const& a, i64 from, i64 n) {
  bool same = a.size() == idx(n);
  for (std::size_t i = 0; same && i < a.size(); ++i) same = a[i] == from + static_cast<i64>(i);
  return same;
}
/// Puts lists together that were appended to one another; false if something is in two: it would be added
/// twice.
inline bool apart(atoms& joined) {
  if (!std::is_sorted(joined.begin(), joined.end())) std::sort(joined.begin(), joined.end());
  return std::adjacent_find(joined.begin(), joined.end()) == joined.end();
}
/// a and b in a; false if they have one in common.
inline bool unite(atoms& a, atoms const& b) {
  a.insert(a.end(), b.begin(), b.end());
  return apart(a);
}

/// What a buffer holds, on all of its devices: the boxes that its layout states, and of share i of its
/// layout's sum contributions has[i]. Empty: nothing was written yet. `known` is false after a fault, so that
/// what follows from it is not reported again.
struct content {
  bool known = true, updated = false;
  std::vector<atoms> has;
  bool written() const { return !has.empty(); }
};

/// Replays a program whose form has been checked. Nothing of the unrolling is used: layouts follow from
/// notations and shardings, and what a reshard does is worked out from its group and kind, then compared with
/// what it claims.
class replay {
 public:
  /// `numbers`: of tasks, in findings; empty: their own.
  replay(training_graph const& t, plan const& p, program const& q, facts& known, findings& out,
         std::vector<int> numbers = {})
      : t_(t),
        g_(t.graph),
        plan_(p),
        of_all_(mesh_in_use(p)),
        q_(q),
        facts_(known),
        out_(out),
        numbers_(std::move(numbers)) {
    held_.resize(q.buffers.size());
    for (buffer const& b : q.buffers)
      layout_.push_back(b.value < 0 ? -1 : facts_.layout_number(b.where, b.type));
    operator_.assign(g_.nodes.size(), -1);
    for (graph_value const& v : g_.values) shares_.push_back(v.producer < 0 ? 1 : 0);
    done_.assign(g_.nodes.size() * idx(q.micro_batches), 0);
  }

  /// `updates`: a whole training step; else the forward operators alone. O(tasks), plus facts that are new:
  /// O(devices) each, of exchanges O(senders * receivers).
  void run(bool updates) {
    start();
    for (now_ = 0; now_ < static_cast<int>(q_.tasks.size()) && !out_.full(); ++now_) {
      switch (task_().kind) {
        case task_kind::compute: compute(); break;
        case task_kind::reshard: move(); break;
        case task_kind::send: send(); break;
        case task_kind::receive: receive(); break;
      }
      for (int i = ends_from_[idx(now_)]; i < ends_from_[idx(now_) + 1]; ++i) held_[idx(ends_[idx(i)])] = {};
    }
    now_ = -1;
    if (!out_.full()) finish(updates);
  }

 private:
  training_graph const& t_;
  computation_graph const& g_;
  plan const& plan_;
  ir::sharding of_all_;                                         // of operators that belong to no other
  program const& q_;
  facts& facts_;
  findings& out_;
  std::vector<int> numbers_;
  int now_ = -1;
  std::vector<content> held_;               // by buffer; let go after its last task
  // their numbers among the facts: of buffers; of nodes, -1: not asked for yet
  std::vector<int> layout_, operator_;
  // buffers by the task that they die with; where those of a task begin
  std::vector<int> ends_, ends_from_;
  std::vector<i64> shares_;                 // by value: in how many shares its sum came; 0: not computed yet
  std::vector<int> done_;                   // by node and micro-batch: how often it ran
  struct message { content what; int layout = -1; };
  std::map<int, message> sent_;             // by task: what senders gave away

  task const& task_() const { return q_.tasks[idx(now_)]; }
  buffer const& buf(int b) const { return q_.buffers[idx(b)]; }
  /// Always false, so that a check can end with it.
  bool say(fault f, int b, int device, auto const&... what) { return tell(f, b, device, {word(what)...}); }
  [[gnu::noinline, gnu::cold]] bool tell(fault f, int b, int device, std::initializer_list<word> what) {
    if (out_.full()) return false;
    int const number = now_ < 0 || numbers_.empty() ? now_ : numbers_[idx(now_)];
    std::string const where = now_ < 0 ? "" : label(g_, q_, now_, number) + " ";
    out_.add({f, number, b, device, now_ < 0 ? -1 : task_().node, where + sentence_of(what)});
    return false;
  }
  static std::string on_device(int d) { return " on device " + std::to_string(d); }
  std::string named(int b) const { return value_label(g_, buf(b).value); }
  bool say(complaint const& c, int b) {
    return say(c.code, b, c.device, named(b), c.device < 0 ? std::string() : on_device(c.device), " ",
               c.text);
  }

  /// Values of parameters, states, inputs and update operators exist once per step (inputs once per
  /// micro-batch).
  bool once(int x) const {
    value_role const r = g_.value(x).role;
    int const p = g_.value(x).producer;
    return r == value_role::parameter || r == value_role::state ||
           (p >= 0 && g_.node(p).phase == step_phase::update);
  }
  atoms of_batch(int x, int m) const {
    return atom_range(once(x) ? 0 : m * shares_[idx(x)], shares_[idx(x)]);
  }

  i64 share_count(int b) const { return facts_.placed(layout_[idx(b)]).shares; }
  std::vector<int> const& devices_of(int b) const { return facts_.placed(layout_[idx(b)]).devices; }
  int operator_of(int v) {
    int& n = operator_[idx(v)];
    if (n < 0) n = facts_.operator_number(g_, v);
    return n;
  }

  int& done(int v, int m) { return done_[idx(v) * idx(q_.micro_batches) + idx(m)]; }
  bool dies(buffer const& x) const { return !x.persistent && x.value >= 0; }

  void start() {
    ends_from_.assign(q_.tasks.size() + 1, 0);
    for (buffer const& x : q_.buffers) if (dies(x)) ++ends_from_[idx(x.last) + 1];
    std::partial_sum(ends_from_.begin(), ends_from_.end(), ends_from_.begin());
    ends_.resize(idx(ends_from_.back()));
    std::vector<int> next(ends_from_);
    std::vector<int> homes(g_.values.size(), 0);
    for (int b = 0; b < static_cast<int>(q_.buffers.size()); ++b) {
      buffer const& x = buf(b);
      if (dies(x)) ends_[idx(next[idx(x.last)]++)] = b;
      if (!x.persistent) continue;
      if (++homes[idx(x.value)] > 1) say(fault::repeated, b, -1, value_label(g_, x.value) + " has two homes");
      fill(b, atom_range(0, 1));
      if (share_count(b) > 1)
        say(fault::partial, b, -1, value_label(g_, x.value) + " is kept as partial sums");
    }
  }
  /// A buffer written from outside: complete on every device, in its own layout.
  void fill(int b, atoms const& has) {
    held_[idx(b)] = {true, false, std::vector<atoms>(idx(share_count(b)), has)};
  }

  /// What is read in buffer b; nullptr (and perhaps a finding) if that makes no sense.
  content const* read(int b) {
    buffer const& x = buf(b);
    content& c = held_[idx(b)];
    bool const fed =
        g_.value(x.value).role == value_role::input && x.first == now_ && task_().kind == task_kind::compute;
    // the host feeds an input where it is read first
    if (fed && !c.written()) fill(b, of_batch(x.value, task_().micro_batch));
    if (!c.written()) say(fault::not_written, b, -1, "reads ", named(b), " before it is there");
    return c.written() && c.known ? &c : nullptr;
  }
  /// Stores what the devices now hold in buffer b. False if they held something already and it may not be
  /// written `over`.
  bool write(int b, content now, bool over = false) {
    bool const good =
        over || !held_[idx(b)].written() ||
        say(fault::repeated, b, -1, "writes ", named(b), " a second time");
    now.known = now.known && good;
    now.has.resize(idx(share_count(b)));
    held_[idx(b)] = std::move(now);
    return good;
  }

  // check_compute.hpp
  bool compute();
  bool operand(int b, int run, int k);
  bool set_shares(int x, i64 s);
  bool add_where_they_lie();
  bool accumulate();
  bool together(std::vector<atoms> const& shares, atoms const& complete, int b);
  // check_moves.hpp
  bool move();
  bool send();
  bool receive();
  bool deliver(content const* c, int from, int to);
  void packing_space(i64 elements, int b);

  void finish(bool updates) {
    auto lacks = [&](fault f, int v, auto const&... what) {
      out_.add({f, -1, -1, -1, v, sentence(label(g_, v), what...)});
    };
    for (int v = 0; v < (updates ? g_.node_count() : t_.forward_nodes) && !out_.full(); ++v) {
      bool const update = g_.node(v).phase == step_phase::update;
      int runs = 0;
      for (int m = 0; m < q_.micro_batches; ++m) {
        int const n = done(v, m);
        runs += n;
        if (!update && n == 0) lacks(fault::missing, v, " does not run for micro-batch ", m);
        if (n > 1) lacks(fault::repeated, v, " runs ", n, " times for micro-batch ", m);
      }
      if (update && runs == 0) lacks(fault::missing, v, " does not run");
      if (update && runs > 1) lacks(fault::repeated, v, " runs ", runs, " times");
    }
    std::vector<int> home(g_.values.size(), -1);
    for (int b = 0; b < static_cast<int>(q_.buffers.size()); ++b)
      if (buf(b).persistent) home[idx(buf(b).value)] = b;
    for (graph_value const& v : g_.values)
      if (int const b = updates && v.stored_in >= 0 ? home[idx(v.stored_in)] : -1; b >= 0)
        if (content const& c = held_[idx(b)]; c.known && !c.updated)
          out_.add({fault::missing, -1, b, -1, v.producer,
                    sentence(value_label(g_, v.stored_in), " is not updated")});
    int const end = static_cast<int>(q_.tasks.size()) - 1;
    auto const kept = [&](int value) {
      int n = 0;
      for (int b = 0; b < static_cast<int>(q_.buffers.size()); ++b)
        n += buf(b).value == value && buf(b).last == end;
      return n;
    };
    for (graph_port const& o : g_.outputs) {
      if (updates && !is_loss(t_, o.value)) continue;
      if (g_.value(o.value).producer >= 0 && kept(o.value) < q_.micro_batches)
        out_.add({fault::lifetime, -1, -1, -1, -1,
                  "output '" + o.name + "' does not live to the end of the step"});
    }
    if (int const norm = gradient_norm(t_); updates && norm >= 0 && kept(norm) == 0)
      out_.add({fault::lifetime, -1, -1, -1, -1, "the gradients' norm does not live to the end of the step"});
  }
};

}  // namespace tensorpar::detail::check
