// tensorpar/typed/text.hpp - short texts made by the compiler: what stands in the names of error types
#pragma once
#include <string_view>
#include <tensorpar/core/index.hpp>
#include <tensorpar/typed/tables.hpp>

namespace tensorpar::detail {

/// At most 96 characters; what is cut ends in '~'. clang prints the first 36 of them.
struct text {
  static constexpr int capacity = 96;
  char s[capacity + 1]{};
  int n = 0;
  constexpr text& put(char c) { if (n < capacity) s[n++] = c; else s[capacity - 1] = '~'; return *this; }
  constexpr text& put(std::string_view t) { for (char c : t) put(c); return *this; }
  constexpr text& put(char const* t) { while (t && *t) put(*t++); return *this; }
  constexpr text& put(i64 v) {
    if (v < 0) put('-');
    u64 u = v < 0 ? 0 - static_cast<u64>(v) : static_cast<u64>(v);
    char b[20]{};
    int k = 0;
    do { b[k++] = static_cast<char>('0' + u % 10); u /= 10; } while (u);
    while (k) put(b[--k]);
    return *this;
  }
  constexpr text& put(axis a) {
    char b[13]{};
    int k = 0;
    for (u64 v = a.id; v; v /= 40) {
      u64 const c = v % 40;
      b[k++] = static_cast<char>(c <= 26 ? 'a' + c - 1 : c <= 36 ? '0' + c - 27 : '_');
    }
    while (k) put(b[--k]);
    return *this;
  }
  /// "mlp.cpp:15"; of a long file name the end.
  constexpr text& put(op::place p) {
    std::string_view f(p.file ? p.file : "");
    if (auto const k = f.rfind('/'); k != f.npos) f.remove_prefix(k + 1);
    if (f.size() > 30) f.remove_prefix(f.size() - 30);
    return put(f).put(':').put(static_cast<i64>(p.line));
  }
  constexpr text& put(dim const& d) {
    bool const own = d.name && !(d.name == d.sym && d.n == 1);
    if (own) put(d.name).put('=');
    if (d.is_static()) return put(d.n);
    if (d.n != 1) put(d.n).put('*');
    return put(d.sym);
  }
  /// "[batch,features=784]", with the element type behind it where it is not f32: the same text as
  /// spell(shape).
  constexpr text& put(shape const& x) {
    put('[');
    for (int i = 0; i < x.rank; ++i) { if (i) put(','); put(x.d[i]); }
    put(']');
    return x.type == dtype::f32 ? *this : put(name_of(x.type));
  }
  constexpr text& put(label const& l) {
    put(l.text);
    return l.index < 0 ? *this : put('.').put(static_cast<i64>(l.index));
  }
  constexpr std::string_view view() const { return {s, idx(n)}; }
};

/// "linear", "linear(head)", "input(x)"
constexpr text subject(model_complaint const& c, char const* otherwise) {
  text t;
  if (c.op->name.empty()) t.put(otherwise); else t.put(c.op->name);
  return c.name.text ? t.put('(').put(c.name).put(')') : t;
}

}  // namespace tensorpar::detail
