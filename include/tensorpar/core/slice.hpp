// tensorpar/core/slice.hpp - contiguous data, cheap in constant evaluation
#pragma once
#include <cstddef>
#include <type_traits>
#include <tensorpar/core/index.hpp>

namespace tensorpar::core {

/// A non-owning view of n elements. `std::span` costs three times the steps in constant evaluation, and
/// <span> 70 ms of header.
template <class T> struct slice {
  T const* p;
  int n;
  constexpr T const& operator[](int i) const { return p[i]; }
  constexpr int size() const { return n; }
  constexpr bool empty() const { return n == 0; }
  constexpr T const* begin() const { return p; }
  constexpr T const* end() const { return p + n; }
  constexpr T const* data() const { return p; }
};

/// The little of std::vector that constant evaluation can afford (std::vector takes 2.3-2.8 times the steps).
/// Amortised O(1) push.
template <class T> class pool {
  // Where a constant is evaluated: an array inside of an aggregate is zero as a whole, and untouched elements
  // cost nothing, while `new T[n]` calls a constructor for every one.
  struct room { T x[4096]; };
  T* p_ = nullptr;
  room* room_ = nullptr;
  int n_ = 0, cap_ = 0;
  bool lent_ = false;

  constexpr void take(pool& o) {
    p_ = o.p_; room_ = o.room_; n_ = o.n_; cap_ = o.cap_; lent_ = o.lent_;
    o.p_ = nullptr; o.room_ = nullptr; o.n_ = o.cap_ = 0; o.lent_ = false;
  }
  constexpr void drop() {
    if (lent_) return;
    if (std::is_constant_evaluated() && room_) delete room_; else delete[] p_;
  }
  // not inlined: every use of a pool would compile it
  [[gnu::noinline]] constexpr void grow(int least) {
    if constexpr (std::is_trivially_copyable_v<T>)
      if (std::is_constant_evaluated() && !p_ && least <= 4096) {
        room_ = new room{};
        p_ = room_->x;
        cap_ = 4096;
        return;
      }
    int c = cap_ ? 4 * cap_ : std::is_constant_evaluated() ? 64 : 8;
    if (c < least) c = least;
    T* q = new T[idx(c)];
    for (int i = 0; i < n_; ++i) q[i] = p_[i];
    drop();
    p_ = q;
    room_ = nullptr;
    lent_ = false;
    cap_ = c;
  }

 public:
  constexpr pool() = default;
  constexpr pool(int n, T const& x)
      : p_(new T[idx(n > 0 ? n : 1)]), n_(n), cap_(n > 0 ? n : 1) {
    for (int i = 0; i < n; ++i) p_[i] = x;
  }
  /// Empty, with room for its first elements that somebody else owns. When that is full they move to memory
  /// of its own.
  template <std::size_t Room>
  constexpr explicit pool(T (&lent)[Room]) : p_(lent), cap_(static_cast<int>(Room)), lent_(true) {}
  constexpr pool(pool&& o) noexcept { take(o); }
  constexpr pool& operator=(pool&& o) noexcept {
    if (this != &o) { drop(); take(o); }
    return *this;
  }
  pool(pool const&) = delete;
  pool& operator=(pool const&) = delete;
  constexpr ~pool() { drop(); }

  constexpr int size() const { return n_; }
  constexpr bool empty() const { return n_ == 0; }
  constexpr T& operator[](int i) { return p_[i]; }
  constexpr T const& operator[](int i) const { return p_[i]; }
  constexpr T* begin() { return p_; }
  constexpr T* end() { return p_ + n_; }
  constexpr T const* begin() const { return p_; }
  constexpr T const* end() const { return p_ + n_; }
  constexpr T& back() { return p_[n_ - 1]; }
  constexpr void pop() { --n_; }
  constexpr void clear() { n_ = 0; }
  constexpr int push(T const& x) {
    if (n_ == cap_) grow(n_ + 1);
    p_[n_] = x;
    return n_++;
  }
  /// k more elements, to be written through the pointer: one call for all, where constant evaluation counts
  /// calls.
  constexpr T* extend(int k) {
    if (n_ + k > cap_) grow(n_ + k);
    n_ += k;
    return p_ + (n_ - k);
  }
  /// Are the elements still where `lent` is?
  constexpr bool in_lent() const { return lent_; }
  constexpr slice<T> view() const { return {p_, n_}; }
};

namespace detail {
/// Integers that start as 0. In constant evaluation this takes no steps, where a fill loop takes two for each
/// element; and a plain pointer is indexed for free, where operator[] is a call.
template <class T> struct zeroed {
  T* p;
  constexpr explicit zeroed(int n) : p(new T[idx(n > 0 ? n : 1)]{}) {}
  constexpr zeroed(zeroed&& o) noexcept : p(o.p) { o.p = nullptr; }
  constexpr ~zeroed() { delete[] p; }
  zeroed(zeroed const&) = delete;
  zeroed& operator=(zeroed const&) = delete;
  zeroed& operator=(zeroed&&) = delete;
};
using zeros = zeroed<int>;
}  // namespace detail

}  // namespace tensorpar::core
