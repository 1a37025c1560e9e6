// tensorpar/ir/exchange.hpp - the general reshard spelled out: who sends which box to whom, and what packing
// a reshard needs
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/reshard.hpp>

namespace tensorpar::ir {

/// One box from one device to another (or to itself). `adds`: the receiver already has a partial sum of this
/// box and adds.
struct transfer {
  int from = 0, to = 0;
  op::tensor_block box;
  bool adds = false;
};

/// All transfers of an exchange in one global order; if every device carries out its own in this order,
/// nothing waits in a circle. A receiver takes each box from itself if it can, else from one of the copies,
/// sharding evenly; partial sums arrive in the order of their place in the mesh, so every copy of the result
/// has the same bits. O(|before| * |after|).
inline std::vector<transfer> transfers(reshard_step const& m, shape const& s) {
  std::vector<transfer> r;
  i64 const senders = m.before.size(), receivers = m.after.size();
  struct source { int dev; std::vector<i64> c; op::tensor_block block; i64 sum; };
  std::vector<source> src;
  for (i64 i = 0; i < senders; ++i) {
    source q{m.before.device(i), m.before.coordinates(m.before.device(i)), {}, 0};
    q.block = block_of(m.before, s, q.c);
    for (std::size_t k = 0; k < m.before.axes.size(); ++k)
      if (m.before.axes[k].kind == part_kind::partial) q.sum = q.sum * m.before.axes[k].degree + q.c[k];
    src.push_back(std::move(q));
  }
  auto same_box = [&](op::tensor_block const& a, op::tensor_block const& b) {
    for (int d = 0; d < s.rank; ++d) if (a.offset[d] != b.offset[d]) return false;
    return true;
  };
  for (i64 j = 0; j < receivers; ++j) {
    int const to = m.after.device(j);
    op::tensor_block const want = block_of(m.after, s, to);
    std::vector<bool> done(src.size(), false);
    std::vector<op::tensor_block> had;
    for (std::size_t i = 0; i < src.size(); ++i) {
      if (done[i]) continue;
      // all holders of this block and this share of its sum
      std::vector<std::size_t> holders;
      for (std::size_t k = i; k < src.size(); ++k)
        if (src[k].sum == src[i].sum && same_box(src[k].block, src[i].block)) {
          holders.push_back(k);
          done[k] = true;
        }
      op::tensor_block box = want;
      bool empty = false;
      for (int d = 0; d < s.rank; ++d) {
        i64 const lo = want.offset[d] > src[i].block.offset[d] ? want.offset[d] : src[i].block.offset[d];
        i64 const a = want.offset[d] + want.local[d], b = src[i].block.offset[d] + src[i].block.local[d];
        i64 const hi = a < b ? a : b;
        box.offset[d] = lo;
        box.local[d] = hi - lo;
        empty = empty || hi <= lo;
      }
      if (empty) continue;
      std::size_t pick = holders[idx(j) % holders.size()];
      for (std::size_t k : holders) if (src[k].dev == to) pick = k;
      bool adds = false;
      for (op::tensor_block const& h : had) adds = adds || same_box(h, box);
      had.push_back(box);
      r.push_back({src[pick].dev, to, box, adds});
    }
  }
  return r;
}

/// Scalars of an exchange's largest transfer. Parts of an axis meet independently of other axes, and every
/// combination occurs: a product over axes, whatever the number of devices. O(sum of degrees).
inline i64 largest_transfer(reshard_step const& m, shape const& s) {
  i64 r = 1;
  for (int d = 0; d < s.rank; ++d) {
    i64 const n = s.d[d].n, a = n / m.before.degree(part_kind::shard, d),
              b = n / m.after.degree(part_kind::shard, d);
    i64 most = 0;
    // from border to border of either's parts
    for (i64 at = 0; at < n && most < a && most < b;) {
      i64 const next = std::min((at / a + 1) * a, (at / b + 1) * b);
      most = std::max(most, next - at);
      at = next;
    }
    r *= most;
  }
  return r;
}

/// Do the parts of a block along axis d lie one after the other, in the order of the members' device numbers?
inline bool parts_contiguous(reshard_step const& m, shape const& local, int d) {
  for (std::size_t i = 1; i < m.group.size(); ++i)
    if (m.group[i].stride > m.group[i - 1].stride) return false;
  for (int i = 0; i < d; ++i) if (local.d[i].n != 1) return false;
  return true;
}

/// Scalars that a device needs beside its blocks to pack and unpack for this step. Collectives want one
/// contiguous chunk per member.
inline i64 packing_scalars(reshard_step const& m, shape const& s) {
  shape const before = part_of(m.before, s), after = part_of(m.after, s);
  switch (m.kind) {
    case reshard_kind::all_reduce:
    case reshard_kind::slice: return 0;
    case reshard_kind::reduce_scatter: return parts_contiguous(m, before, m.to_dim) ? 0 : before.elements();
    case reshard_kind::all_gather: return parts_contiguous(m, after, m.from_dim) ? 0 : after.elements();
    case reshard_kind::all_to_all:
      return (parts_contiguous(m, before, m.to_dim) ? 0 : before.elements()) +
             (parts_contiguous(m, after, m.from_dim) ? 0 : after.elements());
    case reshard_kind::exchange: return largest_transfer(m, s);
  }
  return 0;
}

}  // namespace tensorpar::ir
