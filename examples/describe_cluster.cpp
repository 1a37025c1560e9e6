// examples/describe_cluster.cpp - one cluster, written in a file and in code
#include "standard_output.hpp"
#include <cstdio>
#include <tensorpar/plan/cluster_file.hpp>

using namespace tensorpar;

int main() {
  // [quoted: code]
  device_kind const kind{.name = "A40", .flops = 37.4e12, .memory_bandwidth = 696e9, .memory = i64{48} << 30, .launch = 5e-6};
  link_level const pcie{.name = "PCIe", .latency = 8e-6, .bandwidth = 12e9};
  link_level const ethernet{.name = "Ethernet", .latency = 30e-6, .bandwidth = 312.5e6};
  machine cluster = make_cluster("two nodes of four", kind, 8, 4, pcie, ethernet);     // 8 devices, 4 in each node
  cluster.links.insert(cluster.links.begin(), {.name = "NVLink bridge", .group = 2, .latency = 3e-6, .bandwidth = 56.25e9});
  // [end]
  // [quoted: asked]
  std::printf("devices 0 and 1 talk over %s, 0 and 2 over %s, 0 and 4 over %s\n", cluster.between(0, 1).name.c_str(),
              cluster.between(0, 2).name.c_str(), cluster.between(0, 4).name.c_str());
  // [end]
  return read_cluster(TENSORPAR_EXAMPLE_DATA "/cluster.json") == cluster ? 0 : 1;
}
