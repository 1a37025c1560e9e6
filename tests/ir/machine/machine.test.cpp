// tests/ir/machine/machine.test.cpp - clusters: which level joins two devices, what is uniform, what a hash depends on
#include <tensorpar/ir/machine/device_range.hpp>
#include <tensorpar/ir/machine/machine.hpp>
#include <tensorpar/ir/machine/machine_check.hpp>

#include <doctest/doctest.h>
#include <set>

using namespace tensorpar;

namespace {
device_kind const kind{"device", 1e12, 1e11, i64{1} << 30, 1e-6};
machine cluster(int n, int per_node) { return make_cluster("c", kind, n, per_node, {"inner", 0, 1e-6, 1e11}, {"outer", 0, 1e-5, 1e10}); }
}  // namespace

TEST_CASE("two devices are joined by the innermost level that holds both") {
  machine const m = cluster(8, 4);
  REQUIRE(m.links.size() == 2);
  CHECK(m.links[0].group == 4);
  CHECK(m.links[1].group == 8);
  for (int a = 0; a < 8; ++a)
    for (int b = 0; b < 8; ++b)
      if (a != b) CHECK(m.between(a, b).name == (a / 4 == b / 4 ? "inner" : "outer"));
  CHECK(m.level_joining(1, 3) == 0);
  CHECK(m.level_joining(3, 4) == 1);
  CHECK(cluster(4, 4).links.size() == 1);
}

TEST_CASE("machines of one kind are uniform, and every number is in the hash") {
  machine m = cluster(4, 2);
  CHECK(m.uniform());
  CHECK(m.hash() == cluster(4, 2).hash());
  u64 const before = m.hash();
  m.kinds.push_back(kind);
  m.kinds[1].flops = 2e12;
  m.device[3] = 1;
  CHECK(!m.uniform());
  CHECK(m.kind_of(3).flops == 2e12);
  CHECK(m.hash() != before);
  for (int change = 0; change < 8; ++change) {
    machine x = cluster(4, 2);
    if (change == 0) x.kinds[0].flops *= 2;
    if (change == 1) x.kinds[0].memory_bandwidth *= 2;
    if (change == 2) x.kinds[0].memory *= 2;
    if (change == 3) x.kinds[0].launch *= 2;
    if (change == 4) x.links[0].group = 4;
    if (change == 5) x.links[1].latency *= 2;
    if (change == 6) x.links[1].bandwidth *= 2;
    if (change == 7) x.lane_per_link = true;
    CAPTURE(change);
    CHECK(x.hash() != before);
  }
  std::set<u64> hashes{before};
  for (double kernel_efficiency::*share : {&kernel_efficiency::products, &kernel_efficiency::attention, &kernel_efficiency::memory,
                                           &kernel_efficiency::half_results, &kernel_efficiency::half_terms,
                                           &kernel_efficiency::while_communicating, &kernel_efficiency::sustained}) {
    machine x = cluster(4, 2);
    x.kinds[0].efficiency.*share = 0.5;
    hashes.insert(x.hash());
  }
  CHECK(hashes.size() == 8);
}

TEST_CASE("clusters whose nodes do not fill up are refused by name") {
  for (auto [n, per_node] : {std::pair(0, 1), std::pair(4, 0), std::pair(4, 3), std::pair(-4, 2)})
    CHECK_THROWS_WITH_AS(cluster(n, per_node), doctest::Contains(("a cluster of " + std::to_string(n)).c_str()), error);
  CHECK_THROWS_WITH_AS(make_cluster("c", kind, 4, 2, {"inner", 2, 0, 1e9}, {}),
                       "no link between 2 nodes of 2 (at c); valid: an outer link with latency and bandwidth", error);
  CHECK(make_cluster("c", kind, 4, 4, {"inner", 4, 0, 1e9}, {}).links.size() == 1);
  CHECK(make_cluster("c", kind, 1, 1, {}, {}).links.empty());          // nobody to talk to
  CHECK(make_cluster("c", kind, 1, 1, {"inner", 1, 0, 1e9}, {}).links.size() == 1);
  machine const apart = make_cluster("c", kind, 3, 1, {}, {"outer", 3, 0, 1e9});
  REQUIRE(apart.links.size() == 1);
  CHECK(apart.links.front().name == "outer");
  for (machine const& m : {apart, make_cluster("c", kind, 1, 1, {}, {})}) CHECK_NOTHROW(require_machine(m));
}

TEST_CASE("memories: bytes of every device, by its kind") {
  machine m = cluster(4, 2);
  CHECK(m.memories() == std::vector<i64>(4, i64{1} << 30));
  m.kinds.push_back({"large", 1e12, 1e11, i64{1} << 34, 1e-6});
  m.device = {0, 1, 1, 0};
  CHECK(m.memories() == std::vector<i64>{i64{1} << 30, i64{1} << 34, i64{1} << 34, i64{1} << 30});
  CHECK(machine{}.memories().empty());
}
