// tensorpar/search/problem/layout_prices.hpp - layouts and shapes as small numbers, and the price of moving
// between them, asked once each
#pragma once
#include <algorithm>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/cost/ask.hpp>
#include <tensorpar/cost/concepts.hpp>
#include <tensorpar/search/problem/move_book.hpp>
#include <vector>

namespace tensorpar::search {

/// Gives equal keys one number. Numbers count up in order of first sight, so they are the same in every run.
/// O(key) a look-up: an open-addressed table of numbers, keys compared in full.
class interner {
  std::vector<std::vector<i64>> keys_;
  std::vector<int> slots_ = std::vector<int>(64, -1);

  static u64 hash_of(std::vector<i64> const& key) {
    core::hasher h;
    for (i64 x : key) h.add(x);
    return h.value();
  }
  std::size_t find(std::vector<i64> const& key) const {
    std::size_t i = idx(hash_of(key)) & (slots_.size() - 1);
    while (slots_[i] >= 0 && keys_[idx(slots_[i])] != key)
      i = (i + 1) & (slots_.size() - 1);
    return i;
  }

 public:
  int operator()(std::vector<i64> const& key) {
    std::size_t const i = find(key);
    if (slots_[i] >= 0) return slots_[i];
    slots_[i] = size();
    keys_.push_back(key);
    if (2 * keys_.size() > slots_.size()) {
      slots_.assign(4 * slots_.size(), -1);
      for (int k = 0; k < size(); ++k) slots_[find(keys_[idx(k)])] = k;
    }
    return size() - 1;
  }
  int size() const { return static_cast<int>(keys_.size()); }
};

/// Numbers by triples of small numbers, none of them negative. Every a has a table, with a row for every c
/// that was seen with it and a column for every b. So questions that differ in b alone read memory in a row.
/// Nothing is ever enumerated.
class triple_table {
  struct plane {
    std::vector<int> column, row;                      // of b and of c; -1: not seen yet
    int columns = 0;
    std::vector<std::vector<double>> value;            // row -> column; below 0: not known
  };
  std::vector<plane> planes_;
  std::size_t used_ = 0;

  static int& place(std::vector<int>& of, int x) {
    auto const i = idx(x);
    if (i >= of.size()) of.resize(i + 1, -1);
    return of[i];
  }

  plane& plane_of(int a) {
    if (idx(a) >= planes_.size()) planes_.resize(idx(a) + 1);
    return planes_[idx(a)];
  }
  static std::size_t column_of(plane& p, int b) {
    int& column = place(p.column, b);
    if (column < 0) column = p.columns++;
    return idx(column);
  }
  static std::vector<double>& row_of(plane& p, int c) {
    int& row = place(p.row, c);
    if (row < 0) { row = static_cast<int>(p.value.size()); p.value.emplace_back(); }
    std::vector<double>& r = p.value[idx(row)];
    if (r.size() < idx(p.columns)) r.resize(idx(p.columns), -1.0);
    return r;
  }

 public:
  std::size_t size() const { return used_; }
  /// The value at (a, b, c), made by `make()` the first time, which must not ask this table.
  template <class Make> double at(int a, int b, int c, Make const& make) {
    plane& p = plane_of(a);
    std::size_t const column = column_of(p, b);
    double& v = row_of(p, c)[column];
    if (v < 0) { v = make(); ++used_; }
    return v;
  }
  /// Where all b stand with a, for `add`.
  std::vector<std::size_t> columns(int a, std::vector<int> const& b) {
    plane& p = plane_of(a);
    std::vector<std::size_t> r;
    r.reserve(b.size());
    for (int x : b) r.push_back(column_of(p, x));
    return r;
  }
  /// `to[i]` grows by the value at (a, b[i], c), made by `make(i)` the first time, for all i that are not
  /// left out by `skip(i)`. `columns`: of a and b.
  template <class Make, class Skip>
  void add(int a, std::vector<std::size_t> const& columns, int c, std::vector<double>& to, Make const& make,
           Skip const& skip) {
    std::vector<double>& row = row_of(plane_of(a), c);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (skip(i)) continue;
      double& v = row[columns[i]];
      if (v < 0) { v = make(i); ++used_; }
      to[i] += v;
    }
  }
};

