// tests/ir/machine/machine_presets.test.cpp - every preset is a sound machine and says what its source says
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <doctest/doctest.h>

#include <map>

using namespace tensorpar;

TEST_CASE("every preset is sound: kinds in use, positive rates, nested links that end with all devices") {
  for (std::string const& name : preset_names())
    for (char const* count : {"", ":1", ":3"}) {
      machine m;
      try {
        m = preset(name + count);
      } catch (error const& e) {
        CHECK(std::string(count) != "");
        CHECK(e.problem() == "no machine of this name takes a count");
        continue;
      }
      CAPTURE(m.name);
      CHECK(m.name == name + count);
      REQUIRE(m.size() > 0);
      std::vector<bool> used(m.kinds.size(), false);
      for (int k : m.device) used[static_cast<std::size_t>(k)] = true;
      for (std::size_t k = 0; k < m.kinds.size(); ++k) {
        CHECK(used[k]);
        CHECK(m.kinds[k].flops > 1e9);
        CHECK(m.kinds[k].memory_bandwidth > 1e9);
        CHECK(m.kinds[k].memory >= i64{1} << 30);
        CHECK(m.kinds[k].launch > 0);
      }
      REQUIRE(!m.links.empty());
      CHECK(m.links.back().group == m.size());
      for (std::size_t l = 0; l < m.links.size(); ++l) {
        CHECK(m.links[l].latency > 0);
        CHECK(m.links[l].bandwidth > 1e8);
        if (l) CHECK(m.links[l].group > m.links[l - 1].group);
        if (l) CHECK(m.links[l].bandwidth < m.links[l - 1].bandwidth);      // further is slower
      }
    }
}

TEST_CASE("AutoDist's Table 1: devices and kinds of each cluster") {
  std::map<std::string, std::pair<int, int>> const m60_and_t4{{"b1", {8, 0}}, {"b2", {12, 0}}, {"b3", {16, 0}}, {"b4", {0, 4}},
                                                              {"b5", {0, 8}}, {"b6", {0, 12}}, {"b7", {0, 16}}, {"b8", {0, 32}},
                                                              {"b9", {5, 0}}, {"b10", {4, 4}}, {"b11", {8, 8}}, {"b12", {0, 5}}};
  for (auto const& [row, count] : m60_and_t4) {
    machine const m = preset("autodist-" + row);
    CAPTURE(row);
    int m60 = 0, t4 = 0;
    for (int d = 0; d < m.size(); ++d) { m60 += m.kind_of(d).name == "Tesla M60"; t4 += m.kind_of(d).name == "T4"; }
    CHECK(m60 == count.first);
    CHECK(t4 == count.second);
    // AWS gives one flow 10 Gbit/s at most
    if (m.links.size() > 1) CHECK(m.links.back().bandwidth <= 1.25e9);
  }
  CHECK(preset("autodist-a1").size() == 16);
  CHECK(preset("autodist-a2").size() == 11);
  CHECK(preset("autodist-a1").links.back().bandwidth == 5e9);                // 40 GbE, one device per node
  // g3.16xlarge shares 25 GbE among four, which is less than a flow may take; the smallest share rules
  CHECK(preset("autodist-b10").links.back().bandwidth == 25e9 / 8 / 4);
  CHECK(preset("autodist-b5").links.back().bandwidth == 10e9 / 8);
  // the lone device of a mixed cluster is beyond the first node's links
  machine const b9 = preset("autodist-b9");
  CHECK(b9.between(0, 3).name == "PCIe 3.0");
  CHECK(b9.between(3, 4).name == "Ethernet");
}

TEST_CASE("Summit: three V100 on NVLink, two such triples per node, InfiniBand shared by six") {
  machine const m = preset("summit:2");
  CHECK(m.size() == 12);
  CHECK(m.between(0, 2).name == "NVLink");
  CHECK(m.between(2, 3).name == "X-Bus");
  CHECK(m.between(5, 6).name == "EDR InfiniBand");
  CHECK(m.between(5, 6).bandwidth == doctest::Approx(12.5e9 / 6));
  CHECK(preset("summit").links.size() == 2);
}

TEST_CASE("PredTOP's platforms, DGX nodes and logical devices") {
  machine const two = preset("predtop-2");
  CHECK(two.size() == 4);
  CHECK(two.between(0, 1).bandwidth == 56.25e9);
  CHECK(two.between(1, 2).bandwidth == 1.25e9 / 2);
  CHECK(preset("predtop-1").kinds[0].memory_bandwidth == 696e9);
  machine const h = preset("dgx-h200:2");
  CHECK(h.between(0, 7).bandwidth == 450e9);
  CHECK(h.between(7, 8).bandwidth == 50e9);                                  // an adapter of 400 Gbit/s per device
  CHECK(h.kinds[0].memory_bandwidth == 4.8e12);
  machine const a = preset("dgx-a100:2"), b = preset("dgx-b200:2"), g = preset("gb200-nvl72:2");
  CHECK(a.between(0, 7).bandwidth == 300e9);
  CHECK(a.between(7, 8).bandwidth == 25e9);
  CHECK(b.between(0, 7).bandwidth == 900e9);
  CHECK(g.size() == 144);
  CHECK(g.between(0, 71).name == "NVLink");
  CHECK(g.between(71, 72).bandwidth == 50e9);
  CHECK(preset("logical").size() == 4);
  CHECK(preset("logical:6") == logical(6));
  CHECK(preset("logical-2x2") == logical_nodes(2, 2));
  CHECK(preset("dgx_h100:2").device == preset("dgx-h100:2").device);
  CHECK(preset("dgx_h100:2").name == "dgx_h100:2");
  CHECK(preset("logical-2x2").between(1, 2).bandwidth < preset("logical-2x2").between(0, 1).bandwidth / 10);
}

TEST_CASE("unknown names say what is valid") {
  for (char const* bad : {"", "Summit", "dgx", "autodist-b13", "summit:0", "summit:", "summit:x", "summit:-1",
                          "summit:99999999999999999999", "logical-2x2:2", "a:b:c"}) {
    CAPTURE(bad);
    try {
      preset(bad);
      FAIL("accepted");
    } catch (error const& e) {
      CHECK(e.where() == "machine \"" + std::string(bad) + "\"");
      CHECK(e.valid().find("summit, dgx-a100, dgx-h100") == 0);
      CHECK(e.valid().find("autodist-b12") != std::string::npos);
    }
  }
}
