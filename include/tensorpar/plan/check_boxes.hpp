// tensorpar/plan/check_boxes.hpp - the checker's own geometry: boxes of tensors and of iteration spaces, device by device
#pragma once
#include <algorithm>
#include <tensorpar/ir/iteration_space.hpp>
#include <tensorpar/ir/layout.hpp>
#include <vector>

namespace tensorpar::detail::check {

/// A box of a tensor: [lo, lo + n) on every axis; unused axes are [0, 1).
struct box {
  i64 lo[shape::max_rank] = {0, 0, 0, 0, 0, 0};
  i64 n[shape::max_rank] = {1, 1, 1, 1, 1, 1};
  friend bool operator==(box const&, box const&) = default;
  friend bool operator<(box const& a, box const& b) {
    return std::lexicographical_compare(a.lo, a.lo + shape::max_rank, b.lo, b.lo + shape::max_rank);
  }
  i64 volume() const {
    i64 v = 1;
    for (i64 x : n) v *= x;
    return v;
  }
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

/// What one device has of a tensor in a layout: a box, and which share of a sum.
struct place {
  int device = 0;
  box at;
  i64 sum = 0;
  std::vector<i64> digit;  // along the layout's axes
};
/// The places of a layout, by device. Empty if it is no layout of this shape on devices 0 .. devices-1: a degree that does not divide, a
/// device twice or not there.
inline std::vector<place> places(layout const& l, shape const& s, int devices) {
  i64 size = 1;
  for (layout_axis const& a : l.axes) {
    if (a.degree < 1 || a.degree > devices || (size *= a.degree) > devices) return {};
    if (a.kind == part_kind::shard && (a.dim < 0 || a.dim >= s.rank)) return {};
    if (a.stride < -devices || a.stride > devices) return {};
  }
  std::vector<place> r;
  for (i64 i = 0; i < size; ++i) {
    place p;
    p.at = whole(s);
    p.digit.assign(l.axes.size(), 0);
    i64 rest = i, device = l.start;
    for (std::size_t k = l.axes.size(); k-- > 0; rest /= l.axes[k].degree) {
      p.digit[k] = rest % l.axes[k].degree;
      device += p.digit[k] * l.axes[k].stride;
    }
    for (std::size_t k = 0; k < l.axes.size(); ++k) {  // major digits first: every digit divides what is left
      layout_axis const& a = l.axes[k];
      if (a.kind == part_kind::sum) p.sum = p.sum * a.degree + p.digit[k];
      if (a.kind != part_kind::shard) continue;
      if (p.at.n[a.dim] % a.degree) return {};
      p.at = part(p.at, a.dim, p.digit[k], a.degree);
    }
    if (device < 0 || device >= devices) return {};
    p.device = static_cast<int>(device);
    r.push_back(std::move(p));
  }
  std::sort(r.begin(), r.end(), [](place const& a, place const& b) { return a.device < b.device; });
  for (std::size_t i = 1; i < r.size(); ++i)
    if (r[i].device == r[i - 1].device) return {};
  return r;
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
struct work {
  int device = 0;
  std::vector<box> in, out;
  std::vector<i64> share;
};
/// An operator under a grid, by device. Empty if the grid does not fit: `why` says what is wrong.
struct spread_work {
  std::vector<work> all;
  std::vector<i64> shares;  // by result: in how many
  std::string why;
};
inline spread_work works(graph_node const& node, iteration_space const& space, std::vector<shape> const& in, std::vector<shape> const& out,
                         spread const& grid, int devices) {
  spread_work r;
  auto refuse = [&](std::string why) {
    r.all.clear();
    r.why = std::move(why);
    return r;
  };
  // the loop that each grid axis splits: the first one that is, or follows, its letter
  std::vector<int> loop(grid.axes.size(), -1);
  std::vector<i64> parts(space.loops.size(), 1);
  i64 size = 1;
  if (!node.letters.empty() && node.letters.size() != space.loops.size()) return refuse("its letters are not those of its loops");
  for (std::size_t k = 0; k < grid.axes.size(); ++k) {
    grid_axis const& a = grid.axes[k];
    if (a.degree < 1 || a.degree > devices || (size *= a.degree) > devices)
      return refuse("degree " + std::to_string(a.degree) + " on " + std::to_string(devices) + " devices");
    if (a.stride < -devices || a.stride > devices) return refuse("stride " + std::to_string(a.stride));
    for (std::size_t i = 0; i < space.loops.size() && a.letter && loop[k] < 0; ++i)
      if ((node.letters.empty() ? space.loops[i].letter : node.letters[i]) == a.letter) loop[k] = static_cast<int>(i);
    if (loop[k] >= 0)
      parts[z(loop[k])] *= a.degree;
    else if (a.letter && node.phase == step_phase::forward)
      return refuse("it has no loop '" + std::string(1, a.letter) + "'");
  }
  for (std::size_t i = 0; i < space.loops.size(); ++i) {
    node_loop const& l = space.loops[i];
    std::string const what = "loop '" + std::string(1, l.letter) + "' cannot be split in " + std::to_string(parts[i]);
    if (parts[i] > 1 && l.units % parts[i]) return refuse(what + ", only in divisors of " + std::to_string(l.units));
    for (std::size_t k = 0; k < in.size(); ++k)
      if (l.in[k] >= 0 && in[k].d[l.in[k]].n % parts[i]) return refuse(what + ": operand " + std::to_string(k));
    for (std::size_t k = 0; k < out.size(); ++k)
      if (l.out[k] >= 0 && out[k].d[l.out[k]].n % parts[i]) return refuse(what + ": result " + std::to_string(k));
  }
  r.shares.assign(out.size(), 1);
  for (std::size_t k = 0; k < out.size(); ++k)
    for (std::size_t i = 0; i < space.loops.size(); ++i)
      if (space.loops[i].out[k] < 0) r.shares[k] *= parts[i];
  for (i64 i = 0; i < size; ++i) {
    work w;
    std::vector<i64> at(space.loops.size(), 0), digit(grid.axes.size(), 0);
    i64 rest = i, device = grid.start;
    for (std::size_t k = grid.axes.size(); k-- > 0; rest /= grid.axes[k].degree) {
      digit[k] = rest % grid.axes[k].degree;
      device += digit[k] * grid.axes[k].stride;
    }
    for (std::size_t k = 0; k < grid.axes.size(); ++k)
      if (loop[k] >= 0) {
        i64& x = at[z(loop[k])];
        x = x * grid.axes[k].degree + digit[k];
      }
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
        if (d >= 0)
          w.out[k] = part(w.out[k], d, at[j], parts[j]);
        else
          w.share[k] = w.share[k] * parts[j] + at[j];
      }
    }
    if (device < 0 || device >= devices) return refuse("it reaches device " + std::to_string(device) + " of " + std::to_string(devices));
    w.device = static_cast<int>(device);
    r.all.push_back(std::move(w));
  }
  std::sort(r.all.begin(), r.all.end(), [](work const& a, work const& b) { return a.device < b.device; });
  for (std::size_t i = 1; i < r.all.size(); ++i)
    if (r.all[i].device == r.all[i - 1].device) return refuse("two parts lie on device " + std::to_string(r.all[i].device));
  return r;
}

}  // namespace tensorpar::detail::check
