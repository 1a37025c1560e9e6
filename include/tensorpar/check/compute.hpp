// tensorpar/check/compute.hpp - the checker's meaning of operators: operands asked for by notation, results
// by parts of loops
#pragma once
#include <tensorpar/check/replay.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>

namespace tensorpar::detail::check {

inline bool replay::compute() {
  task const& k = task_();
  graph_node const& n = g_.node(k.node);
  bool const sum = k.op.is<tensorpar::add>() && k.in.size() == 2 && k.out.size() == 1;
  if (sum && k.in[0] == k.out[0] && buf(k.in[0]).value == buf(k.in[1]).value &&
      g_.value(buf(k.in[0]).value).producer == k.node)
    return accumulate();
  if (!(k.op == n.op))
    return say(fault::wrong_operand, -1, -1, "is ", op::spell(k.op), " where the graph has ",
               op::spell(n.op));
  bool fits = k.in.size() == n.in.size() && k.out.size() == n.out.size();
  for (std::size_t i = 0; fits && i < n.in.size(); ++i) fits = buf(k.in[i]).value == n.in[i];
  for (std::size_t i = 0; fits && i < n.out.size(); ++i) {
    int const stored = g_.value(n.out[i]).stored_in;
    bool const at_home = stored >= 0 && buf(k.out[i]).value == stored && buf(k.out[i]).persistent;
    fits = at_home || buf(k.out[i]).value == n.out[i];        // in parts first, to be joined where it is kept
    for (int b : k.in) fits = fits && (b != k.out[i] || at_home);
  }
  if (!fits)
    return say(fault::wrong_operand, -1, -1, "does not read and write the values of ", label(g_, k.node));
  ++done(k.node, k.micro_batch);
  bool lie_alike = sum && n.phase == step_phase::backward && buf(k.in[0]).where == buf(k.in[1]).where;
  for (ir::mesh_axis const& a : k.mesh.axes) lie_alike = lie_alike && !a.letter;
  if (lie_alike) return add_where_they_lie();
  ir::sharding const planned =
      n.origin >= 0 ? ir::in_shares(plan_.nodes[idx(n.origin)].sharding, n.share) : of_all_;
  if (!(k.mesh == planned)) return say(fault::mesh, -1, -1, "is not sharded as the plan says");
  int const run = facts_.run_number(operator_of(k.node), k.mesh);
  running const& r = facts_.runs(run);
  if (!r.why.empty())
    return say(fault::sharding, -1, -1, "cannot be sharded like the operator it was derived from: ", r.why);
  if (!facts_.lists(k.devices, r.devices))
    return say(fault::devices, -1, -1, "does not run on the devices of its sharding");
  for (std::size_t i = 0; i < n.out.size(); ++i) set_shares(n.out[i], r.shares[i]);
  bool known = true, good = true;
  for (std::size_t i = 0; i < n.in.size(); ++i) known = operand(k.in[i], run, static_cast<int>(i)) && known;
  for (std::size_t i = 0; i < n.out.size(); ++i) {
    int const x = n.out[i], o = k.out[i];
    writing const& w = facts_.writes(run, static_cast<int>(i), layout_[idx(o)]);
    content now{known && !w.wrong, g_.value(x).stored_in >= 0, {}};
    if (w.wrong) good = say(w.wrong, o);
    for (i64 share : w.share) now.has.push_back({(once(x) ? 0 : k.micro_batch * r.shares[i]) + share});
    good = write(o, std::move(now), buf(o).persistent) && good;
  }
  return good;
}

inline bool replay::set_shares(int x, i64 s) {
  i64& have = shares_[idx(x)];
  if (have && have != s)
    return say(fault::mesh, -1, -1, "is sharded in another way than for an earlier micro-batch");
  have = s;
  return true;
}

/// Is buffer b the k-th operand that a task of this micro-batch needs, on all of its devices? False after a
/// finding.
inline bool replay::operand(int b, int run, int k) {
  content const* c = read(b);
  if (!c) return false;
  reading const& r = facts_.reads(run, k, layout_[idx(b)]);
  if (r.wrong) return say(r.wrong, b);
  int const x = buf(b).value, m = task_().micro_batch;
  bool const update = g_.node(task_().node).phase == step_phase::update;
  if (c->updated && !update) return say(fault::stale, b, -1, "reads ", named(b), " after its update");
  bool const gathers = update && g_.value(x).producer >= 0 && !once(x);
  i64 const s = shares_[idx(x)], first = once(x) || gathers ? 0 : m * s,
            n = gathers ? q_.micro_batches * s : s;
  for (i64 share : r.shares) {
    atoms const& has = c->has[idx(share)];
    if (is_range(has, first, n)) continue;
    atoms const mine = of_batch(x, m);
    bool const whole_batch = std::includes(has.begin(), has.end(), mine.begin(), mine.end());
    bool const others = !std::includes(mine.begin(), mine.end(), has.begin(), has.end());
    if (gathers ? !whole_batch : !others)
      return say(fault::partial, b, -1, "reads partial sums of ", named(b));
    return say(fault::micro_batch, b, -1, "reads ", named(b),
               gathers ? " without all micro-batches" : " of another micro-batch");
  }
  return true;
}

/// Addition is linear: partial sums that lie alike may be added before they are reduced. The contributions of
/// both are those of the sum.
inline bool replay::add_where_they_lie() {
  task const& k = task_();
  graph_node const& n = g_.node(k.node);
  if (!facts_.lists(k.devices, facts_.devices_of_mesh(k.mesh)) ||
      !facts_.lists(k.devices, devices_of(k.in[0])))
    return say(fault::mesh, -1, -1, "does not run on the devices of its mesh, where its operands are");
  if (!(buf(k.out[0]).where == buf(k.in[0]).where))
    return say(fault::block, k.out[0], -1, "leaves its sum elsewhere than where its operands lie");
  i64 const shares[] = {shares_[idx(n.in[0])], shares_[idx(n.in[1])]};
  int const m = k.micro_batch;
  content const* from[] = {read(k.in[0]), read(k.in[1])};
  bool const known = from[0] && from[1];
  bool complete = true;
  for (std::size_t i : {0u, 1u})
    if (from[i]) for (atoms const& has : from[i]->has) complete = complete && has == of_batch(n.in[i], m);
  set_shares(n.out[0], complete ? 1 : shares[0] + shares[1]);
  i64 const s = shares_[idx(n.out[0])];
  content now{known, false,
              std::vector<atoms>(idx(share_count(k.out[0])), atom_range(m * s, complete ? 1 : 0))};
  for (std::size_t share = 0; share < now.has.size() && !complete; ++share)
    for (std::size_t i : {0u, 1u}) {
      if (!now.known) continue;
      for (i64 j : from[i]->has[share]) {
        if (j / shares[i] != m)
          now.known = say(fault::micro_batch, k.in[i], -1, "adds partial sums of another micro-batch");
        now.has[share].push_back(m * s + (i ? shares[0] : 0) + j % shares[i]);
      }
      apart(now.has[share]);
    }
  if (now.known && !complete) now.known = together(now.has, of_batch(n.out[0], m), k.out[0]);
  return write(k.out[0], std::move(now));
}

/// Are these shares of a sum apart, and together all of it?
inline bool replay::together(std::vector<atoms> const& shares, atoms const& complete, int b) {
  atoms all;
  for (atoms const& one : shares) all.insert(all.end(), one.begin(), one.end());
  if (!apart(all)) return say(fault::added_twice, b, -1, "leaves ", named(b), " with a contribution twice");
  return all == complete ||
         say(fault::missing, b, -1, "leaves ", named(b), " without all of its contributions");
}

/// in[0] += in[1]: the same gradient of several micro-batches, complete or as partial sums.
inline bool replay::accumulate() {
  task const& k = task_();
  if (!facts_.lists(k.devices, facts_.devices_of_mesh(k.mesh)) ||
      !facts_.lists(k.devices, devices_of(k.in[0])) || !(buf(k.in[0]).where == buf(k.in[1]).where))
    return say(fault::devices, k.in[0], -1, "does not run where both of its operands are");
  int const x = buf(k.in[0]).value;
  content const *a = read(k.in[0]), *b = read(k.in[1]);
  content now{a && b, false, a ? a->has : std::vector<atoms>()};
  for (std::size_t i = 0; i < now.has.size() && now.known; ++i)
    if (!unite(now.has[i], b->has[i]))
      now.known =
          say(fault::added_twice, k.in[1], -1, "adds a micro-batch of ", named(k.in[0]), " a second time");
  atoms complete = of_batch(x, k.micro_batch);
  for (int m = 0; m < k.micro_batch; ++m) {
    bool any = false;  // a micro-batch whose contributions are there at all must be there as a whole
    atoms const batch = of_batch(x, m);
    for (atoms const& has : now.has)
      for (i64 j : has) any = any || std::binary_search(batch.begin(), batch.end(), j);
    if (any) unite(complete, batch);
  }
  if (now.known) now.known = together(now.has, complete, k.out[0]);
  return write(k.out[0], std::move(now), true);
}

}  // namespace tensorpar::detail::check