/// Remembers every layout and shape it is shown, and the price of bringing a tensor from one layout to
/// another. A price is worked out once per (shape, layout, layout), however many choices of however many
/// operators lead to it. The cost model is asked once for a step of a shape, however many reshards it is part
/// of.
/// Precondition: cost model and machine outlive it.
template <cost::cost_model M> class layout_prices {
  M const& model_;
  machine const& on_;
  i64 scalar_bytes_;
  interner layout_id_, shape_id_;
  std::vector<i64> key_;
  std::vector<ir::layout> layouts_;
  std::vector<cost::layout_extents> extents_;                 // of each
  std::vector<shape> shapes_;
  triple_table known_;
  move_book moves_;
  std::vector<std::vector<double>> step_seconds_;       // shape -> step; below 0: not known
  ir::reshard_step whole_;                                     // what is done in one go, for the model to see
  int whole_to_ = -1;                                   // where it leads
  interner place_id_;                                   // devices and groups of steps
  std::vector<int> place_;                              // step -> how its groups lie; -1: not known
  std::vector<std::vector<cost::group_levels>> lie_;

  ir::axis_list<ir::group_axis> places_;
  /// Which devices axes name, however they are written: by stride, and as one axis where one begins as
  /// another ends.
  void put_places() {
    std::sort(places_.begin(), places_.end(),
              [](ir::group_axis const& a, ir::group_axis const& b) { return a.stride < b.stride; });
    std::size_t const first = key_.size();
    for (ir::group_axis const& a : places_) {
      std::size_t const n = key_.size();
      if (n > first && a.stride == key_[n - 1] * key_[n - 2]) key_[n - 2] *= a.degree;
      else key_.insert(key_.end(), {a.degree, a.stride});
    }
  }
  /// How a step's groups lie does not depend on shapes, and steps of many kinds and axes share it.
  std::vector<cost::group_levels> const& ways(int step) {
    auto const i = idx(step);
    if (i >= place_.size()) place_.resize(i + 1, -1);
    if (place_[i] < 0) {
      ir::reshard_step const& m = moves_.step(step);
      key_.assign(1, m.before.start);
      places_.clear();
      for (ir::layout_axis const& a : m.before.axes) places_.push_back({a.degree, a.stride});
      put_places();
      key_.push_back(-1);
      places_ = m.group;
      put_places();
      place_[i] = place_id_(key_);
      if (place_[i] == static_cast<int>(lie_.size())) lie_.push_back(cost::ways_to_lie(m, on_));
    }
    return lie_[idx(place_[i])];
  }

  double seconds_of_step(int shape_id, shape const& s, int step) {
    auto& known = step_seconds_[idx(shape_id)];
    auto const i = idx(step);
    if (i >= known.size()) known.resize(i + 1, -1.0);
    if (known[i] < 0)
      known[i] = cost::detail::ask(
          model_, cost::reshard_query{moves_.step(step), s, scalar_bytes_, on_, &ways(step)});
    return known[i];
  }
  double seconds_of_movement(int shape_id, int from, int to) {
    shape const& s = shapes_[idx(shape_id)];
    move_book::moves const m = moves_.at(from, layout_of(from), to, layout_of(to), s);
    if (m.count == 0) {
      whole_.kind = m.whole;
      whole_.before = layout_of(from);
      if (whole_to_ != to) whole_.after = layout_of(to);
      whole_to_ = to;
      auto const extents = [&](int i) { return &extents_[idx(i)]; };
      return cost::detail::ask(model_,
                         cost::reshard_query{whole_, s, scalar_bytes_, on_, nullptr, extents(from),
                                             extents(to)});
    }
    double t = 0;
    for (int k = 0; k < m.count; ++k) t += seconds_of_step(shape_id, s, m.first[k]);
    return t;
  }

 public:
  layout_prices(M const& model, machine const& on, i64 scalar_bytes)
      : model_(model), on_(on), scalar_bytes_(scalar_bytes) {}

  /// Precondition: canonical.
  int id(ir::layout const& l) {
    std::vector<i64>& k = key_;
    k.assign(1, l.start);
    for (ir::layout_axis const& a : l.axes) {
      k.push_back(static_cast<i64>(a.kind) * 8 + a.dim);
      k.push_back(a.degree);
      k.push_back(a.stride);
    }
    int const i = layout_id_(k);
    if (i == static_cast<int>(layouts_.size())) { layouts_.push_back(l); extents_.emplace_back(l); }
    return i;
  }
  int id(shape const& s) {
    std::vector<i64> k{static_cast<i64>(s.type)};
    for (int d = 0; d < s.rank; ++d) k.push_back(s.d[d].n);
    int const i = shape_id_(k);
    if (i == static_cast<int>(shapes_.size())) {
      shapes_.push_back(s);
      step_seconds_.emplace_back();
    }
    return i;
  }
  ir::layout const& layout_of(int i) const { return layouts_[idx(i)]; }
  i64 bytes(int layout_id, shape const& s) const {
    return core::saturating_mul(ir::part_of(layout_of(layout_id), s).elements(),
                                bytes_of(s.type, scalar_bytes_));
  }
  std::size_t asked() const { return known_.size(); }

  /// Seconds of all steps of the reshard.
  double seconds(int shape_id, int from, int to) {
    if (from == to) return 0;
    return known_.at(shape_id, from, to, [&] { return seconds_of_movement(shape_id, from, to); });
  }
  /// Layouts that values of a shape come from, for `add_seconds`.
  struct senders {
    int shape_id;
    std::vector<int> const* from;
    std::vector<std::size_t> columns;
  };
  senders senders_of(int shape_id, std::vector<int> const& from) {
    return {shape_id, &from, known_.columns(shape_id, from)};
  }
  /// `sum[i]` grows by the seconds from layout i of the senders, but for those that `skip(i)` leaves out.
  template <class Skip>
  void add_seconds(senders const& s, int to, std::vector<double>& sum, Skip const& skip) {
    std::vector<int> const& from = *s.from;
    int const shape_id = s.shape_id;
    known_.add(
        shape_id, s.columns, to, sum,
        [&](std::size_t i) { return seconds_of_movement(shape_id, from[i], to); },
        [&](std::size_t i) { return from[i] == to || skip(i); });
  }
};

}  // namespace tensorpar::search
