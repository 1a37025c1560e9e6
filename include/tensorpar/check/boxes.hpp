// tensorpar/check/boxes.hpp - the checker's own geometry: boxes of tensors and of iteration spaces, device by
// device
#pragma once
#include <algorithm>
#include <tensorpar/check/findings.hpp>
#include <tensorpar/ir/iteration_space.hpp>
#include <tensorpar/ir/layout.hpp>

namespace tensorpar::detail::check {

/// A box of a tensor: [lo, lo + n) on every axis; unused axes are [0, 1).
struct box {
  i64 lo[shape::max_rank] = {0, 0, 0, 0, 0, 0};
  i64 n[shape::max_rank] = {1, 1, 1, 1, 1, 1};
  friend bool operator==(box const&, box const&) = default;
  friend bool operator<(box const& a, box const& b) {
    return std::lexicographical_compare(a.lo, a.lo + 6, b.lo, b.lo + 6);
  }
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
  for (int d = 0; d < rank; ++d)
    r += (d ? ", " : "") + std::to_string(b.lo[d]) + ".." + std::to_string(b.lo[d] + b.n[d]);
  return r + "]";
}

/// A device of a mesh. Its digits along the mesh's axes are those of `index`, the last axis fastest.
struct place {
  int device = 0;
  i64 index = 0;
  box at;                  // of a layout: what it has of the tensor, and which share of a sum
  i64 sum = 0;
};
/// How often an axis' digit turns round with the axes behind it: its digit is index / turns % degree.
template <class Axis> std::vector<i64> turns_of(ir::axis_list<Axis> const& axes) {
  std::vector<i64> r(axes.size(), 1);
  for (std::size_t k = axes.size(); k-- > 1;) r[k - 1] = r[k] * axes[k].degree;
  return r;
}
/// A mesh's devices in ascending order: start + sum of digit * stride. `why` says what is wrong with it, if
/// `all` is empty.
struct mesh_places { std::vector<place> all; std::string why; };
template <class Axis> mesh_places walk(i64 start, ir::axis_list<Axis> const& axes, int devices) {
  mesh_places r;
  i64 size = 1;
  for (Axis const& a : axes) {
    if (a.degree < 1 || a.degree > devices || (size *= a.degree) > devices)
      return {{}, sentence("degree ", a.degree, " on ", devices, " devices")};
    if (a.stride < -devices || a.stride > devices) return {{}, sentence("stride ", a.stride)};
  }
  r.all.reserve(idx(size));
  for (i64 i = 0; i < size; ++i) {
    i64 rest = i, device = start;
    for (std::size_t k = axes.size(); k-- > 0; rest /= axes[k].degree)
      device += rest % axes[k].degree * axes[k].stride;
    if (device < 0 || device >= devices) return {{}, sentence("it reaches device ", device, " of ", devices)};
    r.all.push_back({static_cast<int>(device), i, {}, 0});
  }
  auto const before = [](place const& a, place const& b) { return a.device < b.device; };
  if (!std::is_sorted(r.all.begin(), r.all.end(), before)) std::sort(r.all.begin(), r.all.end(), before);
  for (std::size_t i = 1; i < r.all.size(); ++i)
    if (r.all[i].device == r.all[i - 1].device)
      return {{}, sentence("two parts lie on device ", r.all[i].device)};
  return r;
}
/// The places of a layout, by device. Empty if it is no layout of this shape on devices 0 .. devices-1.
inline std::vector<place> places(ir::layout const& l, shape const& s, int devices) {
  mesh_places r = walk(l.start, l.axes, devices);
  if (r.all.empty()) return {};
  std::vector<i64> const turns = turns_of(l.axes);
  for (place& p : r.all) {
    p.at = whole(s);
    for (std::size_t k = 0; k < l.axes.size(); ++k) {  // major digits first: every digit divides what is left
      ir::layout_axis const& a = l.axes[k];
      i64 const digit = p.index / turns[k] % a.degree;
      if (a.kind == ir::part_kind::partial) p.sum = p.sum * a.degree + digit;
      if (a.kind != ir::part_kind::shard) continue;
      if (a.dim < 0 || a.dim >= s.rank || p.at.n[a.dim] % a.degree) return {};
      p.at = part(p.at, a.dim, digit, a.degree);
    }
  }
  return std::move(r.all);
}
inline place const* on(std::vector<place> const& all, int device) {
  auto const it =
      std::lower_bound(all.begin(), all.end(), device, [](place const& p, int d) { return p.device < d; });
  return it != all.end() && it->device == device ? &*it : nullptr;
}
inline std::vector<int> devices_of(std::vector<place> const& all) {
  std::vector<int> r;
  for (place const& p : all) r.push_back(p.device);
  return r;
}

/// An operator under a mesh, by device: which box of every operand and result, and which share of a result
/// whose loop is split but absent from it. No devices if the mesh does not fit: `why` says what is wrong.
struct sharding_work {
  std::vector<int> devices;
  std::vector<i64> shares;  // by result: in how many
  std::string why;
  std::size_t ins = 0, outs = 0;
  std::vector<box> boxes;   // of the first device's operands and results, then of the second's
  std::vector<i64> share_of;
  box const& in(std::size_t device, std::size_t k) const { return boxes[device * (ins + outs) + k]; }
  box const& out(std::size_t device, std::size_t k) const { return boxes[device * (ins + outs) + ins + k]; }
  i64 share(std::size_t device, std::size_t k) const { return share_of[device * outs + k]; }
};
inline sharding_work works(graph_node const& node, ir::iteration_space const& space,
                           std::vector<shape> const& in,
                         std::vector<shape> const& out, ir::sharding const& mesh, int devices) {
  sharding_work r;
  mesh_places const where = walk(mesh.start, mesh.axes, devices);
  auto refuse = [&](auto const&... why) { return sharding_work{{}, {}, sentence(why...), 0, 0, {}, {}}; };
  if (where.all.empty()) return refuse(where.why);
  if (!node.letters.empty() && node.letters.size() != space.loops.size())
    return refuse("its letters are not those of its loops");
  // that each mesh axis splits: the first one that is, or follows, its letter
  std::vector<int> loop(mesh.axes.size(), -1);
  std::vector<i64> parts(space.loops.size(), 1);
  for (std::size_t k = 0; k < mesh.axes.size(); ++k) {
    ir::mesh_axis const& a = mesh.axes[k];
    for (std::size_t i = 0; i < space.loops.size() && a.letter && loop[k] < 0; ++i)
      if ((node.letters.empty() ? space.loops[i].letter : node.letters[i]) == a.letter)
        loop[k] = static_cast<int>(i);
    if (loop[k] >= 0) parts[idx(loop[k])] *= a.degree;
    else if (a.letter && node.phase == step_phase::forward)
      return refuse("it has no loop '", std::string(1, a.letter), "'");
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    ir::node_loop const& l = space.loops[i];
    bool fits = parts[i] == 1 || l.units % parts[i] == 0;
    for (std::size_t k = 0; k < in.size(); ++k)
      fits = fits && (l.in[k] < 0 || in[k].d[l.in[k]].n % parts[i] == 0);
    for (std::size_t k = 0; k < out.size(); ++k)
      fits = fits && (l.out[k] < 0 || out[k].d[l.out[k]].n % parts[i] == 0);
    if (!fits)
      return refuse("loop '", std::string(1, l.letter), "' cannot be split in ", parts[i],
                    ", only in divisors of ", l.units);
  }
  r.shares.assign(out.size(), 1);
  for (std::size_t k = 0; k < out.size(); ++k)
    for (std::size_t j = 0; j < parts.size(); ++j) r.shares[k] *= space.loops[j].out[k] < 0 ? parts[j] : 1;
  r.ins = in.size();
  r.outs = out.size();
  r.boxes.reserve(where.all.size() * (r.ins + r.outs));
  std::vector<i64> const turns = turns_of(mesh.axes);
  std::vector<i64> at(parts.size());             // which part of each loop
  for (place const& p : where.all) {
    r.devices.push_back(p.device);
    std::fill(at.begin(), at.end(), 0);
    for (std::size_t k = 0; k < loop.size(); ++k)
      if (loop[k] >= 0)
        at[idx(loop[k])] = at[idx(loop[k])] * mesh.axes[k].degree + p.index / turns[k] % mesh.axes[k].degree;
    for (std::size_t k = 0; k < in.size(); ++k) {
      r.boxes.push_back(whole(in[k]));
      for (std::size_t j = 0; j < at.size(); ++j)
        if (int const d = space.loops[j].in[k]; d >= 0)
          r.boxes.back() = part(r.boxes.back(), d, at[j], parts[j]);
    }
    for (std::size_t k = 0; k < out.size(); ++k) {
      r.boxes.push_back(whole(out[k]));
      i64 share = 0;
      for (std::size_t j = 0; j < at.size(); ++j) {
        int const d = space.loops[j].out[k];
        if (d >= 0) r.boxes.back() = part(r.boxes.back(), d, at[j], parts[j]);
        else share = share * parts[j] + at[j];
      }
      r.share_of.push_back(share);
    }
  }
  return r;
}

}  // namespace tensorpar::detail::check
