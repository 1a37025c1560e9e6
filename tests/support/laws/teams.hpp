// tests/support/laws/teams.hpp - the laws of `team_device`: one policy's numbers for every operator are another's
#pragma once
#include "compute.hpp"
#include "../../exec/each_call.hpp"

namespace tests {

inline double distance(float a, float b) { return std::fabs(static_cast<double>(a) - b) / (1 + std::fabs(static_cast<double>(b))); }

/// Every call by both policies, over one scalar. Reports what is further off than the tolerance; equal calls give equal bits.
template <tensorpar::exec::compute_policy Policy, tensorpar::exec::compute_policy Reference> void check_agreement(double tolerance) {
  std::set<std::string> seen;
  int overwriting = 0;
  each_call<Reference>([&](tensorpar::op::any_op const& o, auto const& operands, tensorpar::exec::step_state const& state) {
    auto const want = run_whole<Reference>(o, operands, state), got = run_whole<Policy>(o, operands, state);
    REQUIRE(got.size() == want.size());
    double worst = 0;
    for (std::size_t k = 0; k < got.size(); ++k) {
      REQUIRE(got[k].real.size() == want[k].real.size());
      CHECK(got[k].index == want[k].index);
      for (std::size_t e = 0; e < got[k].real.size(); ++e) {
        double const off = distance(got[k].real[e], want[k].real[e]);
        worst = off <= worst ? worst : off;                    // NaN counts as off
      }
    }
    CHECK_MESSAGE(worst <= tolerance, (tensorpar::op::spell(o) + " is off by " + std::to_string(worst)));
    CHECK_MESSAGE(run_whole<Policy>(o, operands, state) == got, (tensorpar::op::spell(o) + " is not deterministic"));
    overwriting += check_overwriting<Policy>(o, operands, state);
    seen.insert(std::string(o.op->name));
  });
  CHECK(seen == names_of_all());
  CHECK(overwriting >= 2);
}

/// A table's gradient from more indices than any kernel takes at once, with few rows that are named much more often than others; of all of
/// the table, and of parts by rows, in the order of the indices: the same bits.
template <tensorpar::exec::compute_policy Policy> void check_many_indices() {
  using scalar = typename Policy::scalar_type;
  std::mt19937_64 r(3);
  i64 const rows = 40, columns = 5;
  for (i64 n : {1, 2, 255, 256, 257, 512, 1000, 2500})
    for (i64 length : {1, 4}) {
      if (n % length) continue;
      auto const d = random_dense<scalar>(shape{dim(n / length), dim(columns)}, 1, r);
      auto index = random_dense<scalar>((length > 1 ? shape{dim(n / length), dim(length)} : shape{dim(n)}).of(dtype::i32), rows, r);
      for (auto& i : index.index) if (r() % 10 < 7) i = r() % 2 ? 3 : 39;
      std::vector<scalar> want(static_cast<std::size_t>(rows * columns), scalar(0));
      for (i64 i = 0; i < n; ++i)
        for (i64 k = 0; k < columns; ++k) {
          scalar& y = want[static_cast<std::size_t>(index.index[static_cast<std::size_t>(i)] * columns + k)];
          y = y + d.real[static_cast<std::size_t>(i / length * columns + k)];
        }
      tensorpar::op::any_op const op = length > 1 ? tensorpar::op::any_op(embedding_bag_grad{rows})
          : tensorpar::op::any_op(embedding_grad{rows});
      CHECK(run_whole<Policy>(op, {d, index})[0].real == want);
      for (int part = 0; part < 4; ++part) {
        auto const some = run_blocks<Policy>(op, {d, index}, {piece_of(whole(shape{dim(rows), dim(columns)}), 0, part, 4)})[0].real;
        auto const begin = want.begin() + part * static_cast<std::ptrdiff_t>(some.size());
        CHECK(std::equal(some.begin(), some.end(), begin));
      }
    }
}

/// A label and an index out of range are errors that name operator and number, also where kernels are not waited for.
template <tensorpar::exec::compute_policy Policy> void check_index_faults() {
  using scalar = typename Policy::scalar_type;
  std::mt19937_64 r(2);
  for (sample const& s : {sample{cross_entropy{}, {{4, 8}, ints({4})}, 8}, sample{embedding{8, 4}, {ints({3}), {8, 4}}, 8},
                          sample{embedding_grad{8}, {{400, 4}, ints({400})}, 8}}) {
    auto x = operands_of<scalar>(s, r);
    for (auto& t : x) if (t.integer()) t.index.back() = 8;
    CHECK_THROWS_WITH_AS(run_whole<Policy>(s.op, x), doctest::Contains("8 is out of range"), error);
    for (auto& t : x) if (t.integer()) t.index.back() = -1;
    CHECK_THROWS_WITH_AS(run_whole<Policy>(s.op, x), doctest::Contains(std::string(s.op.op->name).c_str()), error);
    for (auto& t : x) if (t.integer()) t.index.back() = 7;
    CHECK_NOTHROW(run_whole<Policy>(s.op, x));
  }
}

}  // namespace tests
