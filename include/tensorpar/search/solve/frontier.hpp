// tensorpar/search/solve/frontier.hpp - what is worth keeping when seconds and bytes both count
#pragma once
#include <algorithm>
#include <tensorpar/core/checked.hpp>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/core/index.hpp>
#include <utility>
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

/// One after the other times add up; side by side the longer counts.
inline double seconds_of(cost_point const& a, cost_point const& b, bool side) {
  return side ? std::max(a.seconds, b.seconds) : a.seconds + b.seconds;
}
/// Bytes add up, each on its own devices. Precondition: equally many devices. O(devices).
inline void sum_bytes(cost_point const& a, cost_point const& b, cost_point& into) {
  into.bytes.resize(a.bytes.size());
  for (std::size_t d = 0; d < a.bytes.size(); ++d)
    into.bytes[d] = core::saturating_add(a.bytes[d], b.bytes[d]);
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
  bool insert(cost_point const& c, Label l) {
    for (item const& x : items_) if (dominates(x.cost, c)) return false;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < items_.size(); ++i)
      if (!dominates(c, items_[i].cost)) {
        if (kept != i) items_[kept] = std::move(items_[i]);
        ++kept;
      }
    items_.resize(kept);
    items_.push_back({c, std::move(l)});
    return true;
  }
  std::vector<item> const& items() const& { return items_; }
  std::vector<item> items() && { return std::move(items_); }
  bool empty() const { return items_.empty(); }
  std::size_t size() const { return items_.size(); }

 private:
  std::vector<item> items_;
};

/// Frontiers by keys of `width` numbers, which lie one after another: an open hash table that is walked in
/// order of its keys. Law: what std::map from keys to frontiers holds, in the same order.
template <class Label> class keyed_frontiers {
  std::size_t width_;
  std::vector<int> keys_;
  std::vector<frontier<Label>> at_;
  std::vector<int> slots_;               // a power of two of them, at most half full; -1: empty

  int const* key(std::size_t i) const { return keys_.data() + i * width_; }
  std::size_t slot_of(int const* key) const {
    core::hasher h;
    for (std::size_t i = 0; i < width_; ++i) h.add(key[i]);
    return static_cast<std::size_t>(h.value()) & (slots_.size() - 1);
  }
  void grow() {
    slots_.assign(std::max(std::size_t{8}, slots_.size() * 2), -1);
    for (std::size_t i = 0; i < at_.size(); ++i) {
      std::size_t s = slot_of(key(i));
      while (slots_[s] >= 0) s = (s + 1) & (slots_.size() - 1);
      slots_[s] = static_cast<int>(i);
    }
  }

 public:
  explicit keyed_frontiers(std::size_t width) : width_(width) {}
  std::size_t width() const { return width_; }

  /// The frontier of a key, empty if it is new. Stays till the next new key. O(width) expected.
  frontier<Label>& operator[](int const* key) {
    if (2 * at_.size() >= slots_.size()) grow();
    std::size_t s = slot_of(key);
    for (; slots_[s] >= 0; s = (s + 1) & (slots_.size() - 1))
      if (std::equal(key, key + width_, this->key(idx(slots_[s])))) return at_[idx(slots_[s])];
    slots_[s] = static_cast<int>(at_.size());
    keys_.insert(keys_.end(), key, key + width_);
    return at_.emplace_back();
  }
  /// Calls f(key, frontier) for all, in ascending order of keys; the frontiers are given away.
  template <class F> void release(F const& f) {
    std::vector<std::size_t> order(at_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    auto const before = [this](std::size_t a, std::size_t b) {
      int const *x = key(a), *y = key(b);
      for (std::size_t i = 0; i < width_; ++i) if (x[i] != y[i]) return x[i] < y[i];
      return false;
    };
    if (!std::is_sorted(order.begin(), order.end(), before)) std::sort(order.begin(), order.end(), before);
    for (std::size_t i : order) f(key(i), std::move(at_[i]));
    *this = keyed_frontiers(width_);
  }
};

}  // namespace tensorpar::search
