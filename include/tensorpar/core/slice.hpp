// tensorpar/core/slice.hpp - contiguous data, cheap in constant evaluation
#pragma once
#include <cstddef>
#include <type_traits>

namespace tensorpar {

/// A non-owning view of n elements. `std::span` costs three times the steps in constant evaluation, and <span> 70 ms of header.
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

/// The little of std::vector that constant evaluation can afford (std::vector takes 2.3-2.8 times the steps). Amortised O(1) push.
template <class T> class pool {
  // Where a constant is evaluated: an array inside of an aggregate is zero as a whole, and untouched elements cost nothing, while `new
  // T[n]` calls a constructor for every one.
  struct room { T x[4096]; };
  T* p_ = nullptr;
  room* room_ = nullptr;
  int n_ = 0, cap_ = 0;

  constexpr void take(pool& o) {
    p_ = o.p_; room_ = o.room_; n_ = o.n_; cap_ = o.cap_;
    o.p_ = nullptr; o.room_ = nullptr; o.n_ = o.cap_ = 0;
  }
  constexpr void drop() {
    if (std::is_constant_evaluated() && room_) delete room_; else delete[] p_;
  }
  constexpr void grow() {
    if constexpr (std::is_trivially_default_constructible_v<T>)
      if (std::is_constant_evaluated() && !p_) { room_ = new room{}; p_ = room_->x; cap_ = 4096; return; }
    int const c = cap_ ? 4 * cap_ : std::is_constant_evaluated() ? 64 : 8;
    T* q = new T[static_cast<std::size_t>(c)];
    for (int i = 0; i < n_; ++i) q[i] = p_[i];
    drop();
    p_ = q;
    room_ = nullptr;
    cap_ = c;
  }

 public:
  constexpr pool() = default;
  constexpr pool(int n, T const& x) : p_(new T[static_cast<std::size_t>(n > 0 ? n : 1)]), n_(n), cap_(n > 0 ? n : 1) {
    for (int i = 0; i < n; ++i) p_[i] = x;
  }
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
    if (n_ == cap_) grow();
    p_[n_] = x;
    return n_++;
  }
  constexpr slice<T> view() const { return {p_, n_}; }
};

}  // namespace tensorpar
