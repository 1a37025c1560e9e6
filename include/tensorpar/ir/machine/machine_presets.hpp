// tensorpar/ir/machine/machine_presets.hpp - machines by name: those of the papers, two of today, and logical
// ones
#pragma once
#include <string_view>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/machine/machine.hpp>
#include <utility>

namespace tensorpar {

/// Device kinds, from their makers' data sheets. `rates` are dense peaks by number format. `flops` is the
/// rate of the format that the source trains with: fp32 on the older ones, bf16 from A100 on.
/// `plan_training` puts that of the problem in its place; other phases of the planner take a machine as it
/// is (`at_precision`, ir/machine/precision.hpp). A V100's and a T4's products in fp16 are of a format that
/// nothing here trains in.
namespace kinds {
/// Of so many multiprocessors, each of which works on tiles of 128 x 128 results. A product wastes a fifth of
/// a round of tiles, and the time of 48 terms. Both are fitted to 14,617 products in f32 on V100, A100 and
/// H100, measured by others (Lee et al. 2025, NeuSight; tests/cost/measured_products.test.cpp). The shares
/// while communicating and of training that goes on for hours are fitted to runs that others published
/// (bench/published).
constexpr kernel_efficiency reached(double products, double attention, double memory, int multiprocessors,
                                    double sustained = 0.79) {
  return {products, attention, memory, 0.2 * multiprocessors * 128 * 128, 48, 0.8, sustained};
}
/// Without shares: comparisons with Unity and GraphPipe assume one share for all that a V100 does.
inline device_kind v100() {
  return {"V100-SXM2-16GB", 15.7e12, 900e9, i64{16} << 30, 6e-6, {.f32 = 15.7e12}};
}
/// Products and memory as measured in f32 (see `reached`); the share of attention, and that bf16 has the same
/// ones, are assumed.
inline device_kind a100() {
  return {"A100-SXM4-80GB", 312e12, 2.039e12, i64{80} << 30, 5e-6, {19.5e12, 156e12, 312e12, 0},
          reached(0.8, 0.55, 0.8, 108)};
}
inline constexpr format_rates hopper{67e12, 494.5e12, 989e12, 1979e12};
/// As A100's, but the share of attention: of the kernels in the runs that others published, from
/// FlashAttention-2's 0.35 (Shah et al. 2024, abstract) to cuDNN's.
inline device_kind h100() {
  return {"H100-SXM5-80GB", 989e12, 3.35e12, 80'000'000'000, 4e-6, hopper,
          reached(0.74, 0.4, 0.85, 132, 0.76)};
}
/// Shares of H200 in bf16 as cuBLAS and this library's own kernels reach them: 729e12 FLOP/s in the products
/// of a GPT of 1.5e9 parameters, 482e12 in the gradient of attention, 4.2 to 4.5e12 bytes/s.
inline device_kind h200() {
  return {"H200-SXM5-141GB", 989e12, 4.8e12, 141'000'000'000, 4e-6, hopper,
          reached(0.74, 0.48, 0.85, 132, 0.76)};
}
/// Memory is what systems report as usable. Shares are H100's: none were measured.
inline device_kind b200() {
  return {"B200-SXM-180GB", 2250e12, 8e12, 180'000'000'000, 4e-6, {80e12, 1100e12, 2250e12, 4500e12},
          reached(0.74, 0.4, 0.85, 148)};
}
inline device_kind gb200() {
  return {"GB200-186GB", 2500e12, 8e12, 186'000'000'000, 4e-6, {90e12, 1250e12, 2500e12, 5000e12},
          reached(0.74, 0.4, 0.85, 152)};
}
inline device_kind m60() { return {"Tesla M60", 4.8e12, 160e9, i64{8} << 30, 8e-6, {.f32 = 4.8e12}}; }
inline device_kind t4() { return {"T4", 8.1e12, 320e9, i64{16} << 30, 6e-6, {.f32 = 8.1e12}}; }
inline device_kind titan_x() {
  return {"GeForce TITAN X", 6.7e12, 336.5e9, i64{12} << 30, 8e-6, {.f32 = 6.7e12}};
}
inline device_kind a40() {
  return {"A40", 37.4e12, 696e9, i64{48} << 30, 5e-6, {37.4e12, 74.8e12, 149.7e12, 0}};
}
inline device_kind a5500() { return {"RTX A5500", 34.1e12, 768e9, i64{24} << 30, 5e-6, {.f32 = 34.1e12}}; }
/// A device that is a thread of this process: round numbers, the same everywhere and in every format, so that
/// plans for it do not depend on the host.
inline device_kind logical() { return {"logical", 20e9, 10e9, i64{4} << 30, 2e-6}; }
}  // namespace kinds

namespace detail {

/// A node type: so many devices of one kind, the links inside, and what each device has of the node's
/// adapter.
struct node_type {
  device_kind kind;
  int devices;
  std::vector<link_level> inside;      // groups within the node, the last one the node itself
  double adapter;                      // bytes/s of the whole node, one direction
  double flow;                         // bytes/s that a single flow gets at most
  double share() const { return adapter / devices < flow ? adapter / devices : flow; }
};

constexpr double gbit(double x) { return x * 1e9 / 8; }
inline link_level pcie(i64 n) { return {"PCIe 3.0", n, 8e-6, 12e9}; }

inline node_type
// three V100 per POWER9 on NVLink 2 (two bricks per pair), X-Bus between, EDR InfiniBand (Unity, 8.1, figure
// 7)
summit_node() {
  return {kinds::v100(), 6, {{"NVLink", 3, 3e-6, 50e9}, {"X-Bus", 6, 5e-6, 64e9 / 3}}, gbit(100), gbit(100)};
}
/// Eight devices behind NVSwitch, each with a network card of its own. `nvlink`: bytes/s, one direction.
inline node_type dgx(device_kind k, double nvlink, double card) {
  return {std::move(k), 8, {{"NVSwitch", 8, 3e-6, nvlink}}, 8 * card, card};
}
inline node_type dgx_a100() { return dgx(kinds::a100(), 300e9, gbit(200)); }
inline node_type dgx_h100() { return dgx(kinds::h100(), 450e9, gbit(400)); }
inline node_type dgx_h200() { return dgx(kinds::h200(), 450e9, gbit(400)); }
inline node_type dgx_b200() { return dgx(kinds::b200(), 900e9, gbit(400)); }
/// 72 devices in one NVLink domain.
inline node_type gb200_nvl72() {
  return {kinds::gb200(), 72, {{"NVLink", 72, 3e-6, 900e9}}, 72 * gbit(400), gbit(400)};
}
// AutoDist, section 3: all AWS instances have 10 GbE single-flow bandwidth.
inline node_type g3_4() { return {kinds::m60(), 1, {}, gbit(10), gbit(10)}; }
inline node_type g3_16() { return {kinds::m60(), 4, {pcie(4)}, gbit(25), gbit(10)}; }
inline node_type g4dn_2() { return {kinds::t4(), 1, {}, gbit(25), gbit(10)}; }
inline node_type g4dn_12() { return {kinds::t4(), 4, {pcie(4)}, gbit(50), gbit(10)}; }
inline node_type titan_node() { return {kinds::titan_x(), 1, {}, gbit(40), gbit(40)}; }
// PredTOP, VII-A: NVLink bridges of 112.5 GB/s in both directions together; platform 2 is two nodes on 10
// GbE.
inline node_type r750xa() {
  return {kinds::a40(), 2, {{"NVLink bridge", 2, 3e-6, 56.25e9}}, gbit(10), gbit(10)};
}
inline node_type dell5820() {
  return {kinds::a5500(), 2, {{"NVLink bridge", 2, 3e-6, 56.25e9}}, gbit(10), gbit(10)};
}

/// Nodes side by side, larger ones first. Links between nodes take the smallest share that any device has: a
/// collective runs at its pace.
inline machine cluster_of(std::string name, std::vector<node_type> const& nodes, char const* network,
                          double latency) {
  machine m;
  m.name = std::move(name);
  double share = 0;
  for (node_type const& n : nodes) {
    std::size_t k = 0;
    while (k < m.kinds.size() && !(m.kinds[k] == n.kind)) ++k;
    if (k == m.kinds.size()) m.kinds.push_back(n.kind);
    m.device.insert(m.device.end(), idx(n.devices), static_cast<int>(k));
    share = share == 0 || n.share() < share ? n.share() : share;
  }
  m.links = nodes.front().inside;
  for (node_type const& n : nodes)     // inside links of several node types: the slower
    for (std::size_t l = 0; l < m.links.size() && l < n.inside.size(); ++l) {
      if (n.inside[l].bandwidth < m.links[l].bandwidth) m.links[l].bandwidth = n.inside[l].bandwidth;
      if (n.inside[l].latency > m.links[l].latency) m.links[l].latency = n.inside[l].latency;
    }
  if (nodes.size() > 1) m.links.push_back({network, m.size(), latency, share});
  if (m.links.empty()) m.links.push_back({network, 1, latency, share});
  return m;
}
inline machine cluster_of(std::string const& name, node_type const& n, int count, char const* network,
                          double latency) {
  return cluster_of(name, std::vector<node_type>(idx(count), n), network, latency);
}

inline constexpr double ethernet = 30e-6, infiniband = 6e-6;

/// One row of AutoDist's Table 1.
struct autodist_row { char const* name; int g3_4, g3_16, g4dn_2, g4dn_12, titan; };
inline constexpr autodist_row autodist_rows[] = {
    {"a1", 0, 0, 0, 0, 16}, {"a2", 0, 0, 0, 0, 11}, {"b1", 0, 2, 0, 0, 0}, {"b2", 0, 3, 0, 0, 0},
    {"b3", 0, 4, 0, 0, 0},  {"b4", 0, 0, 0, 1, 0},  {"b5", 0, 0, 0, 2, 0}, {"b6", 0, 0, 0, 3, 0},
    {"b7", 0, 0, 0, 4, 0},  {"b8", 0, 0, 0, 8, 0},  {"b9", 1, 1, 0, 0, 0}, {"b10", 0, 1, 0, 1, 0},
    {"b11", 0, 2, 0, 2, 0}, {"b12", 0, 0, 1, 1, 0}};

}  // namespace detail

/// n logical devices that reach each other equally well (threads of one process). Precondition: n >= 1.
inline machine logical(int n) {
  return make_cluster("logical:" + std::to_string(n), kinds::logical(), n, n, {"memory", 1, 2e-6, 5e9}, {});
}
/// nodes x per_node logical devices; the link between nodes is slow.
inline machine logical_nodes(int nodes, int per_node) {
  return make_cluster("logical-" + std::to_string(nodes) + "x" + std::to_string(per_node), kinds::logical(),
                      nodes * per_node, per_node, {"memory", 1, 2e-6, 5e9}, {"slow link", 1, 50e-6, 0.25e9});
}

/// Names that `preset` knows. "NAME:COUNT" is COUNT nodes ("logical": devices).
inline std::vector<std::string> preset_names() {
  std::vector<std::string> r{"summit",      "dgx-a100",    "dgx-h100",     "dgx-h200",
                             "dgx-b200",    "gb200-nvl72", "g3.4xlarge",   "g3.16xlarge",
                             "g4dn.2xlarge", "g4dn.12xlarge", "titan-x",   "predtop-1",
                             "predtop-2",   "logical",     "logical-2x2"};
  for (auto const& row : detail::autodist_rows) r.push_back("autodist-" + std::string(row.name));
  return r;
}

/// A machine by name: "summit:4" (4 nodes of 6 V100), "dgx-h100:8", "g4dn.12xlarge:2", "autodist-b10",
/// "predtop-2", "logical:4", "logical-2x2"; '_' is read as '-'. Between nodes `bandwidth` is each device's
/// share of its node's adapter, at most what one flow gets. Throws `error` with all valid names. O(devices).
inline machine preset(std::string_view name) {
  auto fail = [&](std::string const& what) -> machine {
    std::string valid;
    for (std::string const& n : preset_names()) valid += (valid.empty() ? "" : ", ") + n;
    throw error(what, "machine \"" + std::string(name) + "\"", valid + "; NAME:COUNT for several nodes");
  };
  std::string plain(name);
  for (char& c : plain) if (c == '_') c = '-';
  std::string_view base = plain;
  int count = 0;
  if (auto const colon = name.find(':'); colon != name.npos) {
    base = base.substr(0, colon);
    std::string_view const digits = name.substr(colon + 1);
    for (char c : digits) {
      if (c < '0' || c > '9' || count > 100'000)
        return fail("the count is not a whole number from 1 to 100000");
      count = count * 10 + (c - '0');
    }
    if (digits.empty() || count < 1 || count > 100'000)
      return fail("the count is not a whole number from 1 to 100000");
  }
  int const n = count ? count : 1;
  std::string const label(name);
  using namespace detail;
  if (base == "summit") return cluster_of(label, summit_node(), n, "EDR InfiniBand", infiniband);
  if (base == "dgx-a100") return cluster_of(label, dgx_a100(), n, "HDR InfiniBand", infiniband);
  if (base == "dgx-h100") return cluster_of(label, dgx_h100(), n, "NDR InfiniBand", infiniband);
  if (base == "dgx-h200") return cluster_of(label, dgx_h200(), n, "NDR InfiniBand", infiniband);
  if (base == "dgx-b200") return cluster_of(label, dgx_b200(), n, "NDR InfiniBand", infiniband);
  if (base == "gb200-nvl72") return cluster_of(label, gb200_nvl72(), n, "NDR InfiniBand", infiniband);
  if (base == "g3.4xlarge") return cluster_of(label, g3_4(), n, "Ethernet", ethernet);
  if (base == "g3.16xlarge") return cluster_of(label, g3_16(), n, "Ethernet", ethernet);
  if (base == "g4dn.2xlarge") return cluster_of(label, g4dn_2(), n, "Ethernet", ethernet);
  if (base == "g4dn.12xlarge") return cluster_of(label, g4dn_12(), n, "Ethernet", ethernet);
  if (base == "titan-x") return cluster_of(label, titan_node(), n, "Ethernet", ethernet);
  if (base == "logical") { machine m = logical(count ? count : 4); m.name = label; return m; }
  if (count == 0) {
    if (base == "predtop-1") return cluster_of(label, r750xa(), 1, "Ethernet", ethernet);
    if (base == "predtop-2") return cluster_of(label, dell5820(), 2, "Ethernet", ethernet);
    if (base == "logical-2x2") return logical_nodes(2, 2);
    for (auto const& row : autodist_rows) {
      if (base != "autodist-" + std::string(row.name)) continue;
      std::vector<node_type> nodes;
      auto put = [&](int k, node_type const& t) {
        nodes.insert(nodes.end(), idx(k), t);
      };
      put(row.g3_16, g3_16());
      put(row.g4dn_12, g4dn_12());
      put(row.g3_4, g3_4());
      put(row.g4dn_2, g4dn_2());
      put(row.titan, titan_node());
      return cluster_of(label, nodes, "Ethernet", ethernet);
    }
  }
  return fail(count ? "no machine of this name takes a count" : "no machine has this name");
}

}  // namespace tensorpar
