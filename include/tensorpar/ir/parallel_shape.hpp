// tensorpar/ir/parallel_shape.hpp - a sharding tensor's shape, and what operators do to it
#pragma once
#include <optional>
#include <tensorpar/ir/reshard.hpp>
#include <tensorpar/op/core/spelling.hpp>
#include <tensorpar/op/kinds/parallel.hpp>

namespace tensorpar::ir {

/// Sizes of a logical tensor, the degree in which each axis is split, and two replica counts: `sum` partial
/// sums, `copy` identical copies. micro: in how many micro-batches the batch axis is cut in time (pipeline /
/// batch). Invariant: degree[d] divides size[d]; all degrees >= 1.
struct parallel_shape {
  shape type{};
  i64 degree[shape::max_rank] = {1, 1, 1, 1, 1, 1};
  i64 sum = 1, copy = 1, micro = 1;
  constexpr parallel_shape() = default;
  constexpr parallel_shape(shape const& s) : type(s) {}
  i64 parts() const { i64 n = sum * copy; for (int d = 0; d < type.rank; ++d) n *= degree[d]; return n; }
  friend bool operator==(parallel_shape const& a, parallel_shape const& b) {
    if (!(a.type == b.type) || a.sum != b.sum || a.copy != b.copy || a.micro != b.micro) return false;
    for (int d = 0; d < a.type.rank; ++d) if (a.degree[d] != b.degree[d]) return false;
    return true;
  }
};
inline std::string spell(parallel_shape const& s) {
  std::string r = "[";
  for (int d = 0; d < s.type.rank; ++d)
    r += (d ? "," : "") + op::spell(s.type.d[d]) + (s.degree[d] > 1 ? "/" + std::to_string(s.degree[d]) : "");
  r += "]";
  if (s.sum > 1) r += " sum " + std::to_string(s.sum);
  if (s.copy > 1) r += " copy " + std::to_string(s.copy);
  if (s.micro > 1) r += " micro " + std::to_string(s.micro);
  return r;
}

/// Result of a rule: a shape, or why there is none.
struct parallel_result {
  std::vector<parallel_shape> out;
  std::string problem;
  bool ok() const { return problem.empty(); }
};

/// What the six parallel operators do to a sharding shape (Unity, OSDI'22, section 3, with the two replica
/// counts kept apart). partition: degree *= k, must divide the size; combine: degree /= k; replicate: copy *=
/// k; reduce: sum /= k; pipeline: micro *= k; batch: micro /= k.
inline parallel_result parallel_rule(op::any_op const& o, parallel_shape s) {
  auto no = [&](std::string why) { return parallel_result{{},
                                                          op::spell(o) + " on " + spell(s) + ": " + why}; };
  i64 const k = o.attr[o.op->attrs - 1], d = o.op->attrs == 2 ? o.attr[0] : 0;
  if (k < 1) return no("the degree must be positive");
  if (o.op->attrs == 2 && (d < 0 || d >= s.type.rank)) return no("no such axis");
  if (o.is<parallel::partition>()) {
    if (s.type.d[d].n % (s.degree[d] * k)) return no("the degree does not divide the axis");
    s.degree[d] *= k;
  } else if (o.is<parallel::combine>()) {
    if (s.degree[d] % k) return no("the axis is not split that often");
    s.degree[d] /= k;
  } else if (o.is<parallel::replicate>()) {
    s.copy *= k;
  } else if (o.is<parallel::reduce>()) {
    if (s.sum % k) return no("there are not that many partial sums");
    s.sum /= k;
  } else if (o.is<parallel::pipeline>()) {
    if (s.type.d[d].n % (s.micro * k)) return no("the degree does not divide the axis");
    s.micro *= k;
  } else if (o.is<parallel::batch>()) {
    if (s.micro % k) return no("there are not that many micro-batches");
    s.micro /= k;
  } else {
    return no("not a parallel operator");
  }
  return {{s}, {}};
}

/// How often each loop of an operator is split, by letter; and how many partial sums come in.
struct loop_degrees {
  std::vector<std::pair<char, i64>> split;
  i64 sum = 1;
  i64 of(char c) const { for (auto const& [l, k] : split) if (l == c) return k; return 1; }
};

/// Is the operator linear in its activations, so that partial sums may pass through it? (A bias is then a
/// partial sum too.)
inline bool passes_sums(op::any_op const& o) {
  std::string_view const n = o.op->name;
  for (char const* s :
       {"linear", "conv2d", "add", "scale", "concat", "split", "slice", "unslice", "transpose", "reshape",
        "flatten", "merge_axes", "split_axis", "sum", "repeat", "global_average"})
    if (n == s) return true;
  return n == "pool2d" && o.attr[3] != 0;      // an average
}

/// The sharding of every operand and result of a node whose loops are split in these degrees.
struct node_shapes {
  std::vector<parallel_shape> in, out;
  std::string problem;
};
inline node_shapes lift(iteration_space const& space, op::any_op const& o, std::vector<shape> const& in,
                        std::vector<shape> const& out, loop_degrees const& d) {
  node_shapes r;
  for (node_loop const& l : space.loops)
    if (i64 const k = d.of(l.letter); k < 1 || l.units % k)
      r.problem = op::spell(o) + ": loop '" + std::string(1, l.letter) + "' of " + std::to_string(l.units) +
                  " parts cannot be split in " + std::to_string(k);
  if (d.sum > 1 && !passes_sums(o))
    r.problem = op::spell(o) + ": partial sums cannot pass through this operator";
  if (!r.problem.empty()) return r;
  int const activations = o.op->arity < 0 ? static_cast<int>(in.size()) : o.op->arity;
  for (std::size_t k = 0; k < in.size(); ++k) {
    parallel_shape s(in[k]);
    for (node_loop const& l : space.loops) (l.in[k] >= 0 ? s.degree[l.in[k]] : s.copy) *= d.of(l.letter);
    bool const activation = static_cast<int>(k) < activations;
    // what a linear operator adds once (a bias: it lacks every reduced loop) is itself shared out over the
    // partial sums
    bool adds_once = !activation;
    for (node_loop const& l : space.loops) if (l.reduced && l.in[k] >= 0) adds_once = false;
    if (activation) s.sum *= d.sum;
    else if (adds_once && (o.op->name == "linear" || o.op->name == "conv2d")) {
      for (node_loop const& l : space.loops)
        if (l.reduced) {
          s.sum *= d.of(l.letter);
          s.copy /= d.of(l.letter);
        }
      s.sum *= d.sum;
    } else {
      s.copy *= d.sum;
    }
    r.in.push_back(s);
  }
  for (std::size_t k = 0; k < out.size(); ++k) {
    parallel_shape s(out[k]);
    s.sum *= d.sum;
    for (node_loop const& l : space.loops) (l.out[k] >= 0 ? s.degree[l.out[k]] : s.sum) *= d.of(l.letter);
    r.out.push_back(s);
  }
  return r;
}

/// Which loops are split, read off the first activation's sharding: its shards name their loops, its copies
/// go to the one splittable loop that it lacks.
inline std::optional<loop_degrees> degrees_from(iteration_space const& space, parallel_shape const& x) {
  loop_degrees d;
  d.sum = x.sum;
  int missing = 0;
  char letter = 0;
  for (node_loop const& l : space.loops) {
    if (l.in[0] >= 0) d.split.push_back({l.letter, x.degree[l.in[0]]});
    else if (l.units > 1) { ++missing; letter = l.letter; }
  }
  if (x.copy > 1) {
    if (missing != 1) return std::nullopt;
    d.split.push_back({letter, x.copy});
  }
  return d;
}

/// Which collective two adjacent parallel operators are: reduce then replicate = all-reduce, reduce then
/// partition = reduce-scatter, combine then replicate = all-gather, combine then partition of another axis =
/// all-to-all. nullopt: none of these.
inline std::optional<reshard_kind> recognise(op::any_op const& first, op::any_op const& second) {
  if (first.attr[first.op->attrs - 1] != second.attr[second.op->attrs - 1]) return std::nullopt;
  if (first.is<parallel::reduce>() && second.is<parallel::replicate>()) return reshard_kind::all_reduce;
  if (first.is<parallel::reduce>() && second.is<parallel::partition>()) return reshard_kind::reduce_scatter;
  if (first.is<parallel::combine>() && second.is<parallel::replicate>()) return reshard_kind::all_gather;
  if (first.is<parallel::combine>() && second.is<parallel::partition>() && first.attr[0] != second.attr[0])
    return reshard_kind::all_to_all;
  return std::nullopt;
}

/// The parallel operators that one step of a reshard stands for. An exchange is what its ends say: reduce,
/// combine, then partition, replicate.
inline std::vector<op::any_op> operators_of(reshard_step const& m, int rank) {
  i64 const n = m.group_size();
  switch (m.kind) {
    case reshard_kind::all_reduce: return {parallel::reduce{n}, parallel::replicate{n}};
    case reshard_kind::reduce_scatter: return {parallel::reduce{n}, parallel::partition{m.to_dim, n}};
    case reshard_kind::all_gather: return {parallel::combine{m.from_dim, n}, parallel::replicate{n}};
    case reshard_kind::all_to_all:
      return {parallel::combine{m.from_dim, n}, parallel::partition{m.to_dim, n}};
    case reshard_kind::slice:
    case reshard_kind::exchange: break;
  }
  std::vector<op::any_op> r;
  if (i64 const s = m.before.degree(part_kind::partial); s > 1) r.push_back(parallel::reduce{s});
  for (int d = 0; d < rank; ++d) {
    i64 const a = m.before.degree(part_kind::shard, d), b = m.after.degree(part_kind::shard, d),
              g = detail::gcd(a, b);
    if (a != g) r.push_back(parallel::combine{d, a / g});
    if (b != g) r.push_back(parallel::partition{d, b / g});
  }
  return r;
}

}  // namespace tensorpar::ir
