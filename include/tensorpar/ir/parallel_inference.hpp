// tensorpar/ir/parallel_inference.hpp - from the sharding of a node's operands to how its loops are split and
// how its results lie
#pragma once
#include <concepts>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/parallel_shape.hpp>

namespace tensorpar::ir {

/// Through which operands partial sums may pass.
///   none      through none: the operator is not linear
///   alone     through one at a time: the operator is linear in each of them by itself (a product)
///   together  through all at once: it is linear in all of them taken together (a sum, a concatenation)
enum class sum_rule : int { none, alone, together };
struct sum_passage {
  sum_rule rule = sum_rule::none;
  int first = 0, last = 0;               // the operands [first, last) that may carry sums
};
inline sum_passage sums_through(op::any_op const& o, int operands) {
  std::string_view const n = o.op->name;
  if (n == "add" || n == "concat") return {sum_rule::together, 0, operands};
  if (n == "linear" || n == "conv2d") return {sum_rule::alone, 0, 2};
  if (n == "matmul" || n == "mul" || n == "contraction") return {sum_rule::alone, 0, operands};
  if (n == "embedding" || n == "embedding_bag") return {sum_rule::alone, 1, 2};
  return passes_sums(o) ? sum_passage{sum_rule::alone, 0, 1} : sum_passage{};
}

/// How a tensor is sharded, over any algebra of degrees.
template <class D> struct degrees_of {
  std::vector<D> axis;
  D sum, copy;
  friend bool operator==(degrees_of const&, degrees_of const&) = default;
};

/// What degrees are to `infer_degrees`: a commutative group under `times`, in which `over` and `same` and
/// `within` note what they require. Models: `counted_degrees` (numbers), `valued_degrees` in
/// prover/cases/sharding_system.hpp (linear forms: one prime's exponents). Laws: times is associative and
/// commutative with one(); over(times(a, b), b) is a and requires nothing.
template <class A>
concept degree_algebra = requires(A& a, typename A::value const& x, node_loop const& l, char const* why) {
  { a.one() } -> std::same_as<typename A::value>;
  { a.is_one(x) } -> std::same_as<bool>;                 // known to be one
  { a.times(x, x) } -> std::same_as<typename A::value>;
  { a.over(x, x, why) } -> std::same_as<typename A::value>;  // requires that the second divides the first
  a.same(x, x, why);                                     // requires that they are equal
  a.within(x, l);                                        // requires that the loop can be split so
};

/// Shardings of an operator's results from those of its operands; what that requires goes to the algebra. Not
/// for parallel operators. Every loop is split as the operands say that have it; what an operand lacks it
/// must have copies for; the copies beyond are replicas of the whole node. Loops that a result lacks leave
/// partial sums. A bias is added once: it comes as partial sums where its node makes some. O(loops *
/// (operands + results)).
template <degree_algebra A, class D = typename A::value>
std::vector<degrees_of<D>> infer_degrees(A& a, op::any_op const& o, iteration_space const& space,
                                         std::vector<degrees_of<D>> const& in,
                                         std::vector<int> const& out_ranks) {
  std::vector<D> split;
  for (node_loop const& l : space.loops) {
    D d = a.one();
    bool known = false;
    for (std::size_t k = 0; k < in.size(); ++k) {
      if (l.in[k] < 0) continue;
      D const& mine = in[k].axis[idx(l.in[k])];
      if (known) a.same(d, mine, "operands are split differently");
      else d = mine;
      known = true;
    }
    a.within(d, l);
    split.push_back(std::move(d));
  }
  sum_passage const pass = sums_through(o, static_cast<int>(in.size()));
  bool const biased = in.size() == 3 && (o.op->name == "linear" || o.op->name == "conv2d");
  D sum = a.one();
  int carrier = -1;
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (biased && k == 2) continue;
    bool const may = static_cast<int>(k) >= pass.first && static_cast<int>(k) < pass.last;
    if (pass.rule == sum_rule::together) {
      if (k == 0) sum = in[k].sum;
      else a.same(sum, in[k].sum, "operands in different numbers of partial sums");
    } else if (!may || pass.rule == sum_rule::none) {
      a.same(in[k].sum, a.one(), "partial sums cannot pass through this operator");
    } else if (!a.is_one(in[k].sum)) {
      if (carrier >= 0) a.same(in[k].sum, a.one(), "two operands of a product in partial sums");
      else { carrier = static_cast<int>(k); sum = in[k].sum; }
    }
  }
  D replicas = a.one();
  for (std::size_t k = 0; k < in.size(); ++k) {
    D missing = a.one(), reduced = sum;
    for (std::size_t i = 0; i < space.loops.size(); ++i) {
      node_loop const& l = space.loops[i];
      if (l.in[k] >= 0) continue;
      if (biased && k == 2 && l.reduced) reduced = a.times(reduced, split[i]);
      else missing = a.times(missing, split[i]);
    }
    if (biased && k == 2)
      a.same(in[k].sum, reduced,
             "a bias is added once: it must come in as many partial sums as the node makes");
    else if (pass.rule == sum_rule::alone && carrier != static_cast<int>(k)) missing = a.times(missing, sum);
    D const r = a.over(in[k].copy, missing, "an operand lacks copies for the loops that it does not have");
    if (k == 0) replicas = r;
    else a.same(replicas, r, "operands in different numbers of copies");
  }
  std::vector<degrees_of<D>> out;
  for (std::size_t k = 0; k < out_ranks.size(); ++k) {
    degrees_of<D> s{std::vector<D>(idx(out_ranks[k]), a.one()), sum, replicas};
    for (std::size_t i = 0; i < space.loops.size(); ++i) {
      int const axis = space.loops[i].out[k];
      D& d = axis >= 0 ? s.axis[idx(axis)] : s.sum;
      d = a.times(d, split[i]);
    }
    out.push_back(std::move(s));
  }
  return out;
}

