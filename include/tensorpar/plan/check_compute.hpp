// tensorpar/plan/check_compute.hpp - the checker's meaning of operators: operands asked for by notation, results by parts of loops
#pragma once
#include <tensorpar/op/pointwise.hpp>
#include <tensorpar/plan/check_replay.hpp>

namespace tensorpar::detail::check {

inline bool replay::compute() {
  task const& k = task_();
  graph_node const& n = g_.node(k.node);
  bool const sum = k.op.is<tensorpar::add>() && k.in.size() == 2 && k.out.size() == 1;
  if (sum && k.in[0] == k.out[0] && buf(k.in[0]).value == buf(k.in[1]).value && g_.value(buf(k.in[0]).value).producer == k.node)
    return accumulate();
  if (!(k.op == n.op))
    return say(fault::wrong_operand, -1, -1, "is ", tensorpar::spell(k.op), " where the graph has ", tensorpar::spell(n.op));
  bool fits = k.in.size() == n.in.size() && k.out.size() == n.out.size();
  for (std::size_t i = 0; fits && i < n.in.size(); ++i) fits = buf(k.in[i]).value == n.in[i];
  for (std::size_t i = 0; fits && i < n.out.size(); ++i) {
    int const stored = g_.value(n.out[i]).stored_in;
    bool const at_home = stored >= 0 && buf(k.out[i]).value == stored && buf(k.out[i]).persistent;
    fits = at_home || buf(k.out[i]).value == n.out[i];        // in parts first, to be joined where it is kept
    for (int b : k.in) fits = fits && (b != k.out[i] || at_home);
  }
  if (!fits) return say(fault::wrong_operand, -1, -1, "does not read and write the values of ", label(g_, k.node));
  ++done_[z(k.node)][z(k.micro_batch)];
  bool lie_alike = sum && n.phase == step_phase::backward && buf(k.in[0]).where == buf(k.in[1]).where;
  for (grid_axis const& a : k.grid.axes) lie_alike = lie_alike && !a.letter;
  if (lie_alike) return add_where_they_lie();
  spread const planned = n.origin >= 0 ? plan_.nodes[z(n.origin)].spread : spread{0, {{'\0', devices_, 1}}};
  if (!(k.grid == planned)) return say(fault::grid, -1, -1, "is not spread as the plan says");
  spread_work const w = works(n, spaces_[z(k.node)], types(g_, n.in), types(g_, n.out), k.grid, devices_);
  if (w.all.empty()) return say(fault::spread, -1, -1, "cannot be spread like the operator it was derived from: ", w.why);
  if (grid_devices(k.grid) != k.devices) return say(fault::devices, -1, -1, "does not run on the devices of its spread");
  for (std::size_t i = 0; i < n.out.size(); ++i) set_shares(n.out[i], w.shares[i]);
  std::vector<contents> result(n.out.size());
  for (work const& d : w.all) {
    bool known = true;
    for (std::size_t i = 0; i < n.in.size(); ++i) known = operand(k.in[i], d.device, d.in[i]) && known;
    for (std::size_t i = 0; i < n.out.size(); ++i) {
      int const x = n.out[i];
      i64 const atom = (once(x) ? 0 : k.micro_batch * w.shares[i]) + d.share[i];
      result[i].push_back({d.device, {true, known, g_.value(x).stored_in >= 0, d.out[i], atom_range(atom_count(x), atom, 1)}});
    }
  }
  bool good = true;
  for (std::size_t i = 0; i < n.out.size(); ++i)
    good = write(k.out[i], std::move(result[i]), of_batch(n.out[i], k.micro_batch), buf(k.out[i]).persistent) && good;
  return good;
}

inline std::vector<int> replay::grid_devices(spread const& s) const { return devices_of(walk(s.start, s.axes, devices_).all); }
inline bool replay::set_shares(int x, i64 s) {
  i64& have = shares_[z(x)];
  if (have && have != s) return say(fault::grid, -1, -1, "is spread in another way than for an earlier micro-batch");
  have = s;
  return true;
}

/// Is buffer b on this device the operand that a task of this micro-batch needs? False after a finding.
inline bool replay::operand(int b, int d, box const& need) {
  content const* c = read(b, d);
  if (!c) return false;
  int const x = buf(b).value, m = task_().micro_batch;
  bool const update = g_.node(task_().node).phase == step_phase::update;
  if (!(c->at == need))
    return say(fault::block, b, d, "needs ", spelled(need, b), " of ", named(b), on_device(d), ", there is ", spelled(c->at, b));
  if (c->updated && !update) return say(fault::stale, b, d, "reads ", named(b), on_device(d), " after its update");
  bool const gathers = update && g_.value(x).producer >= 0 && !once(x);
  atoms const mine = of_batch(x, m);
  if (c->has == (gathers ? all_of(x) : mine)) return true;
  bool whole_batch = true, others = false;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    whole_batch = whole_batch && (c->has[i] & mine[i]) == mine[i];
    others = others || (c->has[i] & ~mine[i]);
  }
  if (gathers ? !whole_batch : !others) return say(fault::partial, b, d, "reads partial sums of ", named(b), on_device(d));
  return say(fault::micro_batch, b, d, "reads ", named(b), on_device(d),
             gathers ? " without all micro-batches" : " of another micro-batch");
}

