// tensorpar/op/core/notation.hpp - an operator's iteration space, from one einsum-like line
#pragma once
#include <string_view>
#include <tensorpar/core/index.hpp>
#include <tensorpar/op/core/shape.hpp>

namespace tensorpar::op {

/// One loop of an iteration space and where it stands in operands and results.
/// A place k >= 0 is axis k from the left, -2 - k is axis k from the right (last: -2), -1 is absent.
struct loop {
  static constexpr int max_in = 6, max_out = 4;
  char letter;
  bool splittable;                // lower case
  bool reduced;                   // absent from every result: a split leaves partial sums
  signed char in[max_in];
  signed char out[max_out];
};

/// A parsed notation. Grammar: terms separated by ',', "->" between operands and results; letters are loops;
/// a letter absent on the right is *reduced* (splitting it leaves partial sums); an upper-case letter may not
/// be split; "..." stands for leading axes, one loop each. The last term of a side repeats for further
/// operands (concat) or results (split).
struct loops {
  static constexpr int max_loops = 12;
  int n, operands, results;
  bool leading;
  bool lead_in[loop::max_in], lead_out[loop::max_out];
  loop l[max_loops];
};

/// Complexity O(length * loops). Throws `error` for more than 6 terms of operands, 4 of results or 12
/// letters.
constexpr loops parse_notation(std::string_view s) {
  loops r{};
  int term = 0;
  bool right = false;
  std::size_t p = 0;
  for (;;) {
    std::size_t e = p;
    while (e < s.size() && s[e] != ',' && s[e] != '-') ++e;
    int letters = 0, seen = 0;
    bool after = false, any = false;
    for (std::size_t q = p; q < e; ++q) if (s[q] != ' ') { any = true; if (s[q] != '.') ++letters; }
    for (std::size_t q = p; q < e; ++q) {
      if (s[q] == ' ') continue;
      if (s[q] == '.') {
        if (!after) { (right ? r.lead_out : r.lead_in)[term] = true; r.leading = true; }
        after = true;
        continue;
      }
      int i = 0;
      while (i < r.n && r.l[i].letter != s[q]) ++i;
      if (i == r.n) {
        if (r.n == loops::max_loops)
          tensorpar::detail::refuse("a notation of more than 12 loops", "notation", "at most 12 loops");
        r.l[r.n++] = loop{s[q], !(s[q] >= 'A' && s[q] <= 'Z'), true, {-1, -1, -1, -1, -1, -1}, {-1, -1, -1}};
      }
      signed char const where = static_cast<signed char>(after ? -2 - (letters - 1 - seen) : seen);
      if (right) { r.l[i].out[term] = where; r.l[i].reduced = false; }
      else r.l[i].in[term] = where;
      ++seen;
    }
    bool const last = e >= s.size();
    // an empty side ("->", or a scalar result) still counts as one term on the right, none on the left
    if (right) ++term; else if (any || term > 0 || (!last && s[e] == ',')) ++term;
    if (last) { (right ? r.results : r.operands) = term; break; }
    if (s[e] == '-') { r.operands = term; right = true; term = 0; e += 1; }
    if (term >= (right ? loop::max_out : loop::max_in))
      tensorpar::detail::refuse("a notation of too many terms", "notation",
                                "at most 6 operands and 4 results");
    p = e + 1;
  }
  return r;
}

/// Axis number of a place in a tensor of this rank; -1 if absent.
constexpr int axis_at(int where, int rank) { return where >= -1 ? where : rank + where + 1; }
constexpr i64 extent_at(shape const& s, int where) { return where == -1 ? 1 : s.d[axis_at(where, s.rank)].n; }

/// A notation built from attributes (transpose, concat, contraction ...), as a value.
struct notation_text {
  char s[64];
  int n;
  constexpr notation_text() : s{}, n(0) {}
  constexpr notation_text& put(char c) { if (n < 63) s[n++] = c; return *this; }
  [[gnu::noinline]] constexpr notation_text& put(std::string_view t) {
    for (char c : t) put(c);
    return *this;
  }
  constexpr std::string_view view() const { return {s, idx(n)}; }
};

/// With capitals for what is summed over: those loops may not be split.
constexpr notation_text sums_whole(notation_text t) {
  std::string_view const all = t.view(), result = all.substr(all.find("->"));
  for (int i = 0; i < t.n; ++i)
    if (char const c = t.s[i]; c >= 'a' && c <= 'z' && result.find(c) == result.npos)
      t.s[i] = static_cast<char>(c - 'a' + 'A');
  return t;
}

}  // namespace tensorpar::op
