// tests/exec/straight_loops.hpp - what every operator means, in the plainest possible loops over double
#pragma once
#include "support/dense.hpp"
#include <cmath>
#include <tensorpar/exec/device/random.hpp>
#include <tensorpar/op/kinds/parallel.hpp>
#include <tensorpar/op/operators.hpp>

namespace tests {

struct indexed {
  tensorpar::op::tensor_block const& b;
  std::vector<double> const& real;
  double operator()(std::vector<i64> const& at) const { return real[flat(b, at)]; }
  static std::size_t flat(tensorpar::op::tensor_block const& b, std::vector<i64> const& at) {
    i64 e = 0;
    for (int i = 0; i < b.rank; ++i) {
      CHECK(at[static_cast<std::size_t>(i)] < b.local[i]);
      e = e * b.local[i] + at[static_cast<std::size_t>(i)];
    }
    return static_cast<std::size_t>(e);
  }
};
inline std::vector<i64> place_of(tensorpar::op::tensor_block const& b, std::size_t e) {
  std::vector<i64> at(static_cast<std::size_t>(b.rank));
  i64 rest = static_cast<i64>(e);
  for (int i = b.rank - 1; i >= 0; --i) { at[static_cast<std::size_t>(i)] = rest % b.local[i]; rest /= b.local[i]; }
  return at;
}

/// The sum over all letters missing on the right of the operands' product.
inline void einsum(std::string const& notation, std::vector<dense<double>> const& x, dense<double>& y) {
  auto const arrow = notation.find("->");
  std::vector<std::string> terms(1);
  for (char c : notation.substr(0, arrow)) if (c == ',') terms.emplace_back(); else terms.back() += c;
  std::string const out = notation.substr(arrow + 2);
  std::string letters;
  std::vector<i64> extent;
  for (std::size_t k = 0; k < terms.size(); ++k)
    for (std::size_t i = 0; i < terms[k].size(); ++i)
      if (letters.find(terms[k][i]) == letters.npos) { letters += terms[k][i]; extent.push_back(x[k].block.local[i]); }
  i64 points = 1;
  for (i64 n : extent) points *= n;
  for (i64 p = 0; p < points; ++p) {
    std::vector<i64> at(extent.size());
    i64 rest = p;
    for (std::size_t i = 0; i < extent.size(); ++i) { at[i] = rest % extent[i]; rest /= extent[i]; }
    auto pick = [&](std::string const& t) { std::vector<i64> r; for (char c : t) r.push_back(at[letters.find(c)]); return r; };
    double product = 1;
    for (std::size_t k = 0; k < terms.size(); ++k) product *= indexed{x[k].block, x[k].real}(pick(terms[k]));
    y.real[indexed::flat(y.block, pick(out))] += product;
  }
}
inline std::string leads(int n) { std::string s; for (int i = 0; i < n; ++i) s += static_cast<char>('0' + i); return s; }

/// The larger of two, or NaN: the maximum of IEEE 754-2019.
inline double maximum(double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : a > b ? a : b; }
/// softmax of n numbers, the plain formula, of numbers that are less by the largest
inline std::vector<double> plain_softmax(std::vector<double> x) {
  double top = -INFINITY, s = 0;
  for (double e : x) top = maximum(top, e);
  for (double& e : x) s += e = std::exp(e - top);
  for (double& e : x) e /= s;
  return x;
}
inline double plain_gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x))); }

