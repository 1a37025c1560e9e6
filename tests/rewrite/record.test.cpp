// tests/rewrite/record.test.cpp - everything that is written down of a step is in its hash
#include <tensorpar/rewrite/record.hpp>
#include <doctest/doctest.h>

#include <set>

using namespace tensorpar;

TEST_CASE("records that differ anywhere have hashes of their own, also where numbers move from one list to the next") {
  rewrite::rewrite_record const r{"rule", {1, 2}, {3}, {4, 5}, {"", "relu"}};
  std::vector<rewrite::rewrite_record> all(10, r);
  all[1].rule = "rules";
  all[2].nodes = {2, 1};
  all[3].nodes = {1};
  all[4].nodes = {1, 2, 3};
  all[4].tensors = {};
  all[5].tensors = {4};
  all[6].parameters = {4, 6};
  all[7].parameters = {4};
  all[8].functions = {"relu", ""};
  all[9].functions = {"", "gelu"};
  std::set<u64> seen;
  for (rewrite::rewrite_record const& x : all) {
    core::hasher h;
    rewrite::add_to(h, x);
    CHECK(seen.insert(h.value()).second);
    CHECK((x == r) == (&x == &all[0]));
  }
}
