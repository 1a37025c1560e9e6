// tensorpar/check/moves.hpp - the checker replays reshards: what was in one buffer is in another, in shares
// that belong together
#pragma once
#include <tensorpar/check/replay.hpp>

namespace tensorpar::detail::check {

inline bool replay::move() {
  task const& k = task_();
  ir::reshard_step const& m = k.step;
  int const b = k.in[0], o = k.out[0];
  // an update's result goes where it is kept
  bool const home = buf(o).persistent && g_.value(buf(b).value).stored_in == buf(o).value;
  if (buf(b).value != buf(o).value && !home)
    return say(fault::wrong_operand, o, -1, "moves one value into the buffer of another");
  if (buf(o).persistent && !home)
    return say(fault::repeated, o, -1, "moves into the home of ", named(o), " what is no update of it");
  if (!(buf(b).where == m.before) || !(buf(o).where == m.after))
    return say(fault::reshard, o, -1, "moves between other layouts than those of its buffers");
  std::vector<int> const &senders = devices_of(b), &receivers = devices_of(o);
  std::vector<int> both;
  bool const general = m.kind == ir::reshard_kind::exchange;
  if (general)
    std::set_union(senders.begin(), senders.end(), receivers.begin(), receivers.end(),
                   std::back_inserter(both));
  else if (m.kind != ir::reshard_kind::slice && senders != receivers)
    return say(fault::reshard, o, -1, "is a collective between different devices");
  if (!facts_.lists(k.devices, general ? both : receivers))
    return say(fault::devices, b, -1, "lacks a device that takes part, or waits for one that does not");
  bool const combines = m.kind == ir::reshard_kind::all_gather || m.kind == ir::reshard_kind::all_to_all;
  bool const divides = m.kind == ir::reshard_kind::reduce_scatter || m.kind == ir::reshard_kind::all_to_all;
  auto lacks = [&](int d) { return d < 0 || d >= buf(b).type.rank; };
  bool const named_kind =
      combines || divides || general || m.kind == ir::reshard_kind::all_reduce ||
          m.kind == ir::reshard_kind::slice;
  if (!named_kind || (combines && lacks(m.from_dim)) || (divides && lacks(m.to_dim)) ||
      (combines && divides && m.from_dim == m.to_dim))
    return say(fault::reshard, o, -1, "names an axis that the tensor lacks");
  content const* c = read(b);
  moving const& f = facts_.moves(m, layout_[idx(b)], layout_[idx(o)]);
  packing_space(general ? f.elements : f.wrong ? 0 : ir::packing_scalars(m, buf(b).type), b);
  return deliver(c, layout_[idx(b)], o);
}

/// Puts into the buffer what arrives there.
inline bool replay::deliver(content const* c, int from, int o) {
  moving const& f = facts_.moves(task_().step, from, layout_[idx(o)]);
  content now{c != nullptr, c && c->updated, {}};
  if (f.wrong) now.known = say(f.wrong, o);
  now.has.resize(idx(share_count(o)));
  for (std::size_t i = 0; i < f.from.size() && now.known; ++i) {
    atoms& sum = now.has[i];
    for (i64 share : f.from[i]) sum.insert(sum.end(), c->has[idx(share)].begin(), c->has[idx(share)].end());
    if (!apart(sum))
      now.known = say(fault::added_twice, o, -1, "adds a contribution to ", named(o), " twice");
  }
  bool const known = now.known;
  return write(o, std::move(now), buf(o).persistent) && known;
}

/// The sending half of an exchange: what it takes along is what is there now. The form has been checked: the
/// other half comes later.
inline bool replay::send() {
  task const& k = task_();
  int const b = k.in[0], o = q_.tasks[idx(k.other_half)].out[0];
  if (buf(b).value != buf(o).value)
    return say(fault::wrong_operand, b, -1, "sends one value into the buffer of another");
  if (!(buf(b).where == k.step.before))
    return say(fault::reshard, b, -1, "sends from another layout than that of its buffer");
  if (!facts_.lists(k.devices, devices_of(b)))
    return say(fault::devices, b, -1, "lacks a device that sends, or has one that does not");
  packing_space(facts_.largest_common(layout_[idx(b)], layout_[idx(o)]), b);
  content const* c = read(b);
  sent_[now_] = {c ? *c : content{false, false, {}}, layout_[idx(b)]};
  return true;
}
inline bool replay::receive() {
  task const& k = task_();
  auto const it = sent_.find(k.other_half);
  if (it == sent_.end()) return say(fault::not_written, k.out[0], -1, "receives what was not sent");
  message const m = std::move(it->second);
  sent_.erase(it);
  int const o = k.out[0];
  if (!(buf(o).where == k.step.after))
    return say(fault::reshard, o, -1, "receives into another layout than that of its buffer");
  if (!facts_.lists(k.devices, devices_of(o)))
    return say(fault::devices, o, -1, "lacks a device that receives, or has one that does not");
  moving const& f = facts_.moves(k.step, m.layout, layout_[idx(o)]);
  packing_space(f.elements, o);
  return deliver(m.what.known ? &m.what : nullptr, m.layout, o);
}

/// Does the task have room to pack and unpack so many numbers of buffer b in? Devices that take no part need
/// none.
inline void replay::packing_space(i64 scalars, int b) {
  int const w = task_().workspace;
  i64 const have = w < 0 ? 0 : buf(w).bytes;
  i64 const need =
      task_().devices.empty() ? 0 : core::saturating_mul(scalars, bytes_of(buf(b).type.type,
                                                                           q_.scalar_bytes));
  if (have < need) say(fault::bytes, w, -1, "has ", have, " bytes to pack in and needs ", need);
}

}  // namespace tensorpar::detail::check
