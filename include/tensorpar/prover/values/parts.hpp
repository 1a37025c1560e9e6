// tensorpar/prover/values/parts.hpp - runs operators as devices do: block by block, with partial sums
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/parallel_inference.hpp>
#include <tensorpar/prover/values/evaluate.hpp>
#include <utility>

namespace tensorpar::prover {

/// A sharding tensor's elements: one whole array per partial sum. Copies hold the same, since devices with
/// equal operands do equal work, and blocks are cut where an operator reads them.
template <class T> struct sharding_elements {
  ir::parallel_shape where;
  std::vector<elements<T>> part;         // where.sum of them
};

namespace detail {

/// The operator as one device runs it when its loops are split so: what counts units of a split loop counts
/// the device's own.
inline op::any_op local_op(op::any_op o, ir::iteration_space const& space, std::vector<i64> const& split,
                       shapes activations) {
  if (o.op->first) {
    op::op_info const* const both = std::exchange(o.op, o.op->first);
    o = local_op(o, space, split, activations);
    o.op = both;
    return o;
  }
  auto of = [&](char c) -> i64 {
    for (std::size_t i = 0; i < space.loops.size(); ++i) if (space.loops[i].letter == c) return split[i];
    return 1;
  };
  if (o.is<conv2d>()) {
    auto c = o.as<conv2d>();
    i64 const k = c.groups > 1 ? of('g') : of('o');
    c.out /= k;
    if (c.groups > 1) c.groups /= k;
    return c;
  }
  op::any_op local = o;                      // heads, parts: the attributes with which a loop's units change
  for (std::size_t i = 0; i < space.loops.size(); ++i) {
    char const letter = space.loops[i].letter;
    i64 const units = split[i] > 1 ? o.op->units(o.attr, letter, activations) : 0;
    for (int k = 0; k < o.op->attrs && units > 0; ++k) {
      op::any_op more = o;
      more.attr[k] += more.attr[k];
      if (o.op->units(more.attr, letter, activations) != units) local.attr[k] /= split[i];
    }
  }
  return local;
}

template <class T>
elements<T> block_of(elements<T> const& x, std::vector<i64> const& degree, std::vector<i64> const& at) {
  elements<T> b;
  b.type = x.type;
  for (int d = 0; d < x.type.rank; ++d) {
    auto const i = idx(d);
    b.type.d[d].n /= degree[i];
    b.origin[d] = at[i] * b.type.d[d].n;
  }
  each_element(b.type, [&](i64 const* c, std::size_t) {
    i64 from[shape::max_rank];
    for (int d = 0; d < x.type.rank; ++d) from[d] = b.origin[d] + c[d];
    std::size_t const k = offset_of(x.type, from);
    if (x.index.empty()) b.data.push_back(x.data[k]);
    else b.index.push_back(x.index[k]);
  });
  return b;
}

}  // namespace detail

namespace detail {
/// What a parallel operator makes of the blocks: all but reduce leave them as they are.
template <number_algebra A, class T = typename A::value>
sharding_elements<T> parallel_on_parts(A& a, op::any_op const& o, sharding_elements<T> const& x,
                                       ir::parallel_shape const& out) {
  sharding_elements<T> y{out, x.part};
  if (!o.is<parallel::reduce>()) return y;
  std::size_t const k = idx(o.as<parallel::reduce>().degree), n = x.part.size() / k;
  y.part.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    y.part[i] = x.part[i * k];
    for (std::size_t j = 1; j < k; ++j)
      for (std::size_t e = 0; e < y.part[i].data.size(); ++e)
        y.part[i].data[e] = a.plus(y.part[i].data[e], x.part[i * k + j].data[e]);
  }
  return y;
}
}  // namespace detail

