// tensorpar/plan/cluster_file.hpp - a cluster described in a JSON file: a preset by name, or devices and
// links spelled out
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/plan/plan_file_text.hpp>

namespace tensorpar {

/// Schema version of a cluster file.
inline constexpr int cluster_schema = 1;

namespace detail {

/// Runs of equal device kinds, by name: [{"kind": "T4", "count": 4}, ...].
inline core::json encode_devices(machine const& m) {
  core::json r = core::json::array();
  for (std::size_t i = 0; i < m.device.size();) {
    std::size_t j = i;
    while (j < m.device.size() && m.device[j] == m.device[i]) ++j;
    core::json x = core::json::object();
    x["kind"] = m.kinds[idx(m.device[i])].name;
    x["count"] = j - i;
    r.push_back(std::move(x));
    i = j;
  }
  return r;
}

inline machine decode_cluster(plan_reader const& r) {
  r.object({"tensorpar_cluster", "name", "kinds", "devices", "links", "lane_per_link"});
  machine m;
  m.name = r["name"].text();
  std::string names;
  plan_reader const kinds = r["kinds"], devices = r["devices"], links = r["links"];
  for (std::size_t i = 0, n = kinds.array(1, 4096); i < n; ++i) {
    plan_reader const k = kinds[i];
    m.kinds.push_back(decode_kind(k));
    for (std::size_t j = 0; j < i; ++j)
      if (m.kinds[j].name == m.kinds[i].name)
        k["name"].fail("the kind \"" + m.kinds[i].name + "\" stands twice", "one entry per kind");
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
    m.device.insert(m.device.end(), idx(count), static_cast<int>(k));
  }
  m.links = decode_links(links);
  m.lane_per_link = decode_lanes(r);
  require_machine(m, std::string(r.file) + ": ");
  return m;
}

}  // namespace detail

/// The cluster as a JSON value that people can read and change: kinds by name, devices as runs. Precondition:
/// kinds have different names. Throws `error` for a machine that means nothing. Law:
/// decode_cluster(encode_cluster(m), w) == m where every kind is in use.
inline core::json encode_cluster(machine const& m) {
  require_machine(m);
  core::json const flat = detail::encode_machine(m);
  core::json r = core::json::object();
  r["tensorpar_cluster"] = cluster_schema;
  r["name"] = m.name;
  r["kinds"] = flat["kinds"];
  r["devices"] = detail::encode_devices(m);
  r["links"] = flat["links"];
  if (m.lane_per_link) r["lane_per_link"] = true;
  return r;
}

/// Two forms: {"preset": "summit:4"}, or {"tensorpar_cluster": 1, "name": ..., "kinds": [...], "devices":
/// [{"kind": ..., "count": ...}], "links": [innermost, ..., the one that joins all]}. Bandwidths in bytes/s,
/// memory in bytes, times in seconds. "lane_per_link": true where links of different levels are used at one
/// time (`machine::lane_per_link`).
/// Throws `error` that names file, key and what is valid. O(file + devices).
inline machine decode_cluster(core::json const& from, std::string const& where) {
  detail::plan_reader const r{from, where, ""};
  if (!from.is_object() || (!from.contains("preset") && !from.contains("tensorpar_cluster")))
    r.fail("not a cluster", "an object with the key \"preset\", or with \"tensorpar_cluster\": " +
                                std::to_string(cluster_schema));
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
    r["tensorpar_cluster"].fail("a cluster of schema version " + std::to_string(v),
                                "version " + std::to_string(cluster_schema));
  return detail::decode_cluster(r);
}
/// The cluster written in `text`; errors also say line and column where the text is not JSON.
inline machine parse_cluster(std::string_view text, std::string const& where) {
  return decode_cluster(core::parse_json(text, where), where);
}
inline machine read_cluster(std::string const& path) { return decode_cluster(core::read_json(path), path); }
/// A preset's name, or the path of a cluster file if the name ends in ".json".
inline machine find_cluster(std::string const& name_or_path) {
  if (name_or_path.ends_with(".json")) return read_cluster(name_or_path);
  try {
    return preset(name_or_path);
  } catch (error const& e) {
    throw error(e.problem(), e.where(), e.valid() + "; or the path of a file that ends in .json");
  }
}
/// Throws `error` as `decode_cluster` does where `read_cluster` would refuse the file; then nothing is
/// written.
inline void write_cluster(machine const& m, std::string const& path) {
  require_machine(m, path + ": ");
  core::json const j = encode_cluster(m);
  decode_cluster(j, path);                                              // kinds of one name
  core::write_whole_file(path, j.dump(1) + "\n");
}

}  // namespace tensorpar
