// tensorpar/ir/reshard.hpp - from one layout to another: collectives recognised from adjacent parallel
// operators
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/held_boxes.hpp>
#include <tensorpar/ir/layout.hpp>

namespace tensorpar::ir {

/// What moves a tensor. As parallel operators: all_reduce = replicate . reduce, reduce_scatter = partition .
/// reduce, all_gather = replicate . combine, all_to_all = partition(e) . combine(d), slice = a partition of
/// copies (each device cuts its box out of what it has; nothing moves; to_dim -1 where several axes are cut
/// at once). `exchange` is the general case: every device gets its new box from those that hold it, partial
/// sums added in device order.
enum class reshard_kind : int { all_reduce, reduce_scatter, all_gather, all_to_all, slice, exchange };
constexpr char const* name_of(reshard_kind k) {
  constexpr char const* n[] = {"all_reduce", "reduce_scatter", "all_gather",
                               "all_to_all", "slice",          "exchange"};
  return n[static_cast<int>(k)];
}

/// One axis of a communication group: `degree` devices, `stride` apart.
struct group_axis {
  i64 degree, stride;
  friend bool operator==(group_axis const&, group_axis const&) = default;
};

/// One step of a reshard. Every device of `after` takes part (for exchange: of `before` and `after`).
/// Devices that differ only along the group axes (major first) form a group.
struct reshard_step {
  reshard_kind kind = reshard_kind::exchange;
  // all_gather, all_to_all: the axis combined; reduce_scatter, all_to_all, keep: the axis partitioned
  int from_dim = -1, to_dim = -1;
  axis_list<group_axis> group;
  layout before, after;
  friend bool operator==(reshard_step const&, reshard_step const&) = default;
  i64 group_size() const { i64 n = 1; for (group_axis const& a : group) n *= a.degree; return n; }
  /// Of the group that `dev` belongs to, the device whose digits along the group axes are all zero.
  /// Precondition: `before` holds dev. O(axes).
  int first_member(int dev) const {
    auto const c = before.coordinates(dev);
    i64 base = dev;
    for (group_axis const& g : group)
      for (std::size_t k = 0; k < before.axes.size(); ++k) {
        layout_axis const& a = before.axes[k];
        if (g.stride >= a.stride && g.stride * g.degree <= a.stride * a.degree && g.stride % a.stride == 0) {
          i64 const digit = c[k] / (g.stride / a.stride) % g.degree;
          base -= digit * g.stride;
          break;
        }
      }
    return static_cast<int>(base);
  }
  /// The devices of the group that `dev` belongs to, major digit first. Precondition: `before` holds dev.
  /// O(size).
  std::vector<int> members(int dev) const {
    std::vector<int> r{first_member(dev)};
    for (group_axis const& g : group) {
      std::vector<int> next;
      for (int b : r) for (i64 i = 0; i < g.degree; ++i) next.push_back(b + static_cast<int>(i * g.stride));
      r = std::move(next);
    }
    return r;
  }
};

namespace detail {

struct atom { i64 degree, stride; };
/// Numbers of atoms. Their degrees are at least 2 and their product counts devices (an int), so there are at
/// most 31; a list without memory of its own, because the search asks for tens of thousands of reshards.
struct atom_list {
  int count = 0;
  signed char id[31];
  std::size_t size() const { return idx(count); }
  bool empty() const { return count == 0; }
  int operator[](std::size_t i) const { return id[i]; }
  int back() const { return id[count - 1]; }
  void push_back(int x) { id[count++] = static_cast<signed char>(x); }
  void pop_back() { --count; }
  signed char const* begin() const { return id; }
  signed char const* end() const { return id + count; }
  bool contains(int x) const { for (int y : *this) if (x == y) return true; return false; }
  void erase(int x) {
    int kept = 0;
    for (int i = 0; i < count; ++i) if (id[i] != x) id[kept++] = id[i];
    count = kept;
  }
};
/// A placement as digits: per tensor axis the atoms that shard it, major first, and the atoms that are copies
/// and sums.
struct digits {
  int rank = 0;
  atom_list shard[shape::max_rank], copy, sum;
};

/// Both placements over their common refinement, or false if the device sets or radices do not match.
inline bool refine(layout const& a, layout const& b, int rank, std::vector<atom>& atoms, digits& x,
                   digits& y) {
  if (a.start != b.start || a.size() != b.size()) return false;
  std::vector<i64> cuts, inside;
  cuts.reserve(2 * (a.axes.size() + b.axes.size()));
  inside.reserve(cuts.capacity() + 2);
  for (layout const* l : {&a, &b})
    for (layout_axis const& q : l->axes) {
      cuts.push_back(q.stride);
      cuts.push_back(q.stride * q.degree);
    }
  auto split = [&](layout const& l, digits& d, bool first) {
    d.rank = rank;
    int digits_of_layout = 0;
    for (layout_axis const& q : l.axes) {
      inside.assign(1, q.stride);
      for (i64 c : cuts) if (c > q.stride && c < q.stride * q.degree) inside.push_back(c);
      inside.push_back(q.stride * q.degree);
      for (std::size_t i = 1; i < inside.size(); ++i)
        for (std::size_t j = i; j > 0 && inside[j] < inside[j - 1]; --j) std::swap(inside[j], inside[j - 1]);
      for (std::size_t i = inside.size() - 1; i > 0; --i) {            // larger strides are the major digits
        if (inside[i] == inside[i - 1]) continue;
        if (inside[i] % inside[i - 1]) return false;
        atom const t{inside[i] / inside[i - 1], inside[i - 1]};
        int id = -1;
        for (std::size_t k = 0; k < atoms.size(); ++k)
          if (atoms[k].stride == t.stride && atoms[k].degree == t.degree) id = static_cast<int>(k);
        if (id < 0) {
          if (!first) return false;
          id = static_cast<int>(atoms.size());
          atoms.push_back(t);
        }
        if (++digits_of_layout > 31) return false;                     // overlapping axes: not a layout
        (q.kind == part_kind::shard  ? d.shard[q.dim]
         : q.kind == part_kind::replicate ? d.copy
                                     : d.sum)
            .push_back(id);
      }
    }
    return true;
  };
  if (!split(a, x, true) || !split(b, y, false)) return false;
  std::size_t n = y.copy.size() + y.sum.size();
  for (int d = 0; d < rank; ++d) n += y.shard[d].size();
  return n == atoms.size();
}

inline layout to_layout(int start, std::vector<atom> const& atoms, digits const& d) {
  layout l{start, {}};
  l.axes.reserve(atoms.size());
  auto put = [&](part_kind k, int dim, int id) {
    l.axes.push_back(
        {k, dim, atoms[idx(id)].degree, atoms[idx(id)].stride});
  };
  for (int i = 0; i < d.rank; ++i) for (int id : d.shard[i]) put(part_kind::shard, i, id);
  for (int id : d.copy) put(part_kind::replicate, -1, id);
  for (int id : d.sum) put(part_kind::partial, -1, id);
  return canonical(std::move(l));
}

/// Does q begin with p?
inline bool begins(atom_list const& p, atom_list const& q) {
  if (p.size() > q.size()) return false;
  for (std::size_t i = 0; i < p.size(); ++i) if (p[i] != q[i]) return false;
  return true;
}

/// Appends what brings a tensor to another layout on the same devices to none; false: no such steps do, and
/// what was appended is not wanted. Precondition: from != to.
inline bool movement_in_steps(layout const& from, layout const& to, int rank,
                              std::vector<reshard_step>& steps) {
  if (from.start != to.start) return false;              // most often, and nothing is allocated for it
  std::vector<atom> atoms;
  atoms.reserve(8);
  digits now, goal;
  if (!refine(from, to, rank, atoms, now, goal)) return false;
  layout at = from;
  auto is_prefix = [&](int d) { return begins(now.shard[d], goal.shard[d]); };
  auto step = [&](reshard_kind k, int from_dim, int to_dim, int id) {
    atom const a = atoms[idx(id)];
    layout next = to_layout(from.start, atoms, now);
    reshard_step* const last = steps.empty() || k == reshard_kind::all_to_all ? nullptr : &steps.back();
    // one collective over several digits
    if (last && last->kind == k && last->from_dim == from_dim && last->to_dim == to_dim) {
      // gathering takes the minor digit first, so a further digit is more significant; partitioning appends
      // minor digits
      last->group.insert(k == reshard_kind::all_gather ? last->group.begin() : last->group.end(),
                         {a.degree, a.stride});
      last->after = next;
    } else {
      steps.push_back({k, from_dim, to_dim, {{a.degree, a.stride}}, std::move(at), next});
    }
    at = std::move(next);
  };
  // appends the next wanted digit of axis d if `pool` holds it
  auto append_from = [&](atom_list& pool, reshard_kind k) {
    for (int d = 0; d < now.rank; ++d) {
      if (!is_prefix(d) || now.shard[d].size() == goal.shard[d].size()) continue;
      int const id = goal.shard[d][now.shard[d].size()];
      if (!pool.contains(id)) continue;
      pool.erase(id);
      now.shard[d].push_back(id);
      step(k, -1, d, id);
      return true;
    }
    return false;
  };
  auto all_to_all = [&] {
    for (int d = 0; d < now.rank; ++d) {
      if (now.shard[d].empty() || is_prefix(d)) continue;
      int const id = now.shard[d].back();
      for (int e = 0; e < now.rank; ++e) {
        if (e == d || !is_prefix(e) || now.shard[e].size() == goal.shard[e].size() ||
            goal.shard[e][now.shard[e].size()] != id)
          continue;
        now.shard[d].pop_back();
        now.shard[e].push_back(id);
        step(reshard_kind::all_to_all, d, e, id);
        return true;
      }
    }
    return false;
  };
  auto all_reduce = [&] {
    for (int id : now.sum) {
      // wanted as a shard: a reduce-scatter will come
      if (goal.sum.contains(id) || !goal.copy.contains(id)) continue;
      now.sum.erase(id);
      now.copy.push_back(id);
      step(reshard_kind::all_reduce, -1, -1, id);
      return true;
    }
    return false;
  };
  auto all_gather = [&] {
    for (int d = 0; d < now.rank; ++d) {
      if (is_prefix(d)) continue;
      int const id = now.shard[d].back();
      now.shard[d].pop_back();
      now.copy.push_back(id);
      step(reshard_kind::all_gather, d, -1, id);
      return true;
    }
    return false;
  };
  while (append_from(now.copy, reshard_kind::slice) || append_from(now.sum, reshard_kind::reduce_scatter) ||
         all_to_all() || all_reduce() || all_gather()) {}
  return at == to;
}
/// Into how many parts a layout cuts a tensor.
inline i64 parts_of(layout const& l) {
  i64 n = 1;
  for (layout_axis const& a : l.axes) if (a.kind == part_kind::shard) n *= a.degree;
  return n;
}
/// To as many other devices: each sends to one of them. Sums are reduced before that; parts that are wanted
/// larger are sent as they are, and gathered by those who received them (Narayanan et al. 2021, section 4.1).
/// False: they are not other devices, or neither is the case.
inline bool movement_elsewhere(layout const& from, layout const& to, int rank,
                               std::vector<reshard_step>& steps) {
  if (from.start == to.start || from.size() != to.size()) return false;
  bool const sums = from.degree(part_kind::partial) > 1;
  if (sums ? to.degree(part_kind::partial) > 1 : parts_of(from) <= parts_of(to)) return false;
  layout here = to, there = from;
  here.start = from.start;
  there.start = to.start;
  for (i64 i = 0, n = from.size(); i < n; ++i) if (there.holds(from.device(i))) return false;
  if (!movement_in_steps(sums ? from : there, sums ? here : to, rank, steps)) return false;
  reshard_step across{reshard_kind::exchange, -1, -1, {}, sums ? std::move(here) : from,
                      sums ? to : std::move(there)};
  steps.insert(sums ? steps.end() : steps.begin(), std::move(across));
  return true;
}
/// Appends the steps of `reshard` to none, whatever the tensor's extents; false: one exchange, or a cut of
/// what is there, is all there is. Precondition: from != to.
inline bool reshard_in_steps(layout const& from, layout const& to, int rank,
                             std::vector<reshard_step>& steps) {
  if (movement_in_steps(from, to, rank, steps)) return true;
  steps.clear();
  if (movement_elsewhere(from, to, rank, steps)) return true;
  steps.clear();
  return false;
}
}  // namespace detail

/// The steps that bring a tensor of this shape from one layout to another; empty if nothing has to be done.
/// Same devices: local partitions first (they shrink what moves), then reduce-scatter, all-to-all,
/// all-reduce, all-gather; several digits of one kind travel as one collective. As many other devices: these,
/// before or behind one exchange (`movement_elsewhere`). Otherwise one exchange. O(axes^2 + devices).
/// Precondition: both canonical; `to` has no sum axis that `from` lacks. Law: from's logical tensor equals
/// to's.
inline std::vector<reshard_step> reshard(layout const& from, layout const& to, shape const& s) {
  std::vector<reshard_step> steps;
  if (from == to || detail::reshard_in_steps(from, to, s.rank, steps)) return steps;
  return {{detail::holds_already(from, to, s) ? reshard_kind::slice : reshard_kind::exchange,
           -1,
           -1,
           {},
           from,
           to}};
}

/// Bytes that a device sends in this step (ring algorithms for reductions and gathers), given the bytes of
/// one part before it.
inline double bytes_sent(reshard_step const& m, shape const& s, i64 scalar_bytes) {
  double const n = static_cast<double>(m.group_size());
  double const unit = static_cast<double>(bytes_of(s.type, scalar_bytes));
  double const before = static_cast<double>(part_of(m.before, s).elements()) * unit,
               after = static_cast<double>(part_of(m.after, s).elements()) * unit;
  switch (m.kind) {
    case reshard_kind::all_reduce: return 2 * before * (n - 1) / n;
    case reshard_kind::reduce_scatter: return before * (n - 1) / n;
    case reshard_kind::all_gather: return after * (n - 1) / n;
    case reshard_kind::all_to_all: return before * (n - 1) / n;
    case reshard_kind::slice: return 0;
    case reshard_kind::exchange: return after * static_cast<double>(m.before.degree(part_kind::partial));
  }
  return 0;
}

}  // namespace tensorpar::ir
