// tests/support/dense.hpp - whole tensors, their parts, and running one operator on them through a compute policy
#pragma once
#include <doctest/doctest.h>
#include <random>
#include <tensorpar/exec/device/concepts.hpp>
#include <tensorpar/exec/device/scalar.hpp>
#include <tensorpar/ir/iteration_space.hpp>
#include <vector>

namespace tests {

using namespace tensorpar;

/// A block with its elements: real ones or integers.
template <class Scalar> struct dense {
  op::tensor_block block;
  std::vector<Scalar> real;
  std::vector<std::int32_t> index;
  bool integer() const { return is_integer(block.type); }
  void const* data() const { return integer() ? static_cast<void const*>(index.data()) : real.data(); }
  void* data() { return integer() ? static_cast<void*>(index.data()) : real.data(); }
  std::size_t size() const { return static_cast<std::size_t>(block.elements()); }
  friend bool operator==(dense const& a, dense const& b) { return a.real == b.real && a.index == b.index; }
};

inline op::tensor_block whole(shape const& s) {
  op::tensor_block b;
  b.rank = s.rank;
  b.type = s.type;
  for (int i = 0; i < s.rank; ++i) b.local[i] = b.global[i] = s.d[i].n;
  return b;
}
template <class Scalar> dense<Scalar> make_dense(op::tensor_block const& b) {
  dense<Scalar> r{b, {}, {}};
  if (r.integer()) r.index.assign(r.size(), 0);
  else r.real.assign(r.size(), Scalar(0));
  return r;
}
inline void draw(double& x, std::mt19937_64& r) { x = std::uniform_real_distribution<double>(-1, 1)(r); }
inline void draw(float& x, std::mt19937_64& r) { x = std::uniform_real_distribution<float>(-1, 1)(r); }
inline void draw(prime_field& x, std::mt19937_64& r) { x = prime_field::raw(r() % prime_field::modulus); }
/// Reals in [-1, 1) or any field elements; integers in [0, end).
template <class Scalar> dense<Scalar> random_dense(shape const& s, int end, std::mt19937_64& r) {
  dense<Scalar> x = make_dense<Scalar>(whole(s));
  for (Scalar& e : x.real) draw(e, r);
  for (std::int32_t& e : x.index) e = static_cast<std::int32_t>(r() % static_cast<u64>(end));
  return x;
}

/// The part-th of `parts` equal pieces along an axis (-1: everything).
inline op::tensor_block piece_of(op::tensor_block b, int axis_no, int part, int parts) {
  if (axis_no < 0) return b;
  b.local[axis_no] /= parts;
  b.offset[axis_no] += part * b.local[axis_no];
  return b;
}
/// Visits (index inside the outer block, index inside the inner one) for every element of the inner block, which lies in the outer.
template <class Visit> void each_element(op::tensor_block const& outer, op::tensor_block const& inner, Visit&& visit) {
  std::size_t const n = static_cast<std::size_t>(inner.elements());
  for (std::size_t e = 0; e < n; ++e) {
    i64 rest = static_cast<i64>(e), at = 0, scale = 1;
    for (int i = inner.rank - 1; i >= 0; --i) {
      at += (rest % inner.local[i] + inner.offset[i] - outer.offset[i]) * scale;
      rest /= inner.local[i];
      scale *= outer.local[i];
    }
    visit(static_cast<std::size_t>(at), e);
  }
}
template <class Scalar> dense<Scalar> cut(dense<Scalar> const& from, op::tensor_block const& b) {
  dense<Scalar> r = make_dense<Scalar>(b);
  each_element(from.block, b, [&](std::size_t x, std::size_t y) {
    if (r.integer()) r.index[y] = from.index[x];
    else r.real[y] = from.real[x];
  });
  return r;
}

template <class Scalar> std::vector<shape> types_of(std::vector<dense<Scalar>> const& x) {
  std::vector<shape> r;
  for (auto const& t : x) r.push_back(t.block.local_shape());
  return r;
}
/// Result shapes on whole operands (activations, then weights).
template <class Scalar> std::vector<shape> infer_all(op::any_op const& o, std::vector<dense<Scalar>> const& operands) {
  std::vector<shape> const in = types_of(operands);
  int const n = o.op->arity < 0 ? static_cast<int>(in.size()) : o.op->arity;
  op::inference const r = o.op->infer(o.attr, {in.data(), n});
  REQUIRE_MESSAGE(r.ok(), (std::string(o.op->name) + ": " + (r.rule ? r.rule : "")));
  return {r.out, r.out + r.n};
}

/// Runs the policy's kernel on these blocks, results starting as rubbish and workspace of just the size asked for. `over`: an operand in
/// whose bytes the first result is left; -1: none.
template <exec::compute_policy Policy>
std::vector<dense<typename Policy::scalar_type>> run_blocks(op::any_op const& o,
                                                            std::vector<dense<typename Policy::scalar_type>> const& operands,
                                                            std::vector<op::tensor_block> const& results,
                                                                exec::step_state const& state = {}, bool first_share = true,
                                                            int over = -1) {
  using scalar = typename Policy::scalar_type;
  std::vector<dense<scalar>> out;
  std::vector<void const*> in_pointers;
  std::vector<void*> out_pointers;
  std::vector<op::tensor_block> in_blocks;
  for (auto const& x : operands) { in_pointers.push_back(x.data()); in_blocks.push_back(x.block); }
  for (auto const& b : results) {
    out.push_back(make_dense<scalar>(b));
    for (scalar& x : out.back().real) x = scalar(77);
    for (std::int32_t& x : out.back().index) x = 77;
  }
  if (over >= 0) {
    out[0].real = operands[static_cast<std::size_t>(over)].real;
    in_pointers[static_cast<std::size_t>(over)] = out[0].data();
  }
  for (auto& x : out) out_pointers.push_back(x.data());
  std::vector<shape> const in_types = types_of(operands), out_types = types_of(out);
  REQUIRE(Policy::supports(o));
  i64 const scratch =
      Policy::workspace(o, {in_types.data(), static_cast<int>(in_types.size())}, {out_types.data(), static_cast<int>(out_types.size())});
  REQUIRE(scratch >= 0);
  std::vector<scalar> workspace(static_cast<std::size_t>(scratch), scalar(77));
  exec::kernel_call c;
  c.op = &o;
  c.inputs = static_cast<int>(operands.size());
  c.outputs = static_cast<int>(out.size());
  c.in = in_pointers.data();
  c.in_block = in_blocks.data();
  c.out = out_pointers.data();
  c.out_block = results.data();
  c.workspace = workspace.data();
  c.first_share = first_share;
  c.state = state;
  Policy{}.run(c);
  return out;
}
template <exec::compute_policy Policy>
std::vector<dense<typename Policy::scalar_type>> run_whole(op::any_op const& o,
                                                           std::vector<dense<typename Policy::scalar_type>> const& operands,
                                                           exec::step_state const& state = {}) {
  std::vector<op::tensor_block> results;
  for (shape const& s : infer_all(o, operands)) results.push_back(whole(s));
  return run_blocks<Policy>(o, operands, results, state);
}

}  // namespace tests
