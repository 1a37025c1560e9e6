// tensorpar/peers/profiles/dnn_partitioning.hpp - profiles in the format of dnn-partitioning (JSON): two
// device types, colour classes
#pragma once
#include <string>
#include <string_view>
#include <tensorpar/core/index.hpp>
#include <tensorpar/peers/profiles/source.hpp>
#include <utility>
#include <vector>

namespace tensorpar::peers {

/// A graph with times on accelerators and on CPUs (Tarnawski et al. 2020, "Efficient algorithms for device
/// placement of DNN graph operators"). Models `topology`; backward operators are nodes like forward ones.
struct dnn_partitioning_profile : profile_graph {
  std::vector<i64> id;                 ///< by node, as in the file: neither dense nor ordered
  std::vector<std::string> name;       ///< empty where the file has none
  std::vector<double> accelerator;     ///< time on an accelerator
  std::vector<double> cpu;             ///< time on a CPU
  std::vector<double> size;            ///< bytes, additive
  // /< time to move the node's result to or from one device; 0 where it has no successor
  std::vector<double> send;
  // /< 0 .. colours-1: nodes of a colour share a device; a node without a colour has one of its own
  std::vector<int> colour;
  std::vector<char> backward;          ///< is it part of the backward pass?
  std::vector<char> on_accelerator;    ///< may it run on an accelerator?
  int colours = 0;
  double memory = 0;                   ///< bytes of an accelerator
  int accelerators = 0, cpus = 0;      ///< the file's own limits
  friend bool operator==(dnn_partitioning_profile const&, dnn_partitioning_profile const&) = default;
};

/// Reads {"maxSizePerFPGA", "maxFPGAs", "maxCPUs", "nodes": [{"id", "name"?, "supportedOnFpga", "cpuLatency",
/// "fpgaLatency", "isBackwardNode", "colorClass"?, "size"?}], "edges": [{"sourceId", "destId", "cost"}]};
/// other keys are passed over. An edge's cost is its source's: all edges out of a node must agree within
/// 1e-6. `units` says how the latencies are to be read; costs stay as they are. Throws `error` with file and
/// JSON path for missing keys, wrong types, negative or huge numbers, ids that stand twice or name no node,
/// an edge from the backward to the forward pass, and cycles. O(n log n + file).
inline dnn_partitioning_profile decode_dnn_partitioning(core::json const& from, std::string const& where,
                                                        core::profile_units units) {
  detail::profile_value const top{&from, &where};
  dnn_partitioning_profile g;
  g.memory = top["maxSizePerFPGA"].number();
  g.accelerators = static_cast<int>(top["maxFPGAs"].integer(0, 1 << 20));
  g.cpus = static_cast<int>(top["maxCPUs"].integer(0, 1 << 20));
  detail::profile_value const nodes = top["nodes"], edges = top["edges"];
  int const n = nodes.array(1, core::profile_max_nodes), m = edges.array(0, core::profile_max_edges);
  detail::profile_ids const ids = detail::profile_node_ids(nodes, n);
  double const scale = core::compute_scale(units);
  std::vector<std::pair<i64, int>> classes;  // written colour, node
  for (int v = 0; v < n; ++v) {
    detail::profile_value const x = nodes[v];
    g.id.push_back(x["id"].integer(0, i64{1} << 53));
    g.name.push_back(x.has("name") ? x["name"].text() : std::string());
    g.accelerator.push_back(scale * x["fpgaLatency"].number());
    g.cpu.push_back(scale * x["cpuLatency"].number());
    g.size.push_back(x.has("size") ? x["size"].number() : 0.0);
    g.backward.push_back(x["isBackwardNode"].flag());
    g.on_accelerator.push_back(x["supportedOnFpga"].flag());
    if (x.has("colorClass")) classes.push_back({x["colorClass"].integer(-(i64{1} << 53), i64{1} << 53), v});
  }
  g.colour.assign(idx(n), -1);
  std::sort(classes.begin(), classes.end());
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (i > 0 && classes[i].first != classes[i - 1].first) ++g.colours;
    g.colour[idx(classes[i].second)] = g.colours;
  }
  if (!classes.empty()) ++g.colours;
  for (int& c : g.colour)
    if (c < 0) c = g.colours++;
  g.inputs.resize(idx(n));
  g.send.assign(idx(n), 0.0);
  std::vector<char> sends(idx(n), 0);
  for (int k = 0; k < m; ++k) {
    detail::profile_value const e = edges[k];
    int const u = detail::profile_edge_end(e, "sourceId", ids),
              v = detail::profile_edge_end(e, "destId", ids);
    double const cost = e["cost"].number();
    if (g.backward[idx(u)] && !g.backward[idx(v)])
      e.fail("an edge from a backward to a forward node", "forward nodes that depend on forward nodes only");
    if (sends[idx(u)] && std::abs(g.send[idx(u)] - cost) > 1e-6)
      e["cost"].fail("another edge out of node " + std::to_string(g.id[idx(u)]) + " costs " +
                         core::json(g.send[idx(u)]).dump(), "the same cost for all edges out of a node");
    if (!sends[idx(u)]) g.send[idx(u)] = cost;
    sends[idx(u)] = 1;
    g.inputs[idx(v)].push_back(u);
  }
  for (auto& list : g.inputs) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  detail::finish_profile_graph(g, where + ": edges",
                               [&](int v) { return std::to_string(g.id[idx(v)]); });
  return g;
}
/// The profile written in `text`; errors also say line and column where the text is not JSON.
inline dnn_partitioning_profile parse_dnn_partitioning(std::string_view text, std::string const& where,
                                                       core::profile_units units) {
  return decode_dnn_partitioning(core::parse_json(text, where), where, units);
}
inline dnn_partitioning_profile read_dnn_partitioning(std::string const& path, core::profile_units units) {
  return decode_dnn_partitioning(core::read_json(path), path, units);
}

}  // namespace tensorpar::peers