/// Fills the results, which start as zeros. False: an operator unknown here.
inline bool straight_loops(tensorpar::op::any_op const& o, std::vector<dense<double>> const& x, std::vector<dense<double>>& y,
                           tensorpar::exec::step_state const& state) {
  auto in = [&](std::size_t k) { return indexed{x[k].block, x[k].real}; };
  auto each = [&](std::size_t k, auto f) { for (std::size_t e = 0; e < y[k].real.size(); ++e) y[k].real[e] = f(e); };
  auto unary = [&](auto f) { each(0, [&](std::size_t e) { return f(x[0].real[e]); }); };
  auto moved = [&](auto f) {                                   // f: place in the result -> place in operand 0
    for (std::size_t e = 0; e < y[0].size(); ++e) {
      std::size_t const from = indexed::flat(x[0].block, f(place_of(y[0].block, e)));
      if (y[0].integer()) y[0].index[e] = x[0].index[from];
      else y[0].real[e] = x[0].real[from];
    }
  };
  int const rank = x.empty() ? 0 : x[0].block.rank;
  i64 const last = rank ? x[0].block.local[rank - 1] : 1;
  auto row_of = [&](std::size_t k, std::size_t r) {
    auto const* p = x[k].real.data() + static_cast<i64>(r) * last;
    return std::vector<double>(p, p + last);
  };
  if (o.op->first) {
    tensorpar::op::any_op one = o, other;
    one.op = o.op->first;
    other.op = o.op->then;
    std::vector<dense<double>> z = y;
    return straight_loops(one, x, z, state) && straight_loops(other, z, y, state);
  } else if (o.is<linear>()) {
    einsum(leads(rank - 1) + "i,oi->" + leads(rank - 1) + "o", x, y[0]);
    if (o.as<linear>().bias) for (std::size_t e = 0; e < y[0].real.size(); ++e) y[0].real[e] += x[2].real[e % x[2].real.size()];
  } else if (o.is<matmul>()) {
    auto const m = o.as<matmul>();
    std::string const l = leads(rank - 2);
    einsum(l + (m.transpose_a ? "km," : "mk,") + l + (m.transpose_b ? "nk->" : "kn->") + l + "mn", x, y[0]);
  } else if (o.is<contraction>()) {
    einsum(std::string(o.as<contraction>().spelled().view()), x, y[0]);
  } else if (o.is<conv2d>()) {
    auto const c = o.as<conv2d>();
    auto const w = c.window();
    i64 const depth = x[1].block.local[1], per_group = c.out / c.groups;
    each(0, [&](std::size_t e) {
      auto const p = place_of(y[0].block, e);
      double s = c.bias ? x[2].real[static_cast<std::size_t>(p[1])] : 0;
      for (i64 d = 0; d < depth; ++d)
        for (i64 i = 0; i < w.kernel_h; ++i)
          for (i64 j = 0; j < w.kernel_w; ++j) {
            i64 const h = p[2] * w.stride + i - w.pad_h, v = p[3] * w.stride + j - w.pad_w;
            bool const outside = h < 0 || v < 0 || h >= x[0].block.local[2] || v >= x[0].block.local[3];
            s += (outside ? 0 : in(0)({p[0], p[1] / per_group * depth + d, h, v})) * in(1)({p[1], d, i, j});
          }
      return s;
    });
  } else if (o.is<pool2d>()) {
    auto const c = o.as<pool2d>();
    auto const w = c.window();
    each(0, [&](std::size_t e) {
      auto const p = place_of(y[0].block, e);
      double s = 0, top = -INFINITY;
      for (i64 i = 0; i < w.kernel_h; ++i)
        for (i64 j = 0; j < w.kernel_w; ++j) {
          i64 const h = p[2] * w.stride + i - w.pad_h, v = p[3] * w.stride + j - w.pad_w;
          if (h < 0 || v < 0 || h >= x[0].block.local[2] || v >= x[0].block.local[3]) continue;
          double const t = in(0)({p[0], p[1], h, v});
          s += t;
          top = maximum(top, t);
        }
      return c.average ? s / static_cast<double>(w.kernel_h * w.kernel_w) : top;
    });
  } else if (o.is<global_average>()) {
    i64 const h = x[0].block.local[2], w = x[0].block.local[3];
    each(0, [&](std::size_t e) {
      double s = 0;
      for (i64 i = 0; i < h * w; ++i) s += x[0].real[e * static_cast<std::size_t>(h * w) + static_cast<std::size_t>(i)];
      return s / static_cast<double>(h * w);
    });
  } else if (o.is<relu>()) {
    unary([](double v) { return maximum(v, 0.0); });
  } else if (o.is<gelu>()) {
    unary(plain_gelu);
  } else if (o.is<sigmoid>()) {
    unary([](double v) { return 1 / (1 + std::exp(-v)); });
  } else if (o.is<tanh_>()) {
    unary([](double v) { return std::tanh(v); });
  } else if (o.is<scale>()) {
    unary([&](double v) { return v * o.as<scale>().factor; });
  } else if (o.is<constant>()) {
    each(0, [&](std::size_t) { return o.as<constant>().value; });
  } else if (o.is<add>()) {
    each(0, [&](std::size_t e) { return x[0].real[e] + x[1].real[e]; });
  } else if (o.is<mul>()) {
    each(0, [&](std::size_t e) { return x[0].real[e] * x[1].real[e]; });
  } else if (o.is<tensorpar::op::swiglu>()) {
    each(0, [&](std::size_t e) { return x[0].real[e] / (1 + std::exp(-x[0].real[e])) * x[1].real[e]; });
  } else if (o.is<dropout>()) {
    auto const d = o.as<dropout>();
    tensorpar::core::hasher h;
    h.add(d.seed).add(state.step);
    each(0, [&](std::size_t e) {
      std::size_t const in_batch = state.micro_batch * x[0].real.size() + e;       // micro-batches follow one another
      double const u = tensorpar::exec::random_stream{state.seed, h.value()}.words(in_batch / 4)[in_batch % 4] * 0x1p-32;
      return x[0].real[e] * (u < d.rate ? 0 : 1 / (1 - d.rate));
    });
  } else if (o.is<softmax>()) {
    each(0,
         [&](std::size_t e) { return plain_softmax(row_of(0, e / static_cast<std::size_t>(last)))[e % static_cast<std::size_t>(last)]; });
  } else if (o.is<layernorm>()) {
    each(0, [&](std::size_t e) {
      auto const row = row_of(0, e / static_cast<std::size_t>(last));
      std::size_t const i = e % static_cast<std::size_t>(last);
      double mean = 0, variance = 0;
      for (double v : row) mean += v / static_cast<double>(last);
      for (double v : row) variance += (v - mean) * (v - mean) / static_cast<double>(last);
      return (row[i] - mean) / std::sqrt(variance + o.as<layernorm>().eps) * x[1].real[i] + x[2].real[i];
    });
  } else if (o.is<rmsnorm>()) {
    each(0, [&](std::size_t e) {
      auto const row = row_of(0, e / static_cast<std::size_t>(last));
      std::size_t const i = e % static_cast<std::size_t>(last);
      double square = 0;
      for (double v : row) square += v * v / static_cast<double>(last);
      return row[i] / std::sqrt(square + o.as<rmsnorm>().eps) * x[1].real[i];
    });
  } else if (o.is<tensorpar::op::channel_moments>()) {
    for (std::size_t e = 0; e < x[0].real.size(); ++e) {
      std::size_t const c = static_cast<std::size_t>(place_of(x[0].block, e)[1]), channels = static_cast<std::size_t>(x[0].block.local[1]);
      y[0].real[c] += x[0].real[e];
      y[0].real[channels + c] += x[0].real[e] * x[0].real[e];
    }
  } else if (o.is<tensorpar::op::normalize>()) {
    std::size_t const channels = static_cast<std::size_t>(x[0].block.local[1]);
    double const count = static_cast<double>(x[0].real.size() / channels);
    each(0, [&](std::size_t e) {
      std::size_t const c = static_cast<std::size_t>(place_of(x[0].block, e)[1]);
      double const mean = x[1].real[c] / count, sharding = x[1].real[channels + c] / count - mean * mean;
      double const variance = maximum(sharding, 0);                                // below zero it is rounding
      return (x[0].real[e] - mean) / std::sqrt(variance + o.as<tensorpar::op::normalize>().eps) * x[2].real[c] + x[3].real[c];
    });
  } else if (o.is<concat>()) {
    std::size_t const a = static_cast<std::size_t>(tensorpar::detail::axis_number(o.as<concat>().axis_no, rank));
    each(0, [&](std::size_t e) {
      auto p = place_of(y[0].block, e);
      std::size_t k = 0;
      while (p[a] >= x[k].block.local[a]) p[a] -= x[k++].block.local[a];
      return in(k)(p);
    });
  } else if (o.is<split_axes>()) {
    std::size_t const a = static_cast<std::size_t>(tensorpar::detail::axis_number(o.as<split_axes>().axis_no, rank));
    for (std::size_t k = 0; k < y.size(); ++k)
      each(k, [&](std::size_t e) { auto p = place_of(y[k].block, e); p[a] += static_cast<i64>(k) * y[k].block.local[a]; return in(0)(p); });
  } else if (o.is<slice_axis>()) {
    auto const s = o.as<slice_axis>();
    auto const a = static_cast<std::size_t>(tensorpar::detail::axis_number(s.axis_no, rank));
    moved([&](std::vector<i64> p) { p[a] += s.begin; return p; });
  } else if (o.is<transpose>()) {
    auto const t = o.as<transpose>();
    moved([&](std::vector<i64> p) {
      std::swap(p[static_cast<std::size_t>(tensorpar::detail::axis_number(t.a, rank))],
                p[static_cast<std::size_t>(tensorpar::detail::axis_number(t.b, rank))]);
      return p;
    });
  } else if (o.is<tensorpar::op::sum_axis>()) {
    auto const a = static_cast<std::size_t>(tensorpar::detail::axis_number(o.as<tensorpar::op::sum_axis>().axis_no, rank));
    for (std::size_t e = 0; e < x[0].real.size(); ++e) {
      auto p = place_of(x[0].block, e);
      p.erase(p.begin() + static_cast<std::ptrdiff_t>(a));
      y[0].real[indexed::flat(y[0].block, p)] += x[0].real[e];
    }
  } else if (o.is<tensorpar::op::sum_heads>()) {
    auto const h = o.as<tensorpar::op::sum_heads>();
    i64 const w = x[0].block.global[rank - 1] / h.heads / h.count;
    for (std::size_t e = 0; e < x[0].real.size(); ++e) {
      auto p = place_of(x[0].block, e);
      p.back() = p.back() / (h.count * w) * w + p.back() % w;
      y[0].real[indexed::flat(y[0].block, p)] += x[0].real[e];
    }
  } else if (o.is<tensorpar::op::repeat_heads>()) {
    auto const h = o.as<tensorpar::op::repeat_heads>();
    i64 const w = x[0].block.global[rank - 1] / h.heads;
    each(0, [&](std::size_t e) {
      auto p = place_of(y[0].block, e);
      p.back() = p.back() / (h.count * w) * w + p.back() % w;
      return in(0)(p);
    });
  } else if (o.is<tensorpar::op::repeat_axis>()) {
    auto const a = tensorpar::detail::axis_number(o.as<tensorpar::op::repeat_axis>().axis_no, y[0].block.rank);
    each(0, [&](std::size_t e) {
      auto p = place_of(y[0].block, e);
      p.erase(p.begin() + a);
      return in(0)(p);
    });
  } else if (o.is<reshape>() || o.is<flatten>() || o.is<merge_axes>() || o.is<split_axis>() || is_parallel(o)) {
    y[0].real = x[0].real;
    y[0].index = x[0].index;
  } else if (o.is<embedding>() || o.is<embedding_bag>()) {
    std::size_t const width = static_cast<std::size_t>(x[1].block.local[1]), bag = o.is<embedding>() ? 1 : static_cast<std::size_t>(last);
    each(0, [&](std::size_t e) {
      double s = 0;
      for (std::size_t l = 0; l < bag; ++l) s += in(1)({x[0].index[e / width * bag + l], static_cast<i64>(e % width)});
      return s;
    });
  } else if (is_attention(o)) {
    bool const packed = o.is<packed_attention>(), causal = packed ? o.as<packed_attention>().causal : o.as<attention>().causal;
    i64 const heads = packed ? o.as<packed_attention>().heads : o.as<attention>().heads;
    i64 const width = last / heads / (packed ? 3 : 1);
    i64 const keys = x[packed ? 0 : 1].block.local[1];
    // queries, keys and values: column i of a head
    auto const part = [&](std::size_t which, i64 batch, i64 at, i64 head, i64 i) {
      return packed ? in(0)({batch, at, (3 * head + static_cast<i64>(which)) * width + i}) : in(which)({batch, at, head * width + i});
    };
    each(0, [&](std::size_t e) {
      auto const p = place_of(y[0].block, e);
      i64 const head = p[2] / width;
      std::vector<double> score;
      for (i64 k = 0; k < keys && (!causal || k <= p[1]); ++k) {
        double s = 0;
        for (i64 i = 0; i < width; ++i) s += part(0, p[0], p[1], head, i) * part(1, p[0], k, head, i);
        score.push_back(s / std::sqrt(static_cast<double>(width)));
      }
      auto weight = plain_softmax(score);
      weight.resize(static_cast<std::size_t>(keys), 0);            // a key that is not seen has a weight, of zero
      double s = 0;
      for (std::size_t k = 0; k < weight.size(); ++k) s += weight[k] * part(2, p[0], static_cast<i64>(k), head, p[2] % width);
      return s;
    });
  } else if (o.is<tensorpar::op::attention_parts>()) {
    i64 const heads = o.as<tensorpar::op::attention_parts>().heads, width = x[0].block.local[2] / heads, keys = x[1].block.local[2];
    each(0, [&](std::size_t e) {
      auto const p = place_of(y[0].block, e);
      i64 const head = p[3] / (width + 2), column = p[3] % (width + 2);
      std::vector<double> score;
      double top = -INFINITY, s = 0;
      for (i64 k = 0; k < keys; ++k) {
        score.push_back(0);
        for (i64 i = head * width; i < (head + 1) * width; ++i) score.back() += in(0)({p[0], p[2], i}) * in(1)({p[0], p[1], k, i});
        score.back() /= std::sqrt(static_cast<double>(width));
        top = maximum(top, score.back());
      }
      double const shift = top == -INFINITY ? 0 : top;
      for (i64 k = 0; k < keys; ++k)
        s += std::exp(score[static_cast<std::size_t>(k)] - shift) * (column < width ? in(2)({p[0], p[1], k, head * width + column}) : 1);
      return column > width ? top : s;
    });
  } else if (o.is<tensorpar::op::softmax_merge>() || o.is<tensorpar::op::attention_finish>()) {
    bool const finish = o.is<tensorpar::op::attention_finish>();
    i64 const heads = finish ? o.as<tensorpar::op::attention_finish>().heads : o.as<tensorpar::op::softmax_merge>().heads,
        head = x[0].block.local[3] / heads;
    i64 const all = x[0].block.local[1], group = finish ? all : all / y[0].block.local[1];
    each(0, [&](std::size_t e) {
      auto p = place_of(y[0].block, e);
      if (finish) p = {p[0], 0, p[1], p[2] / (head - 2) * head + p[2] % (head - 2)};
      auto const at = [&](i64 part, i64 column) { return in(0)({p[0], p[1] * group + part, p[2], column}); };
      i64 const first = p[3] / head * head;
      double top = -INFINITY, s = 0, sum = 0;
      for (i64 k = 0; k < group; ++k) top = maximum(top, at(k, first + head - 1));
      for (i64 k = 0; k < group; ++k) {
        double const f = std::exp(at(k, first + head - 1) - (top == -INFINITY ? 0 : top));
        s += f * at(k, p[3]);
        sum += f * at(k, first + head - 2);
      }
      return finish ? s / sum : p[3] == first + head - 1 ? top : s;
    });
  } else if (o.is<cross_entropy>()) {
    for (std::size_t r = 0; r < x[1].index.size(); ++r)
      y[0].real[0] -=
          std::log(plain_softmax(row_of(0, r))[static_cast<std::size_t>(x[1].index[r])]) / static_cast<double>(x[1].index.size());
  } else if (o.is<mean_squared_error>()) {
    for (std::size_t e = 0; e < x[0].real.size(); ++e)
      y[0].real[0] += std::pow(x[0].real[e] - x[1].real[e], 2) / static_cast<double>(x[0].real.size());
  } else if (is_update(o) && !has_master(o) && x.size() > y.size() + 1 && x.back().real[0] < 0) {         // nothing is to change
    for (std::size_t k = 0; k < y.size(); ++k) y[k].real = x[k ? k + 1 : 0].real;
  } else if (o.is<sgd_update>()) {
    double const clip = x.size() > 2 ? x[2].real[0] : 1;
    each(0, [&](std::size_t e) {
      return x[0].real[e] - state.learning_rate * (x[1].real[e] * clip + o.as<sgd_update>().weight_decay * x[0].real[e]);
    });
  } else if (o.is<momentum_update>()) {
    auto const u = o.as<momentum_update>();
    double const clip = x.size() > 3 ? x[3].real[0] : 1;
    each(1, [&](std::size_t e) { return u.momentum * x[2].real[e] + x[1].real[e] * clip + u.weight_decay * x[0].real[e]; });
    each(0, [&](std::size_t e) { return x[0].real[e] - state.learning_rate * y[1].real[e]; });
  } else if (o.is<adamw_update>()) {
    auto const u = o.as<adamw_update>();
    double const clip = x.size() > 4 ? x[4].real[0] : 1, t = static_cast<double>(state.step + 1);
    each(1, [&](std::size_t e) { return u.beta1 * x[2].real[e] + (1 - u.beta1) * x[1].real[e] * clip; });
    each(2, [&](std::size_t e) { return u.beta2 * x[3].real[e] + (1 - u.beta2) * std::pow(x[1].real[e] * clip, 2); });
    each(0, [&](std::size_t e) {
      double const m = y[1].real[e] / (1 - std::pow(u.beta1, t)), v = y[2].real[e] / (1 - std::pow(u.beta2, t));
      return x[0].real[e] - state.learning_rate * (m / (std::sqrt(v) + u.eps) + u.weight_decay * x[0].real[e]);
    });
  } else if (has_master(o)) {
    tensorpar::op::any_op const rule = o.is<with_master<sgd_update>>()        ? tensorpar::op::any_op(o.as<sgd_update>())
                        : o.is<with_master<momentum_update>>() ? tensorpar::op::any_op(o.as<momentum_update>())
                                                               : tensorpar::op::any_op(o.as<adamw_update>());
    auto operands = x;
    auto const master = y.size();
    operands[0] = x[master];
    operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(master));
    std::vector<dense<double>> made(y.begin(), y.end() - 1);
    straight_loops(rule, operands, made, state);
    for (std::size_t k = 0; k < made.size(); ++k) y[k].real = made[k].real;
    y.back().real = made[0].real;
  } else if (o.is<square_sum>()) {
    for (double v : x[0].real) y[0].real[0] += v * v;
  } else if (o.is<clip_factor>()) {
    double s = 0;
    for (auto const& t : x) s += t.real[0];
    auto const c = o.as<clip_factor>();
    double const share = c.max_norm == 0 ? 1 : c.max_norm / std::sqrt(s);
    y[0].real[0] = c.skip && !std::isfinite(std::sqrt(s)) ? -1 : std::isnan(share) || share < 1 ? share : 1.0;
    y[1].real[0] = std::sqrt(s);
  } else {
    return false;
  }
  return true;
}

}  // namespace tests
