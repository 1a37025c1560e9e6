// tensorpar/search/layout_prices.hpp - layouts and shapes as small numbers, and the price of moving between them, asked once each
#pragma once
#include <map>
#include <tensorpar/cost/concepts.hpp>
#include <vector>

namespace tensorpar {

/// Gives equal keys one number. Numbers count up in order of first sight, so they are the same in every run. O(log n) a look-up.
class interner {
  std::map<std::vector<i64>, int> ids_;

 public:
  int operator()(std::vector<i64> const& key) { return ids_.try_emplace(key, static_cast<int>(ids_.size())).first->second; }
  int size() const { return static_cast<int>(ids_.size()); }
};

/// Numbers by triples of small numbers: an open-addressed table with the whole key in it. Nothing is ever enumerated.
class triple_table {
  struct slot { u64 key; double value; };
  static constexpr u64 none = ~u64{0};
  std::vector<slot> slots_ = std::vector<slot>(1024, slot{none, 0});
  std::size_t used_ = 0;

  std::size_t find(u64 key) const {
    std::size_t i = static_cast<std::size_t>(mix(key)) & (slots_.size() - 1);
    while (slots_[i].key != none && slots_[i].key != key) i = (i + 1) & (slots_.size() - 1);
    return i;
  }

 public:
  std::size_t size() const { return used_; }
  /// The value at (a, b, c), made by `make()` the first time. Precondition: a < 2^15, b and c < 2^24, none negative.
  template <class Make> double at(int a, int b, int c, Make const& make) {
    u64 const key = static_cast<u64>(a) << 48 | static_cast<u64>(b) << 24 | static_cast<u64>(c);
    if (std::size_t const i = find(key); slots_[i].key == key) return slots_[i].value;
    double const v = make();
    if (2 * ++used_ > slots_.size()) {
      std::vector<slot> old(4 * slots_.size(), slot{none, 0});
      old.swap(slots_);
      for (slot const& s : old) if (s.key != none) slots_[find(s.key)] = s;
    }
    slots_[find(key)] = {key, v};
    return v;
  }
};

/// Remembers every layout and shape it is shown, and what it costs to bring a tensor from one layout to another: the cost model is asked
/// once per (shape, layout, layout), however many choices of however many operators lead to it.
/// Precondition: cost model and machine outlive it.
template <cost_model M> class layout_prices {
  M const& model_;
  machine const& on_;
  i64 scalar_bytes_;
  interner layout_id_, shape_id_;
  std::vector<layout> layouts_;
  std::vector<shape> shapes_;
  triple_table known_;

 public:
  layout_prices(M const& model, machine const& on, i64 scalar_bytes) : model_(model), on_(on), scalar_bytes_(scalar_bytes) {}

  /// Precondition: canonical.
  int id(layout const& l) {
    std::vector<i64> k;
    k.reserve(1 + 3 * l.axes.size());
    k.push_back(l.start);
    for (layout_axis const& a : l.axes) { k.push_back(static_cast<i64>(a.kind) * 8 + a.dim); k.push_back(a.degree); k.push_back(a.stride); }
    int const i = layout_id_(k);
    if (i == static_cast<int>(layouts_.size())) layouts_.push_back(l);
    return i;
  }
  int id(shape const& s) {
    std::vector<i64> k{static_cast<i64>(s.type)};
    for (int d = 0; d < s.rank; ++d) k.push_back(s.d[d].n);
    int const i = shape_id_(k);
    if (i == static_cast<int>(shapes_.size())) shapes_.push_back(s);
    return i;
  }
  layout const& layout_of(int i) const { return layouts_[static_cast<std::size_t>(i)]; }
  i64 bytes(int layout_id, shape const& s) const {
    return part_of(layout_of(layout_id), s).elements() * (is_integer(s.type) ? bytes_of(s.type) : scalar_bytes_);
  }
  std::size_t asked() const { return known_.size(); }

  /// Seconds of all steps of the movement.
  double seconds(int shape_id, int from, int to) {
    if (from == to) return 0;
    return known_.at(shape_id, from, to, [&] {
      shape const& s = shapes_[static_cast<std::size_t>(shape_id)];
      double t = 0;
      for (move_step const& m : movement(layout_of(from), layout_of(to), s)) t += model_.seconds(move_query{m, s, scalar_bytes_, on_});
      return t;
    });
  }
};

}  // namespace tensorpar
