// tests/support/laws/teams.hpp - the laws of `team_device`: one policy's numbers for every operator are another's
#pragma once
#include "compute.hpp"
#include "../../exec/each_call.hpp"

namespace tests {

inline double distance(float a, float b) { return std::fabs(static_cast<double>(a) - b) / (1 + std::fabs(static_cast<double>(b))); }

/// Every call by both policies, over one scalar. Reports what is further off than the tolerance; equal calls give equal bits.
template <compute_policy Policy, compute_policy Reference> void check_agreement(double tolerance) {
  std::set<std::string> seen;
  each_call<Reference>([&](any_op const& o, auto const& operands, step_state const& state) {
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
    CHECK_MESSAGE(worst <= tolerance, (spell(o) + " is off by " + std::to_string(worst)));
    CHECK_MESSAGE(run_whole<Policy>(o, operands, state) == got, (spell(o) + " is not deterministic"));
    seen.insert(std::string(o.op->name));
  });
  CHECK(seen == names_of_all());
}

/// A label and an index out of range are errors that name operator and number, also where kernels are not waited for.
template <compute_policy Policy> void check_index_faults() {
  using scalar = typename Policy::scalar_type;
  std::mt19937_64 r(2);
  for (sample const& s : {sample{cross_entropy{}, {{4, 8}, ints({4})}, 8}, sample{embedding{8, 4}, {ints({3}), {8, 4}}, 8}}) {
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
