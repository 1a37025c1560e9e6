// tests/program/lockstep_devices.test.cpp - which devices do the same under these shardings, by hand (in programs: tests/simulate)
#include <tensorpar/program/lockstep_devices.hpp>

#include <doctest/doctest.h>

using namespace tensorpar;
using tensorpar::passes::lockstep_devices;

namespace {

machine devices(int n) {
  return make_cluster("test", {"device", 1e9, 1e9, i64{1} << 30, 0}, n, n, {"link", n, 1e-6, 1e9}, {});
}
ir::sharding all(i64 n) { return {0, {{'a', n, 1}}}; }

}  // namespace

TEST_CASE("all devices are one class where each has a part of everything; none has, too") {
  CHECK(lockstep_devices({all(6)}, devices(6)) == std::vector<int>(6, 0));
  CHECK(lockstep_devices({{0, {{'a', 2, 3}, {'b', 3, 1}}}, all(6)}, devices(6)) == std::vector<int>(6, 0));
  CHECK(lockstep_devices({}, devices(3)) == std::vector<int>(3, 0));
}

TEST_CASE("another kind, or a part in another operator, is another class") {
  machine m = devices(4);
  m.kinds.push_back({"other", 2e9, 1e9, i64{1} << 30, 0});
  m.device = {0, 1, 0, 1};
  CHECK(lockstep_devices({all(4)}, m) == std::vector<int>{0, 1, 0, 1});
  CHECK(lockstep_devices({all(4), {2, {{'a', 2, 1}}}}, devices(5)) == std::vector<int>{0, 0, 2, 2, 4});
}

TEST_CASE("who meets other classes in some group is another class, and so is who meets those") {
  // 0 and 1 have more to do; 2 and 3 meet them in steps of two, 4 and 5 in steps of four, 6 and 7 in neither
  CHECK(lockstep_devices({all(8), {0, {{'a', 2, 1}}}}, devices(8)) == std::vector<int>{0, 0, 2, 2, 4, 4, 6, 6});
  // a mesh of 2 x 3, and one device of it that works alone
  CHECK(lockstep_devices({{0, {{'a', 2, 3}, {'b', 3, 1}}}, {0, {}}}, devices(6)) == std::vector<int>{0, 1, 1, 3, 4, 4});
}
