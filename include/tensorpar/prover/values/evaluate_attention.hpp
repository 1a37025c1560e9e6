// tensorpar/prover/values/evaluate_attention.hpp - attention, whole and in parts, element by element over any
// kind of number
#pragma once
#include <cmath>
#include <tensorpar/core/index.hpp>
#include <tensorpar/op/attention/attention.hpp>
#include <tensorpar/op/attention/packed.hpp>
#include <tensorpar/op/attention/parts.hpp>
#include <tensorpar/prover/values/numbers.hpp>

namespace tensorpar::prover::detail {

inline constexpr u64 exponential = core::name_hash("exp");

/// The score of query i and key j of a head: scaled product of the columns [first, first + width).
template <number_algebra A, class T = typename A::value>
T score_of(A& a, elements<T> const& q, std::size_t at_query, elements<T> const& k, std::size_t at_key,
           i64 width) {
  T s = a.integer(0);
  for (i64 c = 0; c < width; ++c)
    s = a.plus(s, a.times(q.data[at_query + idx(c)],
                          k.data[at_key + idx(c)]));
  return a.times(s, a.real(1 / std::sqrt(static_cast<double>(width))));
}

template <number_algebra A, class T = typename A::value>
void attend(A& a, op::any_op const& o, std::vector<elements<T>> const& in, elements<T>& out) {
  auto const t = o.as<attention>();
  shape const &q = in[0].type, &k = in[1].type;
  i64 const width = q.d[2].n / t.heads;
  for (i64 b = 0; b < q.d[0].n; ++b)
    for (i64 i = 0; i < q.d[1].n; ++i)
      for (i64 h = 0; h < t.heads; ++h) {
        std::vector<T> e;
        T total = a.integer(0);
        for (i64 j = 0; j < k.d[1].n && (!t.causal || j <= i + in[0].origin[1]); ++j) {
          i64 const x[3] = {b, i, h * width}, y[3] = {b, j, h * width};
          e.push_back(
              a.apply(exponential, score_of(a, in[0], offset_of(q, x), in[1], offset_of(k, y), width)));
          total = a.plus(total, e.back());
        }
        for (i64 c = h * width; c < (h + 1) * width; ++c) {
          T s = a.integer(0);
          for (std::size_t j = 0; j < e.size(); ++j) {
            i64 const y[3] = {b, static_cast<i64>(j), c};
            s = a.plus(s, a.times(e[j], in[2].data[offset_of(k, y)]));
          }
          i64 const to[3] = {b, i, c};
          out.data[offset_of(q, to)] = a.over(s, total);
        }
      }
}

/// Queries, keys and values (`which`: 0, 1, 2) of a tensor that holds all three, head by head
/// (op/attention/packed.hpp).
template <class T> elements<T> unpacked(elements<T> const& x, i64 heads, i64 which) {
  elements<T> r = x;
  i64 const width = x.type.d[2].n / 3, head = width / heads;
  r.type.d[2] = dim(width);
  r.data.clear();
  for (i64 e = 0; e < r.type.elements(); ++e)
    r.data.push_back(x.data[idx((e / head * 3 + which) * head + e % head)]);
  return r;
}
template <number_algebra A, class T = typename A::value>
void attend_packed(A& a, op::any_op const& o, std::vector<elements<T>> const& in, elements<T>& out) {
  auto const t = o.as<packed_attention>();
  std::vector<elements<T>> three;
  for (i64 which = 0; which < 3; ++which) three.push_back(unpacked(in[0], t.heads, which));
  attend(a, op::any_op(attention{t.heads, t.causal}), three, out);
}

/// e^(x - y) as a quotient, so that the law of exponents holds whatever the algebra's exponential is.
template <number_algebra A, class T = typename A::value> T rescaling(A& a, T const& x, T const& y) {
  return a.over(a.apply(exponential, x), a.apply(exponential, y));
}

/// States of attention to each part of the keys (op/attention/parts.hpp).
template <number_algebra A, class T = typename A::value>
void attend_in_parts(A& a, op::any_op const& o, std::vector<elements<T>> const& in, elements<T>& out) {
  i64 const heads = o.as<op::attention_parts>().heads;
  shape const &q = in[0].type, &k = in[1].type;
  i64 const width = q.d[2].n / heads;
  for (i64 b = 0; b < q.d[0].n; ++b)
    for (i64 p = 0; p < k.d[1].n; ++p)
      for (i64 i = 0; i < q.d[1].n; ++i)
        for (i64 h = 0; h < heads; ++h) {
          std::vector<T> s;
          for (i64 j = 0; j < k.d[2].n; ++j) {
            i64 const x[3] = {b, i, h * width}, y[4] = {b, p, j, h * width};
            s.push_back(score_of(a, in[0], offset_of(q, x), in[1], offset_of(k, y), width));
          }
          T top = s[0], sum = a.integer(0);
          for (T const& x : s) top = a.maximum(top, x);
          i64 const to[4] = {b, p, i, h * (width + 2)};
          T* state = &out.data[offset_of(out.type, to)];
          for (std::size_t j = 0; j < s.size(); ++j) {
            T const w = rescaling(a, s[j], top);
            sum = a.plus(sum, w);
            for (i64 c = 0; c < width; ++c) {
              i64 const y[4] = {b, p, static_cast<i64>(j), h * width + c};
              state[c] = a.plus(state[c], a.times(w, in[2].data[offset_of(k, y)]));
            }
          }
          state[width] = sum;
          state[width + 1] = top;
        }
}

/// softmax_merge and attention_finish: states of neighbouring parts together.
template <number_algebra A, class T = typename A::value>
void put_together(A& a, op::any_op const& o, std::vector<elements<T>> const& in, elements<T>& out) {
  bool const finish = o.is<op::attention_finish>();
  i64 const heads = finish ? o.as<op::attention_finish>().heads : o.as<op::softmax_merge>().heads;
  shape const& x = in[0].type;
  i64 const columns = x.d[3].n / heads, groups = finish ? 1 : out.type.d[1].n, size = x.d[1].n / groups;
  for (i64 b = 0; b < x.d[0].n; ++b)
    for (i64 g = 0; g < groups; ++g)
      for (i64 i = 0; i < x.d[2].n; ++i)
        for (i64 h = 0; h < heads; ++h) {
          auto state = [&](i64 p) {
            i64 const at[4] = {b, g * size + p, i, h * columns};
            return &in[0].data[offset_of(x, at)];
          };
          T top = state(0)[columns - 1];
          for (i64 p = 1; p < size; ++p) top = a.maximum(top, state(p)[columns - 1]);
          std::vector<T> y(idx(columns - 1), a.integer(0));
          for (i64 p = 0; p < size; ++p) {
            T const f = rescaling(a, state(p)[columns - 1], top);
            for (std::size_t c = 0; c < y.size(); ++c) y[c] = a.plus(y[c], a.times(f, state(p)[c]));
          }
          if (!finish) {
            i64 const to[4] = {b, g, i, h * columns};
            T* r = &out.data[offset_of(out.type, to)];
            for (std::size_t c = 0; c < y.size(); ++c) r[c] = y[c];
            r[columns - 1] = top;
            continue;
          }
          for (i64 c = 0; c < columns - 2; ++c) {
            i64 const to[3] = {b, i, h * (columns - 2) + c};
            out.data[offset_of(out.type, to)] = a.over(y[idx(c)], y.back());
          }
        }
}

}  // namespace tensorpar::prover::detail
