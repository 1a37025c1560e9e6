// tensorpar/plan/check_moves.hpp - the checker's own meaning of every movement: who gives what to whom, worked out from groups
#pragma once
#include <tensorpar/ir/exchange.hpp>
#include <tensorpar/plan/check_replay.hpp>

namespace tensorpar::detail::check {

inline bool replay::move() {
  task const& k = task_();
  move_step const& m = k.step;
  int const b = k.in[0], o = k.out[0];
  bool const home = buf(o).persistent && g_.value(buf(b).value).stored_in == buf(o).value;       // an update's result goes where it is kept
  if (buf(b).value != buf(o).value && !home) return say(fault::wrong_operand, o, -1, "moves one value into the buffer of another");
  if (buf(o).persistent && !home) return say(fault::repeated, o, -1, "moves into the home of ", named(o), " what is no update of it");
  if (!(buf(b).where == m.before) || !(buf(o).where == m.after))
    return say(fault::movement, o, -1, "moves between other layouts than those of its buffers");
  std::vector<place> const &before = layout_of(b), &after = layout_of(o);
  std::vector<int> senders = devices_of(before), who = devices_of(after);
  bool const general = m.kind == move_kind::exchange;
  if (general) {
    std::vector<int> both;
    std::set_union(senders.begin(), senders.end(), who.begin(), who.end(), std::back_inserter(both));
    who = std::move(both);
  } else if (m.kind != move_kind::keep && senders != who)
    return say(fault::movement, o, -1, "is a collective between different devices");
  if (who != k.devices) return say(fault::devices, b, -1, "lacks a device that takes part, or waits for one that does not");
  if (general) return exchange(before, after);
  if (m.kind == move_kind::keep) return keep(after);
  bool const combines = m.kind == move_kind::all_gather || m.kind == move_kind::all_to_all;
  bool const divides = m.kind == move_kind::reduce_scatter || m.kind == move_kind::all_to_all;
  auto lacks = [&](int d) { return d < 0 || d >= buf(b).type.rank; };
  if ((combines && lacks(m.from_dim)) || (divides && lacks(m.to_dim)) || (combines && divides && m.from_dim == m.to_dim) ||
      (!combines && !divides && m.kind != move_kind::all_reduce))
    return say(fault::movement, o, -1, "names an axis that the tensor lacks");
  return collective(before);
}

/// Every device keeps a part of what it has. Nothing moves.
inline bool replay::keep(std::vector<place> const& after) {
  int const b = task_().in[0], o = task_().out[0];
  contents now;
  for (place const& p : after) {
    content const* c = read(b, p.device);
    content x = c ? *c : content{true, false, false, p.at, {}};
    if (c && !(common(c->at, p.at) == p.at)) x.known = say(fault::movement, o, p.device, "keeps what is not there", on_device(p.device));
    x.at = p.at;
    now.push_back({p.device, std::move(x)});
  }
  return write(o, std::move(now), contributions(b), buf(o).persistent);
}

/// The general exchange: from every (box, share of the sum) one holder's copy reaches every receiver whose box meets it.
inline bool replay::exchange(std::vector<place> const& before, std::vector<place> const& after) { return deliver(gather(before), after); }

inline replay::message replay::gather(std::vector<place> const& before) {
  int const b = task_().in[0];
  message m;
  m.value = buf(b).value;
  std::map<std::pair<box, i64>, std::size_t> known;
  for (place const& p : before) {
    content const* c = read(b, p.device);
    auto const [it, fresh] = known.insert({{p.at, p.sum}, m.sources.size()});
    if (fresh) m.sources.push_back({c ? *c : content{true, false, false, p.at, {}}, {}});
    message::source& s = m.sources[it->second];
    s.holders.push_back(p.device);
    if (!c) s.what.known = false;
  }
  m.all = contributions(b);
  return m;
}
inline bool replay::deliver(message const& m, std::vector<place> const& after) {
  int const o = task_().out[0];
  i64 need = 0;
  contents now;
  for (place const& p : after) {
    content c{true, true, false, p.at, atoms(z((atom_count(m.value) + 63) / 64), 0)};
    std::map<atoms, i64> covered;  // contributions -> elements of the wanted box that they reach
    for (message::source const& s : m.sources) {
      i64 const n = common(s.what.at, p.at).volume();
      if (n == 0) continue;
      c.known = c.known && s.what.known;
      c.updated = c.updated || s.what.updated;
      covered[s.what.has] += n;
      if (!std::binary_search(s.holders.begin(), s.holders.end(), p.device)) need = std::max(need, n);
    }
    for (auto const& [has, n] : covered) {
      if (!c.known) break;
      if (!unite(c.has, has)) c.known = say(fault::added_twice, o, p.device, "adds a contribution twice", on_device(p.device));
      else if (n != p.at.volume()) c.known = say(fault::missing, o, p.device, "does not reach all of the box", on_device(p.device));
    }
    now.push_back({p.device, std::move(c)});
  }
  packing_space(need);
  return write(o, std::move(now), m.all, buf(o).persistent);
}

/// The sending half of an exchange: what it takes along is what is there now. The form has been checked: the other half comes later.
inline bool replay::send() {
  task const& k = task_();
  int const b = k.in[0], o = q_.tasks[z(k.other_half)].out[0];
  if (buf(b).value != buf(o).value) return say(fault::wrong_operand, b, -1, "sends one value into the buffer of another");
  if (!(buf(b).where == k.step.before)) return say(fault::movement, b, -1, "sends from another layout than that of its buffer");
  std::vector<place> const& before = layout_of(b);
  if (devices_of(before) != k.devices) return say(fault::devices, b, -1, "lacks a device that sends, or has one that does not");
  i64 need = 0;
  for (place const& p : before) for (place const& q : layout_of(o)) need = std::max(need, common(p.at, q.at).volume());
  packing_space(need);
  sent_[now_] = gather(before);
  return true;
}
inline bool replay::receive() {
  task const& k = task_();
  auto const it = sent_.find(k.other_half);
  if (it == sent_.end()) return say(fault::not_written, k.out[0], -1, "receives what was not sent");
  message const m = std::move(it->second);
  sent_.erase(it);
  int const o = k.out[0];
  if (!(buf(o).where == k.step.after)) return say(fault::movement, o, -1, "receives into another layout than that of its buffer");
  std::vector<place> const& after = layout_of(o);
  if (devices_of(after) != k.devices) return say(fault::devices, o, -1, "lacks a device that receives, or has one that does not");
  return deliver(m, after);
}

/// All collectives: groups of devices that differ along the group axes alone, members in order of their digits, major first.
inline bool replay::collective(std::vector<place> const& before) {
  task const& k = task_();
  move_step const& m = k.step;
  int const b = k.in[0], o = k.out[0];
  i64 n = 1;
  for (group_axis const& a : m.group) n *= a.degree >= 1 && a.degree <= devices_ && n <= devices_ ? a.degree : 0;
  if (n < 1 || n > devices_) return say(fault::movement, o, -1, "has a group that means nothing");
  std::map<i64, std::map<i64, int>> groups;  // first device -> position -> device
  for (place const& p : before) {
    i64 first = p.device, position = 0;
    for (group_axis const& a : m.group) {
      i64 digit = -1;
      for (std::size_t j = 0; j < m.before.axes.size() && digit < 0; ++j) {
        layout_axis const& l = m.before.axes[j];
        if (l.stride > 0 && a.stride >= l.stride && a.stride % l.stride == 0 && a.stride * a.degree <= l.stride * l.degree)
          digit = p.digit[j] / (a.stride / l.stride) % a.degree;
      }
      if (digit < 0) return say(fault::movement, o, -1, "has a group that is no part of its layout");
      first -= digit * a.stride;
      position = position * a.degree + digit;
    }
    groups[first].insert({position, p.device});
  }
  packing_space(packing_scalars(m, buf(b).type));
  contents now;
  for (auto const& [first, members] : groups) {
    if (static_cast<i64>(members.size()) != n)
      return say(fault::movement, o, static_cast<int>(first), "has a group of ", members.size(), " devices instead of ", n);
    std::vector<content const*> c;
    bool known = true, updated = false, alike = true, apart = true;
    atoms sum;
    for (auto const& [i, d] : members) {
      c.push_back(read(b, d));
      known = known && c.back();
      if (!known) continue;
      updated = updated || c.back()->updated;
      alike = alike && c.back()->has == c.front()->has;
      if (i == 0) sum = c.back()->has;
      else apart = unite(sum, c.back()->has) && apart;
    }
    bool const reduces = m.kind == move_kind::all_reduce || m.kind == move_kind::reduce_scatter;
    bool const gathers = m.kind == move_kind::all_gather || m.kind == move_kind::all_to_all;
    if (known && reduces && !apart)
      known = say(fault::added_twice, o, static_cast<int>(first), "adds a contribution twice in the group of device ", first);
    if (known && gathers && !alike)
      known = say(fault::partial, o, static_cast<int>(first), "joins parts of different sums in the group of device ", first);
    for (auto const& [i, d] : members) {
      content x{true, known, updated, known ? c[z(i)]->at : box{}, {}};
      if (known) {
        x.has = reduces ? sum : c[z(i)]->has;
        if (gathers) {
          x.at = c.front()->at;
          x.at.n[m.from_dim] *= n;
        }
        for (i64 j = 0; j < n && x.known; ++j) {
          box const& theirs = c[z(j)]->at;
          x.known = theirs == (gathers ? part(x.at, m.from_dim, j, n) : c.front()->at);
        }
        if (m.kind == move_kind::reduce_scatter || m.kind == move_kind::all_to_all) {
          x.known = x.known && x.at.n[m.to_dim] % n == 0;
          x.at = part(x.at, m.to_dim, i, n);
        }
        if (!x.known) say(fault::movement, o, d, "joins parts that do not belong together", on_device(d));
      }
      now.push_back({d, std::move(x)});
    }
  }
  std::sort(now.begin(), now.end(), [](auto const& x, auto const& y) { return x.first < y.first; });
  return write(o, std::move(now), contributions(b), buf(o).persistent);
}

/// All that is in buffer b anywhere: a movement loses nothing.
inline atoms replay::contributions(int b) const {
  atoms all(z((atom_count(buf(b).value) + 63) / 64), 0);
  for (content const& c : held_[z(b)]) if (c.known) unite(all, c.has);
  return all;
}
/// Does the task have this many scalars to pack and unpack in?
inline void replay::packing_space(i64 scalars) {
  int const w = task_().workspace;
  i64 const have = w < 0 ? 0 : buf(w).bytes, need = scalars * q_.scalar_bytes;
  if (have < need) say(fault::bytes, w, -1, "has ", have, " bytes to pack in and needs ", need);
}

}  // namespace tensorpar::detail::check
