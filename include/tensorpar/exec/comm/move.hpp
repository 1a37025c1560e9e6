// tensorpar/exec/comm/move.hpp - one step of a reshard on one device: pack, communicate, unpack
#pragma once
#include <algorithm>
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/device/concepts.hpp>
#include <tensorpar/exec/device/memory.hpp>
#include <tensorpar/ir/exchange.hpp>
#include <tensorpar/program/core/program.hpp>
#include <vector>

namespace tensorpar::exec {

namespace detail {

/// The part of block b that belongs to member i of n along axis d.
inline op::tensor_block part_along(op::tensor_block b, int d, i64 i, i64 n) {
  b.local[d] /= n;
  b.offset[d] += b.local[d] * i;
  return b;
}

/// Communication groups list devices in ascending order; chunk k of a packed array belongs to the k-th of
/// them. `place[k]` is that member's position among the parts of the split axis.
struct ordered_group {
  std::vector<int> devices;
  std::vector<i64> place;
};
inline ordered_group order(std::vector<int> const& members) {
  ordered_group g{members, {}};
  std::sort(g.devices.begin(), g.devices.end());
  for (int d : g.devices) g.place.push_back(std::find(members.begin(), members.end(), d) - members.begin());
  return g;
}

}  // namespace detail

/// What a device prepares once for a reshard task, so that a step only moves data.
struct prepared_move {
  detail::ordered_group group;
  op::tensor_block before, after;          // this device's boxes; rank -1 where it has none
  std::vector<ir::transfer> transfers;     // exchange: those that this device takes part in, in global order
};
inline prepared_move prepare_move(ir::reshard_step const& m, shape const& s, int device) {
  prepared_move p;
  auto const b = m.before.coordinates(device), a = m.after.coordinates(device);
  p.before.rank = p.after.rank = -1;
  if (!b.empty()) p.before = ir::block_of(m.before, s, b);
  if (!a.empty()) p.after = ir::block_of(m.after, s, a);
  if (m.kind == ir::reshard_kind::exchange) {
    for (ir::transfer const& t : ir::transfers(m, s))
      if (t.from == device || t.to == device) p.transfers.push_back(t);
  } else if (m.kind != ir::reshard_kind::slice) {
    p.group = detail::order(m.members(device));
  }
  return p;
}

/// Carries out this device's share of a reshard task. src, dst: its blocks before and after (or null); pack:
/// the packing space that `packing_scalars` asks for; group: made from p.group.devices; tag: of the messages
/// of an exchange; memory: where all of them lie. An exchange without dst only sends, one without src only
/// receives. Communication failures propagate as the communicator's exception.
template <class S, class Comm, memory_policy Memory = host_memory>
  requires full_communicator<Comm, S>
void run_move(ir::reshard_step const& m, prepared_move const& p, S const* src, S* dst, S* pack, Comm& comm,
              std::optional<typename Comm::group> const& group, int tag = 0, Memory const& memory = {}) {
  using detail::part_along;
  auto const copy = [&](op::tensor_block const& box, op::tensor_block const& from, S const* a,
                        op::tensor_block const& to,
                        S* b, bool adds = false) { memory.move_box(box, from, a, to, b, adds); };
  i64 const n = static_cast<i64>(p.group.devices.size());
  switch (m.kind) {
    case ir::reshard_kind::slice: copy(p.after, p.before, src, p.after, dst); return;
    case ir::reshard_kind::all_reduce: comm.all_reduce(*group, src, dst, p.before.elements()); return;
    case ir::reshard_kind::reduce_scatter: {
      S const* in = src;
      if (!ir::parts_contiguous(m, p.before.local_shape(), m.to_dim)) {
        i64 const chunk = p.before.elements() / n;
        for (i64 k = 0; k < n; ++k) {
          op::tensor_block const part =
              part_along(p.before, m.to_dim, p.group.place[idx(k)], n);
          copy(part, p.before, src, part, pack + k * chunk);
        }
        in = pack;
      }
      comm.reduce_scatter(*group, in, dst, p.after.elements());
      return;
    }
    case ir::reshard_kind::all_gather: {
      bool const direct = ir::parts_contiguous(m, p.after.local_shape(), m.from_dim);
      i64 const chunk = p.before.elements();
      comm.all_gather(*group, src, direct ? dst : pack, chunk);
      if (!direct)
        for (i64 k = 0; k < n; ++k) {
          op::tensor_block const part =
              part_along(p.after, m.from_dim, p.group.place[idx(k)], n);
          copy(part, part, pack + k * chunk, p.after, dst);
        }
      return;
    }
    case ir::reshard_kind::all_to_all: {
      i64 const chunk = p.before.elements() / n;
      bool const direct_in = ir::parts_contiguous(m, p.before.local_shape(), m.to_dim),
                 direct_out = ir::parts_contiguous(m, p.after.local_shape(), m.from_dim);
      S const* in = src;
      S* out = dst;
      if (!direct_in) {
        for (i64 k = 0; k < n; ++k) {
          op::tensor_block const part =
              part_along(p.before, m.to_dim, p.group.place[idx(k)], n);
          copy(part, p.before, src, part, pack + k * chunk);
        }
        in = pack;
      }
      if (!direct_out) out = pack + (direct_in ? 0 : p.before.elements());
      comm.all_to_all(*group, in, out, chunk);
      if (!direct_out)
        for (i64 k = 0; k < n; ++k) {
          op::tensor_block const part =
              part_along(p.after, m.from_dim, p.group.place[idx(k)], n);
          copy(part, part, out + k * chunk, p.after, dst);
        }
      return;
    }
    case ir::reshard_kind::exchange:
      for (ir::transfer const& t : p.transfers) {
        i64 const count = t.box.elements();
        if (t.from == t.to) {
          copy(t.box, p.before, src, p.after, dst, t.adds);
        } else if (t.from == comm.rank()) {
          copy(t.box, p.before, src, t.box, pack);
          comm.send(t.to, tag, static_cast<S const*>(pack), count);
        } else {
          comm.receive(t.from, tag, pack, count);
          copy(t.box, t.box, pack, p.after, dst, t.adds);
        }
      }
      return;
  }
}

}  // namespace tensorpar::exec
