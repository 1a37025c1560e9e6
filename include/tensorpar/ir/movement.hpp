// tensorpar/ir/movement.hpp - from one layout to another: collectives recognised from adjacent parallel operators
#pragma once
#include <tensorpar/ir/layout.hpp>

namespace tensorpar {

/// What moves a tensor. As parallel operators: all_reduce = replicate . reduce, reduce_scatter = partition . reduce,
/// all_gather = replicate . combine, all_to_all = partition(e) . combine(d), keep = a partition of copies (each device cuts its box out of
/// what it has; nothing moves; to_dim -1 where several axes are cut at once).
/// `exchange` is the general case: every device gets its new box from those who hold it, partial sums added in device order.
enum class move_kind : int { all_reduce, reduce_scatter, all_gather, all_to_all, keep, exchange };
constexpr char const* name_of(move_kind k) {
  constexpr char const* n[] = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "keep", "exchange"};
  return n[static_cast<int>(k)];
}

/// One axis of a communication group: `degree` devices, `stride` apart.
struct group_axis {
  i64 degree, stride;
  friend bool operator==(group_axis const&, group_axis const&) = default;
};

/// One step of a movement. Every device of `after` takes part (for exchange: of `before` and `after`). Devices that differ only along the
/// group axes (major first) form a group.
struct move_step {
  move_kind kind = move_kind::exchange;
  int from_dim = -1, to_dim = -1;       // all_gather, all_to_all: the axis combined; reduce_scatter, all_to_all, keep: the axis partitioned
  std::vector<group_axis> group;
  layout before, after;
  friend bool operator==(move_step const&, move_step const&) = default;
  i64 group_size() const { i64 n = 1; for (group_axis const& a : group) n *= a.degree; return n; }
  /// The devices of the group that `dev` belongs to, major digit first. Precondition: `before` holds dev. O(size).
  std::vector<int> members(int dev) const {
    // subtract dev's own digits along the group axes, then enumerate
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
    std::vector<int> r{static_cast<int>(base)};
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
/// A placement as digits: per tensor axis the atoms that shard it, major first, and the atoms that are copies and sums.
struct digits {
  std::vector<std::vector<int>> shard;
  std::vector<int> copy, sum;
};

/// Both placements over their common refinement, or false if the device sets or radices do not match.
inline bool refine(layout const& a, layout const& b, int rank, std::vector<atom>& atoms, digits& x, digits& y) {
  if (a.start != b.start || a.size() != b.size()) return false;
  std::vector<i64> cuts;
  for (layout const* l : {&a, &b}) for (layout_axis const& q : l->axes) { cuts.push_back(q.stride); cuts.push_back(q.stride * q.degree); }
  auto split = [&](layout const& l, digits& d, bool first) {
    d.shard.assign(static_cast<std::size_t>(rank), {});
    for (layout_axis const& q : l.axes) {
      std::vector<i64> inside{q.stride};
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
        (q.kind == part_kind::shard ? d.shard[static_cast<std::size_t>(q.dim)] : q.kind == part_kind::copy ? d.copy : d.sum).push_back(id);
      }
    }
    return true;
  };
  if (!split(a, x, true) || !split(b, y, false)) return false;
  std::size_t n = y.copy.size() + y.sum.size();
  for (auto const& s : y.shard) n += s.size();
  return n == atoms.size();
}

inline layout to_layout(int start, std::vector<atom> const& atoms, digits const& d) {
  layout l{start, {}};
  auto put = [&](part_kind k, int dim, int id) {
    l.axes.push_back({k, dim, atoms[static_cast<std::size_t>(id)].degree, atoms[static_cast<std::size_t>(id)].stride});
  };
  for (std::size_t i = 0; i < d.shard.size(); ++i) for (int id : d.shard[i]) put(part_kind::shard, static_cast<int>(i), id);
  for (int id : d.copy) put(part_kind::copy, -1, id);
  for (int id : d.sum) put(part_kind::sum, -1, id);
  return canonical(std::move(l));
}

inline bool contains(std::vector<int> const& v, int x) { for (int y : v) if (x == y) return true; return false; }
inline void erase(std::vector<int>& v, int x) {
  for (std::size_t i = 0; i < v.size(); ++i)
    if (v[i] == x) {
      v.erase(v.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
}

/// Does every device that needs a box already hold it, complete?
inline bool holds_already(layout const& from, layout const& to, shape const& s) {
  if (from.degree(part_kind::sum) > 1) return false;
  for (i64 i = 0, n = to.size(); i < n; ++i) {
    int const dev = to.device(i);
    auto const c = from.coordinates(dev);
    if (c.empty()) return false;
    tensor_block const a = block_of(from, s, c), b = block_of(to, s, dev);
    for (int d = 0; d < s.rank; ++d)
      if (b.offset[d] < a.offset[d] || b.offset[d] + b.local[d] > a.offset[d] + a.local[d]) return false;
  }
  return true;
}

}  // namespace detail

/// The steps that bring a tensor of this shape from one layout to another; empty if nothing has to be done.
/// Same devices: local partitions first (they shrink what moves), then reduce-scatter, all-to-all, all-reduce, all-gather; several digits
/// of one kind travel as one collective. Otherwise one exchange. O(axes^2). Precondition: both canonical; `to` has no sum axis that `from`
/// lacks. Law: from's logical tensor equals to's.
inline std::vector<move_step> movement(layout const& from, layout const& to, shape const& s) {
  std::vector<move_step> steps;
  if (from == to) return steps;
  std::vector<detail::atom> atoms;
  detail::digits now, goal;
  auto exchange = [&] {
    return std::vector<move_step>{{detail::holds_already(from, to, s) ? move_kind::keep : move_kind::exchange, -1, -1, {}, from, to}};
  };
  if (!detail::refine(from, to, s.rank, atoms, now, goal)) return exchange();
  layout at = from;
  auto is_prefix = [&](std::size_t d) {
    auto const &p = now.shard[d], &q = goal.shard[d];
    if (p.size() > q.size()) return false;
    for (std::size_t i = 0; i < p.size(); ++i) if (p[i] != q[i]) return false;
    return true;
  };
  auto step = [&](move_kind k, int from_dim, int to_dim, int id) {
    detail::atom const a = atoms[static_cast<std::size_t>(id)];
    layout const next = detail::to_layout(from.start, atoms, now);
    if (!steps.empty() && steps.back().kind == k && steps.back().from_dim == from_dim && steps.back().to_dim == to_dim) {
      move_step& last = steps.back();
      // gathering takes the minor digit first, so a further digit is more significant; partitioning appends minor digits
      if (k == move_kind::all_gather) last.group.insert(last.group.begin(), {a.degree, a.stride});
      else if (k == move_kind::all_to_all) { steps.push_back({k, from_dim, to_dim, {{a.degree, a.stride}}, at, next}); at = next; return; }
      else last.group.push_back({a.degree, a.stride});
      last.after = next;
    } else steps.push_back({k, from_dim, to_dim, {{a.degree, a.stride}}, at, next});
    at = next;
  };
  // appends the next wanted digit of axis d if `pool` holds it
  auto append_from = [&](std::vector<int>& pool, move_kind k) {
    for (std::size_t d = 0; d < now.shard.size(); ++d) {
      if (!is_prefix(d) || now.shard[d].size() == goal.shard[d].size()) continue;
      int const id = goal.shard[d][now.shard[d].size()];
      if (!detail::contains(pool, id)) continue;
      detail::erase(pool, id);
      now.shard[d].push_back(id);
      step(k, -1, static_cast<int>(d), id);
      return true;
    }
    return false;
  };
  auto all_to_all = [&] {
    for (std::size_t d = 0; d < now.shard.size(); ++d) {
      if (now.shard[d].empty() || is_prefix(d)) continue;
      int const id = now.shard[d].back();
      for (std::size_t e = 0; e < now.shard.size(); ++e) {
        if (e == d || !is_prefix(e) || now.shard[e].size() == goal.shard[e].size() || goal.shard[e][now.shard[e].size()] != id) continue;
        now.shard[d].pop_back();
        now.shard[e].push_back(id);
        step(move_kind::all_to_all, static_cast<int>(d), static_cast<int>(e), id);
        return true;
      }
    }
    return false;
  };
  auto all_reduce = [&] {
    for (int id : now.sum) {
      if (detail::contains(goal.sum, id)) continue;
      bool stuck = !detail::contains(goal.copy, id);                    // wanted as a shard: only if nothing else helps
      if (stuck) continue;
      detail::erase(now.sum, id);
      now.copy.push_back(id);
      step(move_kind::all_reduce, -1, -1, id);
      return true;
    }
    return false;
  };
  auto all_gather = [&] {
    for (std::size_t d = 0; d < now.shard.size(); ++d) {
      if (is_prefix(d)) continue;
      int const id = now.shard[d].back();
      now.shard[d].pop_back();
      now.copy.push_back(id);
      step(move_kind::all_gather, static_cast<int>(d), -1, id);
      return true;
    }
    return false;
  };
  while (append_from(now.copy, move_kind::keep) || append_from(now.sum, move_kind::reduce_scatter) || all_to_all() || all_reduce() ||
         all_gather()) {}
  if (!(at == to)) return exchange();
  return steps;
}

/// Bytes that a device sends in this step (ring algorithms for reductions and gathers), given the bytes of one part before it.
inline double bytes_sent(move_step const& m, shape const& s, i64 scalar_bytes) {
  double const n = static_cast<double>(m.group_size());
  double const unit = static_cast<double>(is_integer(s.type) ? bytes_of(s.type) : scalar_bytes);
  double const before = static_cast<double>(part_of(m.before, s).elements()) * unit,
               after = static_cast<double>(part_of(m.after, s).elements()) * unit;
  switch (m.kind) {
    case move_kind::all_reduce: return 2 * before * (n - 1) / n;
    case move_kind::reduce_scatter: return before * (n - 1) / n;
    case move_kind::all_gather: return after * (n - 1) / n;
    case move_kind::all_to_all: return before * (n - 1) / n;
    case move_kind::keep: return 0;
    case move_kind::exchange: return after * static_cast<double>(m.before.degree(part_kind::sum));
  }
  return 0;
}

}  // namespace tensorpar
