// tests/peers/profile_data.hpp - the published profiles and the peers' recorded results, where they stand beside the project
#pragma once
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <string>
#include <tensorpar/core/json.hpp>
#include <tensorpar/peers/profiles/dnn_partitioning.hpp>
#include <tensorpar/peers/profiles/piper.hpp>
#include <vector>

namespace profile_data {

using tensorpar::core::json;

inline std::string folder() { return TENSORPAR_SOURCE "/../shared/data/pipeline/"; }
/// False, with a line that says so, where there is no data: only in a copy of the project without its surroundings.
inline bool here() {
  bool const r = std::filesystem::exists(folder() + "reference_results.json");
  if (!r) MESSAGE("skipped: no profiles in " << folder());
  return r;
}
inline bool has(std::string const& file) { return std::filesystem::exists(folder() + file); }
inline json const& recorded() {
  static json const r = tensorpar::core::read_json(folder() + "reference_results.json");
  return r;
}
/// The file of a recorded dnn-partitioning input, or nothing if it is not there.
inline std::string dnn_file(std::string input) {
  for (std::string const before : {"throughput-inputs/"})
    if (input.starts_with(before)) input.erase(0, before.size());
  input = "dnn-partitioning/" + input.substr(0, input.find(".json") + 5);
  return has(input) ? folder() + input : std::string();
}
/// The BERT profile with more layers, as the peer lengthens it: copies of the last layer but one (id 34) in a row behind it, without the
/// mask. The copies are alike, and the ids that the peer's results give them are not in the order of the row: number 25 stands at its end.
inline tensorpar::peers::piper_profile longer_bert(tensorpar::peers::piper_profile g, int copies) {
  auto const at = [](int i) { return static_cast<std::size_t>(i); };
  int const last = 34, next = 35;
  int through = g.out[at(last)][0];  // the edge to the next layer; a copy takes its end over
  std::size_t const fed = g.edges[at(g.in[at(last)][0])].from == last - 1 ? 0 : 1;
  for (int i = 0, before = last; i < copies; ++i) {
    int const v = g.node_count(), edge = static_cast<int>(g.edges.size());
    g.id.push_back(123456790 + (i < 25 || copies <= 25 ? i : i + 1 < copies ? i + 1 : 25));
    g.name.push_back(g.name[at(last)]);
    g.degrees.push_back(g.degrees[at(before)]);
    for (auto& d : g.degrees.back())
      for (auto& w : d.ways) w.sync_in = {w.sync_in[before == last ? fed : 0]};
    g.edges.push_back({v, next, g.edges[at(through)].bytes});
    g.edges[at(through)].to = v;
    for (int& e : g.in[at(next)])
      if (e == through) e = edge;
    for (int& u : g.inputs[at(next)])
      if (u == before) u = v;
    g.in.push_back({through});
    g.out.push_back({edge});
    g.inputs.push_back({before});
    before = v;
    through = edge;
  }
  for (auto& list : g.inputs) std::sort(list.begin(), list.end());
  return g;
}
inline std::vector<int> nodes_of(tensorpar::core::json const& ids, tensorpar::peers::dnn_partitioning_profile const& g) {
  std::map<tensorpar::i64, int> node;
  for (int v = 0; v < g.node_count(); ++v) node[g.id[static_cast<std::size_t>(v)]] = v;
  std::vector<int> r;
  for (tensorpar::core::json const& id : ids) r.push_back(node.at(id.get<tensorpar::i64>()));
  return r;
}

}  // namespace profile_data
