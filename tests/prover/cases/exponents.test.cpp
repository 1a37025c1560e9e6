// tests/prover/cases/exponents.test.cpp - solutions are solutions, and where none is found there is none
#include <tensorpar/prover/cases/exponents.hpp>
#include <doctest/doctest.h>

#include <random>
#include <support/effort.hpp>

using namespace tensorpar;
using namespace tensorpar::prover;

namespace {
bool holds(sharding_system const& s, std::vector<int> const& x) {
  for (degree_requirement const& q : s.requirements) {
    int v = 0;
    for (std::size_t i = 0; i < x.size(); ++i) v += q.form.at(i) * x[i];
    if (q.equal ? v != 0 : v < 0) return false;
  }
  return true;
}
}  // namespace

TEST_CASE("against all assignments") {
  std::mt19937 draw(1);
  int solvable = 0, unsolvable = 0;
  for (int turn = 0; turn < test_effort::cases(400); ++turn) {
    sharding_system s;
    int const n = 2 + static_cast<int>(draw() % 3), least = static_cast<int>(draw() % 2), most = 2;
    for (int i = 0; i < n; ++i)
      s.unknowns.push_back({i % 2 ? tensorpar::rewrite::term_kind::parameter : tensorpar::rewrite::term_kind::copies, i, 0, -1});
    for (int k = 1 + static_cast<int>(draw() % 4); k > 0; --k) {
      degree_requirement q;
      q.equal = draw() % 2;
      for (int i = 0; i < n; ++i) q.form.coefficient.push_back(static_cast<int>(draw() % 5) - 2);
      s.requirements.push_back(q);
    }
    bool any = false;
    std::vector<int> x(static_cast<std::size_t>(n), 0);
    auto all = [&](auto& self, int i) -> void {
      if (i == n) { any = any || holds(s, x); return; }
      for (int v = i % 2 ? least : 0; v <= most; ++v) { x[static_cast<std::size_t>(i)] = v; self(self, i + 1); }
    };
    all(all, 0);
    auto const found = prover::detail::random_exponents(s, least, most, draw);
    REQUIRE(found.has_value() == any);
    (any ? solvable : unsolvable) += 1;
    if (!found) continue;
    CHECK(holds(s, *found));
    for (int i = 0; i < n; ++i) {
      int const v = (*found)[static_cast<std::size_t>(i)];
      CHECK((v >= (i % 2 ? least : 0) && v <= most));
    }
  }
  CHECK(solvable > test_effort::cases(80));
  CHECK(unsolvable > test_effort::cases(80));
}
