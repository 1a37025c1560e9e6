// tensorpar/ir/held_boxes.hpp - do devices that need a part of a tensor hold it already?
#pragma once
#include <algorithm>
#include <cstddef>
#include <tensorpar/ir/layout.hpp>
#include <vector>

namespace tensorpar::ir::detail {

/// Reads `l.coordinates(dev)` and the place of the device's part along each axis of a tensor, for many
/// devices without memory for each.
class part_reader {
  layout const& l_;
  std::vector<std::size_t> order_;                       // axes by descending stride
  std::vector<i64> at_;                                  // by axis

 public:
  i64 parts[shape::max_rank], index[shape::max_rank];    // by axis of the tensor
  part_reader(layout const& l, int rank) : l_(l), order_(l.axes.size()), at_(l.axes.size(), 0) {
    for (std::size_t k = 0; k < order_.size(); ++k) {
      order_[k] = k;
      for (std::size_t i = k; i > 0 && l.axes[order_[i]].stride > l.axes[order_[i - 1]].stride; --i)
        std::swap(order_[i], order_[i - 1]);
    }
    for (int d = 0; d < rank; ++d) parts[d] = l.degree(part_kind::shard, d);
  }
  /// False: it has none.
  bool read(i64 dev, int rank) {
    i64 rest = dev - l_.start;
    if (rest < 0) return false;
    for (std::size_t k : order_) {
      layout_axis const& a = l_.axes[k];
      at_[k] = a.stride > 0 ? rest / a.stride : 0;
      if (at_[k] >= a.degree) at_[k] = a.degree - 1;
      rest -= at_[k] * a.stride;
    }
    if (rest != 0) return false;
    for (int d = 0; d < rank; ++d) index[d] = 0;
    for (std::size_t k = 0; k < at_.size(); ++k)
      if (layout_axis const& a = l_.axes[k]; a.kind == part_kind::shard)
        index[a.dim] = index[a.dim] * a.degree + at_[k];
    return true;
  }
};

/// holds_already, device by device. Precondition: `from` has no sums.
inline bool holds_by_devices(layout const& from, layout const& to, shape const& s) {
  part_reader here(from, s.rank), there(to, s.rank);
  auto const held = [&](i64 dev) {
    if (!here.read(dev, s.rank)) return false;
    there.read(dev, s.rank);
    for (int d = 0; d < s.rank; ++d) {
      i64 const mine = s.d[d].n / here.parts[d], part = s.d[d].n / there.parts[d];
      if (part * there.index[d] < mine * here.index[d] ||
          part * there.index[d] + part > mine * here.index[d] + mine)
        return false;
    }
    return true;
  };
  i64 const n = to.size();
  if (!held(to.device(n - 1)) || !held(to.device(n / 2))) return false;
  // most that do not hold all fail where a digit of either changes
  for (layout const* l : {&from, &to})
    for (layout_axis const& a : l->axes)
      for (i64 dev : {l->start + a.stride - 1, l->start + a.stride, l->start + (a.degree - 1) * a.stride})
        if (there.read(dev, s.rank) && !held(dev)) return false;
  for (i64 i = 0; i < n; ++i) if (!held(to.device(i))) return false;
  return true;
}

enum class answer : signed char { no, yes, unknown };

/// The same from digits, however many devices there are: unknown where the two do not start alike or share no
/// mixed radix. A device of `to` then is one of `from` with some of its digits, so boxes lie in boxes where
/// the digits that shard an axis in `from` are the major ones in `to`.
inline answer holds_by_digits(layout const& from, layout const& to, int rank) {
  constexpr std::size_t most = 16;
  if (from.axes.size() + to.axes.size() > most) return answer::unknown;
  struct axis_list {
    layout_axis axes[most];
    int count = 0;
    layout_axis const* begin() const { return axes; }
    layout_axis const* end() const { return axes + count; }
  } a, b;
  i64 end = 1;
  for (layout_axis const& q : to.axes) {
    b.axes[b.count++] = q;
    end = std::max(end, q.stride * q.degree);
  }
  layout_axis const* outer = nullptr;
  for (layout_axis const& q : from.axes) if (!outer || q.stride > outer->stride) outer = &q;
  i64 ahead = to.start - from.start;
  for (layout_axis q : from.axes) {
    // copies before and after `to` do not matter
    if (q.kind == part_kind::replicate && q.stride == outer->stride && q.stride > 0) {
      i64 const used = (end + q.stride - 1) / q.stride;
      if (ahead > 0 && ahead % q.stride == 0 && ahead / q.stride + used <= q.degree) ahead = 0;
      q.degree = std::min(q.degree, used);
    }
    if (q.degree > 1) a.axes[a.count++] = q;
  }
  if (ahead != 0) return answer::unknown;
  i64 cuts[2 * most], last = 1;                          // where digits of either begin and end, ascending
  int n = 0;
  for (axis_list const* l : {&a, &b})
    for (layout_axis const& q : *l) {
      if (q.stride < 1) return answer::unknown;
      for (i64 c : {q.stride, q.stride * q.degree}) {
        int i = n++;
        for (; i > 0 && cuts[i - 1] > c; --i) cuts[i] = cuts[i - 1];
        cuts[i] = c;
      }
    }
  for (int i = 0; i < n; last = cuts[i++]) if (cuts[i] % last) return answer::unknown;
  // digits of one number: no two axes hold the same one
  for (axis_list const* l : {&a, &b})
    for (layout_axis const& q : *l)
      for (layout_axis const& p : *l)
        if (&p != &q && p.stride < q.stride * q.degree && q.stride < p.stride * p.degree)
          return answer::unknown;
  auto const held = [&](i64 stride) {                    // by some axis of `from`
    for (layout_axis const& q : a) if (stride >= q.stride && stride < q.stride * q.degree) return true;
    return false;
  };
  // an axis as its digits, the major one first: calls f(stride) until that says no
  auto const digits_of = [&](layout_axis const& q, auto const& f) {
    for (int i = n; i-- > 0;)
      if (cuts[i] >= q.stride && cuts[i] < q.stride * q.degree && (i == 0 || cuts[i] != cuts[i - 1]) &&
          !f(cuts[i]))
        return false;
    return true;
  };
  for (layout_axis const& q : b) if (!digits_of(q, held)) return answer::unknown;
  for (int d = 0; d < rank; ++d) {
    i64 have[64];
    int m = 0, k = 0;
    for (layout_axis const& q : a)
      if (q.kind == part_kind::shard && q.dim == d)
        digits_of(q, [&](i64 c) {
          have[m++] = c;
          return m < 64;
        });
    for (layout_axis const& q : b)
      if (q.kind == part_kind::shard && q.dim == d && k < m)
        if (!digits_of(q, [&](i64 c) { return k == m || have[k++] == c; })) return answer::no;
    if (k < m) return answer::no;
  }
  return answer::yes;
}

/// Does every device that needs a box already hold it, complete?
inline bool holds_already(layout const& from, layout const& to, shape const& s) {
  i64 has[shape::max_rank], wants[shape::max_rank];       // parts of each axis
  for (int d = 0; d < s.rank; ++d) has[d] = wants[d] = 1;
  i64 reach = from.start, first = to.start, last = to.start;
  for (layout_axis const& a : from.axes) {
    if (a.kind == part_kind::partial && a.degree > 1) return false;
    if (a.kind == part_kind::shard) has[a.dim] *= a.degree;
    if (a.stride > 0) reach += (a.degree - 1) * a.stride;
  }
  for (layout_axis const& a : to.axes) {
    if (a.kind == part_kind::shard) wants[a.dim] *= a.degree;
    (a.stride < 0 ? first : last) += (a.degree - 1) * a.stride;
  }
  if (first < from.start || last > reach) return false;
  for (int d = 0; d < s.rank; ++d) if (wants[d] % has[d]) return false;    // some wanted part lies across two
  // whole on all of them
  if (from.axes.size() == 1 && from.axes[0].kind == part_kind::replicate && from.axes[0].stride == 1)
    return true;
  answer const known = holds_by_digits(from, to, s.rank);
  return known == answer::unknown ? holds_by_devices(from, to, s) : known == answer::yes;
}

}  // namespace tensorpar::ir::detail