/// Addition is linear: partial sums that lie alike may be added before they are reduced. The contributions of both are those of the sum.
inline bool replay::add_where_they_lie() {
  task const& k = task_();
  graph_node const& n = g_.node(k.node);
  if (grid_devices(k.grid) != k.devices) return say(fault::grid, -1, -1, "does not run on the devices of its grid");
  i64 const shares[] = {shares_[z(n.in[0])], shares_[z(n.in[1])]};
  int const m = k.micro_batch;
  bool complete = true;
  for (int d : k.devices)
    for (std::size_t i : {0u, 1u})
      if (content const* c = held(k.in[i], d); c && c->written) complete = complete && c->has == of_batch(n.in[i], m);
  set_shares(n.out[0], complete ? 1 : shares[0] + shares[1]);
  i64 const s = shares_[z(n.out[0])], all = atom_count(n.out[0]);
  contents now;
  for (int d : k.devices) {
    content const* from[] = {read(k.in[0], d), read(k.in[1], d)};
    content c{true, from[0] && from[1], false, from[0] ? from[0]->at : box{}, atom_range(all, m * s, complete ? 1 : 0)};
    if (c.known && !(c.at == from[1]->at)) c.known = say(fault::block, k.in[1], d, "adds two different parts", on_device(d));
    for (std::size_t i : {0u, 1u}) {
      if (!c.known || complete) continue;
      for (i64 j = 0; j < static_cast<i64>(from[i]->has.size()) * 64 && c.known; ++j) {
        if (!(from[i]->has[z(j / 64)] >> (j % 64) & 1)) continue;
        if (j / shares[i] != m) c.known = say(fault::micro_batch, k.in[i], d, "adds partial sums of another micro-batch", on_device(d));
        unite(c.has, atom_range(all, m * s + (i ? shares[0] : 0) + j % shares[i], 1));
      }
    }
    now.push_back({d, std::move(c)});
  }
  return write(k.out[0], std::move(now), of_batch(n.out[0], m));
}

/// in[0] += in[1]: the same gradient of several micro-batches, complete or as partial sums.
inline bool replay::accumulate() {
  task const& k = task_();
  std::vector<int> const& devices = buf(k.in[0]).devices;
  if (grid_devices(k.grid) != k.devices || devices != k.devices || devices != buf(k.in[1]).devices)
    return say(fault::devices, k.in[0], -1, "does not run where both of its operands are");
  int const x = buf(k.in[0]).value;
  contents now;
  atoms complete = of_batch(x, k.micro_batch);
  for (int d : devices) {
    content const *a = read(k.in[0], d), *b = read(k.in[1], d);
    content c{true, a && b, false, a ? a->at : box{}, a ? a->has : atoms(complete.size(), 0)};
    if (c.known && !(a->at == b->at)) c.known = say(fault::block, k.in[1], d, "adds two different parts", on_device(d));
    if (c.known && !unite(c.has, b->has))
      c.known = say(fault::added_twice, k.in[1], d, "adds a micro-batch of ", named(k.in[0]), " a second time", on_device(d));
    now.push_back({d, std::move(c)});
  }
  for (int m = 0; m < k.micro_batch; ++m) {
    bool any = false;  // a micro-batch whose contributions are there at all must be there as a whole
    atoms const batch = of_batch(x, m);
    for (auto const& [d, c] : now)
      for (std::size_t i = 0; i < batch.size() && i < c.has.size(); ++i) any = any || (c.has[i] & batch[i]);
    if (any) unite(complete, batch);
  }
  return write(k.out[0], std::move(now), complete, true);
}

}  // namespace tensorpar::detail::check
