// tensorpar/op/spelling.hpp - axes, shapes and operators as text
#pragma once
#include <string>
#include <tensorpar/op/any_op.hpp>

namespace tensorpar {

inline std::string spell(axis a) {
  std::string r;
  for (u64 v = a.id; v; v /= 40) {
    u64 const c = v % 40;
    r.insert(r.begin(), c <= 26 ? static_cast<char>('a' + c - 1) : c <= 36 ? static_cast<char>('0' + c - 27) : '_');
  }
  return r;
}
inline std::string spell(dim const& d) {
  std::string const k = std::to_string(d.n);
  std::string const size = d.is_static() ? k : (d.n == 1 ? "" : k + "*") + spell(d.sym);
  return d.name && !(d.name == d.sym && d.n == 1) ? spell(d.name) + "=" + size : size;
}
/// "[batch,features=784]", with the element type appended where it is not f32.
inline std::string spell(shape const& s) {
  std::string r = "[";
  for (int i = 0; i < s.rank; ++i) r += (i ? "," : "") + spell(s.d[i]);
  return r + "]" + (s.type == dtype::f32 ? "" : name_of(s.type));
}
/// "linear{out=512,bias=1}"
inline std::string spell(any_op const& o) {
  if (!o.op) return "none";
  std::string r(o.op->name);
  for (int i = 0; i < o.op->attrs; ++i) {
    r += i ? "," : "{";
    r += std::string(o.op->attr_name(i)) + "=";
    switch (o.op->attr_kind(i)) {
      case 'f': { std::string t = std::to_string(std::bit_cast<double>(o.attr[i])); r += t; break; }
      case 'a': r += spell(axis(static_cast<u64>(o.attr[i]))); break;
      default: r += std::to_string(o.attr[i]);
    }
  }
  return r + (o.op->attrs ? "}" : "");
}

}  // namespace tensorpar
