// tests/report/bound.test.cpp - which devices a bound is said to be about
#include <tensorpar/report/bound.hpp>

#include <doctest/doctest.h>

using namespace tensorpar;

TEST_CASE("a bound is about a device, its part, or the parts that were looked at") {
  search::search_space s;
  CHECK(report::bound_holds_for(s, 1) == "this device");
  CHECK(report::bound_holds_for(s, 4) == "these devices");
  s.part_sizes = {24, 8};
  CHECK(report::bound_holds_for(s, 48) == "these devices, or on 24, 8 of them");
  s.part_sizes = {90, 80, 70, 60, 50, 40, 30, 20, 10};
  CHECK(report::bound_holds_for(s, 96) == "these devices, or on 90, 80, 70, 60, 50, 40, 30, 20 ... of them");
  s.neighbours = true;
  CHECK(report::bound_holds_for(s, 96) == "these devices or neighbours among them");
  s.every_part = true;
  CHECK(report::bound_holds_for(s, 96) == "these devices or a part of them");
}
