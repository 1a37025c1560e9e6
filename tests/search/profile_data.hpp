// tests/search/profile_data.hpp - the published profiles and the peers' recorded results, where they stand beside the project
#pragma once
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <string>
#include <tensorpar/core/json.hpp>
#include <tensorpar/search/profiles/dnn_partitioning.hpp>
#include <vector>

namespace profile_data {

using tensorpar::json;

inline std::string folder() { return TENSORPAR_SOURCE "/../shared/data/pipeline/"; }
/// False, with a line that says so, where there is no data: only in a copy of the project without its surroundings.
inline bool here() {
  bool const r = std::filesystem::exists(folder() + "reference_results.json");
  if (!r) MESSAGE("skipped: no profiles in " << folder());
  return r;
}
inline bool has(std::string const& file) { return std::filesystem::exists(folder() + file); }
inline json const& recorded() {
  static json const r = tensorpar::read_json(folder() + "reference_results.json");
  return r;
}
/// The file of a recorded dnn-partitioning input, or nothing if it is not there.
inline std::string dnn_file(std::string input) {
  for (std::string const before : {"throughput-inputs/"})
    if (input.starts_with(before)) input.erase(0, before.size());
  input = "dnn-partitioning/" + input.substr(0, input.find(".json") + 5);
  return has(input) ? folder() + input : std::string();
}
inline std::vector<int> nodes_of(json const& ids, tensorpar::dnn_partitioning_profile const& g) {
  std::map<tensorpar::i64, int> node;
  for (int v = 0; v < g.node_count(); ++v) node[g.id[static_cast<std::size_t>(v)]] = v;
  std::vector<int> r;
  for (json const& id : ids) r.push_back(node.at(id.get<tensorpar::i64>()));
  return r;
}

}  // namespace profile_data