/// The same for the parallel operators that rules know; `k` is the operator's degree. Precondition: axis is
/// one of x's.
template <degree_algebra A, class D = typename A::value>
degrees_of<D> infer_parallel(A& a, op::op_info const& o, int axis, D const& k, degrees_of<D> x) {
  u64 const id = o.id;
  auto const d = idx(axis);
  if (id == core::name_hash(parallel::partition::name)) x.axis[d] = a.times(x.axis[d], k);
  else if (id == core::name_hash(parallel::combine::name))
    x.axis[d] = a.over(x.axis[d], k, "the axis is not split that often");
  else if (id == core::name_hash(parallel::replicate::name)) x.copy = a.times(x.copy, k);
  else if (id == core::name_hash(parallel::reduce::name))
    x.sum = a.over(x.sum, k, "there are not that many partial sums");
  return x;
}

/// Degrees as numbers. `problem` is the first requirement that does not hold.
struct counted_degrees {
  using value = i64;
  std::string problem;
  i64 one() const { return 1; }
  bool is_one(i64 x) const { return x == 1; }
  i64 times(i64 a, i64 b) const { return a * b; }
  i64 over(i64 a, i64 b, char const* why) {
    if (b < 1 || a % b) { say(why); return 1; }
    return a / b;
  }
  void same(i64 a, i64 b, char const* why) { if (a != b) say(why); }
  void within(i64 d, node_loop const& l) {
    if (d >= 1 && l.units % d == 0) return;
    say("loop '" + std::string(1, l.letter) + "' of " + std::to_string(l.units) +
        " parts cannot be split in " + std::to_string(d));
  }
  void say(std::string why) { if (problem.empty()) problem = std::move(why); }
};

/// Shardings of an operator's results; a problem where the operands' shardings do not fit each other, the
/// operator or the extents. Law: for what `lift` makes of loop degrees, infer_parallel_shapes answers with
/// lift's results. O(loops * (operands + results)).
inline parallel_result infer_parallel_shapes(op::any_op const& o, std::vector<parallel_shape> const& in) {
  if (is_parallel(o)) {
    if (in.size() != 1) return {{}, op::spell(o) + " takes one operand"};
    return parallel_rule(o, in[0]);
  }
  std::vector<shape> types;
  for (parallel_shape const& s : in) types.push_back(s.type);
  int const activations = o.op->arity < 0 ? static_cast<int>(in.size()) : o.op->arity;
  if (static_cast<int>(in.size()) < activations) return {{}, op::spell(o) + " has too few operands"};
  op::inference const inferred = op::infer_results(o, {types.data(), static_cast<int>(types.size())},
                                                   activations);
  if (!inferred.ok())
    return {{},
            op::spell(o) + ": " + inferred.rule + ": " + op::spell(inferred.out[0]) + ", "
                + op::spell(inferred.out[1])};
  op::weight_list const weights = o.op->weights(o.attr, {types.data(), activations});
  for (int k = activations; k < static_cast<int>(in.size()); ++k) {
    int const w = k - activations;
    if (w >= weights.n || !same_extents(weights.w[w].type, types[idx(k)]))
      return {{},
              op::spell(o) + ": weight " + std::to_string(w) + " is " + op::spell(types[idx(k)]) +
                  (w < weights.n ? ", wanted is " + op::spell(weights.w[w].type) : ", there is none")};
  }
  if (static_cast<int>(in.size()) < activations + weights.n) return {{}, op::spell(o) + " lacks a weight"};
  std::vector<shape> const results(inferred.out, inferred.out + inferred.n);
  counted_degrees a;
  std::vector<degrees_of<i64>> shardings;
  for (parallel_shape const& s : in)
    shardings.push_back({std::vector<i64>(s.degree, s.degree + s.type.rank), s.sum, s.copy});
  std::vector<int> ranks;
  for (shape const& s : results) ranks.push_back(s.rank);
  auto const out = infer_degrees(a, o, space_of(o, types, results), shardings, ranks);
  if (!a.problem.empty()) {
    std::string all;
    for (parallel_shape const& s : in) all += (all.empty() ? "" : ", ") + spell(s);
    return {{}, op::spell(o) + " on " + all + ": " + a.problem};
  }
  parallel_result r;
  for (std::size_t k = 0; k < results.size(); ++k) {
    parallel_shape s(results[k]);
    for (int d = 0; d < s.type.rank; ++d) s.degree[d] = out[k].axis[idx(d)];
    s.sum = out[k].sum;
    s.copy = out[k].copy;
    r.out.push_back(s);
  }
  return r;
}

}  // namespace tensorpar::ir
