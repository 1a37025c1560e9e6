// tests/core/error.test.cpp - the sentence an error makes of its three parts, and the version it reports
#include <doctest/doctest.h>

#include <string>
#include <tensorpar/core/config.hpp>
#include <tensorpar/core/error.hpp>

using tensorpar::error;

TEST_CASE("the message holds what, where and what would be valid") {
  error const e("unknown device type \"tpu\"", "cluster.json:3:7", "cpu, gpu");
  CHECK(std::string(e.what()) == "unknown device type \"tpu\" (at cluster.json:3:7); valid: cpu, gpu");
  CHECK(e.problem() == "unknown device type \"tpu\"");
  CHECK(e.where() == "cluster.json:3:7");
  CHECK(e.valid() == "cpu, gpu");
}

TEST_CASE("parts that are empty leave no trace") {
  CHECK(std::string(error("a", "", "").what()) == "a");
  CHECK(std::string(error("a", "b", "").what()) == "a (at b)");
  CHECK(std::string(error("a", "", "c").what()) == "a; valid: c");
}

TEST_CASE("an error is caught as a std::exception, and a copy says the same") {
  std::string caught;
  try {
    throw error("w", "x", "y");
  } catch (std::exception const& e) {
    caught = e.what();
  }
  CHECK(caught == "w (at x); valid: y");
  error const e("w", "x", "y");
  error const copy = e;
  CHECK(std::string(copy.what()) == e.what());
  CHECK(copy.where() == "x");
}

TEST_CASE("integers are 64 bits wide") {
  static_assert(sizeof(tensorpar::i64) == 8 && sizeof(tensorpar::u64) == 8);
  static_assert(tensorpar::i64(-1) < 0 && tensorpar::u64(-1) > 0);
  CHECK(tensorpar::version_major >= 0);
}
