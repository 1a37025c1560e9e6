// tensorpar/search/solve/frontier.hpp - what is worth keeping when seconds and bytes both count
#pragma once
#include <tensorpar/core/checked.hpp>
#include <vector>

namespace tensorpar::search {

/// Seconds, and bytes on each device (or no bytes where only time counts).
struct cost_point {
  double seconds = 0;
  std::vector<i64> bytes;
  friend bool operator==(cost_point const&, cost_point const&) = default;
};

/// Is a at least as good as b in everything? (Two equal points dominate each other.) Precondition: equally
/// many devices. O(devices).
inline bool dominates(cost_point const& a, cost_point const& b) {
  if (b.seconds < a.seconds) return false;
  for (std::size_t d = 0; d < a.bytes.size(); ++d) if (b.bytes[d] < a.bytes[d]) return false;
  return true;
}

/// One after the other: times add up, and so do bytes.
inline cost_point in_sequence(cost_point a, cost_point const& b) {
  a.seconds += b.seconds;
  for (std::size_t d = 0; d < a.bytes.size(); ++d) a.bytes[d] = core::saturating_add(a.bytes[d], b.bytes[d]);
  return a;
}
/// Side by side: the longer time; bytes add up, each on its own devices.
inline cost_point side_by_side(cost_point a, cost_point const& b) {
  a.seconds = a.seconds < b.seconds ? b.seconds : a.seconds;
  for (std::size_t d = 0; d < a.bytes.size(); ++d) a.bytes[d] = core::saturating_add(a.bytes[d], b.bytes[d]);
  return a;
}

/// Points of which none dominates another; of equal ones the first to come stays. Each carries a label.
/// Law: a point that was inserted is dominated by some point that is there.
template <class Label> class frontier {
 public:
  struct item {
    cost_point cost;
    Label label;
  };
  /// True if the point stays. O(points * devices).
  bool insert(cost_point c, Label l) {
    for (item const& x : items_) if (dominates(x.cost, c)) return false;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < items_.size(); ++i)
      if (!dominates(c, items_[i].cost)) {
        if (kept != i) items_[kept] = std::move(items_[i]);
        ++kept;
      }
    items_.resize(kept);
    items_.push_back({std::move(c), std::move(l)});
    return true;
  }
  std::vector<item> const& items() const { return items_; }
  bool empty() const { return items_.empty(); }
  std::size_t size() const { return items_.size(); }

 private:
  std::vector<item> items_;
};

}  // namespace tensorpar::search
