// tensorpar/op/core/spelling.hpp - axes, shapes and operators as text
#pragma once
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/op/core/any_op.hpp>

namespace tensorpar::op {

namespace detail {
// Not inlined and by one kind of append: in C++20 every translation unit compiles what it uses of
// std::string.
[[gnu::noinline, gnu::cold]] inline void put_text(std::string& s, std::string_view t) {
  s.append(t.data(), t.size());
}
inline void put_text(std::string& s, char const* t) { put_text(s, std::string_view(t)); }
[[gnu::noinline, gnu::cold]] inline void put_text(std::string& s, i64 n) {
  char b[20];
  int k = 20;
  u64 u = n < 0 ? 0 - static_cast<u64>(n) : static_cast<u64>(n);
  do { b[--k] = static_cast<char>('0' + u % 10); u /= 10; } while (u);
  if (n < 0) put_text(s, "-");
  put_text(s, std::string_view(b + k, idx(20 - k)));
}
[[gnu::noinline, gnu::cold]] inline void put_text(std::string& s, axis a) {
  char b[13];
  int k = 13;
  for (u64 v = a.id; v && k; v /= 40) {
    u64 const c = v % 40;
    b[--k] = static_cast<char>(c <= 26 ? 'a' + c - 1 : c <= 36 ? '0' + c - 27 : '_');
  }
  put_text(s, std::string_view(b + k, idx(13 - k)));
}
[[gnu::noinline, gnu::cold]] inline void put_text(std::string& s, dim const& d) {
  if (d.name && !(d.name == d.sym && d.n == 1)) { put_text(s, d.name); put_text(s, "="); }
  if (d.is_static()) return put_text(s, d.n);
  if (d.n != 1) { put_text(s, d.n); put_text(s, "*"); }
  put_text(s, d.sym);
}
[[gnu::noinline, gnu::cold]] inline void put_text(std::string& s, shape const& x) {
  put_text(s, "[");
  for (int i = 0; i < x.rank; ++i) { if (i) put_text(s, ","); put_text(s, x.d[i]); }
  put_text(s, "]");
  if (x.type != dtype::f32) put_text(s, name_of(x.type));
}
}  // namespace detail

inline std::string spell(axis a) { std::string r; detail::put_text(r, a); return r; }
/// "features=784", "batch", "4*batch"
inline std::string spell(dim const& d) { std::string r; detail::put_text(r, d); return r; }
/// "[batch,features=784]", with the element type appended where it is not f32.
inline std::string spell(shape const& s) { std::string r; detail::put_text(r, s); return r; }
/// "linear{out=512,bias=1}"
inline std::string spell(any_op const& o) {
  std::string r;
  detail::put_text(r, o.op ? o.op->name : "none");
  if (!o.op) return r;
  for (int i = 0; i < o.op->attrs; ++i) {
    detail::put_text(r, i ? "," : "{");
    detail::put_text(r, o.op->attr_name(i));
    detail::put_text(r, "=");
    switch (o.op->attr_kind(i)) {
      case 'f': detail::put_text(r, std::to_string(std::bit_cast<double>(o.attr[i]))); break;
      case 'a': detail::put_text(r, axis(static_cast<u64>(o.attr[i]))); break;
      default: detail::put_text(r, o.attr[i]);
    }
  }
  if (o.op->attrs) detail::put_text(r, "}");
  return r;
}

}  // namespace tensorpar::op
