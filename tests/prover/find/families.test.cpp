// tests/prover/find/families.test.cpp - the families that rules are searched over can be enumerated, each to some purpose
#include <tensorpar/prover/find/families.hpp>
#include <doctest/doctest.h>

#include <set>
#include <tensorpar/prover/find/enumerate.hpp>

using namespace tensorpar;
using namespace tensorpar::prover;

TEST_CASE("every family has a name of its own, applies each of its steps, and finds equal terms") {
  std::set<std::string> names;
  for (family f : standard_families()) {
    CAPTURE(f.name);
    CHECK(names.insert(f.name).second);
    if (f.min_side == 3) f.max_operators = 2;   // the others are about terms that have more
    enumeration const e = enumerate(f, 1);
    CHECK(!e.pairs.empty());
    std::set<int> used;
    for (family_term const& t : e.terms) used.insert(t.step);
    for (int s = 0; s < static_cast<int>(f.steps.size()); ++s) {
      CAPTURE(s);
      CHECK(used.count(s));
    }
  }
  CHECK(names.size() > 20);
}
