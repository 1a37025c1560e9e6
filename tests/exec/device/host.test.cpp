// tests/exec/device/host.test.cpp - a batch that does not fit is refused with what would
#include <doctest/doctest.h>
#include <string>
#include <tensorpar/exec/device/host.hpp>

using namespace tensorpar;

TEST_CASE("inputs of another shape, size or element type are refused") {
  shape const s{2, 3}, ids = s.of(dtype::i32);
  auto refusal = [](host_tensor const& t, shape const& of, int micro_batches) -> std::string {
    try { check_input("x", t, of, micro_batches); } catch (error const& e) { return e.what(); }
    return "";
  };
  CHECK(refusal({s, std::vector<float>(6), {}}, s, 1).empty());
  CHECK(refusal({{4, 3}, std::vector<float>(12), {}}, s, 2).empty());
  CHECK(refusal({ids, {}, std::vector<std::int32_t>(6)}, ids, 1).empty());
  CHECK(refusal({s, std::vector<float>(6), {}}, s, 2).find("[4,3]") != std::string::npos);
  CHECK(refusal({{6}, std::vector<float>(6), {}}, s, 1).find("input 'x' has shape [6]") != std::string::npos);
  CHECK(refusal({s, std::vector<float>(5), {}}, s, 1).find("5 real numbers") != std::string::npos);
  CHECK(refusal({s, std::vector<float>(6), {}}, ids, 1).find("is given real numbers") != std::string::npos);
}
