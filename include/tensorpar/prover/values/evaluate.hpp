// tensorpar/prover/values/evaluate.hpp - what an operator computes, element by element, over any kind of
// number: fields, doubles, symbols
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/iteration_space.hpp>
#include <tensorpar/prover/values/evaluate_attention.hpp>
#include <tensorpar/rewrite/vocabulary.hpp>

namespace tensorpar::prover {

namespace detail {

template <number_algebra A> class operator_evaluator {
  using T = typename A::value;
  using tensors = std::vector<elements<T>>;
  A& a_;
  op::any_op const& o_;
  tensors const& in_;
  std::vector<elements<T>>& out_;

  T sum(T x, T y) const { return a_.plus(x, y); }
  static double real_attr(op::any_op const& o, int i) { return std::bit_cast<double>(o.attr[i]); }

  static void move(elements<T>& y, std::size_t i, elements<T> const& x, std::size_t j) {
    if (x.index.empty()) y.data[i] = x.data[j];
    else y.index[i] = x.index[j];
  }
  void each(auto&& f) {
    for (std::size_t i = 0; i < out_[0].data.size(); ++i) out_[0].data[i] = f(i);
  }
  /// Products of operands, summed over the loops that the result lacks; `added`: one more operand is added at
  /// the end.
  void product(bool added) {
    std::vector<shape> in;
    for (elements<T> const& x : in_) in.push_back(x.type);
    std::size_t const factors = in_.size() - added;
    // loops of the result first, in its own order, then those summed over; how far one step of each goes in
    // every operand
    struct walk {
      i64 extent = 1;
      std::vector<i64> step;
    };
    walk const still{1, std::vector<i64>(in_.size(), 0)};
    std::vector<walk> kept(idx(out_[0].type.rank), still), reduced;
    for (ir::node_loop const& l : ir::space_of(o_, in, {out_[0].type}).loops) {
      walk w = still;
      for (std::size_t k = 0; k < in.size(); ++k)
        if (l.in[k] >= 0) {
          w.extent = in[k].d[l.in[k]].n;
          i64 s = 1;
          for (int d = in[k].rank - 1; d > l.in[k]; --d) s *= in[k].d[d].n;
          w.step[k] = s;
        }
      if (l.out[0] >= 0) kept[idx(l.out[0])] = w;
      else reduced.push_back(w);
    }
    i64 terms = 1;
    for (walk const& w : reduced) terms *= w.extent;
    std::vector<i64> at(in_.size()), p;
    each_element(out_[0].type, [&](i64 const* c, std::size_t i) {
      for (std::size_t k = 0; k < at.size(); ++k) {
        at[k] = 0;
        for (std::size_t d = 0; d < kept.size(); ++d) at[k] += c[d] * kept[d].step[k];
      }
      T s = a_.integer(0);
      for (i64 t = 0; t < terms; ++t) {
        p = at;
        i64 rest = t;
        for (std::size_t r = reduced.size(); r-- > 0; rest /= reduced[r].extent)
          for (std::size_t k = 0; k < factors; ++k) p[k] += rest % reduced[r].extent * reduced[r].step[k];
        T x = in_[0].data[idx(p[0])];
        for (std::size_t k = 1; k < factors; ++k)
          x = a_.times(x, in_[k].data[idx(p[k])]);
        s = t == 0 ? x : sum(s, x);
      }
      out_[0].data[i] = added ? sum(s, in_[factors].data[idx(at[factors])]) : s;
    });
  }
  void convolution() {
    conv2d const c = o_.as<conv2d>();
    auto const w = c.window();
    shape const &x = in_[0].type, &k = in_[1].type, &y = out_[0].type;
    i64 const per_out = y.d[1].n / c.groups, per_in = k.d[1].n;
    each_element(y, [&](i64 const* at, std::size_t i) {
      T s = a_.integer(0);
      bool first = true;
      for (i64 ch = 0; ch < per_in; ++ch)
        for (i64 r = 0; r < w.kernel_h; ++r)
          for (i64 q = 0; q < w.kernel_w; ++q) {
            i64 const h = at[2] * w.stride + r - w.pad_h, v = at[3] * w.stride + q - w.pad_w;
            if (h < 0 || v < 0 || h >= x.d[2].n || v >= x.d[3].n) continue;
            i64 const from[4] = {at[0], at[1] / per_out * per_in + ch, h, v}, by[4] = {at[1], ch, r, q};
            T const p = a_.times(in_[0].data[offset_of(x, from)], in_[1].data[offset_of(k, by)]);
            s = first ? p : sum(s, p);
            first = false;
          }
      out_[0].data[i] = in_.size() > 2 ? sum(s, in_[2].data[idx(at[1])]) : s;
    });
  }
  void pool() {
    pool2d const c = o_.as<pool2d>();
    shape const& x = in_[0].type;
    each_element(out_[0].type, [&](i64 const* at, std::size_t i) {
      T s = a_.integer(0);
      bool first = true;
      for (i64 r = 0; r < c.kernel; ++r)
        for (i64 q = 0; q < c.kernel; ++q) {
          i64 const h = at[2] * c.stride + r - c.window().pad_h, v = at[3] * c.stride + q - c.window().pad_w;
          if (h < 0 || v < 0 || h >= x.d[2].n || v >= x.d[3].n) continue;
          i64 const from[4] = {at[0], at[1], h, v};
          T const e = in_[0].data[offset_of(x, from)];
          s = first ? e : c.average ? sum(s, e) : a_.maximum(s, e);
          first = false;
        }
      out_[0].data[i] = c.average ? a_.over(s, a_.integer(c.kernel * c.kernel)) : s;
    });
  }
  void concatenation() {
    int const axis = tensorpar::detail::axis_number(o_.as<concat>().axis_no, out_[0].type.rank);
    i64 start = 0;
    for (elements<T> const& x : in_) {
      each_element(x.type, [&](i64 const* c, std::size_t i) {
        i64 to[shape::max_rank];
        for (int d = 0; d < x.type.rank; ++d) to[d] = c[d] + (d == axis ? start : 0);
        move(out_[0], offset_of(out_[0].type, to), x, i);
      });
      start += x.type.d[axis].n;
    }
  }
  /// Every result is a window of the operand along one axis.
  void windows(i64 axis_no, i64 begin) {
    int const axis = tensorpar::detail::axis_number(axis_no, in_[0].type.rank);
    for (elements<T>& y : out_) {
      each_element(y.type, [&](i64 const* c, std::size_t i) {
        i64 from[shape::max_rank];
        for (int d = 0; d < y.type.rank; ++d) from[d] = c[d] + (d == axis ? begin : 0);
        move(y, i, in_[0], offset_of(in_[0].type, from));
      });
      begin += y.type.d[axis].n;
    }
  }
  /// Along one axis of the operand everything is added.
  void axis_sum() {
    shape const& x = in_[0].type;
    int const axis = tensorpar::detail::axis_number(o_.as<op::sum_axis>().axis_no, x.rank);
    each_element(out_[0].type, [&](i64 const* c, std::size_t i) {
      i64 from[shape::max_rank];
      for (int d = 0; d < x.rank; ++d) from[d] = d < axis ? c[d] : d == axis ? 0 : c[d - 1];
      T s = in_[0].data[offset_of(x, from)];
      for (from[axis] = 1; from[axis] < x.d[axis].n; ++from[axis])
        s = sum(s, in_[0].data[offset_of(x, from)]);
      out_[0].data[i] = s;
    });
  }
  void repetition() {
    shape const& x = in_[0].type;
    int const axis = tensorpar::detail::axis_number(o_.as<op::repeat_axis>().axis_no, out_[0].type.rank);
    each_element(out_[0].type, [&](i64 const* c, std::size_t i) {
      i64 from[shape::max_rank];
      for (int d = 0; d < x.rank; ++d) from[d] = c[d < axis ? d : d + 1];
      out_[0].data[i] = in_[0].data[offset_of(x, from)];
    });
  }
  void transposition() {
    auto const t = o_.as<tensorpar::transpose>();
    int const r = in_[0].type.rank;
    int const p = tensorpar::detail::axis_number(t.a, r), q = tensorpar::detail::axis_number(t.b, r);
    each_element(out_[0].type, [&](i64 const* c, std::size_t i) {
      i64 from[shape::max_rank];
      for (int d = 0; d < r; ++d) from[d] = c[d == p ? q : d == q ? p : d];
      move(out_[0], i, in_[0], offset_of(in_[0].type, from));
    });
  }
  /// Rows that a block of the table lacks count as zero.
  void look_up(bool bag) {
    i64 const width = in_[1].type.d[1].n, rows = in_[1].type.d[0].n, length = bag ? in_[0].type.last().n : 1;
    each([&](std::size_t i) {
      std::size_t const at = i / idx(width),
                        column = i % idx(width);
      T s = a_.integer(0);
      for (i64 l = 0; l < length; ++l) {
        i64 const row = in_[0].index[at * idx(length) + idx(l)] -
                        in_[1].origin[0];
        if (row >= 0 && row < rows) s = sum(s, in_[1].data[idx(row * width) + column]);
      }
      return s;
    });
  }
  static constexpr u64 root = core::name_hash("1/sqrt");
  void rows(auto&& f) {
    i64 const n = in_[0].type.last().n;
    for (i64 r = 0; r < in_[0].type.elements() / n; ++r)
      f(idx(r * n), idx(n));
  }
  void soft_maximum() {
    rows([&](std::size_t at, std::size_t n) {
      std::vector<T> e;
      for (std::size_t i = 0; i < n; ++i) e.push_back(a_.apply(exponential, in_[0].data[at + i]));
      T s = e[0];
      for (std::size_t i = 1; i < n; ++i) s = sum(s, e[i]);
      for (std::size_t i = 0; i < n; ++i) out_[0].data[at + i] = a_.over(e[i], s);
    });
  }
  void layer_norm() {
    rows([&](std::size_t at, std::size_t n) {
      T const count = a_.integer(static_cast<i64>(n)), minus = a_.integer(-1);
      T s = in_[0].data[at];
      for (std::size_t i = 1; i < n; ++i) s = sum(s, in_[0].data[at + i]);
      T const mean = a_.over(s, count);
      std::vector<T> d;
      T square = a_.integer(0);
      for (std::size_t i = 0; i < n; ++i) {
        d.push_back(sum(in_[0].data[at + i], a_.times(minus, mean)));
        square = sum(square, a_.times(d.back(), d.back()));
      }
      T const scale = a_.apply(root, sum(a_.over(square, count), a_.real(o_.as<layernorm>().eps)));
      for (std::size_t i = 0; i < n; ++i)
        out_[0].data[at + i] = sum(a_.times(a_.times(d[i], scale), in_[1].data[i]), in_[2].data[i]);
    });
  }

 public:
  operator_evaluator(A& a, op::any_op const& o, tensors const& in, std::vector<elements<T>>& out)
      : a_(a), o_(o), in_(in), out_(out) {}
  bool run() {
    auto at = [&](std::size_t k, std::size_t i) -> T const& { return in_[k].data[i]; };
    if (o_.op->first) {
      op::any_op within = o_;
      within.op = o_.op->first;
      if (!operator_evaluator(a_, within, in_, out_).run()) return false;
      each([&](std::size_t i) { return a_.apply(o_.op->then->id, out_[0].data[i]); });
    } else if (is_parallel(o_) || o_.is<reshape>() || o_.is<flatten>() || o_.is<merge_axes>() ||
               o_.is<split_axis>()) {
      out_[0].data = in_[0].data;
      out_[0].index = in_[0].index;
    } else if (rewrite::is_function(*o_.op)) {
      each([&](std::size_t i) { return a_.apply(o_.op->id, at(0, i)); });
    } else if (o_.is<add>()) {
      each([&](std::size_t i) { return sum(at(0, i), at(1, i)); });
    } else if (o_.is<mul>()) {
      each([&](std::size_t i) { return a_.times(at(0, i), at(1, i)); });
    } else if (o_.is<scale>()) {
      T const c = a_.real(real_attr(o_, 0));
      each([&](std::size_t i) { return a_.times(at(0, i), c); });
    } else if (o_.is<linear>() || o_.is<matmul>() || o_.is<contraction>()) {
      product(o_.is<linear>() && in_.size() == 3);
    } else if (o_.is<conv2d>()) {
      convolution();
    } else if (o_.is<pool2d>()) {
      pool();
    } else if (o_.is<concat>()) {
      concatenation();
    } else if (o_.is<split_axes>()) {
      windows(o_.as<split_axes>().axis_no, 0);
    } else if (o_.is<slice_axis>()) {
      windows(o_.as<slice_axis>().axis_no, o_.as<slice_axis>().begin);
    } else if (o_.is<op::sum_axis>()) {
      axis_sum();
    } else if (o_.is<op::repeat_axis>()) {
      repetition();
    } else if (o_.is<tensorpar::transpose>()) {
      transposition();
    } else if (o_.is<embedding>() || o_.is<embedding_bag>()) {
      look_up(o_.is<embedding_bag>());
    } else if (o_.is<softmax>()) {
      soft_maximum();
    } else if (o_.is<layernorm>()) {
      layer_norm();
    } else if (o_.is<attention>()) {
      attend(a_, o_, in_, out_[0]);
    } else if (o_.is<packed_attention>()) {
      attend_packed(a_, o_, in_, out_[0]);
    } else if (o_.is<op::attention_parts>()) {
      attend_in_parts(a_, o_, in_, out_[0]);
    } else if (o_.is<op::softmax_merge>() || o_.is<op::attention_finish>()) {
      put_together(a_, o_, in_, out_[0]);
    } else {
      return false;
    }
    return true;
  }
};

}  // namespace detail

/// Results of an operator. `out`: their shapes, as the operator's rule infers them. Empty: it is not known
/// what this operator computes. Precondition: the operands fit. O(work of the operator).
template <number_algebra A>
std::vector<elements<typename A::value>> evaluate(A& a, op::any_op const& o,
                                                  std::vector<elements<typename A::value>> const& in,
                                                  std::vector<shape> const& out) {
  std::vector<elements<typename A::value>> r;
  for (shape const& s : out) {
    elements<typename A::value> e;
    e.type = s;
    if (is_integer(s.type)) e.index.assign(idx(s.elements()), 0);
    else e.data.assign(idx(s.elements()), a.integer(0));
    r.push_back(std::move(e));
  }
  if (!detail::operator_evaluator<A>(a, o, in, r).run()) r.clear();
  return r;
}

}  // namespace tensorpar::prover
