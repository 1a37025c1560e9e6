// tests/report/units.test.cpp - numbers with three digits, texts cut between characters, columns that line up
#include <tensorpar/report/units.hpp>
#include <doctest/doctest.h>

#include <cmath>
#include <random>

using namespace tensorpar;

TEST_CASE("units have three digits") {
  CHECK(report::seconds_text(0) == "0 s");
  CHECK(report::seconds_text(1.5e-9) == "1.50 ns");
  CHECK(report::seconds_text(999.4e-9) == "999 ns");
  CHECK(report::seconds_text(999.6e-9) == "1.00 us");
  CHECK(report::seconds_text(12.34e-6) == "12.3 us");
  CHECK(report::seconds_text(0.5) == "500 ms");
  CHECK(report::seconds_text(12) == "12.0 s");
  CHECK(report::seconds_text(-2e-3) == "-2.00 ms");
  CHECK(report::bytes_text(0) == "0 B");
  CHECK(report::bytes_text(1023) == "1023 B");
  CHECK(report::bytes_text(1024) == "1.00 KiB");
  CHECK(report::bytes_text(1536.0 * 1024) == "1.50 MiB");
  CHECK(report::bytes_text(1023.9 * 1024) == "1.00 MiB");
  CHECK(report::bytes_text(5e15) == "4.44 PiB");
  CHECK(report::devices_text({0, 1, 2, 3, 8, 10, 11}) == "0-3,8,10-11");
  CHECK(report::devices_text({}) == "");
  CHECK(report::columns({{"a", "10"}, {"\xce\xbb\xce\xbb\xce\xbb", "5"}}, {}) == "  a    10\n  \xce\xbb\xce\xbb\xce\xbb   5\n");
}

TEST_CASE("what is printed is the number, to three digits") {
  std::mt19937 draw(1);
  for (int n = 0; n < 2000; ++n) {
    double const x = std::exp(std::uniform_real_distribution<double>(-20, 8)(draw));
    std::string const text = report::seconds_text(x);
    std::size_t end = 0;
    double const number = std::stod(text, &end);
    std::string const unit = text.substr(end + 1);
    double const scale = unit == "ns" ? 1e-9 : unit == "us" ? 1e-6 : unit == "ms" ? 1e-3 : 1;
    CAPTURE(text);
    CHECK(std::abs(number * scale - x) <= 0.0051 * x);
    CHECK((number < 1000 || unit == "s"));
    CHECK(number >= 0.99);
  }
  CHECK(report::percent_text(0.254) == "25 %");
}

TEST_CASE("text is cut between characters") {
  CHECK(report::shortened("abc", 3) == "abc");
  CHECK(report::shortened("abcd", 3) == "ab\xe2\x80\xa6");
  CHECK(report::shortened("\xce\xbb\xce\xbb\xce\xbb\xce\xbb", 3) == "\xce\xbb\xce\xbb\xe2\x80\xa6");
}

TEST_CASE("the first column stands left, others right unless they are named, nothing trails") {
  CHECK(report::columns({{"name", "n", "text"}, {"x", "100", "y"}}, {false, false, true}, "") == "name    n  text\nx     100  y\n");
  CHECK(report::columns({{"a", ""}, {"b"}}, {}, "") == "a\nb\n");
  CHECK(report::columns({}, {}) == "");
}
