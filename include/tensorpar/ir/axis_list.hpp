// tensorpar/ir/axis_list.hpp - a list of axes that takes no memory of its own while it is short
#pragma once
#include <algorithm>
#include <initializer_list>
#include <tensorpar/core/index.hpp>
#include <type_traits>
#include <vector>

namespace tensorpar::ir {

/// Like std::vector of few small things: up to N of them stand in the list itself. Searches make and copy
/// layouts by the hundred thousand, and a layout of more than N axes is rare. Moved from: empty.
template <class T, std::size_t N = 4>
  requires std::is_trivially_copyable_v<T>
class axis_list {
  T* data_ = own_;
  int size_ = 0, room_ = static_cast<int>(N);
  T own_[N];

  void grow(int least) {
    int const room = std::max(least, 2 * room_);
    T* const larger = new T[idx(room)];
    std::copy(begin(), end(), larger);
    if (data_ != own_) delete[] data_;
    data_ = larger;
    room_ = room;
  }
  void put(T const* first, int n) {
    size_ = 0;
    if (n > room_) grow(n);
    std::copy(first, first + n, data_);
    size_ = n;
  }
  void take(axis_list& o) {
    if (o.data_ == o.own_) {
      put(o.data_, o.size_);
    } else {
      if (data_ != own_) delete[] data_;
      data_ = o.data_;
      size_ = o.size_;
      room_ = o.room_;
      o.data_ = o.own_;
      o.room_ = static_cast<int>(N);
    }
    o.size_ = 0;
  }

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = T const*;

  axis_list() {}
  axis_list(std::initializer_list<T> all) { put(all.begin(), static_cast<int>(all.size())); }
  axis_list(std::vector<T> const& all) { put(all.data(), static_cast<int>(all.size())); }
  axis_list(std::size_t n, T const& x) { assign(n, x); }
  axis_list(axis_list const& o) { put(o.data_, o.size_); }
  axis_list(axis_list&& o) noexcept { take(o); }
  axis_list& operator=(axis_list const& o) {
    if (this != &o) put(o.data_, o.size_);
    return *this;
  }
  axis_list& operator=(axis_list&& o) noexcept {
    if (this != &o) take(o);
    return *this;
  }
  ~axis_list() {
    if (data_ != own_) delete[] data_;
  }

  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  T const* begin() const { return data_; }
  T const* end() const { return data_ + size_; }
  T const* data() const { return data_; }
  std::size_t size() const { return idx(size_); }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return data_[i]; }
  T const& operator[](std::size_t i) const { return data_[i]; }
  T& front() { return data_[0]; }
  T const& front() const { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  T const& back() const { return data_[size_ - 1]; }

  void reserve(std::size_t n) {
    if (n > idx(room_)) grow(static_cast<int>(n));
  }
  void push_back(T const& x) {
    T const copy = x;                                    // it may be one of these
    if (size_ == room_) grow(size_ + 1);
    data_[size_++] = copy;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void resize(std::size_t n, T const& x = T{}) {
    T const copy = x;
    reserve(n);
    for (int i = size_; i < static_cast<int>(n); ++i) data_[i] = copy;
    size_ = static_cast<int>(n);
  }
  void assign(std::size_t n, T const& x) {
    T const copy = x;
    size_ = 0;
    resize(n, copy);
  }
  T* insert(T const* before, T const& x) {
    auto const at = before - data_;
    push_back(x);
    std::rotate(data_ + at, data_ + size_ - 1, data_ + size_);
    return data_ + at;
  }
  T* erase(T const* x) {
    T* const at = data_ + (x - data_);
    std::copy(at + 1, end(), at);
    --size_;
    return at;
  }

  friend bool operator==(axis_list const& a, axis_list const& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
};

}  // namespace tensorpar::ir
