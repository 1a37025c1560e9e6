// tests/support/laws/compute.hpp - the laws of `compute_policy`, on one operator with one set of operands
#pragma once
#include "../dense.hpp"
#include <tensorpar/op/core/spelling.hpp>

namespace tests {

/// Equal calls give equal bits.
template <tensorpar::exec::compute_policy Policy>
void check_deterministic(tensorpar::op::any_op const& o, std::vector<dense<typename Policy::scalar_type>> const& operands,
                         tensorpar::exec::step_state const& state) {
  CHECK(run_whole<Policy>(o, operands, state) == run_whole<Policy>(o, operands, state));
}

/// A result over the operand that it may be written over is what it is elsewhere. Does the operator have one?
template <tensorpar::exec::compute_policy Policy>
bool check_overwriting(tensorpar::op::any_op const& o, std::vector<dense<typename Policy::scalar_type>> const& operands,
                       tensorpar::exec::step_state const& state) {
  int const k = o.op->overwrites;
  if (k < 0) return false;
  std::vector<tensorpar::op::tensor_block> results;
  for (shape const& s : infer_all(o, operands)) results.push_back(whole(s));
  REQUIRE(results[0].local_shape() == operands[static_cast<std::size_t>(k)].block.local_shape());
  CHECK_MESSAGE(run_blocks<Policy>(o, operands, results, state, true, k) == run_whole<Policy>(o, operands, state),
                (tensorpar::op::spell(o) + " differs where it overwrites operand " + std::to_string(k)));
  return true;
}

/// Runs all parts of a split and puts the results together: laid side by side where the result has the loop, else added.
template <tensorpar::exec::compute_policy Policy>
std::vector<dense<typename Policy::scalar_type>> run_split(tensorpar::op::any_op const& o, tensorpar::ir::node_loop const& l, int parts,
                                                           std::vector<dense<typename Policy::scalar_type>> const& operands,
                                                           std::vector<shape> const& results, tensorpar::exec::step_state const& state) {
  using scalar = typename Policy::scalar_type;
  std::vector<dense<scalar>> sum;
  for (shape const& s : results) sum.push_back(make_dense<scalar>(whole(s)));
  for (int part = 0; part < parts; ++part) {
    std::vector<dense<scalar>> in;
    std::vector<tensorpar::op::tensor_block> out;
    for (std::size_t k = 0; k < operands.size(); ++k) in.push_back(cut(operands[k], piece_of(operands[k].block, l.in[k], part, parts)));
    for (std::size_t k = 0; k < results.size(); ++k) out.push_back(piece_of(whole(results[k]), l.out[k], part, parts));
    auto const done = run_blocks<Policy>(o, in, out, state, !l.reduced || part == 0);
    for (std::size_t k = 0; k < results.size(); ++k)
      each_element(sum[k].block, out[k], [&](std::size_t x, std::size_t y) {
        if (sum[k].integer()) sum[k].index[x] = done[k].index[y];
        else sum[k].real[x] = sum[k].real[x] + done[k].real[y];
      });
  }
  return sum;
}

inline double distance(prime_field a, prime_field b) { return a == b ? 0 : 1; }
inline double distance(double a, double b) { return std::fabs(a - b) / (1 + std::fabs(b)); }

/// Splitting any loop into any number of parts changes nothing. Returns how many splits were tried.
template <tensorpar::exec::compute_policy Policy>
int check_splits(tensorpar::op::any_op const& o, std::vector<dense<typename Policy::scalar_type>> const& operands,
                                                  tensorpar::exec::step_state const& state, double tolerance) {
  std::vector<shape> const in = types_of(operands), out = infer_all(o, operands);
  auto const expected = run_whole<Policy>(o, operands, state);
  int tried = 0;
  for (tensorpar::ir::node_loop const& l : tensorpar::ir::space_of(o, in, out).loops)
    for (int parts = 2; parts <= l.units; ++parts) {
      if (l.units % parts) continue;
      ++tried;
      auto const got = run_split<Policy>(o, l, parts, operands, out, state);
      double worst = 0;
      for (std::size_t k = 0; k < got.size(); ++k) {
        REQUIRE(got[k].index == expected[k].index);
        REQUIRE(got[k].real.size() == expected[k].real.size());
        for (std::size_t e = 0; e < got[k].real.size(); ++e) worst = std::max(worst, distance(got[k].real[e], expected[k].real[e]));
      }
      CHECK_MESSAGE(worst <= tolerance, (tensorpar::op::spell(o) + ", loop " + std::string(1, l.letter) + " in " + std::to_string(parts) +
                                         " parts: off by " + std::to_string(worst)));
    }
  return tried;
}

}  // namespace tests