/// Runs an operator on sharded operands, every device its own block. Precondition: infer_parallel_shapes(o,
/// operands' shapes) is `out`. Empty: it is not known what this operator computes. O(work of the operator,
/// plus copying).
template <number_algebra A, class T = typename A::value>
std::vector<sharding_elements<T>> run_on_parts(A& a, op::any_op const& o,
                                               std::vector<sharding_elements<T>> const& in,
                                               std::vector<ir::parallel_shape> const& out) {
  std::vector<sharding_elements<T>> r;
  if (is_parallel(o)) return {detail::parallel_on_parts(a, o, in[0], out[0])};
  std::vector<shape> types, results;
  for (auto const& x : in) types.push_back(x.where.type);
  for (ir::parallel_shape const& y : out) results.push_back(y.type);
  ir::iteration_space const space = ir::space_of(o, types, results);
  std::vector<i64> split(space.loops.size(), 1);
  for (std::size_t i = 0; i < split.size(); ++i)
    for (std::size_t k = 0; k < in.size(); ++k)
      if (int const d = space.loops[i].in[k]; d >= 0) split[i] = in[k].where.degree[d];
  ir::sum_passage const pass = ir::sums_through(o, static_cast<int>(in.size()));
  bool const biased = in.size() == 3 && (o.is<linear>() || o.is<conv2d>());
  i64 sums = 1;
  for (std::size_t k = 0; k < in.size(); ++k)
    if (!(biased && k == 2) && in[k].where.sum > sums) sums = in[k].where.sum;
  i64 tasks = sums;
  for (i64 k : split) tasks *= k;
  for (ir::parallel_shape const& y : out) {
    elements<T> zero;
    zero.type = y.type;
    if (is_integer(y.type.type)) zero.index.assign(idx(y.type.elements()), 0);
    else zero.data.assign(idx(y.type.elements()), a.integer(0));
    r.push_back({y, std::vector<elements<T>>(idx(y.sum), zero)});
  }
  for (i64 task = 0; task < tasks; ++task) {
    std::vector<i64> at(split.size(), 0);
    i64 rest = task;
    for (std::size_t i = split.size(); i-- > 0; rest /= split[i]) at[i] = rest % split[i];
    i64 const sum = rest;
    std::vector<elements<T>> blocks;
    for (std::size_t k = 0; k < in.size(); ++k) {
      std::vector<i64> degree(idx(types[k].rank), 1), where(degree);
      i64 part = pass.rule == ir::sum_rule::together || in[k].where.sum == sums ? sum : 0;
      if (in[k].where.sum == 1) part = 0;
      for (std::size_t i = 0; i < split.size(); ++i) {
        ir::node_loop const& l = space.loops[i];
        if (l.in[k] >= 0) {
          degree[idx(l.in[k])] = split[i];
          where[idx(l.in[k])] = at[i];
        }
      }
      if (biased && k == 2) {
        part = sum;
        for (std::size_t i = 0; i < split.size(); ++i)
          if (space.loops[i].reduced && space.loops[i].in[k] < 0) part = part * split[i] + at[i];
      }
      blocks.push_back(detail::block_of(in[k].part[idx(part)], degree, where));
    }
    std::vector<shape> local;
    for (std::size_t k = 0; k < out.size(); ++k) {
      shape s = out[k].type;
      for (std::size_t i = 0; i < split.size(); ++i)
        if (int const d = space.loops[i].out[k]; d >= 0) s.d[d].n /= split[i];
      local.push_back(s);
    }
    int const activations = o.op->arity < 0 ? static_cast<int>(types.size()) : o.op->arity;
    auto const made =
        evaluate(a, detail::local_op(o, space, split, {types.data(), activations}), blocks, local);
    if (made.empty()) return {};
    for (std::size_t k = 0; k < out.size(); ++k) {
      i64 part = sum, origin[shape::max_rank] = {};
      for (std::size_t i = 0; i < split.size(); ++i) {
        int const d = space.loops[i].out[k];
        if (d >= 0) origin[d] = at[i] * local[k].d[d].n;
        else part = part * split[i] + at[i];
      }
      elements<T>& y = r[k].part[idx(part)];
      detail::each_element(local[k], [&](i64 const* c, std::size_t i) {
        i64 to[shape::max_rank];
        for (int d = 0; d < local[k].rank; ++d) to[d] = origin[d] + c[d];
        std::size_t const there = detail::offset_of(y.type, to);
        if (y.index.empty()) y.data[there] = made[k].data[i];
        else y.index[there] = made[k].index[i];
      });
    }
  }
  return r;
}

/// The whole tensor: partial sums added.
template <number_algebra A>
elements<typename A::value> whole(A& a, sharding_elements<typename A::value> const& x) {
  auto y = x.part[0];
  for (std::size_t p = 1; p < x.part.size(); ++p)
    for (std::size_t i = 0; i < y.data.size(); ++i) y.data[i] = a.plus(y.data[i], x.part[p].data[i]);
  return y;
}

}  // namespace tensorpar::prover
