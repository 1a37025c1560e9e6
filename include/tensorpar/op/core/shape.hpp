// tensorpar/op/core/shape.hpp - axes, extents and tensor shapes: structural, trivial values
#pragma once
#include <concepts>
#include <initializer_list>
#include <tensorpar/core/checked.hpp>
#include <tensorpar/core/error.hpp>
#include <tensorpar/core/slice.hpp>

namespace tensorpar {

struct dim;
struct binding;

/// A named axis: up to 12 characters of [a-z0-9_] held in one integer (base 40), so it is cheap to compare
/// and to mangle. id 0: unnamed. Throws `error` for another name; in a constant expression it does not
/// compile.
struct axis {
  u64 id;
  axis() = default;
  constexpr explicit axis(u64 raw) : id(raw) {}
  constexpr axis(char const* s) : id(0) {
    int n = 0;
    for (; *s; ++s, ++n) {
      char const c = *s;
      u64 const k =
          c >= 'a' && c <= 'z'   ? u64(c - 'a' + 1)
          : c >= '0' && c <= '9' ? u64(c - '0' + 27)
          : c == '_'
              ? u64{37}
              : (detail::refuse("a character that no name of an axis has", "axis", "[a-z0-9_]"), u64{0});
      id = id * 40 + k;
    }
    if (n > 12) detail::refuse("a name of more than 12 characters", "axis", "at most 12 characters");
  }
  constexpr explicit operator bool() const { return id != 0; }
  constexpr dim operator()(i64 n) const;           // a static extent on this axis
  constexpr binding operator=(i64 n) const;        // `flops(net, batch = 32)` binds the symbol
  friend constexpr bool operator==(axis const&, axis const&) = default;
};

/// An extent: n * sym, where an unnamed `sym` means static. `name` labels the axis whatever the extent.
struct dim {
  axis name;
  i64 n;
  axis sym;
  dim() = default;
  constexpr dim(axis a, i64 k, axis s) : name(a), n(k), sym(s) {}
  constexpr dim(std::integral auto k) : name(), n(static_cast<i64>(k)), sym() {}
  constexpr dim(axis a) : name(a), n(1), sym(a) {}
  constexpr bool is_static() const { return !sym; }
  friend constexpr bool operator==(dim const&, dim const&) = default;
};

/// A symbol and the size it is bound to when a graph is priced or planned.
struct binding {
  axis sym;
  i64 n;
};
constexpr dim axis::operator()(i64 n) const { return dim(*this, n, axis{}); }
constexpr binding axis::operator=(i64 n) const { return {*this, n}; }

constexpr bool same_extent(dim const& a, dim const& b) { return a.n == b.n && a.sym.id == b.sym.id; }
/// Equal extents, and axes that do not contradict each other (an unnamed axis fits any). Asked of every
/// operand of a typed graph, where calls are most of what constant evaluation costs: both conditions written
/// out.
constexpr bool fits(dim const& a, dim const& b) {
  return a.n == b.n && a.sym.id == b.sym.id && (a.name.id == b.name.id || !a.name.id || !b.name.id);
}

/// The kind of a tensor's elements. f32 stands for "a real number": an executor maps it to its own scalar;
/// bf16 and f16 for one that may be stored in half the room of a float.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"   // g++ 12 takes a scoped enumerator for a shadow of the type i64
enum class dtype : int { f32, f16, bf16, i32, i64 };
#pragma GCC diagnostic pop
constexpr tensorpar::i64 bytes_of(dtype t) {
  return t == dtype::f32 || t == dtype::i32 ? 4 : t == dtype::i64 ? 8 : 2;
}
constexpr bool is_integer(dtype t) { return t == dtype::i32 || t == dtype::i64; }
constexpr bool is_narrow(dtype t) { return t == dtype::f16 || t == dtype::bf16; }
/// The same where a real number takes so many bytes. Narrow ones are stored as such beside floats alone:
/// other scalars (double, a field) compare programs, and take the place of all real numbers.
constexpr tensorpar::i64 bytes_of(dtype t, tensorpar::i64 scalar_bytes) {
  return is_integer(t) || (is_narrow(t) && scalar_bytes == 4) ? bytes_of(t) : scalar_bytes;
}
constexpr char const* name_of(dtype t) {
  return t == dtype::f32    ? "f32"
         : t == dtype::f16  ? "f16"
         : t == dtype::bf16 ? "bf16"
         : t == dtype::i32  ? "i32"
                            : "i64";
}

/// Rank, element type and extents, outermost first. Rank 0 is a scalar. Throws `error` for more than 6 axes;
/// in a constant expression that does not compile.
struct shape {
  static constexpr int max_rank = 6;
  int rank;
  dtype type;
  dim d[max_rank];
  /// A scalar of real numbers: rank 0.
  constexpr shape() : rank(0), type(dtype::f32), d{} {}
  constexpr shape(std::initializer_list<dim> l, dtype t = dtype::f32) : rank(0), type(t), d{} {
    int const n = static_cast<int>(l.size());
    if (n > max_rank) detail::refuse("a shape of more than 6 axes", "shape", "at most 6 axes");
    dim const* const from = l.begin();
    for (int i = 0; i < n; ++i) d[i] = from[i];
    rank = n;
  }
  /// Negative indices count from the last axis.
  constexpr dim operator[](int i) const { return d[i < 0 ? rank + i : i]; }
  constexpr dim last() const { return d[rank - 1]; }
  constexpr shape with(int i, dim x) const { shape r = *this; r.d[i < 0 ? rank + i : i] = x; return r; }
  constexpr shape of(dtype t) const { shape r = *this; r.type = t; return r; }
  /// Product of the extents, or the largest number if that is less; a symbol counts as one.
  constexpr i64 elements() const {
    i64 e = 1;
    for (int i = 0; i < rank; ++i) e = core::saturating_mul(e, d[i].n);
    return e;
  }
  constexpr i64 bytes() const { return core::saturating_mul(elements(), bytes_of(type)); }
  constexpr bool is_static() const {
    for (int i = 0; i < rank; ++i)
      if (!d[i].is_static()) return false;
    return true;
  }
  friend constexpr bool operator==(shape const& a, shape const& b) {
    if (a.rank != b.rank || a.type != b.type) return false;
    for (int i = 0; i < a.rank; ++i) if (!(a.d[i] == b.d[i])) return false;
    return true;
  }
};
using shapes = core::slice<shape>;
// a named zero: nvcc 13 leaves a temporary shape{} inside braces uninitialised
inline constexpr shape scalar{};

/// Equal ranks and extents; element types and names of axes may differ.
constexpr bool same_extents(shape const& a, shape const& b) {
  if (a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; ++i) if (!same_extent(a.d[i], b.d[i])) return false;
  return true;
}
constexpr bool fits(shape const& a, shape const& b) {
  if (a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; ++i) if (!fits(a.d[i], b.d[i])) return false;
  return true;
}

/// `s` with every bound symbol replaced by its size.
constexpr shape bind(shape s, core::slice<binding> b) {
  for (int i = 0; i < s.rank; ++i)
    for (binding const& x : b)
      if (s.d[i].sym && x.sym == s.d[i].sym) {
        s.d[i].n = core::saturating_mul(s.d[i].n, x.n);
        s.d[i].sym = axis{};
      }
  return s;
}

}  // namespace tensorpar
