// tests/exec/device/random.test.cpp - Philox against its published answers; moments; initial values
#include "support/dense.hpp"
#include <tensorpar/exec/device/random.hpp>

using namespace tensorpar;

TEST_CASE("philox4x32-10 gives the published answers") {   // kat_vectors of Random123
  CHECK(exec::philox({0, 0, 0, 0}, 0, 0) == exec::random_words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(exec::philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffff, 0xffffffff) ==
        exec::random_words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(exec::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0) ==
        exec::random_words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("uniform and normal numbers have their moments, and streams differ") {
  exec::random_stream const a{1, 2}, b{1, 3}, c{2, 2};
  double u1 = 0, u2 = 0, n1 = 0, n2 = 0, n4 = 0, cross = 0;
  int const n = 40000;
  for (int i = 0; i < n; ++i) {
    u64 const e = static_cast<u64>(i);
    double const u = a.uniform(e), z = a.normal(e);
    CHECK((u >= 0 && u < 1));
    u1 += u / n;
    u2 += u * u / n;
    n1 += z / n;
    n2 += z * z / n;
    n4 += z * z * z * z / n;
    cross += z * b.normal(e) / n;
  }
  CHECK(u1 == doctest::Approx(0.5).epsilon(0.01));
  CHECK(u2 == doctest::Approx(1.0 / 3).epsilon(0.02));
  CHECK(std::fabs(n1) < 0.02);
  CHECK(n2 == doctest::Approx(1).epsilon(0.03));
  CHECK(n4 == doctest::Approx(3).epsilon(0.1));
  CHECK(std::fabs(cross) < 0.02);
  CHECK(a.words(5) != b.words(5));
  CHECK(a.words(5) != c.words(5));
  CHECK(a.words(5) != a.words(u64{5} << 32));
}

TEST_CASE("initial values") {
  shape const s{20, 50, 8};
  CHECK(exec::initial_value(op::init::zeros, s, 3, 1, 2) == 0);
  CHECK(exec::initial_value(op::init::ones, s, 3, 1, 2) == 1);
  double he = 0, small = 0;
  int const n = 8000;
  for (u64 i = 0; i < 8000; ++i) {
    double const x = exec::initial_value(op::init::fan_in, s, i, 1, 2), y = exec::initial_value(op::init::normal_02, s, i, 1, 2);
    he += x * x / n;
    small += y * y / n;
    CHECK(x == exec::initial_value(op::init::fan_in, s, i, 1, 2));
  }
  CHECK(he == doctest::Approx(2.0 / 400).epsilon(0.06));
  CHECK(small == doctest::Approx(0.0004).epsilon(0.06));
  CHECK(exec::initial_value(op::init::fan_in, s, 0, 1, 2) != exec::initial_value(op::init::fan_in, s, 0, 1, 3));
  CHECK(exec::initial_value(op::init::fan_in, s, 0, 1, 2) != exec::initial_value(op::init::fan_in, s, 0, 2, 2));
}
