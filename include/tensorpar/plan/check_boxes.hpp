// tensorpar/plan/check_boxes.hpp - the checker's own geometry: boxes of tensors and of iteration spaces, device by device
#pragma once
#include <algorithm>
#include <tensorpar/ir/iteration_space.hpp>
#include <tensorpar/ir/layout.hpp>
#include <tensorpar/plan/check_findings.hpp>

namespace tensorpar::detail::check {

/// A box of a tensor: [lo, lo + n) on every axis; unused axes are [0, 1).
struct box {
  i64 lo[shape::max_rank] = {0, 0, 0, 0, 0, 0};
  i64 n[shape::max_rank] = {1, 1, 1, 1, 1, 1};
  friend bool operator==(box const&, box const&) = default;
  friend bool operator<(box const& a, box const& b) { return std::lexicographical_compare(a.lo, a.lo + 6, b.lo, b.lo + 6); }
  i64 volume() const { i64 v = 1; for (i64 x : n) v *= x; return v; }
};
inline box whole(shape const& s) {
  box b;
  for (int d = 0; d < s.rank; ++d) b.n[d] = s.d[d].n;
  return b;
}
inline box common(box a, box const& b) {
  for (int d = 0; d < shape::max_rank; ++d) {
    i64 const hi = std::min(a.lo[d] + a.n[d], b.lo[d] + b.n[d]);
    a.lo[d] = std::max(a.lo[d], b.lo[d]);
    a.n[d] = std::max<i64>(0, hi - a.lo[d]);
  }
  return a;
}
/// Part i of n equal ones along axis d. Precondition: n divides the extent.
inline box part(box b, int d, i64 i, i64 n) {
  b.n[d] /= n;
  b.lo[d] += i * b.n[d];
  return b;
}
inline std::string spell(box const& b, int rank) {
  std::string r = "[";
  for (int d = 0; d < rank; ++d) r += (d ? ", " : "") + std::to_string(b.lo[d]) + ".." + std::to_string(b.lo[d] + b.n[d]);
  return r + "]";
}

/// A device of a grid and its coordinates.
struct place {
  int device = 0;
  std::vector<i64> digit;  // along the grid's axes
  box at;                  // of a layout: what it has of the tensor, and which share of a sum
  i64 sum = 0;
};
/// A grid's devices in ascending order: start + sum of digit * stride. `why` says what is wrong with it, if `all` is empty.
struct grid_places { std::vector<place> all; std::string why; };
template <class Axis> grid_places walk(i64 start, std::vector<Axis> const& axes, int devices) {
  grid_places r;
  i64 size = 1;
  for (Axis const& a : axes) {
    if (a.degree < 1 || a.degree > devices || (size *= a.degree) > devices)
      return {{}, sentence("degree ", a.degree, " on ", devices, " devices")};
    if (a.stride < -devices || a.stride > devices) return {{}, sentence("stride ", a.stride)};
  }
  for (i64 i = 0; i < size; ++i) {
    place p;
    p.digit.resize(axes.size());
    i64 rest = i, device = start;
    for (std::size_t k = axes.size(); k-- > 0; rest /= axes[k].degree) {
      p.digit[k] = rest % axes[k].degree;
      device += p.digit[k] * axes[k].stride;
    }
    if (device < 0 || device >= devices) return {{}, sentence("it reaches device ", device, " of ", devices)};
    p.device = static_cast<int>(device);
    r.all.push_back(std::move(p));
  }
  std::sort(r.all.begin(), r.all.end(), [](place const& a, place const& b) { return a.device < b.device; });
  for (std::size_t i = 1; i < r.all.size(); ++i)
    if (r.all[i].device == r.all[i - 1].device) return {{}, sentence("two parts lie on device ", r.all[i].device)};
  return r;
}
/// The places of a layout, by device. Empty if it is no layout of this shape on devices 0 .. devices-1.
inline std::vector<place> places(layout const& l, shape const& s, int devices) {
  grid_places r = walk(l.start, l.axes, devices);
  for (place& p : r.all) {
    p.at = whole(s);
    for (std::size_t k = 0; k < l.axes.size(); ++k) {  // major digits first: every digit divides what is left
      layout_axis const& a = l.axes[k];
      if (a.kind == part_kind::sum) p.sum = p.sum * a.degree + p.digit[k];
      if (a.kind != part_kind::shard) continue;
      if (a.dim < 0 || a.dim >= s.rank || p.at.n[a.dim] % a.degree) return {};
      p.at = part(p.at, a.dim, p.digit[k], a.degree);
    }
  }
  return std::move(r.all);
}
inline place const* on(std::vector<place> const& all, int device) {
  auto const it = std::lower_bound(all.begin(), all.end(), device, [](place const& p, int d) { return p.device < d; });
  return it != all.end() && it->device == device ? &*it : nullptr;
}
inline std::vector<int> devices_of(std::vector<place> const& all) {
  std::vector<int> r;
  for (place const& p : all) r.push_back(p.device);
  return r;
}

/// What one device does of an operator: which part of every loop, hence which box of every operand and result, and which share of a
/// result whose loop is split but absent from it.
struct work { int device = 0; std::vector<box> in, out; std::vector<i64> share; };
/// An operator under a grid, by device. Empty if the grid does not fit: `why` says what is wrong.
struct spread_work {
  std::vector<work> all;
  std::vector<i64> shares;  // by result: in how many
  std::string why;
};
inline spread_work works(graph_node const& node, iteration_space const& space, std::vector<shape> const& in, std::vector<shape> const& out,
                         spread const& grid, int devices) {
  spread_work r;
  grid_places const where = walk(grid.start, grid.axes, devices);
  auto refuse = [&](auto const&... why) { return spread_work{{}, {}, sentence(why...)}; };
  if (where.all.empty()) return refuse(where.why);
  if (!node.letters.empty() && node.letters.size() != space.loops.size()) return refuse("its letters are not those of its loops");
  std::vector<int> loop(grid.axes.size(), -1);  // that each grid axis splits: the first one that is, or follows, its letter
  std::vector<i64> parts(space.loops.size(), 1);
  for (std::size_t k = 0; k < grid.axes.size(); ++k) {
    grid_axis const& a = grid.axes[k];
    for (std::size_t i = 0; i < space.loops.size() && a.letter && loop[k] < 0; ++i)
      if ((node.letters.empty() ? space.loops[i].letter : node.letters[i]) == a.letter) loop[k] = static_cast<int>(i);
    if (loop[k] >= 0) parts[z(loop[k])] *= a.degree;
    else if (a.letter && node.phase == step_phase::forward) return refuse("it has no loop '", std::string(1, a.letter), "'");
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    node_loop const& l = space.loops[i];
    bool fits = parts[i] == 1 || l.units % parts[i] == 0;
    for (std::size_t k = 0; k < in.size(); ++k) fits = fits && (l.in[k] < 0 || in[k].d[l.in[k]].n % parts[i] == 0);
    for (std::size_t k = 0; k < out.size(); ++k) fits = fits && (l.out[k] < 0 || out[k].d[l.out[k]].n % parts[i] == 0);
    if (!fits) return refuse("loop '", std::string(1, l.letter), "' cannot be split in ", parts[i], ", only in divisors of ", l.units);
  }
  r.shares.assign(out.size(), 1);
  for (std::size_t k = 0; k < out.size(); ++k)
    for (std::size_t j = 0; j < parts.size(); ++j) r.shares[k] *= space.loops[j].out[k] < 0 ? parts[j] : 1;
  for (place const& p : where.all) {
    work w{p.device, {}, {}, {}};
    std::vector<i64> at(parts.size(), 0);  // which part of each loop
    for (std::size_t k = 0; k < loop.size(); ++k)
      if (loop[k] >= 0) at[z(loop[k])] = at[z(loop[k])] * grid.axes[k].degree + p.digit[k];
    for (std::size_t k = 0; k < in.size(); ++k) {
      w.in.push_back(whole(in[k]));
      for (std::size_t j = 0; j < at.size(); ++j)
        if (int const d = space.loops[j].in[k]; d >= 0) w.in[k] = part(w.in[k], d, at[j], parts[j]);
    }
    for (std::size_t k = 0; k < out.size(); ++k) {
      w.out.push_back(whole(out[k]));
      w.share.push_back(0);
      for (std::size_t j = 0; j < at.size(); ++j) {
        int const d = space.loops[j].out[k];
        if (d >= 0) w.out[k] = part(w.out[k], d, at[j], parts[j]);
        else w.share[k] = w.share[k] * parts[j] + at[j];
      }
    }
    r.all.push_back(std::move(w));
  }
  return r;
}

}  // namespace tensorpar::detail::check
