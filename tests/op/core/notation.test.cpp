// tests/op/core/notation.test.cpp - parsing iteration spaces
#include <doctest/doctest.h>

#include <tensorpar/op/core/notation.hpp>

using namespace tensorpar;

TEST_CASE("places count from the left before the dots, from the right after them") {
  constexpr op::loops l = op::parse_notation("...i, oi, o -> ...o");
  CHECK(l.operands == 3);
  CHECK(l.results == 1);
  CHECK(l.n == 2);
  CHECK(l.leading);
  CHECK(l.lead_in[0]);
  CHECK(!l.lead_in[1]);
  CHECK(l.lead_out[0]);
  CHECK(l.l[0].letter == 'i');
  CHECK(l.l[0].reduced);
  CHECK(op::axis_at(l.l[0].in[0], 3) == 2);
  CHECK(op::axis_at(l.l[0].in[1], 2) == 1);
  CHECK(l.l[0].in[2] == -1);
  CHECK(l.l[1].letter == 'o');
  CHECK(!l.l[1].reduced);
  CHECK(op::axis_at(l.l[1].out[0], 3) == 2);
  constexpr op::loops m = op::parse_notation("...mk,...kn->...mn");
  CHECK(op::axis_at(m.l[0].in[0], 4) == 2);
  CHECK(op::axis_at(m.l[1].in[0], 4) == 3);
  CHECK(op::axis_at(m.l[1].in[1], 4) == 2);
}

TEST_CASE("upper case may not be split; letters missing on the right are reduced") {
  constexpr op::loops l = op::parse_notation("ncHW -> nc");
  CHECK(l.l[0].splittable);
  CHECK(!l.l[2].splittable);
  CHECK(l.l[2].reduced);
  CHECK(!l.l[0].reduced);
  constexpr op::loops s = op::parse_notation("0123->0231");
  CHECK(s.l[1].splittable);
  CHECK(s.l[1].out[0] == 3);
}

TEST_CASE("empty sides") {
  CHECK(op::parse_notation("->").operands == 0);
  CHECK(op::parse_notation("->").results == 1);
  CHECK(op::parse_notation("... -> ").results == 1);
  CHECK(op::parse_notation("-> ...").lead_out[0]);
  CHECK(op::parse_notation(", ...E, ... -> ...E").operands == 3);
  CHECK(op::parse_notation("..., ..., -> ..., ...").operands == 3);
  CHECK(op::parse_notation("..., ..., -> ..., ...").results == 2);
}

TEST_CASE("too much is refused") {
  CHECK_THROWS_AS(op::parse_notation("a,b,c,d,e,f,g->a"), error);
  CHECK_THROWS_AS(op::parse_notation("abcde->a,b,c,d,e"), error);
  CHECK_THROWS_AS(op::parse_notation("abcdefghijklm->a"), error);
}
