// tensorpar/plan/cluster_file.hpp - a cluster described in a JSON file: a preset by name, or devices and links spelled out
#pragma once
#include <cmath>
#include <tensorpar/ir/machine_presets.hpp>
#include <tensorpar/plan/plan_file.hpp>

namespace tensorpar {

/// Schema version of a cluster file.
inline constexpr int cluster_schema = 1;

namespace detail {

/// Runs of equal device kinds, by name: [{"kind": "T4", "count": 4}, ...].
inline json encode_devices(machine const& m) {
  json r = json::array();
  for (std::size_t i = 0; i < m.device.size();) {
    std::size_t j = i;
    while (j < m.device.size() && m.device[j] == m.device[i]) ++j;
    json x = json::object();
    x["kind"] = m.kinds[static_cast<std::size_t>(m.device[i])].name;
    x["count"] = j - i;
    r.push_back(std::move(x));
    i = j;
  }
  return r;
}

inline machine decode_cluster(plan_reader const& r) {
  r.object({"tensorpar_cluster", "name", "kinds", "devices", "links"});
  machine m;
  m.name = r["name"].text();
  std::string names;
  plan_reader const kinds = r["kinds"], devices = r["devices"], links = r["links"];
  for (std::size_t i = 0, n = kinds.array(1, 4096); i < n; ++i) {
    plan_reader const k = kinds[i];
    k.object({"name", "flops", "memory_bandwidth", "memory", "launch"});
    m.kinds.push_back(
        {k["name"].text(), k["flops"].real(1), k["memory_bandwidth"].real(1), k["memory"].integer(1, INT64_MAX), k["launch"].real(0)});
    for (std::size_t j = 0; j < i; ++j)
      if (m.kinds[j].name == m.kinds[i].name) k["name"].fail("the kind \"" + m.kinds[i].name + "\" stands twice", "one entry per kind");
    names += (i ? ", " : "") + m.kinds[i].name;
  }
  for (std::size_t i = 0, n = devices.array(1, plan_max_devices); i < n; ++i) {
    plan_reader const d = devices[i];
    d.object({"kind", "count"});
    std::string const kind = d["kind"].text();
    std::size_t k = 0;
    while (k < m.kinds.size() && m.kinds[k].name != kind) ++k;
    if (k == m.kinds.size()) d["kind"].fail("no kind of device is called \"" + kind + "\"", names);
    i64 const count = d["count"].integer(1, plan_max_devices - static_cast<i64>(m.device.size()));
    m.device.insert(m.device.end(), static_cast<std::size_t>(count), static_cast<int>(k));
  }
  i64 inner = 1;
  for (std::size_t i = 0, n = links.array(1, 8); i < n; ++i) {
    plan_reader const l = links[i];
    l.object({"name", "group", "latency", "bandwidth"});
    bool const outermost = i + 1 == n;
    link_level x{l["name"].text(), l["group"].integer(outermost ? std::max<i64>(inner, m.size()) : inner, plan_max_devices),
                 l["latency"].real(0), l["bandwidth"].real(1)};
    if (!outermost && x.group % inner)
      l["group"].fail("groups of " + std::to_string(x.group) + " do not consist of groups of " + std::to_string(inner),
                      "a multiple of " + std::to_string(inner));
    inner = x.group;
    m.links.push_back(std::move(x));
  }
  return m;
}

}  // namespace detail

/// The cluster as a JSON value that people can read and change: kinds by name, devices as runs. Precondition: kinds have different names.
/// Throws `error` for a number that JSON cannot hold. Law: decode_cluster(encode_cluster(m), w) == m where every kind is in use.
inline json encode_cluster(machine const& m) {
  for (device_kind const& k : m.kinds)
    for (double x : {k.flops, k.memory_bandwidth, k.launch})
      if (!std::isfinite(x)) throw error("a device kind with an infinite number or none", k.name, "finite numbers");
  for (link_level const& l : m.links)
    for (double x : {l.latency, l.bandwidth})
      if (!std::isfinite(x)) throw error("a link with an infinite number or none", l.name, "finite numbers");
  json const flat = detail::encode_machine(m);
  json r = json::object();
  r["tensorpar_cluster"] = cluster_schema;
  r["name"] = m.name;
  r["kinds"] = flat["kinds"];
  r["devices"] = detail::encode_devices(m);
  r["links"] = flat["links"];
  return r;
}

/// Two forms: {"preset": "summit:4"}, or {"tensorpar_cluster": 1, "name": ..., "kinds": [...], "devices": [{"kind": ..., "count": ...}],
/// "links": [innermost, ..., the one that joins all]}. Bandwidths in bytes/s, memory in bytes, times in seconds.
/// Throws `error` that names file, key and what is valid. O(file + devices).
inline machine decode_cluster(json const& from, std::string const& where) {
  detail::plan_reader const r{from, where, ""};
  if (!from.is_object() || (!from.contains("preset") && !from.contains("tensorpar_cluster")))
    r.fail("not a cluster", "an object with the key \"preset\", or with \"tensorpar_cluster\": " + std::to_string(cluster_schema));
  if (from.contains("preset")) {
    r.object({"preset"});
    try {
      return preset(r["preset"].text());
    } catch (error const& e) {
      if (e.where().starts_with("machine ")) r["preset"].fail(e.problem() + ": " + e.where(), e.valid());
      throw;
    }
  }
  if (i64 const v = r["tensorpar_cluster"].integer(0, INT64_MAX); v != cluster_schema)
    r["tensorpar_cluster"].fail("a cluster of schema version " + std::to_string(v), "version " + std::to_string(cluster_schema));
  return detail::decode_cluster(r);
}
/// The cluster written in `text`; errors also say line and column where the text is not JSON.
inline machine parse_cluster(std::string_view text, std::string const& where) { return decode_cluster(parse_json(text, where), where); }
inline machine read_cluster(std::string const& path) { return decode_cluster(read_json(path), path); }
/// A preset's name, or the path of a cluster file if the name ends in ".json".
inline machine find_cluster(std::string const& name_or_path) {
  return name_or_path.ends_with(".json") ? read_cluster(name_or_path) : preset(name_or_path);
}
inline void write_cluster(machine const& m, std::string const& path) { write_whole_file(path, encode_cluster(m).dump(1) + "\n"); }

}  // namespace tensorpar
