// tensorpar/peers/profiles/piper.hpp - profiles in the format of Piper (JSON): tensor-parallel degrees,
// recomputation, bytes per edge
#pragma once
#include <string>
#include <string_view>
#include <tensorpar/core/index.hpp>
#include <tensorpar/peers/profiles/source.hpp>
#include <vector>

namespace tensorpar::peers {

/// One way to run a node on `degree` devices.
struct piper_configuration {
  std::string name;                        ///< "vanilla" or "activation recomp"
  double seconds = 0;                      ///< forward and backward of one micro-batch
  double parameters = 0;                   ///< bytes
  double per_sample = 0, fixed = 0;        ///< bytes: memory is per_sample * micro-batches in flight + fixed
  // /< bytes by edge into the node, by edge out of it (see piper_profile::in, out)
  std::vector<double> sync_in, sync_out;
  friend bool operator==(piper_configuration const&, piper_configuration const&) = default;
};
/// A node's one or two configurations at one tensor-parallel degree.
struct piper_degree {
  int degree = 1;
  std::vector<piper_configuration> ways;
  friend bool operator==(piper_degree const&, piper_degree const&) = default;
};
/// An edge and the bytes of its tensor.
struct piper_edge {
  int from = 0, to = 0;
  double bytes = 0;
  friend bool operator==(piper_edge const&, piper_edge const&) = default;
};

/// A training graph (Tarnawski et al. 2021, "Piper: multidimensional planner for DNN parallelization").
/// Models `topology`.
struct piper_profile : profile_graph {
  std::vector<i64> id;
  std::vector<std::string> name;
  std::vector<std::vector<piper_degree>> degrees;  ///< by node, ascending
  std::vector<piper_edge> edges;                   ///< in the file's order
  std::vector<std::vector<int>> in, out;           ///< by node, its edges
  double memory = 0;                               ///< bytes of a device
  double bandwidth = 0;                            ///< bytes per second
  int devices = 0;                                 ///< the file's own limit
  i64 micro_batches = 0;
  friend bool operator==(piper_profile const&, piper_profile const&) = default;
};

namespace detail {

/// The bytes that one configuration names for each of the edges `list`, by the id at the edge's other end.
inline std::vector<double> piper_sync(profile_value const& from, piper_profile const& g,
                                      std::vector<int> const& list, bool incoming) {
  from.object();
  std::vector<double> r;
  for (int e : list) {
    piper_edge const& x = g.edges[idx(e)];
    std::string const other = std::to_string(g.id[idx(incoming ? x.from : x.to)]);
    r.push_back(from[other].number());
  }
  return r;
}

inline piper_degree piper_one_degree(profile_value const& from, int degree, piper_profile const& g, int v,
                                     double scale) {
  piper_degree r{degree, {}};
  for (int i = 0, n = from.array(1, 2); i < n; ++i) {
    profile_value const c = from[i];
    piper_configuration w;
    w.name = c["id"].text();
    w.seconds = scale * c["timePerSample"].number();
    w.parameters = c["parameterSize"].number();
    w.per_sample = c["memoryUsageA"].number();
    w.fixed = c["memoryUsageB"].number();
    w.sync_in = piper_sync(c["syncTimeFw"], g, g.in[idx(v)], true);
    w.sync_out = piper_sync(c["syncTimeBw"], g, g.out[idx(v)], false);
    r.ways.push_back(std::move(w));
  }
  return r;
}

/// A tensor-parallel degree written as a key.
inline int piper_degree_of(profile_value const& node, std::string const& key) {
  int t = 0;
  bool good = !key.empty() && key.size() <= 6 && key[0] != '0';
  for (char c : key) {
    good = good && c >= '0' && c <= '9';
    if (good) t = 10 * t + (c - '0');
  }
  if (!good)
    node["TMPCs"].fail("\"" + key + "\" is no tensor-parallel degree",
                       "keys that are whole numbers from 1 to 999999");
  return t;
}

}  // namespace detail

/// Reads {"maxMemoryPerDevice", "maxDevices", "bandwidth", "mbsInBatch", "nodes": [{"id", "name"?, "TMPCs":
/// {"1": [{"id", "timePerSample", "parameterSize", "memoryUsageA", "memoryUsageB", "syncTimeFw": {id: bytes},
/// "syncTimeBw": {id: bytes}}, ...]}}], "edges": [{"sourceId", "destId", "communicationCost"}]}; other keys
/// are passed over. `units` says how `timePerSample` is to be read. Throws `error` with file and JSON path,
/// as decode_dnn_partitioning does, and for parallel edges and for an incident edge without sync bytes. O(n
/// log n + file).
inline piper_profile decode_piper(core::json const& from, std::string const& where,
                                  core::profile_units units) {
  detail::profile_value const top{&from, &where};
  piper_profile g;
  g.memory = top["maxMemoryPerDevice"].number();
  g.devices = static_cast<int>(top["maxDevices"].integer(1, 1 << 20));
  g.bandwidth = top["bandwidth"].number(1);
  g.micro_batches = top["mbsInBatch"].integer(1, 1 << 30);
  detail::profile_value const nodes = top["nodes"], edges = top["edges"];
  int const n = nodes.array(1, core::profile_max_nodes), m = edges.array(0, core::profile_max_edges);
  detail::profile_ids const ids = detail::profile_node_ids(nodes, n);
  g.inputs.resize(idx(n));
  g.in.resize(idx(n));
  g.out.resize(idx(n));
  for (int k = 0; k < m; ++k) {
    detail::profile_value const e = edges[k];
    int const u = detail::profile_edge_end(e, "sourceId", ids),
              v = detail::profile_edge_end(e, "destId", ids);
    for (int other : g.out[idx(u)])
      if (g.edges[idx(other)].to == v)
        e.fail("a second edge between two nodes", "at most one edge from a node to another");
    g.edges.push_back({u, v, e["communicationCost"].number()});
    g.inputs[idx(v)].push_back(u);
    g.out[idx(u)].push_back(k);
    g.in[idx(v)].push_back(k);
  }
  for (int v = 0; v < n; ++v) {
    detail::profile_value const x = nodes[v];
    g.id.push_back(x["id"].integer(0, i64{1} << 53));
  }
  double const scale = core::compute_scale(units);
  for (int v = 0; v < n; ++v) {
    detail::profile_value const x = nodes[v], table = x["TMPCs"];
    g.name.push_back(x.has("name") ? x["name"].text() : std::string());
    table.object();
    if (table.at->empty()) table.fail("no configuration", "at least one tensor-parallel degree");
    std::vector<piper_degree> list;
    for (auto const& [key, value] : table.at->items()) {
      int const t = detail::piper_degree_of(x, key);
      list.push_back(detail::piper_one_degree({&value, &where, &table, key, -1}, t, g, v, scale));
    }
    std::sort(list.begin(), list.end(),
              [](piper_degree const& a, piper_degree const& b) { return a.degree < b.degree; });
    g.degrees.push_back(std::move(list));
  }
  detail::finish_profile_graph(g, where + ": edges",
                               [&](int v) { return std::to_string(g.id[idx(v)]); });
  return g;
}
/// The profile written in `text`; errors also say line and column where the text is not JSON.
inline piper_profile parse_piper(std::string_view text, std::string const& where, core::profile_units units) {
  return decode_piper(core::parse_json(text, where), where, units);
}
inline piper_profile read_piper(std::string const& path, core::profile_units units) {
  return decode_piper(core::read_json(path), path, units);
}

}  // namespace tensorpar::peers
